//! Tells from a series whether what it measures grows or shrinks, and by how much.
//!
//! The Mann-Kendall test (Mann, "Nonparametric tests against trend", Econometrica 13, 1945; Kendall, "Rank
//! correlation methods", 4th edition, 1975), by the normal approximation with continuity correction and the
//! variance corrected for ties, and Sen's slope (Sen, "Estimates of the regression coefficient based on Kendall's
//! tau", JASA 63, 1968). Both look only at pairs of points, so neither an outlier nor the law of the values
//! matters.
//!
//! Points that follow each other closely are alike, and the score of such a series scatters more than that of
//! independent points: its variance is corrected by the autocorrelation of the ranks of what is left of the series
//! without its slope (Hamed and Rao, "A modified Mann-Kendall trend test for autocorrelated data", Journal of Hydrology
//! 204, 1998). With the coefficients of all significant lags, as there, a series of 40 to 60 points still has a trend
//! at the nominal 1 % in 8 to 12 of 100 cases (first-order autocorrelation of 0.5): the estimates are too low and too
//! noisy. So the lags fall off from the first as those of a first-order series do, the first is corrected for what
//! taking off a slope takes from it (Marriott and Pope, "Bias in the estimation of autocorrelations", Biometrika 41,
//! 1954), it need not be significant, and the score is held against Student's t with the points that the series is
//! worth. A correlation below zero is no reason to be surer.
//!
//! Several series that lie on different levels are tested as one by adding their statistics and variances, the
//! seasonal Kendall test (Hirsch, Slack and Smith, "Techniques of trend analysis for monthly water quality data",
//! Water Resources Research 18, 1982): points are compared only within their own series.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::Error;
use crate::quantile::median;

/// Points, in all series together, below which the normal approximation is not good enough (Kendall 1975).
const LEAST_POINTS: usize = 10;
/// Points below which a series says nothing of its autocorrelation.
const LEAST_CORRELATED: usize = 6;
/// With more, a series of any length would be worth next to no independent point.
const MOST_CORRELATION: f64 = 0.95;

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
    let correlation = autocorrelation(series, slope);
    let plain: f64 = series.iter().map(|points| variance(points)).sum();
    let inflated = |points: &Vec<Point>| {
        variance(points) * inflation(points.len(), |lag| correlation.powf(lag))
    };
    let variance = series.iter().map(inflated).sum();
    let worth = points as f64 * plain / variance;
    let p_value = two_sided(score, variance, (correlation > 0.0).then_some(worth));
    Ok(Trend { points, score, slope, p_value })
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

/// First autocorrelation of the ranks within each series without its `slope`, freed of its bias; 0 or more.
fn autocorrelation(series: &[Vec<Point>], slope: f64) -> f64 {
    let long: Vec<_> = series.iter().filter(|points| points.len() >= LEAST_CORRELATED).collect();
    let points: usize = long.iter().map(|points| points.len()).sum();
    if points == 0 {
        return 0.0;
    }
    let weighted = |points: &&Vec<Point>| {
        points.len() as f64 * first_autocorrelation(&ranks(&without(points, slope)))
    };
    let seen = long.iter().map(weighted).sum::<f64>() / points as f64;
    // Of a series of n points whose mean and slope are its own it is less by (2 + 4 x correlation) / n.
    let shortness = long.len() as f64 / points as f64;
    ((seen + 2.0 * shortness) / (1.0 - 4.0 * shortness)).clamp(0.0, MOST_CORRELATION)
}

fn without(points: &[Point], slope: f64) -> Vec<f64> {
    let (from, level) = points[0];
    points.iter().map(|(x, y)| (y - level) - slope * (x - from)).collect()
}

/// Ranks from 0; values that are the same share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    // Differences of rounding must not tell values apart that are the same.
    let same = 1e-9 * values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| **other < value - same).count();
        let above = values.iter().filter(|other| **other > value + same).count();
        f64::midpoint(below as f64, (values.len() - 1 - above) as f64)
    };
    values.iter().map(rank).collect()
}

fn first_autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// How many times the variance of the score of `points` is that of independent ones, by the autocorrelation of their
/// ranks at each lag (Hamed and Rao 1998).
fn inflation(points: usize, correlation: impl Fn(f64) -> f64) -> f64 {
    let triple = |n: usize| (n * n.saturating_sub(1) * n.saturating_sub(2)) as f64;
    if points < 3 {
        return 1.0;
    }
    let lag = |lag: usize| triple(points - lag) * correlation(lag as f64);
    1.0 + 2.0 / triple(points) * (1..points).map(lag).sum::<f64>()
}

