//! Turns the external services that a pod speaks to into the hosts file of its processes: there is no DNS in the
//! pods' network. Form: hosts(5).

use std::net::Ipv4Addr;

use super::addresses::{Capture, Topology};
use crate::deployment::{Deployment, Service};

/// The file for a pod of `service`, which may be external itself; none where it needs no name.
pub(crate) fn hosts(
    deployment: &Deployment,
    topology: &Topology,
    service: &Service,
) -> Option<String> {
    if !matches!(topology.capture, Capture::Transparent(_)) {
        return None;
    }
    let spoken_to = service.calls.iter().chain([&service.name]);
    let named =
        spoken_to.filter_map(|name| Some((name, deployment.service(name)?.external.as_ref()?)));
    let lines = named.flat_map(|(name, external)| {
        let pods = topology.pods.iter().filter(move |pod| pod.service == *name);
        pods.map(|pod| format!("{} {}\n", pod.ip, external.host))
    });
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| format!("{} localhost\n{lines}", Ipv4Addr::LOCALHOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::External;
    use crate::fixture::chain;
    use crate::host::isolation::Isolation;
    use crate::topology;

    /// `client` calls `server`, which is outside of the mesh.
    fn outside() -> Deployment {
        let mut deployment = chain();
        deployment.services[1].external = Some(External { host: "db.airline.example".into() });
        deployment
    }

    fn hosts_at(isolation: Isolation, deployment: &Deployment, service: usize) -> Option<String> {
        let topology = topology::plan(deployment, isolation, 15_101..);
        hosts(deployment, &topology, &deployment.services[service])
    }

    #[test]
    fn who_calls_an_external_service_finds_it_by_its_name_and_so_does_it_itself() {
        let expected = "127.0.0.1 localhost\n10.77.0.3 db.airline.example\n";
        let of = |service| hosts_at(Isolation::Pods, &outside(), service);
        assert_eq!([of(0), of(1)].map(Option::unwrap), [expected; 2]);
    }

    #[test]
    fn a_pod_that_calls_none_keeps_the_machines_names() {
        assert_eq!(hosts_at(Isolation::Pods, &chain(), 0), None);
    }

    #[test]
    fn on_loopback_the_name_is_localhost_which_needs_no_file() {
        assert_eq!(hosts_at(Isolation::Loopback, &outside(), 0), None);
    }
}
