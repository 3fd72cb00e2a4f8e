//! Published figures beside the measured ones. Ratios to the baseline are compared, not absolute values: the
//! machine is another.

use super::effects::{self, Paired};
use super::findings::{Derived, Estimate, Metric, RecomputedRow, ReferenceRow};
use super::pods::{cpu_millicores, is_counted_in_total, memory_mib};
use crate::plan::{PlannedReference, PublishedFigure, Recomputed};
use crate::store::TrialRecord;

/// Percentiles that a study can hold figures of, and the metric measured for each.
const LATENCIES: [(&str, f64); 7] = [
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
];

/// What a trial shows of the figure of that name, in the figure's unit; `None` for a name of another form.
fn observe(trial: &TrialRecord, figure: &str) -> Option<f64> {
    let latency = || trial.load.as_ref().map(|load| &load.measure.latency);
    match figure.split_once('.') {
        None if figure == "throughput_per_s" => effects::throughput(trial),
        Some(("latency_ms", "mean")) => Some(latency()?.mean_us() / 1e3),
        Some(("latency_ms", percentile)) => {
            let (_, quantile) = LATENCIES.iter().find(|(name, _)| *name == percentile)?;
            Some(latency()?.quantile_us(*quantile) / 1e3)
        }
        Some(("cpu_millicores", pod)) if has_pod(trial, pod) => {
            cpu_millicores(trial, |owner| owner.pod() == Some(pod))
        }
        Some(("memory_mib", pod)) if has_pod(trial, pod) => {
            memory_mib(trial, |owner| owner.pod() == Some(pod))
        }
        _ => None,
    }
}

fn has_pod(trial: &TrialRecord, pod: &str) -> bool {
    let first = trial.samples.first().map(|marked| &marked.sample);
    first.is_some_and(|sample| sample.components.iter().any(|c| c.component.pod == pod))
}

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
    let observe = |trial: &TrialRecord| observe(trial, &published.figure);
    let trials = trials_of(&published.variant);
    let is_baseline = published.variant == baseline;
    let published_baseline = all
        .iter()
        .find(|other| other.variant == baseline && other.figure == published.figure)
        .filter(|_| !is_baseline);
    let paired = || Paired::observing(&trials_of(baseline), &trials, observe);
    ReferenceRow {
        variant: published.variant.clone(),
        figure: published.figure.clone(),
        published: published.value,
        measured: effects::mean_observed(&trials, observe).map(|estimate| estimate.value),
        published_ratio: published_baseline.map(|base| published.value / base.value),
        measured_ratio: (!is_baseline).then(|| paired().ratio_estimate()).flatten(),
    }
}

/// One row per figure of this load that was recomputed from published ones.
pub fn recomputed<'a>(
    reference: &PlannedReference,
    load: &str,
    baseline: &str,
    trials_of: impl Fn(&str) -> Vec<&'a TrialRecord>,
) -> Vec<RecomputedRow> {
    let of_load = reference.recomputed.iter().filter(|figure| figure.load == load);
    of_load
        .map(|figure| RecomputedRow {
            variant: figure.variant.clone(),
            derived: figure.derived,
            pod: figure.pod.clone(),
            printed: figure.printed,
            recomputed: figure.recomputed,
            measured: derive(figure, &trials_of(baseline), &trials_of(&figure.variant)),
            because: figure.because.clone(),
        })
        .collect()
}

/// The figure derived from what was measured, as the source would have it: pods without the gateway.
fn derive(
    figure: &Recomputed,
    baseline: &[&TrialRecord],
    variant: &[&TrialRecord],
) -> Option<Estimate> {
    let change = |observe: fn(&TrialRecord) -> Option<f64>| {
        let ratio = Paired::observing(baseline, variant, observe).ratio_estimate()?;
        Some(in_percent(ratio))
    };
    let mean = |observe: fn(&TrialRecord) -> Option<f64>| effects::mean_observed(variant, observe);
    match figure.derived {
        Derived::ThroughputChange => change(effects::throughput),
        Derived::LatencyP95Change => change(|t| effects::observe(t, Metric::LatencyP95)),
        Derived::LatencyP90Change => change(|t| effects::observe(t, Metric::LatencyP90)),
        // What JVMs tell is not read here yet.
        Derived::CpuLoadPoints | Derived::HeapDifference | Derived::PodCpuPerRequestChange => None,
        Derived::CpuChange => change(|t| cpu_millicores(t, is_counted_in_total)),
        Derived::MemoryChange => change(|t| memory_mib(t, is_counted_in_total)),
        Derived::CpuPerRequest => mean(cpu_ms_per_request),
        Derived::CpuPerRequestChange => change(cpu_ms_per_request),
        Derived::MemoryTotal => mean(|t| memory_mib(t, is_counted_in_total)),
        Derived::UnderWay => mean(under_way),
    }
}

/// `+85 %` for a ratio of 1.85, with its interval.
fn in_percent(ratio: Estimate) -> Estimate {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Estimate {
        value: percent(ratio.value),
        low: percent(ratio.low),
        high: percent(ratio.high),
        ..ratio
    }
}

fn cpu_ms_per_request(trial: &TrialRecord) -> Option<f64> {
    effects::cpu_per_request(trial, is_counted_in_total).map(|us| us / 1e3)
}

/// Requests under way by Little's law.
fn under_way(trial: &TrialRecord) -> Option<f64> {
    let mean_us = effects::observe(trial, Metric::LatencyMean)?;
    effects::throughput(trial).map(|per_s| per_s * mean_us / 1e6)
}
