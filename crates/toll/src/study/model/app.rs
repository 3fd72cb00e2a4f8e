//! The application as written: services, the gateways before them and the databases behind them.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::study::quantity::{Metrics, Name, TimeSpan};

/// The application: services that call each other, the gateways before them, the databases behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The gateway or service that the load calls.
    pub entry: Name,
    /// Ingress gateways, by name: an Envoy each, the same in every variant.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub gateways: IndexMap<Name, Gateway>,
    /// Nodes that the pods are spread over in turn: each a bridge, and a proxy where the data plane is ambient.
    #[serde(default = "default::nodes")]
    #[schemars(range(min = 1, max = 100))]
    pub nodes: u32,
    /// The services, by name.
    #[schemars(extend("minProperties" = 1))]
    pub services: IndexMap<Name, Service>,
    /// Databases, by name: a server each, on fresh data.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub databases: IndexMap<Name, Database>,
}

/// An ingress gateway: hands every request to one service. It never has a sidecar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// TCP port that it listens on; nothing else in the application has it.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [8080]))]
    pub port: u16,
    /// The service that it hands requests to.
    pub to: Name,
    /// The group (namespace) under which reports list it.
    #[serde(default = "default::group")]
    pub group: Name,
    /// Whether it ends TLS: the load speaks HTTPS to it, with a certificate of the run's own.
    #[serde(default)]
    pub tls: bool,
    /// The node that it is on, from 1 on, counted round where there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100), extend("examples" = [1]))]
    pub node: Option<u32>,
}

/// One service: the built-in one, or the user's own program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// TCP port that it listens on; nothing else in the application has it.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [9000]))]
    pub port: u16,
    /// The services that it calls for each request it gets, in order.
    #[serde(default)]
    #[schemars(extend("examples" = [["server"]]))]
    pub calls: Vec<Name>,
    /// The group (namespace) under which reports list it.
    #[serde(default = "default::group")]
    pub group: Name,
    /// Pods that play it; several need an isolation level with networks of their own.
    #[serde(default = "default::replicas")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: u32,
    /// The user's own program and its arguments, instead of the built-in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["./my-api", "--port", "8080"]]))]
    pub command: Option<Vec<String>>,
    /// What the built-in service is written in; `--runtime` has the last word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::runtime")]
    pub runtime: Option<Runtime>,
    /// What the built-in service, or a part of the airline, does for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::work")]
    pub work: Option<Work>,
    /// What the built-in service answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::reply")]
    pub reply: Option<Reply>,
    /// What the built-in service asks a database for each request, after its calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<Queries>,
    /// A fault with a known answer: the built-in service stops answering at regular times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
    /// A part of the Petclinic on a JVM, instead of the built-in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["vets"]))]
    pub petclinic: Option<Petclinic>,
    /// Heap of the Petclinic's JVM from its start on, MiB; equal in all variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 64, max = 65_536), default = "default::heap")]
    pub heap_mib: Option<u32>,
    /// A part of the airline, instead of the built-in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["flights"]))]
    pub airline: Option<Airline>,
    /// The database of a part of the airline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["airline-db"]))]
    pub database: Option<Name>,
    /// Connections that each pod of a part of the airline keeps to its database at the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), default = "default::connections")]
    pub connections: Option<u32>,
    /// nginx with one static page, instead of the built-in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"bytes": 615}]))]
    pub nginx: Option<Nginx>,
    /// The node that its pods are on, from 1 on, counted round where there are fewer; in turn when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100), extend("examples" = [2]))]
    pub node: Option<u32>,
    /// A Prometheus text endpoint that each of its pods has: its series are sampled and stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// Names of the series of `metrics` that are stored; those of the JVM when it is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["http_requests_total"]]))]
    pub series: Vec<String>,
}

/// nginx with one static page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nginx {
    /// Length of the page.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub bytes: u32,
}

impl Default for Nginx {
    /// As long as the page that nginx comes with.
    fn default() -> Self {
        Self { bytes: 615 }
    }
}

/// A part of the Petclinic, on a JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Petclinic {
    /// Spring Cloud Gateway: hands what is below `/api/vet` to the one service that it calls.
    Gateway,
    /// Spring MVC and Spring Data JPA on an embedded database: `/vets?spans=N` asks it N - 1 times.
    Vets,
}

/// A part of the airline: services that find flights, book seats and keep customers, with a database outside.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Airline {
    /// The entry: hands each request to the part that it is for, all three of which it calls.
    Web,
    /// `GET /flights?from=A&to=B`; the bookings take seats from it.
    Flights,
    /// `POST /bookings`, for which it calls customers and flights, and `GET /bookings?customer=N`.
    Bookings,
    /// `GET /customers/N`.
    Customers,
}

