//! Published figures beside the measured ones. Ratios to the baseline are compared, not absolute values: the
//! machine is another.

use super::effects::{self, Paired};
use super::findings::{Metric, ReferenceRow};
use crate::plan::{PlannedReference, PublishedFigure};
use crate::store::TrialRecord;

/// The figures that a study can hold, the metric measured for each, and its unit in the metric's unit.
const FIGURES: [(&str, Metric, f64); 2] =
    [("throughput_per_s", Metric::Throughput, 1.0), ("latency_ms.mean", Metric::LatencyMean, 1e3)];

/// One row per published figure of this load. `trials_of` gives the valid trials of a variant.
pub fn rows<'a>(
    reference: &PlannedReference,
    load: &str,
    baseline: &str,
    trials_of: impl Fn(&str) -> Vec<&'a TrialRecord>,
) -> Vec<ReferenceRow> {
    let of_load: Vec<&PublishedFigure> =
        reference.figures.iter().filter(|figure| figure.load == load).collect();
    of_load.iter().map(|published| row(published, &of_load, baseline, &trials_of)).collect()
}

fn row<'a>(
    published: &PublishedFigure,
    all: &[&PublishedFigure],
    baseline: &str,
    trials_of: impl Fn(&str) -> Vec<&'a TrialRecord>,
) -> ReferenceRow {
    let known = FIGURES.iter().find(|(name, _, _)| *name == published.figure);
    let trials = trials_of(&published.variant);
    let is_baseline = published.variant == baseline;
    let published_baseline = all
        .iter()
        .find(|other| other.variant == baseline && other.figure == published.figure)
        .filter(|_| !is_baseline);
    ReferenceRow {
        variant: published.variant.clone(),
        figure: published.figure.clone(),
        published: published.value,
        measured: known.and_then(|(_, metric, unit)| {
            effects::mean(&trials, *metric).map(|estimate| estimate.value / unit)
        }),
        published_ratio: published_baseline.map(|base| published.value / base.value),
        measured_ratio: known.filter(|_| !is_baseline).and_then(|(_, metric, _)| {
            Paired::by_block(&trials_of(baseline), &trials, *metric).ratio_estimate()
        }),
    }
}
