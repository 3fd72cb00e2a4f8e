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

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};

use crate::analysis::findings::Findings;

pub use capacity::{capacity, capacity_json};
pub use document::{Cell, Column, Piece, Section, Table, Tone, heads, row};
pub use html::{html, page};
pub use markdown::markdown;
pub use terminal::{brief, full, terminal};

/// The JSON schema (draft 2020-12) of [`json`].
pub fn json_schema() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(NumbersMayBeMissing);
    let schema = settings.into_generator().into_root_schema_for::<Findings>();
    serde_json::to_string_pretty(&schema).expect("a schema is plain data")
}

/// A figure that does not exist, such as a ratio to nothing, is `null` in JSON.
#[derive(Debug, Clone)]
struct NumbersMayBeMissing;

impl Transform for NumbersMayBeMissing {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        transform_subschemas(self, schema);
        if schema.get("type").is_some_and(|kind| kind == "number") {
            schema.insert("type".into(), serde_json::json!(["number", "null"]));
        }
    }
}

/// The findings themselves, unrounded, for programs; the order of keys is that of [`Findings`].
pub fn json(findings: &Findings) -> String {
    let mut text =
        serde_json::to_string_pretty(findings).expect("findings are numbers, texts and lists");
    text.push('\n');
    text
}
