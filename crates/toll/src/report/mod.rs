//! Turns findings into what a person reads or a program takes: terminal text, one HTML file, Markdown, JSON.
//! Reads [`Findings`] only; computes no statistic. Numbers are rounded and facts worded here and nowhere else.
//!
//! `compose` puts one document together, of `document` and `drawing`; `terminal`, `html` and `markdown` draw it. A new
//! view is a module that gives a section, and its line in `compose`.

mod answer;
mod capacity;
mod caveats;
mod charts;
mod components;
mod compose;
mod content;
mod curve;
mod document;
mod drawing;
mod figures;
mod first;
mod heap;
mod html;
#[cfg(test)]
mod in_a_browser;
mod jvms;
mod loads;
mod markdown;
mod owners;
mod parts;
mod payers;
mod pods;
mod proof;
mod published;
mod rates;
mod reading;
mod record;
mod regimes;
mod settled;
mod spans;
mod staircase;
mod sweep;
mod terminal;
#[cfg(test)]
mod tests;
mod tools;
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
