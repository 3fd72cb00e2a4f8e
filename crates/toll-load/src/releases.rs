//! Decides when the next request of a phase may go: at once in a closed loop, when it is due in an open one.
//!
//! An open loop never skips. A request that is due while every connection is busy waits here with its due time
//! kept. Only as many are held as there are connections, the others stay implied by the schedule, so that an
//! overloaded target does not cost memory.

use std::collections::VecDeque;
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

/// One request that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// When it ought to be sent, nanoseconds.
    pub intended_ns: u64,
    /// Every connection was busy when it fell due.
    pub waited: bool,
}

/// The releases of one phase.
#[derive(Debug)]
pub(crate) struct Releases {
    bound: Bound,
    pacing: Pacing,
    released: u64,
}

#[derive(Debug)]
enum Pacing {
    Closed,
    Open(Box<Arriving>),
}

#[derive(Debug)]
struct Arriving {
    begin_ns: u64,
    schedule: Peekable<Schedule>,
    waiting: VecDeque<Due>,
    room: usize,
    pulled: u64,
}

impl Releases {
    /// Every connection that is free gets a request.
    pub fn closed(bound: Bound) -> Releases {
        Releases { bound, pacing: Pacing::Closed, released: 0 }
    }

    /// Requests are due as the schedule says, counted from `begin_ns`; at most `room` are held here.
    pub fn open(bound: Bound, schedule: Schedule, begin_ns: u64, room: usize) -> Releases {
        let arriving = Arriving {
            begin_ns,
            schedule: schedule.peekable(),
            waiting: VecDeque::with_capacity(room),
            room,
            pulled: 0,
        };
        Releases { bound, pacing: Pacing::Open(Box::new(arriving)), released: 0 }
    }

    /// Takes over what fell due up to `now_ns`; `free` connections are not busy.
    pub fn pull(&mut self, now_ns: u64, free: usize) {
        if let Pacing::Open(arriving) = &mut self.pacing {
            arriving.pull(self.bound, now_ns, free);
        }
    }

    /// The next request that may go at `now_ns`.
    pub fn next(&mut self, now_ns: u64) -> Option<Due> {
        let due = match &mut self.pacing {
            Pacing::Closed if self.bound.allows(self.released, now_ns) => {
                Some(Due { intended_ns: now_ns, waited: false })
            }
            Pacing::Closed => None,
            Pacing::Open(arriving) => arriving.waiting.pop_front(),
        };
        self.released += u64::from(due.is_some());
        due
    }

    /// Takes a request back that could not be sent; it is the next to go.
    pub fn put_back(&mut self, due: Due) {
        self.released -= 1;
        if let Pacing::Open(arriving) = &mut self.pacing {
            arriving.waiting.push_front(due);
        }
    }

    /// Whether requests fall due by a schedule, not by answers.
    pub fn is_open(&self) -> bool {
        matches!(self.pacing, Pacing::Open(_))
    }

    /// Connections that would be of use at `now_ns` if they were free.
    pub fn wanted(&self, now_ns: u64) -> usize {
        match &self.pacing {
            Pacing::Closed if self.bound.allows(self.released, now_ns) => usize::MAX,
            Pacing::Closed => 0,
            Pacing::Open(arriving) => arriving.waiting.len(),
        }
    }

    /// When the engine must be awake for the next request; `None` when only a free connection can help.
    pub fn next_due(&mut self) -> Option<u64> {
        match &mut self.pacing {
            Pacing::Closed => None,
            Pacing::Open(arriving) if arriving.waiting.len() >= arriving.room => None,
            Pacing::Open(arriving) => arriving.next_due(self.bound),
        }
    }

    /// Whether the phase has nothing left to release.
    pub fn is_over(&self, now_ns: u64) -> bool {
        match self.bound {
            Bound::Until(end_ns) => now_ns >= end_ns,
            Bound::Requests(requests) => self.released >= requests,
        }
    }

    /// The latest end of the phase that is known, nanoseconds.
    pub fn end_ns(&self) -> Option<u64> {
        match self.bound {
            Bound::Until(end_ns) => Some(end_ns),
            Bound::Requests(_) => None,
        }
    }

    /// Share of the phase that is over, when its bound is a number of requests.
    pub fn share_released(&self) -> Option<f64> {
        match self.bound {
            Bound::Until(_) => None,
            Bound::Requests(requests) => Some(self.released as f64 / requests.max(1) as f64),
        }
    }

    /// Since when a request should have gone that has not; zero in a closed loop, where that is always.
    pub fn overdue_since(&mut self, now_ns: u64) -> Option<u64> {
        let bound = self.bound;
        match &mut self.pacing {
            Pacing::Closed => bound.allows(self.released, now_ns).then_some(0),
            Pacing::Open(arriving) => {
                let oldest = arriving.waiting.front().map(|due| due.intended_ns);
                oldest.or_else(|| arriving.next_due(bound)).filter(|due| *due <= now_ns)
            }
        }
    }

    /// Ends the phase at `now_ns`: nothing more falls due. What waits may still go. Gives the number of
    /// requests that had fallen due and will never be sent.
    pub fn close(&mut self, now_ns: u64) -> u64 {
        let bound = std::mem::replace(&mut self.bound, Bound::Requests(self.released));
        match &mut self.pacing {
            Pacing::Closed => bound.missing(self.released),
            Pacing::Open(arriving) => {
                let left = arriving.left(bound, now_ns);
                self.bound = Bound::Requests(self.released + arriving.waiting.len() as u64);
                left
            }
        }
    }

