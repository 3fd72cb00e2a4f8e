//! Turns points into the straight line through them.
//!
//! Ordinary least squares (Legendre 1805, Gauss 1809), computed from deviations from the means: sums of raw
//! squares lose digits when the values lie far from zero. No interval comes from the points themselves: the
//! block is the unit, so a caller fits one line a block and takes [`crate::mean`] over the slopes.

use crate::Error;
use crate::estimate::{all_finite, at_least};

/// A straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// What `y` rises by for each unit of `x`.
    pub slope: f64,
    /// `y` where `x` is zero.
    pub intercept: f64,
}

/// The line through `points` (x, y) that has the least sum of squared distances in y.
///
/// # Errors
/// [`Error::TooFew`] below two points, [`Error::NotFinite`], [`Error::NoSpread`] when all x are the same.
pub fn least_squares(points: &[(f64, f64)]) -> Result<Line, Error> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    at_least(2, &xs)?;
    all_finite(&xs)?;
    all_finite(&ys)?;
    if xs.iter().all(|x| *x == xs[0]) {
        return Err(Error::NoSpread(xs[0]));
    }
    let n = points.len() as f64;
    let (mean_x, mean_y) = (xs.iter().sum::<f64>() / n, ys.iter().sum::<f64>() / n);
    let squares: f64 = xs.iter().map(|x| (x - mean_x).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let slope = products / squares;
    Ok(Line { slope, intercept: mean_y - slope * mean_x })
}
