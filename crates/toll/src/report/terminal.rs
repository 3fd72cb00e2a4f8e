//! Lays findings out for a terminal: plain text of a given width, colour on verdicts only.

use crate::analysis::findings::{Findings, LoadFindings, View};

use super::answers::answers;
use super::components;
use super::content::{self, Detail};
use super::staircase::{self, Stairs};
use super::sweep::{self, Sweep};
use super::table::{Cell, Column, Kind, Piece, Section, Table, Tone};
use super::wording::primary;
use super::{heap, jvms, pods, proof, published, settled, spans};

const GAP: usize = 2;
const INDENT: usize = 2;
/// Words are wrapped down to this width before a table is split.
const NARROWEST_WORDS: usize = 18;
const WIDEST_TITLE: usize = 16;
/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 110;
const NARROWEST: usize = 40;

/// The report as text of at most `width` columns (taken as 40 to 110), with ANSI colours if `colour`.
pub fn terminal(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page { width: width.clamp(NARROWEST, WIDEST), colour };
    let mut lines = page.wrapped(&format!("{}: {}", findings.study, findings.question), 0);
    lines.push(String::new());
    for answer in answers(findings) {
        lines.extend(page.wrapped(&answer, INDENT));
    }
    for section in sections(findings) {
        lines.extend(page.section(&section));
    }
    let mut lines: Vec<&str> = lines.iter().map(|l| l.trim_end()).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n").trim_end().to_string() + "\n"
}

/// One section on its own, laid out as in the report.
pub(super) fn alone(section: &Section, width: usize, colour: bool) -> String {
    let page = Page { width: width.clamp(NARROWEST, WIDEST), colour };
    let lines: Vec<String> =
        page.section(section).iter().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned() + "\n"
}

/// The caveats stand last, where a terminal shows them first.
fn sections(findings: &Findings) -> Vec<Section> {
    let stairs = Stairs::all(findings);
    if !stairs.is_empty() {
        return staircase::brief(&stairs, findings);
    }
    if let Some(sweep) = Sweep::of(findings) {
        return sweep::brief(&sweep);
    }
    let loads = &findings.loads;
    let primary: Vec<_> = primary(findings).into_iter().collect();
    let mut sections: Vec<Section> = loads
        .iter()
        .enumerate()
        .filter(|(_, load)| !spans::is_point_only(findings, load))
        .map(|(i, _)| content::load(findings, i, Detail::Brief))
        .collect();
    // Behind the load that answers: the same question, asked by the span.
    let behind = sections.len().min(1);
    sections.splice(behind..behind, spans::spans(findings, Detail::Brief));
    sections.extend(jvms::jvms(findings, Detail::Brief));
    sections.extend(heap::heap(findings));
    sections.push(components::cpu(findings, &primary, Detail::Brief));
    sections.extend(pods::top(findings, &leading(findings)));
    sections.push(components::memory(findings, &primary, Detail::Brief));
    sections.extend(published::published(findings, Detail::Brief));
    sections.push(proof::proof(findings, Detail::Brief));
    sections.extend(settled::settled(findings));
    sections.push(content::caveats(findings));
    sections
}

/// The load that answers the question, and those that show how much each variant carries.
fn leading(findings: &Findings) -> Vec<&LoadFindings> {
    let primary = primary(findings);
    let leads = |load: &&LoadFindings| load.view == View::FlatOut || primary == Some(*load);
    findings.loads.iter().filter(leads).collect()
}

struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn section(&self, section: &Section) -> Vec<String> {
        let title = plain(&section.title);
        let mut lines = vec![String::new(), title.clone(), "-".repeat(length(&title))];
        for piece in &section.pieces {
            lines.extend(self.piece(piece));
        }
        lines
    }

    fn piece(&self, piece: &Piece) -> Vec<String> {
        match piece {
            Piece::Heading(text) => [vec![String::new()], self.wrapped(text, 0)].concat(),
            Piece::Text(text) => self.wrapped(text, 0),
            Piece::List(entries) => entries.iter().flat_map(|e| self.entry(e)).collect(),
            Piece::Table(table) => split(table, self.width)
                .iter()
                .flat_map(|t| [vec![String::new()], self.table(t)].concat())
                .chain([String::new()])
                .collect(),
        }
    }

    fn wrapped(&self, text: &str, indent: usize) -> Vec<String> {
        let pad = " ".repeat(indent);
        wrap(&plain(text), self.width - indent).iter().map(|l| format!("{pad}{l}")).collect()
    }

    fn entry(&self, entry: &Cell) -> Vec<String> {
        let lines = wrap(&plain(&entry.text), self.width - INDENT);
        let mark = |i| if i == 0 { "* " } else { "  " };
        lines
            .iter()
            .enumerate()
            .map(|(i, l)| mark(i).to_string() + &self.toned(l, entry.tone))
            .collect()
    }

    fn table(&self, table: &Table) -> Vec<String> {
        let widths = fitted(table, self.width);
        let titles: Vec<Cell> = table.columns.iter().map(|c| Cell::from(&c.title)).collect();
        let mut lines = if table.columns.iter().all(|c| c.title.is_empty()) {
            vec![]
        } else {
            self.row(&table.columns, &titles, &widths)
        };
        for (i, group) in table.groups.iter().enumerate() {
            lines.extend((i > 0).then(String::new));
            lines.extend(group.title.iter().flat_map(|t| self.wrapped(t, 0)));
            for row in &group.rows {
                lines.extend(self.row(&table.columns, row, &widths));
            }
        }
        lines
    }

    /// One row, on as many lines as its longest cell needs.
    fn row(&self, columns: &[Column], cells: &[Cell], widths: &[usize]) -> Vec<String> {
        let wrapped: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(c, w)| wrap(&plain(&c.text), *w)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let placed = |line: usize, at: usize| {
            let text = wrapped[at].get(line).map_or("", String::as_str);
            self.placed(text, cells[at].tone, columns[at].kind, widths[at])
        };
        let gap = " ".repeat(GAP);
        (0..height)
            .map(|line| (0..columns.len()).map(|at| placed(line, at)).collect::<Vec<_>>())
            .map(|texts| " ".repeat(INDENT) + texts.join(&gap).trim_end())
            .collect()
    }

    /// `text` in a column of `width`. Padded outside the colour, which takes no room.
    fn placed(&self, text: &str, tone: Tone, kind: Kind, width: usize) -> String {
        let pad = " ".repeat(width.saturating_sub(length(text)));
        let toned = self.toned(text, tone);
        match kind {
            Kind::Words | Kind::Bars => toned + &pad,
            Kind::Figures => pad + &toned,
        }
    }

    fn toned(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Worse => "31",
            Tone::Better => "32",
            Tone::Unknown => "33",
            Tone::Neutral | Tone::Same | Tone::Sum | Tone::Quiet => return text.into(),
        };
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.into()
        }
    }
}

