//! Published figures beside the measured ones. Ratios to the baseline are compared, not absolute values: the
//! machine is another.

use super::effects::{self, Paired, Versus};
use super::findings::{Derived, Estimate, Metric, Owner, RecomputedRow, ReferenceRow};
use super::jvm;
use super::memory::has_pod;
use super::merged::{self, Merged};
use super::pods::{cpu_millicores, is_counted_in_total, memory_mib};
use super::tally::Tally;
use crate::plan::{PlannedReference, PublishedFigure, Recomputed};

/// Percentiles that a study can hold figures of.
const PERCENTILES: [(&str, f64); 7] = [
    ("p10", 0.10),
    ("p25", 0.25),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
];

const MIB: f64 = 1024.0 * 1024.0;

/// What figures belong to, and what they need to know.
#[derive(Debug, Clone, Copy)]
pub struct OfLoad<'a> {
    /// Name of the load.
    pub load: &'a str,
    /// The variant the others are held against.
    pub baseline: &'a str,
    /// Cores of the machine.
    pub cores: Option<usize>,
}

/// The percentile of the latency that a figure is, 0..1; `None` for another figure.
fn percentile(figure: &str) -> Option<f64> {
    let name = figure.strip_prefix("latency_ms.")?;
    PERCENTILES.iter().find(|(known, _)| *known == name).map(|(_, quantile)| *quantile)
}

/// What a tally shows of the figure of that name, in the figure's unit; `None` for a name of another form, and for
/// percentiles, which are those of all rounds together.
fn observe(tally: &Tally<'_>, figure: &str, cores: Option<usize>) -> Option<f64> {
    match figure.split_once('.') {
        None => match figure {
            "throughput_per_s" => effects::throughput(tally),
            "cpu_total_millicores" => cpu_millicores(tally, Owner::is_measured),
            "memory_total_mib" => memory_total_mib(tally),
            _ => None,
        },
        Some(("latency_ms", "mean")) => {
            effects::observe(tally, Metric::LatencyMean).map(|us| us / 1e3)
        }
        Some(("cpu_millicores", pod)) if has_pod(tally, pod) => {
            cpu_millicores(tally, |owner| owner.is_in(pod))
        }
        Some(("memory_mib", pod)) if has_pod(tally, pod) => {
            memory_mib(tally, |owner| owner.is_in(pod))
        }
        Some(("cpu_load_percent", pod)) => cpu_load_percent(tally, pod, cores),
        Some(("heap_mib", pod)) => jvm::heap_used_mib(tally, pod),
        _ => None,
    }
}

/// One row per published figure of this load. `tallies_of` gives the valid tallies of a variant.
pub fn rows<'a>(
    reference: &PlannedReference,
    of: &OfLoad<'_>,
    tallies_of: impl Fn(&str) -> Vec<&'a Tally<'a>>,
) -> Vec<ReferenceRow> {
    let figures: Vec<&PublishedFigure> =
        reference.figures.iter().filter(|figure| figure.load == of.load).collect();
    figures.iter().map(|published| row(published, &figures, of, &tallies_of)).collect()
}

fn row<'a>(
    published: &PublishedFigure,
    all: &[&PublishedFigure],
    of: &OfLoad<'_>,
    tallies_of: impl Fn(&str) -> Vec<&'a Tally<'a>>,
) -> ReferenceRow {
    let (baseline, tallies) = (tallies_of(of.baseline), tallies_of(&published.variant));
    let is_baseline = published.variant == of.baseline;
    let published_baseline = all
        .iter()
        .find(|other| other.variant == of.baseline && other.figure == published.figure)
        .filter(|_| !is_baseline);
    let arms = Pair { baseline: &baseline, variant: &tallies };
    ReferenceRow {
        variant: published.variant.clone(),
        figure: published.figure.clone(),
        published: published.value,
        measured: arms.measured(&published.figure, of.cores),
        published_ratio: published_baseline.map(|base| published.value / base.value),
        measured_ratio: (!is_baseline).then(|| arms.ratio(&published.figure, of.cores)).flatten(),
    }
}

/// One row per figure of this load that was recomputed from published ones.
pub fn recomputed<'a>(
    reference: &PlannedReference,
    of: &OfLoad<'_>,
    tallies_of: impl Fn(&str) -> Vec<&'a Tally<'a>>,
) -> Vec<RecomputedRow> {
    recomputed_of(reference, of.load, |figure| {
        let against = tallies_of(figure.against.as_deref().unwrap_or(of.baseline));
        derive(figure, of.cores, &against, &tallies_of(&figure.variant))
    })
}

/// One row per figure that was recomputed of the load of that name, which may be that of a sweep; `measure` derives
/// it from what was measured.
pub fn recomputed_of(
    reference: &PlannedReference,
    load: &str,
    measure: impl Fn(&Recomputed) -> Option<Estimate>,
) -> Vec<RecomputedRow> {
    let figures = reference.recomputed.iter().filter(|figure| figure.load == load);
    let row = |figure: &Recomputed| RecomputedRow {
        variant: figure.variant.clone(),
        against: figure.against.clone(),
        derived: figure.derived,
        pod: figure.pod.clone(),
        printed: figure.printed,
        recomputed: figure.recomputed,
        measured: measure(figure),
        because: figure.because.clone(),
    };
    figures.map(row).collect()
}

/// Of what a figure is the change, where that can be had of a staircase as a whole: the mean of its steps' ratios.
pub fn changes_over_steps(derived: Derived) -> Option<fn(&Tally<'_>) -> Option<f64>> {
    match derived {
        Derived::ThroughputChange => Some(effects::throughput),
        Derived::LatencyMeanChange => Some(|t| effects::observe(t, Metric::LatencyMean)),
        Derived::CpuPerRequestChange => Some(cpu_ms_per_request),
        Derived::MeshCpuPerRequestChange => Some(effects::mesh_cpu_per_request),
        _ => None,
    }
}

