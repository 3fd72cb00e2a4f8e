//! What a run's directory holds, as read back.

use serde::{Deserialize, Serialize};
use toll_lab::{Isolation, Proof, Sample};
use toll_load::LoadReport;

use crate::plan::{Plan, PlannedTrial};

/// Version of `trial.json`.
pub const TRIAL_FORMAT: u32 = 1;

/// All of a run.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// Name of the directory.
    pub name: String,
    /// What was planned.
    pub plan: Plan,
    /// What the machine was.
    pub host: HostFacts,
    /// The knees that were searched for.
    pub knees: Vec<KneeRecord>,
    /// The trials that were measured to their end, in the order of the plan.
    pub trials: Vec<TrialRecord>,
}

impl RunRecord {
    /// The lowest knee: what relative rates refer to.
    pub fn lowest_knee(&self) -> Option<&KneeRecord> {
        KneeRecord::lowest(&self.knees)
    }
}

/// What the machine and the tools were, as label and value in the order to print.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Labels and values.
    pub facts: Vec<(String, String)>,
    /// Cores that toll and what it starts may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// What the lab cannot show here, one sentence each.
    pub lacks: Vec<String>,
    /// How pods were kept apart; `--resume` goes on in the same way.
    pub isolation: Option<Isolation>,
    /// Whether the lab's processes ran under SCHED_RR.
    pub realtime: bool,
    /// What was another when the run was resumed, one sentence each.
    pub changes: Vec<String>,
}

impl HostFacts {
    /// Notes what differs on the machine on which the run goes on.
    pub fn resume_on(&mut self, now: &Self) {
        for (label, before) in self.facts.iter().filter(|(label, _)| label != "started") {
            let after =
                now.facts.iter().find(|(other, _)| other == label).map_or("nothing", |(_, v)| v);
            if after != before {
                self.changes
                    .push(format!("resumed with another {label}: {after}; before {before}"));
            }
        }
    }
}

/// The knee of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KneeRecord {
    /// The variant.
    pub variant: String,
    /// The highest arrival rate that it carried, per second.
    pub rate_per_s: f64,
    /// Every rate that was tried, and whether it was carried.
    pub tried: Vec<(f64, bool)>,
}

impl KneeRecord {
    /// The knee of the slowest variant.
    pub fn lowest(knees: &[Self]) -> Option<&Self> {
        knees.iter().min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
    }
}

/// All of one trial.
#[derive(Debug, Clone)]
pub struct TrialRecord {
    /// As planned.
    pub trial: PlannedTrial,
    /// Whether it counts.
    pub verdict: TrialVerdict,
    /// What the load engine reported; absent when the trial broke before.
    pub load: Option<LoadReport>,
    /// The proof of path; absent when the trial broke before.
    pub proof: Option<Proof>,
    /// In order.
    pub samples: Vec<MarkedSample>,
    /// The discarded run before it, when its services were fresh and the plan has one.
    pub settled: Option<SettleRecord>,
}

/// The discarded run that brought fresh services to their steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettleRecord {
    /// Slice after slice.
    pub slices: Vec<SettleSlice>,
    /// Whether throughput and CPU per request were stable at its end.
    pub stable: bool,
    /// How long the services then rested, until they were quiet or the plan's time was up, seconds.
    #[serde(default)]
    pub rest_s: f64,
}

/// One slice of a discarded run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SettleSlice {
    /// Its end, seconds since the discarded run began.
    pub at_s: f64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// CPU time of all components but the load generator and toll per completed request, microseconds; absent
    /// when a counter could not be read.
    pub cpu_per_request_us: Option<f64>,
    /// Median latency, microseconds.
    pub p50_us: f64,
}

/// Whether a trial counts, and how quiet the machine was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialVerdict {
    /// Version of this format.
    pub version: u32,
    /// Why it does not count; empty when it does.
    pub invalid: Vec<String>,
    /// Arrivals per second that were planned; absent in a closed loop.
    pub rate_per_s: Option<f64>,
    /// Most virtual users at work, scaled to the machine; absent in other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// What had ended since the trial before, so that this one began on a fresh start; absent when nothing had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_anew: Option<String>,
    /// The machine's noise.
    pub noise: Noise,
}

/// What else the machine did during a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Time of the calibration loop just before the trial, nanoseconds.
    pub calibration_ns: u64,
    /// Share of all cores' time that the hypervisor gave to others during the load, 0..1.
    pub steal: f64,
    /// Mean number of tasks that ran or waited for a core during the load.
    pub runnable: f64,
}

/// A sample and why it was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkedSample {
    /// Why.
    pub mark: Mark,
    /// The counters.
    pub sample: Sample,
}

/// Why a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Up and settled, no load yet.
    IdleBegin,
    /// The end of the idle window.
    IdleEnd,
    /// The measured phase begins.
    MeasureBegin,
    /// The measured phase ends.
    MeasureEnd,
    /// In between, for the series.
    Tick,
}
