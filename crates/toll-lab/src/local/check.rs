//! Whether a deployment can come up on this machine: looked at before anything is made.

use std::collections::HashSet;

use super::example_topology;
use super::setup::Machine;
use crate::LabError;
use crate::artifacts::{Artifact, Artifacts, stream_module};
use crate::deployment::Deployment;
use crate::host::isolation::Isolation;
use crate::host::{network, ports};
use crate::planes::{self, egress};
use crate::programs;
use crate::topology;

/// Whether pods, artifacts and ports suffice.
///
/// # Errors
/// What does not.
pub(super) fn check(deployment: &Deployment, machine: &Machine) -> Result<(), LabError> {
    check_pods(deployment, machine.isolation)?;
    check_artifacts(deployment, &machine.options.artifacts)?;
    match machine.isolation {
        Isolation::Loopback => check_host(deployment),
        Isolation::Pods | Isolation::Rootless => Ok(()),
    }
}

/// Whether there can be a network for each of them.
fn check_pods(deployment: &Deployment, isolation: Isolation) -> Result<(), LabError> {
    let nodes = deployment.nodes;
    if isolation == Isolation::Loopback && nodes > 1 {
        return Err(LabError::NodesNeedPods { nodes });
    }
    let topology = example_topology(deployment, isolation);
    let ends = topology::ends(deployment, &topology);
    let services = ends.len() + nodes.saturating_sub(1);
    if services > network::MOST_PODS {
        return Err(LabError::TooManyServices { services, most: network::MOST_PODS });
    }
    let mut names = HashSet::new();
    match ends.into_iter().find(|end| !names.insert(end.pod.clone())) {
        Some(end) => Err(LabError::PodNameTaken { pod: end.pod }),
        None => Ok(()),
    }
}

fn check_artifacts(deployment: &Deployment, artifacts: &Artifacts) -> Result<(), LabError> {
    planes::needs(deployment).iter().try_for_each(|need| need.check(artifacts))?;
    deployment.services.iter().try_for_each(|service| programs::check(service, artifacts))?;
    if egress::sni_proxy(deployment).is_none() {
        return Ok(());
    }
    let nginx = artifacts.path(Artifact::Nginx)?;
    let module = stream_module(nginx);
    module.map(drop).map_err(|source| LabError::NotAnSniProxy { source: Box::new(source) })
}

/// What pods without networks of their own take from the host.
fn check_host(deployment: &Deployment) -> Result<(), LabError> {
    let services = &deployment.services;
    if let Some(many) = services.iter().find(|service| service.replicas > 1) {
        let (service, replicas) = (many.name.clone(), many.replicas);
        return Err(LabError::ReplicasNeedPods { service, replicas });
    }
    let fixed = services.iter().filter(|_| deployment.has_fixed_ports());
    let ports = fixed.flat_map(|service| service.ports().map(move |port| (port, service)));
    match ports.into_iter().find(|(port, _)| !ports::is_free(*port)) {
        Some((port, service)) => Err(LabError::PortInUse {
            port,
            service: service.name.clone(),
            holder: ports::holder(port),
        }),
        None => Ok(()),
    }
}
