//! The collector of spans, in every variant of a study that compares agents.

pub(crate) mod admin;
pub(crate) mod arrivals;
pub(crate) mod spans;

use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::deployment::Deployment;
use crate::host::spawn::Start;
use crate::options::LocalOptions;
use crate::topology::{Site, Topology};

/// Where agents send their spans.
///
/// # Errors
/// When the deployment has no collector.
pub(crate) fn address(
    deployment: &Deployment,
    topology: &Topology,
) -> Result<SocketAddrV4, LabError> {
    topology.front(deployment.collector().map_or("collector", |service| &service.name))
}

/// Where it takes questions, in a deployment that has one.
pub(crate) fn admin_socket(deployment: &Deployment, folder: &Path) -> Option<PathBuf> {
    deployment.collector().map(|_| folder.join("collector.sock"))
}

pub(super) fn start(site: &Site<'_>, options: &LocalOptions) -> Start {
    let mut start = Start::of_words(&options.collector);
    start.command.arg("--listen").arg(site.listens_at().to_string());
    start.command.arg("--admin").args(admin_socket(site.deployment, site.dir));
    start
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::fixture::{chain, petclinic};
    use crate::host::isolation::Isolation;
    use crate::topology;

    #[test]
    fn spans_go_to_the_pod_of_the_collector_and_without_one_nowhere() {
        let topology = topology::plan(&petclinic(), Isolation::Pods, []);
        let at = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 4), 4318);
        assert_eq!(address(&petclinic(), &topology).unwrap(), at);
        let without = topology::plan(&chain(), Isolation::Pods, []);
        assert!(matches!(address(&chain(), &without), Err(LabError::UnknownService(_))));
    }

    #[test]
    fn the_collectors_socket_is_known_where_there_is_a_collector() {
        let folder = Path::new("/run/x");
        let expected = Some(PathBuf::from("/run/x/collector.sock"));
        assert_eq!(admin_socket(&petclinic(), folder), expected);
        assert_eq!(admin_socket(&chain(), folder), None);
    }
}
