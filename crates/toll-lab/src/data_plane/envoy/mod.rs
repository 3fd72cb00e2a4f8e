//! The adapter for Envoy: from a deployment to sidecars, gateways and waypoints as Istio configures them and to node
//! proxies in ztunnel's place, and from Envoy's statistics back to [`ProxyCounters`](super::ProxyCounters).
//!
//! What real Istio adds and this leaves out: the agent beside each Envoy (about 30 MB), configuration over
//! xDS, and the filters of Istio's own Envoy build (peer metadata, request statistics).

use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::admin_socket::short_enough;
use super::external::externals_of;
use super::redirect::{self, Excluded};
use super::{Capture, DataPlaneError, PodAddresses, ProxyPlan, Topology};
use crate::Role;
use crate::deployment::{Ambient, Deployment, Egress, EgressGateway, Mtls, Service};

mod admin;
mod bootstrap;
mod call;
mod cluster;
mod egress;
mod external;
mod gateway;
mod hbone;
mod listener;
mod node;
mod sidecar;
mod tls;
mod waypoint;

#[cfg(test)]
mod tests;

pub(super) use admin::{counters, ready};

/// Worker threads of a sidecar: Istio's default, so that the sidecar costs what its users pay. On a machine of
/// two cores a second thread was measured to gain nothing, and memory hardly depends on their number.
const SIDECAR_WORKERS: Option<u32> = Some(2);

/// Worker threads of a node's proxy: ztunnel's default.
const NODE_WORKERS: Option<u32> = Some(2);

/// Worker threads of a waypoint: as many as its limit of two CPUs gives it in Istio.
const WAYPOINT_WORKERS: Option<u32> = Some(2);

/// A gateway's worker threads are left to Envoy, as Istio does: one for each core that it may run on. So a
/// gateway, which all load passes, is not the first thing to be full, and it is the same in all variants.
const GATEWAY_WORKERS: Option<u32> = None;

/// What the proxy of one pod is planned from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub deployment: &'a Deployment,
    pub topology: &'a Topology,
    pub service: &'a Service,
    pub pod: &'a PodAddresses,
    /// The run's folder.
    pub dir: &'a Path,
}

/// The Envoy beside a pod's program.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod or a call, or calls cannot share a port.
pub(super) fn sidecar_plan(at: Place<'_>, mtls: Mtls) -> Result<ProxyPlan, DataPlaneError> {
    let admin_socket = admin_socket(&at.pod.pod, at.dir)?;
    let config = sidecar::Sidecar::new(at, mtls)?.bootstrap(&admin_socket)?;
    let redirect = match at.topology.capture {
        Capture::Transparent(bypass) => Some(redirect::script(bypass, excluded(at))),
        Capture::Explicit => None,
    };
    let pod = (Role::Sidecar, at.pod.pod.as_str());
    let plan = proxy_plan(pod, at.dir, &config, SIDECAR_WORKERS, admin_socket)?;
    Ok(ProxyPlan { redirect, ..plan })
}

/// What passes the sidecar by: questions about metrics and, where traffic leaves the mesh so, what it calls there.
fn excluded(at: Place<'_>) -> Excluded {
    let passes = at.deployment.data_plane.egress() == Some(&Egress::Bypass);
    let outside: Vec<&str> = match passes {
        true => externals_of(at.deployment, at.service).map(|(s, _)| s.name.as_str()).collect(),
        false => Vec::new(),
    };
    let pods = at.topology.pods.iter().filter(|pod| outside.contains(&pod.service.as_str()));
    let addresses = pods.map(|pod| pod.ip);
    Excluded { port: at.service.port_of_metrics_alone(), addresses: addresses.collect() }
}

/// The Envoy that a gateway is.
///
/// # Errors
/// When a socket's path is too long, or the topology lacks what the gateway calls.
pub(super) fn gateway_plan(at: Place<'_>) -> Result<ProxyPlan, DataPlaneError> {
    let admin_socket = admin_socket(&at.pod.pod, at.dir)?;
    let config = gateway::Gateway::new(at)?.bootstrap(&admin_socket);
    let pod = (Role::Gateway, at.pod.pod.as_str());
    proxy_plan(pod, at.dir, &config, GATEWAY_WORKERS, admin_socket)
}

