//! Adds slices up to tallies: what one arm showed under one load in one round. Everything behind sees only tallies.
//!
//! A round gives one number of each arm (docs/method.md rule 3), however many slices it has. CPU time is that of whole
//! slices, from the counters before the first request to those after the last answer, over all requests that were
//! answered meanwhile: what falls into the guard or the drain has its requests there, too. Latency and throughput
//! leave the guard out. What does not count: arms that are invalid, both slices of a cycle of which one is, since the way
//! there and the way back belong together, and cycles that were excused.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use toll_load::{Histogram, LoadReport};

use super::accounts::CpuAccount;
use super::excuse::CycleKey;
use super::findings::Metric;
use super::owners::{Owner, Owners, Pods, Snapshot};
use crate::plan::{Arm, Plan};
use crate::store::{ArmRecord, RoundRecord, RunRecord, SliceRecord};

/// A variant and its tallies under one load: of the baseline those of both arms.
pub type Arms<'t> = (&'t str, Vec<&'t Tally<'t>>);

/// What one arm showed under one load in one round.
pub struct Tally<'a> {
    /// From 1.
    pub round: usize,
    pub arm: &'a Arm,
    /// Name of the load.
    pub load: &'a str,
    /// The slices that count, in order; at least one.
    pub slices: Vec<Slice<'a>>,
    /// What they add up to.
    pub sums: Sums,
    /// What the arm has beside its loads.
    pub stay: Rc<Stay>,
    /// Histograms are merged when they are first asked for: not all that is found needs them.
    latency: OnceCell<Histogram>,
    cycles: OnceCell<BTreeMap<usize, CycleFigures>>,
}

/// What an arm has beside its loads: the same in all its tallies of a round.
pub struct Stay {
    /// CPU without load.
    pub idle: Option<CpuAccount>,
    /// Ways through the sidecars of each owner as the proof of path counted them, over all loads.
    pub traversals: Vec<(Pods, u64)>,
    /// Requests that were sent meanwhile, over all loads.
    pub requests: u64,
}

pub struct Slice<'a> {
    /// As stored.
    pub record: &'a SliceRecord,
    /// Its samples by owner.
    pub snapshots: Vec<Snapshot>,
}

/// The figures of a cycle that single cycles can show.
pub type CycleFigures = BTreeMap<Metric, f64>;

/// What slices add up to.
#[derive(Default)]
pub struct Sums {
    /// Answers in the measured parts.
    pub completed: u64,
    /// Length of the measured parts, seconds.
    pub measured_s: f64,
    /// Good answers to all requests of the slices: failed requests share in the CPU time, and what they took is
    /// charged to these.
    pub answered: u64,
    /// CPU time of the whole slices.
    pub cpu: CpuAccount,
}

impl Sums {
    fn of(slices: &[&Slice<'_>]) -> Self {
        let mut sums = Self::default();
        slices.iter().for_each(|slice| sums.add(slice));
        sums
    }

    /// CPU of the owners that `wanted` picks at the rate of the measured parts, thousandths of a core: the counters'
    /// window also has a guard, a drain and waits in it, which differ by arm.
    pub fn millicores(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        Some(self.cpu_per_request(wanted)? * self.throughput()? / 1e3)
    }

    fn add(&mut self, slice: &Slice<'_>) {
        let report = &slice.record.report;
        let measure = &report.measure;
        self.completed += measure.completed;
        self.measured_s += super::counts::seconds(measure);
        self.answered += report.good_in_all_phases();
        self.cpu.add(slice.cpu());
    }

    /// Completed requests per second of the measured parts.
    pub fn throughput(&self) -> Option<f64> {
        (self.measured_s > 0.0).then(|| self.completed as f64 / self.measured_s)
    }

    /// CPU time of the owners that `wanted` picks per request, microseconds.
    pub fn cpu_per_request(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        let total_ns = self.cpu.total_ns(wanted)?;
        (self.answered > 0).then(|| total_ns / self.answered as f64 / 1e3)
    }
}

impl Slice<'_> {
    /// CPU time from the first sample to the last.
    pub fn cpu(&self) -> CpuAccount {
        match self.snapshots.as_slice() {
            [first, .., last] => CpuAccount::of(first, last),
            _ => CpuAccount::default(),
        }
    }
}

