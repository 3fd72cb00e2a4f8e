//! A report as a whole: its first screen, then its sections; the same for every study and every way to draw it.

use crate::analysis::findings::Findings;

use super::document::Section;
use super::first::Screen;
use super::sections::{self, Detail};

/// A whole report.
pub(super) struct Document {
    pub(super) screen: Screen,
    pub(super) sections: Vec<Section>,
}

impl Document {
    pub(super) fn of(findings: &Findings, detail: Detail) -> Self {
        Self { screen: Screen::of(findings), sections: sections::all(findings, detail) }
    }
}
