//! What to bring up: an application and the data plane in its path. Pure data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One variant of the application, fully resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// The variant's name.
    pub name: String,
    /// Name of the service that the load calls: often a gateway.
    pub entry: String,
    /// Gateways and databases included; names are unique and `calls` has no circle.
    pub services: Vec<Service>,
    /// What stands in the path.
    pub data_plane: DataPlane,
    /// Nodes that the pods are spread over, at least one.
    #[serde(default = "one")]
    pub nodes: usize,
}

fn one() -> usize {
    1
}

impl Deployment {
    /// The service of that name.
    pub fn service(&self, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.name == name)
    }

    /// Whether a port that the study names is more than a wish: a program of the user's own has it, and those of the
    /// services around it, wherever its author wrote them down.
    pub(crate) fn has_fixed_ports(&self) -> bool {
        self.services.iter().any(|service| matches!(service.program, Program::Command(_)))
    }

    /// The services that call `callee`.
    pub(crate) fn callers_of(&self, callee: &str) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(move |s| s.calls.iter().any(|name| name == callee))
    }

    /// Every pod, in the order of the services, as its name and its service.
    ///
    /// A pod has its service's name, followed by `-1`, `-2`, ... when the service has several.
    pub fn pods(&self) -> Vec<(String, &Service)> {
        let of = |service: &'_ Service| match service.replicas {
            0 | 1 => vec![service.name.clone()],
            many => (1..=many).map(|number| format!("{}-{number}", service.name)).collect(),
        };
        let named = |service| of(service).into_iter().map(move |pod| (pod, service));
        self.services.iter().flat_map(named).collect()
    }
}

/// One service of the application graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Unique in the deployment; also its service account.
    pub name: String,
    /// The group (namespace) under which reports list it.
    pub group: String,
    /// Pods that play it, at least one.
    pub replicas: usize,
    /// TCP port it listens on.
    pub port: u16,
    /// What runs.
    pub program: Program,
    /// Names of the services that it calls once for each request it gets, in order; a database is queried.
    pub calls: Vec<String>,
    /// Where each of its pods tells of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Whether its clients speak TLS to it; gateways only.
    #[serde(default)]
    pub tls: bool,
    /// Of a service outside of the mesh: by which name it is spoken to, over TLS of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,
    /// The node, from 1 on, that all its pods are on, counted round where there are fewer; without one its pods
    /// go to the nodes in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
}

/// What a service outside of the mesh has: a name and, of an authority that is not the mesh's, a certificate for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// Its DNS name, for instance `db.airline.example`: clients look it up, send it as SNI and verify it.
    pub host: String,
}

impl Service {
    /// Whether a data plane of sidecars puts one beside each of its pods.
    pub fn takes_sidecar(&self) -> bool {
        self.external.is_none() && self.program.takes_sidecar()
    }

    /// The TCP ports that each of its pods listens on.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        let of_metrics = self.metrics.iter().map(|metrics| metrics.port);
        std::iter::once(self.port).chain(of_metrics)
    }

    /// The port on which it tells of itself and does nothing else.
    pub(crate) fn port_of_metrics_alone(&self) -> Option<u16> {
        self.metrics.as_ref().map(|metrics| metrics.port).filter(|port| *port != self.port)
    }
}

/// A Prometheus text endpoint in the pods of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// TCP port.
    pub port: u16,
    /// Path, from the slash on.
    pub path: String,
    /// Names of the series that are kept, each with all its labels; [`Metrics::OF_JVM`] when there are none.
    pub series: Vec<String>,
}

impl Metrics {
    /// What the Prometheus Java client tells of its JVM, in the names of its version 1.
    pub const OF_JVM: [&str; 7] = [
        "process_cpu_seconds_total",
        "jvm_memory_used_bytes",
        "jvm_memory_pool_collection_used_bytes",
        "jvm_gc_collection_seconds_sum",
        "jvm_gc_collection_seconds_count",
        "jvm_compilation_time_seconds_total",
        "jvm_threads_current",
    ];

