//! What weakens a result, as facts: [`crate::analysis`] finds them, the report words them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_lab::ServiceSpans;

use super::named;
use super::{CallRate, DatabaseServer, LeftOut, Metric, Owner, Regime};
use crate::store::Invalid;

/// Something that weakens the result, in the order of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "caveat", rename_all = "snake_case")]
pub enum Caveat {
    /// Fewer rounds ran than were planned.
    MissingRounds { ran: usize, planned: usize },
    /// A server that stands in for the one that was asked for costs what it costs.
    StandIn { server: DatabaseServer },
    /// Arms of which no slice counts.
    InvalidArms { arms: Vec<InvalidArm>, all: usize },
    /// Slices of sound arms that do not count, and each reason with its number of slices.
    InvalidSlices {
        slices: usize,
        all: usize,
        #[serde(
            serialize_with = "named::list::<named::ReasonCount, _, _>",
            deserialize_with = "named::read_list::<named::ReasonCount, _, _>"
        )]
        #[schemars(with = "Vec<named::ReasonCount>")]
        reasons: Vec<(Invalid, usize)>,
    },
    /// What the plan, the machine or the lab says of itself, in its words.
    Text { kind: CaveatKind, text: String },
    /// Loads at an equal rate that was not equal.
    UnequalRates { loads: Vec<LoadRates> },
    /// Calls that a variant does not make as often as the baseline.
    OtherCalls { calls: Vec<CallRate> },
    /// Arms whose answers did not keep up with arrivals.
    NotCarried { arms: Vec<LaggingArm> },
    /// Comparisons of latencies of which `both`, or one, is that of a queue.
    NearLimit { both: bool, comparisons: Vec<RegimePair> },
    /// A line through loads that did not run at the same rate.
    UnevenSpanRates { variant: String, low_per_s: f64, high_per_s: f64 },
    /// More cycles were disturbed than may be excused.
    DisturbedThroughout,
    /// Cycles that do not count since the machine did something else; headline figures that would be others with them.
    Excused { cycles: usize, all: usize, moved: Vec<TwoFigures> },
    /// The largest share of a round's CPU time that the hypervisor took, 0..1.
    Stolen { share: f64 },
    /// Slices in which more than this share of the CPU time that was used belongs to no component.
    OtherWork { slices: usize, all: usize, share: f64 },
    /// How one start differs from the next is in no interval.
    OneRound,
    /// Loads of which variants have fewer rounds than are enough.
    FewRounds { loads: Vec<LoadNames>, variants: Vec<VariantRounds>, enough: usize },
    /// Loads with fewer than `enough` requests beyond their 99th percentile; `fewest` of them at the fewest.
    FewRequests { loads: Vec<LoadNames>, fewest: f64, enough: f64 },
    /// Figures of which a few cycles decide: the mean and the trimmed mean disagree.
    FewCyclesDecide { figures: Vec<TwoFigures> },
    /// Percentiles of an open loop in which the generator's own lateness shows.
    SendLag { percentiles: Vec<LatePercentile> },
    /// Checks of the load generator that did not hold, so that it may have been the limit; each with its number of slices.
    Generator {
        #[serde(
            serialize_with = "named::list::<named::CheckCount, _, _>",
            deserialize_with = "named::read_list::<named::CheckCount, _, _>"
        )]
        #[schemars(with = "Vec<named::CheckCount>")]
        checks: Vec<(String, usize)>,
    },
    /// Arms at whose first slice the services were still changing.
    Unsettled { arms: usize, all: usize },
    /// A heap that grew; the baseline says whether the variant has something to do with it.
    Leak {
        variant: String,
        pod: String,
        mib_per_minute: f64,
        p_value: f64,
        /// Absent for the baseline itself.
        baseline: Option<Growth>,
    },
    /// What the proofs of some variants could not claim.
    LeftOut { variants: Vec<String>, what: LeftOut },
    /// Spans that never came to the collector: what an agent saves by dropping them is not in its cost.
    DroppedSpans { variant: String, services: Vec<ServiceSpans> },
    /// Loads under which an agent's spans were not counted, since nobody said how many there should be.
    UncountedSpans { variant: String, loads: Vec<LoadNames> },
    /// Counters that could not be read: whose, why, and in how many slices.
    MissingReadings {
        #[serde(
            serialize_with = "named::list::<named::MissingReading, _, _>",
            deserialize_with = "named::read_list::<named::MissingReading, _, _>"
        )]
        #[schemars(with = "Vec<named::MissingReading>")]
        reasons: Vec<(Owner, String, usize)>,
    },
    /// What pods did not tell of themselves: which, why, and in how many slices.
    MissingMetrics {
        #[serde(
            serialize_with = "named::list::<named::MissingMetric, _, _>",
            deserialize_with = "named::read_list::<named::MissingMetric, _, _>"
        )]
        #[schemars(with = "Vec<named::MissingMetric>")]
        reasons: Vec<(String, String, usize)>,
    },
    /// Pods whose JVMs reported in no round what is alive in their heaps.
    UnknownHeaps { pods: Vec<String> },
    /// Services of whose logs only the begin and the end are kept, and the most that each wrote in a round, bytes.
    CutLogs {
        #[serde(
            serialize_with = "named::list::<named::LogSize, _, _>",
            deserialize_with = "named::read_list::<named::LogSize, _, _>"
        )]
        #[schemars(with = "Vec<named::LogSize>")]
        logs: Vec<(String, u64)>,
    },
    /// What `kubectl top pods` would show where rounding every pod up makes the most of little.
    RoundedUp {
        load: String,
        variant: String,
        pods: usize,
        counted_millicores: f64,
        shown_millicores: f64,
    },
}

