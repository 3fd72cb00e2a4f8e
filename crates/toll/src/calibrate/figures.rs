//! Turns the slices of an arm over some rounds into its figures, and those of three arms into an effect, as an analysis
//! of a study does: sums of CPU time over sums of requests, histograms merged.

use toll_load::Histogram;
use toll_stats::{Effect, Figures, Level};

use super::observed::{Arm, Round, Slice};
use crate::plan::Metric;

/// One metric of one arm over some rounds.
#[derive(Debug, Clone, PartialEq)]
pub enum OfArm {
    /// A figure of each round.
    Rounds(Vec<f64>),
    /// A figure of all rounds together, and of all but each one.
    Merged {
        /// Of all.
        all: f64,
        /// Without each.
        without: Vec<f64>,
    },
}

/// The figures of the arm at `arm` over these `rounds`; absent when a round has none.
pub fn of_arm(metric: Metric, rounds: &[&Round], arm: usize) -> Option<OfArm> {
    let arms = rounds.iter().map(|round| &round.arms[arm]);
    let Some(quantile) = metric.quantile() else {
        let figures = arms.map(|arm| of_slices(metric, &arm.slices));
        return figures.collect::<Option<_>>().map(OfArm::Rounds);
    };
    let mut all = Histogram::new();
    arms.clone().for_each(|arm| all.merge(&arm.latency));
    let without = |arm: &Arm| {
        let mut others = all.clone();
        others.0.subtract(&arm.latency.0).expect("it was added before");
        of_histogram(&others, quantile)
    };
    let without = arms.map(without).collect::<Option<_>>()?;
    Some(OfArm::Merged { all: of_histogram(&all, quantile)?, without })
}

/// One metric over some slices of one arm; absent when they do not tell it.
fn of_slices(metric: Metric, slices: &[Slice]) -> Option<f64> {
    let total = |of: fn(&Slice) -> Option<f64>| slices.iter().map(of).sum::<Option<f64>>();
    let answered = total(|slice| Some(slice.answered as f64))?;
    let figure = match metric {
        Metric::Memory => total(|slice| slice.memory_bytes)? / slices.len() as f64,
        _ => total(|slice| slice.cpu_us)? / answered,
    };
    Some(figure).filter(|figure| figure.is_finite() && *figure > 0.0)
}

/// One metric of a single slice; absent when it does not tell it.
pub fn of_slice(metric: Metric, slice: &Slice) -> Option<f64> {
    match metric.quantile() {
        Some(quantile) => of_histogram(&slice.latency, quantile),
        None => of_slices(metric, std::slice::from_ref(slice)),
    }
}

fn of_histogram(histogram: &Histogram, quantile: f64) -> Option<f64> {
    Some(histogram.quantile_us(quantile)).filter(|_| histogram.count() > 0)
}

/// The effect of `variant` against `baseline` and its second arm, where there is one.
pub fn effect(variant: &OfArm, baseline: &OfArm, again: Option<&OfArm>) -> Option<Effect> {
    let figures = |variant, baseline, again| Figures { variant, baseline, again };
    let rows = |variant: &[f64], baseline: &[f64], again: Option<&[f64]>| -> Vec<Figures> {
        let row = |at| figures(variant[at], baseline[at], again.map(|again: &[f64]| again[at]));
        (0..variant.len()).map(row).collect()
    };
    match (variant, baseline, again) {
        (OfArm::Rounds(v), OfArm::Rounds(b), Some(OfArm::Rounds(a))) => {
            Effect::over_rounds(&rows(v, b, Some(a)), Level::P95).ok()
        }
        (OfArm::Rounds(v), OfArm::Rounds(b), None) => {
            Effect::over_rounds(&rows(v, b, None), Level::P95).ok()
        }
        (
            OfArm::Merged { all: v, without: v_without },
            OfArm::Merged { all: b, without: b_without },
            again,
        ) => {
            let (a, a_without) = match again {
                Some(OfArm::Merged { all, without }) => (Some(*all), Some(without.as_slice())),
                _ => (None, None),
            };
            let without = rows(v_without, b_without, a_without);
            Effect::of_merged(figures(*v, *b, a), &without, Histogram::RESOLUTION, Level::P95).ok()
        }
        _ => None,
    }
}
