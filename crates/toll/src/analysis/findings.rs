//! What a run found: the numbers that every report shows. Plain data, nothing rounded, stable order.

mod caveat;
mod named;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::owners::{Owner, Pods, Role};
pub use crate::plan::{
    Cell, Derived, Metric, PlannedRate, PlannedUsers, Release, SliceLength, Traffic,
};
pub use crate::store::Invalid;
pub use caveat::*;
pub use toll_lab::artifacts::Artifact;
pub use toll_lab::{Claim, LeftOut, Topic};

/// Everything a report needs; `report.json` is this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Version of this format.
    pub version: u32,
    /// Name of the study.
    pub study: String,
    /// The question the study asks.
    pub question: String,
    /// Name of the run's directory.
    pub run: String,
    /// The variant the others are held against.
    pub baseline: String,
    /// In the order of the study.
    pub variants: Vec<VariantFacts>,
    /// The metrics that get a verdict, in the order of the study.
    pub headline: Vec<Metric>,
    /// The load under which they get it: the first at an equal rate, of a sweep its last cell; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline_load: Option<String>,
    /// How much was measured.
    pub extent: Extent,
    /// One per load of the study; equal-rate views first. Those of a curve are not among them.
    pub loads: Vec<LoadFindings>,
    /// Where the application is going to run, when the study says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// What each variant carries flat out, when a rate refers to it.
    pub capacities: Vec<Capacity>,
    /// Latency and CPU per request against the rate, when the run has a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Where published figures come from, when the study has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Publication>,
    /// One per variant that ran.
    pub proofs: Vec<ProofSummary>,
    /// The discarded runs on fresh services, one per variant that had some.
    #[serde(default)]
    pub settled: Vec<Settled>,
    /// What a span costs, one per variant with an agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub span_costs: Vec<SpanCosts>,
    /// Whether the heap of a JVM grew, one per JVM and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_trends: Vec<HeapTrend>,
    /// Memory, CPU and added latency by pods and rate, where the study sweeps replicas; one per quantity and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scalings: Vec<Scaling>,
    /// Where the lines of two variants cross; a pair whose slopes cannot be told apart has no entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crossings: Vec<Crossing>,
    /// What a closed loop shows over its number of connections, one per load that sweeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staircases: Vec<Staircase>,
    /// Service time against the rate, one per size of the application that had loads of several rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_times: Vec<ServiceTimes>,
    /// Failed requests under loads that tolerate some, one per such load and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureShare>,
    /// Calls of the user's programs whose number is observed, one per call and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallRate>,
    /// Whatever weakens the result, most important first.
    pub caveats: Vec<Caveat>,
    /// What ran, round by round and arm by arm.
    pub rounds: Vec<RoundLine>,
    /// What the machine and the run were, in the order to print.
    pub facts: Vec<Fact>,
}

/// How much was measured, and how long that took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Rounds that were measured.
    pub rounds: usize,
    /// Rounds that were planned; absent where time or width ends the run.
    pub planned: Option<usize>,
    /// From the first bring-up to the last take-down of the rounds measured, seconds.
    pub wall_s: f64,
    /// Slices that count, and all of them.
    #[serde(
        serialize_with = "named::one::<named::OfAll, _, _>",
        deserialize_with = "named::read_one::<named::OfAll, _, _>"
    )]
    #[schemars(with = "named::OfAll")]
    pub slices: (usize, usize),
    /// Cycles that were excused for a disturbance of the machine, and all of them.
    #[serde(
        serialize_with = "named::one::<named::OfAll, _, _>",
        deserialize_with = "named::read_one::<named::OfAll, _, _>"
    )]
    #[schemars(with = "named::OfAll")]
    pub excused: (usize, usize),
    /// Arms of rounds whose path was proven, and all of them.
    #[serde(
        serialize_with = "named::one::<named::OfAll, _, _>",
        deserialize_with = "named::read_one::<named::OfAll, _, _>"
    )]
    #[schemars(with = "named::OfAll")]
    pub proven: (usize, usize),
    /// The largest share of all cores' time that the hypervisor took in a round, 0..1.
    pub steal: f64,
    /// When the run began, as people write it: `2026-11-23 14:02`.
    pub began: String,
}

/// How often a program of the user's calls another service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRate {
    pub variant: String,
    pub caller: String,
    pub callee: String,
    /// Calls for each request of the load; absent where neither a proxy nor the callee counts them.
    pub per_request: Option<Estimate>,
    /// The variant's less the baseline's, within rounds; absent for the baseline, and where either is not counted.
    pub difference: Option<Estimate>,
}

impl CallRate {
    /// Whether it is not made as often as in the baseline.
    pub fn differs(&self) -> bool {
        self.difference
            .is_some_and(|d| d.rounds > 1 && (d.low > LEAST_CALLS || d.high < -LEAST_CALLS))
    }
}

/// Calls for each request below which a difference is none: a thousandth.
const LEAST_CALLS: f64 = 1e-3;

