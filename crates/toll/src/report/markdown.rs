//! Writes findings as Markdown for a pull request or an issue: the same first screen and the same sections as everywhere,
//! folded, nothing left out but charts and, since a forge takes 65,536 characters, what all but the leading cells of a
//! sweep show by themselves, and of a staircase each claim as seen.

use crate::analysis::findings::Findings;

use super::composition::Document;
use super::document::{Cell, Column, Group, Kind, Piece, Section, Table, Tone, figures, words};
use super::first::{self, Sheet, with_half};
use super::sections::Detail;

/// The report as GitHub-flavoured Markdown.
pub fn markdown(findings: &Findings) -> String {
    let Document { screen, sections } = Document::of(findings, Detail::Forge);
    let mut out = format!("# {}\n\n", escaped(&format!("{}: {}", screen.study, screen.question)));
    out += &format!("**{}**\n\n", escaped(&screen.answer));
    let badges: Vec<String> = screen.badges.iter().map(|badge| escaped(&badge.text)).collect();
    out += &format!("{}\n\n", badges.join(" · "));
    if let Some(sheet) = &screen.sheet {
        out += &format!("{}\n", rendered_table(&sheet_table(sheet)));
    }
    for (label, text) in screen.said() {
        let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
        out += &format!("- {}\n", escaped(&(label + &text)));
    }
    out.push('\n');
    out.extend(sections.iter().map(rendered_section));
    format!("{}\n", out.trim_end())
}

/// A row a variant, a column a metric.
fn sheet_table(sheet: &Sheet) -> Table {
    let heads = sheet.columns.iter().map(|head| figures(format!("{}, {}", head.title, head.unit)));
    let columns = std::iter::once(words(&sheet.at_load)).chain(heads).collect();
    let row = |row: &first::Row| {
        let figure = |cell: &Option<first::Figure>| match cell {
            Some(of) => match &of.change {
                Some(change) => {
                    Cell::toned(format!("{} ({})", of.value, with_half(change)), change.tone)
                }
                None => of.value.clone().into(),
            },
            None => Cell::default(),
        };
        let name = match &row.missing {
            Some(why) => format!("{} ({why})", row.name),
            None => format!("{}: {}", row.name, row.describes),
        };
        std::iter::once(name.into()).chain(row.cells.iter().map(figure)).collect()
    };
    Table::new(columns, sheet.rows.iter().map(row).collect())
}

/// Forges show what is folded once it is asked for.
fn rendered_section(section: &Section) -> String {
    let pieces: String = section.pieces.iter().map(rendered).collect();
    let title = escaped(&section.title);
    let answer = if section.answer.is_empty() {
        String::new()
    } else {
        format!(": {}", escaped(&section.answer))
    };
    format!("<details><summary><b>{title}</b>{answer}</summary>\n\n{pieces}</details>\n\n")
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
        Piece::Fold(section) => rendered_section(section),
        Piece::Charts(_) => String::new(),
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