/// The Envoy that traffic leaves the mesh through.
///
/// # Errors
/// When a socket's path is too long, the topology lacks its pod or that of an external service, or it cannot tell
/// external services apart.
pub(super) fn egress_plan(
    deployment: &Deployment,
    settings: &EgressGateway,
    topology: &Topology,
    dir: &Path,
) -> Result<ProxyPlan, DataPlaneError> {
    let pod = topology.egress.as_ref().ok_or_else(no_egress_pod)?;
    let admin_socket = admin_socket(&pod.pod, dir)?;
    let gateway = egress::Gateway::new(deployment, settings, topology, pod, dir)?;
    let config = gateway.bootstrap(&admin_socket);
    proxy_plan((Role::EgressGateway, &pod.pod), dir, &config, GATEWAY_WORKERS, admin_socket)
}

/// The name that sidecars ask the gateway for.
pub(super) fn gateway_sni(port: u16, host: &str) -> String {
    tls::outbound_sni(port, host)
}

fn no_egress_pod() -> DataPlaneError {
    DataPlaneError::PodWithoutAddresses { pod: "egress".to_owned() }
}

/// The Envoys on the nodes, in their order, then that of the waypoint if there is one.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod that is called, or a gateway is called.
pub(super) fn ambient_plans(
    deployment: &Deployment,
    ambient: &Ambient,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let node = |(index, name): (usize, &str)| {
        let admin_socket = admin_socket(name, dir)?;
        let node = node::Node::new(deployment, topology, index, ambient.mtls, dir)?;
        let config = node.bootstrap(&admin_socket);
        let pod = (Role::NodeProxy, name);
        let plan = proxy_plan(pod, dir, &config, NODE_WORKERS, admin_socket)?;
        Ok(ProxyPlan { networks: node.pods(), ..plan })
    };
    let waypoint = |name: &str| {
        let admin_socket = admin_socket(name, dir)?;
        let waypoint = waypoint::Waypoint::new(deployment, topology, name, dir)?;
        let config = waypoint.bootstrap(&admin_socket);
        proxy_plan((Role::Waypoint, name), dir, &config, WAYPOINT_WORKERS, admin_socket)
    };
    let nodes = topology.nodes.iter().map(|node| node.name.as_str()).enumerate().map(node);
    let waypoint = topology.waypoint.iter().map(|pod| waypoint(&pod.pod));
    nodes.chain(waypoint).collect()
}

fn proxy_plan(
    (role, pod): (Role, &str),
    dir: &Path,
    config: &Value,
    workers: Option<u32>,
    admin_socket: PathBuf,
) -> Result<ProxyPlan, DataPlaneError> {
    let config_name = format!("{pod}.envoy.yaml");
    Ok(ProxyPlan {
        pod: pod.to_owned(),
        role,
        config: serde_saphyr::to_string(config).map_err(DataPlaneError::Unwritable)?,
        redirect: None,
        networks: Vec::new(),
        args: arguments(workers, &dir.join(&config_name)),
        config_name,
        admin_socket,
    })
}

fn admin_socket(pod: &str, dir: &Path) -> Result<PathBuf, DataPlaneError> {
    short_enough(dir.join(format!("{pod}.admin.sock")))
}

fn arguments(workers: Option<u32>, config: &Path) -> Vec<OsString> {
    let workers = workers.map(|n| ["--concurrency".to_owned(), n.to_string()]);
    // With hot restart, all Envoys of the machine would share one memory segment by its default name.
    let flags = ["--disable-hot-restart", "-l", "warning", "-c"].map(OsString::from);
    let workers = workers.into_iter().flatten().map(OsString::from);
    workers.chain(flags).chain([config.into()]).collect()
}

/// Wraps a message's fields as Envoy's `Any`.
fn typed(kind: &str, fields: Value) -> Value {
    let mut message = json!({"@type": format!("type.googleapis.com/{kind}")});
    if let (Value::Object(message), Value::Object(fields)) = (&mut message, fields) {
        message.extend(fields);
    }
    message
}

fn socket_address(address: SocketAddrV4) -> Value {
    let (ip, port) = (address.ip().to_string(), address.port());
    json!({"socket_address": {"address": ip, "port_value": port}})
}