    /// Names of the series that are kept.
    pub fn selected(&self) -> Vec<&str> {
        match self.series.as_slice() {
            [] => Self::OF_JVM.to_vec(),
            series => series.iter().map(String::as_str).collect(),
        }
    }
}

/// What plays a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The built-in service.
    BuiltIn(BuiltIn),
    /// The user's own program and its arguments; it must listen on the service's port.
    Command(Vec<String>),
    /// Envoy as an ingress gateway: hands every request to the one service that it calls. It is the same in
    /// all variants and has no sidecar; in a mesh it has an identity and speaks mTLS to what it calls.
    Gateway,
    /// A PostgreSQL server of the pod's own, on a fresh data directory.
    Postgres(Postgres),
    /// A part of the Petclinic, on a JVM.
    Petclinic(Petclinic),
    /// nginx with one static page.
    Nginx(Nginx),
    /// A part of the airline.
    Airline(Airline),
    /// The database of the airline.
    AirlineDatabase(AirlineDatabase),
    /// Takes the spans that tracing agents send, and counts them. It is toll's own, the same in all variants,
    /// and no request of the load comes to it.
    Collector,
}

impl Program {
    /// Whether it speaks TCP of its own rather than HTTP.
    pub fn is_database(&self) -> bool {
        matches!(self, Self::Postgres(_) | Self::AirlineDatabase(_))
    }

    /// Whether a data plane of sidecars puts one beside it.
    pub fn takes_sidecar(&self) -> bool {
        !matches!(self, Self::Gateway | Self::Collector)
    }

    /// Whether an ambient data plane captures its pods' traffic. A gateway speaks HBONE of its own.
    pub fn is_captured(&self) -> bool {
        self.takes_sidecar()
    }

    /// Whether it can be a JVM, into which an agent can be put: a program of the user's own may be one.
    pub fn takes_agent(&self) -> bool {
        match self {
            Self::BuiltIn(built_in) => built_in.runtime == Runtime::Spring,
            Self::Petclinic(_) | Self::Command(_) => true,
            Self::Gateway
            | Self::Postgres(_)
            | Self::Nginx(_)
            | Self::Airline(_)
            | Self::AirlineDatabase(_)
            | Self::Collector => false,
        }
    }
}

/// A part of the airline: four services that find flights, book seats and keep customers, with a database outside.
///
/// How often a part calls others and asks the database depends on what the entry was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Airline {
    /// Which part.
    pub part: AirlinePart,
    /// CPU time burned for each request.
    pub work: Duration,
    /// Connections that each pod keeps to the database at the most; nothing for the part without one.
    pub connections: u32,
}

/// The parts of the airline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AirlinePart {
    /// The entry: hands each request to the part that it is for.
    Web,
    /// `GET /flights?from=A&to=B` and, of the bookings, `POST /flights/N/seats`.
    Flights,
    /// `POST /bookings` and `GET /bookings?customer=N`.
    Bookings,
    /// `GET /customers/N`.
    Customers,
}

/// The database of the airline: which server, and what is in it at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirlineDatabase {
    /// The server.
    pub server: DatabaseServer,
    /// Flights.
    pub flights: u32,
    /// Seats of each flight.
    pub seats: u32,
    /// Customers.
    pub customers: u32,
}

/// The database servers that the airline can use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseServer {
    /// MongoDB: a `mongod` where there is one, else a server of its wire protocol.
    #[default]
    MongoDb,
    /// PostgreSQL, which speaks TLS from the first byte on.
    Postgres,
}

/// nginx with one static page, and nothing else in its configuration than what a container's has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nginx {
    /// Size of the page.
    pub bytes: usize,
}

/// A part of the Petclinic: a gateway that hands requests to a service that reads from an embedded database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Petclinic {
    /// Which part.
    pub part: PetclinicPart,
    /// Size of its JVM's heap, from the start on, MiB.
    pub heap_mib: u32,
    /// How far its JVM compiles.
    #[serde(default)]
    pub compilers: Compilers,
}

