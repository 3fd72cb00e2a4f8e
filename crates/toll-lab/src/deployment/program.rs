//! The programs that can play a service: how each is described, and what it is by nature.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Role;

/// What plays a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The built-in service.
    BuiltIn(BuiltIn),
    /// The user's own program; it must listen on the service's port.
    Command(UserProgram),
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

/// What a program does with a probe that asks how requests reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reports {
    /// It answers with a report, in which are those of all that it calls.
    Always,
    /// It hands on the report of what it calls.
    OfItsCallee,
    /// Its author decided.
    Perhaps,
    /// It tells nothing of itself.
    Never,
}

/// What a program is by nature; what is done with it is in `programs`.
impl Program {
    /// What it is to the request's bill.
    pub fn role(&self) -> Role {
        match self {
            Self::BuiltIn(_)
            | Self::Command(_)
            | Self::Airline(_)
            | Self::Nginx(_)
            | Self::Petclinic(_) => Role::Application,
            Self::Gateway => Role::Gateway,
            Self::Postgres(_) | Self::AirlineDatabase(_) => Role::Database,
            Self::Collector => Role::Collector,
        }
    }

    /// The database that it is, which speaks TCP of its own rather than HTTP.
    pub(crate) fn database(&self) -> Option<Database<'_>> {
        match self {
            Self::Postgres(postgres) => Some(Database::Seeded(postgres)),
            Self::AirlineDatabase(airline) => Some(Database::Airline(*airline)),
            Self::BuiltIn(_)
            | Self::Command(_)
            | Self::Gateway
            | Self::Petclinic(_)
            | Self::Nginx(_)
            | Self::Airline(_)
            | Self::Collector => None,
        }
    }

    /// Whether it speaks TCP of its own rather than HTTP.
    pub fn is_database(&self) -> bool {
        self.database().is_some()
    }

    /// Whether a data plane of sidecars puts one beside it.
    pub fn takes_sidecar(&self) -> bool {
        !matches!(self.role(), Role::Gateway | Role::Collector)
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

    /// Whether it is the user's own.
    pub(crate) fn is_users_own(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// What it does with a probe that asks for a report.
    pub(crate) fn reports(&self) -> Reports {
        match self {
            Self::BuiltIn(_) | Self::Airline(_) => Reports::Always,
            Self::Gateway => Reports::OfItsCallee,
            Self::Command(_) => Reports::Perhaps,
            Self::Postgres(_)
            | Self::AirlineDatabase(_)
            | Self::Petclinic(_)
            | Self::Nginx(_)
            | Self::Collector => Reports::Never,
        }
    }

    /// Whether it counts what it answers and says so when it is asked.
    pub(crate) fn counts_answers(&self) -> bool {
        matches!(self, Self::Nginx(_))
    }

    /// Whether how often it calls others depends on what the entry was asked for.
    pub(crate) fn calls_by_request(&self) -> bool {
        matches!(self, Self::Airline(_))
    }

    /// Whether some of its calls of a database write.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::BuiltIn(built_in) => {
                built_in.queries.as_ref().is_some_and(|queries| queries.write.is_some())
            }
            Self::Command(_) | Self::Airline(_) => true,
            Self::Gateway
            | Self::Postgres(_)
            | Self::AirlineDatabase(_)
            | Self::Petclinic(_)
            | Self::Nginx(_)
            | Self::Collector => false,
        }
    }

    /// Whether its configuration says on which port it serves metrics.
    pub(crate) fn takes_metrics_port(&self) -> bool {
        matches!(self, Self::Petclinic(_))
    }
}

/// A database, by what it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Database<'a> {
    /// What the study's seed makes, in a PostgreSQL.
    Seeded(&'a Postgres),
    /// The airline.
    Airline(AirlineDatabase),
}

impl Database<'_> {
    /// What serves it.
    pub(crate) fn server(self) -> DatabaseServer {
        match self {
            Self::Seeded(_) => DatabaseServer::Postgres,
            Self::Airline(airline) => airline.server,
        }
    }
}

/// A program of the user's own. `{port}` and `{host}` in a word or a variable are where it listens, `{address.NAME}` and
/// `{url.NAME}` where it finds a service that it calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment, beside those that toll itself has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where it runs, and where relative paths lead from; where toll runs when it is empty.
    #[serde(default)]
    pub directory: PathBuf,
    /// What shows that it is ready; that it listens on its port when nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
}

/// What shows that a program is ready, and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// What shows it.
    pub sign: ReadySign,
    /// How long it may take.
    pub timeout: Duration,
}

/// What shows that a program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadySign {
    /// It listens on its port.
    Listens,
    /// It listens on another port.
    ListensOn(u16),
    /// It answers a GET of this path with this status.
    Answers {
        /// The path.
        path: String,
        /// The status.
        status: u16,
    },
}

impl UserProgram {
    /// The program and its arguments, and nothing else.
    pub fn of<const N: usize>(argv: [&str; N]) -> Self {
        Self { argv: argv.map(str::to_owned).into(), ..Self::default() }
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
