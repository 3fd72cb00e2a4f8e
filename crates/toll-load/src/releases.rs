//! Decides when the next request of an open loop may go: when it falls due.
//!
//! Nothing is skipped. A request that is due while every connection is busy waits in the pool with its due time
//! kept. Only as many are held there as there are lanes, the others stay implied by the schedule, so that an
//! overloaded target does not cost memory.

use std::iter::Peekable;

use crate::schedule::Schedule;

/// When a phase stops releasing requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// At this instant, nanoseconds.
    Until(u64),
    /// After this many requests.
    Requests(u64),
}

/// How much of its bound a phase has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    bound: Bound,
    released: u64,
}

/// One request that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When it ought to be sent, nanoseconds.
    pub intended_ns: u64,
    /// Every connection was busy when it fell due.
    pub waited: bool,
    /// Number of the plan's target.
    pub target: u32,
    /// Closed loop: the client.
    pub client: u32,
}

/// The arrivals of one phase.
#[derive(Debug)]
pub(crate) struct Arriving {
    begin_ns: u64,
    schedule: Peekable<Schedule>,
}

impl Budget {
    /// Nothing used yet.
    pub fn new(bound: Bound) -> Budget {
        Budget { bound, released: 0 }
    }

    /// Whether a request that is due at `at_ns` may be released.
    pub fn allows(&self, at_ns: u64) -> bool {
        match self.bound {
            Bound::Until(end_ns) => at_ns < end_ns,
            Bound::Requests(requests) => self.released < requests,
        }
    }

    /// Releases one request.
    pub fn spend(&mut self) {
        self.released += 1;
    }

    /// Whether the phase has nothing left to release.
    pub fn is_over(&self, now_ns: u64) -> bool {
        !self.allows(now_ns)
    }

    /// When the phase ends, if it ends by the clock, nanoseconds.
    pub fn end_ns(&self) -> Option<u64> {
        match self.bound {
            Bound::Until(end_ns) => Some(end_ns),
            Bound::Requests(_) => None,
        }
    }

    /// Moves the end of a phase that ends by the clock.
    pub fn end_at(&mut self, end_ns: u64) {
        self.bound = Bound::Until(end_ns);
    }

    /// Share of the phase that is over, when its bound is a number of requests.
    pub fn share_released(&self) -> Option<f64> {
        match self.bound {
            Bound::Until(_) => None,
            Bound::Requests(0) => Some(1.0),
            Bound::Requests(requests) => Some(self.released as f64 / requests as f64),
        }
    }

    /// Requests that will never be released, when the bound is their number.
    pub fn missing(&self) -> u64 {
        match self.bound {
            Bound::Until(_) => 0,
            Bound::Requests(requests) => requests.saturating_sub(self.released),
        }
    }

    /// Nothing more is released.
    pub fn close(&mut self) {
        self.bound = Bound::Requests(self.released);
    }
}

impl Arriving {
    /// Arrivals as the schedule says, counted from `begin_ns`.
    pub fn new(schedule: Schedule, begin_ns: u64) -> Arriving {
        Arriving { begin_ns, schedule: schedule.peekable() }
    }

    /// When the next request is due, if the budget allows it.
    pub fn next_due(&mut self, budget: &Budget) -> Option<u64> {
        let due = self.begin_ns.saturating_add(*self.schedule.peek()?);
        budget.allows(due).then_some(due)
    }

    /// Takes the next request over, if it has fallen due by `now_ns`.
    pub fn fall_due(&mut self, budget: &mut Budget, now_ns: u64) -> Option<u64> {
        let due = self.next_due(budget).filter(|due| *due <= now_ns)?;
        self.schedule.next();
        budget.spend();
        Some(due)
    }

    /// Requests that the schedule still holds and that were due before `end_ns`.
    pub fn left(&self, end_ns: u64) -> u64 {
        let last = end_ns.saturating_sub(self.begin_ns);
        self.schedule.clone().take_while(|due| *due < last).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrivals;
    use crate::schedule::Slice;

    const MS: u64 = 1_000_000;

    fn arriving() -> Arriving {
        let whole = Slice { first: 0, stride: 1 };
        Arriving::new(Schedule::new(&Arrivals::even(1000.0), 0, whole).unwrap(), 7 * MS)
    }

    fn take_all(arriving: &mut Arriving, budget: &mut Budget, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| arriving.fall_due(budget, now_ns)).map(|due| due / MS).collect()
    }

    #[test]
    fn each_request_falls_due_at_its_time() {
        let (mut arriving, mut budget) = (arriving(), Budget::new(Bound::Until(12 * MS)));
        assert_eq!(take_all(&mut arriving, &mut budget, 7 * MS), [7]);
        assert_eq!(arriving.next_due(&budget), Some(8 * MS));
        assert_eq!(take_all(&mut arriving, &mut budget, 9 * MS), [8, 9]);
    }

    #[test]
    fn nothing_falls_due_at_or_after_the_end() {
        let (mut arriving, mut budget) = (arriving(), Budget::new(Bound::Until(10 * MS)));
        assert_eq!(take_all(&mut arriving, &mut budget, 50 * MS), [7, 8, 9]);
        assert!(budget.is_over(10 * MS) && arriving.next_due(&budget).is_none());
    }

    #[test]
    fn a_number_of_requests_is_released_exactly() {
        let (mut arriving, mut budget) = (arriving(), Budget::new(Bound::Requests(3)));
        assert_eq!(take_all(&mut arriving, &mut budget, 50 * MS).len(), 3);
        assert!(budget.is_over(0) && budget.missing() == 0);
    }

    #[test]
    fn what_was_due_and_never_taken_is_counted() {
        let mut budget = Budget::new(Bound::Until(17 * MS));
        let mut arriving = arriving();
        arriving.fall_due(&mut budget, 8 * MS);
        assert_eq!(arriving.left(17 * MS), 9);
        assert_eq!(arriving.left(10 * MS), 2, "what was not yet due is not missing");
    }

    #[test]
    fn a_closed_budget_allows_nothing() {
        let mut budget = Budget::new(Bound::Until(10 * MS));
        assert!(budget.allows(9 * MS) && !budget.allows(10 * MS));
        budget.close();
        assert!(!budget.allows(9 * MS) && budget.missing() == 0);
    }
}