/// How far a JVM compiles what it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compilers {
    /// As it likes: what is measured is the application's own, once the second compiler is done.
    #[default]
    Both,
    /// With the first compiler only: its code costs twice as much, but the same after 2 s as after 20.
    First,
}

/// The parts of the Petclinic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PetclinicPart {
    /// Spring Cloud Gateway: hands what is below `/api/vet` to the one service that it calls.
    Gateway,
    /// Spring MVC and Spring Data JPA on an embedded database: `/vets?spans=N` asks it N - 1 times.
    Vets,
}

/// A PostgreSQL server and what is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Postgres {
    /// SQL that fills the database `toll`, run once as its owner `toll` before anything connects.
    pub seed: String,
    /// SQL that gives one row of two whole numbers: rows that writes have made, and different ones among them.
    pub written: Option<String>,
}

/// How the built-in service answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuiltIn {
    /// What it is written in.
    pub runtime: Runtime,
    /// CPU time burned for each request.
    pub work: Duration,
    /// Size of the answer's body.
    pub reply_bytes: usize,
    /// Status code of the answer.
    pub status: u16,
    /// Whether it answers what the last service that it calls answered, instead of `reply_bytes`.
    pub relay: bool,
    /// What it asks the database that it calls.
    pub queries: Option<Queries>,
    /// A known-answer fault: the service stops answering at regular times.
    pub stall: Option<Stall>,
    /// Effects of known size, to be found again.
    #[serde(default, skip_serializing_if = "Planted::is_nothing")]
    pub planted: Planted,
}

/// What the built-in service is written in. Both play the same node from the same configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// Rust: `toll service`.
    #[default]
    Native,
    /// Spring Boot with WebFlux on Netty and R2DBC, on a JVM.
    Spring,
}

/// What a service asks its database, with prepared statements over pooled connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Name of the database, one of the service's `calls`.
    pub database: String,
    /// Connections of each pod's pool.
    pub connections: u32,
    /// Asked for each GET: the rows are the answer, a JSON array of objects.
    pub read: String,
    /// Run in a transaction for each POST, with the request's body as its only parameter, a text.
    pub write: Option<String>,
}

/// The service answers nothing for `lasting` at the start of each period of length `every`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Length of the period.
    pub every: Duration,
    /// Length of the stall at the start of each period.
    pub lasting: Duration,
}

/// Effects of known size that the native built-in service bears on each request; nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Rounds of computing: a count, not a time.
    pub iterations: u64,
    /// Time without computing; whole microseconds.
    pub sleep: Duration,
    /// Requests that wait.
    pub late: Option<Late>,
    /// Memory that is written once and kept, bytes.
    pub ballast_bytes: u64,
}

impl Planted {
    /// Whether it changes nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One of so many requests waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Of how many requests one is late, at least one.
    pub one_in: u32,
    /// By how much; whole milliseconds.
    pub by: Duration,
}

/// What stands in the application's path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPlane {
    /// The application alone.
    Bare,
    /// A proxy beside each service.
    Sidecar {
        /// Which proxy.
        proxy: SidecarProxy,
        /// What the sidecars demand of each other.
        mtls: Mtls,
        /// By which way traffic leaves the mesh.
        #[serde(default)]
        egress: Egress,
    },
    /// A tracing agent inside each JVM of the application.
    Agent(JavaAgent),
    /// A proxy on each node, for all pods there.
    Ambient(Ambient),
}

impl DataPlane {
    /// Whether there is a proxy beside each service that takes one.
    pub fn has_sidecars(&self) -> bool {
        matches!(self, Self::Sidecar { .. })
    }

    /// By which way traffic leaves a mesh of sidecars.
    pub fn egress(&self) -> Option<&Egress> {
        match self {
            Self::Sidecar { egress, .. } => Some(egress),
            _ => None,
        }
    }

    /// The gateway through which traffic leaves the mesh, if there is one.
    pub fn egress_gateway(&self) -> Option<&EgressGateway> {
        match self.egress() {
            Some(Egress::Gateway(gateway)) => Some(gateway),
            _ => None,
        }
    }

