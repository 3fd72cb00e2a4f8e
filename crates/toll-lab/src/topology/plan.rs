//! Turns a deployment and an isolation level into addresses. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use super::addresses::{
    Bypass, Capture, EgressAddresses, INBOUND_PORT, MesherAddresses, NodeAddresses, OUTBOUND_PORT,
    PROXY_MARK, PROXY_UID, PodAddresses, Topology, Waypoint,
};
use crate::deployment::{Deployment, Service};
use crate::host::isolation::Isolation;
use crate::host::network;
use crate::host::networks::End;

/// `deployment` as it comes up: with loopback isolation services have ports out of `free` in the place of the study's,
/// so that several environments stand beside each other, unless the study's are fixed.
pub(crate) fn with_own_ports(
    mut deployment: Deployment,
    isolation: Isolation,
    free: &mut impl Iterator<Item = u16>,
) -> Deployment {
    if isolation != Isolation::Loopback || deployment.has_fixed_ports() {
        return deployment;
    }
    let mut next = || free.next().expect("as many ports are given as ports_needed says");
    for service in &mut deployment.services {
        let of_study = std::mem::replace(&mut service.port, next());
        match &mut service.metrics {
            Some(metrics) if metrics.port == of_study => metrics.port = service.port,
            // Nobody else sends spans.
            Some(metrics) if service.program.takes_metrics_port() => {
                metrics.port = next();
            }
            _ => {}
        }
    }
    deployment
}

/// Where everything of `deployment` listens.
///
/// With loopback isolation the sidecars take their ports from `free`, which must have at least
/// [`ports_needed`].
pub(crate) fn plan(
    deployment: &Deployment,
    isolation: Isolation,
    free: impl IntoIterator<Item = u16>,
) -> Topology {
    match isolation {
        Isolation::Pods => transparent(deployment, Bypass::Uid(PROXY_UID)),
        Isolation::Rootless => transparent(deployment, Bypass::Mark(PROXY_MARK)),
        Isolation::Loopback => explicit(deployment, free.into_iter()),
    }
}

/// The most ports that `deployment` takes out of those that are free, on the loopback address: a service's own and its
/// endpoint's; of a sidecar one for what comes in and one for each called service; one for the probes of a gateway that
/// speaks TLS; two for the gateway that traffic leaves through and its SNI proxy; two for each Mesher and one for their
/// registry.
pub(crate) fn ports_needed(deployment: &Deployment) -> usize {
    let is_mesher = deployment.data_plane.is_mesher();
    let of_sidecar = |service: &Service| match deployment.has_sidecar(service) {
        true if is_mesher => 2,
        true => 1 + through_sidecar(deployment, service).count(),
        false => 0,
    };
    let of_service = |service: &Service| {
        service.ports().count() + of_sidecar(service) + usize::from(service.tls)
    };
    let of_services: usize = deployment.services.iter().map(of_service).sum();
    let of_plane = if deployment.data_plane.egress_gateway().is_some() { 2 } else { 0 };
    of_services + of_plane + usize::from(is_mesher)
}

/// What `service`, which has a sidecar, calls through it.
fn through_sidecar<'a>(
    deployment: &'a Deployment,
    service: &'a Service,
) -> impl Iterator<Item = &'a String> {
    service.calls.iter().filter(|callee| !deployment.passes_by(callee))
}

