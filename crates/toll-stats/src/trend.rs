//! Tells from a series whether what it measures grows or shrinks, and by how much.
//!
//! The Mann-Kendall test (Mann, "Nonparametric tests against trend", Econometrica 13, 1945; Kendall, "Rank
//! correlation methods", 4th edition, 1975), by the normal approximation with continuity correction and the
//! variance corrected for ties, and Sen's slope (Sen, "Estimates of the regression coefficient based on Kendall's
//! tau", JASA 63, 1968). Both look only at pairs of points, so neither an outlier nor the law of the values
//! matters; points must not depend on each other, so take them far enough apart.
//!
//! Several series that lie on different levels are tested as one by adding their statistics and variances, the
//! seasonal Kendall test (Hirsch, Slack and Smith, "Techniques of trend analysis for monthly water quality data",
//! Water Resources Research 18, 1982): points are compared only within their own series.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::Error;
use crate::quantile::median;

/// Points, in all series together, below which the normal approximation is not good enough (Kendall 1975).
const LEAST_POINTS: usize = 10;

/// A trend, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive] // Only this crate makes one, so `p_value` is always that of enough points.
pub struct Trend {
    /// Points in all series together.
    pub points: usize,
    /// Pairs that rise less pairs that fall.
    pub score: i64,
    /// Sen's slope: the median of what y rises by for each unit of x, over all pairs of a series.
    pub slope: f64,
    /// How likely so large a score is without a trend, rising or falling, 0..=1.
    pub p_value: f64,
}

/// The trend that all `series` of points (x, y) have in common; x is time and rises within each.
///
/// # Errors
/// [`Error::TooFew`] below ten points in all or without a pair, [`Error::NotFinite`], [`Error::NotInOrder`].
pub fn trend(series: &[Vec<(f64, f64)>]) -> Result<Trend, Error> {
    let points = series.iter().map(Vec::len).sum();
    if points < LEAST_POINTS {
        return Err(Error::TooFew { have: points, need: LEAST_POINTS });
    }
    let slope = sen_slope(series)?;
    let score = pairs(series).map(|((_, before), (_, after))| sign(after - before)).sum();
    let variance = series.iter().map(|points| variance(points)).sum();
    Ok(Trend { points, score, slope, p_value: two_sided(score, variance) })
}

/// Sen's slope of all `series` together: the median slope of their pairs of points.
///
/// # Errors
/// [`Error::TooFew`] without a pair, [`Error::NotFinite`], [`Error::NotInOrder`].
pub fn sen_slope(series: &[Vec<(f64, f64)>]) -> Result<f64, Error> {
    series.iter().try_for_each(|points| in_order(points))?;
    let slopes: Vec<f64> = pairs(series).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    if slopes.is_empty() {
        let have = series.iter().map(Vec::len).max().unwrap_or(0);
        return Err(Error::TooFew { have, need: 2 });
    }
    median(&slopes)
}

type Point = (f64, f64);

/// Every pair of points of the same series, the earlier first.
fn pairs(series: &[Vec<Point>]) -> impl Iterator<Item = (Point, Point)> {
    series.iter().flat_map(|points| {
        points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (*a, *b)))
    })
}

fn in_order(points: &[Point]) -> Result<(), Error> {
    let is_finite = |(x, y): &Point| x.is_finite() && y.is_finite();
    if let Some(index) = points.iter().position(|point| !is_finite(point)) {
        return Err(Error::NotFinite { index });
    }
    match points.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
        Some(index) => Err(Error::NotInOrder { index: index + 1 }),
        None => Ok(()),
    }
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

/// Variance of one series' score without a trend; values that are the same make it smaller.
fn variance(points: &[Point]) -> f64 {
    let term = |n: usize| (n * n.saturating_sub(1) * (2 * n + 5)) as f64;
    let mut values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    values.sort_by(f64::total_cmp);
    let tied: f64 = values.chunk_by(|a, b| a == b).map(|same| term(same.len())).sum();
    (term(points.len()) - tied) / 18.0
}

fn two_sided(score: i64, variance: f64) -> f64 {
    // Scores are whole numbers two apart: half that distance is the continuity correction. Without a variance
    // all values are the same, and so is the score of every order of them.
    let distance = (score.abs() - 1).max(0) as f64;
    if distance == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    2.0 * Normal::standard().sf(distance / variance.sqrt())
}
