//! Turns an arrival law into the instants at which requests are due. Knows nothing of sockets or clocks.
//!
//! Instants are computed from the number of the request, never as "the last one plus an interval": a late
//! request does not move those that follow it, and the rate does not drift.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::clock::SECOND_NS;
use crate::{Arrivals, LoadError, Spacing};

/// Due times in nanoseconds since the schedule began, in order, without end.
#[derive(Debug, Clone)]
pub(crate) enum Schedule {
    /// Evenly spaced; the first is due at zero.
    Constant { rate: Rate, next: u64 },
    /// A Poisson process. ChaCha8, because its numbers are the same in every version and on every machine.
    Poisson { rate: Rate, rng: Box<ChaCha8Rng>, elapsed_ns: f64 },
}

impl Schedule {
    /// The schedule of an arrival law; `seed` decides the gaps of a Poisson process.
    ///
    /// # Errors
    /// When the rate is not a number from 0.000001 to 10,000,000 per second.
    pub fn new(arrivals: &Arrivals, seed: u64) -> Result<Schedule, LoadError> {
        let rate_per_s = arrivals.rate_per_s.highest();
        Ok(match arrivals.spacing {
            Spacing::Even => Schedule::Constant { rate: Rate::per_second(rate_per_s)?, next: 0 },
            Spacing::Poisson => Schedule::Poisson {
                rate: Rate::per_second(rate_per_s)?,
                rng: Box::new(ChaCha8Rng::seed_from_u64(seed)),
                elapsed_ns: 0.0,
            },
        })
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(match self {
            Schedule::Constant { rate, next } => {
                let due = rate.due_ns(*next);
                *next += 1;
                due
            }
            Schedule::Poisson { rate, rng, elapsed_ns } => {
                *elapsed_ns += exponential(rng) * rate.mean_gap_ns();
                *elapsed_ns as u64
            }
        })
    }
}

/// An arrival rate in whole millionths of a request per second, so that due times are integer arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    micro_per_s: u64,
}

impl Rate {
    const MICRO: f64 = 1e6;
    const HIGHEST_PER_S: f64 = 1e7;

    fn per_second(rate_per_s: f64) -> Result<Rate, LoadError> {
        let micro = (rate_per_s * Self::MICRO).round();
        if !(1.0..=Self::HIGHEST_PER_S * Self::MICRO).contains(&micro) {
            return Err(LoadError::BadRate { rate_per_s });
        }
        Ok(Rate { micro_per_s: micro as u64 })
    }

    /// When arrival number `k` (from zero) is due: floor(k / rate), nanoseconds.
    fn due_ns(self, k: u64) -> u64 {
        let due = u128::from(k) * u128::from(SECOND_NS) * 1_000_000 / u128::from(self.micro_per_s);
        u64::try_from(due).unwrap_or(u64::MAX)
    }

    fn mean_gap_ns(self) -> f64 {
        SECOND_NS as f64 * Self::MICRO / self.micro_per_s as f64
    }
}

/// An exponentially distributed number with mean one.
fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(-uniform(rng)).ln_1p()
}

/// A uniformly distributed number in 0..1, from the 53 bits that a double can hold.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn constant(rate_per_s: f64) -> Schedule {
        Schedule::new(&Arrivals::even(rate_per_s), 0).unwrap()
    }

    fn poisson(rate_per_s: f64, seed: u64) -> Schedule {
        Schedule::new(&Arrivals::poisson(rate_per_s), seed).unwrap()
    }

    #[test]
    fn constant_arrivals_are_due_at_the_exact_instants() {
        let table: [(f64, &[u64]); 4] = [
            (1.0, &[0, 1_000_000_000, 2_000_000_000]),
            (3.0, &[0, 333_333_333, 666_666_666, 1_000_000_000]),
            (0.5, &[0, 2_000_000_000]),
            (10_000_000.0, &[0, 100, 200]),
        ];
        for (rate, due) in table {
            let got: Vec<u64> = constant(rate).take(due.len()).collect();
            assert_eq!(got, due, "at {rate}/s");
        }
    }

    #[test]
    fn a_constant_rate_does_not_drift_in_a_day() {
        let rate = Rate::per_second(7.0).unwrap();
        assert_eq!(rate.due_ns(7 * 86_400), 86_400 * SECOND_NS);
    }

    #[test]
    fn rates_that_make_no_schedule_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-7, 2e7] {
            assert!(Rate::per_second(rate).is_err(), "{rate}");
        }
    }

    #[test]
    fn poisson_arrivals_follow_from_the_seed() {
        let of_seed = |seed| poisson(100.0, seed).take(50).collect::<Vec<_>>();
        assert_eq!(of_seed(1), of_seed(1));
        assert_ne!(of_seed(1), of_seed(2));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let due: Vec<u64> = poisson(1_000.0, 7).take(100_000).collect();
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard error of the mean is 0.3 % here; four of them.
        assert!((mean / 1e6 - 1.0).abs() < 0.013, "mean gap {mean} ns");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "spread {}", variance.sqrt());
    }

    proptest! {
        #[test]
        fn no_constant_arrival_is_early_or_a_nanosecond_late(
            micro_per_s in 1_u64..=10_000_000_000_000,
            k in 0_u64..1_000_000_000_000,
        ) {
            let exact = u128::from(k) * 1_000_000_000_000_000;
            let due = u128::from(Rate { micro_per_s }.due_ns(k));
            prop_assume!(due < u128::from(u64::MAX));
            prop_assert!(due * u128::from(micro_per_s) <= exact);
            prop_assert!((due + 1) * u128::from(micro_per_s) > exact);
        }

        #[test]
        fn arrivals_are_in_order(rate in 0.1_f64..1e6, seed: u64) {
            for schedule in [constant(rate), poisson(rate, seed)] {
                let due: Vec<u64> = schedule.take(200).collect();
                prop_assert!(due.is_sorted());
            }
        }
    }
}
