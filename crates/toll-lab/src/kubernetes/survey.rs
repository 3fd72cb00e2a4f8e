//! What a cluster has and allows, before anything is made in it.

use serde_json::{Value, json};

use super::cluster::{Cluster, Kind};
use super::status::NodeStatus;
use crate::LabError;
use crate::error::KubernetesError;

/// What a run needs to be allowed: verb, group and resource.
const NEEDED: [(&str, &str, &str); 16] = [
    ("create", "", "namespaces"),
    ("delete", "", "namespaces"),
    ("list", "", "namespaces"),
    ("patch", "", "configmaps"),
    ("patch", "", "secrets"),
    ("patch", "", "services"),
    ("patch", "", "serviceaccounts"),
    ("list", "", "pods"),
    ("get", "", "pods/log"),
    ("create", "", "pods/portforward"),
    ("list", "", "nodes"),
    ("patch", "apps", "statefulsets"),
    ("patch", "apps", "daemonsets"),
    ("patch", "batch", "jobs"),
    ("patch", "rbac.authorization.k8s.io", "roles"),
    ("patch", "rbac.authorization.k8s.io", "rolebindings"),
];

/// The meshes that are known by the namespace of their control plane.
const MESHES: [(&str, &str); 2] = [("istio-system", "Istio"), ("linkerd", "Linkerd")];

/// What a cluster has and allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSurvey {
    /// Version and address of the API server.
    pub server: String,
    /// Each node with what it is, in words; why they cannot be read.
    pub nodes: Result<Vec<(String, String)>, String>,
    /// Meshes whose control plane is there, with the namespace of it.
    pub meshes: Vec<(String, String)>,
    /// What a run needs and is not allowed here, as `patch apps/statefulsets`.
    pub forbidden: Vec<String>,
    /// Whether a pod may mount the node's counters; why not.
    pub node_counters: Result<(), String>,
}

/// Looks at the cluster of the current context; makes nothing in it.
///
/// # Errors
/// When there is none, or it cannot be reached.
pub fn survey() -> Result<ClusterSurvey, LabError> {
    let cluster = Cluster::connect()?;
    let server = format!("{} at {}", cluster.version()?, cluster.address);
    let nodes = cluster.list(Kind::Node, None, "").map_err(|error| error.to_string());
    let nodes = nodes.map(|nodes| {
        nodes.iter().map(NodeStatus::of).map(|node| (node.name, node.describes)).collect()
    });
    let mut forbidden = Vec::new();
    for (verb, group, resource) in NEEDED {
        if !is_allowed(&cluster, verb, group, resource)? {
            let slash = if group.is_empty() { "" } else { "/" };
            forbidden.push(format!("{verb} {group}{slash}{resource}"));
        }
    }
    Ok(ClusterSurvey {
        server,
        nodes,
        meshes: meshes(&cluster),
        forbidden,
        node_counters: node_counters(&cluster),
    })
}

fn is_allowed(
    cluster: &Cluster,
    verb: &str,
    group: &str,
    resource: &str,
) -> Result<bool, KubernetesError> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
        }},
    });
    let answer = cluster.create(Kind::SelfSubjectAccessReview, &review, false)?;
    Ok(answer["status"]["allowed"] == true)
}

/// One who may not list namespaces sees no mesh.
pub(super) fn meshes(cluster: &Cluster) -> Vec<(String, String)> {
    let names: Vec<Value> = cluster.list(Kind::Namespace, None, "").unwrap_or_default();
    let is_there = |wanted: &str| names.iter().any(|one| one["metadata"]["name"] == wanted);
    let there = MESHES.iter().filter(|(namespace, _)| is_there(namespace));
    there.map(|(namespace, mesh)| ((*mesh).to_owned(), (*namespace).to_owned())).collect()
}

/// Whether the API server would take a namespace in which pods may mount the node's counters.
fn node_counters(cluster: &Cluster) -> Result<(), String> {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "toll-survey",
            "labels": {"pod-security.kubernetes.io/enforce": "privileged"},
        },
    });
    let tried = cluster.create(Kind::Namespace, &namespace, true);
    tried.map(drop).map_err(|error| error.to_string())
}
