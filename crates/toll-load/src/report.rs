//! What the engine says: events while it runs, a report at the end.

use std::collections::BTreeMap;
use std::fmt;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

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
        /// Share of the phase that is over, 0..=1, when it can be told.
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

/// An HDR histogram of nanoseconds (3 significant digits), in JSON as the base64 of its V2 form.
///
/// It grows with the largest value, at most some twenty times, from 16 KB to 260: an engine has dozens of them, and
/// most stay small.
#[derive(Clone)]
pub struct Histogram(pub hdrhistogram::Histogram<u64>);

/// Two are equal when they count the same, whatever they have room for.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let counts = |histogram: &Histogram| -> Vec<(u64, u64)> {
            let recorded = histogram.0.iter_recorded();
            recorded.map(|v| (v.value_iterated_to(), v.count_at_value())).collect()
        };
        counts(self) == counts(other)
    }
}

impl Histogram {
    /// Width of a bucket as a share of its value: three significant digits.
    pub const RESOLUTION: f64 = 1e-3;

    /// Values above this, one hour, are recorded as this.
    const HIGHEST_NS: u64 = 3_600_000_000_000;

    /// An empty histogram, for values from a nanosecond to an hour.
    pub fn new() -> Histogram {
        let mut inner = hdrhistogram::Histogram::new_with_bounds(1, 2, 3)
            .expect("the bounds and the digits are in the range of the format");
        inner.auto(true);
        Histogram(inner)
    }

    /// Counts one value, nanoseconds.
    pub fn record_ns(&mut self, value_ns: u64) {
        self.record_n_ns(value_ns, 1);
    }

    /// Counts the same value so many times.
    pub fn record_n_ns(&mut self, value_ns: u64, count: u64) {
        let value_ns = value_ns.min(Self::HIGHEST_NS);
        self.0.record_n(value_ns, count).expect("a histogram that grows holds any value");
    }

    /// Adds the other's counts to these; the result is what one histogram of all values would be.
    pub fn merge(&mut self, other: &Histogram) {
        // A histogram that came in as JSON may have been made for a wider range.
        self.0.auto(true);
        self.0.add(&other.0).expect("a histogram that grows holds any other");
    }

    /// Takes out values that were counted here, and counts others instead.
    pub(crate) fn replace(&mut self, counted: &Histogram, instead: &Histogram) {
        self.0.subtract(&counted.0).expect("only what was counted is taken out");
        self.merge(instead);
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value that the share `quantile` (0..=1) of all values does not exceed, microseconds. Zero when empty.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The same, read between the edges of its bucket by how many of the bucket's values lie below it: histograms that
    /// differ by few values differ by a part of a bucket. Microseconds; zero when empty.
    pub fn interpolated_quantile_us(&self, quantile: f64) -> f64 {
        let within = self.0.value_at_quantile(quantile);
        let [low, next] = [self.0.lowest_equivalent(within), self.0.next_non_equivalent(within)];
        let in_bucket = self.0.count_at(within);
        if in_bucket == 0 {
            return 0.0;
        }
        let below = if low > 0 { self.0.count_between(0, low - 1) } else { 0 };
        let share = (quantile * self.count() as f64 - below as f64) / in_bucket as f64;
        (low as f64 + share.clamp(0.0, 1.0) * (next - low) as f64) / 1e3
    }

    /// The arithmetic mean, microseconds. Zero when empty.
    pub fn mean_us(&self) -> f64 {
        self.0.mean() / 1e3
    }

    /// The standard deviation, microseconds. Zero when empty.
    pub fn deviation_us(&self) -> f64 {
        self.0.stdev() / 1e3
    }

    /// The smallest value, microseconds. Zero when empty.
    pub fn min_us(&self) -> f64 {
        self.0.min() as f64 / 1e3
    }

    /// The largest value, microseconds. Zero when empty.
    pub fn max_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }
}

/// Counts and the quantiles people ask for first; the buckets would fill pages.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50_us", &self.quantile_us(0.5))
            .field("p99_us", &self.quantile_us(0.99))
            .field("max_us", &self.max_us())
            .finish()
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).map_err(ser::Error::custom)?;
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = BASE64_STANDARD.decode(text).map_err(de::Error::custom)?;
        let inner = hdrhistogram::serialization::Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(de::Error::custom)?;
        Ok(Histogram(inner))
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record_ns(*v));
        histogram
    }

    #[test]
    fn quantiles_come_in_microseconds() {
        let histogram = histogram(&(1..=1000).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
        assert!((histogram.quantile_us(0.99) / 990_000.0 - 1.0).abs() < 0.001);
        assert!((histogram.mean_us() / 500_500.0 - 1.0).abs() < 0.001);
        assert!((histogram.max_us() / 1_000_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn an_empty_histogram_reads_as_zero() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.quantile_us(0.5), empty.mean_us()), (0, 0.0, 0.0));
    }

    #[test]
    fn a_value_beyond_an_hour_is_recorded_as_an_hour() {
        let hour_us = 3.6e9;
        assert!((histogram(&[u64::MAX]).max_us() / hour_us - 1.0).abs() < 0.001);
    }

    #[test]
    fn text_that_is_no_histogram_is_refused() {
        assert!(serde_json::from_str::<Histogram>("\"%%%\"").is_err());
        assert!(serde_json::from_str::<Histogram>("\"AAAA\"").is_err());
    }

    proptest! {
        #[test]
        fn a_histogram_survives_json(values in prop::collection::vec(0_u64..10_000_000_000, 0..200)) {
            let before = histogram(&values);
            let json = serde_json::to_string(&before).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), before);
        }

        #[test]
        fn two_halves_merge_to_the_whole(
            values in prop::collection::vec(0_u64..10_000_000_000, 0..200),
            cut in 0_usize..200,
        ) {
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = histogram(left);
            merged.merge(&histogram(right));
            prop_assert_eq!(merged, histogram(&values));
        }
    }
}