impl Tally<'_> {
    /// Latency from the intended instant, of the measured parts.
    pub fn latency(&self) -> &Histogram {
        self.latency.get_or_init(|| latency_of(&self.slices.iter().collect::<Vec<_>>()))
    }

    /// What the slices of each cycle show, by its number.
    pub fn cycles(&self) -> &BTreeMap<usize, CycleFigures> {
        self.cycles.get_or_init(|| {
            let mut by_cycle: BTreeMap<usize, Vec<&Slice<'_>>> = BTreeMap::new();
            for slice in &self.slices {
                by_cycle.entry(slice.record.cycle).or_default().push(slice);
            }
            by_cycle.into_iter().map(|(cycle, slices)| (cycle, figures(&slices))).collect()
        })
    }

    /// All samples by owner, slice after slice.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        self.slices.iter().flat_map(|slice| &slice.snapshots)
    }

    /// From the instant at which a request was sent, of the measured parts.
    pub fn service_time(&self) -> Histogram {
        let mut all = Histogram::new();
        self.slices.iter().for_each(|slice| all.merge(&slice.record.report.measure.service_time));
        all
    }
}

/// The slices of several tallies as one load.
pub fn report(tallies: &[&Tally<'_>]) -> Option<LoadReport> {
    let slices = tallies.iter().flat_map(|tally| &tally.slices);
    LoadReport::sum(&slices.map(|slice| slice.record.report.clone()).collect::<Vec<_>>())
}

/// The tallies of a run in order of its rounds; `keep` picks the loads.
pub fn tallies<'a>(
    run: &'a RunRecord,
    excused: &BTreeSet<CycleKey>,
    keep: impl Fn(&str) -> bool,
) -> Vec<Tally<'a>> {
    let mut tallies = Vec::new();
    for round in &run.rounds {
        for of in round.arms.iter().filter(|of| of.file.invalid.is_empty()) {
            tallies.extend(of_arm(&run.plan, round, of, excused, &keep));
        }
    }
    tallies
}

fn of_arm<'a>(
    plan: &Plan,
    round: &RoundRecord,
    of: &'a ArmRecord,
    excused: &BTreeSet<CycleKey>,
    keep: impl Fn(&str) -> bool,
) -> Vec<Tally<'a>> {
    let mut owners = Owners::of(plan, of);
    let stay = Rc::new(Stay::of(&mut owners, of));
    let is_excused =
        |cycle| excused.contains(&CycleKey { round: round.number, size: of.size, cycle });
    let invalid = of.slices.iter().filter(|slice| !slice.invalid.is_empty());
    let invalid: BTreeSet<(&str, usize)> = invalid.map(|s| (s.load.as_str(), s.cycle)).collect();
    let mut by_load: BTreeMap<&str, Vec<Slice<'a>>> = BTreeMap::new();
    let counts = |slice: &&SliceRecord| {
        !invalid.contains(&(slice.load.as_str(), slice.cycle)) && !is_excused(slice.cycle)
    };
    for record in of.slices.iter().filter(counts).filter(|slice| keep(&slice.load)) {
        let snapshots = owners.snapshots(&record.samples);
        by_load.entry(&record.load).or_default().push(Slice { record, snapshots });
    }
    let tally = |(load, slices): (&'a str, Vec<Slice<'a>>)| Tally {
        round: round.number,
        arm: &of.arm,
        load,
        sums: Sums::of(&slices.iter().collect::<Vec<_>>()),
        slices,
        stay: Rc::clone(&stay),
        latency: OnceCell::new(),
        cycles: OnceCell::new(),
    };
    by_load.into_iter().map(tally).collect()
}

fn latency_of(slices: &[&Slice<'_>]) -> Histogram {
    let mut all = Histogram::new();
    slices.iter().for_each(|slice| all.merge(&slice.record.report.measure.latency));
    all
}

fn figures(slices: &[&Slice<'_>]) -> CycleFigures {
    let (sums, latency) = (Sums::of(slices), latency_of(slices));
    let shown = |us: f64| (latency.count() > 0).then_some(us);
    let figures = [
        (Metric::LatencyP50, shown(latency.quantile_us(0.5))),
        (Metric::LatencyMean, shown(latency.mean_us())),
        (Metric::CpuPerRequest, sums.cpu_per_request(Owner::is_measured)),
        (Metric::Throughput, sums.throughput()),
    ];
    figures.into_iter().filter_map(|(metric, value)| Some((metric, value?))).collect()
}

impl Stay {
    fn of<'a>(owners: &mut Owners<'a>, of: &'a ArmRecord) -> Self {
        let idle = of.file.idle.as_ref().map(|ends| owners.snapshots(ends));
        Self {
            idle: idle.map(|ends| CpuAccount::of(&ends[0], &ends[1])),
            traversals: of.proof.as_ref().map_or_else(Vec::new, |proof| owners.traversals(proof)),
            requests: of.slices.iter().map(|slice| slice.report.sent_in_all_phases).sum(),
        }
    }
}
