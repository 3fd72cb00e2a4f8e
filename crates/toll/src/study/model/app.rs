//! The application as written: services, the gateways before them and the databases behind them.

use clap::ValueEnum;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::number;
use crate::study::command_line::CommandLine;
use crate::study::quantity::{Metrics, Name, Setting, TimeSpan, UrlPath};

/// Connections of a pod to its database.
const POOL: u32 = 16;

/// The application: services that call each other, the gateways before them, the databases behind them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The gateway or service that the load calls.
    pub entry: Name,
    /// Ingress gateways, by name: an Envoy each, the same in every variant.
    #[serde(default)]
    pub gateways: IndexMap<Name, Gateway>,
    /// Nodes that the pods are spread over in turn: each a bridge, and a proxy where the data plane is ambient.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 100))]
    pub nodes: u32,
    /// The services, by name.
    #[schemars(extend("minProperties" = 1))]
    pub services: IndexMap<Name, Service>,
    /// Databases, by name: a server each, on fresh data.
    #[serde(default)]
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
    #[serde(default = "default_group")]
    pub group: Name,
    /// Whether it ends TLS: the load speaks HTTPS to it, with a certificate of the run's own.
    #[serde(default)]
    pub tls: bool,
    /// The node that it is on, from 1 on, counted round where there are fewer.
    #[schemars(range(min = 1, max = 100), extend("examples" = [1]))]
    pub node: Option<u32>,
}

/// One service: what the others call, and which program plays it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// TCP port that it listens on; nothing else in the application has it.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [9000]))]
    pub port: u16,
    /// Which program it is; the built-in service when it is left out.
    #[serde(default)]
    pub program: Program,
    /// Variables of the environment of a `command`, beside those that toll itself has.
    #[serde(default)]
    #[schemars(extend("examples" = [{"LOG_LEVEL": "warn", "STOCK": "{url.stock}"}]))]
    pub env: IndexMap<String, Setting>,
    /// What shows that a `command` is ready, and how long it may take; that it listens on its port when it is left out.
    pub ready: Option<Ready>,
    /// The services that it calls for each request it gets, in order. A `command` may call as often as it likes: where
    /// `per_request` does not say how often, calls are counted and compared between variants.
    #[serde(default)]
    #[schemars(extend("examples" = [["server"], [{"server": {"per_request": 2}}]]))]
    pub calls: Vec<Call>,
    /// The group (namespace) under which reports list it.
    #[serde(default = "default_group")]
    pub group: Name,
    /// Pods that play it; several need an isolation level with networks of their own.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: u32,
    /// The node that its pods are on, from 1 on, counted round where there are fewer; in turn when it is left out.
    #[schemars(range(min = 1, max = 100), extend("examples" = [2]))]
    pub node: Option<u32>,
    /// A Prometheus text endpoint that each of its pods has: its series are sampled and stored.
    pub metrics: Option<Metrics>,
    /// Names of the series of `metrics` that are stored; those of the JVM when it is left out.
    #[serde(default)]
    #[schemars(extend("examples" = [["http_requests_total"]]))]
    pub series: Vec<String>,
}

/// A call of another service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "CallAsWritten", into = "CallAsWritten")]
#[schemars(try_from = "IndexMap<Name, Times>", into = "IndexMap<Name, Times>", extend(
    "type" = ["object", "string"], "format" = Name::FORMAT,
    "minProperties" = 1, "maxProperties" = 1, "examples" = ["server", {"server": {"per_request": 2}}]
))]
pub struct Call {
    /// The service that is called.
    pub to: Name,
    /// How often for each request, where the study says so.
    pub per_request: Option<u32>,
}

impl From<Name> for Call {
    fn from(to: Name) -> Self {
        Self { to, per_request: None }
    }
}

/// A name, or a name with how often.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum CallAsWritten {
    Once(Name),
    Counted(IndexMap<Name, Times>),
}

/// How often a service is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Times {
    /// For each request that the caller gets.
    #[schemars(range(min = 1, max = 1000), extend("examples" = [2]))]
    per_request: u32,
}

impl TryFrom<CallAsWritten> for Call {
    type Error = &'static str;

    fn try_from(written: CallAsWritten) -> Result<Self, Self::Error> {
        match written {
            CallAsWritten::Once(to) => Ok(to.into()),
            CallAsWritten::Counted(calls) => {
                let (to, times) = calls.into_iter().next().ok_or("a call has a service")?;
                Ok(Self { to, per_request: Some(times.per_request) })
            }
        }
    }
}

impl From<Call> for CallAsWritten {
    fn from(Call { to, per_request }: Call) -> Self {
        match per_request {
            None => Self::Once(to),
            Some(per_request) => Self::Counted([(to, Times { per_request })].into()),
        }
    }
}