/// Failed requests of a variant under a load that tolerates some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureShare {
    pub load: String,
    pub variant: String,
    /// Requests of all slices that count.
    pub sent: u64,
    /// Those of them that failed, or were answered otherwise than expected.
    pub failed: u64,
    /// Mean of the rounds' shares, 0..1.
    pub share: Estimate,
    /// The variant's share less the baseline's, within rounds, 0..1; absent for the baseline.
    pub difference: Option<Estimate>,
}

/// What a variant carries flat out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    pub variant: String,
    /// Completed requests per second of a closed loop, over the slices at the end of settling in the first round.
    pub per_s: f64,
}

/// Latency and CPU per request against the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// One per variant, in the order of the study.
    pub lines: Vec<CurveLine>,
}

/// One variant of a [`Curve`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLine {
    pub variant: String,
    /// By rate, the lowest first.
    pub points: Vec<CurvePointAtRate>,
    /// The knee: the rate before the first that was not carried, or had a p99 several times that of the lowest; requests
    /// per second; absent where it lies below the lowest rate or above the highest.
    pub knee_per_s: Option<f64>,
}

/// One rate of a [`CurveLine`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePointAtRate {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// Completed per second.
    pub throughput_per_s: f64,
    /// Median latency, microseconds.
    pub p50_us: Estimate,
    /// 99th percentile of latency, microseconds.
    pub p99_us: Estimate,
    /// CPU time per request, microseconds.
    pub cpu_us: Option<Estimate>,
    /// Whether completions kept up with arrivals.
    pub carried: bool,
}

/// A closed loop over its number of connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Staircase {
    /// The load as the study names it.
    pub load: String,
    /// One per variant that ran, in the order of the study.
    pub lines: Vec<StaircaseLine>,
    /// Each variant against the baseline, then against the variant before it in the study, over all steps that both
    /// have in a round.
    pub differences: Vec<StaircaseDifference>,
    /// The baseline's second arm against its first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<StaircaseDifference>,
    /// Mean body of an answer over all slices that count, bytes; absent when nothing was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_bytes: Option<f64>,
    /// What was published of the staircase as a whole, measured as the geometric mean over its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recomputed: Vec<RecomputedRow>,
}

/// One variant on a staircase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaircaseLine {
    pub variant: String,
    /// In order of the connections; a step without a slice that counts is left out.
    pub steps: Vec<StaircaseStep>,
}

/// One variant at one number of connections; means over rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaircaseStep {
    /// The load's name: `clients-20`.
    pub load: String,
    /// Connections, each a client that waits for its answer.
    pub connections: u32,
    /// Completed requests per second.
    pub throughput_per_s: Estimate,
    /// CPU time of the data plane's proxies per completed request, microseconds; absent without a data plane.
    pub mesh_cpu_us: Option<Estimate>,
    /// CPU time of the application's services alone per completed request, microseconds.
    pub application_cpu_us: Option<Estimate>,
}

/// Two variants over a whole staircase, within rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaircaseDifference {
    pub variant: String,
    /// What it is held against.
    pub against: String,
    /// variant / against: the geometric mean over the steps of each round.
    pub throughput_ratio: Estimate,
    /// variant - against, microseconds of the data plane's proxies per request: the mean over the steps of each
    /// round; absent when neither has a data plane.
    pub mesh_cpu_us: Option<Estimate>,
    /// variant / against of the same; absent when `against` has no data plane.
    pub mesh_cpu_ratio: Option<Estimate>,
    /// variant - against, microseconds of the application's services per request: its own extra work.
    pub application_cpu_us: Option<Estimate>,
}

/// A variant of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantFacts {
    /// As in the study file.
    pub name: String,
    /// One line: `Envoy sidecar at both ends, mTLS strict`.
    pub describes: String,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// Whether Envoys stand on its nodes, where ambient meshes have ztunnels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub envoy_for_ztunnel: bool,
}

/// The views that never share a table (docs/method.md rule 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// All variants at the same arrival rate: the primary comparison.
    EqualRate,
    /// Closed loop, as fast as each variant goes.
    FlatOut,
    /// Virtual users who pause: neither the same rate nor as fast as each goes.
    Users,
}