/// The pods that the data plane itself needs come behind the application's: a node's each, then the waypoint's or the
/// egress gateway's.
fn transparent(deployment: &Deployment, bypass: Bypass) -> Topology {
    let nodes = deployment.nodes.max(1);
    let has_mesher = deployment.data_plane.is_mesher();
    let pod = |(index, (pod, service)): (usize, (String, &Service))| PodAddresses {
        mesher: has_mesher.then(|| MesherAddresses {
            provider: SocketAddrV4::new(network::pod_ip(index), MESHER_PORT),
            admin: SocketAddrV4::new(network::pod_ip(index), MESHER_ADMIN_PORT),
            registry: SocketAddrV4::new(network::LOAD_IP, REGISTRY_PORT),
        }),
        node: service.node.map_or(index, |pinned| pinned.saturating_sub(1)) % nodes,
        probe_port: service.tls.then_some(PROBE_PORT),
        pod,
        service: service.name.clone(),
        ip: network::pod_ip(index),
        app_port: service.port,
        outbound_port: OUTBOUND_PORT,
        inbound_port: INBOUND_PORT,
        calls: BTreeMap::new(),
    };
    let pods: Vec<PodAddresses> = deployment.pods().into_iter().enumerate().map(pod).collect();
    let behind = pods.len();
    let node = |place| NodeAddresses {
        name: format!("node-{}", place + 1),
        ip: network::pod_ip(behind + place),
    };
    let has_waypoint = deployment.data_plane.ambient().is_some_and(|ambient| ambient.waypoint);
    let waypoint =
        || Waypoint { pod: WAYPOINT.to_owned(), ip: network::pod_ip(behind + nodes), node: 0 };
    Topology {
        pods,
        nodes: (0..nodes).map(node).collect(),
        waypoint: has_waypoint.then(waypoint),
        egress: deployment.data_plane.egress_gateway().map(|_| EgressAddresses {
            pod: EGRESS.to_owned(),
            ip: network::pod_ip(behind + nodes),
            node: 0,
            port: EGRESS_PORT,
            sni_port: SNI_PORT,
        }),
        load_ip: network::LOAD_IP,
        capture: Capture::Transparent(bypass),
    }
}

/// The pods of the application, then those of an ambient data plane's own proxies or of the egress gateway.
pub(crate) fn ends(deployment: &Deployment, topology: &Topology) -> Vec<End> {
    let of_pod = |pod: &PodAddresses| End { pod: pod.pod.clone(), ip: pod.ip, node: pod.node };
    let of_node = |(node, proxy): (usize, &NodeAddresses)| End {
        pod: proxy.name.clone(),
        ip: proxy.ip,
        node,
    };
    let of_waypoint =
        |proxy: &Waypoint| End { pod: proxy.pod.clone(), ip: proxy.ip, node: proxy.node };
    let is_ambient = deployment.data_plane.ambient().is_some();
    let nodes = topology.nodes.iter().enumerate().filter(|_| is_ambient);
    let of_egress = |gateway: &EgressAddresses| End {
        pod: gateway.pod.clone(),
        ip: gateway.ip,
        node: gateway.node,
    };
    let pods = topology.pods.iter().map(of_pod);
    let of_ambient = nodes.map(of_node).chain(topology.waypoint.iter().map(of_waypoint));
    pods.chain(of_ambient).chain(topology.egress.iter().map(of_egress)).collect()
}

/// Where Meshers take requests and tell of themselves, and where their registry listens: ServiceComb's own choices.
const MESHER_PORT: u16 = 30101;
const MESHER_ADMIN_PORT: u16 = 30102;
const REGISTRY_PORT: u16 = 30100;
/// A Mesher takes nothing from others at 127.0.0.1.
const MESHER_ON_LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Name of the waypoint's pod.
const WAYPOINT: &str = "waypoint";
/// Name of the egress gateway's pod.
const EGRESS: &str = "egress";
/// Where the egress gateway listens: the port at which Istio's gateways take TLS that they route by SNI.
const EGRESS_PORT: u16 = 15443;
/// Where the SNI proxy beside it listens, as in Istio's task on wildcard hosts.
const SNI_PORT: u16 = 18443;
/// Where a gateway that speaks TLS takes plaintext from inside of its pod; Istio's gateways have their status there.
pub(super) const PROBE_PORT: u16 = 15021;

