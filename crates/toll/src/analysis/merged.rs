//! Percentiles of histograms merged over rounds: never averaged (docs/method.md rule 3). A percentile is that of all
//! rounds together, its interval that of the jackknife over the rounds (docs/decisions/0011).

use std::collections::BTreeMap;

use toll_load::Histogram;
use toll_stats::{Effect, Figures};

use super::LEVEL;
use super::estimates::{estimate, single};
use super::findings::Estimate;
use super::latency;
use super::tally::Tally;

/// Histograms of several rounds as one: of all of them, and of all but each.
pub struct Merged {
    all: Histogram,
    without: Vec<Histogram>,
}

impl Merged {
    /// `None` without a round.
    pub fn of(rounds: &[Histogram]) -> Option<Self> {
        let all = latency::merged(&rounds.iter().collect::<Vec<_>>())?;
        let without = rounds.iter().map(|round| without(&all, round)).collect();
        Some(Self { all, without })
    }

    /// Of what `histogram` gives of the tallies.
    pub fn of_tallies(tallies: &[&Tally<'_>], histogram: Pick) -> Option<Self> {
        Self::of(&rounds(tallies, histogram).into_values().collect::<Vec<_>>())
    }

    /// Of several variants, over the rounds that all of them have.
    pub fn of_arms<const N: usize>(arms: [&[&Tally<'_>]; N], histogram: Pick) -> Option<[Self; N]> {
        let mut arms = arms.map(|tallies| rounds(tallies, histogram));
        let in_all = |round: &usize| arms.iter().all(|arm| arm.contains_key(round));
        let kept: Vec<usize> = arms.first()?.keys().copied().filter(in_all).collect();
        arms.iter_mut().for_each(|arm| arm.retain(|round, _| kept.contains(round)));
        let merged =
            arms.into_iter().filter_map(|arm| Self::of(&arm.into_values().collect::<Vec<_>>()));
        merged.collect::<Vec<_>>().try_into().ok()
    }

    /// Microseconds. Read between the edges of buckets: the jackknife multiplies what leaving out a round changes, and
    /// whole buckets with it.
    pub fn quantile(&self, quantile: f64) -> Figure {
        let without = self.without.iter().map(|kept| kept.interpolated_quantile_us(quantile));
        Figure { all: self.all.interpolated_quantile_us(quantile), without: without.collect() }
    }
}

impl Merged {
    /// What a percentile of the second is against that of the first, of the same rounds, two at the least.
    pub fn effect([baseline, variant]: [&Self; 2], quantile: f64) -> Option<Effect> {
        let [baseline, variant] = [baseline, variant].map(|of| of.quantile(quantile));
        let figures = |baseline, variant| Figures { variant, baseline, again: None };
        let pairs = baseline.without.iter().zip(&variant.without);
        let without: Vec<Figures> = pairs.map(|(b, v)| figures(*b, *v)).collect();
        let all = figures(baseline.all, variant.all);
        Effect::of_merged(all, &without, Histogram::RESOLUTION, LEVEL).ok()
    }
}

/// The histograms of each round: of the baseline both arms in one.
pub fn rounds(tallies: &[&Tally<'_>], histogram: Pick) -> BTreeMap<usize, Histogram> {
    let mut rounds: BTreeMap<usize, Histogram> = BTreeMap::new();
    for tally in tallies {
        let of_arm = histogram(tally);
        if of_arm.count() > 0 {
            rounds.entry(tally.round).or_default().merge(&of_arm);
        }
    }
    rounds
}

/// Which histogram of a tally.
pub type Pick = fn(&Tally<'_>) -> Histogram;

/// Latency, from the intended instant.
pub fn latency(tally: &Tally<'_>) -> Histogram {
    tally.latency().clone()
}

/// From the instant at which a request was sent.
pub fn service_time(tally: &Tally<'_>) -> Histogram {
    tally.service_time()
}

fn without(all: &Histogram, round: &Histogram) -> Histogram {
    let mut kept = all.clone();
    kept.0.subtract(&round.0).expect("what was merged can be taken out again");
    kept
}

/// A figure of all rounds, and of all but each one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Of all rounds.
    pub all: f64,
    /// Of all but each.
    pub without: Vec<f64>,
}

impl Figure {
    /// The difference of two figures of the same rounds.
    pub fn minus(&self, other: &Self) -> Self {
        let pairs = self.without.iter().zip(&other.without);
        Self { all: self.all - other.all, without: pairs.map(|(a, b)| a - b).collect() }
    }

    /// With its interval; one round has none: both ends are its value.
    pub fn estimate(&self) -> Option<Estimate> {
        match self.without.as_slice() {
            [] => None,
            [_] => Some(single(self.all)),
            without => toll_stats::jackknife(self.all, without, LEVEL).ok().map(estimate),
        }
    }
}