/// All that one load showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFindings {
    /// As in the study file.
    pub name: String,
    /// Which of the two views.
    pub view: View,
    /// Where it lies in the study's sweep, if it is one of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(
        serialize_with = "named::maybe::<named::CellOfSweep, _, _>",
        deserialize_with = "named::read_maybe::<named::CellOfSweep, _, _>"
    )]
    #[schemars(with = "Option<named::CellOfSweep>")]
    pub cell: Option<Cell>,
    pub release: Release,
    /// Arrivals per second, once the capacity that they refer to is known; absent without an arrival schedule.
    pub rate_per_s: Option<f64>,
    /// As long as it was here.
    pub slice: SliceLength,
    /// One per variant with at least one slice that counts, the baseline first.
    pub variants: Vec<VariantLoad>,
    /// One per metric and variant but the baseline; latency first, then CPU per request.
    pub effects: Vec<Effect>,
    /// The same of the baseline's second arm against its first: a diagnostic, which should show nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<Effect>,
    /// The same of each variant against the one before it in the study, where neither is the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<Effect>,
    /// Who pays for what each variant but the baseline changed.
    #[serde(default)]
    pub attribution: Vec<Attribution>,
    /// CPU and memory by pod, as `kubectl top pods` counts them; totals behind their pods, gateways last.
    #[serde(default)]
    pub top_pods: Vec<PodRow>,
    /// CPU and memory by group of pods, then their totals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceRow>,
    /// What `kubectl top pods` would add up to, one a variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_totals: Vec<TopTotal>,
    /// What the JVMs tell of themselves, pod by pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvms: Vec<JvmRow>,
    /// How far each variant is from its own capacity; empty when that was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regimes: Vec<Regime>,
    /// The published figures, when the study has some for this load.
    pub reference: Vec<ReferenceRow>,
    /// What follows from the published figures, where the source derived it wrongly or not at all.
    #[serde(default)]
    pub recomputed: Vec<RecomputedRow>,
}

/// A figure over rounds with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure, mostly a mean over rounds, in the metric's unit (or a plain ratio).
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Level of the interval, 0.95 for 95 %.
    pub level: f64,
    /// Number of rounds behind it.
    pub rounds: usize,
}

/// What one variant showed under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantLoad {
    pub variant: String,
    /// Rounds behind these numbers.
    pub rounds: usize,
    /// Slices behind them.
    pub slices: usize,
    /// Each metric over rounds: percentiles of their merged histogram, else their mean.
    #[serde(
        serialize_with = "named::list::<named::MetricFigure, _, _>",
        deserialize_with = "named::read_list::<named::MetricFigure, _, _>"
    )]
    #[schemars(with = "Vec<named::MetricFigure>")]
    pub metrics: Vec<(Metric, Estimate)>,
    /// Latency by quantile, from p1 to as far as the samples carry: merged histogram, and the lowest and highest round.
    pub latency_curve: Vec<CurvePoint>,
    /// All its slices as one load in hey's summary; closed loops only.
    #[serde(default)]
    pub hey: Option<HeySummary>,
    /// All its slices as one load in vegeta's text report; open loops only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vegeta: Option<VegetaSummary>,
    /// All its slices as one load in k6's end-of-test summary; virtual users only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k6: Option<K6Summary>,
    /// Completed requests per second, one per round.
    pub throughput_by_round: Vec<f64>,
    /// CPU per request by component; the last entry is `unattributed` (host busy minus the sum).
    pub cpu_per_request: Vec<ComponentCost>,
    /// What each sidecar costs for a request and for each time that one crosses it; absent without sidecars.
    #[serde(default)]
    pub traversals: Option<TraversalCosts>,
    /// CPU without load, thousandths of a core, by component.
    pub idle_cpu: Vec<ComponentCost>,
    /// Anonymous memory by component over the round, of the round whose mean is the median.
    pub memory: Vec<MemorySeries>,
}

/// One point of a latency curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// 0..1.
    pub quantile: f64,
    /// Of the histogram merged over rounds, microseconds.
    pub merged_us: f64,
    /// Of the lowest round, microseconds.
    pub low_us: f64,
    /// Of the highest round, microseconds.
    pub high_us: f64,
}

/// What one owner costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentCost {
    pub owner: Owner,
    /// Mean over rounds: microseconds per request, or thousandths of a core.
    pub cost: Estimate,
}

/// Memory of one owner over a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySeries {
    pub owner: Owner,
    /// Seconds since the measured phase began (negative: before it), bytes.
    #[serde(
        serialize_with = "named::list::<named::MemoryPoint, _, _>",
        deserialize_with = "named::read_list::<named::MemoryPoint, _, _>"
    )]
    #[schemars(with = "Vec<named::MemoryPoint>")]
    pub points: Vec<(f64, f64)>,
}

