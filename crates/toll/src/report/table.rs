//! The tables and sections that all reports share. Knows their content and order, not how any of them is drawn.

/// A titled part of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    /// Unique in a report; the anchor in HTML.
    pub(super) id: String,
    pub(super) title: String,
    /// What it says in one line, for whoever does not open it; may be empty.
    pub(super) answer: String,
    pub(super) pieces: Vec<Piece>,
}

impl Section {
    /// The same with its one line.
    pub(super) fn saying(self, answer: impl Into<String>) -> Self {
        Self { answer: answer.into(), ..self }
    }
}

/// What a section is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// A title below the section's own.
    Heading(String),
    Text(String),
    Table(Table),
    /// One line an entry.
    List(Vec<Cell>),
    /// For whoever asks for it.
    Fold(Section),
}

/// Rows in groups under shared columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) groups: Vec<Group>,
}

/// Rows that belong together: one metric, one load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) title: Option<String>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// What heads a column, and how its cells stand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) kind: Kind,
}

/// How the cells of a column stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Flush left; may be wrapped.
    Words,
    /// Flush right, never wrapped.
    Figures,
    /// Bars of blocks: flush left, never wrapped.
    Bars,
}

/// The content of one place in a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// What a cell says of the variant, for colour and symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tone {
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
    pub(super) fn new(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Self {
        Self { columns, groups: vec![Group { title: None, rows }] }
    }
}

impl Cell {
    /// A cell with a tone.
    pub(super) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Neutral)
    }
}

/// A column of words.
pub(super) fn words(title: impl Into<String>) -> Column {
    Column { title: title.into(), kind: Kind::Words }
}

/// A column of figures.
pub(super) fn figures(title: impl Into<String>) -> Column {
    Column { title: title.into(), kind: Kind::Figures }
}

/// A column of bars without a title.
pub(super) fn bars() -> Column {
    Column { title: String::new(), kind: Kind::Bars }
}
