//! A proxy beside each program, as Istio's:
//! <https://istio.io/latest/docs/ops/configuration/traffic-management/traffic-routing/>.

mod claims;
mod crossing;
mod databases;
mod envoy;
pub mod mesher;
pub(super) mod proof;

use envoy::Sidecar;

use super::redirect::{self, Excluded};
use crate::Role;
use crate::certificates::external::externals_of;
use crate::deployment::{Egress, Mtls};
use crate::envoy::plan::{ProxyPlan, Workers};
use crate::envoy::settings::applied;
use crate::error::DataPlaneError;
use crate::topology::{Capture, Site};

/// The Envoy beside the program at `site`.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod or a call, or calls cannot share a port.
pub(super) fn plan(site: Site<'_>, mtls: Mtls) -> Result<ProxyPlan, DataPlaneError> {
    let pod = (Role::Sidecar, site.pod.pod.as_str());
    let settings = &site.deployment.envoy;
    let workers = settings.concurrency.map_or(Workers::Two, Workers::Number);
    let plan = ProxyPlan::new(pod, workers, site.dir, |admin_socket| {
        Ok(applied(Sidecar::new(site, mtls)?.bootstrap(admin_socket)?, settings))
    })?;
    let redirect = match site.topology.capture {
        Capture::Transparent(bypass) => Some(redirect::script(bypass, excluded(site))),
        Capture::Explicit | Capture::InCluster => None,
    };
    Ok(ProxyPlan { redirect, ..plan })
}

/// What passes the sidecar by: questions about metrics and, where traffic leaves the mesh so, what it calls there.
fn excluded(site: Site<'_>) -> Excluded {
    let passes = site.deployment.data_plane.egress() == Some(&Egress::Bypass);
    let outside = externals_of(site.deployment, site.service).filter(|_| passes);
    let outside: Vec<&str> = outside.map(|(service, _)| service.name.as_str()).collect();
    let pods = site.topology.pods.iter().filter(|pod| outside.contains(&pod.service.as_str()));
    let addresses = pods.map(|pod| pod.ip).collect();
    Excluded { port: site.service.port_of_metrics_alone(), addresses }
}
