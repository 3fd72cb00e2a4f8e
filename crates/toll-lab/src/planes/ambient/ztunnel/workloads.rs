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
use crate::envoy::hbone;
use crate::error::DataPlaneError;
use crate::topology::{HBONE_PORT, PodAddresses, Topology};

/// All pods are in the one that has no name.
const NETWORK: &str = "";

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
    #[serde(skip_serializing_if = "Option::is_none")]
    waypoint: Option<GatewayAddress>,
}

/// Where HBONE for a workload goes in its place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GatewayAddress {
    /// Network, a slash and the address.
    destination: String,
    hbone_mtls_port: u16,
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
    let of_pods = captured.iter().map(|pod| Workload {
        waypoint: waypoint_before(deployment, topology, &pod.service),
        authorization_policies: policies_of(&pod.service, &closed),
        ..workload(topology, (&pod.pod, pod.ip, pod.node), &pod.service)
    });
    let waypoint = topology.waypoint.iter().map(|waypoint| {
        workload(topology, (&waypoint.pod, waypoint.ip, waypoint.node), &waypoint.pod)
    });
    let config = LocalConfig {
        workloads: of_pods.chain(waypoint).collect(),
        policies: closed.iter().map(|service| policy(deployment, topology, service)).collect(),
    };
    serde_saphyr::to_string(&config).map_err(DataPlaneError::Unwritable)
}

/// The load stands outside of the mesh, so the entry is open in both modes.
fn is_closed(deployment: &Deployment, mtls: Mtls, service: &Service) -> bool {
    mtls == Mtls::Strict && service.name != deployment.entry
}

/// What is called is called by way of the waypoint, where there is one.
fn waypoint_before(
    deployment: &Deployment,
    topology: &Topology,
    service: &str,
) -> Option<GatewayAddress> {
    let waypoint = topology.waypoint.as_ref()?;
    deployment.callers_of(service).next()?;
    let destination = format!("{NETWORK}/{}", waypoint.ip);
    Some(GatewayAddress { destination, hbone_mtls_port: HBONE_PORT })
}

fn policies_of(service: &str, closed: &[&Service]) -> Vec<String> {
    let of_it = closed.iter().filter(|closed| closed.name == service);
    of_it.map(|closed| format!("{NAMESPACE}/{}", policy_name(closed))).collect()
}

/// Of a pod by its name, address and node, and of its account.
fn workload<'a>(
    topology: &'a Topology,
    (pod, ip, node): (&'a str, Ipv4Addr, usize),
    account: &'a str,
) -> Workload<'a> {
    Workload {
        uid: uid(pod),
        name: pod,
        namespace: NAMESPACE,
        trust_domain: TRUST_DOMAIN,
        service_account: account,
        workload_name: account,
        canonical_name: account,
        workload_ips: [ip],
        protocol: "HBONE",
        network: NETWORK,
        node: &topology.nodes[node].name,
        cluster_id: CLUSTER,
        authorization_policies: Vec::new(),
        services: BTreeMap::new(),
        waypoint: None,
    }
}

fn policy<'a>(deployment: &'a Deployment, topology: &'a Topology, service: &Service) -> Policy<'a> {
    let account = |caller| ServiceAccount { namespace: NAMESPACE, service_account: caller };
    let callers = hbone::callers_of(deployment, topology, &service.name);
    let callers: Vec<_> = callers.into_iter().map(account).collect();
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
