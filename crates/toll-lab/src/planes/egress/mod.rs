//! The ways by which traffic leaves a mesh of sidecars: the gateway that it may have to go through, and what a service
//! outside of the mesh must show.

pub(super) mod claims;
mod gateway;
pub(crate) mod sni_proxy;

use std::path::Path;

use gateway::Gateway;

use crate::Role;
use crate::deployment::{Deployment, EgressGateway};
use crate::envoy::plan::{ProxyPlan, Workers};
use crate::error::DataPlaneError;
use crate::topology::Topology;

/// The gateway with an SNI proxy beside it, if there is one.
pub(crate) fn sni_proxy(deployment: &Deployment) -> Option<&EgressGateway> {
    deployment.data_plane.egress_gateway().filter(|gateway| gateway.sni_proxy)
}

/// The Envoy that traffic leaves the mesh through, if there is one.
///
/// # Errors
/// When a socket's path is too long, the topology lacks its pod or that of an external service, or it cannot tell
/// external services apart.
pub(super) fn plan(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Option<ProxyPlan>, DataPlaneError> {
    let Some(settings) = deployment.data_plane.egress_gateway() else { return Ok(None) };
    let pod = topology.egress_pod()?;
    let name = (Role::EgressGateway, pod.pod.as_str());
    let plan = ProxyPlan::new(name, Workers::ForEachCore, dir, |admin_socket| {
        let gateway = Gateway::new(deployment, settings, topology, pod, dir)?;
        Ok(gateway.bootstrap(admin_socket))
    });
    plan.map(Some)
}
