//! Turns a deployment and an isolation level into addresses and into what each service is told. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::isolation::Isolation;
use super::{network, postgres};
use crate::LabError;
use crate::data_plane::{
    Bypass, Capture, EgressAddresses, ExternalFiles, INBOUND_PORT, LAB_CLIENT, NodeAddresses,
    OUTBOUND_PORT, PROXY_MARK, PROXY_UID, PodAddresses, Topology, Waypoint, known_as,
};
use crate::deployment::{
    Airline, AirlineDatabase, AirlinePart, BuiltIn, DatabaseServer, Deployment, Egress, External,
    Planted, Program, Queries, Service,
};

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
            // Nobody else is told where to tell of itself.
            Some(metrics) if matches!(service.program, Program::Petclinic(_)) => {
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
/// speaks TLS; and two for the gateway that traffic leaves through and its SNI proxy.
pub(crate) fn ports_needed(deployment: &Deployment) -> usize {
    let of_sidecar = |service: &Service| match has_sidecar(deployment, service) {
        true => 1 + through_sidecar(deployment, service).count(),
        false => 0,
    };
    let of_service = |service: &Service| {
        service.ports().count() + of_sidecar(service) + usize::from(service.tls)
    };
    let of_services: usize = deployment.services.iter().map(of_service).sum();
    of_services + if deployment.data_plane.egress_gateway().is_some() { 2 } else { 0 }
}

/// Whether each pod of `service` has a sidecar.
pub(crate) fn has_sidecar(deployment: &Deployment, service: &Service) -> bool {
    deployment.data_plane.has_sidecars() && service.takes_sidecar()
}

/// What `service`, which has a sidecar, calls through it.
fn through_sidecar<'a>(
    deployment: &'a Deployment,
    service: &'a Service,
) -> impl Iterator<Item = &'a String> {
    let passes = deployment.data_plane.egress() == Some(&Egress::Bypass);
    let is_external =
        |name: &str| deployment.service(name).is_some_and(|callee| callee.external.is_some());
    service.calls.iter().filter(move |callee| !(passes && is_external(callee)))
}

