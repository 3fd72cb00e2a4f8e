//! Turns points into the straight line through them.
//!
//! Ordinary least squares (Legendre 1805, Gauss 1809), computed from deviations from the means: sums of raw
//! squares lose digits when the values lie far from zero. No interval comes from the points themselves: the
//! round is the unit, so a caller takes [`crate::mean`] over the [`pseudo_values`] of the rounds.

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
/// The line with one slope for all `groups` of points (x, y), each on a level of its own: the analysis of covariance
/// (Fisher 1932). A group whose x lie close together says little of the slope, and counts for little. The line is
/// that of the mean level.
///
/// # Errors
/// [`Error::TooFew`] without a group of two points, [`Error::NotFinite`], [`Error::NoSpread`] when no group has two x.
pub fn common_line(groups: &[&[(f64, f64)]]) -> Result<Line, Error> {
    let (mut squares, mut products) = (0.0, 0.0);
    for group in groups {
        let n = group.len() as f64;
        let mean_x = group.iter().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = group.iter().map(|(_, y)| y).sum::<f64>() / n;
        squares += group.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
        products += group.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = groups.iter().copied().flatten().copied().unzip();
    at_least(2, &xs)?;
    all_finite(&xs)?;
    all_finite(&ys)?;
    if squares == 0.0 {
        return Err(Error::NoSpread(xs[0]));
    }
    let (slope, n) = (products / squares, xs.len() as f64);
    Ok(Line { slope, intercept: (ys.iter().sum::<f64>() - slope * xs.iter().sum::<f64>()) / n })
}

/// What each of `rounds` adds to a figure of all of them, so that their mean is the figure and their scatter its
/// uncertainty: the pseudo-values of the jackknife (Quenouille 1956, Tukey 1958). Rounds that are all alike in shape
/// have their own figures for pseudo-values. `None` when the figure cannot be had without one of the rounds.
pub fn pseudo_values<B: Copy>(
    rounds: &[B],
    figure: impl Fn(&[B]) -> Option<f64>,
) -> Option<Vec<f64>> {
    let all = figure(rounds)?;
    if rounds.len() == 1 {
        return Some(vec![all]);
    }
    let n = rounds.len() as f64;
    let without = |left_out: usize| {
        let kept: Vec<B> =
            rounds.iter().enumerate().filter(|(i, _)| *i != left_out).map(|(_, b)| *b).collect();
        Some(n * all - (n - 1.0) * figure(&kept)?)
    };
    (0..rounds.len()).map(without).collect()
}
