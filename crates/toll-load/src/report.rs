//! What the engine says: events while it runs, a report at the end.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::histogram::Histogram;

/// Version of [`LoadReport`].
pub(crate) const REPORT_VERSION: u32 = 2;

/// The parts of a slice's load, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Recorded and stored, never mixed into the result.
    WarmUp,
    /// What the result is made of.
    Measure,
    /// Nothing falls due any more; requests in flight, or waiting for a connection, are waited for.
    Drain,
}

/// One line of the engine's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LoadEvent {
    /// A phase began.
    Phase {
        /// Which one.
        phase: Phase,
        /// `CLOCK_MONOTONIC`, nanoseconds.
        at_ns: u64,
    },
    /// About four times a second.
    Progress {
        /// The phase under way.
        phase: Phase,
        /// Seconds since the phase began.
        elapsed_s: f64,
        /// Share of the phase that is over, 0..=1, when it is known.
        share: Option<f64>,
        /// Completed requests per second since the last event.
        throughput_per_s: f64,
        /// Median latency since the last event, microseconds.
        p50_us: f64,
        /// 99th percentile of latency since the last event, microseconds.
        p99_us: f64,
        /// Errors since the phase began.
        errors: u64,
    },
    /// The last event of a plan.
    Report {
        /// The whole result.
        report: Box<LoadReport>,
    },
    /// The load could not be run at all; the process ends with a status other than zero.
    Failed {
        /// What went wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
}

/// The result of one [`crate::LoadPlan`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Version of this format.
    pub version: u32,
    /// Recorded and stored, never mixed into `measure`.
    pub warm_up: PhaseReport,
    /// False when warm-up ended at its limit and its series was still moving, or too short to tell.
    pub warm_up_stable: bool,
    /// The measured phase (requests released in it, their completions included).
    pub measure: PhaseReport,
    /// Requests written to a socket in all phases together: what a proxy on the path must have counted.
    pub sent_in_all_phases: u64,
    /// The same by target, in the order of the plan.
    #[serde(default)]
    pub targets: Vec<TargetReport>,
    /// Connections opened in all phases together.
    pub connections_opened: u64,
    /// Time that the hosts' names took to resolve, once before the load, microseconds; 0 for addresses.
    pub resolve_us: f64,
    /// Event loops of the engine, or of all engines of a merged report.
    pub threads: u32,
    /// Samples that nobody took in time.
    pub samples_lost: u64,
    /// When the measured phase began, nanoseconds since 1970 (UTC).
    pub measure_begin_unix_ns: u64,
    /// The engine's self-checks (send lag, own CPU, Little's law, connection count, schedule).
    pub checks: Vec<Check>,
}

/// Requests of one target in all phases together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetReport {
    /// Requests written to a socket.
    pub sent: u64,
    /// Complete answers with a status below 300.
    pub succeeded: u64,
}

/// One self-check of the instrument.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Short name, `send-lag`, `own-cpu`, `littles-law`, `connections`, `schedule`, `errors`.
    pub name: String,
    /// Whether the load is fit to measure with.
    pub holds: bool,
    /// What was seen, in words with units.
    pub seen: String,
    /// What would have been right, in words with units.
    pub bound: String,
    /// What to change when it does not hold.
    pub advice: String,
}

impl Check {
    /// Name of the only check that is of the services: all others are of the load generator.
    pub const ERRORS: &str = "errors";
    /// Name of the check that all requests that fell due were sent.
    pub const SCHEDULE: &str = "schedule";
    /// Name of the check that requests were sent in time.
    pub const SEND_LAG: &str = "send-lag";
}

/// Kinds of failed requests. An HTTP status is not an error of the transport; statuses are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The connection could not be made.
    Connect,
    /// The peer reset the connection while an answer was due.
    Reset,
    /// The peer closed the connection before the answer was complete.
    Closed,
    /// No complete answer within the timeout.
    Timeout,
    /// The answer was not HTTP as this engine reads it.
    Garbage,
    /// The answer was larger than the engine accepts.
    Oversize,
    /// The TLS handshake failed after a connection had been made.
    Tls,
}

impl ErrorKind {
    /// The name that stands in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Reset => "reset",
            ErrorKind::Closed => "closed",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Garbage => "garbage",
            ErrorKind::Oversize => "oversize",
            ErrorKind::Tls => "tls",
        }
    }
}