/// The pods that the data plane itself needs come behind the application's: a node's each, then the waypoint's or the
/// egress gateway's.
fn transparent(deployment: &Deployment, bypass: Bypass) -> Topology {
    let nodes = deployment.nodes.max(1);
    let pod = |(index, (pod, service)): (usize, (String, &Service))| PodAddresses {
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

/// A pod that has a network of its own, the load's left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    /// Name of the pod.
    pub(crate) pod: String,
    /// Its address.
    pub(crate) ip: Ipv4Addr,
    /// Place of its node among the topology's.
    pub(crate) node: usize,
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

/// Name of the waypoint's pod.
const WAYPOINT: &str = "waypoint";
/// Name of the egress gateway's pod.
const EGRESS: &str = "egress";
/// Where the egress gateway listens: the port at which Istio's gateways take TLS that they route by SNI.
const EGRESS_PORT: u16 = 15443;
/// Where the SNI proxy beside it listens, as in Istio's task on wildcard hosts.
const SNI_PORT: u16 = 18443;
/// Where a gateway that speaks TLS takes plaintext from inside of its pod; Istio's gateways have their status there.
const PROBE_PORT: u16 = 15021;

/// Of a pod without a sidecar only the program's own port means something.
fn explicit(deployment: &Deployment, mut free: impl Iterator<Item = u16>) -> Topology {
    let mut next = || free.next().expect("as many ports are given as ports_needed says");
    let mut pod = |(pod, service): (String, &Service)| {
        let meshed = has_sidecar(deployment, service);
        PodAddresses {
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

/// Where those outside of the mesh connect to reach `service`: its first pod.
///
/// # Errors
/// When there is no such service.
pub(crate) fn front(topology: &Topology, service: &str) -> Result<SocketAddrV4, LabError> {
    let pods = pods(topology, service)?;
    Ok(pod_front(topology, pods[0]))
}

/// Where those outside of the mesh connect to reach this pod.
pub(crate) fn pod_front(topology: &Topology, pod: &PodAddresses) -> SocketAddrV4 {
    let port = match topology.capture {
        Capture::Transparent(_) => pod.app_port,
        Capture::Explicit => pod.inbound_port,
    };
    SocketAddrV4::new(pod.ip, port)
}

/// Where agents send their spans: to the collector of the deployment.
///
/// # Errors
/// When it has none.
pub(crate) fn collector(
    deployment: &Deployment,
    topology: &Topology,
) -> Result<SocketAddrV4, LabError> {
    let is_collector = |service: &&Service| matches!(service.program, Program::Collector);
    let collector = deployment.services.iter().find(is_collector);
    front(topology, collector.map_or("collector", |service| &service.name))
}

/// Where `caller`, a pod, connects to call `callee`, a service: all its pods, to be taken in turn.
///
/// # Errors
/// When there is no such pod or service.
pub(crate) fn call_addresses(
    topology: &Topology,
    caller: &str,
    callee: &str,
) -> Result<Vec<SocketAddrV4>, LabError> {
    let caller = topology.pods.iter().find(|pod| pod.pod == caller);
    let caller = caller.ok_or_else(|| LabError::UnknownService(callee.to_owned()))?;
    let callees = pods(topology, callee)?;
    Ok(match caller.calls.get(callee) {
        Some(listener) => vec![*listener],
        None => callees.iter().map(|pod| SocketAddrV4::new(pod.ip, pod.app_port)).collect(),
    })
}

/// The pods of a service, at least one.
fn pods<'a>(topology: &'a Topology, service: &str) -> Result<Vec<&'a PodAddresses>, LabError> {
    let pods: Vec<_> = topology.pods.iter().filter(|pod| pod.service == service).collect();
    if pods.is_empty() {
        return Err(LabError::UnknownService(service.to_owned()));
    }
    Ok(pods)
}

/// A Prometheus endpoint of one pod, as the scraper is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Endpoint {
    /// Name of the pod.
    pub(crate) pod: String,
    address: SocketAddrV4,
    path: String,
    series: Vec<String>,
}

/// The endpoints of all pods that have one.
pub(crate) fn endpoints(deployment: &Deployment, topology: &Topology) -> Vec<Endpoint> {
    let services = deployment.pods().into_iter().map(|(_, service)| service);
    let pods = services.zip(&topology.pods);
    let endpoint = |(service, pod): (&Service, &PodAddresses)| {
        let metrics = service.metrics.as_ref()?;
        Some(Endpoint {
            pod: pod.pod.clone(),
            address: SocketAddrV4::new(pod.ip, metrics.port),
            path: metrics.path.clone(),
            series: metrics.selected().into_iter().map(str::to_owned).collect(),
        })
    };
    pods.filter_map(endpoint).collect()
}

/// The configuration file of the built-in service, whatever it is written in.
#[derive(Debug, Serialize)]
struct ServiceConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    calls: Vec<CallConfig>,
    work_us: u64,
    reply_bytes: usize,
    status: u16,
    relay: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall: Option<StallConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    planted: Option<PlantedConfig>,
}

#[derive(Debug, Serialize)]
struct CallConfig {
    service: String,
    addresses: Vec<SocketAddrV4>,
    host: String,
}

#[derive(Debug, Serialize)]
struct DatabaseConfig<'a> {
    service: &'a str,
    address: SocketAddrV4,
    user: &'static str,
    database: &'static str,
    connections: u32,
    read: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct StallConfig {
    every_ms: u64,
    lasting_ms: u64,
}

#[derive(Debug, Serialize)]
struct PlantedConfig {
    iterations: u64,
    sleep_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<LateConfig>,
    ballast_bytes: u64,
}

#[derive(Debug, Serialize)]
struct LateConfig {
    one_in: u32,
    by_ms: u64,
}

/// The configuration file of a part of the Petclinic.
#[derive(Debug, Serialize)]
struct PetclinicConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    calls: Vec<CallConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<SocketAddrV4>,
}

/// The configuration file of a part of the airline.
#[derive(Debug, Serialize)]
struct AirlineConfig<'a> {
    name: &'a str,
    listen: SocketAddrV4,
    work_us: u64,
    calls: Vec<AirlineCallConfig>,
    airline: PartConfig<'a>,
}

#[derive(Debug, Serialize)]
struct AirlineCallConfig {
    part: AirlinePart,
    #[serde(flatten)]
    call: CallConfig,
}