/// Of a pod without a sidecar only the program's own port means something.
fn explicit(deployment: &Deployment, mut free: impl Iterator<Item = u16>) -> Topology {
    let mut next = || free.next().expect("as many ports are given as ports_needed says");
    let registry =
        deployment.data_plane.is_mesher().then(|| SocketAddrV4::new(Ipv4Addr::LOCALHOST, next()));
    let mut pod = |(pod, service): (String, &Service)| {
        let meshed = deployment.has_sidecar(service) && registry.is_none();
        PodAddresses {
            mesher: registry.map(|registry| MesherAddresses {
                provider: SocketAddrV4::new(MESHER_ON_LOOPBACK, next()),
                admin: SocketAddrV4::new(MESHER_ON_LOOPBACK, next()),
                registry,
            }),
            node: 0,
            probe_port: service.tls.then(&mut next),
            pod,
            service: service.name.clone(),
            ip: Ipv4Addr::LOCALHOST,
            app_port: service.port,
            outbound_port: OUTBOUND_PORT,
            inbound_port: if meshed { next() } else { service.port },
            calls: through_sidecar(deployment, service)
                .filter(|_| meshed)
                .map(|callee| (callee.clone(), SocketAddrV4::new(Ipv4Addr::LOCALHOST, next())))
                .collect(),
        }
    };
    let pods = deployment.pods().into_iter().map(&mut pod).collect();
    let egress = deployment.data_plane.egress_gateway().map(|_| EgressAddresses {
        pod: EGRESS.to_owned(),
        ip: Ipv4Addr::LOCALHOST,
        node: 0,
        port: next(),
        sni_port: next(),
    });
    Topology {
        pods,
        nodes: vec![NodeAddresses { name: "node-1".to_owned(), ip: Ipv4Addr::LOCALHOST }],
        waypoint: None,
        egress,
        load_ip: Ipv4Addr::LOCALHOST,
        capture: Capture::Explicit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::graphs::{airline, customer, leaving, ways_out, with_replicas};
    use crate::fixture::{chain, in_mesh, petclinic};
    use crate::{LabError, Metrics, Program, UserProgram};

    #[test]
    fn pods_have_their_own_addresses_and_keep_the_ports_of_the_study() {
        let topology = plan(&chain(), Isolation::Pods, []);
        let server = &topology.pods[1];
        assert_eq!((server.ip, server.app_port), (Ipv4Addr::new(10, 77, 0, 3), 9999));
        assert_eq!(topology.capture, Capture::Transparent(Bypass::Uid(1337)));
    }

    #[test]
    fn without_namespaces_a_bare_client_calls_the_server_itself() {
        let topology = plan(&chain(), Isolation::Loopback, []);
        assert_eq!(topology.call_addresses("client", "server").unwrap(), [local(9999)]);
        assert_eq!(topology.front("client").unwrap(), local(9000));
    }

    fn own_ports(deployment: Deployment, isolation: Isolation) -> Vec<u16> {
        let moved = with_own_ports(deployment, isolation, &mut (20_001..));
        moved.services.iter().flat_map(Service::ports).collect()
    }

    #[test]
    fn without_namespaces_each_environment_has_ports_of_its_own() {
        assert_eq!(own_ports(chain(), Isolation::Loopback), [20_001, 20_002]);
        assert_eq!(own_ports(chain(), Isolation::Pods), [9000, 9999]);
        let in_order: Vec<u16> = (20_001..=20_004).collect();
        assert_eq!(own_ports(petclinic(), Isolation::Loopback), in_order, "with an endpoint");
        assert_eq!(ports_needed(&petclinic()), in_order.len());
    }

    #[test]
    fn without_namespaces_a_program_of_the_users_own_fixes_all_ports() {
        let mut deployment = chain();
        deployment.services[1].program = Program::Command(UserProgram::of(["./server"]));
        assert_eq!(own_ports(deployment, Isolation::Loopback), [9000, 9999]);
    }

    #[test]
    fn an_endpoint_stays_on_the_services_port_or_where_nobody_is_told_of_it() {
        let endpoint = |port| {
            let mut deployment = chain();
            deployment.services[1].metrics =
                Some(Metrics { port, path: "/metrics".into(), series: vec![] });
            own_ports(deployment, Isolation::Loopback)
        };
        assert_eq!(endpoint(9999), [20_001, 20_002, 20_002]);
        assert_eq!(endpoint(9080), [20_001, 20_002, 9080]);
    }

    #[test]
    fn without_namespaces_callers_and_load_are_given_the_sidecars_ports() {
        let mesh = in_mesh(chain());
        // And one for each service itself.
        assert_eq!(ports_needed(&mesh), 3 + 2);
        let topology = plan(&mesh, Isolation::Loopback, [20_001, 20_002, 20_003]);
        assert_eq!(topology.front("client").unwrap(), local(20_001));
        assert_eq!(topology.call_addresses("client", "server").unwrap(), [local(20_002)]);
        assert_eq!(topology.front("server").unwrap(), local(20_003));
    }

    #[test]
    fn each_replica_has_a_pod_and_those_behind_it_move_up() {
        let topology = plan(&with_replicas(customer(), "person", 2), Isolation::Pods, []);
        let pods: Vec<_> =
            topology.pods.iter().map(|p| (p.pod.as_str(), p.ip.octets()[3])).collect();
        let expected = [
            ("ingress", 2),
            ("customer", 3),
            ("person-1", 4),
            ("person-2", 5),
            ("name", 6),
            ("postgres", 7),
        ];
        assert_eq!(pods, expected);
    }

    #[test]
    fn without_namespaces_a_gateway_keeps_its_port_and_a_database_is_asked_through_sidecars() {
        let mesh = in_mesh(customer());
        // One for each service, one for what comes in at each of four pods, one for each call but the gateway's.
        assert_eq!(ports_needed(&mesh), 5 + 4 + 3);
        let topology = plan(&mesh, Isolation::Loopback, 20_001..);
        assert_eq!(topology.front("ingress").unwrap(), local(8080));
        let asked = topology.call_addresses("name", "postgres").unwrap();
        assert_eq!(asked, [topology.pods[3].calls["postgres"]]);
        assert_ne!(asked, [local(5432)]);
    }

    #[test]
    fn a_call_to_a_service_that_is_not_there_is_an_error() {
        let topology = plan(&chain(), Isolation::Pods, []);
        let error = topology.call_addresses("client", "nobody").unwrap_err();
        assert!(matches!(error, LabError::UnknownService(name) if name == "nobody"));
    }

    fn in_case(name: &str) -> Deployment {
        let (_, egress) = ways_out().into_iter().find(|(case, _)| *case == name).unwrap();
        leaving(airline(), egress)
    }

    #[test]
    fn the_egress_gateway_has_a_pod_behind_the_applications() {
        let mesh = in_case("gateway");
        let topology = plan(&mesh, Isolation::Pods, []);
        let egress = topology.egress.clone().unwrap();
        assert_eq!((egress.port, egress.sni_port), (15443, 18443));
        let ends = ends(&mesh, &topology);
        let last = ends.last().unwrap();
        assert_eq!((last.pod.as_str(), last.ip), ("egress", egress.ip));
        assert!(ends[..5].iter().all(|end| end.ip != egress.ip));
        for without in ["bypass", "sidecar"] {
            assert_eq!(plan(&in_case(without), Isolation::Pods, []).egress, None);
        }
    }

    #[test]
    fn without_namespaces_the_gateway_takes_two_ports_and_who_bypasses_is_given_the_database_itself()
     {
        let asked = |name: &str| {
            let mesh = in_case(name);
            let needed = ports_needed(&mesh);
            let free = (20_001..).take(needed);
            let topology = plan(&mesh, Isolation::Loopback, free);
            let ports = topology.call_addresses("flights", "airline-db").unwrap();
            (needed, ports == [local(27017)], topology.egress.is_some())
        };
        // Beside those of the five services each of four pods has one for what comes in, and there are five calls to
        // each other, three to the database.
        assert_eq!(asked("bypass"), (5 + 4 + 5, true, false));
        assert_eq!(asked("sidecar"), (5 + 4 + 5 + 3, false, false));
        assert_eq!(asked("gateway-sni"), (5 + 4 + 5 + 3 + 2, false, true));
    }

    fn local(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }
}
