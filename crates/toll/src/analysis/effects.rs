//! The numbers of single trials, and what a variant changed: paired within blocks.

use std::collections::BTreeMap;

use super::LEVEL;
use super::accounts::{self, CpuAccount, Owner};
use super::findings::{Effect, Estimate, Measured, Metric, Verdict, View};
use super::merged::{self, Merged};
use crate::plan::Arm;
use crate::store::TrialRecord;

/// The metrics that are compared in a view, in the order of the report; that of the data plane alone where it is
/// asked for: `mesh`.
///
/// At an equal arrival rate throughput is a check, not an effect; flat out it is the point.
pub fn compared(view: View, mesh: bool) -> impl Iterator<Item = Metric> {
    let metrics: &[Metric] = match view {
        View::EqualRate => &[
            Metric::LatencyP50,
            Metric::LatencyP90,
            Metric::LatencyP95,
            Metric::LatencyP99,
            Metric::LatencyMean,
            Metric::CpuPerRequest,
            Metric::ApplicationCpuPerRequest,
            Metric::MeshCpuPerRequest,
            Metric::Memory,
        ],
        View::FlatOut | View::Users => &[
            Metric::LatencyP50,
            Metric::LatencyP90,
            Metric::LatencyP95,
            Metric::LatencyP99,
            Metric::LatencyMean,
            Metric::Throughput,
            Metric::CpuPerRequest,
            Metric::ApplicationCpuPerRequest,
            Metric::MeshCpuPerRequest,
            Metric::Memory,
        ],
    };
    metrics.iter().copied().filter(move |metric| mesh || *metric != Metric::MeshCpuPerRequest)
}

/// A variant's trials among `trials`, those of the baseline's second run left out.
pub fn of_arm<'a>(
    trials: &[&'a TrialRecord],
    variant: &str,
) -> impl Iterator<Item = &'a TrialRecord> {
    let arm = Arm { variant: variant.into(), again: false };
    trials.iter().copied().filter(move |t| t.trial.arm == arm)
}

/// What one trial says of a metric; `None` when a reading is missing. Percentiles of several trials are those of
/// [`over_blocks`] and [`Versus`], not means of these.
pub fn observe(trial: &TrialRecord, metric: Metric) -> Option<f64> {
    let measured = &trial.load.as_ref()?.measure;
    match metric {
        Metric::LatencyP50 => Some(measured.latency.quantile_us(0.50)),
        Metric::LatencyP90 => Some(measured.latency.quantile_us(0.90)),
        Metric::LatencyP95 => Some(measured.latency.quantile_us(0.95)),
        Metric::LatencyP99 => Some(measured.latency.quantile_us(0.99)),
        Metric::LatencyMean => Some(measured.latency.mean_us()),
        Metric::Throughput => Some(throughput(trial)?),
        Metric::CpuPerRequest => cpu_per_request(trial, Owner::is_measured),
        Metric::ApplicationCpuPerRequest => cpu_per_request(trial, Owner::is_application),
        Metric::MeshCpuPerRequest => mesh_cpu_per_request(trial),
        Metric::Memory => accounts::mean_memory(&trial.samples),
    }
}

/// Completed requests per second of the measured phase.
pub fn throughput(trial: &TrialRecord) -> Option<f64> {
    let measured = &trial.load.as_ref()?.measure;
    let seconds = measured.end_ns.saturating_sub(measured.begin_ns) as f64 / 1e9;
    (seconds > 0.0).then(|| measured.completed as f64 / seconds)
}

/// CPU time of the owners that `wanted` picks per completed request, microseconds.
pub fn cpu_per_request(trial: &TrialRecord, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    let completed = trial.load.as_ref()?.measure.completed;
    let account = CpuAccount::measured(trial)?;
    let total_ns = account.total_ns(wanted)?;
    (completed > 0).then(|| total_ns / completed as f64 / 1e3)
}

/// CPU time of the data plane's proxies per completed request, microseconds; `None` where there are none.
pub fn mesh_cpu_per_request(trial: &TrialRecord) -> Option<f64> {
    let has_some = CpuAccount::measured(trial)?.has(Owner::is_data_plane);
    has_some.then(|| cpu_per_request(trial, Owner::is_data_plane)).flatten()
}

/// The percentile that a metric is of the latency's histogram, 0..1.
fn percentile(metric: Metric) -> Option<f64> {
    match metric {
        Metric::LatencyP50 => Some(0.50),
        Metric::LatencyP90 => Some(0.90),
        Metric::LatencyP95 => Some(0.95),
        Metric::LatencyP99 => Some(0.99),
        Metric::LatencyMean
        | Metric::Throughput
        | Metric::CpuPerRequest
        | Metric::ApplicationCpuPerRequest
        | Metric::MeshCpuPerRequest
        | Metric::Memory => None,
    }
}

