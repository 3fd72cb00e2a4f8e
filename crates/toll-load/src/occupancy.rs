//! Samples how many requests are in flight, for Little's law. Knows nothing of requests but their number.
//!
//! One sample falls at a random instant in each millisecond: instants that depend neither on completions nor
//! on the schedule (a fixed grid would beat with a constant arrival rate and see only one part of its cycle).
//! The number only changes when the engine says so, hence an instant that has passed can be sampled at the
//! next change, exactly and without a wake-up of its own.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::schedule::uniform;

/// One sample is taken in each such stretch of time.
pub(crate) const STRATUM_NS: u64 = 1_000_000;

/// The number of requests in flight and its sampled mean.
#[derive(Debug)]
pub(crate) struct Occupancy {
    in_flight: usize,
    sum: u64,
    samples: u64,
    stratum_begin_ns: u64,
    next_sample_ns: u64,
    rng: ChaCha8Rng,
}

impl Occupancy {
    /// Nothing in flight at `now_ns`.
    pub fn new(seed: u64, now_ns: u64) -> Occupancy {
        Occupancy {
            in_flight: 0,
            sum: 0,
            samples: 0,
            stratum_begin_ns: now_ns,
            next_sample_ns: now_ns,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// A request was sent.
    pub fn enter(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.in_flight += 1;
    }

    /// A request was answered or failed.
    pub fn leave(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.in_flight -= 1;
    }

    /// Begins a new mean; what is in flight stays.
    pub fn restart(&mut self, now_ns: u64) {
        self.sum = 0;
        self.samples = 0;
        self.stratum_begin_ns = now_ns;
        self.choose_instant();
    }

    /// The mean since the last restart, up to `now_ns`.
    pub fn mean(&mut self, now_ns: u64) -> f64 {
        self.advance(now_ns);
        self.sum as f64 / self.samples.max(1) as f64
    }

    fn advance(&mut self, now_ns: u64) {
        while self.next_sample_ns < now_ns {
            self.sum += self.in_flight as u64;
            self.samples += 1;
            self.stratum_begin_ns += STRATUM_NS;
            self.choose_instant();
        }
    }

    fn choose_instant(&mut self) {
        let offset = uniform(&mut self.rng) * STRATUM_NS as f64;
        self.next_sample_ns = self.stratum_begin_ns + offset as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(busy_ns: u64, every_ns: u64, times: u64) -> f64 {
        let mut occupancy = Occupancy::new(3, 0);
        occupancy.restart(0);
        for k in 0..times {
            occupancy.enter(k * every_ns);
            occupancy.leave(k * every_ns + busy_ns);
        }
        occupancy.mean(times * every_ns)
    }

    #[test]
    fn the_mean_is_the_share_of_time_in_flight() {
        assert_eq!(mean_of(1_000, 1_000, 10_000), 1.0);
        let quarter = mean_of(100_000, 400_000, 25_000);
        assert!((quarter - 0.25).abs() < 0.02, "{quarter}");
    }

    #[test]
    fn a_schedule_in_step_with_the_samples_does_not_deceive_them() {
        let tenth = mean_of(STRATUM_NS / 10, STRATUM_NS, 10_000);
        assert!((tenth - 0.1).abs() < 0.02, "{tenth}");
    }

    #[test]
    fn a_restart_forgets_the_past_but_not_what_is_in_flight() {
        let mut occupancy = Occupancy::new(3, 0);
        occupancy.enter(50 * STRATUM_NS);
        occupancy.restart(50 * STRATUM_NS);
        assert_eq!(occupancy.mean(90 * STRATUM_NS), 1.0);
    }
}
