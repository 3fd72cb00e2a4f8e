//! What a run's directory holds, as read back.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_lab::artifacts::Artifact;
use toll_lab::{CutLog, Isolation, Proof, Sample};
use toll_load::LoadReport;

use crate::plan::{Arm, Plan};

/// Version of `round.json`.
pub const ROUND_FORMAT: u32 = 3;

/// All of a run.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// Name of the directory.
    pub name: String,
    /// What was planned.
    pub plan: Plan,
    /// What the machine was.
    pub host: HostFacts,
    /// What each variant carries flat out, measured in the first round when a rate refers to it.
    pub capacities: Vec<CapacityRecord>,
    /// The rounds that were measured to their end.
    pub rounds: Vec<RoundRecord>,
}

impl RunRecord {
    /// The capacity of the slowest variant: what relative rates refer to.
    pub fn lowest_capacity(&self) -> Option<&CapacityRecord> {
        CapacityRecord::lowest(&self.capacities)
    }
}

/// What the machine and the tools were, as label and value in the order to print.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Labels and values.
    pub facts: Vec<(String, String)>,
    /// The programs and jars that toll drives, each with its version and where it is from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<(Artifact, String)>,
    /// Cores that toll and what it starts may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// The files of the user's own programs, and the SHA-256 of what was in them; `--resume` goes on with the same only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub programs: BTreeMap<PathBuf, String>,
    /// What the lab cannot show here, one sentence each.
    pub lacks: Vec<String>,
    /// How pods were kept apart; `--resume` goes on in the same way.
    pub isolation: Option<Isolation>,
    /// How a run in a cluster was made; `--resume` goes on in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterChoice>,
    /// Whether the lab's processes ran under SCHED_RR.
    pub realtime: bool,
    /// What was another when the run was resumed, one sentence each.
    pub changes: Vec<String>,
}

/// What a user chooses of a run in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterChoice {
    /// The image of all pods.
    pub image: String,
    /// Whether pods that mount the nodes' counters read them.
    pub exact_cpu: bool,
}

impl HostFacts {
    /// Version and origin of an artifact; none where the run needs none.
    pub fn artifact(&self, artifact: Artifact) -> Option<&str> {
        let found = self.artifacts.iter().find(|(of, _)| *of == artifact);
        found.map(|(_, version)| version.as_str())
    }

    fn labelled(&self) -> impl Iterator<Item = (&str, &str)> {
        let facts = self.facts.iter().map(|(label, value)| (label.as_str(), value.as_str()));
        facts.chain(self.artifacts.iter().map(|(of, version)| (of.label(), version.as_str())))
    }

    /// The first of the user's programs that is another now, or is not there any more. Of a run that was begun before
    /// programs were noted nothing is known.
    pub fn changed_program<'a>(&'a self, now: &Self) -> Option<&'a Path> {
        let mut files = self.programs.iter();
        let changed = files.find(|(file, hash)| now.programs.get(*file) != Some(*hash));
        changed.map(|(file, _)| file.as_path())
    }

    /// Notes what differs on the machine on which the run goes on.
    pub fn resume_on(&mut self, now: &Self) {
        let mut changes = Vec::new();
        for (label, before) in self.labelled().filter(|(label, _)| *label != "started") {
            let after =
                now.labelled().find(|(other, _)| *other == label).map_or("nothing", |(_, v)| v);
            if after != before {
                changes.push(format!("resumed with another {label}: {after}; before {before}"));
            }
        }
        self.changes.extend(changes);
    }
}

/// What one variant carries flat out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityRecord {
    pub variant: String,
    /// Completed requests per second of a closed loop, over all its slices.
    pub per_s: f64,
    /// The same of each slice.
    pub slices: Vec<f64>,
}

impl CapacityRecord {
    /// The capacity of the slowest variant.
    pub fn lowest(capacities: &[Self]) -> Option<&Self> {
        capacities.iter().min_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }
}

/// Every arm brought up once, side by side, loaded, taken down.
#[derive(Debug, Clone)]
pub struct RoundRecord {
    /// From 1.
    pub number: usize,
    /// How long it took, seconds.
    pub wall_s: f64,
    /// In the order in which they came up; in a sweep of sizes an arm once for each size.
    pub arms: Vec<ArmRecord>,
}

/// `round.json`: a round with it was measured to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundFile {
    /// Version of this format.
    pub version: u32,
    /// How long it took, seconds.
    pub wall_s: f64,
}