/// A load as hey sums it up; times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeySummary {
    /// Length of the measured phases together.
    pub total_s: f64,
    /// Longest latency.
    pub slowest_s: f64,
    /// Shortest latency.
    pub fastest_s: f64,
    /// Mean latency.
    pub average_s: f64,
    /// Requests that came to an end, per second of the total.
    pub requests_per_s: f64,
    /// Bytes of all answers' bodies.
    pub body_bytes: u64,
    /// Bytes of an answer's body, rounded down.
    pub bytes_per_request: u64,
    /// Eleven upper marks, and how many answers lie above the mark before and not above this one.
    #[serde(
        serialize_with = "named::list::<named::Bar, _, _>",
        deserialize_with = "named::read_list::<named::Bar, _, _>"
    )]
    #[schemars(with = "Vec<named::Bar>")]
    pub histogram: Vec<(f64, u64)>,
    /// Percent, and the latency that so many do not exceed.
    #[serde(
        serialize_with = "named::list::<named::Percentile, _, _>",
        deserialize_with = "named::read_list::<named::Percentile, _, _>"
    )]
    #[schemars(with = "Vec<named::Percentile>")]
    pub percentiles: Vec<(u8, f64)>,
    /// `DNS+dialup`, `DNS-lookup`, `req write`, `resp wait`, `resp read`.
    pub details: Vec<Step>,
    /// Complete answers by status code.
    #[serde(
        serialize_with = "named::list::<named::StatusCount, _, _>",
        deserialize_with = "named::read_list::<named::StatusCount, _, _>"
    )]
    #[schemars(with = "Vec<named::StatusCount>")]
    pub statuses: Vec<(u16, u64)>,
    /// Failures by kind.
    #[serde(
        serialize_with = "named::list::<named::ErrorCount, _, _>",
        deserialize_with = "named::read_list::<named::ErrorCount, _, _>"
    )]
    #[schemars(with = "Vec<named::ErrorCount>")]
    pub errors: Vec<(String, u64)>,
}

/// One step of a request in [`HeySummary`], seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// As hey calls it.
    pub name: String,
    /// Mean.
    pub average_s: f64,
    /// Shortest.
    pub fastest_s: f64,
    /// Longest.
    pub slowest_s: f64,
}

/// A load as k6 sums it up at its end; durations in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct K6Summary {
    /// Sorted by name, as k6 does: `http_req_blocked`, `http_req_connecting`, `http_req_duration`, ...; the
    /// durations of answers without a failure are `http_req_duration{expected_response:true}`.
    pub trends: Vec<K6Trend>,
    /// Requests that failed or were answered with a status from 400 on.
    pub failed: u64,
    /// Requests that came to an end.
    pub requests: u64,
    /// Those that came to an end within the phase, per second.
    pub requests_per_s: f64,
    /// Iterations of all users.
    pub iterations: u64,
    /// The same per second.
    pub iterations_per_s: f64,
    /// Iterations of several requests that the end cut off, by the requests that they had ended; absent where an
    /// iteration is a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<u64>,
    /// Users: at the end, fewest, most.
    pub vus: [u64; 3],
    /// Most users that there could be.
    pub vus_max: u64,
    /// Bytes of answers, heads included.
    pub data_received: u64,
    /// Bytes of requests, heads included.
    pub data_sent: u64,
    /// What the rates are by, seconds.
    pub total_s: f64,
}

/// One row of [`K6Summary`], microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct K6Trend {
    /// As k6 calls it.
    pub name: String,
    /// Mean.
    pub avg_us: f64,
    /// Shortest.
    pub min_us: f64,
    /// Median.
    pub med_us: f64,
    /// Longest.
    pub max_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
}

/// A load as vegeta sums it up; times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VegetaSummary {
    /// Requests that came to an end.
    pub requests: u64,
    /// The same per second.
    pub rate_per_s: f64,
    /// Answers with a status of success within the phase, per second.
    pub throughput_per_s: f64,
    /// Length of the measured phases together, seconds.
    pub attack_s: f64,
    /// Latency: min, mean, 50th, 90th, 95th, 99th percentile, max.
    #[serde(
        serialize_with = "named::one::<named::Latencies, _, _>",
        deserialize_with = "named::read_one::<named::Latencies, _, _>"
    )]
    #[schemars(with = "named::Latencies")]
    pub latencies_us: [f64; 7],
    /// Bytes of all answers' bodies, and of one.
    #[serde(
        serialize_with = "named::one::<named::Bytes, _, _>",
        deserialize_with = "named::read_one::<named::Bytes, _, _>"
    )]
    #[schemars(with = "named::Bytes")]
    pub bytes_in: (u64, f64),
    /// Bytes of all requests' bodies, and of one.
    #[serde(
        serialize_with = "named::one::<named::Bytes, _, _>",
        deserialize_with = "named::read_one::<named::Bytes, _, _>"
    )]
    #[schemars(with = "named::Bytes")]
    pub bytes_out: (u64, f64),
    /// Share of requests that were answered with a status of success, 0..1.
    pub success: f64,
    /// Answers by status code; 0 for requests that failed.
    #[serde(
        serialize_with = "named::list::<named::StatusCount, _, _>",
        deserialize_with = "named::read_list::<named::StatusCount, _, _>"
    )]
    #[schemars(with = "Vec<named::StatusCount>")]
    pub statuses: Vec<(u16, u64)>,
    /// What went wrong, a line each.
    pub errors: Vec<String>,
}

/// CPU and memory of a group of pods, or of all, over exactly the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRow {
    /// Whose.
    pub group: ResourceGroup,
    /// One a variant, the baseline first.
    pub uses: Vec<ResourceUse>,
}

