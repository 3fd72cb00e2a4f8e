//! Turns a run into what calibration looks at: for each round and arm the counters and histograms of its slices.

use std::collections::BTreeSet;

use toll_load::Histogram;

use crate::analysis::accounts::memory_of;
use crate::analysis::excuse::{CycleKey, excused};
use crate::analysis::owners::{Owner, Owners};
use crate::plan::Metric;
use crate::run::cpu_ns;
use crate::store::{ArmRecord, RoundRecord, RunRecord, SliceRecord};

/// What calibration judges, in the order of its page.
pub const METRICS: [Metric; 4] =
    [Metric::CpuPerRequest, Metric::LatencyP50, Metric::LatencyP99, Metric::Memory];

/// A round in which no arm broke.
#[derive(Debug, Clone)]
pub struct Round {
    /// Begin of its slices that was sent and not counted, seconds.
    pub guard_s: f64,
    /// In the order of the plan.
    pub arms: Vec<Arm>,
}

impl Round {
    /// The same as if it had so many cycles at the most: the first that count.
    pub fn of_cycles(&self, cycles: usize) -> Self {
        let arms = self.arms.iter().map(|arm| {
            let numbers: BTreeSet<usize> = arm.slices.iter().map(|slice| slice.cycle).collect();
            let first: BTreeSet<usize> = numbers.into_iter().take(cycles).collect();
            let kept = arm.slices.iter().filter(|slice| first.contains(&slice.cycle));
            Arm::new(arm.label.clone(), kept.cloned().collect())
        });
        Self { arms: arms.collect(), ..*self }
    }
}

/// An arm in a round.
#[derive(Debug, Clone)]
pub struct Arm {
    /// For people: `base (again)`.
    pub label: String,
    /// Those that count, in order.
    pub slices: Vec<Slice>,
    /// Of all of them.
    pub latency: Histogram,
}

impl Arm {
    /// An arm with these slices.
    pub fn new(label: String, slices: Vec<Slice>) -> Self {
        let mut latency = Histogram::new();
        slices.iter().for_each(|slice| latency.merge(&slice.latency));
        Self { label, slices, latency }
    }
}

#[derive(Debug, Clone)]
pub struct Slice {
    /// Position among all slices of the round.
    pub place: usize,
    /// The cycle, from 1.
    pub cycle: usize,
    /// CPU time of all that is measured; absent when a counter could not be read.
    pub cpu_us: Option<f64>,
    /// Requests behind that time, those of the guard included.
    pub answered: u64,
    /// Behind the guard.
    pub latency: Histogram,
    /// Anonymous memory of all that is measured, mean of its samples.
    pub memory_bytes: Option<f64>,
}

/// The rounds of a run in which every arm has slices that count: an arm that broke would be held against nothing. As in a
/// report, excused cycles do not count.
pub fn rounds(run: &RunRecord) -> Vec<Round> {
    let excused = excused(run).cycles;
    let whole = |round: &Round| {
        let all = round.arms.len() == run.plan.arms.len();
        all && round.arms.iter().all(|arm| !arm.slices.is_empty())
    };
    let observed = |round: &RoundRecord| Round {
        guard_s: run.plan.guard_of(round.number),
        arms: round.arms.iter().map(|of| arm(round.number, of, &excused)).collect(),
    };
    run.rounds.iter().map(observed).filter(whole).collect()
}

fn arm(round: usize, arm: &ArmRecord, excused: &BTreeSet<CycleKey>) -> Arm {
    let counts = |slice: &&SliceRecord| {
        let cycle = CycleKey { round, size: arm.size, cycle: slice.cycle };
        arm.file.invalid.is_empty() && slice.invalid.is_empty() && !excused.contains(&cycle)
    };
    Arm::new(arm.arm.label(), arm.slices.iter().filter(counts).map(slice).collect())
}

fn slice(slice: &SliceRecord) -> Slice {
    let ends = slice.samples.first().and_then(cpu_ns).zip(slice.samples.last().and_then(cpu_ns));
    let snapshots = Owners::default().snapshots(&slice.samples);
    let memory_bytes = |snapshot| memory_of(snapshot, Owner::is_measured);
    let memory: Option<Vec<f64>> = snapshots.iter().map(memory_bytes).collect();
    let memory = memory.filter(|samples| !samples.is_empty());
    Slice {
        place: slice.place,
        cycle: slice.cycle,
        cpu_us: ends.map(|(begin, end)| end.saturating_sub(begin) as f64 / 1e3),
        answered: slice.report.good_in_all_phases(),
        latency: slice.report.measure.latency.clone(),
        memory_bytes: memory.map(|all| all.iter().sum::<f64>() / all.len() as f64),
    }
}
