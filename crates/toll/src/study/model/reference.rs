//! Published figures of the same study, as written.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::study::quantity::{Amount, Name};

/// Published figures of the same study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Where they were published.
    #[schemars(extend("examples" = ["Mesher performance tests"]))]
    pub source: String,
    /// What a reader must know about them, a sentence each.
    #[serde(default)]
    pub note: Vec<String>,
    /// The figures, by variant and load.
    pub figures: IndexMap<Name, IndexMap<Name, Figures>>,
    /// What follows from the figures, where the source derived it wrongly or not at all.
    #[serde(default)]
    pub recomputed: Vec<Recomputed>,
}

/// The published figures of one variant under one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Completed requests per second.
    #[schemars(extend("examples" = [2303.69]))]
    pub throughput_per_s: Option<Amount>,
    /// Latency, milliseconds.
    pub latency_ms: Option<LatencyMs>,
    /// CPU used by all groups of pods together, thousandths of a core.
    #[schemars(extend("examples" = [107.17]))]
    pub cpu_total_millicores: Option<Amount>,
    /// Memory used by all groups of pods together, MiB.
    #[schemars(extend("examples" = [1105.33]))]
    pub memory_total_mib: Option<Amount>,
    /// CPU used by each pod, thousandths of a core.
    #[serde(default)]
    pub cpu_millicores: IndexMap<Name, Amount>,
    /// Memory used by each pod, MiB.
    #[serde(default)]
    pub memory_mib: IndexMap<Name, Amount>,
    /// CPU used by each pod's process, per cent of all cores of its machine.
    #[serde(default)]
    pub cpu_load_percent: IndexMap<Name, Amount>,
    /// Heap that each pod's JVM uses, MiB.
    #[serde(default)]
    pub heap_mib: IndexMap<Name, Amount>,
}

/// Published latency, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyMs {
    /// Arithmetic mean.
    pub mean: Option<Amount>,
    /// 10th percentile.
    pub p10: Option<Amount>,
    /// 25th percentile.
    pub p25: Option<Amount>,
    /// Median.
    pub p50: Option<Amount>,
    /// 75th percentile.
    pub p75: Option<Amount>,
    /// 90th percentile.
    pub p90: Option<Amount>,
    /// 95th percentile.
    pub p95: Option<Amount>,
    /// 99th percentile.
    pub p99: Option<Amount>,
}

/// A figure derived from published ones, as printed and as it follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "variant": "sidecar", "load": "flat-out", "derived": "latency_p95_change",
    "printed": 90, "recomputed": 85.4, "because": "The printed change compares rounded figures."
}]))]
pub struct Recomputed {
    /// The variant; held against the baseline when the figure is a change.
    pub variant: Name,
    /// The variant that it is held against instead of the baseline.
    #[schemars(extend("examples" = ["sidecar"]))]
    pub against: Option<Name>,
    /// The load that it belongs to.
    pub load: Name,
    /// What is derived.
    pub derived: Derived,
    /// The pod that it is of, for what is derived of one pod.
    #[schemars(extend("examples" = ["vets"]))]
    pub pod: Option<Name>,
    /// As printed in the source; left out when it does not say.
    #[schemars(extend("examples" = [90]))]
    pub printed: Option<f64>,
    /// As it follows from the published figures; left out when they are not enough.
    #[schemars(extend("examples" = [85.4]))]
    pub recomputed: Option<f64>,
    /// Why the two differ, or why it matters; one sentence.
    #[schemars(extend("examples" = ["The printed change compares rounded figures."]))]
    pub because: String,
}

