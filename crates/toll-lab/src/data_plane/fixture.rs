//! An application with all that a graph can hold, for the tests of the data plane.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use super::{Capture, EgressAddresses, NodeAddresses, PodAddresses, Topology, Waypoint};
use crate::deployment::{
    Airline, AirlineDatabase, AirlinePart, DataPlane, DatabaseServer, Deployment, Egress,
    EgressGateway, External, Mtls, Postgres, Program, Queries, Service, SidecarProxy,
};
use crate::fixture::chain;

/// `ingress:8080` hands to `customer:8081`, that calls `person:8082`, that calls `name:8083`, that asks
/// `postgres:5432`; no data plane.
pub(crate) fn customer() -> Deployment {
    let chain = chain();
    let service = |name: &str, port: u16, calls: &[&str]| Service {
        name: name.into(),
        port,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        ..chain.services[0].clone()
    };
    let of = |service: Service, program: Program| Service { program, ..service };
    let mut name = service("name", 8083, &["postgres"]);
    if let Program::BuiltIn(behaviour) = &mut name.program {
        behaviour.queries = Some(Queries {
            database: "postgres".into(),
            connections: 16,
            read: "SELECT 1".into(),
            write: Some("INSERT INTO customers SELECT $1::text".into()),
        });
    }
    let written = Some("SELECT count(*), count(DISTINCT id) FROM customers".into());
    let postgres = Program::Postgres(Postgres { seed: String::new(), written });
    Deployment {
        entry: "ingress".into(),
        services: vec![
            of(service("ingress", 8080, &["customer"]), Program::Gateway),
            service("customer", 8081, &["person"]),
            service("person", 8082, &["name"]),
            name,
            of(service("postgres", 5432, &[]), postgres),
        ],
        ..chain
    }
}

/// `web:8080` calls `flights:8081`, `bookings:8082` and `customers:8083`, which ask `airline-db:27017`, a MongoDB
/// outside of the mesh; no data plane.
pub(crate) fn airline() -> Deployment {
    let chain = chain();
    let service = |name: &str, port: u16, calls: &[&str], program| Service {
        name: name.into(),
        port,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        program,
        ..chain.services[0].clone()
    };
    let part = |part, connections| {
        Program::Airline(Airline { part, work: Duration::from_micros(300), connections })
    };
    let database = Program::AirlineDatabase(AirlineDatabase {
        server: DatabaseServer::MongoDb,
        flights: 200,
        seats: 1000,
        customers: 100,
    });
    let external = Some(External { host: "db.airline.example".into() });
    let bookings = ["customers", "flights", "airline-db"];
    Deployment {
        entry: "web".into(),
        services: vec![
            service("web", 8080, &["flights", "bookings", "customers"], part(AirlinePart::Web, 0)),
            service("flights", 8081, &["airline-db"], part(AirlinePart::Flights, 16)),
            service("bookings", 8082, &bookings, part(AirlinePart::Bookings, 16)),
            service("customers", 8083, &["airline-db"], part(AirlinePart::Customers, 16)),
            Service { external, ..service("airline-db", 27017, &[], database) },
        ],
        ..chain
    }
}

/// The same on PostgreSQL.
pub(crate) fn on_postgres(mut deployment: Deployment) -> Deployment {
    for service in &mut deployment.services {
        if let Program::AirlineDatabase(database) = &mut service.program {
            database.server = DatabaseServer::Postgres;
            service.port = 5432;
        }
    }
    deployment
}

/// The same in a mesh of sidecars that traffic leaves this way.
pub(crate) fn leaving(deployment: Deployment, egress: Egress) -> Deployment {
    let data_plane = DataPlane::Sidecar { proxy: SidecarProxy::Envoy, mtls: Mtls::Strict, egress };
    Deployment { data_plane, ..deployment }
}