#[derive(Debug, Serialize)]
struct PartConfig<'a> {
    part: AirlinePart,
    database: Option<ExternalDatabaseConfig<'a>>,
}

/// How a database outside of the mesh is reached and known, and as whom.
#[derive(Debug, Serialize)]
struct ExternalDatabaseConfig<'a> {
    service: &'a str,
    kind: DatabaseServer,
    host: &'a str,
    address: SocketAddrV4,
    connections: u32,
    authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    identity: PathBuf,
}

/// What the airline's database is filled with and looked at by.
#[derive(Debug, Serialize)]
struct InventoryConfig<'a> {
    database: ExternalDatabaseConfig<'a>,
    flights: u32,
    seats: u32,
    customers: u32,
}

/// Name of the file that holds [`config`].
pub(crate) fn config_name(pod: &str) -> String {
    format!("{pod}.service.json")
}

/// The configuration of what plays `service` in `pod`, JSON; none when it is not toll's. `dir` is the folder of the
/// environment, which holds the certificates.
///
/// # Errors
/// When it calls a service that is not there.
pub(crate) fn config(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
    pod: &str,
    service: &Service,
) -> Result<Option<String>, LabError> {
    match &service.program {
        Program::BuiltIn(behaviour) => {
            service_config(deployment, topology, pod, (service, behaviour)).map(Some)
        }
        Program::Petclinic(_) => petclinic_config(deployment, topology, pod, service).map(Some),
        Program::Airline(airline) => {
            airline_config((deployment, topology, dir), pod, (service, airline)).map(Some)
        }
        Program::Command(_)
        | Program::Gateway
        | Program::Postgres(_)
        | Program::Nginx(_)
        | Program::AirlineDatabase(_)
        | Program::Collector => Ok(None),
    }
}

/// A deployment, where it is, and the environment's folder.
type Placed<'a> = (&'a Deployment, &'a Topology, &'a Path);

fn airline_config(
    placed: Placed<'_>,
    pod: &str,
    (service, airline): (&Service, &Airline),
) -> Result<String, LabError> {
    let (deployment, topology, _) = placed;
    let calls = http_calls(deployment, topology, pod, service)?;
    Ok(json(&AirlineConfig {
        name: &service.name,
        listen: SocketAddrV4::new(listen_ip(topology.capture), service.port),
        work_us: whole(airline.work.as_micros()),
        calls: calls.into_iter().filter_map(|call| to_part(deployment, call)).collect(),
        airline: PartConfig {
            part: airline.part,
            database: asked_database(placed, pod, service, airline.connections)?,
        },
    }))
}

/// Parts of the airline know each other by what they do; it calls nobody else.
fn to_part(deployment: &Deployment, call: CallConfig) -> Option<AirlineCallConfig> {
    match deployment.service(&call.service)?.program {
        Program::Airline(Airline { part, .. }) => Some(AirlineCallConfig { part, call }),
        _ => None,
    }
}

/// The airline's database as `pod` reaches it; none for a part that does not call it.
fn asked_database<'a>(
    (deployment, topology, dir): Placed<'a>,
    pod: &str,
    service: &Service,
    connections: u32,
) -> Result<Option<ExternalDatabaseConfig<'a>>, LabError> {
    let mut called = service.calls.iter().filter_map(|callee| airline_database(deployment, callee));
    let Some(database) = called.next() else { return Ok(None) };
    let address = call_addresses(topology, pod, &database.0.name)?[0];
    let client = (service.name.as_str(), connections);
    Ok(Some(external_database(topology, dir, database, address, client)))
}

/// A database of the airline that is outside of the mesh.
type AirlineServer<'a> = (&'a Service, &'a AirlineDatabase, &'a External);

fn airline_database<'a>(deployment: &'a Deployment, name: &str) -> Option<AirlineServer<'a>> {
    let service = deployment.service(name)?;
    match (&service.program, &service.external) {
        (Program::AirlineDatabase(database), Some(external)) => Some((service, database, external)),
        _ => None,
    }
}