/// The groups by which a platform pays.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ResourceGroup {
    /// Gateways through which traffic comes in.
    Gateway,
    /// Services and databases with their sidecars.
    Application,
    /// The gateway through which traffic leaves the mesh, its SNI proxy with it.
    Egress,
    /// Node proxies and waypoints.
    NodeProxies,
    /// The control plane; the local lab has none.
    Control,
    /// All groups at the same instant.
    Total,
    /// The sums of the groups' own minima, maxima and means, as a published study adds them: no instant had them.
    ColumnSums,
}

/// What a group used in one variant; absent where a reading is missing, or where the variant has no such group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    pub variant: String,
    /// CPU, thousandths of a core.
    pub cpu_millicores: Option<Spread>,
    /// Memory charged to it, page cache left out, MiB.
    pub memory_mib: Option<Spread>,
}

/// Lowest and highest reading of all slices that count, and the mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// The lowest reading.
    pub min: f64,
    /// The highest reading.
    pub max: f64,
    /// Mean over the window, over rounds; CPU from counters at the window's ends.
    pub mean: Estimate,
}

/// What `kubectl top pods` would show for all pods of a variant: each rounded up to whole millicores, every 15 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopTotal {
    pub variant: String,
    /// Pods that are added up.
    pub pods: usize,
    /// By counters, thousandths of a core.
    pub counted_millicores: Estimate,
    /// As shown, thousandths of a core.
    pub shown_millicores: Estimate,
}

/// A quantity that grows with the application.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ScaledQuantity {
    /// Memory of all groups, MiB.
    Memory,
    /// CPU of all groups, thousandths of a core.
    Cpu,
    /// What the variant adds to the baseline's median latency, microseconds.
    AddedP50,
    /// What it adds to the 99th percentile, microseconds.
    AddedP99,
}

impl ScaledQuantity {
    /// Whether it is what a variant adds, which may be next to nothing: no share of it says anything.
    pub fn is_added(self) -> bool {
        matches!(self, Self::AddedP50 | Self::AddedP99)
    }
}

/// One quantity of one variant as a function of pods and rate: fixed + per_pod x pods + per_request x rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scaling {
    pub variant: String,
    /// What is fitted.
    pub quantity: ScaledQuantity,
    /// The service whose replicas were swept.
    pub service: String,
    /// With no pod and no request.
    pub fixed: Estimate,
    /// For each pod of the service.
    pub per_pod: Estimate,
    /// For each request per second; absent when the rate was not swept.
    pub per_request: Option<Estimate>,
    /// One a cell, in the order of the study.
    pub points: Vec<ScalingPoint>,
    /// The largest cells as predicted from the smaller ones; empty with fewer than three sizes.
    pub held_out: Vec<HeldOut>,
}

/// One cell of a [`Scaling`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPoint {
    pub load: String,
    /// Pods of the service.
    pub pods: usize,
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// As measured, over rounds.
    pub measured: Estimate,
    /// By the fit.
    pub fitted: f64,
    /// Ends of the interval of the line here (not of a further round); absent where the fit leaves none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(
        serialize_with = "named::maybe::<named::Band, _, _>",
        deserialize_with = "named::read_maybe::<named::Band, _, _>"
    )]
    #[schemars(with = "Option<named::Band>")]
    pub band: Option<(f64, f64)>,
}

/// A cell that was left out of a fit, and what the fit says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOut {
    pub load: String,
    /// Sizes that the fit was made from.
    pub fitted_on: Vec<usize>,
    /// What the fit says, with its prediction interval.
    pub predicted: Estimate,
    /// What was measured, over rounds.
    pub measured: Estimate,
    /// predicted / measured - 1.
    pub error: f64,
}

/// The number of pods at which two variants cost the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Crossing {
    /// What costs the same.
    pub quantity: ScaledQuantity,
    /// The variant that is cheaper below.
    pub below: String,
    /// The variant that is cheaper above.
    pub above: String,
    /// At this many requests per second; absent when the rate was not swept.
    pub rate_per_s: Option<f64>,
    /// Pods; below zero or beyond the measured sizes the one is cheaper at any size that was measured.
    pub pods: Estimate,
    /// The smallest and the largest size that was measured.
    #[serde(
        serialize_with = "named::one::<named::Sizes, _, _>",
        deserialize_with = "named::read_one::<named::Sizes, _, _>"
    )]
    #[schemars(with = "named::Sizes")]
    pub measured: (usize, usize),
    /// Sizes whose own rounds at this rate do not tell the two apart, whatever the lines say.
    pub alike: Vec<usize>,
}

/// Median service time by rate, on an application of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTimes {
    /// The service and its replicas, when those are swept.
    #[serde(
        default,
        serialize_with = "named::maybe::<named::Replicas, _, _>",
        deserialize_with = "named::read_maybe::<named::Replicas, _, _>"
    )]
    #[schemars(with = "Option<named::Replicas>")]
    pub replicas: Option<(String, usize)>,
    /// One a variant, the baseline first.
    pub variants: Vec<ServiceTimeCurve>,
}