/// What plays a service, its defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program<'s> {
    /// The built-in service.
    BuiltIn {
        /// What it is written in.
        runtime: Runtime,
        /// What it does for each request.
        work: Work,
        /// What it answers.
        reply: Reply,
        /// What it asks a database.
        queries: Option<&'s Queries>,
        /// Its known-answer fault.
        stall: Option<Stall>,
    },
    /// The user's own program and its arguments, never empty.
    Command(&'s [String]),
    /// nginx with one static page.
    Nginx(Nginx),
    /// A part of the airline.
    Airline {
        /// Which.
        part: Airline,
        /// What it does for each request.
        work: Work,
        /// Connections that it keeps to its database at the most.
        connections: u32,
    },
    /// A part of the Petclinic.
    Petclinic {
        /// Which.
        part: Petclinic,
        /// Heap of its JVM, MiB.
        heap_mib: u32,
    },
}

/// What the built-in service is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["spring"]))]
pub enum Runtime {
    /// Rust.
    #[default]
    Native,
    /// Spring Boot with WebFlux on Netty and R2DBC, on a JVM.
    Spring,
}

/// What the built-in service does for each request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// CPU time burned for each request: beside a service that does nothing every proxy looks huge.
    pub cpu: TimeSpan,
}

/// What the built-in service answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// HTTP status.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// Length of the body.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub bytes: u32,
    /// Hand on what the last of its `calls` answered, instead of `status` and `bytes`.
    pub relay: bool,
}

/// What a service asks a database; statements are prepared, connections pooled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Queries {
    /// The database.
    #[schemars(extend("examples" = ["postgres"]))]
    pub database: Name,
    /// SQL for each GET; its rows are the answer, a JSON array of objects.
    #[schemars(length(min = 1), extend("examples" = ["SELECT id, email FROM customers"]))]
    pub read: String,
    /// SQL for each POST, in a transaction; the body of the request is its one parameter, a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["INSERT INTO log VALUES ($1)"]))]
    pub write: Option<String>,
    /// Connections of each pod's pool.
    #[serde(default = "default::pool")]
    #[schemars(range(min = 1, max = 1000))]
    pub connections: u32,
}

/// A stall at the start of each period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Length of the period.
    #[schemars(extend("examples" = ["1s"]))]
    pub every: TimeSpan,
    /// Length of the stall, shorter than the period.
    #[serde(rename = "for")]
    #[schemars(extend("examples" = ["100ms"]))]
    pub lasting: TimeSpan,
}

/// A database server in a pod of its own, and what is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// TCP port that it listens on; nothing else in the application has it.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [5432]))]
    pub port: u16,
    /// The group (namespace) under which reports list it.
    #[serde(default = "default::group")]
    pub group: Name,
    /// The server; `--database` has the last word over an external one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::server")]
    pub server: Option<Server>,
    /// Outside of the mesh, spoken to over TLS by this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"host": "db.airline.example"}]))]
    pub external: Option<External>,
    /// What the airline has in it at first, instead of a `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [{"flights": 200, "seats": 1_000_000, "customers": 1000}]))]
    pub airline: Option<Inventory>,
    /// SQL that fills it, run once before anything connects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = ["CREATE TABLE log (line text)"]))]
    pub seed: Option<String>,
    /// SQL that gives one row of two whole numbers: rows that writes have made, and different ones among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1),
        extend("examples" = ["SELECT count(line), count(DISTINCT line) FROM log"])
    )]
    pub written: Option<String>,
}

/// The database servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["mongodb"]))]
pub enum Server {
    /// PostgreSQL; an external one speaks TLS from the first byte on, which needs version 17.
    #[default]
    Postgres,
    /// MongoDB, for the airline: `mongod` where `MONGOD` names one or `PATH` has one, else a server of its protocol.
    Mongodb,
}

/// A host outside of the mesh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Its DNS name: clients look it up, send it as SNI and verify it.
    #[schemars(length(min = 1, max = 253), extend("examples" = ["db.airline.example"]))]
    pub host: String,
}

/// What the airline begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Inventory {
    /// Flights.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub flights: u32,
    /// Seats of each flight.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub seats: u32,
    /// Customers.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub customers: u32,
}

impl Default for Inventory {
    /// Small enough to be there at once; seats for any load.
    fn default() -> Self {
        Self { flights: 200, seats: 1_000_000, customers: 1000 }
    }
}

