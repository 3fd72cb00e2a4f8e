//! Which cycles are excused for a disturbance of the machine (docs/method.md rule 9): whole cycles, all arms and loads of
//! them, by a rule that looks at no arm's result.
//!
//! What disturbs is CPU time that the hypervisor took, or that no component used: work that neither an arm nor the
//! load asked for. A share of all cores' time is held against the run's own median, since the kernel works for the arms,
//! too. The distance is counted in median absolute deviations, which outliers do not widen (Hampel, "The influence curve
//! and its role in robust estimation", JASA 69, 1974; Leys et al., "Detecting outliers: do not use standard deviation
//! around the mean, use absolute deviation around the median", Journal of Experimental Social Psychology 49, 2013).
//! Where much of the run was disturbed there is no quiet rest to hold it against, and nothing is excused.

use std::collections::{BTreeMap, BTreeSet};

use super::accounts;
use crate::store::{RunRecord, SliceRecord};

/// Share of the machine below which a disturbance is none.
const NOTABLE: f64 = 0.05;
/// Median absolute deviations above the median at which a cycle stands out.
const DEVIATIONS: f64 = 5.0;
/// Share of the cycles that may be excused.
const MOST: f64 = 1.0 / 3.0;

/// A cycle of a round at one size of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CycleKey {
    /// From 1.
    pub round: usize,
    /// Which of the plan's sizes.
    pub size: usize,
    /// From 1.
    pub cycle: usize,
}

/// What was excused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Excused {
    /// The cycles that do not count.
    pub cycles: BTreeSet<CycleKey>,
    /// All cycles of the run.
    pub all: usize,
    /// Whether more than may be excused stand out: then none is.
    pub throughout: bool,
}

/// The cycles of a run that are excused; none where the number of its cores is not known.
pub fn excused(run: &RunRecord) -> Excused {
    let shares = run.host.cores.map(|cores| shares(run, cores)).unwrap_or_default();
    // The kernel does more for a larger application: each size has its own usual.
    let mut by_size: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (key, share) in &shares {
        by_size.entry(key.size).or_default().push(*share);
    }
    let limits: BTreeMap<usize, f64> =
        by_size.iter().map(|(size, shares)| (*size, limit(shares))).collect();
    let above = shares.iter().filter(|(key, share)| **share > limits[&key.size]);
    let cycles: BTreeSet<CycleKey> = above.map(|(key, _)| *key).collect();
    let (all, throughout) = (shares.len(), cycles.len() as f64 > MOST * shares.len() as f64);
    Excused { cycles: if throughout { BTreeSet::new() } else { cycles }, all, throughout }
}

fn limit(shares: &[f64]) -> f64 {
    let Ok(median) = toll_stats::median(shares) else { return f64::INFINITY };
    let distances: Vec<f64> = shares.iter().map(|share| (share - median).abs()).collect();
    let deviation = toll_stats::median(&distances).unwrap_or_default();
    NOTABLE.max(median + DEVIATIONS * deviation)
}

/// The disturbance of each cycle, as a share of all cores' time.
fn shares(run: &RunRecord, cores: usize) -> BTreeMap<CycleKey, f64> {
    let mut sums: BTreeMap<CycleKey, Disturbance> = BTreeMap::new();
    for round in &run.rounds {
        for arm in &round.arms {
            for slice in &arm.slices {
                let key = CycleKey { round: round.number, size: arm.size, cycle: slice.cycle };
                sums.entry(key).or_default().add(slice);
            }
        }
    }
    sums.into_iter().map(|(key, sum)| (key, sum.share(cores))).collect()
}

/// CPU time that went elsewhere, and time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disturbance {
    /// Taken by the hypervisor, nanoseconds.
    pub stolen_ns: f64,
    /// Used by no component, nanoseconds.
    pub others_ns: f64,
    /// Length of the slices together, nanoseconds.
    pub window_ns: f64,
}

impl Disturbance {
    /// Adds a slice, whether it counts or not.
    pub fn add(&mut self, slice: &SliceRecord) {
        let [first, .., last] = slice.samples.as_slice() else { return };
        let [_, others] = accounts::owned_and_others(first, last).unwrap_or_default();
        self.stolen_ns += last.host.steal_ns.saturating_sub(first.host.steal_ns) as f64;
        self.others_ns += others.max(0.0);
        self.window_ns += last.at_ns.saturating_sub(first.at_ns) as f64;
    }

    /// Of all slices.
    pub fn of<'a>(slices: impl IntoIterator<Item = &'a SliceRecord>) -> Self {
        let mut sum = Self::default();
        slices.into_iter().for_each(|slice| sum.add(slice));
        sum
    }

    fn share(&self, cores: usize) -> f64 {
        super::counts::share(self.stolen_ns + self.others_ns, self.window_ns * cores as f64)
    }

    /// What the hypervisor took, as a share of all cores' time.
    pub fn stolen(&self, cores: usize) -> f64 {
        super::counts::share(self.stolen_ns, self.window_ns * cores as f64)
    }
}