/// The figure derived from what was measured, as the source would have it: pods without the gateway.
fn derive(
    figure: &Recomputed,
    cores: Option<usize>,
    baseline: &[&Tally<'_>],
    variant: &[&Tally<'_>],
) -> Option<Estimate> {
    let arms = Pair { baseline, variant };
    let of_pod = |derive: &dyn Fn(&str) -> Option<Estimate>| figure.pod.as_deref().and_then(derive);
    match figure.derived {
        Derived::ThroughputChange => arms.change(effects::throughput),
        Derived::LatencyMeanChange => arms.change(|t| effects::observe(t, Metric::LatencyMean)),
        Derived::LatencyP90Change => arms.percentile_change(0.90),
        Derived::LatencyP95Change => arms.percentile_change(0.95),
        Derived::LatencyP99Change => arms.percentile_change(0.99),
        Derived::CpuRatio => arms.ratio("cpu_total_millicores", cores),
        Derived::MemoryRatio => arms.ratio("memory_total_mib", cores),
        Derived::CpuLoadPoints => {
            of_pod(&|pod| arms.difference(|t| cpu_load_percent(t, pod, cores)))
        }
        Derived::HeapDifference => of_pod(&|pod| arms.difference(|t| jvm::heap_used_mib(t, pod))),
        Derived::PodCpuPerRequestChange => {
            of_pod(&|pod| arms.change(|t| cpu_us_per_request(t, pod)))
        }
        Derived::CpuChange => arms.change(|t| cpu_millicores(t, is_counted_in_total)),
        Derived::MemoryChange => arms.change(|t| memory_mib(t, is_counted_in_total)),
        Derived::CpuPerRequest => effects::mean_observed(variant, cpu_ms_per_request),
        Derived::CpuPerRequestChange => arms.change(cpu_ms_per_request),
        Derived::MeshCpuPerRequestChange => arms.change(effects::mesh_cpu_per_request),
        Derived::MemoryTotal => {
            effects::mean_observed(variant, |t| memory_mib(t, is_counted_in_total))
        }
        Derived::UnderWay => effects::mean_observed(variant, under_way),
    }
}

/// Two arms under one load.
struct Pair<'a> {
    baseline: &'a [&'a Tally<'a>],
    variant: &'a [&'a Tally<'a>],
}

impl Pair<'_> {
    /// What the variant shows of the figure of that name, in its unit.
    fn measured(&self, figure: &str, cores: Option<usize>) -> Option<f64> {
        if let Some(quantile) = percentile(figure) {
            let latency = Merged::of_tallies(self.variant, merged::latency)?;
            return Some(latency.quantile(quantile).all / 1e3);
        }
        let measured = effects::mean_observed(self.variant, |t| observe(t, figure, cores));
        measured.map(|estimate| estimate.value)
    }

    fn ratio(&self, figure: &str, cores: Option<usize>) -> Option<Estimate> {
        if let Some(quantile) = percentile(figure) {
            return Versus::new(self.baseline, self.variant).percentile_ratio(quantile);
        }
        let observe = |t: &Tally<'_>| observe(t, figure, cores);
        Paired::observing(self.baseline, self.variant, observe).ratio_estimate()
    }

    /// Change of a percentile of the latency, per cent.
    fn percentile_change(&self, quantile: f64) -> Option<Estimate> {
        Versus::new(self.baseline, self.variant).percentile_ratio(quantile).map(in_percent)
    }

    /// Change by the ratio of the arms, per cent.
    fn change(&self, observe: impl Fn(&Tally<'_>) -> Option<f64>) -> Option<Estimate> {
        Paired::observing(self.baseline, self.variant, observe).ratio_estimate().map(in_percent)
    }

    /// Change in the figure's own unit.
    fn difference(&self, observe: impl Fn(&Tally<'_>) -> Option<f64>) -> Option<Estimate> {
        Paired::observing(self.baseline, self.variant, observe).difference_estimate()
    }
}

/// `+85 %` for a ratio of 1.85, with its interval.
pub fn in_percent(ratio: Estimate) -> Estimate {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Estimate {
        value: percent(ratio.value),
        low: percent(ratio.low),
        high: percent(ratio.high),
        ..ratio
    }
}

/// Anonymous memory of all groups, as in the table of resources: what of the page cache is whose is chance.
fn memory_total_mib(tally: &Tally<'_>) -> Option<f64> {
    effects::observe(tally, Metric::Memory).map(|bytes| bytes / MIB)
}

fn cpu_load_percent(tally: &Tally<'_>, pod: &str, cores: Option<usize>) -> Option<f64> {
    jvm::cpu_load(tally, pod, cores).map(|share| share * 100.0)
}

/// CPU time of one pod by its cgroup; `None` for a pod that there is not.
fn cpu_us_per_request(tally: &Tally<'_>, pod: &str) -> Option<f64> {
    let cpu = || effects::cpu_per_request(tally, |owner| owner.is_in(pod));
    has_pod(tally, pod).then(cpu).flatten()
}

fn cpu_ms_per_request(tally: &Tally<'_>) -> Option<f64> {
    effects::cpu_per_request(tally, is_counted_in_total).map(|us| us / 1e3)
}

/// Requests under way by Little's law.
fn under_way(tally: &Tally<'_>) -> Option<f64> {
    let mean_us = effects::observe(tally, Metric::LatencyMean)?;
    effects::throughput(tally).map(|per_s| per_s * mean_us / 1e6)
}