impl App {
    /// The databases outside of the mesh, and their hosts.
    pub fn external(&self) -> impl Iterator<Item = (&Name, &str)> {
        self.databases.iter().filter_map(|(name, database)| {
            let external = database.external.as_ref()?;
            Some((name, external.host.as_str()))
        })
    }

    /// The services that a request reaches, directly or through others, each once.
    pub fn reached(&self) -> Vec<(&Name, &Service)> {
        let entry = self.gateways.get(&self.entry).map_or(&self.entry, |gateway| &gateway.to);
        let mut names = vec![entry];
        let mut reached: Vec<(&Name, &Service)> = Vec::new();
        while let Some(name) = names.pop() {
            let known = reached.iter().any(|(other, _)| *other == name);
            if let Some(service) = self.services.get(name).filter(|_| !known) {
                reached.push((name, service));
                names.extend(&service.calls);
            }
        }
        reached
    }
}

impl Airline {
    /// As the study file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Flights => "flights",
            Self::Bookings => "bookings",
            Self::Customers => "customers",
        }
    }

    /// The parts that it calls, one service each.
    pub fn calls(self) -> &'static [Self] {
        match self {
            Self::Web => &[Self::Flights, Self::Bookings, Self::Customers],
            Self::Bookings => &[Self::Customers, Self::Flights],
            Self::Flights | Self::Customers => &[],
        }
    }

    /// Whether it has something in the database.
    pub fn has_database(self) -> bool {
        self != Self::Web
    }

    /// What can be asked of it from outside: methods and paths, `N` for any number.
    pub fn answers(self) -> &'static [&'static str] {
        match self {
            Self::Web => &["GET /flights", "POST /bookings", "GET /bookings", "GET /customers/N"],
            Self::Flights => &["GET /flights"],
            Self::Bookings => &["POST /bookings", "GET /bookings"],
            Self::Customers => &["GET /customers/N"],
        }
    }
}

impl Database {
    /// Whether only parts of the airline use it.
    pub fn is_of_airline(&self) -> bool {
        self.airline.is_some() || self.external.is_some()
    }
}

impl Service {
    /// Whether the built-in service plays it.
    pub fn is_built_in(&self) -> bool {
        matches!(self.program(), Program::BuiltIn { .. })
    }

    /// Whether it does `work` for each request.
    pub fn takes_work(&self) -> bool {
        matches!(self.program(), Program::BuiltIn { .. } | Program::Airline { .. })
    }

    /// What plays the service.
    pub fn program(&self) -> Program<'_> {
        if let Some(nginx) = self.nginx {
            return Program::Nginx(nginx);
        }
        if let Some(part) = self.petclinic {
            return Program::Petclinic {
                part,
                heap_mib: self.heap_mib.unwrap_or(default::HEAP_MIB),
            };
        }
        if let Some(part) = self.airline {
            let connections = self.connections.unwrap_or_else(default::pool);
            return Program::Airline { part, work: self.work.unwrap_or_default(), connections };
        }
        match &self.command {
            Some(command) => Program::Command(command),
            None => Program::BuiltIn {
                runtime: self.runtime.unwrap_or_default(),
                work: self.work.unwrap_or_default(),
                reply: self.reply.unwrap_or_default(),
                queries: self.postgres.as_ref(),
                stall: self.stall,
            },
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self { cpu: TimeSpan::from_micros(500) }
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self { status: 200, bytes: 5, relay: false }
    }
}

/// The defaults that are no type's own; `default.yaml` states and explains them.
mod default {
    use super::{Name, Reply, Runtime, Server, Work};

    pub(super) fn group() -> Name {
        "default".parse().expect("small letters only")
    }

    pub(super) fn nodes() -> u32 {
        1
    }

    pub(super) fn replicas() -> u32 {
        1
    }

    pub(super) fn pool() -> u32 {
        16
    }

    pub(super) fn connections() -> Option<u32> {
        Some(pool())
    }

    pub(super) fn server() -> Option<Server> {
        Some(Server::default())
    }

    pub(super) const HEAP_MIB: u32 = 256;

    pub(super) fn heap() -> Option<u32> {
        Some(HEAP_MIB)
    }

    pub(super) fn runtime() -> Option<Runtime> {
        Some(Runtime::default())
    }

    pub(super) fn work() -> Option<Work> {
        Some(Work::default())
    }

    pub(super) fn reply() -> Option<Reply> {
        Some(Reply::default())
    }
}
