//! Turns a figure that is no mean of blocks into an estimate with an interval over them: the jackknife.
//!
//! A percentile of all blocks together is such a figure. It is had of all blocks and of all but each one; how much
//! it moves without a block says how uncertain it is (Quenouille 1956, Tukey 1958). For a percentile that holds
//! when whole groups of values are left out, not single ones (Shao and Wu, "A general theory for jackknife variance
//! estimation", Annals of Statistics 17, 1989): here a group is a block.

use crate::Error;
use crate::estimate::{Estimate, Level, all_finite, mean};

/// The figure of `all` blocks with its interval, from the figures `without` each of them.
///
/// The interval lies around the figure itself, not around the mean of the pseudo-values, which takes off a bias that
/// a percentile of few blocks does not have; its width is that of Student's t over the pseudo-values. For a mean of
/// blocks it is the interval of [`mean`].
///
/// # Errors
/// [`Error::TooFew`] below two blocks, [`Error::NotFinite`].
pub fn jackknife(all: f64, without: &[f64], level: Level) -> Result<Estimate, Error> {
    all_finite(&[all])?;
    let n = without.len() as f64;
    let pseudo: Vec<f64> = without.iter().map(|figure| n * all - (n - 1.0) * figure).collect();
    let around_mean = mean(&pseudo, level)?;
    let half = around_mean.half_width();
    Ok(Estimate { value: all, low: all - half, high: all + half, ..around_mean })
}

/// Geometric: the ratio whose logarithm is `all`, from the logarithms `without` each block.
///
/// # Errors
/// As [`jackknife`]; the logarithm of a ratio that is not positive is not finite.
pub fn jackknife_ratio(all: f64, without: &[f64], level: Level) -> Result<Estimate, Error> {
    jackknife(all, without, level).map(|logarithm| logarithm.map(f64::exp))
}