/// Median service time of one variant by rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTimeCurve {
    pub variant: String,
    /// Load, requests per second, median service time in microseconds; by rate.
    #[serde(
        serialize_with = "named::list::<named::ServiceTimeAt, _, _>",
        deserialize_with = "named::read_list::<named::ServiceTimeAt, _, _>"
    )]
    #[schemars(with = "Vec<named::ServiceTimeAt>")]
    pub points: Vec<(String, f64, Estimate)>,
    /// Service time at the highest rate minus that at the lowest, within rounds, microseconds: below zero where
    /// requests at the low rate had to wake something up.
    pub fall: Option<Estimate>,
    /// `fall` minus that of the baseline: what of it is the variant's own; absent for the baseline.
    pub own_fall: Option<Estimate>,
}

/// What the JVM of one pod reported in the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JvmRow {
    /// Name of the pod.
    pub pod: String,
    /// One a variant, the baseline first.
    pub uses: Vec<JvmUse>,
}

/// One JVM in one variant; means over rounds, absent when it did not tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JvmUse {
    pub variant: String,
    /// CPU time of the process by the time of all cores, 0..1, from the JVM's own counter.
    pub cpu_load: Option<Measured>,
    /// CPU time of the pod per completed request by its cgroup's counter, microseconds.
    pub cpu_per_request_us: Option<Measured>,
    /// Mean of the heap in use, MiB.
    pub heap_used_mib: Option<Measured>,
    /// Heap in use after the last collection of each of its pools, MiB; absent until all were collected once.
    pub heap_live_mib: Option<Measured>,
    /// Time of collections by time, 0..1.
    pub gc_share: Option<Measured>,
    /// Time of the JIT compiler's threads by time, may exceed 1.
    pub jit_share: Option<Measured>,
    /// Threads that live.
    pub threads: Option<Measured>,
}

/// How far a variant is from the highest rate that it carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Regime {
    pub variant: String,
    /// Completed requests per second of the measured phase, mean over rounds.
    pub throughput_per_s: f64,
    /// What it carries flat out, requests per second.
    pub capacity_per_s: f64,
    /// Whether it runs near its limit or at it: latency is that of a queue, or of one that forms.
    pub near_limit: bool,
    /// Whether it runs at its limit: throughput is that of the machine.
    pub at_limit: bool,
}

/// What tracing costs by the number of spans: a line through the effects of the loads that differ in spans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanCosts {
    /// The variant, held against the baseline.
    pub variant: String,
    /// The service whose CPU it is; absent for all components that are compared.
    pub service: Option<String>,
    /// In order of the number of spans.
    pub points: Vec<SpanPoint>,
    /// CPU time for each further span of a request, microseconds: one slope through all rounds, with the rounds' scatter.
    pub per_span_us: Estimate,
    /// CPU time for each request whatever its spans, microseconds: the line at zero.
    pub per_request_us: Estimate,
    /// The same slope of the baseline's second arm against its first, microseconds: a diagnostic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_us: Option<Estimate>,
}

impl SpanCosts {
    /// Whether the interval of the slope leaves zero out.
    pub fn is_clear(&self) -> bool {
        let Estimate { low, high, rounds, .. } = self.per_span_us;
        rounds > 1 && (low > 0.0 || high < 0.0)
    }
}

/// The effect on CPU per request under one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanPoint {
    pub load: String,
    /// Spans that a request leaves.
    pub spans: u64,
    /// Arrivals per second that were planned; absent in a closed loop.
    pub rate_per_s: Option<f64>,
    /// variant - baseline, microseconds, within rounds.
    pub effect_us: Estimate,
}

/// Whether the heap of one JVM grew over the run: by what is left after collections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapTrend {
    pub variant: String,
    pub pod: String,
    /// Points of the series, one a collection of the old generation; too few tell nothing.
    pub points: usize,
    /// Sen's slope, MiB per minute under load; absent with too few points.
    pub mib_per_minute: Option<f64>,
    /// Two-sided p-value of the Mann-Kendall test; absent with too few points.
    pub p_value: Option<f64>,
    /// Whether it may be a leak: it grows, and not by chance.
    pub grows: bool,
    /// Whether it shrinks, and not by chance.
    pub falls: bool,
    /// Minutes under load, MiB after a collection of the old generation.
    #[serde(
        serialize_with = "named::list::<named::HeapPoint, _, _>",
        deserialize_with = "named::read_list::<named::HeapPoint, _, _>"
    )]
    #[schemars(with = "Vec<named::HeapPoint>")]
    pub series: Vec<(f64, f64)>,
}

/// What the sidecars of a variant cost, and how often a request crosses them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraversalCosts {
    /// One a sidecar, in the order of the deployment.
    pub sidecars: Vec<SidecarCost>,
    /// All of them together.
    pub total: SidecarCost,
}

/// What one sidecar costs; means over rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SidecarCost {
    /// Beside which it runs; absent for all sidecars together.
    pub pods: Option<Pods>,
    /// CPU time for each completed request, microseconds.
    pub cpu_us: Estimate,
    /// Times that a request, or a query that it led to, crossed it: counted by the proof of path.
    pub traversals: Estimate,
    /// CPU time for each of these times, microseconds; absent when nothing crossed it.
    pub per_traversal_us: Option<Estimate>,
}

