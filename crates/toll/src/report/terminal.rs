//! Lays findings out for a terminal: the first screen in at most 40 lines, or everything. Plain text of a given width,
//! colour on what changed only.

use crate::analysis::findings::Findings;

use super::composition::Document;
use super::document::{Cell, Column, Kind, Piece, Section, Table, Tone, figures, words};
use super::first::{Change, Head, Row, Screen, Sheet, with_half};
use super::sections::Detail;

const GAP: usize = 2;
const INDENT: usize = 2;
/// Words are wrapped down to this width before a table is split.
const NARROWEST_WORDS: usize = 18;
const WIDEST_TITLE: usize = 16;
/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 110;
const NARROWEST: usize = 40;
/// Rows of the first screen's table.
const MOST_ROWS: usize = 9;
/// Lines for the answer, for each line that is said below the table, and for what weakens it.
const ANSWER_LINES: usize = 5;
const SAID_LINES: usize = 2;
const WEAK_LINES: usize = 3;

/// The answer as text of at most `width` columns (taken as 40 to 110), with ANSI colours if `colour`: at 80 columns at
/// most 40 lines.
pub fn terminal(findings: &Findings, dir: &str, width: usize, colour: bool) -> String {
    let (page, screen) = (Page::new(width, colour), Screen::of(findings));
    let mut lines = page.head(&screen);
    for (label, text) in screen.said() {
        lines.extend(page.said(&label, &text, SAID_LINES));
    }
    lines.push(String::new());
    lines.extend(page.said("proven", &screen.proven, SAID_LINES));
    lines.extend(page.weak(&screen));
    lines.push(String::new());
    lines.extend(page.where_to(&screen, dir));
    finished(&lines)
}

/// Everything, in the same layout.
pub fn full(findings: &Findings, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let Document { screen, sections } = Document::of(findings, Detail::All);
    let mut lines = page.head(&screen);
    for (label, text) in screen.said() {
        lines.extend(page.said(&label, &text, usize::MAX));
    }
    lines.extend(page.said("proven", &screen.proven, usize::MAX));
    lines.extend(sections.iter().flat_map(|section| page.section(section)));
    finished(&lines)
}

fn finished(lines: &[String]) -> String {
    let mut lines: Vec<&str> = lines.iter().map(|l| l.trim_end()).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n").trim_end().to_string() + "\n"
}

/// An answer and sections for 80 columns, set close so that they fit a screen.
pub fn brief(title: &str, answer: &str, sections: &[Section]) -> String {
    let page = Page::new(80, false);
    let mut lines = vec![title.to_owned(), answer.to_owned(), String::new()];
    for section in sections {
        lines.push(section.title.to_uppercase());
        for piece in &section.pieces {
            lines.extend(match piece {
                Piece::Text(text) => page.wrapped(text, INDENT),
                Piece::Table(table) => page.table(table),
                other => page.piece(other),
            });
        }
    }
    lines.join("\n")
}

/// One section on its own, laid out as in the report.
pub(super) fn alone(section: &Section, width: usize, colour: bool) -> String {
    let page = Page::new(width, colour);
    let lines: Vec<String> =
        page.section(section).iter().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned() + "\n"
}

struct Page {
    width: usize,
    colour: bool,
}

impl Page {
    fn new(width: usize, colour: bool) -> Self {
        Self { width: width.clamp(NARROWEST, WIDEST), colour }
    }

    /// Question, answer and table.
    fn head(&self, screen: &Screen) -> Vec<String> {
        let mut lines = self.wrapped(&format!("{}: {}", screen.study, screen.question), 0);
        lines.truncate(SAID_LINES);
        lines.push(String::new());
        let mut answer = self.wrapped(&screen.answer, INDENT);
        cut_off(&mut answer, ANSWER_LINES);
        lines.extend(answer);
        lines.push(String::new());
        lines.extend(screen.sheet.iter().flat_map(|sheet| self.sheet(sheet)));
        lines.push(String::new());
        lines
    }