/// What shows that a program is ready: an answer, or that it listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"path": "/health", "timeout": "60s"}]))]
pub struct Ready {
    /// The path that it answers.
    pub path: Option<UrlPath>,
    /// The status of that answer.
    #[serde(default = "ok")]
    #[schemars(range(min = 100, max = 599))]
    pub status: u16,
    /// A port that it listens on when it is ready, if that is not its own.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [9090]))]
    pub tcp: Option<u16>,
    /// How long it may take.
    #[serde(default = "two_minutes")]
    pub timeout: TimeSpan,
}

fn ok() -> u16 {
    200
}

fn two_minutes() -> TimeSpan {
    TimeSpan::from_micros(120_000_000)
}

/// Which program a service is, with the keys that this program has.
///
/// One whose keys all have defaults may stand as its bare name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(
    transform = allow_bare_names,
    extend("examples" = [{"built_in": {"work": {"cpu": "500us"}}}, {"command": ["./my-api", "--port", "{port}"]}])
)]
pub enum Program {
    /// toll's own service, with work, answer and database as written.
    BuiltIn(BuiltIn),
    /// A program of the user's.
    Command(CommandLine),
    /// A web server.
    Nginx(Nginx),
    /// A Spring application.
    Petclinic(Petclinic),
    /// An application whose database is outside of the mesh.
    Airline(Airline),
}

/// toll's own service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BuiltIn {
    /// What it is written in; `--runtime` has the last word.
    pub runtime: Runtime,
    /// What it does for each request.
    pub work: Work,
    /// What it answers.
    pub reply: Reply,
    /// What it asks a database for each request, after its calls.
    pub postgres: Option<Queries>,
    /// A fault with a known answer: it stops answering at regular times.
    pub stall: Option<Stall>,
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

/// A part of the Petclinic on a JVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Petclinic {
    /// Which part.
    #[schemars(extend("examples" = ["vets"]))]
    pub part: PetclinicPart,
    /// Heap of its JVM from its start on, MiB; equal in all variants.
    #[serde(default = "number::<256>")]
    #[schemars(range(min = 64, max = 65_536))]
    pub heap_mib: u32,
}

/// The parts of the Petclinic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PetclinicPart {
    /// Spring Cloud Gateway: hands what is below `/api/vet` to the one service that it calls.
    Gateway,
    /// Spring MVC and Spring Data JPA on an embedded database: `/vets?spans=N` asks it N - 1 times.
    Vets,
}

/// A part of the airline: services that find flights, book seats and keep customers, with a database outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
#[schemars(extend("examples" = [{"part": "flights", "database": "airline-db"}]))]
pub enum Airline {
    /// The entry: hands each request to the part that it is for, all three of which it calls.
    Web(WithoutData),
    /// `GET /flights?from=A&to=B`; the bookings take seats from it.
    Flights(WithData),
    /// `POST /bookings`, for which it calls customers and flights, and `GET /bookings?customer=N`.
    Bookings(WithData),
    /// `GET /customers/N`.
    Customers(WithData),
}

/// A part of the airline that has nothing in the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithoutData {
    /// What it does for each request.
    #[serde(default)]
    pub work: Work,
}

/// A part of the airline that has something in the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WithData {
    /// The database, the same for all parts.
    #[schemars(extend("examples" = ["airline-db"]))]
    pub database: Name,
    /// Connections that each of its pods keeps to the database at the most.
    #[serde(default = "number::<POOL>")]
    #[schemars(range(min = 1, max = 1000))]
    pub connections: u32,
    /// What it does for each request.
    #[serde(default)]
    pub work: Work,
}

/// The parts of the airline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AirlinePart {
    /// The entry.
    Web,
    /// Finds flights.
    Flights,
    /// Books seats.
    Bookings,
    /// Keeps customers.
    Customers,
}

/// What the built-in service is written in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["spring"]))]
pub enum Runtime {
    /// Rust: starts at once, no JVM noise
    #[default]
    Native,
    /// Spring Boot with WebFlux and R2DBC on a JVM: slower to start and to settle
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
    #[schemars(length(min = 1), extend("examples" = ["INSERT INTO log VALUES ($1)"]))]
    pub write: Option<String>,
    /// Connections of each pod's pool.
    #[serde(default = "number::<POOL>")]
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
    /// Which program it is, and what is in it at first.
    pub program: DatabaseProgram,
    /// The group (namespace) under which reports list it.
    #[serde(default = "default_group")]
    pub group: Name,
}

/// Which program a database is, with the keys that this program has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = [{"postgres": {"seed": "CREATE TABLE log (line text)"}}]))]
pub enum DatabaseProgram {
    /// PostgreSQL, filled by the study's SQL.
    Postgres(Postgres),
    /// What the airline keeps, outside of the mesh.
    Airline(AirlineDatabase),
}

/// PostgreSQL, filled by SQL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Postgres {
    /// SQL that fills it, run once before anything connects.
    #[schemars(length(min = 1), extend("examples" = ["CREATE TABLE log (line text)"]))]
    pub seed: String,
    /// SQL that gives one row of two whole numbers: rows that writes have made, and different ones among them.
    #[schemars(
        length(min = 1),
        extend("examples" = ["SELECT count(line), count(DISTINCT line) FROM log"])
    )]
    pub written: Option<String>,
}