/// What can be derived from published figures, and from measured ones in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Derived {
    /// Change of the throughput, per cent.
    ThroughputChange,
    /// Change of the mean latency, per cent.
    LatencyMeanChange,
    /// Change of the latency's 99th percentile, per cent.
    LatencyP99Change,
    /// Change of the latency's 95th percentile, per cent.
    LatencyP95Change,
    /// Change of the CPU used by all pods, whatever the throughput, per cent.
    CpuChange,
    /// Change of the memory used by all pods, per cent.
    MemoryChange,
    /// CPU of all groups of pods by the other variant's, gateways included: 0.5 is half of it.
    CpuRatio,
    /// Memory of all groups of pods by the other variant's, gateways included.
    MemoryRatio,
    /// CPU time of all pods per request, milliseconds.
    CpuPerRequest,
    /// Change of the CPU time of all pods per request, per cent.
    CpuPerRequestChange,
    /// Memory used by all pods, MiB.
    MemoryTotal,
    /// Difference of one pod's CPU load, points of per cent.
    CpuLoadPoints,
    /// Difference of one pod's heap, MiB.
    HeapDifference,
    /// Change of one pod's CPU time per request, per cent.
    PodCpuPerRequestChange,
    /// Change of the latency's 90th percentile, per cent.
    LatencyP90Change,
    /// Throughput times mean latency: the requests that were under way by Little's law.
    UnderWay,
    /// Change of the CPU time of the data plane's proxies per request, per cent.
    MeshCpuPerRequestChange,
}

impl Derived {
    /// Whether it can be had of all steps of a staircase together.
    pub fn is_of_a_staircase(self) -> bool {
        matches!(
            self,
            Self::ThroughputChange
                | Self::LatencyMeanChange
                | Self::CpuPerRequestChange
                | Self::MeshCpuPerRequestChange
        )
    }

    /// Whether it holds the variant against another one.
    pub fn is_of_two_variants(self) -> bool {
        !matches!(self, Self::CpuPerRequest | Self::MemoryTotal | Self::UnderWay)
    }

    /// Whether it is derived of one pod, not of all.
    pub fn is_of_a_pod(self) -> bool {
        match self {
            Self::CpuLoadPoints | Self::HeapDifference | Self::PodCpuPerRequestChange => true,
            Self::ThroughputChange
            | Self::LatencyMeanChange
            | Self::LatencyP99Change
            | Self::CpuRatio
            | Self::MemoryRatio
            | Self::LatencyP90Change
            | Self::LatencyP95Change
            | Self::CpuChange
            | Self::MemoryChange
            | Self::CpuPerRequest
            | Self::CpuPerRequestChange
            | Self::MeshCpuPerRequestChange
            | Self::MemoryTotal
            | Self::UnderWay => false,
        }
    }
}

impl Figures {
    /// Every figure with the name under which a plan lists it.
    pub fn named(&self) -> Vec<(String, f64)> {
        let latency = self.latency_ms.unwrap_or_default();
        let single = [
            ("throughput_per_s", self.throughput_per_s),
            ("latency_ms.mean", latency.mean),
            ("latency_ms.p10", latency.p10),
            ("latency_ms.p25", latency.p25),
            ("latency_ms.p50", latency.p50),
            ("latency_ms.p75", latency.p75),
            ("latency_ms.p90", latency.p90),
            ("latency_ms.p95", latency.p95),
            ("latency_ms.p99", latency.p99),
            ("cpu_total_millicores", self.cpu_total_millicores),
            ("memory_total_mib", self.memory_total_mib),
        ];
        let single =
            single.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.get())));
        let of_pods = self.of_pods().map(|(kind, pod, value)| (format!("{kind}.{pod}"), value));
        single.chain(of_pods).collect()
    }

    /// The figures of each pod: their kind, the pod, the value.
    pub fn of_pods(&self) -> impl Iterator<Item = (&'static str, &Name, f64)> {
        let kinds = [
            ("cpu_millicores", &self.cpu_millicores),
            ("memory_mib", &self.memory_mib),
            ("cpu_load_percent", &self.cpu_load_percent),
            ("heap_mib", &self.heap_mib),
        ];
        kinds
            .into_iter()
            .flat_map(|(kind, pods)| pods.iter().map(move |(pod, value)| (kind, pod, value.get())))
    }
}
