//! What the command and toll's own pods say to each other: JSON over HTTP, each request with the run's token.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sample::{HostSample, MemorySample, Reading};

/// Where each of toll's own pods listens.
pub(crate) const PORT: u16 = 7070;

/// The variable that holds the run's token.
pub(crate) const TOKEN_VARIABLE: &str = "TOLL_TOKEN";

/// A pod's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// Nanoseconds since 1970 (UTC).
    pub unix_ns: u64,
}

/// How another pod's clock stands against the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offset {
    /// What is added to the driver's clock to get the pod's, nanoseconds.
    pub offset_ns: i64,
    /// Round trip of the exchange that was the shortest, nanoseconds: the offset is off by at most half of it.
    pub round_trip_ns: u64,
}

/// Lines of the load engine, from one number on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lines {
    /// In order.
    pub lines: Vec<String>,
    /// Number of the line after the last of them.
    pub next: usize,
    /// How the engine ended, once it has.
    pub ended: Option<EngineEnd>,
}

/// How a load engine ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineEnd {
    /// Whether its status was 0.
    pub success: bool,
    /// The status in words.
    pub status: String,
    /// The last lines that it wrote to stderr.
    pub log: Vec<String>,
}

/// A run of the service program beside serving: a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// What that brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// Whether its status was 0.
    pub success: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// The containers of a node whose counters are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watch {
    /// Their ids, without the runtime's name.
    pub containers: Vec<String>,
}

/// Counters of a node at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NodeCounters {
    /// `CLOCK_MONOTONIC` of the node before the first read, nanoseconds.
    pub at_ns: u64,
    /// How long the reads took, nanoseconds.
    pub took_ns: u64,
    /// The node as a whole.
    pub host: HostSample,
    /// By container id.
    pub containers: BTreeMap<String, ContainerCounters>,
}

/// Counters of one container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContainerCounters {
    /// CPU time since the container began (user + system), nanoseconds.
    pub cpu_ns: Reading<u64>,
    /// Memory now and at its highest.
    pub memory: MemorySample,
}

/// The namespaces that the driver removes when the command is not heard any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Namespaces {
    /// Their names.
    pub names: Vec<String>,
}
