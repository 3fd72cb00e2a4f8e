//! Turns a deployment into the pods that play it: for each service its program and, where toll brings it, the proxy
//! beside it. Pure, but for keys, which were written before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::mesh::Mesh;
use super::objects::{ContainerPlan, FOLDER, PodPlan, Started};
use crate::LabError;
use crate::artifacts::Artifact;
use crate::certificates::edge::EdgeFiles;
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::{DataPlane, Deployment, Mtls, Service};
use crate::envoy::admin::{STATS_PORT, asked_from_outside};
use crate::envoy::plan::ProxyPlan;
use crate::error::KubernetesError;
use crate::host::error::HostError;
use crate::image;
use crate::planes::proxy_plans;
use crate::programs;
use crate::topology::{Site, Topology};
use crate::{Component, Role};

/// The container of a service's program.
pub(super) const PROGRAM: &str = "program";

/// The container of the proxy beside it, which toll brings.
pub(super) const SIDECAR: &str = "sidecar";

/// The pods of `deployment`, in the order of its services. `keys` is the folder on this machine in which its identities
/// were written; none where nothing has been issued, and the pods get no keys.
///
/// # Errors
/// When something of it cannot be in a cluster yet, or keys cannot be read.
pub(super) fn plan(
    deployment: &Deployment,
    topology: &Topology,
    mesh: Option<Mesh>,
    keys: Option<&Path>,
) -> Result<Vec<PodPlan>, LabError> {
    check(deployment)?;
    let folder = Path::new(FOLDER);
    let proxies = match deployment.data_plane.is_installed() {
        true => Vec::new(),
        false => proxy_plans(deployment, topology, folder)?,
    };
    let proxies: BTreeMap<&str, &ProxyPlan> =
        proxies.iter().map(|plan| (plan.pod.as_str(), plan)).collect();
    let sites: Vec<Site<'_>> = Site::all(deployment, topology, folder).collect();
    let pods = deployment.services.iter().map(|service| {
        // Pods of one service differ in nothing but their names.
        let first = sites.iter().find(|site| site.service.name == service.name);
        let site = first.ok_or_else(|| LabError::UnknownService(service.name.clone()))?;
        let proxy = proxies.get(site.pod.pod.as_str());
        let program = programs::contained(site)?.map(|contained| {
            // A kubelet asks at the pod's own address, where a program behind a sidecar is not.
            let starts = proxy.is_none().then_some(Started::Listens(service.port));
            ContainerPlan {
                name: PROGRAM,
                command: contained.command,
                files: contained.files,
                secrets: Vec::new(),
                starts,
            }
        });
        let proxy = proxy.map(|plan| container_of(plan, service, keys)).transpose()?;
        Ok(PodPlan {
            service: service.name.clone(),
            replicas: service.replicas.max(1),
            ports: ports(site),
            containers: program.into_iter().chain(proxy).collect(),
            annotations: mesh.map_or(Vec::new(), |mesh| {
                mesh.annotations(service.name == deployment.entry, mtls_of(deployment))
            }),
        })
    });
    pods.collect()
}

/// The components that run in these pods, each with its container; in the order of the samples.
pub(super) fn components(
    deployment: &Deployment,
    plans: &[PodPlan],
    mesh: Option<Mesh>,
) -> Vec<(Component, &'static str)> {
    let of_pod = |(pod, service): (String, &Service)| {
        let plan = plans.iter().find(|plan| plan.service == service.name);
        let containers = plan.map_or(&[][..], |plan| &plan.containers);
        let component = |name: &'static str| {
            let role = match name {
                PROGRAM => service.program.role(),
                _ => Role::Sidecar,
            };
            (Component { role, pod: pod.clone() }, name)
        };
        let injected = mesh.and_then(Mesh::container).filter(|_| service.takes_sidecar());
        let names = containers.iter().map(|container| container.name).chain(injected);
        names.map(component).collect::<Vec<_>>()
    };
    deployment.pods().into_iter().flat_map(of_pod).collect()
}

/// What the pods of a mesh accept from outside of it.
pub(super) fn mtls_of(deployment: &Deployment) -> Mtls {
    match &deployment.data_plane {
        DataPlane::Sidecar { mtls, .. } => *mtls,
        DataPlane::Ambient(ambient) => ambient.mtls,
        DataPlane::Bare | DataPlane::Agent(_) | DataPlane::Mesher { .. } => Mtls::Permissive,
    }
}

/// Whether the plane can be had from toll in a cluster.
fn check(deployment: &Deployment) -> Result<(), KubernetesError> {
    let not_yet = |what: &str| Err(KubernetesError::NotYet { what: what.to_owned() });
    let has_gateway =
        deployment.services.iter().any(|service| service.program.role() == Role::Gateway);
    if deployment.data_plane.is_installed() {
        return match has_gateway {
            true => not_yet("a gateway of toll's in a mesh that is installed"),
            false => Ok(()),
        };
    }
    match &deployment.data_plane {
        DataPlane::Bare | DataPlane::Sidecar { .. } => Ok(()),
        DataPlane::Agent(_) => not_yet("a tracing agent"),
        DataPlane::Mesher { .. } => not_yet("Mesher"),
        DataPlane::Ambient(_) => not_yet("an ambient data plane of toll's own"),
    }
}

fn ports(site: &Site<'_>) -> Vec<(&'static str, u16)> {
    let program = if site.service.program.is_database() { "tcp" } else { "http" };
    let behind = (site.pod.inbound_port != site.pod.app_port)
        .then_some(("http-sidecar", site.pod.inbound_port));
    let first = std::iter::once((program, site.pod.app_port));
    first.chain(behind).collect()
}

fn container_of(
    plan: &ProxyPlan,
    service: &Service,
    keys: Option<&Path>,
) -> Result<ContainerPlan, LabError> {
    let envoy = image::path_of(Artifact::Envoy);
    let words = plan.args.iter().map(|word| word.to_string_lossy().into_owned());
    let config = Path::new(FOLDER).join(&plan.config_name);
    let name = if plan.role == Role::Sidecar { SIDECAR } else { PROGRAM };
    Ok(ContainerPlan {
        name,
        command: std::iter::once(envoy.to_owned()).chain(words).collect(),
        files: vec![(config, asked_from_outside(&plan.bootstrap)?)],
        secrets: keys.map_or(Ok(Vec::new()), |keys| secrets(keys, service))?,
        starts: Some(Started::Answers(STATS_PORT, "/ready")),
    })
}

/// What was issued for a service: its identity and the mesh's authority, and what a gateway shows its clients.
fn secrets(keys: &Path, service: &Service) -> Result<Vec<(PathBuf, String)>, LabError> {
    let name = &service.name;
    let (here, there) = (IdentityFiles::new(keys), IdentityFiles::new(Path::new(FOLDER)));
    let (edge, edge_there) = (EdgeFiles::new(keys), EdgeFiles::new(Path::new(FOLDER)));
    let files = [
        (here.authority(), there.authority()),
        (here.chain(name), there.chain(name)),
        (here.key(name), there.key(name)),
        (edge.certificate(name), edge_there.certificate(name)),
        (edge.key(name), edge_there.key(name)),
    ];
    let file = |(from, to): (PathBuf, PathBuf)| match fs::read_to_string(&from) {
        Ok(text) => Ok((to, text)),
        Err(source) => Err(HostError::Write { path: from, source }.into()),
    };
    files.into_iter().filter(|(from, _)| from.exists()).map(file).collect()
}
