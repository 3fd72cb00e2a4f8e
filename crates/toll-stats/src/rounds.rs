//! Turns the spread of an effect over rounds into the number of rounds that a width or an effect needs.
//!
//! A spread of few rounds may by chance be far too small, and advice from it would be too cheap half of the time: so
//! it is taken from the upper limit of the spread, which the true one stays below in 80 of 100 studies (chi-squared;
//! Browne, "On the use of a pilot sample for sample size determination", Statistics in Medicine 14, 1995). With fewer
//! than four degrees of freedom that limit says nothing, and there is no advice.

use statrs::distribution::{ChiSquared, ContinuousCDF, StudentsT};

use crate::estimate::{Level, student};
use crate::{Effect, Estimate};

/// Chance that an effect is found.
const POWER: f64 = 0.8;
/// How often the true spread lies below the limit that advice is taken from.
const CONFIDENCE: f64 = 0.8;
/// Degrees of freedom below which there is no advice.
const LEAST_DEGREES: f64 = 4.0;
/// Rounds beyond which there is no advice: nobody runs more.
const MOST_ROUNDS: usize = 1_000;

impl Effect {
    /// Further rounds until the half width of [`Effect::log_ratio`] is at most `half_width`, nearly a share of the
    /// variant's figure; none where it is already.
    ///
    /// `None` with fewer than five rounds, and where it would take more than 1000.
    pub fn rounds_to_width(&self, half_width: f64) -> Option<u32> {
        let Estimate { level, .. } = self.log_ratio();
        if self.log_ratio().half_width() <= half_width {
            return Some(0);
        }
        self.further_rounds(half_width, |n| student(level, n - 1.0))
    }

    /// Further rounds until a true `change` (a share of the baseline, up or down) is found at `level` in 80 of 100
    /// studies. In a family of m verdicts the level is 1 - 5 % / m.
    ///
    /// `None` with fewer than five rounds, and where it would take more than 1000.
    pub fn rounds_to_find(&self, change: f64, level: Level) -> Option<u32> {
        self.further_rounds(change.ln_1p().abs(), |n| to_find(level, n))
    }

    /// The change, as a share of the baseline, that so many `rounds` (two or more) find at `level` in 80 of 100
    /// studies if rounds scatter as these do.
    pub fn detectable(&self, rounds: usize, level: Level) -> f64 {
        found_by(self.deviation(), rounds, level)
    }

    /// The same by the upper limit of the spread, as [`Effect::rounds_to_find`] has it: what a report says that it finds.
    /// Absent below 4 degrees of freedom.
    pub fn surely_detectable(&self, rounds: usize, level: Level) -> Option<f64> {
        Some(found_by(self.upper_deviation()?, rounds, level))
    }

    fn further_rounds(&self, distance: f64, factor: impl Fn(f64) -> f64) -> Option<u32> {
        let deviation = self.upper_deviation()?;
        let now = self.log_ratio().samples;
        let suffices = |n: &usize| deviation * factor(*n as f64) / (*n as f64).sqrt() <= distance;
        let enough = (now..=now + MOST_ROUNDS).find(suffices)?;
        u32::try_from(enough - now).ok()
    }

    /// Of the rounds' effects.
    fn deviation(&self) -> f64 {
        self.standard_error() * (self.log_ratio().samples as f64).sqrt()
    }

    fn upper_deviation(&self) -> Option<f64> {
        let degrees = self.degrees_of_freedom();
        let limit = ChiSquared::new(degrees).ok().filter(|_| degrees >= LEAST_DEGREES)?;
        Some(self.deviation() * (degrees / limit.inverse_cdf(1.0 - CONFIDENCE)).sqrt())
    }
}

/// The change that so many `rounds` of this deviation find in 80 of 100 studies.
fn found_by(deviation: f64, rounds: usize, level: Level) -> f64 {
    let n = rounds.max(2) as f64;
    (deviation * to_find(level, n) / n.sqrt()).exp_m1()
}

/// Standard errors that an effect has to lie from zero to be found by `n` rounds.
fn to_find(level: Level, n: f64) -> f64 {
    let beyond = StudentsT::new(0.0, 1.0, n - 1.0).expect("two rounds have a degree of freedom");
    student(level, n - 1.0) + beyond.inverse_cdf(POWER)
}
