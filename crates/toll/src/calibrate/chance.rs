//! What an instrument without fault would show: calibrations of equal arms are simulated with rounds that scatter
//! normally, and judged as the real one is.
//!
//! The studies of a calibration share rounds and arms, so their shares move far more by chance than those of as many
//! independent studies would, and Wilson's interval alone would call that a fault of the instrument.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use toll_stats::{Level, mean};

use super::studies::{Studies, level_of};
use super::subsets::Triple;

/// Simulated calibrations.
const CALIBRATIONS: usize = 200;

/// How large the calibration is.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Rounds.
    pub rounds: usize,
    /// Equal arms.
    pub arms: usize,
    /// Metrics of a report.
    pub family: usize,
}

/// Between which shares 95 of 100 calibrations lie with all of their marks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// Intervals that hold zero.
    pub inside: [f64; 2],
    /// Reports with a false verdict.
    pub false_reports: [f64; 2],
}

/// Simulates calibrations of that shape.
pub fn of_calibrations(studies: &Studies, shape: Shape, seed: u64) -> Chance {
    let mut rng = StdRng::seed_from_u64(seed);
    let shares: Vec<[f64; 2]> = (0..CALIBRATIONS).map(|_| one(studies, shape, &mut rng)).collect();
    // A mark for each metric, and one for the reports: each may miss its range that much more rarely.
    let outside = CALIBRATIONS / (40 * (shape.family + 1));
    let middle = |which: usize| {
        let mut of_it: Vec<f64> = shares.iter().map(|shares| shares[which]).collect();
        of_it.sort_by(f64::total_cmp);
        [of_it[outside], of_it[of_it.len() - 1 - outside]]
    };
    Chance { inside: middle(0), false_reports: middle(1) }
}

/// Shares of intervals that hold zero, and of reports with a false verdict: one whose surest effect falls at the level of
/// a verdict, as the first step of Holm's procedure decides whether any does.
fn one(studies: &Studies, shape: Shape, rng: &mut StdRng) -> [f64; 2] {
    let metrics: Vec<Vec<Vec<f64>>> = (0..shape.family).map(|_| arms(shape, rng)).collect();
    let (mut inside, mut wrong, mut count) = (0_usize, 0_usize, 0_usize);
    for subset in &studies.subsets {
        let [of_interval, of_verdict] =
            [Level::P95, level_of(shape.family)].map(|level| critical(level, subset.len()));
        for triple in &studies.triples {
            let t = |arms: &Vec<Vec<f64>>| student(arms, *triple, subset);
            let statistics: Vec<f64> = metrics.iter().map(t).collect();
            inside += usize::from(statistics.first().is_some_and(|t| *t <= of_interval));
            wrong += usize::from(statistics.iter().any(|t| *t > of_verdict));
            count += 1;
        }
    }
    [inside, wrong].map(|hits| hits as f64 / count.max(1) as f64)
}

/// One metric of equal arms, round by round; logarithms.
fn arms(shape: Shape, rng: &mut StdRng) -> Vec<Vec<f64>> {
    let arm = |rng: &mut StdRng| (0..shape.rounds).map(|_| normal(rng)).collect();
    (0..shape.arms).map(|_| arm(rng)).collect()
}

/// Student's t of the effect of a study, without its sign.
fn student(arms: &[Vec<f64>], triple: Triple, subset: &[usize]) -> f64 {
    let [first, second] = triple.baseline.map(|arm| &arms[arm]);
    let effect = |at: &usize| arms[triple.variant][*at] - f64::midpoint(first[*at], second[*at]);
    let n = subset.len() as f64;
    let mean = subset.iter().map(effect).sum::<f64>() / n;
    let squares: f64 = subset.iter().map(|at| (effect(at) - mean).powi(2)).sum();
    mean.abs() / (squares / (n - 1.0) / n).sqrt()
}

/// The t beyond which an effect of so many rounds, two or more, excludes zero.
pub fn critical(level: Level, rounds: usize) -> f64 {
    let values: Vec<f64> = (0..rounds).map(|at| at as f64).collect();
    let of_values = mean(&values, level).expect("a study has two rounds");
    let n = rounds as f64;
    let squares: f64 = values.iter().map(|value| (value - of_values.value).powi(2)).sum();
    of_values.half_width() / (squares / (n - 1.0) / n).sqrt()
}

/// Box and Muller, "A note on the generation of random normal deviates", Annals of Mathematical Statistics 29, 1958.
pub fn normal(rng: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
