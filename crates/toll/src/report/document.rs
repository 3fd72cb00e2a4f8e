//! A report as a value: sections of texts, tables and charts. What is in them is composed once
//! ([`super::sections`]) and drawn by the terminal's, the page's and the forge's renderer.

use super::drawing::Chart;

/// A titled part of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Unique in a report; the anchor in HTML.
    pub id: String,
    pub title: String,
    /// What it says in one line, for whoever does not open it; may be empty.
    pub answer: String,
    pub pieces: Vec<Piece>,
}

impl Section {
    pub fn new(id: impl Into<String>, title: impl Into<String>, pieces: Vec<Piece>) -> Self {
        Self { id: id.into(), title: title.into(), answer: String::new(), pieces }
    }

    /// The same with its one line.
    pub fn saying(self, answer: impl Into<String>) -> Self {
        Self { answer: answer.into(), ..self }
    }

    /// The same with charts between the introduction and all else.
    pub(super) fn showing(mut self, charts: Vec<Chart>) -> Self {
        if !charts.is_empty() {
            self.pieces.insert(self.texts(), Piece::Charts(charts));
        }
        self
    }

    /// How many texts introduce it.
    pub(super) fn texts(&self) -> usize {
        self.pieces.iter().take_while(|piece| matches!(piece, Piece::Text(_))).count()
    }
}

/// What a section is made of.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// A title below the section's own.
    Heading(String),
    Text(String),
    Table(Table),
    /// One line an entry.
    List(Vec<Cell>),
    /// For whoever asks for it.
    Fold(Section),
    /// Side by side; only pages draw them.
    Charts(Vec<Chart>),
}

/// Rows in groups under shared columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
    pub groups: Vec<Group>,
}

/// Rows that belong together: one metric, one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub title: Option<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// What heads a column, and how its cells stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub title: String,
    pub kind: Kind,
}

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Flush left; may be wrapped.
    Words,
    /// Flush right, never wrapped.
    Figures,
    /// Bars of blocks: flush left, never wrapped.
    Bars,
}

/// The content of one place in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    pub text: String,
    pub tone: Tone,
}

/// What a cell says of the variant, for colour and symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing.
    #[default]
    Neutral,
    /// It costs more, or something failed.
    Worse,
    /// It costs less.
    Better,
    /// It changes nothing that matters.
    Same,
    /// Not known.
    Unknown,
    /// What the rows above add up to.
    Sum,
    /// Said for completeness: totals' parts, absent figures.
    Quiet,
}

impl Table {
    /// A table of one untitled group.
    pub fn new(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Self {
        Self { columns, groups: vec![Group { title: None, rows }] }
    }
}

impl Group {
    pub fn new(title: impl Into<String>, rows: Vec<Vec<Cell>>) -> Self {
        Self { title: Some(title.into()), rows }
    }
}

impl Cell {
    /// Where a figure would stand.
    pub fn absent() -> Self {
        Self::toned("–", Tone::Quiet)
    }

    /// A cell with a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Neutral)
    }
}

/// A column of words.
pub fn words(title: impl Into<String>) -> Column {
    Column { title: title.into(), kind: Kind::Words }
}

/// A column of figures.
pub fn figures(title: impl Into<String>) -> Column {
    Column { title: title.into(), kind: Kind::Figures }
}

/// A column of words, then columns of figures.
pub fn heads<T: Into<String>>(
    first: impl Into<String>,
    others: impl IntoIterator<Item = T>,
) -> Vec<Column> {
    std::iter::once(words(first)).chain(others.into_iter().map(figures)).collect()
}

/// A row: its name, then its cells.
pub fn row<T: Into<Cell>>(name: impl Into<Cell>, cells: impl IntoIterator<Item = T>) -> Vec<Cell> {
    std::iter::once(name.into()).chain(cells.into_iter().map(Into::into)).collect()
}

/// A column of bars without a title.
pub fn bars() -> Column {
    Column { title: String::new(), kind: Kind::Bars }
}
