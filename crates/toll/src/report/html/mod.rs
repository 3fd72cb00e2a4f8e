//! Writes findings as one HTML file that needs nothing else: style and charts are inside, no script, no network.

mod charts;
mod palette;
mod staircase;
mod sweep;

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use crate::analysis::findings::{Findings, LoadFindings, Metric, View};

use super::answers::answers;
use super::components;
use super::content::{self, Detail};
use super::staircase::Stairs;
use super::sweep::Sweep;
use super::table::{Cell, Column, Group, Kind, Piece, Section, Table, Tone};
use super::{heap, jvms, pods, proof, published, reading, record, settled, spans};
use palette::Palette;

/// Texts of up to this many letters stay on one line, so that a long neighbour does not squeeze them.
const NEVER_WRAPPED: usize = 22;
const STYLE: &str = include_str!("style.css");

/// The report as one self-contained HTML document.
pub fn html(findings: &Findings) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (findings.study) " – toll" }
                style { (PreEscaped(STYLE)) }
            }
            body { (masthead(findings)) main { (body(findings)) } }
        }
    };
    page.into_string()
}

fn masthead(findings: &Findings) -> Markup {
    markup! {
        header #answer {
            p.run { b { "toll" } span { (findings.study) } span { (findings.run) } }
            h1 { (findings.question) }
            @for answer in answers(findings) { p.answer { (answer) } }
        }
    }
}

fn body(findings: &Findings) -> Markup {
    let stairs = Stairs::all(findings);
    if !stairs.is_empty() {
        return staircase::parts(&stairs, findings);
    }
    match Sweep::of(findings) {
        Some(sweep) => sweep::parts(&sweep),
        None => sections(findings),
    }
}

fn sections(findings: &Findings) -> Markup {
    let palette = Palette::of(findings);
    let loads: Vec<&LoadFindings> = findings.loads.iter().collect();
    let detailed = spans::detailed(findings);
    let no_charts = markup! {};
    markup! {
        (section(&content::caveats(findings), &no_charts))
        @for i in spans::in_order(findings) {
            (section(&content::load(findings, i, Detail::Full), &load_charts(loads[i], &palette)))
            // Behind the load that answers: the same question, asked by the span.
            @if i == 0 { @if let Some(spans) = spans::spans(findings, Detail::Full) { (section(&spans, &span_charts(findings, &palette))) } }
        }
        @if let Some(jvms) = jvms::jvms(findings, Detail::Full) { (section(&jvms, &no_charts)) }
        @if let Some(heap) = heap::heap(findings) { (section(&heap, &heap_charts(findings, &palette))) }
        (section(&components::cpu(findings, &loads, Detail::Full), &cpu_charts(&loads, &palette)))
        @if let Some(pods) = pods::top(findings, &detailed) { (section(&pods, &no_charts)) }
        @if let Some(published) = published::published(findings, Detail::Full) { (section(&published, &no_charts)) }
        (section(&proof::proof(findings, Detail::Full), &no_charts))
        (section(&components::memory(findings, &detailed, Detail::Full), &memory_charts(&detailed, &palette)))
        @if let Some(settled) = settled::settled(findings) { (section(&settled, &settled_charts(findings, &palette))) }
        (section(&record::trials(findings), &no_charts))
        (section(&record::machine(findings), &no_charts))
        (section(&reading::reading(findings), &no_charts))
    }
}

fn load_charts(load: &LoadFindings, palette: &Palette) -> Markup {
    let leading: &[Metric] = match load.view {
        View::EqualRate => {
            &[Metric::LatencyP50, Metric::LatencyP90, Metric::LatencyP99, Metric::CpuPerRequest]
        }
        View::FlatOut => {
            &[Metric::Throughput, Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest]
        }
        View::Users => {
            &[Metric::Throughput, Metric::LatencyP50, Metric::LatencyP90, Metric::CpuPerRequest]
        }
    };
    let flat_out = load.view != View::EqualRate;
    markup! {
        div class=(if flat_out { "charts three" } else { "charts" }) {
            @if let Some(chart) = charts::effects(load, leading, palette) { (chart) }
            @if let Some(chart) = charts::latency(load, palette) { (chart) }
            @if flat_out { @if let Some(chart) = charts::throughput(load, palette) { (chart) } }
        }
    }
}

