//! The mean of a few values without the outermost ones.
//!
//! Tukey and McLaughlin, "Less vulnerable confidence and significance procedures for location based on a single
//! sample", Sankhya A 25, 1963; 20 % on each side is the share that Yuen, "The two-sample trimmed t for unequal
//! population variances", Biometrika 61, 1974, and the literature since take.

use crate::Error;
use crate::estimate::{all_finite, at_least};

/// What is left out on each side.
pub const TRIMMED_SHARE: f64 = 0.2;

/// Mean of `values` without the `share` (0..0.5) of them on each side, rounded down to whole values.
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::NotFinite`], [`Error::QuantileOutOfRange`].
pub fn trimmed_mean(values: &[f64], share: f64) -> Result<f64, Error> {
    at_least(1, values)?;
    all_finite(values)?;
    if !(0.0..0.5).contains(&share) {
        return Err(Error::QuantileOutOfRange(share));
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let out = (share * sorted.len() as f64).floor() as usize;
    let kept = &sorted[out..sorted.len() - out];
    Ok(kept.iter().sum::<f64>() / kept.len() as f64)
}