    /// The table with a row a variant: of two what changed stands in a row of its own.
    fn sheet(&self, sheet: &Sheet) -> Vec<String> {
        let compared = sheet.rows.iter().filter(|row| row.missing.is_none()).count();
        let mut table = if compared <= 2 { of_two(sheet) } else { of_many(sheet) };
        while total(&fitted(&table, self.width)) > self.width && table.columns.len() > 2 {
            let kept: Vec<usize> = (0..table.columns.len() - 1).collect();
            table = columns_of(&table, &kept);
        }
        let mut lines = self.table(&table);
        for row in sheet.rows.iter().filter(|row| row.missing.is_some()) {
            let why = row.missing.as_deref().unwrap_or_default();
            let mut said = self.wrapped(&format!("{} {why}", row.name), INDENT);
            cut_off(&mut said, 1);
            lines.extend(said.iter().map(|line| self.toned(line, Tone::Unknown)));
        }
        lines
    }

    /// `who pays: ...` with what follows hanging below, at most so many lines.
    fn said(&self, label: &str, text: &str, most: usize) -> Vec<String> {
        let text = if label.is_empty() { text.to_owned() } else { format!("{label}: {text}") };
        let mut lines = wrap(&plain(&text), self.width - INDENT * 2);
        cut_off(&mut lines, most);
        let indent = |at: usize| " ".repeat(if at == 0 { INDENT } else { INDENT * 2 });
        lines.iter().enumerate().map(|(at, line)| indent(at) + line).collect()
    }

    /// As many of what weakens the result as three lines hold, the most important first.
    fn weak(&self, screen: &Screen) -> Vec<String> {
        let texts = &screen.weak;
        let fits = |count: usize| {
            let left = texts.len() - count;
            let more =
                if left > 0 { format!("; {left} more in the report") } else { String::new() };
            let lines = self.said("to know", &(texts[..count].join("; ") + &more), usize::MAX);
            (lines.len() <= WEAK_LINES).then_some(lines)
        };
        match texts.as_slice() {
            [] => vec![],
            [first, ..] => (1..=texts.len())
                .rev()
                .find_map(fits)
                .unwrap_or_else(|| self.said("to know", first, WEAK_LINES)),
        }
    }

    /// How much was measured, and how to have more of what is in `run`.
    fn where_to(&self, screen: &Screen, run: &str) -> Vec<String> {
        let Screen { more_rounds: more, extent, .. } = screen;
        // What is to be typed stands on lines of its own, so that it can be marked with a mouse.
        let sharper = format!("toll run --resume {run} --rounds +{more}");
        let one_line = format!("{extent}. Sharper: {sharper}");
        let mut lines = if length(&one_line) + INDENT <= self.width {
            vec![one_line]
        } else {
            vec![format!("{extent}. Sharper:"), format!("  {sharper}")]
        };
        lines.push(format!("report: {run}/report.html"));
        lines.push(format!("all tables: toll report {run}"));
        lines.iter().flat_map(|line| self.kept(&plain(line))).collect()
    }

    /// A line that is only broken where it does not fit.
    fn kept(&self, line: &str) -> Vec<String> {
        if length(line) + INDENT <= self.width {
            return vec![format!("{}{line}", " ".repeat(INDENT))];
        }
        self.wrapped(line, INDENT)
    }

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
            Piece::Fold(section) => self.section(section),
            Piece::Charts(_) => vec![],
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

