//! Pairs and triples of the findings under the names that `report.json` has for them.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Cell, Estimate, Invalid, Metric, Owner};

/// A tuple as this type names it.
pub fn one<N, T, S>(tuple: &T, to: S) -> Result<S::Ok, S::Error>
where
    N: Serialize + for<'t> From<&'t T>,
    S: Serializer,
{
    N::from(tuple).serialize(to)
}

/// The same of one that may be absent.
pub fn maybe<N, T, S>(tuple: &Option<T>, to: S) -> Result<S::Ok, S::Error>
where
    N: Serialize + for<'t> From<&'t T>,
    S: Serializer,
{
    tuple.as_ref().map(N::from).serialize(to)
}

/// The same of a list.
pub fn list<N, T, S>(tuples: &[T], to: S) -> Result<S::Ok, S::Error>
where
    N: Serialize + for<'t> From<&'t T>,
    S: Serializer,
{
    to.collect_seq(tuples.iter().map(N::from))
}

/// A tuple from what this type names.
pub fn read_one<'de, N, T, D>(from: D) -> Result<T, D::Error>
where
    N: Deserialize<'de> + Into<T>,
    D: Deserializer<'de>,
{
    N::deserialize(from).map(Into::into)
}

/// The same of one that may be absent.
pub fn read_maybe<'de, N, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    N: Deserialize<'de> + Into<T>,
    D: Deserializer<'de>,
{
    Ok(Option::<N>::deserialize(from)?.map(Into::into))
}

/// The same of a list.
pub fn read_list<'de, N, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    N: Deserialize<'de> + Into<T>,
    D: Deserializer<'de>,
{
    Ok(Vec::<N>::deserialize(from)?.into_iter().map(Into::into).collect())
}

/// A type with named fields, from a tuple of theirs and back.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$of])* pub $field: $type),+ }

        impl From<&($($type),+)> for $name {
            fn from(tuple: &($($type),+)) -> Self {
                let ($($field),+) = tuple.clone();
                Self { $($field),+ }
            }
        }

        impl From<$name> for ($($type),+) {
            fn from($name { $($field),+ }: $name) -> Self {
                ($($field),+)
            }
        }
    };
}

named!(
    /// Some of all.
    OfAll { count: usize, all: usize }
);
named!(
    /// The smallest and the largest number of pods.
    Sizes { smallest: usize, largest: usize }
);
named!(
    /// Memory at an instant.
    MemoryPoint {
        /// Seconds since the measured phase began.
        at_s: f64,
        bytes: f64,
    }
);
named!(
    /// Heap at an instant.
    HeapPoint {
        /// Minutes under load.
        at_min: f64,
        mib: f64,
    }
);
named!(
    /// Answers up to a latency.
    Bar {
        /// Upper mark, seconds.
        up_to_s: f64,
        answers: u64,
    }
);
named!(
    /// A percentile.
    Percentile { percent: u8, latency_s: f64 }
);
named!(
    /// Answers with a status.
    StatusCount { status: u16, answers: u64 }
);
named!(
    /// Requests that failed in one way.
    ErrorCount { kind: String, requests: u64 }
);
named!(
    /// Bytes of bodies.
    Bytes {
        /// Of all.
        total: u64,
        /// Of one.
        mean: f64,
    }
);
named!(
    /// Both ends of an interval.
    Band { low: f64, high: f64 }
);
named!(
    /// A service and its pods.
    Replicas { service: String, replicas: usize }
);
named!(
    /// Service time at a rate.
    ServiceTimeAt {
        load: String,
        rate_per_s: f64,
        /// Median, microseconds.
        service_time_us: Estimate,
    }
);
named!(
    /// In the first and in the last slice.
    FirstAndLast { first: Estimate, last: Estimate }
);
named!(
    /// Why slices do not count, and how many.
    ReasonCount { reason: Invalid, slices: usize }
);
named!(
    /// A check of the load generator that did not hold, and in how many slices.
    CheckCount { check: String, slices: usize }
);
named!(
    /// A counter that could not be read.
    MissingReading { owner: Owner, reason: String, slices: usize }
);
named!(
    /// What a pod did not tell of itself.
    MissingMetric { pod: String, reason: String, slices: usize }
);
named!(
    /// What a service wrote into its log in a round.
    LogSize { service: String, bytes: u64 }
);
named!(
    /// What a service burns for a request.
    WorkOf { service: String, work_ns: u64 }
);

/// Latencies as vegeta sums them up, microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl From<&[f64; 7]> for Latencies {
    fn from(&[min, mean, p50, p90, p95, p99, max]: &[f64; 7]) -> Self {
        Self { min, mean, p50, p90, p95, p99, max }
    }
}

impl From<Latencies> for [f64; 7] {
    fn from(Latencies { min, mean, p50, p90, p95, p99, max }: Latencies) -> Self {
        [min, mean, p50, p90, p95, p99, max]
    }
}

/// A metric over rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricFigure {
    pub metric: Metric,
    /// `us`, `requests/s` or `bytes`.
    pub unit: String,
    #[serde(flatten)]
    pub figure: Estimate,
}

impl From<&(Metric, Estimate)> for MetricFigure {
    fn from((metric, figure): &(Metric, Estimate)) -> Self {
        Self { metric: *metric, unit: metric.unit().into(), figure: *figure }
    }
}

impl From<MetricFigure> for (Metric, Estimate) {
    fn from(MetricFigure { metric, figure, .. }: MetricFigure) -> Self {
        (metric, figure)
    }
}

/// Where a load lies in the study's sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellOfSweep {
    /// The load as the study names it.
    pub load: String,
    /// Arrivals per second, where the rate is swept.
    pub rate_per_s: Option<f64>,
    /// Share of the capacity, of a point of a curve, 0..1.
    pub share: Option<f64>,
    /// Connections of a closed loop, where they are swept.
    pub connections: Option<u32>,
    /// The service whose pods are swept, and as many.
    pub replicas: Option<Replicas>,
    /// Nodes, where they are swept.
    pub nodes: Option<usize>,
}

impl From<&Cell> for CellOfSweep {
    fn from(cell: &Cell) -> Self {
        Self {
            load: cell.load.clone(),
            rate_per_s: cell.rate_per_s,
            share: cell.share,
            connections: cell.connections,
            replicas: cell.replicas.as_ref().map(Replicas::from),
            nodes: cell.nodes,
        }
    }
}

impl From<CellOfSweep> for Cell {
    fn from(cell: CellOfSweep) -> Self {
        Self {
            load: cell.load,
            rate_per_s: cell.rate_per_s,
            share: cell.share,
            connections: cell.connections,
            replicas: cell.replicas.map(Into::into),
            nodes: cell.nodes,
        }
    }
}
