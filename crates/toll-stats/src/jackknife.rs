//! Turns a figure that is no mean of rounds into an estimate with an interval over them: the jackknife.
//!
//! A percentile of all rounds together is such a figure. It is had of all rounds and of all but each one; how much
//! it moves without a round says how uncertain it is (Quenouille 1956, Tukey 1958). For a percentile that holds
//! when whole groups of values are left out, not single ones (Shao and Wu, "A general theory for jackknife variance
//! estimation", Annals of Statistics 17, 1989): here a group is a round.

use crate::Error;
use crate::estimate::{Estimate, Level, all_finite, mean};

/// The figure of `all` rounds with its interval, from the figures `without` each of them.
///
/// The interval lies around the figure itself, not around the mean of the pseudo-values, which takes off a bias that
/// a percentile of few rounds does not have; its width is that of Student's t over the pseudo-values. For a mean of
/// rounds it is the interval of [`mean`].
///
/// # Errors
/// [`Error::TooFew`] below two rounds, [`Error::NotFinite`].
pub fn jackknife(all: f64, without: &[f64], level: Level) -> Result<Estimate, Error> {
    all_finite(&[all])?;
    let n = without.len() as f64;
    let pseudo: Vec<f64> = without.iter().map(|figure| n * all - (n - 1.0) * figure).collect();
    let around_mean = mean(&pseudo, level)?;
    let half = around_mean.half_width();
    Ok(Estimate { value: all, low: all - half, high: all + half, ..around_mean })
}
