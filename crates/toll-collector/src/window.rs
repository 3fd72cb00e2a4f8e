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
    /// Nanoseconds since 1970.
    opened: u64,
    /// Spans that began before that.
    earlier: u64,
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
    /// An empty window for at most `most` spans that begin from `opened` on, nanoseconds since 1970.
    pub(crate) fn of(most: usize, opened: u64) -> Self {
        let (kept, names, numbers) = Default::default();
        Self { most, opened, earlier: 0, kept, names, numbers, repeated: 0 }
    }

    /// Keeps the spans of `batch` that began in the window; the number of those that it could not hold.
    ///
    /// What began before is still under way when the window is opened: it waits in a sender's batch.
    pub(crate) fn keep(&mut self, batch: &Batch) -> u64 {
        let opened = self.opened;
        let began_in_it = |span: &&Span| span.began.is_none_or(|began| began >= opened);
        let came = batch.spans.iter().filter(began_in_it).count();
        self.earlier += (batch.spans.len() - came) as u64;
        let taken = came.min(self.most - self.kept.len());
        if taken > 0 {
            let service = self.number(&batch.service);
            let spans = batch.spans.iter().filter(began_in_it).take(taken);
            self.kept.extend(spans.map(|span| kept(span, service)));
        }
        (came - taken) as u64
    }

    /// Spans that came in spite of having begun before the window.
    pub(crate) fn earlier(&self) -> u64 {
        self.earlier
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
    let Span { trace, id, parent, shared, began: _ } = *span;
    Kept { trace, id, shared, service, parent }
}

#[cfg(test)]
mod tests;