/// One arm in one round.
#[derive(Debug, Clone)]
pub struct ArmRecord {
    pub arm: Arm,
    /// Which of the plan's sizes, from 0.
    pub size: usize,
    /// How it came up and ended.
    pub file: ArmFile,
    /// The proof of path over all its slices; absent when it broke before.
    pub proof: Option<Proof>,
    /// In order.
    pub slices: Vec<SliceRecord>,
}

/// `arm.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmFile {
    /// Why none of its slices counts: it broke, or its path was not proven.
    pub invalid: Vec<Invalid>,
    /// The discarded load on the fresh services.
    pub settled: Option<SettleRecord>,
    /// Counters at the ends of the window without load.
    pub idle: Option<[Sample; 2]>,
    /// Components of whose logs only the begin and the end are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_logs: Vec<CutLog>,
}

/// Why a slice, or an arm with all its slices, does not count.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    thiserror::Error,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Invalid {
    /// A check of the load engine does not hold.
    #[error("{name}: {seen} (should be {bound})")]
    Check {
        /// Short name of the check.
        name: String,
        /// What was seen, in words with units.
        seen: String,
        /// What would have been right, in words with units.
        bound: String,
    },
    /// A claim about the path does not hold.
    #[error("path not proven: {claim}: expected {expected}, saw {seen}")]
    Claim {
        claim: String,
        /// What was expected.
        expected: String,
        /// What was seen.
        seen: String,
    },
    /// Nothing is claimed of the path.
    #[error("path not proven: no claim was made")]
    NoClaim,
    /// The load pods did not begin together any more: their clocks moved against each other.
    #[error(
        "the load pods' clocks moved by {by_ms} ms against each other (should be at most {most_ms} ms)"
    )]
    ClocksMoved {
        /// At the most, milliseconds.
        by_ms: u64,
        /// What would have been right, milliseconds.
        most_ms: u64,
    },
    /// More requests failed than the load tolerates.
    #[error("{load}: {failing}")]
    Failures {
        load: String,
        /// What was seen.
        failing: Failing,
    },
    /// Something broke; older runs have all their reasons as such a text.
    #[error("{0}")]
    #[serde(untagged)]
    Broke(String),
}

/// Requests of which more failed than may.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Failing {
    pub failed: u64,
    pub sent: u64,
    /// How they failed, in words, and how many of them.
    pub how: Vec<(String, u64)>,
    /// Failed requests that would have been borne.
    pub most: u64,
    /// What a service on the path logged last, when one logs anything.
    pub log: Option<LastLines>,
}

/// The end of a service's log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LastLines {
    pub service: String,
    pub lines: Vec<String>,
}

impl fmt::Display for Failing {
    /// `41 of 400 requests failed (at most 4 may): 39 x status 500, 2 x timeout`, and what was logged last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how: Vec<String> = self.how.iter().map(|(how, n)| format!("{n} x {how}")).collect();
        let Self { failed, sent, most, .. } = self;
        write!(f, "{failed} of {sent} requests failed (at most {most} may): {}", how.join(", "))?;
        match &self.log {
            Some(LastLines { service, lines }) => {
                write!(f, "; the last lines of {service}:\n  {}", lines.join("\n  "))
            }
            None => Ok(()),
        }
    }
}

impl From<&str> for Invalid {
    fn from(why: &str) -> Self {
        Self::Broke(why.into())
    }
}

/// The discarded load that brought fresh services to their steady state.
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

/// One slice of the discarded load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SettleSlice {
    /// Its end, seconds since settling began.
    pub at_s: f64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// CPU time of all components but the load generator and toll per completed request, microseconds; absent
    /// when a counter could not be read.
    pub cpu_per_request_us: Option<f64>,
    /// Median latency, microseconds.
    pub p50_us: f64,
}

/// One arm under one load for a short time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceRecord {
    /// Name of the load.
    pub load: String,
    /// The cycle of its round, from 1.
    pub cycle: usize,
    /// Position among all slices of the round and size, from 0.
    pub place: usize,
    /// Arrivals per second that were planned; absent in a closed loop.
    pub rate_per_s: Option<f64>,
    /// Most virtual users at work, scaled to the machine; absent in other loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// What the load engine reported: its warm-up is the guard.
    pub report: LoadReport,
    /// Counters, the first before the first request was sent, the last after the last was answered. These two have
    /// what the pods tell of themselves.
    pub samples: Vec<Sample>,
    /// Why it does not count; empty when it does.
    pub invalid: Vec<Invalid>,
}
