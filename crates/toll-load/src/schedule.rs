//! Turns an arrival law into the instants at which requests are due. Knows nothing of sockets or clocks.
//!
//! Instants are computed from the number of the request, never as "the last one plus an interval": a late
//! request does not move those that follow it, and the rate does not drift. Two parts are composed: how many
//! arrivals are to be expected up to a due time (whole numbers, or a Poisson process of rate one), and the
//! instant at which the integral of the rate passes that number. Mapping a process of rate one through that
//! inverse gives a Poisson process of any rate: Çinlar, "Introduction to Stochastic Processes" (1975),
//! section 4.7; Lewis & Shedler, "Simulation of nonhomogeneous Poisson processes by thinning" (1979), name it
//! time-scale transformation.

mod clients;
mod profile;
mod rate;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use self::profile::{Line, rate_lines};
use self::rate::{ARRIVAL, CumulativeRate};
use crate::{Arrivals, LoadError, Spacing};

pub(crate) use self::profile::nanoseconds;
pub(crate) use self::{clients::Clients, profile::Stages};

/// Arrivals `first`, `first + stride`, … of a schedule that several event loops share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Number of the first one, from zero.
    pub first: u64,
    /// Slices that share the schedule, at least one.
    pub stride: u64,
}

/// Due times in nanoseconds since the phase began, in order; ends when the rate stays zero for ever.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    numbers: Numbers,
    rate: CumulativeRate,
}

impl Schedule {
    /// A slice of the schedule of an arrival law; `seed` decides a Poisson process, the same in every slice.
    ///
    /// # Errors
    /// When the rate's profile cannot be followed, or is zero everywhere.
    pub fn new(arrivals: &Arrivals, seed: u64, slice: Slice) -> Result<Schedule, LoadError> {
        let lines = rate_lines(&arrivals.rate_per_s)?;
        Ok(Schedule::follow(lines, Numbers::new(arrivals.spacing, seed, slice)))
    }

    /// The same for a rate that stays what it is at the profile's begin; empty when it is zero there.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn at_begin(arrivals: &Arrivals, seed: u64, slice: Slice) -> Result<Schedule, LoadError> {
        let first = rate_lines(&arrivals.rate_per_s)?[0].from;
        let lines = vec![Line::for_ever(0, first)];
        Ok(Schedule::follow(lines, Numbers::new(arrivals.spacing, seed, slice)))
    }

    fn follow(lines: Vec<Line>, numbers: Numbers) -> Schedule {
        Schedule { numbers, rate: CumulativeRate::new(lines) }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let passed = self.numbers.next();
        self.rate.instant_past(passed)
    }
}

/// Up to each due time, how many arrivals are to be expected; in parts of an [`ARRIVAL`], so that sums are exact.
#[derive(Debug, Clone)]
enum Numbers {
    /// Whole ones: 0, 1, 2, …
    Even { next: u128, step: u128 },
    /// A Poisson process of rate one. ChaCha8, because its numbers are the same in every version and on every
    /// machine. Every slice draws all of them: the union of the slices is the whole.
    Poisson { rng: Box<ChaCha8Rng>, sum: u128, skip: u64, stride: u64 },
}

impl Numbers {
    fn new(spacing: Spacing, seed: u64, Slice { first, stride }: Slice) -> Numbers {
        match spacing {
            Spacing::Even => Numbers::Even {
                next: u128::from(first) * ARRIVAL,
                step: u128::from(stride) * ARRIVAL,
            },
            Spacing::Poisson => Numbers::Poisson {
                rng: Box::new(ChaCha8Rng::seed_from_u64(seed)),
                sum: 0,
                skip: first,
                stride,
            },
        }
    }

    fn next(&mut self) -> u128 {
        match self {
            Numbers::Even { next, step } => {
                let number = *next;
                *next += *step;
                number
            }
            Numbers::Poisson { rng, sum, skip, stride } => {
                *sum += (0..=*skip).map(|_| exponential_gap(rng)).sum::<u128>();
                *skip = *stride - 1;
                *sum
            }
        }
    }
}

/// An exponentially distributed number with mean one [`ARRIVAL`].
fn exponential_gap(rng: &mut ChaCha8Rng) -> u128 {
    // A number of 53 bits below one is at most 1 - 2^-53: the gap is below 37 arrivals, which fits.
    let gap = -(-uniform(rng)).ln_1p();
    u128::from((gap * ARRIVAL as f64) as u64)
}

/// A uniformly distributed number in 0..1, from the 53 bits that a double can hold.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
