//! A proxy on each node, for all pods there, and possibly a waypoint that reads HTTP.

pub(super) mod claims;
pub(crate) mod links;
mod node;
mod waypoint;
pub(crate) mod ztunnel;

use std::path::Path;

use node::Node;
use waypoint::Waypoint;

use super::redirect;
use crate::Role;
use crate::certificates::external::externals;
use crate::deployment::{Ambient, Deployment, NodeProxy, Service};
use crate::envoy::plan::{ProxyPlan, Workers};
use crate::error::DataPlaneError;
use crate::topology::{Capture, Topology};

/// The Envoys on the nodes, in their order, then that of the waypoint if there is one; no ztunnels, which are none:
/// see [`ztunnel::plans`].
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod that is called, a gateway is called, pods have no networks
/// of their own, or the deployment has what this plane cannot carry.
pub(super) fn plans(
    deployment: &Deployment,
    ambient: &Ambient,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    if !matches!(topology.capture, Capture::Transparent(_)) {
        return Err(DataPlaneError::AmbientWithoutNetworks);
    }
    if let Some((service, _)) = externals(deployment).next() {
        return Err(DataPlaneError::ExternalInAmbient { service: service.name.clone() });
    }
    match &ambient.proxy {
        NodeProxy::Envoy => envoys(deployment, ambient, topology, dir),
        NodeProxy::Ztunnel { .. } => waypoints(deployment, topology, dir).collect(),
        NodeProxy::Installed => Ok(Vec::new()),
    }
}

/// At most one.
fn waypoints(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> impl Iterator<Item = Result<ProxyPlan, DataPlaneError>> {
    topology.waypoint.iter().map(move |pod| {
        ProxyPlan::new((Role::Waypoint, &pod.pod), Workers::Two, dir, |admin_socket| {
            Ok(Waypoint::new(deployment, topology, &pod.pod, dir)?.bootstrap(admin_socket))
        })
    })
}

fn envoys(
    deployment: &Deployment,
    ambient: &Ambient,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let node = |(index, name): (usize, &str)| {
        let node = Node::new(deployment, topology, index, ambient.mtls, dir)?;
        let plan = ProxyPlan::new((Role::NodeProxy, name), Workers::Two, dir, |admin_socket| {
            Ok(node.bootstrap(admin_socket))
        })?;
        Ok(ProxyPlan { networks: node.pods(), ..plan })
    };
    let nodes = topology.nodes.iter().map(|node| node.name.as_str()).enumerate().map(node);
    nodes.chain(waypoints(deployment, topology, dir)).collect()
}

/// The firewall's script for a pod that has no proxy of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// Name of the pod.
    pub pod: String,
    /// For `nft -f -` inside the pod.
    pub script: String,
}

/// The scripts of the pods that an ambient data plane captures; none with any other.
pub(crate) fn captured_redirects(deployment: &Deployment) -> Vec<Redirect> {
    let Some(ambient) = deployment.data_plane.ambient() else { return Vec::new() };
    let captured = deployment.pods().into_iter().filter(|(_, s)| ambient.captures(&s.program));
    let redirect = |(pod, service): (String, &Service)| {
        let script = redirect::ambient_script(service.port_of_metrics_alone());
        Redirect { pod, script }
    };
    captured.map(redirect).collect()
}
