//! Percentiles of histograms merged over blocks: never averaged (METHOD.md rule 3). A percentile is that of all
//! blocks together, its interval that of the jackknife over the blocks (docs/decisions/0011).

use std::collections::BTreeMap;

use toll_load::{Histogram, PhaseReport};

use super::LEVEL;
use super::effects::{estimate, single};
use super::findings::Estimate;
use super::latency;
use crate::store::TrialRecord;

/// Share of a value by which another must differ for histograms of three digits to tell the two apart.
pub const RESOLUTION: f64 = 1e-3;

/// Histograms of several blocks as one: of all of them, and of all but each.
pub struct Merged {
    all: Histogram,
    without: Vec<Histogram>,
}

impl Merged {
    /// `None` without a block.
    pub fn of(blocks: &[&Histogram]) -> Option<Self> {
        let all = latency::merged(blocks)?;
        let without = blocks.iter().map(|block| without(&all, block)).collect();
        Some(Self { all, without })
    }

    /// Of what `histogram` picks of the trials' measured phases.
    pub fn of_trials(trials: &[&TrialRecord], histogram: Pick) -> Option<Self> {
        let loads = trials.iter().filter_map(|t| t.load.as_ref());
        Self::of(&loads.map(|load| histogram(&load.measure)).collect::<Vec<_>>())
    }

    /// Of several arms, over the blocks that all of them have.
    pub fn of_arms<const N: usize>(
        arms: [&[&TrialRecord]; N],
        histogram: Pick,
    ) -> Option<[Self; N]> {
        let by_block = arms.map(|trials| -> BTreeMap<usize, &Histogram> {
            let loads = trials.iter().filter_map(|t| Some((t.trial.block, t.load.as_ref()?)));
            loads.map(|(block, load)| (block, histogram(&load.measure))).collect()
        });
        let in_all = |block: &usize| by_block.iter().all(|arm| arm.contains_key(block));
        let blocks: Vec<usize> = by_block.first()?.keys().copied().filter(in_all).collect();
        let of_arm = |arm: &BTreeMap<usize, &Histogram>| {
            Self::of(&blocks.iter().map(|block| arm[block]).collect::<Vec<_>>())
        };
        let merged: Vec<Self> = by_block.iter().filter_map(of_arm).collect();
        merged.try_into().ok()
    }

    /// Microseconds.
    pub fn quantile(&self, quantile: f64) -> Figure {
        let without = self.without.iter().map(|kept| kept.quantile_us(quantile)).collect();
        Figure { all: self.all.quantile_us(quantile), without }
    }
}

/// Which histogram of a phase.
pub type Pick = fn(&PhaseReport) -> &Histogram;

/// Latency, from the intended instant.
pub fn of_latency(phase: &PhaseReport) -> &Histogram {
    &phase.latency
}

fn without(all: &Histogram, block: &Histogram) -> Histogram {
    let mut kept = all.clone();
    kept.0.subtract(&block.0).expect("what was merged can be taken out again");
    kept
}

/// A figure of all blocks, and of all but each one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Of all blocks.
    pub all: f64,
    without: Vec<f64>,
}

impl Figure {
    /// The difference of two figures of the same blocks.
    pub fn minus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one - other)
    }

    fn with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let pairs = self.without.iter().zip(&other.without);
        Self { all: f(self.all, other.all), without: pairs.map(|(a, b)| f(*a, *b)).collect() }
    }

    /// With its interval; `None` with fewer than two blocks.
    pub fn over_blocks(&self) -> Option<toll_stats::Estimate> {
        toll_stats::jackknife(self.all, &self.without, LEVEL).ok()
    }

    /// As a multiple of another figure of the same blocks, with its interval; `None` with fewer than two blocks.
    pub fn over(&self, other: &Self) -> Option<toll_stats::Estimate> {
        let logarithm = self.with(other, |one, other| (one / other).ln());
        toll_stats::jackknife_ratio(logarithm.all, &logarithm.without, LEVEL).ok()
    }

    /// With its interval; one block has none: both ends are its value.
    pub fn estimate(&self) -> Option<Estimate> {
        match self.without.as_slice() {
            [] => None,
            [_] => Some(single(self.all)),
            _ => self.over_blocks().map(estimate),
        }
    }
}