/// Column widths for `table`: as wide as the content where it fits, else with wrapped words.
fn fitted(table: &Table, width: usize) -> Vec<usize> {
    let mut widths = natural(table, length);
    if total(&widths) > width {
        widths = natural(table, |title| title.split(' ').map(length).max().unwrap_or(0));
    }
    for at in (0..widths.len()).rev() {
        let over = total(&widths).saturating_sub(width);
        if table.columns[at].kind == Kind::Words {
            let least = widths[at].min(NARROWEST_WORDS);
            widths[at] = widths[at].saturating_sub(over).max(least);
        }
    }
    widths
}

/// As wide as the longest cell, and as the column's title by `title_length`.
fn natural(table: &Table, title_length: impl Fn(&str) -> usize) -> Vec<usize> {
    let cells = |at: usize| table.groups.iter().flat_map(|g| &g.rows).map(move |r| &r[at].text);
    let longest = |at: usize| cells(at).map(|t| length(&plain(t))).max().unwrap_or(0);
    // A long name as a title is broken rather than pushing the figures apart.
    let title = |column: &Column| title_length(&column.title).min(WIDEST_TITLE);
    table.columns.iter().enumerate().map(|(at, c)| longest(at).max(title(c))).collect()
}

fn total(widths: &[usize]) -> usize {
    INDENT + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// A table that is too wide even with wrapped words, as several that repeat the first column.
fn split(table: &Table, width: usize) -> Vec<Table> {
    let widths = fitted(table, width);
    let mut parts: Vec<Vec<usize>> = vec![vec![0]];
    for at in 1..table.columns.len() {
        let part = parts.last_mut().expect("there is always a part");
        let with: Vec<usize> = part.iter().chain([&at]).map(|i| widths[*i]).collect();
        if total(&with) > width && part.len() > 1 {
            parts.push(vec![0, at]);
        } else {
            part.push(at);
        }
    }
    parts.iter().map(|part| columns_of(table, part)).collect()
}

fn columns_of(table: &Table, part: &[usize]) -> Table {
    let mut table = table.clone();
    table.columns = part.iter().map(|i| table.columns[*i].clone()).collect();
    for row in table.groups.iter_mut().flat_map(|g| &mut g.rows) {
        *row = part.iter().map(|i| row[*i].clone()).collect();
    }
    table
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Breaks `text` at spaces; a word longer than `width` is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        for piece in cut(word, width.max(1)) {
            let line = lines.last_mut().expect("there is always a line");
            if line.is_empty() {
                *line = piece;
            } else if length(line) + 1 + length(&piece) <= width {
                *line += &format!(" {piece}");
            } else {
                lines.push(piece);
            }
        }
    }
    lines.into_iter().map(|l| l.replace('\u{a0}', " ")).collect()
}

/// `word` in pieces of at most `width`, broken behind a hyphen where there is one.
fn cut(word: &str, width: usize) -> Vec<String> {
    let mut rest: Vec<char> = word.chars().collect();
    let mut pieces = Vec::new();
    while rest.len() > width {
        let at = rest[..width].iter().rposition(|c| *c == '-').map_or(width, |hyphen| hyphen + 1);
        pieces.push(rest.drain(..at).collect());
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// Signs that every terminal and locale shows; control characters, which could steer it, are taken out.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'µ' => 'u',
            '−' | '–' => '-',
            '×' => 'x',
            '■' => '#',
            '\u{2007}' | '\u{2008}' => '\u{a0}',
            '\n' | '\t' => ' ',
            c if c.is_control() => '?',
            c => c,
        })
        .collect()
}