/// What a caveat is about; in the order of the report.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// Not all ran that was planned.
    Missing,
    /// What stands for something else: another proxy, another database.
    StandIn,
    /// Slices or arms that do not count.
    Invalid,
    /// How the comparison was made: arms that followed each other, rates that differ, queues.
    Comparison,
    /// What else the machine did: stolen time, other work, excused cycles.
    Machine,
    /// Few rounds or few requests behind a figure, or estimators that disagree.
    Precision,
    /// Services that had not settled.
    Settling,
    /// Claims that a proof had to leave out.
    Proof,
    /// Readings that are missing.
    Readings,
    Lab,
}

impl Caveat {
    pub fn kind(&self) -> CaveatKind {
        match self {
            Self::MissingRounds { .. } => CaveatKind::Missing,
            Self::StandIn { .. } => CaveatKind::StandIn,
            Self::InvalidArms { .. } | Self::InvalidSlices { .. } => CaveatKind::Invalid,
            Self::Text { kind, .. } => *kind,
            Self::UnequalRates { .. }
            | Self::OtherCalls { .. }
            | Self::NotCarried { .. }
            | Self::NearLimit { .. }
            | Self::UnevenSpanRates { .. } => CaveatKind::Comparison,
            Self::DisturbedThroughout
            | Self::Excused { .. }
            | Self::Stolen { .. }
            | Self::OtherWork { .. } => CaveatKind::Machine,
            Self::OneRound
            | Self::FewRounds { .. }
            | Self::FewRequests { .. }
            | Self::FewCyclesDecide { .. }
            | Self::SendLag { .. }
            | Self::Generator { .. } => CaveatKind::Precision,
            Self::Unsettled { .. } | Self::Leak { .. } => CaveatKind::Settling,
            Self::LeftOut { .. } | Self::DroppedSpans { .. } | Self::UncountedSpans { .. } => {
                CaveatKind::Proof
            }
            Self::CutLogs { .. } => CaveatKind::Lab,
            Self::MissingReadings { .. }
            | Self::MissingMetrics { .. }
            | Self::UnknownHeaps { .. }
            | Self::RoundedUp { .. } => CaveatKind::Readings,
        }
    }
}

/// An arm of which no slice counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidArm {
    pub arm: String,
    pub round: usize,
    pub reasons: Vec<Invalid>,
}

/// What the slowest and the fastest variant completed under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRates {
    pub load: String,
    pub low_per_s: f64,
    pub high_per_s: f64,
}

/// An arm that did not keep up, and in how many rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaggingArm {
    pub arm: String,
    pub load: String,
    pub rounds: usize,
}

/// Two variants under a load, of which one at least is near its limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegimePair {
    pub load: String,
    pub baseline: Regime,
    pub variant: Regime,
}

/// An effect as it is reported, and as another estimator has it; ratios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwoFigures {
    pub load: String,
    pub variant: String,
    pub metric: Metric,
    pub ratio: f64,
    pub other_ratio: f64,
}

/// Loads that are named together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadNames {
    Load(String),
    /// All cells of a sweep.
    Sweep {
        load: String,
        cells: usize,
    },
}

/// Rounds of a variant, under the load that has the fewest and under the one that has the most of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantRounds {
    pub variant: String,
    pub fewest: usize,
    pub most: usize,
}

/// A percentile that lies by this share above that of the service time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatePercentile {
    pub load: String,
    pub variant: String,
    pub metric: Metric,
    pub share: f64,
}

/// Whether a heap grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    Grows,
    DoesNot,
    Unknown,
}
