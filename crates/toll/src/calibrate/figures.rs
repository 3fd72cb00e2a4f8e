//! Turns the slices of an arm over some rounds into its figures, and those of three arms into an effect, with the
//! estimators of reports: sums of CPU time over sums of requests, histograms of both baseline arms as one.

use toll_load::Histogram;
use toll_stats::{Effect, Figures, Level};

use super::observed::{Round, Slice};
use crate::analysis::merged::Merged;
use crate::plan::Metric;

/// The effect of the arm at `variant` over these rounds against the arms at `baseline`, one or two; absent when a round
/// has no figure of one of them.
pub fn effect(
    metric: Metric,
    rounds: &[&Round],
    variant: usize,
    baseline: &[usize],
) -> Option<Effect> {
    match metric.quantile() {
        Some(quantile) => {
            let merged = |arms: &[usize]| {
                Merged::of(&rounds.iter().map(|round| pooled(round, arms)).collect::<Vec<_>>())
            };
            Merged::effect([&merged(baseline)?, &merged(&[variant])?], quantile)
        }
        None => {
            let of_round = |round: &&Round| {
                let of = |arm: usize| of_slices(metric, &round.arms[arm].slices);
                let again = match baseline.get(1) {
                    Some(arm) => Some(of(*arm)?),
                    None => None,
                };
                Some(Figures { variant: of(variant)?, baseline: of(*baseline.first()?)?, again })
            };
            let figures: Option<Vec<Figures>> = rounds.iter().map(of_round).collect();
            Effect::over_rounds(&figures?, Level::P95).ok()
        }
    }
}

fn pooled(round: &Round, arms: &[usize]) -> Histogram {
    let mut all = Histogram::new();
    arms.iter().for_each(|arm| all.merge(&round.arms[*arm].latency));
    all
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
        Some(quantile) => {
            Some(slice.latency.quantile_us(quantile)).filter(|_| slice.latency.count() > 0)
        }
        None => of_slices(metric, std::slice::from_ref(slice)),
    }
}