fn external_database<'a>(
    topology: &Topology,
    dir: &Path,
    (service, database, external): AirlineServer<'a>,
    address: SocketAddrV4,
    (client, connections): (&str, u32),
) -> ExternalDatabaseConfig<'a> {
    let files = ExternalFiles::new(dir);
    ExternalDatabaseConfig {
        service: &service.name,
        kind: database.server,
        host: known_as(external, topology.capture),
        address,
        connections,
        authority: files.authority(),
        certificate: files.chain(client),
        key: files.key(client),
        identity: files.identity(client),
    }
}

/// The configuration of the commands that fill the airline's database `name` and look into it, JSON. They come as the
/// lab, past all proxies, by one connection; none where there is no such database.
pub(crate) fn inventory_config(
    deployment: &Deployment,
    topology: &Topology,
    dir: &Path,
    name: &str,
) -> Option<String> {
    let server = airline_database(deployment, name)?;
    let (service, inventory, _) = server;
    let pod = topology.pods.iter().find(|pod| pod.service == service.name)?;
    let address = SocketAddrV4::new(pod.ip, pod.app_port);
    Some(json(&InventoryConfig {
        database: external_database(topology, dir, server, address, (LAB_CLIENT, 1)),
        flights: inventory.flights,
        seats: inventory.seats,
        customers: inventory.customers,
    }))
}

fn petclinic_config(
    deployment: &Deployment,
    topology: &Topology,
    pod: &str,
    service: &Service,
) -> Result<String, LabError> {
    let at = |port| SocketAddrV4::new(listen_ip(topology.capture), port);
    Ok(json(&PetclinicConfig {
        name: &service.name,
        listen: at(service.port),
        calls: http_calls(deployment, topology, pod, service)?,
        metrics: service.metrics.as_ref().map(|metrics| at(metrics.port)),
    }))
}

fn json(config: &impl Serialize) -> String {
    serde_json::to_string_pretty(config).expect("plain fields always have a JSON form") + "\n"
}

fn service_config(
    deployment: &Deployment,
    topology: &Topology,
    pod: &str,
    (service, behaviour): (&Service, &BuiltIn),
) -> Result<String, LabError> {
    Ok(json(&ServiceConfig {
        name: &service.name,
        listen: SocketAddrV4::new(listen_ip(topology.capture), service.port),
        calls: http_calls(deployment, topology, pod, service)?,
        work_us: whole(behaviour.work.as_micros()),
        reply_bytes: behaviour.reply_bytes,
        status: behaviour.status,
        relay: behaviour.relay,
        database: behaviour.queries.as_ref().map(|q| database(topology, pod, q)).transpose()?,
        stall: behaviour.stall.map(|stall| StallConfig {
            every_ms: whole(stall.every.as_millis()),
            lasting_ms: whole(stall.lasting.as_millis()),
        }),
        planted: (!behaviour.planted.is_nothing()).then(|| planted(&behaviour.planted)),
    }))
}

fn planted(planted: &Planted) -> PlantedConfig {
    let late = planted
        .late
        .map(|late| LateConfig { one_in: late.one_in, by_ms: whole(late.by.as_millis()) });
    PlantedConfig {
        iterations: planted.iterations,
        sleep_us: whole(planted.sleep.as_micros()),
        late,
        ballast_bytes: planted.ballast_bytes,
    }
}

fn http_calls(
    deployment: &Deployment,
    topology: &Topology,
    pod: &str,
    service: &Service,
) -> Result<Vec<CallConfig>, LabError> {
    let is_database =
        |name: &str| deployment.service(name).is_some_and(|s| s.program.is_database());
    let call = |callee: &String| -> Result<CallConfig, LabError> {
        Ok(CallConfig {
            service: callee.clone(),
            addresses: call_addresses(topology, pod, callee)?,
            host: format!("{callee}:{}", pods(topology, callee)?[0].app_port),
        })
    };
    service.calls.iter().filter(|callee| !is_database(callee)).map(call).collect()
}

fn database<'a>(
    topology: &Topology,
    pod: &str,
    queries: &'a Queries,
) -> Result<DatabaseConfig<'a>, LabError> {
    Ok(DatabaseConfig {
        service: &queries.database,
        address: call_addresses(topology, pod, &queries.database)?[0],
        user: postgres::ROLE,
        database: postgres::ROLE,
        connections: queries.connections,
        read: &queries.read,
        write: queries.write.as_deref(),
    })
}

