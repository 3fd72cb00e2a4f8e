//! What to send, at what instants, over which connections, for how long. Pure data; the wire form is JSON.

use std::net::IpAddr;
use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Everything the engine needs for one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPlan {
    /// Where the requests go; each request goes to one of them, drawn by weight.
    pub targets: Vec<Target>,
    /// Rows that templates take their `{{csv.column}}` from.
    #[serde(default)]
    pub rows: Rows,
    /// What a connection is made of.
    #[serde(default)]
    pub connection: ConnectionPlan,
    /// How requests are released.
    pub model: LoadModel,
    /// The phase before the measured one.
    pub warm_up: WarmUp,
    /// When the measured phase ends.
    pub stop: Stop,
    /// A request without an answer after this many milliseconds is an error of kind `timeout`.
    pub timeout_ms: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Event loops, each with a thread of its own and its share of the load.
    #[serde(default = "one")]
    pub threads: u32,
    /// What an event loop does when nothing is ready.
    #[serde(default)]
    pub idle: Idle,
    /// Which share of the load this engine carries.
    #[serde(default)]
    pub part: Part,
    /// When the first phase begins, nanoseconds since 1970 (UTC); at once when absent. Engines that were given
    /// one instant start together as well as their clocks agree.
    #[serde(default)]
    pub start_at_unix_ns: Option<u64>,
}

impl LoadPlan {
    /// One target over kept-alive HTTP/1.1 connections, without warm-up, on one thread.
    pub fn new(target: Target, model: LoadModel, stop: Stop) -> LoadPlan {
        LoadPlan {
            targets: vec![target],
            rows: Rows::default(),
            connection: ConnectionPlan::default(),
            model,
            warm_up: WarmUp { min_s: 0.0, max_s: 0.0 },
            stop,
            timeout_ms: 20_000,
            seed: 0,
            threads: 1,
            idle: Idle::Block,
            part: Part::default(),
            start_at_unix_ns: None,
        }
    }
}

/// One request, or a template of requests, and how often it is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `http://host:port/path` or `https://…`; the path and the query may hold placeholders.
    pub url: String,
    /// Method, `GET` when absent.
    #[serde(default = "get")]
    pub method: String,
    /// Further headers, in order; their values may hold placeholders.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Request body, empty when absent; may hold placeholders when it is text.
    #[serde(default)]
    pub body: Body,
    /// Whether `{{…}}` in path, header values and body are placeholders: `counter` (0, 1, 2, …), `random`
    /// (an integer below 2^32), `random.LOW.HIGH` (an integer from LOW to HIGH), `csv.COLUMN`.
    #[serde(default)]
    pub template: bool,
    /// Share of the requests, relative to the other targets' weights.
    #[serde(default = "one")]
    pub weight: u32,
    /// Statuses of good answers; all below 400 when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<u16>,
}

impl Target {
    /// A plain GET of a URL.
    pub fn get(url: impl Into<String>) -> Target {
        Target {
            url: url.into(),
            method: get(),
            headers: Vec::new(),
            body: Body::default(),
            template: false,
            weight: 1,
            expect: Vec::new(),
        }
    }

    /// Whether an answer of this status is a good one.
    pub fn expects(&self, status: u16) -> bool {
        match self.expect.as_slice() {
            [] => status < FIRST_BAD,
            expected => expected.contains(&status),
        }
    }
}

/// The first status that says that something went wrong.
const FIRST_BAD: u16 = 400;

fn get() -> String {
    "GET".into()
}

fn one() -> u32 {
    1
}

/// The bytes of a request body; in JSON a string when they are text, otherwise `{"base64": "…"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body(pub Vec<u8>);

impl From<&str> for Body {
    fn from(text: &str) -> Body {
        Body(text.into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BodyForm {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match String::from_utf8(self.0.clone()) {
            Ok(text) => BodyForm::Text(text),
            Err(error) => BodyForm::Bytes { base64: BASE64_STANDARD.encode(error.as_bytes()) },
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        Ok(Body(match BodyForm::deserialize(deserializer)? {
            BodyForm::Text(text) => text.into_bytes(),
            BodyForm::Bytes { base64 } => {
                BASE64_STANDARD.decode(base64).map_err(de::Error::custom)?
            }
        }))
    }
}

/// A small table; request number k uses row k modulo the number of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values, as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// What a connection is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionPlan {
    /// What is spoken on it.
    pub protocol: Protocol,
    /// How often it is used.
    pub reuse: Reuse,
    /// Used when a target's URL begins with `https`.
    pub tls: Tls,
    /// Connect to this Unix socket, whatever host the URL names.
    pub unix_socket: Option<PathBuf>,
    /// Addresses to use instead of those that a name resolves to.
    pub resolve: Vec<Resolve>,
    /// Local addresses that connections are bound to in turn; each gives about 28,000 connections to one
    /// remote address.
    pub local_addresses: Vec<IpAddr>,
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112), one request at a time.
    #[default]
    Http1,
    /// HTTP/2 (RFC 9113): over TLS by ALPN, otherwise with prior knowledge.
    Http2 {
        /// Requests at a time on one connection.
        streams: u32,
    },
    /// Unary gRPC over HTTP/2. A target's body is the message; a `grpc-status` other than 0 is counted.
    Grpc {
        /// Calls at a time on one connection.
        streams: u32,
    },
}

impl Protocol {
    /// Requests that one connection carries at a time.
    pub fn streams(self) -> u32 {
        match self {
            Protocol::Http1 => 1,
            Protocol::Http2 { streams } | Protocol::Grpc { streams } => streams,
        }
    }
}

/// How often a connection is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// It is kept for further requests.
    #[default]
    KeepAlive,
    /// Each request has a new one.
    PerRequest,
}

