//! Turns findings into what a person reads or a program takes: terminal text, one HTML file, Markdown, JSON.
//! Reads [`Findings`] only; computes no statistic. Numbers are rounded here (`figures`) and nowhere else.

mod answer;
mod capacity;
mod components;
mod compose;
mod content;
mod curve;
mod figures;
mod first;
mod heap;
mod hey;
mod html;
#[cfg(test)]
mod in_a_browser;
mod jvms;
mod k6;
mod markdown;
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
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod vegeta;
mod wording;

use crate::analysis::findings::Findings;

pub use capacity::{capacity, capacity_json};
pub use html::{document, html};
pub use markdown::markdown;
pub use terminal::{full, terminal};

/// The findings themselves, unrounded, for programs; the order of keys is that of [`Findings`].
pub fn json(findings: &Findings) -> String {
    let mut text =
        serde_json::to_string_pretty(findings).expect("findings are numbers, texts and lists");
    text.push('\n');
    text
}