    /// Drops what still waits; gives its number.
    pub fn abandon(&mut self) -> u64 {
        match &mut self.pacing {
            Pacing::Closed => 0,
            Pacing::Open(arriving) => arriving.waiting.drain(..).len() as u64,
        }
    }
}

impl Bound {
    fn allows(self, released: u64, at_ns: u64) -> bool {
        match self {
            Bound::Until(end_ns) => at_ns < end_ns,
            Bound::Requests(requests) => released < requests,
        }
    }

    fn missing(self, released: u64) -> u64 {
        match self {
            Bound::Until(_) => 0,
            Bound::Requests(requests) => requests.saturating_sub(released),
        }
    }
}

impl Arriving {
    fn pull(&mut self, bound: Bound, now_ns: u64, free: usize) {
        while self.waiting.len() < self.room {
            match self.next_due(bound) {
                Some(intended_ns) if intended_ns <= now_ns => {
                    let waited = self.waiting.len() >= free;
                    self.waiting.push_back(Due { intended_ns, waited });
                    self.schedule.next();
                    self.pulled += 1;
                }
                _ => break,
            }
        }
    }

    fn next_due(&mut self, bound: Bound) -> Option<u64> {
        let due = self.begin_ns.saturating_add(*self.schedule.peek()?);
        bound.allows(self.pulled, due).then_some(due)
    }

    fn left(&self, bound: Bound, now_ns: u64) -> u64 {
        match bound {
            Bound::Requests(_) => bound.missing(self.pulled),
            Bound::Until(end_ns) => {
                let last = end_ns.min(now_ns).saturating_sub(self.begin_ns);
                self.schedule.clone().take_while(|due| *due < last).count() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrivals;

    const MS: u64 = 1_000_000;

    fn open(bound: Bound, room: usize) -> Releases {
        let schedule = Schedule::new(&Arrivals::even(1000.0), 0).unwrap();
        Releases::open(bound, schedule, 0, room)
    }

    fn take_all(releases: &mut Releases, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| releases.next(now_ns)).map(|due| due.intended_ns / MS).collect()
    }

    #[test]
    fn an_open_loop_gives_each_request_at_its_due_time() {
        let mut releases = open(Bound::Until(5 * MS), 10);
        releases.pull(MS / 2, 10);
        assert_eq!(take_all(&mut releases, MS / 2), [0]);
        assert_eq!(releases.next_due(), Some(MS));
        releases.pull(2 * MS, 10);
        assert_eq!(take_all(&mut releases, 2 * MS), [1, 2]);
    }

    #[test]
    fn due_times_are_kept_while_no_connection_is_free() {
        let mut releases = open(Bound::Until(100 * MS), 2);
        releases.pull(5 * MS, 0);
        assert_eq!(releases.next_due(), None, "only a free connection can help");
        let first = releases.next(5 * MS).unwrap();
        assert_eq!(first, Due { intended_ns: 0, waited: true });
        releases.pull(5 * MS, 0);
        assert_eq!(take_all(&mut releases, 5 * MS), [1, 2]);
    }

    #[test]
    fn requests_beyond_the_free_connections_have_waited() {
        let mut releases = open(Bound::Until(100 * MS), 10);
        releases.pull(3 * MS, 2);
        let waited: Vec<bool> =
            std::iter::from_fn(|| releases.next(3 * MS)).map(|due| due.waited).collect();
        assert_eq!(waited, [false, false, true, true]);
    }

    #[test]
    fn nothing_falls_due_at_or_after_the_end() {
        let mut releases = open(Bound::Until(3 * MS), 10);
        releases.pull(50 * MS, 10);
        assert_eq!(take_all(&mut releases, 50 * MS), [0, 1, 2]);
        assert!(releases.is_over(3 * MS) && releases.next_due().is_none());
    }

    #[test]
    fn a_number_of_requests_is_released_exactly() {
        for mut releases in [open(Bound::Requests(3), 10), Releases::closed(Bound::Requests(3))] {
            releases.pull(50 * MS, 10);
            assert_eq!(take_all(&mut releases, 50 * MS).len(), 3);
            assert!(releases.is_over(0));
        }
    }

    #[test]
    fn a_request_that_could_not_be_sent_goes_first() {
        let mut releases = open(Bound::Until(9 * MS), 10);
        releases.pull(2 * MS, 10);
        let first = releases.next(2 * MS).unwrap();
        releases.put_back(first);
        assert_eq!(take_all(&mut releases, 2 * MS), [0, 1, 2]);
    }

    #[test]
    fn closing_counts_what_the_schedule_still_holds() {
        let mut releases = open(Bound::Until(10 * MS), 2);
        releases.pull(20 * MS, 0);
        assert_eq!(releases.close(20 * MS), 8);
        releases.pull(20 * MS, 0);
        assert_eq!(take_all(&mut releases, 20 * MS), [0, 1], "what waits may still go");
    }

    #[test]
    fn closing_early_does_not_count_what_was_not_yet_due() {
        let mut releases = open(Bound::Until(100 * MS), 10);
        releases.pull(3 * MS, 10);
        assert_eq!(releases.close(3 * MS), 0);
    }

    #[test]
    fn a_closed_phase_releases_nothing() {
        let mut releases = Releases::closed(Bound::Until(10 * MS));
        assert!(releases.next(9 * MS).is_some());
        assert!(releases.next(10 * MS).is_none());
        releases.close(10 * MS);
        assert_eq!((releases.next(9 * MS), releases.wanted(9 * MS)), (None, 0));
    }
}
