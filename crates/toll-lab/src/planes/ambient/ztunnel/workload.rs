//! A pod, in the form that ztunnel takes.

use crate::topology::PodAddresses;

/// The namespace and the cluster of all pods.
pub(super) const NAMESPACE: &str = "default";
pub(super) const CLUSTER: &str = "Kubernetes";

/// A pod, in the form that ztunnel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workload {
    /// Unique in the cluster.
    pub uid: String,
    /// Name of the pod.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// Its service account: the name of its service.
    pub service_account: String,
}

impl Workload {
    pub(super) fn new(pod: &PodAddresses) -> Self {
        Self {
            uid: uid(&pod.pod),
            pod: pod.pod.clone(),
            namespace: NAMESPACE.to_owned(),
            service_account: pod.service.clone(),
        }
    }
}

/// As Istio writes it: cluster, API group (none for pods), kind, namespace and name.
pub(super) fn uid(pod: &str) -> String {
    format!("{CLUSTER}//Pod/{NAMESPACE}/{pod}")
}
