//! The spans that a collector got, whose traces they were in and whose children they are.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What the collector got since its window was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct SpanWindow {
    /// Spans by service.
    pub spans: BTreeMap<String, u64>,
    /// Traces, those of one shape together.
    pub traces: Vec<TraceGroup>,
    /// What it could not take: bodies that it did not understand, spans without an id or beyond what it holds.
    pub refused: u64,
}

/// Traces of one shape.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct TraceGroup {
    /// Whose children the spans are.
    pub links: Vec<Link>,
    /// How many traces have this shape.
    pub traces: u64,
}

/// How many spans of `service` in a trace are children of spans of `parent`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Link {
    /// None at the root; [`MISSING`] when the parent is not in the trace.
    pub parent: Option<String>,
    /// Whose spans.
    pub service: String,
    /// How many.
    pub count: u64,
}

/// The parent of a span whose parent did not arrive.
pub(crate) const MISSING: &str = "?";