/// What a variant changed in CPU per request, by who pays for it; microseconds, within rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attribution {
    /// The variant, held against the baseline.
    pub variant: String,
    /// Every owner of either arm, by role.
    pub parts: Vec<AttributedCost>,
    /// The same summed up by role; only roles with several components.
    pub subtotals: Vec<AttributedCost>,
    /// Sum of all but what is not counted: the CPU per request that is compared.
    pub counted: Option<AttributedCost>,
    /// The same with what no component owns: what the shares are of.
    pub whole: Option<AttributedCost>,
}

/// Who pays for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payer {
    Owner(Owner),
    /// All owners of a role.
    Role(Role),
    /// All that is counted in CPU per request.
    Counted,
    /// The same with what nobody owns.
    Whole,
}

impl Payer {
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Owner(owner) => Some(owner.role),
            Self::Role(role) => Some(*role),
            Self::Counted | Self::Whole => None,
        }
    }
}

/// One line of an [`Attribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttributedCost {
    pub payer: Payer,
    /// Mean of the baseline in the rounds that both have; absent when it has no such component.
    pub baseline: Option<f64>,
    /// Mean of the variant in the rounds that both have; absent when it has no such component.
    pub value: Option<f64>,
    /// variant - baseline; a component that is absent counts as zero.
    pub change: Estimate,
    /// Share of the whole change; absent when the whole may be no change at all, and for the instrument's own.
    pub share: Option<f64>,
}

/// CPU and memory of one pod, or of several together, as `kubectl top pods` counts: the sidecar's in its pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodRow {
    /// Whose pod, with what runs beside it; absent for the total of all pods but the ingress gateways.
    pub owner: Option<Owner>,
    /// Its group (namespace); empty for a total.
    pub group: String,
    /// One a variant that has the pod, the baseline first.
    pub uses: Vec<PodUse>,
}

/// What a pod used in one variant; means over rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PodUse {
    pub variant: String,
    /// CPU in the measured window, by counters at its ends, thousandths of a core.
    pub cpu_millicores: Option<Measured>,
    /// Mean of the memory charged to it in the measured window, page cache included, MiB.
    pub memory_mib: Option<Measured>,
}

/// A mean over rounds, and how it changed against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    pub mean: Estimate,
    /// variant - baseline, within rounds; absent for the baseline.
    pub change: Option<Estimate>,
    /// variant / baseline, within rounds; absent for the baseline.
    pub ratio: Option<Estimate>,
}

/// What a variant changed, within rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effect {
    /// The variant held against the baseline.
    pub variant: String,
    /// What it is held against instead of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// What is compared.
    pub metric: Metric,
    /// The baseline over the rounds that both have, both of its arms.
    pub baseline: f64,
    /// The variant over the same rounds: `baseline` times `ratio`.
    pub value: f64,
    /// variant - baseline, in the metric's unit; consistent with `ratio`.
    pub difference: Estimate,
    /// variant / baseline.
    pub ratio: Estimate,
    /// The ratio as the trimmed mean over cycles; absent for what cycles do not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed_ratio: Option<f64>,
    /// The ratio with the excused cycles left in; absent when none was excused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexcused_ratio: Option<Estimate>,
    /// Where its spread comes from; absent for what cycles do not show, and with fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Scatter>,
    /// What may be said: of headline metrics under the headline load, from two rounds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Where the spread of an effect comes from; standard deviations of the log ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scatter {
    /// From one start to the next.
    pub between_rounds: f64,
    /// From cycle to cycle of one start.
    pub within_rounds: f64,
    /// Share of the variance of the effect that comes from between starts, 0..1.
    pub share_of_starts: f64,
    /// Whether more rounds would narrow the interval more than longer ones in the same time.
    pub rounds_help_more: bool,
}

/// What may be said of a headline metric (docs/method.md rule 4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The variant has more.
    Higher,
    /// The variant has less.
    Lower,
    /// The effect lies within plus or minus this share of the baseline, 0..1.
    NoDifference {
        /// The bound that the study states.
        bound: f64,
    },
    /// None of these.
    CannotTell {
        /// Further rounds that would tell with 80 % power; absent when that cannot be estimated.
        more_rounds: Option<u32>,
    },
}

/// A published figure beside the measured one. Ratios are compared, not absolute values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceRow {
    pub variant: String,
    /// What was published: `throughput_per_s`, `latency_ms.mean`, `cpu_millicores.POD`, `memory_mib.POD`.
    pub figure: String,
    /// As published.
    pub published: f64,
    /// Measured here, same unit; absent when the variant did not run.
    pub measured: Option<f64>,
    /// Published figure divided by the published figure of the baseline; absent for the baseline itself.
    pub published_ratio: Option<f64>,
    /// Measured ratio to the baseline with its interval.
    pub measured_ratio: Option<Estimate>,
}

