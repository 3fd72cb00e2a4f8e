//! Writes findings as Markdown for a pull request or an issue: the same tables as everywhere, nothing left out but
//! charts, and of a sweep or a staircase what all but the leading cells show by themselves, of a staircase also hey's
//! summaries, claims in full and the trials that count: a forge takes 65,536 characters.

use crate::analysis::findings::Findings;

use super::answers::answers;
use super::components;
use super::content::{self, Detail};
use super::staircase::{self, Stairs};
use super::sweep::{self, Part, Sweep};
use super::table::{Cell, Column, Group, Kind, Piece, Section, Table, Tone};
use super::{heap, jvms, pods, proof, published, reading, record, settled, spans};

/// The report as GitHub-flavoured Markdown.
pub fn markdown(findings: &Findings) -> String {
    let mut out =
        format!("# {}\n\n", escaped(&format!("{}: {}", findings.study, findings.question)));
    for answer in answers(findings) {
        out += &format!("**{}**\n\n", escaped(&answer));
    }
    for part in parts(findings) {
        out += &rendered_part(&part);
    }
    format!("{}\n", out.trim_end())
}

fn parts(findings: &Findings) -> Vec<Part> {
    if !Stairs::all(findings).is_empty() {
        let findings = &without_summaries(findings);
        let stairs = Stairs::all(findings);
        return staircase::full(&stairs, findings, &staircase::nearest(&stairs));
    }
    match Sweep::of(findings) {
        Some(sweep) => sweep::full(&sweep, &sweep.largest()),
        None => sections(findings).into_iter().map(Part::Open).collect(),
    }
}

/// Of a staircase hey's summaries are in the page alone: with them the report is longer than a forge takes.
fn without_summaries(findings: &Findings) -> Findings {
    let mut findings = findings.clone();
    findings.loads.iter_mut().flat_map(|load| &mut load.variants).for_each(|of| of.hey = None);
    findings
}

/// Forges show what is folded once it is asked for.
fn rendered_part(part: &Part) -> String {
    match part {
        Part::Open(section) => rendered_section(section),
        Part::Folded(folded) => {
            let sections: String = folded.sections.iter().map(rendered_section).collect();
            let title = escaped(&folded.title);
            format!("<details><summary>{title}</summary>\n\n{sections}</details>\n\n")
        }
    }
}

fn rendered_section(section: &Section) -> String {
    let pieces: String = section.pieces.iter().map(rendered).collect();
    format!("## {}\n\n{pieces}", escaped(&section.title))
}

fn sections(findings: &Findings) -> Vec<Section> {
    let loads: Vec<_> = findings.loads.iter().collect();
    let detailed = spans::detailed(findings);
    let mut sections = vec![content::caveats(findings)];
    let order = spans::in_order(findings);
    sections.extend(order.into_iter().map(|i| content::load(findings, i, Detail::Full)));
    // Behind the load that answers: the same question, asked by the span.
    let behind = sections.len().min(2);
    sections.splice(behind..behind, spans::spans(findings, Detail::Full));
    sections.extend(jvms::jvms(findings, Detail::Full));
    sections.extend(heap::heap(findings));
    sections.push(components::cpu(findings, &loads, Detail::Full));
    sections.extend(pods::top(findings, &detailed));
    sections.extend(published::published(findings, Detail::Full));
    sections.push(proof::proof(findings, Detail::Full));
    sections.push(components::memory(findings, &detailed, Detail::Full));
    sections.extend(settled::settled(findings));
    sections.push(record::trials(findings));
    sections.push(record::machine(findings));
    sections.push(reading::reading(findings));
    sections
}

fn rendered(piece: &Piece) -> String {
    match piece {
        Piece::Heading(text) => format!("### {}\n\n", escaped(text)),
        Piece::Text(text) => format!("{}\n\n", escaped(text)),
        Piece::List(entries) => {
            let lines: String =
                entries.iter().map(|e| format!("- {}\n", escaped(&e.text))).collect();
            lines + "\n"
        }
        Piece::Table(table) => format!("{}\n", rendered_table(table)),
    }
}

/// Group titles go into a first column of their own, since Markdown has no cells that span.
fn rendered_table(table: &Table) -> String {
    let grouped = table.groups.iter().any(|g| g.title.is_some());
    let lead = if grouped { "| " } else { "" };
    let titles: Vec<String> = table.columns.iter().map(|c| escaped(&c.title)).collect();
    let rules: Vec<&str> = table.columns.iter().map(rule).collect();
    let lead_rule = if grouped { "|---" } else { "" };
    let mut out = format!("{lead}| {} |\n{lead_rule}|{}|\n", titles.join(" | "), rules.join("|"));
    for group in &table.groups {
        out += &rendered_group(group, grouped);
    }
    out
}

fn rule(column: &Column) -> &'static str {
    match column.kind {
        Kind::Words | Kind::Bars => "---",
        Kind::Figures => "---:",
    }
}

fn rendered_group(group: &Group, grouped: bool) -> String {
    let title = |i| match &group.title {
        Some(title) if i == 0 => format!("| {} ", escaped(title)),
        _ if grouped => "| ".into(),
        _ => String::new(),
    };
    let line = |(i, row): (usize, &Vec<Cell>)| {
        let cells: Vec<String> = row.iter().map(cell).collect();
        format!("{}| {} |\n", title(i), cells.join(" | "))
    };
    group.rows.iter().enumerate().map(line).collect()
}

fn cell(cell: &Cell) -> String {
    let text = escaped(&cell.text);
    match cell.tone {
        Tone::Worse | Tone::Better | Tone::Sum if !text.is_empty() => format!("**{text}**"),
        _ => text,
    }
}

/// Names from a study file are text, never markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', letter]),
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '&' => out += "&amp;",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