/// Numbers of one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub begin_ns: u64,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub end_ns: u64,
    /// Requests that the schedule called for (closed loop: released).
    pub scheduled: u64,
    /// Requests written to a socket.
    pub sent: u64,
    /// Complete answers to the phase's requests, those that came in after its end included.
    pub done: u64,
    /// Complete answers that came in between the phase's begin and end, whichever phase had sent the request:
    /// what throughput is made of. An open loop that the service cannot carry shows here, not in `done`.
    pub completed: u64,
    /// Scheduled but never sent: a schedule that was not kept.
    pub unsent: u64,
    /// Sent, and in flight when the load was stopped early: neither done nor failed.
    #[serde(default)]
    pub unanswered: u64,
    /// Sent late because every connection allowed was busy.
    pub waited_for_connection: u64,
    /// Connections that carried at least one request, a replacement counting as the one it replaced.
    pub connections_used: u64,
    /// Complete answers by status code.
    #[serde(with = "status_keys")]
    pub statuses: BTreeMap<u16, u64>,
    /// The same of those that their target does not expect.
    #[serde(with = "status_keys", default)]
    pub unexpected: BTreeMap<u16, u64>,
    /// Complete gRPC answers by `grpc-status`.
    #[serde(with = "status_keys", default)]
    pub grpc_statuses: BTreeMap<u16, u64>,
    /// Failed requests by kind; for `connect` and `tls`, failed attempts (the request waits for another
    /// connection).
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Bytes written, heads included; what TLS adds is not.
    pub bytes_out: u64,
    /// Bytes read, heads included; what TLS adds is not.
    pub bytes_in: u64,
    /// Bytes of request bodies.
    pub body_bytes_out: u64,
    /// Bytes of answers' bodies.
    pub body_bytes_in: u64,
    /// done - intended, nanoseconds.
    pub latency: Histogram,
    /// done - sent, nanoseconds.
    pub service_time: Histogram,
    /// sent - intended, nanoseconds.
    pub send_lag: Histogram,
    /// Where the time of requests and connections went.
    pub steps: Steps,
    /// Iterations of the clients of a closed loop that ended in the phase: their durations, nanoseconds, think
    /// time included. Empty when an iteration is one request and no pause.
    pub iterations: Histogram,
    /// Fewest and most clients (closed loop) that were at work at a time.
    pub clients: (u64, u64),
    /// The stages of the profile, in order; empty when it has only one.
    pub stages: Vec<StageReport>,
    /// Four times a second, in order; empty in a merged report or a sum, since quantiles cannot be added.
    pub series: Vec<SeriesPoint>,
    /// CPU time (user + system) of the event loops in this phase, nanoseconds.
    pub cpu_ns: u64,
    /// Time that the event loops spent looking for events in vain, nanoseconds: part of `cpu_ns` that
    /// the load did not need.
    #[serde(default)]
    pub spun_ns: u64,
    /// Mean requests in flight, sampled at instants independent of completions.
    pub mean_in_flight: f64,
    /// Time that the phase's requests were in flight after its end, summed over them, nanoseconds.
    #[serde(default)]
    pub after_end_ns: u64,
    /// Time that requests of the phase before were in flight in this one, summed over them, nanoseconds.
    #[serde(default)]
    pub inherited_ns: u64,
    /// Involuntary context switches of the engine's process in this phase.
    pub involuntary_switches: u64,
}

/// Where the time went, nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// TCP (or Unix) handshake of each connection opened.
    pub connect: Histogram,
    /// TLS handshake of each connection opened.
    pub tls: Histogram,
    /// Handing a request to the kernel; of HTTP/1.1, one request in sixteen is timed.
    pub write: Histogram,
    /// sent - first byte of the answer, of each request.
    pub wait: Histogram,
    /// First - last byte of the answer, of each request.
    pub read: Histogram,
}

/// One request of the measured phase, for outputs that list them all. Instants are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Number of the plan's target.
    pub target: u32,
    /// Closed loop: the client. Open loop: the connection's number. From zero.
    pub client: u32,
    /// When it was due.
    pub intended_ns: u64,
    /// When it was handed to the kernel.
    pub sent_ns: u64,
    /// When the first byte of the answer had come; `done_ns` when none came.
    pub first_byte_ns: u64,
    /// When the answer was complete, or the request given up.
    pub done_ns: u64,
    /// Time that its connection took to be made (TCP and TLS), when it was the first on it; else 0.
    pub connect_ns: u64,
    /// Bytes written for it.
    pub bytes_out: u32,
    /// Bytes of the answer's body.
    pub body_bytes_in: u32,
    /// The status code, or the kind of failure.
    pub outcome: Result<u16, ErrorKind>,
}

/// One stage of a profile: requests that fell due in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// Begin, seconds since the phase began.
    pub begin_s: f64,
    /// End, seconds since the phase began.
    pub end_s: f64,
    /// Clients or arrivals per second at its begin.
    pub from: f64,
    /// Clients or arrivals per second at its end.
    pub to: f64,
    /// Complete answers.
    pub done: u64,
    /// Failed requests.
    pub failed: u64,
    /// done - intended, nanoseconds.
    pub latency: Histogram,
}

/// One interval of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// End of the interval, seconds since the phase began.
    pub at_s: f64,
    /// Completed per second in the interval.
    pub throughput_per_s: f64,
    /// Median latency in the interval, microseconds.
    pub p50_us: f64,
    /// 99th percentile of latency in the interval, microseconds.
    pub p99_us: f64,
}

/// Status codes as text: inside a tagged enum serde reads map keys only as text, numbers are refused.
mod status_keys {
    use super::*;

    pub fn serialize<S: Serializer>(map: &BTreeMap<u16, u64>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(map.iter().map(|(status, count)| (status.to_string(), count)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u16, u64>, D::Error> {
        let map = BTreeMap::<String, u64>::deserialize(from)?;
        map.into_iter()
            .map(|(status, count)| Ok((status.parse().map_err(de::Error::custom)?, count)))
            .collect()
    }
}