/// The ways of the study's five cases, in order.
pub(crate) fn ways_out() -> [(&'static str, Egress); 5] {
    let gateway = |mtls, sni_proxy| {
        Egress::Gateway(EgressGateway { mtls, sni_proxy, hosts: vec!["*.airline.example".into()] })
    };
    [
        ("bypass", Egress::Bypass),
        ("sidecar", Egress::Sidecar),
        ("gateway", gateway(false, false)),
        ("gateway-mtls", gateway(true, false)),
        ("gateway-sni", gateway(true, true)),
    ]
}

/// The same, but its entry's clients speak TLS.
pub(crate) fn behind_tls(mut deployment: Deployment) -> Deployment {
    let entry = deployment.services.iter_mut().find(|s| s.name == deployment.entry);
    entry.expect("the entry is there").tls = true;
    deployment
}

/// The same with so many pods of `service`.
pub(crate) fn with_replicas(
    mut deployment: Deployment,
    service: &str,
    replicas: usize,
) -> Deployment {
    let found = deployment.services.iter_mut().find(|s| s.name == service);
    found.expect("the service is there").replicas = replicas;
    deployment
}

/// A pod of its own for each, at 10.77.0.2 and up.
pub(super) fn in_pods(deployment: &Deployment, capture: Capture) -> Topology {
    let pod = |(last, (pod, service)): (u8, (String, &Service))| PodAddresses {
        node: 0,
        probe_port: service.tls.then_some(15021),
        pod,
        service: service.name.clone(),
        ip: Ipv4Addr::new(10, 77, 0, last),
        app_port: service.port,
        outbound_port: 15001,
        inbound_port: 15006,
        calls: BTreeMap::new(),
    };
    let egress = |_: &EgressGateway| EgressAddresses {
        pod: "egress".into(),
        ip: Ipv4Addr::new(10, 77, 0, 9),
        node: 0,
        port: 15443,
        sni_port: 18443,
    };
    Topology {
        egress: deployment.data_plane.egress_gateway().map(egress),
        nodes: Vec::new(),
        waypoint: None,
        pods: (2..).zip(deployment.pods()).map(pod).collect(),
        load_ip: Ipv4Addr::new(10, 77, 0, 1),
        capture,
    }
}

/// The same on so many nodes in turn, with a waypoint if the deployment has one; their pods are at 10.77.1.1 and up.
pub(super) fn on_nodes(pods: Topology, deployment: &Deployment, nodes: u8) -> Topology {
    let mut topology = pods;
    for (place, pod) in topology.pods.iter_mut().enumerate() {
        pod.node = place % usize::from(nodes);
    }
    let at = |last| Ipv4Addr::new(10, 77, 1, last);
    let node = |number| NodeAddresses { name: format!("node-{number}"), ip: at(number) };
    topology.nodes = (1..=nodes).map(node).collect();
    let has_waypoint = deployment.data_plane.ambient().is_some_and(|ambient| ambient.waypoint);
    let waypoint = || Waypoint { pod: "waypoint".into(), ip: at(nodes + 1), node: 0 };
    topology.waypoint = has_waypoint.then(waypoint);
    topology
}

/// Everything at `ip`: the programs at their ports, the sidecars from `sidecars` on.
pub(super) fn on_loopback(deployment: &Deployment, ip: Ipv4Addr, sidecars: u16) -> Topology {
    let mut free = sidecars..;
    let mut next = || free.next().expect("ports do not run out");
    let pod = |(pod, service): (String, &Service)| PodAddresses {
        node: 0,
        probe_port: service.tls.then_some(15021),
        pod,
        service: service.name.clone(),
        ip,
        app_port: service.port,
        outbound_port: 15001,
        inbound_port: if service.takes_sidecar() { next() } else { service.port },
        calls: service.calls.iter().map(|c| (c.clone(), SocketAddrV4::new(ip, next()))).collect(),
    };
    let pods = deployment.pods().into_iter().map(pod).collect();
    let egress = |_: &EgressGateway| EgressAddresses {
        pod: "egress".into(),
        ip,
        node: 0,
        port: next(),
        sni_port: next(),
    };
    Topology {
        egress: deployment.data_plane.egress_gateway().map(egress),
        nodes: Vec::new(),
        waypoint: None,
        pods,
        load_ip: Ipv4Addr::LOCALHOST,
        capture: Capture::Explicit,
    }
}
