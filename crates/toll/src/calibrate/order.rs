//! Turns rounds of equal arms into what the order of slices does to a figure: where in a cycle a slice stands, and
//! whether it follows a slice of the same arm.
//!
//! Each slice is held against the mean of its cycle, in logarithms, so that only the order is left. Rounds are the unit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_stats::{Level, mean};

use super::figures;
use super::observed::{Round, Slice};
use super::words::Change;
use crate::plan::Metric;

/// What single slices tell; memory is sampled too seldom for that.
const METRICS: [Metric; 3] = [Metric::CpuPerRequest, Metric::LatencyP50, Metric::LatencyP99];

/// What the order does to one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which.
    pub metric: Metric,
    /// The way back against the way there.
    pub back: Option<Change>,
    /// The last slice of a cycle against its first; both are of one arm.
    pub last: Option<Change>,
    /// An arm at a cycle's ends against the arm at its turning point.
    pub ends: Option<Change>,
    /// A slice that follows its own arm against those that follow another, by guard.
    pub carry_over: Vec<CarryOver>,
}

/// What the arm before leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CarryOver {
    /// Begin of the slices that was not counted, seconds.
    pub guard_s: f64,
    /// Rounds with it.
    pub rounds: usize,
    /// After its own arm against after another; absent below two rounds.
    pub change: Option<Change>,
}

/// A slice in its cycle.
struct Placed {
    /// Position in the cycle, 0..1.
    at: f64,
    follows_own: Option<bool>,
    /// Logarithm of the figure less the mean of the cycle's.
    deviation: f64,
}

/// What the order of these rounds does.
pub fn of(rounds: &[Round]) -> Vec<Order> {
    METRICS.into_iter().map(|metric| of_metric(metric, rounds)).collect()
}

fn of_metric(metric: Metric, rounds: &[Round]) -> Order {
    let placed: Vec<(f64, Vec<Placed>)> =
        rounds.iter().map(|round| (round.guard_s, placed(metric, round))).collect();
    let all = |is: &dyn Fn(&Placed) -> Option<bool>| {
        contrast(placed.iter().map(|(_, slices)| slices.as_slice()), is)
    };
    let mut guards: Vec<f64> = rounds.iter().map(|round| round.guard_s).collect();
    guards.sort_by(f64::total_cmp);
    guards.dedup();
    let carry_over = guards.into_iter().map(|guard_s| {
        let of_guard = placed.iter().filter(|(of_round, _)| *of_round == guard_s);
        let of_guard: Vec<&[Placed]> = of_guard.map(|(_, slices)| slices.as_slice()).collect();
        let change = contrast(of_guard.iter().copied(), &|slice| slice.follows_own);
        CarryOver { guard_s, rounds: of_guard.len(), change }
    });
    Order {
        metric,
        back: all(&|slice| Some(slice.at > 0.5)),
        last: all(&|slice| (slice.at == 0.0 || slice.at == 1.0).then_some(slice.at == 1.0)),
        ends: all(&|slice| is_at_ends(slice.at)),
        carry_over: carry_over.collect(),
    }
}

/// The outer or the inner third; in between it is neither.
fn is_at_ends(at: f64) -> Option<bool> {
    let from_middle = (at - 0.5).abs();
    (!(1.0 / 6.0..=1.0 / 3.0).contains(&from_middle)).then_some(from_middle > 1.0 / 3.0)
}

/// How slices for which `is` holds differ from those for which it does not; round by round, then over rounds.
fn contrast<'p>(
    rounds: impl Iterator<Item = &'p [Placed]>,
    is: &dyn Fn(&Placed) -> Option<bool>,
) -> Option<Change> {
    let of_round = |slices: &[Placed]| {
        let side = |wanted| {
            let chosen = slices.iter().filter(|slice| is(slice) == Some(wanted));
            mean_of(&chosen.map(|slice| slice.deviation).collect::<Vec<_>>())
        };
        Some(side(true)? - side(false)?)
    };
    let by_round: Vec<f64> = rounds.filter_map(of_round).collect();
    mean(&by_round, Level::P95).ok().map(Change::of_logarithms)
}

fn placed(metric: Metric, round: &Round) -> Vec<Placed> {
    let mut all: Vec<(usize, &Slice)> = Vec::new();
    for (arm, of_arm) in round.arms.iter().enumerate() {
        all.extend(of_arm.slices.iter().map(|slice| (arm, slice)));
    }
    let by_place: BTreeMap<usize, usize> =
        all.iter().map(|(arm, slice)| (slice.place, *arm)).collect();
    let mut cycles: BTreeMap<usize, Vec<(usize, &Slice)>> = BTreeMap::new();
    for (arm, slice) in all {
        cycles.entry(slice.cycle).or_default().push((arm, slice));
    }
    // A cycle with a slice that does not count has no mean to hold the others against.
    let whole = cycles.into_values().filter(|slices| slices.len() == round.arms.len() * 2);
    whole.flat_map(|slices| of_cycle(metric, &slices, &by_place)).collect()
}

fn of_cycle(
    metric: Metric,
    slices: &[(usize, &Slice)],
    by_place: &BTreeMap<usize, usize>,
) -> Vec<Placed> {
    let logarithm = |slice: &Slice| figures::of_slice(metric, slice).map(f64::ln);
    let logarithms: Option<Vec<f64>> = slices.iter().map(|(_, slice)| logarithm(slice)).collect();
    let Some(logarithms) = logarithms else { return vec![] };
    let mean = mean_of(&logarithms).expect("a cycle has slices");
    let first = slices.iter().map(|(_, slice)| slice.place).min().unwrap_or_default();
    let last = (slices.len() - 1) as f64;
    let one = |((arm, slice), logarithm): (&(usize, &Slice), f64)| Placed {
        at: (slice.place - first) as f64 / last,
        follows_own: slice
            .place
            .checked_sub(1)
            .and_then(|before| by_place.get(&before))
            .map(|before| before == arm),
        deviation: logarithm - mean,
    };
    slices.iter().zip(logarithms).map(one).collect()
}

fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
