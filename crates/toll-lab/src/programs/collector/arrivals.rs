//! Tells when the spans of a load have arrived: when there are as many as there should be, or no more come. Pure.

use std::time::{Duration, Instant};

use super::admin::SpanCounts;

/// What a span may take from the agent to the collector beside the wait for its batch.
const TRAVEL: Duration = Duration::from_millis(200);

/// However slowly they come.
const LONGEST: Duration = Duration::from_secs(10);

/// The wait for spans that are on their way.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// In the window; none when that is not known.
    expected: Option<u64>,
    /// So long without a new span, and no more come.
    quiet: Duration,
    limit: Instant,
    /// How many had arrived, and when that was first seen.
    last: Option<(u64, Instant)>,
}

impl Arrivals {
    /// A wait that begins at `now`, for agents that send a batch after `delay` at the latest.
    pub(crate) fn new(expected: Option<u64>, delay: Duration, now: Instant) -> Self {
        // Twice, as a batch may have left just before the last span ended.
        let quiet = delay * 2 + TRAVEL;
        Self { expected, quiet, limit: now + LONGEST.max(quiet), last: None }
    }

    /// Whether there is nothing more to wait for, given what the collector says at `now`.
    pub(crate) fn are_over(&mut self, counts: SpanCounts, now: Instant) -> bool {
        let since = match self.last {
            Some((arrived, since)) if arrived == counts.arrived_ever => since,
            _ => self.last.insert((counts.arrived_ever, now)).1,
        };
        let complete = self.expected.is_some_and(|expected| counts.kept >= Some(expected));
        complete || now >= since + self.quiet || now >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds at which the wait ends, looking every 100 ms; `kept` by time.
    fn over_at(expected: Option<u64>, kept: impl Fn(u64) -> u64) -> u64 {
        let start = Instant::now();
        let mut arrivals = Arrivals::new(expected, Duration::from_millis(500), start);
        let over = |at: &u64| {
            // What came before the window is not in it.
            let counts = SpanCounts { arrived_ever: 7 + kept(*at), kept: Some(kept(*at)) };
            arrivals.are_over(counts, start + Duration::from_millis(*at))
        };
        (0..200).map(|look| look * 100).find(over).expect("the wait is bounded")
    }

    #[test]
    fn nothing_is_waited_for_when_all_have_arrived() {
        assert_eq!(over_at(Some(10), |_| 10), 0);
        assert_eq!(over_at(Some(10), |at| if at < 300 { 9 } else { 11 }), 300);
    }

    #[test]
    fn spans_that_do_not_come_are_given_up_two_batches_after_the_last_that_did() {
        assert_eq!(over_at(Some(10), |at| at.min(400) / 100), 400 + 1200);
        assert_eq!(over_at(None, |_| 0), 1200);
    }

    #[test]
    fn spans_that_never_end_are_waited_for_ten_seconds() {
        assert_eq!(over_at(None, |at| at), 10_000);
    }
}
