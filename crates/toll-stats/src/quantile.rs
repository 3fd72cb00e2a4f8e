//! Sample quantiles of a few values, by linear interpolation between order statistics.
//!
//! Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The American
//! Statistician 50, 1996: the default of R and NumPy. Not for latencies: those live in histograms.

use crate::Error;
use crate::estimate::{all_finite, at_least};

/// Median of `values`, in any order.
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::NotFinite`].
pub fn median(values: &[f64]) -> Result<f64, Error> {
    quantile(values, 0.5)
}

/// Quantile `q` (0..=1) of `values`, in any order.
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::NotFinite`], [`Error::QuantileOutOfRange`].
pub fn quantile(values: &[f64], q: f64) -> Result<f64, Error> {
    at_least(1, values)?;
    all_finite(values)?;
    if !(0.0..=1.0).contains(&q) {
        return Err(Error::QuantileOutOfRange(q));
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Ok(interpolate(&sorted, q * (sorted.len() - 1) as f64))
}

/// Value at a fractional `rank` counted from 0.
fn interpolate(sorted: &[f64], rank: f64) -> f64 {
    let below = sorted[rank.floor() as usize];
    let above = sorted[rank.ceil() as usize];
    below + (above - below) * rank.fract()
}
