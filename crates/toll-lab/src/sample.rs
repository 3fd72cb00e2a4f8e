//! Counters of every component and of the host at one instant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// What was read.
    Value(T),
    /// Why nothing was read.
    Missing(String),
}

/// What a component is to the request's bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user's service.
    Application,
    /// The proxy beside a service.
    Sidecar,
    /// The proxy of a node.
    NodeProxy,
    /// The proxy that reads HTTP between two node proxies.
    Waypoint,
    /// The proxy at the application's edge, the same in all variants.
    Gateway,
    /// The proxy through which traffic leaves the mesh.
    EgressGateway,
    /// What finds the host by its name for the egress gateway, in the same pod.
    SniProxy,
    /// The application's database.
    Database,
    /// What configures the proxies of a mesh that is installed in the cluster.
    ControlPlane,
    /// What takes the spans of tracing agents: toll's own, as the load engine is.
    Collector,
    /// The load engine.
    LoadGenerator,
    /// toll itself: sampling and book-keeping.
    Harness,
}

/// One owner of CPU time and memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Component {
    /// What it is to the request's bill.
    pub role: Role,
    /// The pod it runs in, the service's name for services.
    pub pod: String,
}

/// Everything read at one instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// `CLOCK_MONOTONIC` before the first read, nanoseconds.
    pub at_ns: u64,
    /// How long the reads took, nanoseconds.
    pub took_ns: u64,
    /// In the order of the deployment.
    pub components: Vec<ComponentSample>,
    /// The machine as a whole.
    pub host: HostSample,
    /// What pods with a Prometheus endpoint answered; read after all counters, and not for every sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<PodMetrics>,
}

/// What one pod's Prometheus endpoint answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodMetrics {
    /// Name of the pod.
    pub pod: String,
    /// `CLOCK_MONOTONIC` when it was asked, nanoseconds: after the counters of a sample that waited for it, before
    /// those of a sample taken in passing.
    pub at_ns: u64,
    /// Value by series, as the endpoint writes it: `jvm_memory_used_bytes{area="heap"}`.
    pub series: Reading<BTreeMap<String, f64>>,
}

/// Counters of one component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComponentSample {
    /// Whose.
    pub component: Component,
    /// CPU time since the component began (user + system), nanoseconds. Never decreases.
    pub cpu_ns: Reading<u64>,
    /// Memory now and at its highest.
    pub memory: MemorySample,
}

/// Memory of one component, bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySample {
    /// All that is charged to it, page cache included.
    pub current: Reading<u64>,
    /// Anonymous memory: the part that is its own whatever ran before.
    pub anonymous: Reading<u64>,
    /// The highest `current` so far.
    pub peak: Reading<u64>,
}

/// Counters of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// CPU time of all cores that was neither idle nor stolen, nanoseconds, since boot.
    pub busy_ns: u64,
    /// CPU time that the hypervisor gave to others, nanoseconds (10 ms ticks).
    pub steal_ns: u64,
    /// Tasks that run or wait for a core, at this instant.
    pub runnable: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As toll 0.1 wrote it before pods could tell of themselves.
    const WITHOUT_METRICS: &str =
        r#"{"at_ns":7,"took_ns":2,"components":[],"host":{"busy_ns":1,"steal_ns":0,"runnable":3}}"#;

    #[test]
    fn a_sample_of_an_older_run_has_no_metrics_and_is_written_as_it_was() {
        let sample: Sample = serde_json::from_str(WITHOUT_METRICS).unwrap();
        assert!(sample.metrics.is_empty());
        assert_eq!(serde_json::to_string(&sample).unwrap(), WITHOUT_METRICS);
    }

    #[test]
    fn what_a_pod_told_is_read_back() {
        let series = [("jvm_memory_used_bytes{area=\"heap\"}".to_owned(), 1.5e7)];
        let told = [Reading::Value(BTreeMap::from(series)), Reading::Missing("refused".into())];
        let metrics = told.map(|series| PodMetrics { pod: "vets".into(), at_ns: 9, series }).into();
        let without: Sample = serde_json::from_str(WITHOUT_METRICS).unwrap();
        let sample = Sample { metrics, ..without };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&text).unwrap(), sample, "{text}");
    }
}
