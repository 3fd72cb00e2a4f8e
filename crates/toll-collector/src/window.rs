//! Keeps the spans that arrive while it is open, as few bytes each, and tells what it holds when it is asked.

use std::collections::{BTreeMap, HashMap};

use crate::shape::{Kept, TraceGroup, spans_by_service, trace_groups};
use crate::span::{Batch, Span};

/// Spans that a window keeps: 40 bytes each, 168 MB when it is full.
pub(crate) const MOST_SPANS: usize = 4_000_000;

/// Spans and the names of their services.
#[derive(Debug)]
pub(crate) struct Window {
    most: usize,
    kept: Vec<Kept>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    repeated: u64,
}

/// What a window holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) spans: BTreeMap<String, u64>,
    pub(crate) traces: Vec<TraceGroup>,
    pub(crate) repeated: u64,
}

impl Window {
    /// An empty window for at most `most` spans.
    pub(crate) fn of(most: usize) -> Self {
        let (kept, names, numbers) = Default::default();
        Self { most, kept, names, numbers, repeated: 0 }
    }

    /// Keeps the spans of `batch`; the number of those for which there was no room.
    pub(crate) fn keep(&mut self, batch: &Batch) -> u64 {
        let room = self.most - self.kept.len();
        let (taken, left) = batch.spans.split_at(batch.spans.len().min(room));
        if !taken.is_empty() {
            let service = self.number(&batch.service);
            self.kept.extend(taken.iter().map(|span| kept(span, service)));
        }
        left.len() as u64
    }

    /// Spans kept, with repetitions that nobody looked for so far.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Puts the spans in order, drops repetitions, and tells what is left.
    // Here rather than on arrival, where it would cost the application that is measured.
    pub(crate) fn content(&mut self) -> Content {
        let before = self.kept.len();
        self.kept.sort_unstable();
        self.kept.dedup_by(|next, one| next.repeats(one));
        self.repeated += (before - self.kept.len()) as u64;
        Content {
            spans: spans_by_service(&self.kept, &self.names),
            traces: trace_groups(&self.kept, &self.names),
            repeated: self.repeated,
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).expect("fewer services than spans");
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

fn kept(span: &Span, service: u32) -> Kept {
    let Span { trace, id, parent, shared } = *span;
    Kept { trace, id, shared, service, parent }
}

#[cfg(test)]
mod tests;