fn span_charts(findings: &Findings, palette: &Palette) -> Markup {
    markup! { div.charts { (charts::spans(findings, palette)) } }
}

fn heap_charts(findings: &Findings, palette: &Palette) -> Markup {
    markup! { div.charts { (charts::heap(findings, palette)) } }
}

fn cpu_charts(loads: &[&LoadFindings], palette: &Palette) -> Markup {
    markup! {
        div.charts { @for load in loads { @if let Some(chart) = charts::cpu(load, palette) { (chart) } } }
    }
}

fn memory_charts(loads: &[&LoadFindings], palette: &Palette) -> Markup {
    markup! { @for load in loads { div.charts { (charts::memory(load, palette)) } } }
}

fn settled_charts(findings: &Findings, palette: &Palette) -> Markup {
    markup! { div.charts { (charts::settled(findings, palette)) } }
}

/// A section with its charts between the introduction and the first table.
fn section(section: &Section, charts: &Markup) -> Markup {
    let is_text = |p: &&Piece| matches!(p, Piece::Text(_));
    let lead = section.pieces.iter().take_while(is_text).count();
    markup! {
        section id=(section.id) {
            h2 { (section.title) }
            @for piece in &section.pieces[..lead] { (rendered(piece, &section.title)) }
            (charts)
            @for part in parts(&section.pieces[lead..]) {
                div.part { @for piece in part { (rendered(piece, &section.title)) } }
            }
        }
    }
}

/// Pieces up to the next heading belong together.
fn parts(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    pieces.chunk_by(|_, next| !matches!(next, Piece::Heading(_)))
}

fn rendered(piece: &Piece, about: &str) -> Markup {
    match piece {
        Piece::Heading(text) => markup! { h3 { (text) } },
        Piece::Text(text) => markup! { p { (text) } },
        Piece::List(entries) => markup! {
            ul.notes { @for entry in entries { li class=(tone_class(entry.tone)) { (entry.text) } } }
        },
        Piece::Table(table) => rendered_table(table, about),
    }
}

fn rendered_table(table: &Table, about: &str) -> Markup {
    let has_head = table.columns.iter().any(|c| !c.title.is_empty());
    markup! {
        // A wide table scrolls inside its own frame, which the keyboard must reach too.
        div.scroll role="region" tabindex="0" aria-label=(about) {
            table {
                @if has_head { thead { tr { @for c in &table.columns { (column_head(c)) } } } }
                @for group in &table.groups { (rendered_group(group, &table.columns)) }
            }
        }
    }
}

fn column_head(column: &Column) -> Markup {
    markup! { th scope="col" class=(kind_class(column.kind)) { (column.title) } }
}

fn rendered_group(group: &Group, columns: &[Column]) -> Markup {
    markup! {
        tbody {
            @if let Some(title) = &group.title {
                tr.group { th scope="rowgroup" colspan=(columns.len()) { span { (title) } } }
            }
            @for row in &group.rows {
                tr { @for (i, cell) in row.iter().enumerate() { (rendered_cell(cell, columns[i].kind, i == 0)) } }
            }
        }
    }
}

fn rendered_cell(cell: &Cell, kind: Kind, heads_row: bool) -> Markup {
    let short = cell.text.chars().count() <= NEVER_WRAPPED;
    let classes = [kind_class(kind), tone_class(cell.tone), if short { "short" } else { "" }];
    let class = classes.join(" ");
    markup! {
        @if heads_row { th scope="row" class=(class) { (cell.text) } }
        @else { td class=(class) { (cell.text) } }
    }
}

fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Words => "words",
        Kind::Figures => "figures",
        Kind::Bars => "bars",
    }
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Neutral => "",
        Tone::Worse => "worse",
        Tone::Better => "better",
        Tone::Same => "same",
        Tone::Unknown => "unknown",
        Tone::Sum => "sum",
        Tone::Quiet => "quiet",
    }
}