    /// What stands on the nodes, if anything.
    pub fn ambient(&self) -> Option<&Ambient> {
        match self {
            Self::Ambient(ambient) => Some(ambient),
            _ => None,
        }
    }

    /// Whether services have identities and speak mTLS to each other.
    pub fn is_mesh(&self) -> bool {
        matches!(self, Self::Sidecar { .. } | Self::Ambient(_))
    }
}

/// By which way traffic to services outside of the mesh goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Egress {
    /// Past the sidecars: their addresses are not captured.
    Bypass,
    /// Through the sidecar of the caller, which knows the host and passes its TLS on by SNI.
    #[default]
    Sidecar,
    /// Through the sidecar of the caller and then through one gateway for all.
    Gateway(EgressGateway),
}

/// The gateway through which traffic leaves the mesh: an Envoy in a pod of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressGateway {
    /// Whether sidecars speak mTLS to it, around the TLS that the application speaks.
    pub mtls: bool,
    /// Whether an nginx in its pod finds the host by the SNI, instead of the gateway's own configuration.
    pub sni_proxy: bool,
    /// The names that it lets out, `*.example.org` for all below one; the external services' own when empty.
    pub hosts: Vec<String>,
}

impl EgressGateway {
    /// Whether it lets traffic to `host`, the name of an external service, out.
    pub fn lets_out(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.pattern_of(host).is_some()
    }

    /// The first of its names that `host` is meant by.
    pub(crate) fn pattern_of(&self, host: &str) -> Option<&str> {
        let is_below = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        let means = |pattern: &&String| match pattern.strip_prefix("*.") {
            Some(domain) => is_below(domain),
            None => *pattern == host,
        };
        self.hosts.iter().find(means).map(String::as_str)
    }
}

/// An ambient data plane: a proxy on each node captures its pods' traffic inside of their networks and carries it
/// to the next node's in HBONE (HTTP/2 CONNECT over mTLS, port 15008).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ambient {
    /// What stands on each node.
    pub proxy: NodeProxy,
    /// What pods accept from outside of the mesh.
    pub mtls: Mtls,
    /// Whether every request also crosses a waypoint, a proxy that reads HTTP.
    pub waypoint: bool,
}

impl Ambient {
    /// Whether it carries the traffic of pods that run `program`. A gateway has no certificate of ztunnel's own
    /// authority, so where that is the node proxy a gateway is captured as any pod.
    pub fn captures(&self, program: &Program) -> bool {
        let gateways = self.proxy != NodeProxy::Envoy;
        program.is_captured() || (gateways && *program == Program::Gateway)
    }
}

/// The node proxies that the lab has an adapter for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeProxy {
    /// Envoy, in the place of ztunnel.
    Envoy,
    /// ztunnel, Istio's own.
    Ztunnel {
        /// The program.
        binary: PathBuf,
    },
}

impl NodeProxy {
    /// As reports call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Envoy => "Envoy",
            Self::Ztunnel { .. } => "ztunnel",
        }
    }
}

/// A tracing agent for JVMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaAgent {
    /// Which one.
    pub kind: AgentKind,
    /// Its own settings, beside those that the lab makes: name and value, as its documentation calls them.
    pub settings: BTreeMap<String, String>,
}

/// The agents that the lab has an adapter for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// The OpenTelemetry Java agent, of the version that toll fetches or its user names.
    OpenTelemetry,
    /// EaseAgent.
    EaseAgent {
        /// Its jar.
        jar: PathBuf,
    },
}

/// The proxies that the lab has an adapter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SidecarProxy {
    /// Envoy, configured as Istio configures its sidecar.
    Envoy,
}

/// What an inbound sidecar accepts. Connections between sidecars are mTLS in both modes.
///
/// The load stands outside the mesh and has no identity, so the entry service's port accepts plaintext in
/// both modes, as an Istio port-level exception would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mtls {
    /// mTLS or plaintext.
    Permissive,
    /// mTLS only: plaintext is refused.
    Strict,
}
