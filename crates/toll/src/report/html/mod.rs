//! Writes findings as one HTML file that needs nothing else: style and charts are inside, no script, no network. The
//! first screen answers; all sections behind it are folded, each with one line that answers for it.

mod drawing;
mod first;
mod palette;

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use crate::analysis::findings::Findings;

use super::composition::Document;
use super::document::{Cell, Column, Group, Kind, Piece, Section, Table, Tone};
use super::sections::Detail;
use palette::Palette;

/// Texts of up to this many letters stay on one line, so that a long neighbour does not squeeze them.
const NEVER_WRAPPED: usize = 22;
const STYLE: &str = include_str!("style.css");

/// The report as one self-contained HTML document.
pub fn html(findings: &Findings) -> String {
    let Document { screen, sections } = Document::of(findings, Detail::All);
    let palette = Palette::of(findings);
    let body = markup! {
        (contents(&sections))
        main {
            (first::screen(&screen, &palette))
            @for section in &sections { (folded(section, &palette, 2)) }
        }
    };
    document(&screen.study, &body)
}

/// An answer and the sections behind it, nothing folded, as one self-contained HTML document.
pub fn page(title: &str, answer: &str, sections: &[Section]) -> String {
    let palette = Palette::default();
    let body = markup! {
        header #answer { h1 { (title) } p.answer { (answer) } }
        main {
            @for section in sections {
                section id=(section.id) {
                    h2 { (section.title) }
                    (content(section, &palette, 2))
                }
            }
        }
    };
    document(title, &body)
}

/// A whole page with the style of reports.
fn document(title: &str, body: &Markup) -> String {
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – toll" }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// The table of contents; it stays in sight beside the page if the window is wide enough.
fn contents(sections: &[Section]) -> Markup {
    markup! {
        nav aria-label="contents" {
            a href="#answer" { "Answer" }
            @for section in sections { a href=(format!("#{}", section.id)) { (section.title) } }
        }
    }
}

/// A section behind its title and answer. What a link leads to lies inside, so that following it opens the fold.
fn folded(section: &Section, palette: &Palette, level: u8) -> Markup {
    markup! {
        details {
            summary {
                @if level == 2 { h2 { (section.title) } } @else { h3 { (section.title) } }
                " " span.said { (section.answer) }
            }
            section id=(section.id) { (content(section, palette, level)) }
        }
    }
}

/// The introduction with its charts, then the parts.
fn content(section: &Section, palette: &Palette, level: u8) -> Markup {
    let is_lead = |p: &&Piece| matches!(p, Piece::Text(_) | Piece::Charts(_));
    let lead = section.pieces.iter().take_while(is_lead).count();
    markup! {
        @for piece in &section.pieces[..lead] { (rendered(piece, section, palette, level)) }
        @for part in parts(&section.pieces[lead..]) {
            div.part { @for piece in part { (rendered(piece, section, palette, level)) } }
        }
    }
}

/// Pieces up to the next heading belong together.
fn parts(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    pieces.chunk_by(|_, next| !matches!(next, Piece::Heading(_) | Piece::Fold(_)))
}

fn rendered(piece: &Piece, about: &Section, palette: &Palette, level: u8) -> Markup {
    match piece {
        Piece::Heading(text) => markup! { h3 { (text) } },
        Piece::Text(text) => markup! { p { (text) } },
        Piece::List(entries) => markup! {
            ul.notes { @for entry in entries { li class=(tone_class(entry.tone)) { (entry.text) } } }
        },
        Piece::Table(table) => rendered_table(table, &about.title),
        Piece::Fold(section) => folded(section, palette, level + 1),
        Piece::Charts(charts) => markup! {
            div.charts { @for chart in charts { (drawing::figure(chart, palette)) } }
        },
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
