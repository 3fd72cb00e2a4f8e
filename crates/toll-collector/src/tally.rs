//! Counts everything that arrives, and keeps spans while a window is open.

use std::collections::BTreeMap;
use std::ops::Sub;

use serde::Serialize;

use crate::shape::TraceGroup;
use crate::span::Batch;
use crate::window::{MOST_SPANS, Window};

/// What arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Spans in bodies that were understood, delivered again or not, kept or not.
    pub(crate) arrived: u64,
    /// Spans without a valid id, spans beyond what the window holds, and bodies that were not understood.
    pub(crate) refused: u64,
    /// Exports of metrics and logs.
    pub(crate) not_spans: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            arrived: self.arrived - earlier.arrived,
            refused: self.refused - earlier.refused,
            not_spans: self.not_spans - earlier.not_spans,
        }
    }
}

/// Counters since the program began, and the window.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    ever: Counts,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    window: Window,
    /// The counters when it was opened.
    since: Counts,
}

/// What a window saw, in a stable order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    pub(crate) spans: BTreeMap<String, u64>,
    pub(crate) traces: Vec<TraceGroup>,
    /// Since the program began, window or not.
    pub(crate) arrived_ever: u64,
    /// Spans that had been delivered before; they are counted once in all of the above.
    pub(crate) repeated: u64,
    /// Spans that came since the window was opened and began before: they are not in it.
    pub(crate) earlier: u64,
    pub(crate) refused: u64,
    pub(crate) not_spans: u64,
}

/// The counters alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Counters {
    pub(crate) arrived_ever: u64,
    /// Spans in the window, repetitions included; none while no window is open.
    pub(crate) kept: Option<usize>,
    /// As in [`Report`].
    pub(crate) earlier: Option<u64>,
    /// As in [`Counts`], since the window was opened, or ever while none is.
    pub(crate) refused: u64,
    pub(crate) not_spans: u64,
}

impl Tally {
    /// Forgets all spans, and keeps those that arrive from now on and begin from `now` on, nanoseconds since 1970.
    pub(crate) fn open_window(&mut self, now: u64) {
        self.open = Some(Open { window: Window::of(MOST_SPANS, now), since: self.ever });
    }

    /// Forgets all spans, and keeps none.
    pub(crate) fn close_window(&mut self) {
        self.open = None;
    }

    /// Takes the spans of one export; the number of those refused.
    pub(crate) fn take(&mut self, batches: &[Batch]) -> u64 {
        let refused = batches.iter().map(|batch| self.take_batch(batch)).sum();
        self.ever.refused += refused;
        refused
    }

    /// Counts a body that was not understood.
    pub(crate) fn refuse_body(&mut self) {
        self.ever.refused += 1;
    }

    /// Counts an export of something else than spans.
    pub(crate) fn pass_over(&mut self) {
        self.ever.not_spans += 1;
    }

    /// What the open window saw.
    pub(crate) fn report(&mut self) -> Option<Report> {
        let Open { window, since } = self.open.as_mut()?;
        let content = window.content();
        let counts = self.ever - *since;
        Some(Report {
            spans: content.spans,
            traces: content.traces,
            arrived_ever: self.ever.arrived,
            repeated: content.repeated,
            earlier: window.earlier(),
            refused: counts.refused,
            not_spans: counts.not_spans,
        })
    }

    /// The counters, without looking at the spans.
    pub(crate) fn counters(&self) -> Counters {
        let counts = self.ever - self.open.as_ref().map_or_else(Counts::default, |open| open.since);
        Counters {
            arrived_ever: self.ever.arrived,
            kept: self.open.as_ref().map(|open| open.window.len()),
            earlier: self.open.as_ref().map(|open| open.window.earlier()),
            refused: counts.refused,
            not_spans: counts.not_spans,
        }
    }

    fn take_batch(&mut self, batch: &Batch) -> u64 {
        self.ever.arrived += batch.spans.len() as u64 + batch.invalid;
        let without_room = self.open.as_mut().map_or(0, |open| open.window.keep(batch));
        batch.invalid + without_room
    }
}

#[cfg(test)]
mod tests;