/// Every metric that the trials show, over blocks: percentiles of all blocks merged, else means of the blocks'. A single
/// trial has no interval: both ends are its value, and `blocks` is 1. That of the data plane alone as in [`compared`].
pub fn over_blocks(trials: &[&TrialRecord], mesh: bool) -> Vec<(Metric, Estimate)> {
    const ALL: [Metric; 10] = [
        Metric::LatencyP50,
        Metric::LatencyP90,
        Metric::LatencyP95,
        Metric::LatencyP99,
        Metric::LatencyMean,
        Metric::CpuPerRequest,
        Metric::ApplicationCpuPerRequest,
        Metric::MeshCpuPerRequest,
        Metric::Throughput,
        Metric::Memory,
    ];
    let latency = Merged::of_trials(trials, merged::of_latency);
    let over_blocks = |metric: Metric| match percentile(metric) {
        Some(quantile) => latency.as_ref()?.quantile(quantile).estimate(),
        None => mean_observed(trials, |trial| observe(trial, metric)),
    };
    let metrics = ALL.into_iter().filter(|metric| mesh || *metric != Metric::MeshCpuPerRequest);
    metrics.filter_map(|metric| Some((metric, over_blocks(metric)?))).collect()
}

/// The mean over trials of any number that a trial shows.
pub fn mean_observed(
    trials: &[&TrialRecord],
    observe: impl Fn(&TrialRecord) -> Option<f64>,
) -> Option<Estimate> {
    let values: Vec<f64> = trials.iter().filter_map(|t| observe(t)).collect();
    mean_of(&values)
}

/// The mean of observations, one per block.
pub fn mean_of(values: &[f64]) -> Option<Estimate> {
    if let [value] = values {
        return Some(single(*value));
    }
    toll_stats::mean(values, LEVEL).ok().map(estimate)
}

/// What one block alone shows: it has no interval.
pub fn single(value: f64) -> Estimate {
    Estimate { value, low: value, high: value, level: LEVEL.share(), blocks: 1 }
}

/// The mean of a number that trials show, and how it changed `against` the baseline's.
pub fn measured(
    trials: &[&TrialRecord],
    against: Option<&[&TrialRecord]>,
    observe: impl Fn(&TrialRecord) -> Option<f64>,
) -> Option<Measured> {
    let mean = mean_observed(trials, &observe)?;
    let paired = against.map(|baseline| Paired::observing(baseline, trials, &observe));
    let change = paired.as_ref().and_then(Paired::difference_estimate);
    let ratio = paired.as_ref().and_then(Paired::ratio_estimate);
    Some(Measured { mean, change, ratio })
}

/// A number in the two arms of each block that has both.
pub struct Paired {
    blocks: Vec<usize>,
    baseline: Vec<f64>,
    variant: Vec<f64>,
}

impl Paired {
    /// Pairs two arms by block.
    pub fn observing(
        baseline: &[&TrialRecord],
        variant: &[&TrialRecord],
        observe: impl Fn(&TrialRecord) -> Option<f64>,
    ) -> Self {
        let observed: BTreeMap<usize, f64> =
            baseline.iter().filter_map(|t| Some((t.trial.block, observe(t)?))).collect();
        let (blocks, (baseline, variant)) = variant
            .iter()
            .filter_map(|t| {
                let block = t.trial.block;
                Some((block, (*observed.get(&block)?, observe(t)?)))
            })
            .unzip();
        Self { blocks, baseline, variant }
    }

    /// Of what both arms showed in each block: its number, the baseline, the variant.
    pub fn of(blocks: impl IntoIterator<Item = (usize, [f64; 2])>) -> Self {
        let pairs =
            blocks.into_iter().map(|(block, [baseline, variant])| (block, (baseline, variant)));
        let (blocks, (baseline, variant)) = pairs.unzip();
        Self { blocks, baseline, variant }
    }

    /// Means of both arms over the pairs; `None` without a pair.
    pub fn means(&self) -> Option<(f64, f64)> {
        let means = (arithmetic_mean(&self.baseline), arithmetic_mean(&self.variant));
        (!self.variant.is_empty()).then_some(means)
    }

    /// variant - baseline; one pair gives no interval, as in [`mean_of`].
    pub fn difference_estimate(&self) -> Option<Estimate> {
        let differences: Vec<f64> = self.differences().map(|(_, difference)| difference).collect();
        mean_of(&differences)
    }

    /// variant - baseline of each block that has both.
    pub fn differences(&self) -> impl Iterator<Item = (usize, f64)> {
        let differences = self.baseline.iter().zip(&self.variant).map(|(b, v)| v - b);
        self.blocks.iter().copied().zip(differences)
    }

    fn difference(&self) -> Option<toll_stats::Estimate> {
        toll_stats::paired_difference(&self.baseline, &self.variant, LEVEL).ok()
    }

    /// variant / baseline, with its interval.
    pub fn ratio_estimate(&self) -> Option<Estimate> {
        self.ratio().map(estimate)
    }

    /// The same before it is reported.
    pub fn ratio(&self) -> Option<toll_stats::Estimate> {
        toll_stats::paired_ratio(&self.baseline, &self.variant, LEVEL).ok()
    }

