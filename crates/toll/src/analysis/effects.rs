//! The numbers of tallies, and what a variant changed: within rounds, against all arms of what it is held against.

use std::collections::BTreeMap;

use toll_load::Histogram;
use toll_stats::Figures;

use super::LEVEL;
use super::estimates::{estimate, single};
use super::findings::{Effect, Estimate, Measured, Metric, Owner, Scatter, View};
use super::memory;
use super::merged::{self, Merged};
use super::tally::Tally;
use super::verdicts::Judged;

/// The metrics that are compared in a view, in the order of the report; that of the data plane alone where it is
/// asked for: `mesh`.
///
/// At an equal arrival rate throughput is a check, not an effect; flat out it is the point.
pub fn compared(view: View, mesh: bool) -> impl Iterator<Item = Metric> {
    let metrics = [
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
    ];
    metrics.into_iter().filter(move |metric| match metric {
        Metric::Throughput => view != View::EqualRate,
        Metric::MeshCpuPerRequest => mesh,
        _ => true,
    })
}

/// The tallies of a variant: of the baseline those of both arms.
pub fn of_variant<'t>(
    tallies: &[&'t Tally<'t>],
    variant: &str,
) -> impl Iterator<Item = &'t Tally<'t>> {
    tallies.iter().copied().filter(move |tally| tally.arm.variant == variant)
}

/// What one tally says of a metric; `None` when a reading is missing, and of percentiles, which are those of all rounds
/// together.
pub fn observe(tally: &Tally<'_>, metric: Metric) -> Option<f64> {
    let latency = || Some(tally.latency()).filter(|latency| latency.count() > 0);
    match metric {
        Metric::LatencyP50 | Metric::LatencyP90 | Metric::LatencyP95 | Metric::LatencyP99 => None,
        Metric::LatencyMean => latency().map(Histogram::mean_us),
        Metric::Throughput => throughput(tally),
        Metric::CpuPerRequest => cpu_per_request(tally, Owner::is_measured),
        Metric::ApplicationCpuPerRequest => cpu_per_request(tally, Owner::is_application),
        Metric::MeshCpuPerRequest => mesh_cpu_per_request(tally),
        Metric::Memory => memory::mean_memory(tally),
    }
}

/// Completed requests per second of the measured parts.
pub fn throughput(tally: &Tally<'_>) -> Option<f64> {
    tally.sums.throughput()
}

/// CPU time of the owners that `wanted` picks per request, microseconds.
pub fn cpu_per_request(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    tally.sums.cpu_per_request(wanted)
}

/// CPU time of the data plane's proxies per request, microseconds; `None` where there are none.
pub fn mesh_cpu_per_request(tally: &Tally<'_>) -> Option<f64> {
    let has_some = tally.sums.cpu.has(Owner::is_data_plane);
    has_some.then(|| cpu_per_request(tally, Owner::is_data_plane)).flatten()
}

