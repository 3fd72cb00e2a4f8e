//! Turns the effects of single cycles into two spreads: between starts, and from cycle to cycle within one.
//!
//! The one-way analysis of variance with random effects by the method of moments, for rounds of unequal length as well
//! (Cochran, "The use of the analysis of variance in enumeration by sampling", JASA 34, 1939; Searle, Casella and
//! McCulloch, "Variance components", 1992, section 3.6). What a longer or one more round is worth follows from both
//! (Cochran, "Sampling techniques", 3rd edition 1977, section 10.6).

use crate::Error;
use crate::estimate::all_finite;

/// How far effects lie apart, as variances.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive] // Only this crate makes one, so no variance is negative.
pub struct Spread {
    /// Between starts: what more cycles do not take away.
    pub between: f64,
    /// From cycle to cycle within a round.
    pub within: f64,
    /// Cycles of a round; the harmonic mean where they differ.
    pub cycles: f64,
}

/// What makes an interval narrower for the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharper {
    /// More starts, not longer ones.
    Rounds,
    /// Longer rounds.
    Cycles,
}

/// The spread of `rounds`, each with the effects of its cycles.
///
/// # Errors
/// [`Error::TooFew`] below two rounds or without a cycle more than rounds, [`Error::NotFinite`].
pub fn spread(rounds: &[Vec<f64>]) -> Result<Spread, Error> {
    let rounds: Vec<&[f64]> = rounds.iter().map(Vec::as_slice).filter(|r| !r.is_empty()).collect();
    let all = rounds.concat();
    all_finite(&all)?;
    let (groups, n) = (rounds.len() as f64, all.len() as f64);
    if rounds.len() < 2 {
        return Err(Error::TooFew { have: rounds.len(), need: 2 });
    }
    if all.len() <= rounds.len() {
        return Err(Error::TooFew { have: all.len(), need: rounds.len() + 1 });
    }
    let grand = mean_of(&all);
    let sum = |of: &dyn Fn(&[f64]) -> f64| rounds.iter().map(|round| of(round)).sum::<f64>();
    let size = |round: &[f64]| round.len() as f64;
    let within = sum(&|round| squares(round, mean_of(round))) / (n - groups);
    let means = sum(&|round| size(round) * (mean_of(round) - grand).powi(2)) / (groups - 1.0);
    let usual_size = (n - sum(&|round| size(round).powi(2)) / n) / (groups - 1.0);
    let between = ((means - within) / usual_size).max(0.0);
    Ok(Spread { between, within, cycles: groups / sum(&|round| 1.0 / size(round)) })
}

impl Spread {
    /// The share of the variance of the mean that comes from between starts, 0..=1; 0 without any variance.
    pub fn share_of_starts(&self) -> f64 {
        let of_a_round = self.between + self.within / self.cycles;
        if of_a_round > 0.0 { self.between / of_a_round } else { 0.0 }
    }

    /// What would help more, where a round costs `setup` cycles' time before its first one.
    pub fn sharper(&self, setup: f64) -> Sharper {
        // The optimum is sqrt(setup x within / between) cycles.
        let is_short = self.cycles.powi(2) * self.between < setup * self.within;
        if is_short { Sharper::Cycles } else { Sharper::Rounds }
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64], around: f64) -> f64 {
    values.iter().map(|value| (value - around).powi(2)).sum()
}