/// `worth` are the independent points that correlated ones are worth.
fn two_sided(score: i64, variance: f64, worth: Option<f64>) -> f64 {
    // Scores are whole numbers two apart: half that distance is the continuity correction. Without a variance
    // all values are the same, and so is the score of every order of them.
    let distance = (score.abs() - 1).max(0) as f64;
    if distance == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    let deviations = distance / variance.sqrt();
    let beyond = match worth {
        None => Normal::standard().sf(deviations),
        Some(worth) => StudentsT::new(0.0, 1.0, (worth - 2.0).max(1.0))
            .expect("one degree of freedom at least")
            .sf(deviations),
    };
    2.0 * beyond
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yearly flow of the Nile at Aswan, 1871 to 1970: Cobb, "The problem of the Nile", Biometrika 65, 1978; `Nile` in R.
    const NILE: [f64; 100] = [
        1120.0, 1160.0, 963.0, 1210.0, 1160.0, 1160.0, 813.0, 1230.0, 1370.0, 1140.0, 995.0, 935.0,
        1110.0, 994.0, 1020.0, 960.0, 1180.0, 799.0, 958.0, 1140.0, 1100.0, 1210.0, 1150.0, 1250.0,
        1260.0, 1220.0, 1030.0, 1100.0, 774.0, 840.0, 874.0, 694.0, 940.0, 833.0, 701.0, 916.0,
        692.0, 1020.0, 1050.0, 969.0, 831.0, 726.0, 456.0, 824.0, 702.0, 1120.0, 1100.0, 832.0,
        764.0, 821.0, 768.0, 845.0, 864.0, 862.0, 698.0, 845.0, 744.0, 796.0, 1040.0, 759.0, 781.0,
        865.0, 845.0, 944.0, 984.0, 897.0, 822.0, 1010.0, 771.0, 676.0, 649.0, 846.0, 812.0, 742.0,
        801.0, 1040.0, 860.0, 874.0, 848.0, 890.0, 744.0, 749.0, 838.0, 1050.0, 918.0, 986.0,
        797.0, 923.0, 975.0, 815.0, 1020.0, 906.0, 901.0, 1170.0, 912.0, 746.0, 919.0, 718.0,
        714.0, 740.0,
    ];

    /// Little, "Mann-Kendall by hand" (College of the Holy Cross): a series of fourteen with one tie, whose points are
    /// taken for independent: z = 2.9058 and, one-sided, p = 0.0018.
    #[test]
    fn a_trend_tested_by_hand_is_the_one_found() {
        let by_hand =
            [12.9, 14.8, 13.2, 15.7, 13.8, 15.6, 12.9, 11.0, 17.3, 15.9, 19.0, 18.3, 20.1, 21.7];
        let points: Vec<Point> = (0..).map(f64::from).zip(by_hand).collect();
        let found = trend(std::slice::from_ref(&points)).unwrap();
        assert_eq!((found.score, found.points), (54, 14));
        let p_value = two_sided(54, variance(&points), None);
        assert!((p_value / 2.0 - 0.0018).abs() < 0.000_05, "{p_value}");
        // Points that may follow each other are worth less.
        assert!(found.p_value > p_value && found.p_value < 0.05, "{}", found.p_value);
    }

    /// pyMannKendall 1.4.3 (Hussain and Mahmud, JOSS 4, 2019): `original_test` and
    /// `hamed_rao_modification_test(nile, lag=1)`, which takes the first autocorrelation as it is.
    #[test]
    fn the_flow_of_the_nile_has_the_variance_that_others_compute() {
        let nile: Vec<Point> = (0..).map(f64::from).zip(NILE).collect();
        let found = trend(std::slice::from_ref(&nile)).unwrap();
        assert_eq!((found.score, found.slope), (-1387, -2.6));
        assert!((variance(&nile) - 112_728.333_333).abs() < 1e-5);
        let first = first_autocorrelation(&ranks(&without(&nile, found.slope)));
        assert!((first - 0.356_442_921_607_22).abs() < 1e-12, "{first}");
        let lag_1 = inflation(100, |lag| if lag == 1.0 { first } else { 0.0 });
        assert!((variance(&nile) * lag_1 - 190_679.893_307).abs() < 1e-5, "{lag_1}");
        let (plain, corrected) = (two_sided(-1387, variance(&nile), None), found.p_value);
        assert!((plain - 3.658_262_921e-5).abs() < 1e-12, "{plain}");
        assert!(corrected > 0.004 && corrected < 0.05, "{corrected}");
    }
}