/// Every metric that the tallies of a variant show, over rounds: percentiles of all rounds merged, else means of the
/// rounds'. A single round has no interval: both ends are its value. That of the data plane alone as in [`compared`].
pub fn over_rounds(tallies: &[&Tally<'_>], mesh: bool) -> Vec<(Metric, Estimate)> {
    let latency = Merged::of_tallies(tallies, merged::latency);
    let over_rounds = |metric: Metric| match metric.quantile() {
        Some(quantile) => latency.as_ref()?.quantile(quantile).estimate(),
        None => mean_observed(tallies, |tally| observe(tally, metric)),
    };
    let metrics = compared(View::FlatOut, mesh);
    metrics.filter_map(|metric| Some((metric, over_rounds(metric)?))).collect()
}

/// What arms show in each round that has something to show.
fn by_round(
    tallies: &[&Tally<'_>],
    observe: impl Fn(&Tally<'_>) -> Option<f64>,
) -> BTreeMap<usize, Vec<f64>> {
    let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for tally in tallies {
        if let Some(value) = observe(tally) {
            rounds.entry(tally.round).or_default().push(value);
        }
    }
    rounds
}

/// What tallies show in each round: the mean of the round's arms.
pub fn means_by_round(
    tallies: &[&Tally<'_>],
    observe: impl Fn(&Tally<'_>) -> Option<f64>,
) -> BTreeMap<usize, f64> {
    let rounds = by_round(tallies, observe).into_iter();
    rounds.map(|(round, arms)| (round, mean(&arms))).collect()
}

/// The mean over rounds of any number that a tally shows.
pub fn mean_observed(
    tallies: &[&Tally<'_>],
    observe: impl Fn(&Tally<'_>) -> Option<f64>,
) -> Option<Estimate> {
    mean_of(&means_by_round(tallies, observe).into_values().collect::<Vec<_>>())
}

/// The mean of observations, one per round.
pub fn mean_of(values: &[f64]) -> Option<Estimate> {
    if let [value] = values {
        return Some(single(*value));
    }
    toll_stats::mean(values, LEVEL).ok().map(estimate)
}

/// The mean of a number that tallies show, and how it changed `against` the baseline's.
pub fn measured(
    tallies: &[&Tally<'_>],
    against: Option<&[&Tally<'_>]>,
    observe: impl Fn(&Tally<'_>) -> Option<f64>,
) -> Option<Measured> {
    let mut mean = mean_observed(tallies, &observe)?;
    let paired = against.map(|baseline| Paired::observing(baseline, tallies, &observe));
    if let Some(both) = paired.as_ref().and_then(Paired::variant_estimate) {
        mean = both;
    }
    let change = paired.as_ref().and_then(Paired::difference_estimate);
    let ratio = paired.as_ref().and_then(Paired::ratio_estimate);
    Some(Measured { mean, change, ratio })
}

/// A number of the variant and of the arms that it is held against, in each round that has both.
pub struct Paired {
    rounds: Vec<(usize, Figures)>,
}

impl Paired {
    /// Pairs by round.
    pub fn observing(
        baseline: &[&Tally<'_>],
        variant: &[&Tally<'_>],
        observe: impl Fn(&Tally<'_>) -> Option<f64>,
    ) -> Self {
        let baseline = by_round(baseline, &observe);
        let both = |(round, variant): (usize, f64)| {
            let arms = baseline.get(&round)?;
            let (baseline, again) = (*arms.first()?, arms.get(1).copied());
            Some((round, Figures { variant, baseline, again }))
        };
        Self { rounds: means_by_round(variant, &observe).into_iter().filter_map(both).collect() }
    }

    /// Of what both showed in each round: its number, the baseline, the variant.
    pub fn of(rounds: impl IntoIterator<Item = (usize, [f64; 2])>) -> Self {
        let figures = |(round, [baseline, variant]): (usize, [f64; 2])| {
            (round, Figures { variant, baseline, again: None })
        };
        Self { rounds: rounds.into_iter().map(figures).collect() }
    }

    /// Means of both over the rounds, the baseline first; `None` without a round.
    pub fn means(&self) -> Option<(f64, f64)> {
        let over = |of: fn(&Figures) -> f64| {
            mean(&self.rounds.iter().map(|(_, figures)| of(figures)).collect::<Vec<_>>())
        };
        (!self.rounds.is_empty()).then(|| (over(of_baseline), over(|figures| figures.variant)))
    }

    /// The variant over the rounds that have both.
    pub fn variant_estimate(&self) -> Option<Estimate> {
        mean_of(&self.rounds.iter().map(|(_, figures)| figures.variant).collect::<Vec<_>>())
    }

    /// variant - baseline; one round gives no interval, as in [`mean_of`].
    pub fn difference_estimate(&self) -> Option<Estimate> {
        mean_of(&self.differences().map(|(_, difference)| difference).collect::<Vec<_>>())
    }

    /// variant - baseline of each round that has both.
    pub fn differences(&self) -> impl Iterator<Item = (usize, f64)> {
        self.rounds.iter().map(|(round, figures)| (*round, figures.variant - of_baseline(figures)))
    }

    /// variant / baseline; one round gives no interval.
    pub fn ratio_estimate(&self) -> Option<Estimate> {
        self.compared().map(|compared| compared.ratio())
    }

    fn compared(&self) -> Option<Compared> {
        let rounds: Vec<Figures> = self.rounds.iter().map(|(_, figures)| *figures).collect();
        match rounds[..] {
            [one] => Compared::once(one),
            _ => toll_stats::Effect::over_rounds(&rounds, LEVEL).ok().map(Compared::Often),
        }
    }
}

fn of_baseline(figures: &Figures) -> f64 {
    figures.again.map_or(figures.baseline, |again| f64::midpoint(figures.baseline, again))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// One metric of a variant and what it is held against.
#[derive(Debug, Clone, Copy)]
enum Compared {
    /// In one round: a ratio without an interval.
    Once { baseline: f64, ratio: f64 },
    /// In several.
    Often(toll_stats::Effect),
}

impl Compared {
    fn once(figures: Figures) -> Option<Self> {
        let ratio = figures.log_ratio().ok()?.exp();
        Some(Self::Once { baseline: of_baseline(&figures), ratio })
    }

    /// The percentile in both as histograms of all rounds show it.
    fn merged(arms: [&Merged; 2], quantile: f64) -> Option<Self> {
        let [baseline, variant] = arms.map(|arm| arm.quantile(quantile));
        match variant.without.len() {
            1 => Self::once(Figures { variant: variant.all, baseline: baseline.all, again: None }),
            _ => Merged::effect(arms, quantile).map(Self::Often),
        }
    }

    fn baseline(&self) -> f64 {
        match self {
            Self::Once { baseline, .. } => *baseline,
            Self::Often(effect) => effect.baseline(),
        }
    }

    fn ratio(&self) -> Estimate {
        match self {
            Self::Once { ratio, .. } => single(*ratio),
            Self::Often(effect) => estimate(effect.ratio()),
        }
    }

    fn difference(&self) -> Estimate {
        match self {
            Self::Once { baseline, ratio } => single(baseline * (ratio - 1.0)),
            Self::Often(effect) => estimate(effect.difference()),
        }
    }
}

/// A variant under one load, held against other arms round by round.
pub struct Versus<'t> {
    baseline: &'t [&'t Tally<'t>],
    variant: &'t [&'t Tally<'t>],
    latency: Option<[Merged; 2]>,
    cycles: Cycles,
}

impl<'t> Versus<'t> {
    /// Over the rounds that have both.
    pub fn new(baseline: &'t [&'t Tally<'t>], variant: &'t [&'t Tally<'t>]) -> Self {
        let latency = Merged::of_arms([baseline, variant], merged::latency);
        Self { baseline, variant, latency, cycles: Cycles::of(baseline, variant) }
    }

    fn compared(&self, metric: Metric) -> Option<Compared> {
        match metric.quantile() {
            Some(quantile) => Compared::merged(self.latency.as_ref()?.each_ref(), quantile),
            None => {
                Paired::observing(self.baseline, self.variant, |t| observe(t, metric)).compared()
            }
        }
    }

    /// variant / baseline of a latency's percentile, with its interval.
    pub fn percentile_ratio(&self, quantile: f64) -> Option<Estimate> {
        Some(Compared::merged(self.latency.as_ref()?.each_ref(), quantile)?.ratio())
    }

    /// What the variant changed, without a verdict; and from two rounds on, what a verdict is made from. A round costs the
    /// time of `setup_cycles` before its first cycle.
    pub fn effect(&self, variant: &str, metric: Metric, setup_cycles: f64) -> Option<Judged> {
        let compared = self.compared(metric)?;
        let (baseline, ratio) = (compared.baseline(), compared.ratio());
        let effect = Effect {
            variant: variant.into(),
            against: None,
            metric,
            baseline,
            value: baseline * ratio.value,
            difference: compared.difference(),
            ratio,
            trimmed_ratio: self.cycles.trimmed_ratio(metric),
            unexcused_ratio: None,
            scatter: self.cycles.scatter(metric, setup_cycles),
            verdict: None,
        };
        let judged = match compared {
            Compared::Once { .. } => None,
            Compared::Often(effect) => Some(effect),
        };
        Some((effect, judged))
    }
}

/// Log ratios of the variant to the baseline's arms, round by round and cycle by cycle.
struct Cycles(Vec<BTreeMap<Metric, Vec<f64>>>);

impl Cycles {
    fn of(baseline: &[&Tally<'_>], variant: &[&Tally<'_>]) -> Self {
        let ratios = |tally: &&Tally<'_>| {
            let arms = baseline.iter().filter(|other| other.round == tally.round);
            of_round(&arms.copied().collect::<Vec<_>>(), tally)
        };
        Self(variant.iter().map(ratios).collect())
    }

    fn rounds(&self, metric: Metric) -> Vec<Vec<f64>> {
        let rounds = self.0.iter().filter_map(|cycles| cycles.get(&metric));
        rounds.filter(|cycles| !cycles.is_empty()).cloned().collect()
    }

    fn trimmed_ratio(&self, metric: Metric) -> Option<f64> {
        let all = self.rounds(metric).concat();
        toll_stats::trimmed_mean(&all, toll_stats::TRIMMED_SHARE).ok().map(f64::exp)
    }

    /// Where a round costs the time of `setup_cycles` before its first cycle.
    fn scatter(&self, metric: Metric, setup_cycles: f64) -> Option<Scatter> {
        let spread = toll_stats::spread(&self.rounds(metric)).ok()?;
        Some(Scatter {
            between_rounds: spread.between.sqrt(),
            within_rounds: spread.within.sqrt(),
            share_of_starts: spread.share_of_starts(),
            rounds_help_more: spread.sharper(setup_cycles) == toll_stats::Sharper::Rounds,
        })
    }
}

fn of_round(baseline: &[&Tally<'_>], variant: &Tally<'_>) -> BTreeMap<Metric, Vec<f64>> {
    let mut ratios: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
    for (cycle, figures) in variant.cycles() {
        for (metric, value) in figures {
            let arms = baseline.iter().filter_map(|arm| arm.cycles().get(cycle)?.get(metric));
            let arms: Vec<f64> = arms.map(|value| value.ln()).collect();
            let ratio = value.ln() - mean(&arms);
            if ratio.is_finite() {
                ratios.entry(*metric).or_default().push(ratio);
            }
        }
    }
    ratios
}
