//! Turns captured pods into the file that ztunnel takes its workloads and policies from, in place of a control plane.
//!
//! Policies name exactly the callers of a service, as the list of identities does that an Envoy in ztunnel's place
//! has. Whoever has no identity is nobody's caller, so they are what makes mTLS strict, too.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::Serialize;

use super::workload::{CLUSTER, NAMESPACE, uid};
use crate::certificates::mesh::TRUST_DOMAIN;
use crate::deployment::{Deployment, Mtls, Service};
use crate::error::DataPlaneError;
use crate::topology::{PodAddresses, Topology};

/// `LocalConfig` of `src/xds.rs`.
#[derive(Debug, Serialize)]
struct LocalConfig<'a> {
    workloads: Vec<Workload<'a>>,
    policies: Vec<Policy<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Workload<'a> {
    uid: String,
    name: &'a str,
    namespace: &'static str,
    trust_domain: &'static str,
    service_account: &'a str,
    workload_name: &'a str,
    canonical_name: &'a str,
    workload_ips: [Ipv4Addr; 1],
    protocol: &'static str,
    network: &'static str,
    node: &'a str,
    cluster_id: &'static str,
    authorization_policies: Vec<String>,
    /// None: applications call the pods of a service by their addresses.
    services: BTreeMap<String, String>,
}

/// Who may open connections to the pods that refer to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Policy<'a> {
    name: String,
    namespace: &'static str,
    scope: &'static str,
    action: &'static str,
    /// Without rules nobody may.
    rules: Vec<[[Match<'a>; 1]; 1]>,
    dry_run: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Match<'a> {
    service_accounts: Vec<ServiceAccount<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceAccount<'a> {
    namespace: &'static str,
    service_account: &'a str,
}

/// The text of the file, the same on all nodes.
///
/// # Errors
/// When it cannot be written as YAML.
pub(super) fn config(
    deployment: &Deployment,
    mtls: Mtls,
    topology: &Topology,
    captured: &[&PodAddresses],
) -> Result<String, DataPlaneError> {
    let closed: Vec<&Service> = deployment
        .services
        .iter()
        .filter(|service| captured.iter().any(|pod| pod.service == service.name))
        .filter(|service| is_closed(deployment, mtls, service))
        .collect();
    let config = LocalConfig {
        workloads: captured.iter().map(|pod| workload(topology, pod, &closed)).collect(),
        policies: closed.iter().map(|service| policy(deployment, service)).collect(),
    };
    serde_saphyr::to_string(&config).map_err(DataPlaneError::Unwritable)
}

/// The load stands outside of the mesh, so the entry is open in both modes.
fn is_closed(deployment: &Deployment, mtls: Mtls, service: &Service) -> bool {
    mtls == Mtls::Strict && service.name != deployment.entry
}

fn workload<'a>(
    topology: &'a Topology,
    pod: &'a PodAddresses,
    closed: &[&Service],
) -> Workload<'a> {
    let policy = closed.iter().find(|service| service.name == pod.service);
    Workload {
        uid: uid(&pod.pod),
        name: &pod.pod,
        namespace: NAMESPACE,
        trust_domain: TRUST_DOMAIN,
        service_account: &pod.service,
        workload_name: &pod.service,
        canonical_name: &pod.service,
        workload_ips: [pod.ip],
        protocol: "HBONE",
        network: "",
        node: &topology.nodes[pod.node].name,
        cluster_id: CLUSTER,
        authorization_policies: policy
            .map(|service| format!("{NAMESPACE}/{}", policy_name(service)))
            .into_iter()
            .collect(),
        services: BTreeMap::new(),
    }
}

fn policy<'a>(deployment: &'a Deployment, service: &Service) -> Policy<'a> {
    let account = |caller: &'a Service| ServiceAccount {
        namespace: NAMESPACE,
        service_account: &caller.name,
    };
    let callers: Vec<_> = deployment.callers_of(&service.name).map(account).collect();
    let rule = (!callers.is_empty()).then_some([[Match { service_accounts: callers }]]);
    Policy {
        name: policy_name(service),
        namespace: NAMESPACE,
        scope: "WorkloadSelector",
        action: "Allow",
        rules: rule.into_iter().collect(),
        dry_run: false,
    }
}

fn policy_name(service: &Service) -> String {
    format!("callers-of-{}", service.name)
}
