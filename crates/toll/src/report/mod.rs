//! Turns findings into what a person reads or a program takes: terminal text, one HTML file, Markdown, JSON.
//! Reads [`Findings`] only; computes no statistic. Numbers are rounded and facts worded here and nowhere else.
//!
//! `composition` puts one document together, of the values in `document` and `drawing`; `terminal`, `html` and
//! `markdown` draw it. A new view is a file in `sections` and its lines in `sections/mod.rs`; what a section, a chart
//! and the first screen share is in `subjects`.

mod answer;
mod capacity;
mod caveats;
mod charts;
mod composition;
mod document;
mod drawing;
mod figures;
mod first;
mod html;
#[cfg(test)]
mod in_a_browser;
mod left_out;
mod loads;
mod markdown;
mod owners;
mod parts;
mod sections;
mod subjects;
mod terminal;
#[cfg(test)]
mod tests;
mod values;
mod wording;

use crate::analysis::findings::Findings;

pub use capacity::{capacity, capacity_json};
pub use document::{Cell, Column, Piece, Section, Table, Tone, heads, row};
pub use html::{html, page};
pub use markdown::markdown;
pub use terminal::{brief, full, terminal};

/// The findings themselves, unrounded, for programs; the order of keys is that of [`Findings`].
pub fn json(findings: &Findings) -> String {
    let mut text =
        serde_json::to_string_pretty(findings).expect("findings are numbers, texts and lists");
    text.push('\n');
    text
}