    /// The largest difference that this pair leaves possible, when both arms are the baseline.
    pub fn noise_floor(&self) -> Option<f64> {
        self.difference().map(|difference| toll_stats::noise_floor(&difference))
    }

    /// What may be said of variant - baseline, `bound` being a share of the baseline; `None` with fewer than two pairs.
    pub fn verdict(&self, floor: Option<f64>, bound: f64) -> Option<Verdict> {
        let baseline = arithmetic_mean(&self.baseline);
        Some(verdict(&self.difference()?, floor, baseline.abs() * bound))
    }

    fn compared(&self) -> Option<Compared> {
        Some(Compared {
            baseline: arithmetic_mean(&self.baseline),
            value: arithmetic_mean(&self.variant),
            difference: self.difference()?,
            ratio: self.ratio(),
        })
    }
}

/// Two arms under one load, held against each other block by block.
pub struct Versus<'a> {
    baseline: &'a [&'a TrialRecord],
    variant: &'a [&'a TrialRecord],
    latency: Option<[Merged; 2]>,
}

/// One metric in two arms.
struct Compared {
    baseline: f64,
    value: f64,
    difference: toll_stats::Estimate,
    ratio: Option<toll_stats::Estimate>,
}

impl<'a> Versus<'a> {
    /// Over the blocks that have both.
    pub fn new(baseline: &'a [&'a TrialRecord], variant: &'a [&'a TrialRecord]) -> Self {
        let latency = Merged::of_arms([baseline, variant], merged::of_latency);
        Self { baseline, variant, latency }
    }

    /// `None` with fewer than two blocks.
    fn compared(&self, metric: Metric) -> Option<Compared> {
        match percentile(metric) {
            Some(quantile) => self.percentiles(quantile),
            None => {
                let observe = |trial: &TrialRecord| observe(trial, metric);
                Paired::observing(self.baseline, self.variant, observe).compared()
            }
        }
    }

    fn percentiles(&self, quantile: f64) -> Option<Compared> {
        let [baseline, variant] =
            self.latency.as_ref()?.each_ref().map(|arm| arm.quantile(quantile));
        Some(Compared {
            baseline: baseline.all,
            value: variant.all,
            difference: variant.minus(&baseline).over_blocks()?,
            ratio: variant.over(&baseline),
        })
    }

    /// variant / baseline of a latency's percentile, with its interval.
    pub fn percentile_ratio(&self, quantile: f64) -> Option<Estimate> {
        self.percentiles(quantile)?.ratio.map(estimate)
    }

    /// The largest difference that this pair leaves possible, when both arms are the baseline; no less than what the
    /// histograms can tell.
    pub fn noise_floor(&self, metric: Metric) -> Option<f64> {
        let Compared { baseline, difference, .. } = self.compared(metric)?;
        let told = percentile(metric).map_or(0.0, |_| merged::RESOLUTION * baseline);
        Some(toll_stats::noise_floor(&difference).max(told))
    }

    /// What the variant changed; `None` with fewer than two pairs.
    pub fn effect(&self, variant: &str, judged: Judged) -> Option<Effect> {
        let Judged { metric, floor, bound } = judged;
        let Compared { baseline, value, difference, ratio } = self.compared(metric)?;
        let verdict = verdict(&difference, floor, baseline.abs() * bound);
        Some(Effect {
            variant: variant.into(),
            against: None,
            metric,
            baseline,
            value,
            difference: estimate(difference),
            ratio: estimate(ratio?),
            noise_floor: floor,
            verdict,
        })
    }
}

/// By what an effect is judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What is compared.
    pub metric: Metric,
    /// Largest difference that the A/A pair leaves possible, if there is one.
    pub floor: Option<f64>,
    /// Share of the baseline inside which a difference counts as none.
    pub bound: f64,
}

fn arithmetic_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// As it is reported.
pub fn estimate(e: toll_stats::Estimate) -> Estimate {
    Estimate { value: e.value, low: e.low, high: e.high, level: e.level.share(), blocks: e.samples }
}

/// What may be said of a difference (METHOD.md rule 4); all three have one unit.
pub fn verdict(difference: &toll_stats::Estimate, floor: Option<f64>, bound: f64) -> Verdict {
    let verdict = match floor {
        Some(_) => toll_stats::verdict(difference, floor, bound),
        // Without a valid A/A pair nobody knows what chance alone does here.
        None => {
            toll_stats::Verdict::CannotTell { floor: difference.half_width(), more_blocks: None }
        }
    };
    match verdict {
        toll_stats::Verdict::Difference => Verdict::Difference,
        // Where the baseline may differ by more from itself, the bound cannot be told from chance.
        toll_stats::Verdict::NoDifference { bound } => match floor {
            Some(floor) if floor > bound => Verdict::CannotTell { floor, more_blocks: None },
            _ => Verdict::NoDifference { bound },
        },
        toll_stats::Verdict::CannotTell { floor, more_blocks } => {
            Verdict::CannotTell { floor, more_blocks }
        }
    }
}