/// A figure derived from published ones: as printed, as it follows from them, and measured here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecomputedRow {
    /// The variant; held against the baseline when the figure is a change.
    pub variant: String,
    /// The variant that it is held against instead of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// What is derived.
    pub derived: Derived,
    /// The pod that it is of, for what is derived of one pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// As printed in the source; absent when it does not say.
    pub printed: Option<f64>,
    /// As it follows from the published figures; absent when they are not enough.
    pub recomputed: Option<f64>,
    /// Derived in the same way from what was measured here; absent when the variant did not run.
    pub measured: Option<Estimate>,
    /// Why the two differ, or why it matters; one sentence.
    pub because: String,
}

/// The discarded runs on fresh services of one variant: they bring them to their steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    /// The variant; the A/A partner of the baseline is the baseline.
    pub variant: String,
    /// In the order in which they ran.
    pub runs: Vec<SettledRun>,
    /// How long they took, seconds; mean over the runs.
    pub length_s: Estimate,
    /// Completed requests per second in the first and in the last slice; means over the runs.
    #[serde(
        serialize_with = "named::one::<named::FirstAndLast, _, _>",
        deserialize_with = "named::read_one::<named::FirstAndLast, _, _>"
    )]
    #[schemars(with = "named::FirstAndLast")]
    pub throughput_per_s: (Estimate, Estimate),
    /// CPU per request in the first and in the last slice, microseconds; means over the runs.
    #[serde(
        default,
        serialize_with = "named::maybe::<named::FirstAndLast, _, _>",
        deserialize_with = "named::read_maybe::<named::FirstAndLast, _, _>"
    )]
    #[schemars(with = "Option<named::FirstAndLast>")]
    pub cpu_per_request_us: Option<(Estimate, Estimate)>,
}

/// One discarded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettledRun {
    pub round: usize,
    /// Whether throughput and CPU per request were stable at its end.
    pub stable: bool,
    /// Slice after slice.
    pub slices: Vec<SettledSlice>,
}

/// One slice of a discarded run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettledSlice {
    /// Its end, seconds since the discarded run began.
    pub at_s: f64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// CPU per request, microseconds; absent when a counter could not be read.
    pub cpu_per_request_us: Option<f64>,
}

/// Proof of path, summed up over the arms of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofSummary {
    pub variant: String,
    /// Rounds in which one of its arms was brought up; the baseline has two arms in each.
    pub arms: usize,
    /// Arms whose claims all held.
    pub proven: usize,
    /// As of the last one.
    pub claims: Vec<Claim>,
    /// Spans over its slices that count, for each number of them that a request leaves; empty where no agent runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpansOfLoads>,
}

/// Where published figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Publication {
    /// As the study names it.
    pub source: String,
    /// What the study says about the figures, a sentence each.
    pub notes: Vec<String>,
}

/// What the machine or the run was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// What the machine and the lab said of themselves, as label and value.
    Labelled {
        label: String,
        value: String,
    },
    /// A program or a jar that toll drives, with its version and where it is from.
    Artifact {
        artifact: Artifact,
        version: String,
    },
    /// What serves the airline's database.
    Database(DatabaseServer),
    Profile(String),
    /// What the built-in services are written in.
    Runtime(String),
    /// What each built-in service burns for a request, nanoseconds.
    Work {
        #[serde(
            serialize_with = "named::list::<named::WorkOf, _, _>",
            deserialize_with = "named::read_list::<named::WorkOf, _, _>"
        )]
        #[schemars(with = "Vec<named::WorkOf>")]
        services: Vec<(String, u64)>,
    },
    Arms {
        count: usize,
        side_by_side: bool,
    },
    Cycles(usize),
    GuardS(f64),
    Seed(u64),
}

/// A database server with its version and where it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseServer {
    Postgres {
        version: String,
    },
    MongoDb {
        version: String,
    },
    /// mongo-java-server, in the place of MongoDB.
    StandIn {
        version: String,
    },
}

/// Spans under the loads whose requests leave the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpansOfLoads {
    /// The loads, in the order of the study.
    pub loads: Vec<String>,
    /// What arrived in all their slices that count.
    pub spans: toll_lab::Spans,
}

/// One arm in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundLine {
    /// The round, from 1.
    pub round: usize,
    /// The variant; the second arm of the baseline carries ` (again)`.
    pub arm: String,
    /// Pods of the service that is swept, when one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<usize>,
    /// Slices that count, and all of them.
    #[serde(
        serialize_with = "named::one::<named::OfAll, _, _>",
        deserialize_with = "named::read_one::<named::OfAll, _, _>"
    )]
    #[schemars(with = "named::OfAll")]
    pub slices: (usize, usize),
    /// Whether its path was proven.
    pub proven: bool,
    /// Why slices do not count, each reason once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<Invalid>,
    /// Share of all cores' time that the hypervisor took during its slices, 0..1.
    pub steal: f64,
}