/// Where a program of the deployment listens that the study gives this port.
pub(crate) fn listen_at(topology: &Topology, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(listen_ip(topology.capture), port)
}

/// With transparent capture each pod has a namespace to itself.
pub(super) fn listen_ip(capture: Capture) -> Ipv4Addr {
    match capture {
        Capture::Transparent(_) => Ipv4Addr::UNSPECIFIED,
        Capture::Explicit => Ipv4Addr::LOCALHOST,
    }
}

fn whole(duration: u128) -> u64 {
    u64::try_from(duration).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::data_plane::fixture::{
        airline, customer, leaving, on_postgres, ways_out, with_replicas,
    };
    use crate::fixture::{chain, in_mesh, petclinic};
    use crate::{Late, Metrics};

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
        assert_eq!(call_addresses(&topology, "client", "server").unwrap(), [local(9999)]);
        assert_eq!(front(&topology, "client").unwrap(), local(9000));
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
        deployment.services[1].program = Program::Command(vec!["./server".into()]);
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
        assert_eq!(front(&topology, "client").unwrap(), local(20_001));
        assert_eq!(call_addresses(&topology, "client", "server").unwrap(), [local(20_002)]);
        assert_eq!(front(&topology, "server").unwrap(), local(20_003));
    }

    #[test]
    fn the_services_configuration_does_not_change_with_transparent_sidecars() {
        assert_eq!(config_of(&chain(), "client"), config_of(&in_mesh(chain()), "client"));
    }

    #[test]
    fn a_service_is_told_where_to_listen_and_whom_to_call() {
        insta::assert_snapshot!(config_of(&chain(), "client"));
    }

    #[test]
    fn a_service_is_told_of_what_is_planted_in_it() {
        let mut planted = chain();
        let Program::BuiltIn(client) = &mut planted.services[0].program else { unreachable!() };
        client.planted = Planted {
            iterations: 1000,
            sleep: Duration::from_micros(50),
            late: Some(Late { one_in: 100, by: Duration::from_millis(20) }),
            ballast_bytes: 10 << 20,
        };
        let config: serde_json::Value =
            serde_json::from_str(&config_of(&planted, "client")).unwrap();
        let expected = serde_json::json!({
            "iterations": 1000, "sleep_us": 50, "late": {"one_in": 100, "by_ms": 20},
            "ballast_bytes": 10_485_760,
        });
        assert_eq!(config["planted"], expected);
    }

    #[test]
    fn a_service_with_a_database_is_told_of_it_apart_from_its_calls() {
        insta::assert_snapshot!(config_of(&customer(), "name"));
    }

    #[test]
    fn a_part_of_the_petclinic_is_told_where_to_listen_whom_to_call_and_where_to_tell_of_itself() {
        insta::assert_snapshot!(config_of(&petclinic(), "gateway"));
    }

    #[test]
    fn a_part_of_the_petclinic_without_metrics_is_not_told_of_any() {
        let config = config_of(&petclinic(), "vets");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let expected = serde_json::json!({ "name": "vets", "listen": "0.0.0.0:8081", "calls": [] });
        assert_eq!(config, expected);
    }

    #[test]
    fn spans_go_to_the_pod_of_the_collector_and_without_one_nowhere() {
        let topology = plan(&petclinic(), Isolation::Pods, []);
        let at = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 4), 4318);
        assert_eq!(collector(&petclinic(), &topology).unwrap(), at);
        let without = plan(&chain(), Isolation::Pods, []);
        assert!(matches!(collector(&chain(), &without), Err(LabError::UnknownService(_))));
    }

    #[test]
    fn a_bare_caller_is_given_every_pod_of_what_it_calls() {
        let config = config_of(&with_replicas(customer(), "person", 3), "customer");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let addresses = ["10.77.0.4:8082", "10.77.0.5:8082", "10.77.0.6:8082"];
        assert_eq!(config["calls"][0]["addresses"], serde_json::json!(addresses));
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
        assert_eq!(front(&topology, "ingress").unwrap(), local(8080));
        let asked = call_addresses(&topology, "name", "postgres").unwrap();
        assert_eq!(asked, [topology.pods[3].calls["postgres"]]);
        assert_ne!(asked, [local(5432)]);
    }

    #[test]
    fn each_pod_of_a_service_with_an_endpoint_is_asked_for_the_jvms_series_unless_others_are_named()
    {
        let mut deployment = with_replicas(customer(), "person", 2);
        let endpoint = |series: &[&str]| Metrics {
            port: 9080,
            path: "/metrics".into(),
            series: series.iter().map(|name| (*name).into()).collect(),
        };
        deployment.services[1].metrics = Some(endpoint(&["up"]));
        deployment.services[2].metrics = Some(endpoint(&[]));
        let asked = endpoints(&deployment, &plan(&deployment, Isolation::Pods, []));
        let pods: Vec<_> = asked
            .iter()
            .map(|e| (e.pod.as_str(), e.address.to_string(), e.series[0].as_str()))
            .collect();
        let jvm = "process_cpu_seconds_total";
        assert_eq!(
            pods,
            [
                ("customer", "10.77.0.3:9080".to_owned(), "up"),
                ("person-1", "10.77.0.4:9080".to_owned(), jvm),
                ("person-2", "10.77.0.5:9080".to_owned(), jvm),
            ]
        );
    }

    #[test]
    fn a_call_to_a_service_that_is_not_there_is_an_error() {
        let topology = plan(&chain(), Isolation::Pods, []);
        let error = call_addresses(&topology, "client", "nobody").unwrap_err();
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
            let ports = call_addresses(&topology, "flights", "airline-db").unwrap();
            (needed, ports == [local(27017)], topology.egress.is_some())
        };
        // Beside those of the five services each of four pods has one for what comes in, and there are five calls to
        // each other, three to the database.
        assert_eq!(asked("bypass"), (5 + 4 + 5, true, false));
        assert_eq!(asked("sidecar"), (5 + 4 + 5 + 3, false, false));
        assert_eq!(asked("gateway-sni"), (5 + 4 + 5 + 3 + 2, false, true));
    }

    #[test]
    fn a_part_of_the_airline_is_told_whom_to_call_and_how_it_knows_the_database() {
        insta::assert_snapshot!(config_of(&airline(), "bookings"));
    }

    #[test]
    fn a_part_of_the_airline_without_a_database_is_told_of_none() {
        let config: serde_json::Value =
            serde_json::from_str(&config_of(&airline(), "web")).unwrap();
        assert_eq!(config["airline"], serde_json::json!({"part": "web", "database": null}));
        assert_eq!(config["calls"][1]["part"], "bookings");
    }

    #[test]
    fn parts_of_the_airline_are_told_the_same_in_all_cases() {
        for (name, egress) in ways_out() {
            let mesh = leaving(airline(), egress);
            assert_eq!(config_of(&mesh, "bookings"), config_of(&airline(), "bookings"), "{name}");
        }
    }

    #[test]
    fn without_namespaces_the_database_is_known_as_localhost() {
        let topology = plan(&airline(), Isolation::Loopback, []);
        let deployment = airline();
        let dir = Path::new("x");
        let config = config(&deployment, &topology, dir, "flights", &deployment.services[1]);
        let config: serde_json::Value = serde_json::from_str(&config.unwrap().unwrap()).unwrap();
        let database = &config["airline"]["database"];
        assert_eq!(
            (&database["host"], &database["address"]),
            (&"localhost".into(), &"127.0.0.1:27017".into())
        );
    }

    #[test]
    fn the_inventory_is_made_and_looked_at_by_the_lab_past_all_proxies() {
        let mesh = on_postgres(in_case("gateway-sni"));
        let topology = plan(&mesh, Isolation::Pods, []);
        let told = |name| inventory_config(&mesh, &topology, Path::new("/run/toll/lab"), name);
        insta::assert_snapshot!(told("airline-db").unwrap());
        assert_eq!(told("flights"), None);
    }

    /// In pods.
    fn config_of(deployment: &Deployment, pod: &str) -> String {
        let topology = plan(deployment, Isolation::Pods, []);
        let pods = deployment.pods();
        let (_, service) = pods.iter().find(|(name, _)| name == pod).unwrap();
        let dir = Path::new("/run/toll/lab");
        config(deployment, &topology, dir, pod, service).unwrap().unwrap()
    }

    fn local(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }
}
