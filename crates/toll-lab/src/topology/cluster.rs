//! Turns a deployment in a cluster into addresses: services are called by the addresses of their Services, pods have
//! their own once they run. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::addresses::{
    Capture, INBOUND_PORT, NodeAddresses, OUTBOUND_PORT, PodAddresses, Topology,
};
use super::plan::PROBE_PORT;
use crate::deployment::{Deployment, Service};

/// The first port of a sidecar's listeners for what its program calls.
const FIRST_CALL_PORT: u16 = 15_101;

/// Where everything of `deployment` is called, before any pod runs. `services` are the addresses of the Services, by
/// name; a service without one is at `0.0.0.0`. `own_sidecars` says whether toll brings the sidecars: those of a mesh
/// that is installed in the cluster capture what programs send, so that programs are called as if there were none.
pub(crate) fn in_cluster(
    deployment: &Deployment,
    services: &BTreeMap<String, Ipv4Addr>,
    own_sidecars: bool,
) -> Topology {
    let pod = |(pod, service): (String, &Service)| {
        let meshed = own_sidecars && deployment.has_sidecar(service);
        PodAddresses {
            mesher: None,
            node: 0,
            probe_port: service.tls.then_some(PROBE_PORT),
            pod,
            service: service.name.clone(),
            ip: services.get(&service.name).copied().unwrap_or(Ipv4Addr::UNSPECIFIED),
            app_port: service.port,
            outbound_port: OUTBOUND_PORT,
            inbound_port: if meshed { INBOUND_PORT } else { service.port },
            calls: if meshed { listeners(service) } else { BTreeMap::new() },
        }
    };
    Topology {
        pods: deployment.pods().into_iter().map(pod).collect(),
        nodes: vec![NodeAddresses { name: "node-1".to_owned(), ip: Ipv4Addr::UNSPECIFIED }],
        waypoint: None,
        egress: None,
        load_ip: Ipv4Addr::UNSPECIFIED,
        capture: Capture::InCluster,
    }
}

/// A listener of the sidecar for each service that is called.
fn listeners(service: &Service) -> BTreeMap<String, SocketAddrV4> {
    let ports = FIRST_CALL_PORT..;
    let listener = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    service.calls.iter().cloned().zip(ports.map(listener)).collect()
}

/// The same with the pods' own addresses and the load's, for who asks where a connection came from.
pub(crate) fn with_addresses(
    topology: &Topology,
    pods: &BTreeMap<String, Ipv4Addr>,
    load_ip: Ipv4Addr,
) -> Topology {
    let mut own = Topology { load_ip, ..topology.clone() };
    for pod in &mut own.pods {
        pod.ip = pods.get(&pod.pod).copied().unwrap_or(Ipv4Addr::UNSPECIFIED);
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::graphs::with_replicas;
    use crate::fixture::{chain, in_mesh};

    fn services() -> BTreeMap<String, Ipv4Addr> {
        let at = |(place, name): (u8, &str)| (name.to_owned(), Ipv4Addr::new(10, 96, 0, place));
        [(1, "client"), (2, "server")].map(at).into()
    }

    #[test]
    fn a_bare_program_is_called_by_its_services_address_and_listens_for_everybody() {
        let topology = in_cluster(&chain(), &services(), true);
        let asked = topology.call_addresses("client", "server").unwrap();
        assert_eq!(asked, ["10.96.0.2:9999".parse().unwrap()]);
        assert_eq!(topology.listen_ip(&topology.pods[1]), Ipv4Addr::UNSPECIFIED);
    }

    #[test]
    fn a_sidecar_of_tolls_takes_what_comes_in_and_what_its_program_calls() {
        let topology = in_cluster(&in_mesh(chain()), &services(), true);
        assert_eq!(topology.front("client").unwrap(), "10.96.0.1:15006".parse().unwrap());
        let asked = topology.call_addresses("client", "server").unwrap();
        assert_eq!(asked, ["127.0.0.1:15101".parse().unwrap()]);
        assert_eq!(topology.listen_ip(&topology.pods[1]), Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn a_mesh_of_the_clusters_own_changes_no_address() {
        let bare = in_cluster(&chain(), &services(), false);
        assert_eq!(in_cluster(&in_mesh(chain()), &services(), false), bare);
    }

    #[test]
    fn replicas_are_called_by_one_address_and_told_apart_by_their_own() {
        let many = with_replicas(chain(), "server", 3);
        let topology = in_cluster(&many, &services(), true);
        assert_eq!(topology.call_addresses("client", "server").unwrap().len(), 1);
        let pods = [("server-2".to_owned(), Ipv4Addr::new(10, 244, 0, 9))].into();
        let own = with_addresses(&topology, &pods, Ipv4Addr::new(10, 244, 0, 2));
        assert_eq!(own.pod("server-2").unwrap().ip, Ipv4Addr::new(10, 244, 0, 9));
    }
}