/// The airline's database, outside of the mesh and spoken to over TLS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AirlineDatabase {
    /// The server; `--database` has the last word.
    #[serde(default)]
    pub server: Server,
    /// Its DNS name: clients look it up, send it as SNI and verify it.
    #[schemars(length(min = 1, max = 253), extend("examples" = ["db.airline.example"]))]
    pub host: String,
    /// Flights that are there at first.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub flights: u32,
    /// Seats of each flight.
    #[serde(default = "number::<1_000_000>")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub seats: u32,
    /// Customers.
    #[serde(default = "number::<1000>")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub customers: u32,
}

/// The database servers that can hold the airline.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["mongodb"]))]
pub enum Server {
    /// PostgreSQL 17, which speaks TLS from the first byte on
    #[default]
    Postgres,
    /// MongoDB: a `mongod` where there is one, else a server of its protocol on a JVM
    Mongodb,
}

impl App {
    /// The databases outside of the mesh, and their hosts.
    pub fn external(&self) -> impl Iterator<Item = (&Name, &str)> {
        let databases = self.databases.iter();
        databases.filter_map(|(name, database)| Some((name, database.airline()?.host.as_str())))
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
                names.extend(service.callees());
            }
        }
        reached
    }
}

impl Service {
    /// The services that it calls, in order.
    pub fn callees(&self) -> impl Iterator<Item = &Name> {
        self.calls.iter().map(|call| &call.to)
    }
}

impl Program {
    /// What it does for each request, where the study can say so.
    pub(super) fn work_mut(&mut self) -> Option<&mut Work> {
        match self {
            Self::BuiltIn(built_in) => Some(&mut built_in.work),
            Self::Airline(Airline::Web(web)) => Some(&mut web.work),
            Self::Airline(
                Airline::Flights(part) | Airline::Bookings(part) | Airline::Customers(part),
            ) => Some(&mut part.work),
            Self::Command(_) | Self::Nginx(_) | Self::Petclinic(_) => None,
        }
    }

    /// What it asks a database of SQL.
    pub fn queries(&self) -> Option<&Queries> {
        match self {
            Self::BuiltIn(built_in) => built_in.postgres.as_ref(),
            _ => None,
        }
    }

    /// The part of the airline that it is.
    pub fn airline(&self) -> Option<&Airline> {
        match self {
            Self::Airline(airline) => Some(airline),
            _ => None,
        }
    }

    /// The database that it uses.
    pub fn database(&self) -> Option<&Name> {
        let airlines = || Some(&self.airline()?.data()?.database);
        self.queries().map(|queries| &queries.database).or_else(airlines)
    }
}

impl Default for Program {
    fn default() -> Self {
        Self::BuiltIn(BuiltIn::default())
    }
}

impl Airline {
    /// Which part it is.
    pub fn part(&self) -> AirlinePart {
        match self {
            Self::Web(_) => AirlinePart::Web,
            Self::Flights(_) => AirlinePart::Flights,
            Self::Bookings(_) => AirlinePart::Bookings,
            Self::Customers(_) => AirlinePart::Customers,
        }
    }

    /// What it does for each request.
    pub fn work(&self) -> Work {
        match self {
            Self::Web(web) => web.work,
            Self::Flights(part) | Self::Bookings(part) | Self::Customers(part) => part.work,
        }
    }

    /// What it says of the database, if it has something there.
    pub fn data(&self) -> Option<&WithData> {
        match self {
            Self::Web(_) => None,
            Self::Flights(part) | Self::Bookings(part) | Self::Customers(part) => Some(part),
        }
    }

    /// Connections that each of its pods keeps to a database at the most.
    pub fn connections(&self) -> u32 {
        self.data().map_or(POOL, |data| data.connections)
    }
}

impl AirlinePart {
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
    /// The airline's, if it is that.
    pub fn airline(&self) -> Option<&AirlineDatabase> {
        match &self.program {
            DatabaseProgram::Airline(airline) => Some(airline),
            DatabaseProgram::Postgres(_) => None,
        }
    }

    /// The SQL that counts what was written into it, if there is any.
    pub fn written(&self) -> Option<&str> {
        match &self.program {
            DatabaseProgram::Postgres(postgres) => postgres.written.as_deref(),
            DatabaseProgram::Airline(_) => None,
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

fn default_group() -> Name {
    "default".parse().expect("small letters only")
}

/// Of a choice of mappings, those that need no key may also stand as their bare name.
fn allow_bare_names(schema: &mut schemars::Schema) {
    let choices = schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter();
    for choices in choices {
        let needs_none =
            |inner: &Value| inner["type"] == "object" && inner.get("required").is_none();
        let names = choices
            .iter()
            .flat_map(|choice| choice["properties"].as_object().into_iter().flatten());
        let bare = names.filter(|(_, inner)| needs_none(inner));
        let bare: Vec<Value> =
            bare.map(|(name, _)| json!({"type": "string", "const": name})).collect();
        choices.extend(bare);
    }
}