/// How TLS is spoken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// Name asked for and verified, when it is not the URL's host.
    pub server_name: Option<String>,
    /// PEM certificates to trust instead of the system's.
    pub ca_pem: Option<String>,
    /// The client's own certificate.
    pub identity: Option<Identity>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Resume sessions when the server offers it.
    pub resumption: bool,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls { server_name: None, ca_pem: None, identity: None, insecure: false, resumption: true }
    }
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// PEM chain, the client's certificate first.
    pub chain_pem: String,
    /// PEM key.
    pub key_pem: String,
}

/// An address for a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// Host as in the URL.
    pub host: String,
    /// Port as in the URL.
    pub port: u16,
    /// Where to connect to.
    pub address: IpAddr,
}

/// How requests are released.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LoadModel {
    /// Clients that wait for their answers before they go on.
    Closed {
        /// Clients over time; fractions are rounded.
        clients: Profile,
        /// What each of them does again and again.
        #[serde(default)]
        iteration: Iteration,
    },
    /// An arrival schedule that does not wait for answers.
    Open {
        /// When requests are due.
        arrivals: Arrivals,
        /// Bound on connections to each host.
        max_connections: u32,
    },
}

impl LoadModel {
    /// So many clients from begin to end, each with one request at a time and no pause.
    pub fn closed(clients: u32) -> LoadModel {
        LoadModel::Closed {
            clients: Profile::constant(clients.into()),
            iteration: Iteration::default(),
        }
    }

    /// Evenly spaced arrivals.
    pub fn open(rate_per_s: f64, max_connections: u32) -> LoadModel {
        LoadModel::Open { arrivals: Arrivals::even(rate_per_s), max_connections }
    }
}

/// What a client does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Iteration {
    /// Requests sent at once; the iteration ends with the last of their answers.
    pub requests: u32,
    /// Pause after that, milliseconds.
    pub think_ms: f64,
}

impl Default for Iteration {
    fn default() -> Iteration {
        Iteration { requests: 1, think_ms: 0.0 }
    }
}

/// The law of the intended send times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Arrivals per second over time.
    pub rate_per_s: Profile,
    /// How they lie within that rate.
    #[serde(default)]
    pub spacing: Spacing,
}

impl Arrivals {
    /// A constant rate, evenly spaced.
    pub fn even(rate_per_s: f64) -> Arrivals {
        Arrivals { rate_per_s: Profile::constant(rate_per_s), spacing: Spacing::Even }
    }

    /// A constant mean rate with exponential gaps.
    pub fn poisson(rate_per_s: f64) -> Arrivals {
        Arrivals { rate_per_s: Profile::constant(rate_per_s), spacing: Spacing::Poisson }
    }
}

/// How arrivals lie within their rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Each where the integral of the rate reaches the next whole number.
    #[default]
    Even,
    /// A Poisson process of that rate, from the plan's seed.
    Poisson,
}

/// A quantity over the time of a phase: straight pieces, which may jump. The last value holds for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile {
    /// At least one, in order.
    pub stages: Vec<Stage>,
}

/// A straight piece of a [`Profile`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Length, seconds.
    pub duration_s: f64,
    /// Value at its begin.
    pub from: f64,
    /// Value at its end.
    pub to: f64,
}

impl Profile {
    /// The same value always.
    pub fn constant(value: f64) -> Profile {
        Profile { stages: vec![Stage { duration_s: 0.0, from: value, to: value }] }
    }

    /// The largest value.
    pub fn highest(&self) -> f64 {
        self.stages.iter().flat_map(|stage| [stage.from, stage.to]).fold(0.0, f64::max)
    }

    /// Length of all stages, seconds; 0 for a constant.
    pub fn duration_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.duration_s).sum()
    }
}

/// Warm-up ends when the series is stable, at the latest after `max_s`. A profile stands at its first value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Never shorter than this, seconds.
    pub min_s: f64,
    /// Never longer than this, seconds.
    pub max_s: f64,
}

/// When the measured phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Stop {
    /// After this many seconds.
    AfterSeconds(f64),
    /// After this many requests were released.
    AfterRequests(u64),
}

/// What an event loop does when nothing is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// It sleeps: the least CPU time.
    #[default]
    Block,
    /// It looks again at once: the highest throughput, and a whole core.
    Spin,
}

/// One of several engines that share a load: arrivals, clients and request numbers go to them in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// This engine, from zero.
    pub index: u32,
    /// All of them.
    pub of: u32,
}

impl Default for Part {
    fn default() -> Part {
        Part { index: 0, of: 1 }
    }
}
