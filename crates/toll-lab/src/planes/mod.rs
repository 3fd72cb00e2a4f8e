//! What can stand in the application's path: how each plane is set up, and what its traffic must show. Starts no process
//! and enters no namespace: `local` does.

pub(crate) mod agent;
pub(crate) mod ambient;
mod bare;
pub(crate) mod egress;
mod redirect;
pub(crate) mod sidecar;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod proof_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agent::launch::Launch;
use sidecar::mesher::claims::Bereft;

use crate::LabError;
use crate::artifacts::{Artifact, Artifacts, Need};
use crate::claim::Proof;
use crate::deployment::{AgentKind, DataPlane, Deployment, NodeProxy};
use crate::envoy::plan::ProxyPlan;
use crate::error::DataPlaneError;
use crate::evidence::Outsider;
use crate::programs;
use crate::proof::expected::calls_seen;
use crate::proof::window::Window;
use crate::topology::{Site, Topology};

/// What `deployment` needs of the artifacts: its programs, and what stands in their path.
pub fn needs(deployment: &Deployment) -> BTreeSet<Need> {
    let services = deployment.services.iter();
    let mut needs: BTreeSet<Need> = services.flat_map(|s| programs::needs(&s.program)).collect();
    match &deployment.data_plane {
        DataPlane::Bare | DataPlane::Mesher { .. } => {}
        DataPlane::Agent(agent) => {
            needs.insert(match &agent.kind {
                AgentKind::OpenTelemetry => Need::Artifact(Artifact::OpenTelemetry),
                AgentKind::EaseAgent { jar } => Need::JavaAgent(jar.clone()),
            });
        }
        DataPlane::Sidecar { .. } => {
            needs.insert(Need::Artifact(Artifact::Envoy));
            needs.extend(egress::sni_proxy(deployment).map(|_| Need::SniProxy));
        }
        DataPlane::Ambient(ambient) => {
            if let NodeProxy::Ztunnel { binary } = &ambient.proxy {
                needs.insert(Need::Ztunnel(binary.clone()));
            }
            if ambient.proxy == NodeProxy::Envoy || ambient.waypoint {
                needs.insert(Need::Artifact(Artifact::Envoy));
            }
        }
    }
    needs
}

/// The gateways of a deployment and, unless it is bare, its sidecars, in the order of its pods, and the gateway that
/// traffic leaves the mesh through; or behind the gateways the proxies of an ambient data plane's nodes and its waypoint.
///
/// `dir` is the run's folder: it will hold the configurations and admin sockets, and it holds the identities.
///
/// # Errors
/// When a socket's path is too long, the topology lacks a pod or a call, calls cannot share a port, a
/// gateway is called or has nowhere to send to, or an ambient data plane has no networks to be in or is asked for what is
/// outside of it.
pub(crate) fn proxy_plans(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
) -> Result<Vec<ProxyPlan>, DataPlaneError> {
    let plan = |site| programs::proxy(site).or_else(|| beside(site));
    let in_pods = Site::all(deployment, topology, dir).filter_map(plan);
    let mut plans = in_pods.collect::<Result<Vec<_>, _>>()?;
    match &deployment.data_plane {
        DataPlane::Bare | DataPlane::Agent(_) | DataPlane::Mesher { .. } => {}
        DataPlane::Sidecar { .. } => plans.extend(egress::plan(deployment, topology, dir)?),
        DataPlane::Ambient(ambient) => {
            plans.extend(ambient::plans(deployment, ambient, topology, dir)?);
        }
    }
    Ok(plans)
}

/// What an agent adds to the JVMs of a deployment, by pod; nothing without an agent. `dir` is the run's folder.
///
/// # Errors
/// When the agent's jar is not known, there is no collector for its spans, a path cannot be written as an option, or the
/// study sets what the lab must.
pub(crate) fn agent_launches(
    (deployment, topology): (&Deployment, &Topology),
    artifacts: &Artifacts,
    dir: &Path,
) -> Result<BTreeMap<String, Launch>, LabError> {
    let DataPlane::Agent(agent) = &deployment.data_plane else { return Ok(BTreeMap::new()) };
    let jar = agent::jar(agent, artifacts)?;
    Ok(agent::launches(deployment, agent, topology, jar, dir)?.into_iter().collect())
}

/// The proxy beside the program at `site`.
fn beside(site: Site<'_>) -> Option<Result<ProxyPlan, DataPlaneError>> {
    match &site.deployment.data_plane {
        DataPlane::Sidecar { mtls, .. } => {
            site.service.takes_sidecar().then(|| sidecar::plan(site, *mtls))
        }
        DataPlane::Bare
        | DataPlane::Agent(_)
        | DataPlane::Ambient(_)
        | DataPlane::Mesher { .. } => None,
    }
}

/// Whether the traffic of the window took the path that the variant claims. `outsider` tells what became of probes from
/// outside of the mesh, `bereft` of calls whose called service had lost its Mesher.
///
/// # Errors
/// When an agent's jar is not known.
pub(crate) fn prove(
    seen: &Window<'_>,
    topology: &Topology,
    outsider: &Outsider,
    bereft: &[Bereft],
    artifacts: &Artifacts,
) -> Result<Proof, LabError> {
    let proof = match &seen.deployment.data_plane {
        DataPlane::Bare => agent::claims::prove_none(seen, topology),
        DataPlane::Agent(agent) => {
            let jar = agent::jvms::resolved(agent::jar(agent, artifacts)?);
            agent::claims::prove(seen, topology, &jar)
        }
        DataPlane::Ambient(ambient) => ambient::claims::prove(seen, topology, ambient, outsider),
        DataPlane::Sidecar { .. } => sidecar::proof::prove(seen, topology, outsider),
        DataPlane::Mesher { .. } => sidecar::mesher::claims::prove(seen, bereft),
    };
    Ok(Proof { calls: calls_seen(seen), ..proof })
}
