//! What an environment is made from: settled before anything runs, and the same until it goes.

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use crate::deployment::Deployment;
use crate::host::error::HostError;
use crate::host::files;
use crate::host::isolation::Isolation;
use crate::host::pinning::Pinning;
use crate::host::ports;
use crate::host::spawn::User;
use crate::options::LocalOptions;
use crate::planes::agent::with_absolute_jar;
use crate::topology::{self, Site, Topology};
use crate::{Component, LabError, Role};

/// The machine's side of all environments of a lab.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) options: LocalOptions,
    pub(super) isolation: Isolation,
    pub(super) pinning: Pinning,
    /// Whether the load alone runs as `SCHED_RR`.
    pub(super) load_first: bool,
}

/// One deployment on it.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) machine: Machine,
    pub(super) deployment: Deployment,
    pub(super) topology: Topology,
    /// Configurations, identities and sockets.
    pub(super) folder: PathBuf,
    pub(super) logs: PathBuf,
}

impl Setup {
    /// Takes the ports that the deployment needs of the machine's own.
    ///
    /// # Errors
    /// When there are not enough.
    pub(super) fn new(
        machine: Machine,
        deployment: &Deployment,
        folder: PathBuf,
        logs: &Path,
    ) -> Result<Self, LabError> {
        let isolation = machine.isolation;
        let mut free = free_ports(deployment, isolation)?.into_iter();
        let deployment = with_absolute_jar(deployment.clone());
        let deployment = topology::with_own_ports(deployment, isolation, &mut free);
        let topology = topology::plan(&deployment, isolation, free);
        Ok(Self { machine, deployment, topology, folder, logs: logs.to_owned() })
    }

    /// All pods of the application, in the order of the deployment.
    pub(super) fn sites(&self) -> impl Iterator<Item = Site<'_>> {
        Site::all(&self.deployment, &self.topology, &self.folder)
    }

    /// Whom proxies run as; a node's, which enters the pods' networks and holds the keys of all services there, as the
    /// caller.
    pub(super) fn user_of(&self, proxy: Role) -> User {
        match proxy {
            Role::NodeProxy => User::Caller,
            _ => User::or_caller(self.topology.capture.proxy_user()),
        }
    }

    /// Where the load connects. The plan names an entry that the deployment has: `up` has connected to it.
    pub(super) fn entry(&self) -> SocketAddrV4 {
        let entry = self.topology.front(&self.deployment.entry);
        entry.expect("the entry answered when the environment came up")
    }

    /// Makes the folders for files and logs, which proxies can enter.
    ///
    /// # Errors
    /// When that cannot be.
    pub(super) fn make_folders(&self) -> Result<(), LabError> {
        files::make_folder(&self.logs)?;
        let owner = self.topology.capture.proxy_user();
        match files::make_passable(&self.folder, owner)? {
            Some(closed) => Err(LabError::WorkDirClosed(closed)),
            None => Ok(()),
        }
    }
}

/// What an environment takes from the host; nothing where pods have networks of their own.
fn free_ports(deployment: &Deployment, isolation: Isolation) -> Result<Vec<u16>, HostError> {
    if isolation != Isolation::Loopback {
        return Ok(Vec::new());
    }
    let of_study: Vec<u16> = deployment.services.iter().flat_map(|s| s.ports()).collect();
    ports::free(topology::ports_needed(deployment), &of_study)
        .map_err(|source| HostError::Write { path: "a loopback port".into(), source })
}

/// The component that the load runs as.
pub(super) fn load_generator() -> Component {
    Component { role: Role::LoadGenerator, pod: "load".to_owned() }
}

/// What a component is called in errors.
pub(super) fn describe(component: &Component) -> String {
    match component.role {
        Role::Application | Role::Waypoint | Role::Collector | Role::ControlPlane => {
            component.pod.clone()
        }
        Role::Sidecar => format!("{} sidecar", component.pod),
        Role::Gateway | Role::EgressGateway => format!("{} gateway", component.pod),
        Role::NodeProxy => format!("{} proxy", component.pod),
        Role::SniProxy => format!("{} SNI proxy", component.pod),
        Role::Database => format!("{} database", component.pod),
        Role::LoadGenerator => "load generator".to_owned(),
        Role::Harness => "toll".to_owned(),
    }
}

/// Name of a component's cgroup and, with an extension, of its log. The role comes first: a service may be
/// called `load`, or as a file that the kernel puts into every cgroup.
pub(super) fn file_stem(component: &Component) -> String {
    let role = match component.role {
        Role::Application => "service",
        Role::Sidecar => "sidecar",
        Role::Gateway => "gateway",
        Role::NodeProxy => "node-proxy",
        Role::Waypoint => "waypoint",
        Role::EgressGateway => "egress-gateway",
        Role::SniProxy => "sni-proxy",
        Role::Database => "database",
        Role::Collector => "collector",
        Role::ControlPlane => "control-plane",
        Role::LoadGenerator => return "load".to_owned(),
        Role::Harness => return "toll".to_owned(),
    };
    format!("{role}-{}", component.pod)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_of_a_service_gives_two_components_the_same_files() {
        let names = ["load", "toll", "client", "client.sidecar", "sidecar-client", "cgroup.procs"];
        let of_pod = |pod: &&str| {
            [Role::Application, Role::Sidecar, Role::Gateway, Role::Database]
                .map(|role| Component { role, pod: (*pod).into() })
        };
        let mut components: Vec<_> = names.iter().flat_map(of_pod).collect();
        components.push(load_generator());
        let mut stems: BTreeSet<_> = components.iter().map(file_stem).collect();
        assert_eq!(stems.len(), components.len(), "{stems:?}");
        assert!(stems.insert("scraper".to_owned()));
        assert!(!stems.contains("cgroup.procs"));
    }
}