    /// `text` in a column of `width`. Padded outside the colour, which has no width.
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
            Tone::Unknown => "90",
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

/// `p50 ms`, `CPU µs/req`: on one line with what stands beside it, so no blank in it breaks.
fn head_title(head: &Head) -> String {
    let per_request = if head.brief == head.title { "" } else { "/req" };
    format!("{}\u{a0}{}{per_request}", head.brief, head.unit)
}

/// Baseline, variant and what changed; a column a metric.
fn of_two(sheet: &Sheet) -> Table {
    let shown: Vec<usize> =
        (0..sheet.columns.len()).filter(|at| !sheet.columns[*at].is_capacity).collect();
    let heads = shown.iter().map(|at| {
        let head = &sheet.columns[*at];
        figures(head_title(head))
    });
    let columns = std::iter::once(words("")).chain(heads).collect();
    let mut rows = Vec::new();
    for row in sheet.rows.iter().filter(|row| row.missing.is_none()) {
        let value = |at: &usize| {
            row.cells[*at].as_ref().map_or_else(|| "–".into(), |figure| Cell::from(&figure.value))
        };
        rows.push(std::iter::once(Cell::from(&row.name)).chain(shown.iter().map(value)).collect());
        let change =
            |at: &usize| change_cell(row.cells[*at].as_ref().and_then(|f| f.change.as_ref()));
        if !row.is_baseline {
            let changes = shown.iter().map(change);
            rows.push(std::iter::once("  change".into()).chain(changes).collect());
        }
    }
    Table::new(columns, rows)
}

/// A row a variant: the first metric against the baseline and the step before, then as many others as fit.
fn of_many(sheet: &Sheet) -> Table {
    let baseline = sheet.rows.iter().find(|row| row.is_baseline);
    let vs = format!("vs\u{a0}{}", baseline.map_or("baseline", |row| row.name.as_str()));
    let has_steps = !sheet.steps.is_empty();
    let has_throughput = sheet.throughput.iter().any(Option::is_some);
    let others: Vec<usize> =
        (1..sheet.columns.len()).filter(|at| !sheet.columns[*at].is_capacity).collect();
    let mut columns: Vec<Column> =
        vec![words(""), figures(head_title(&sheet.columns[0])), figures(vs)];
    columns.extend(has_steps.then(|| figures("vs\u{a0}step\u{a0}before")));
    columns.extend(has_throughput.then(|| figures("throughput")));
    columns.extend(others.iter().map(|at| figures(sheet.columns[*at].brief)));
    let rows = sheet.rows.iter().enumerate().filter(|(_, row)| row.missing.is_none());
    let row = |(at, row): (usize, &Row)| {
        let change =
            |of: usize| change_cell(row.cells[of].as_ref().and_then(|f| f.change.as_ref()));
        let value = row.cells[0].as_ref().map_or_else(String::new, |f| f.value.clone());
        let name =
            if row.is_baseline { format!("{} (baseline)", row.name) } else { row.name.clone() };
        let mut cells = vec![Cell::from(name), value.into(), change(0)];
        cells.extend(has_steps.then(|| change_cell(sheet.steps[at].as_ref())));
        cells.extend(has_throughput.then(|| change_cell(sheet.throughput[at].as_ref())));
        cells.extend(others.iter().map(|of| change(*of)));
        cells
    };
    let mut rows: Vec<Vec<Cell>> = rows.map(row).collect();
    rows.truncate(MOST_ROWS);
    Table::new(columns, rows)
}

fn change_cell(change: Option<&Change>) -> Cell {
    change.map_or_else(Cell::default, |change| Cell::toned(with_half(change), change.tone))
}

/// At most so many lines; what is left out is marked.
fn cut_off(lines: &mut Vec<String>, most: usize) {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let kept: String = last.chars().take(length(last).saturating_sub(3)).collect();
            *last = format!("{}...", kept.trim_end());
        }
    }
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
    let sign = |c: char| match c {
        'µ' => 'u',
        '−' | '–' => '-',
        '×' => 'x',
        '■' => '#',
        '…' => '~',
        '\u{2007}' | '\u{2008}' => '\u{a0}',
        '\n' | '\t' => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    text.replace('±', "+-").chars().map(sign).collect()
}
