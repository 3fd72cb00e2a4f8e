//! The study as written: the types are the file's shape, their comments its descriptions.
//!
//! The JSON schema, the checks of the reader and the annotated default all follow from here.
//! Nothing is resolved: a rate may still be a share of the capacity, a binary may still be missing.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_line::CommandLine;
use super::quantity::{Binary, Name, Rate, Setting, Share, TimeSpan, UrlPath};

mod app;
mod reference;
mod sweep;

pub use app::{
    Airline, AirlinePart, App, BuiltIn, Call, Database, DatabaseProgram, Gateway, Petclinic,
    PetclinicPart, Program, Queries, Ready, Runtime, Server, Service,
};
pub use reference::{Derived, Figures, Recomputed, Reference};
pub use sweep::{Combination, Matrix};

/// One study: an application, the variants it runs in, the loads it bears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study; the directory of a run carries it.
    #[serde(rename = "study")]
    #[schemars(extend("examples" = ["my-study"]))]
    pub name: Name,
    /// The question that the study answers, shown at the head of the report.
    #[schemars(extend("examples" = ["What does a sidecar cost?"]))]
    pub question: Option<String>,
    /// The application, the same in every variant.
    pub app: App,
    /// The configurations that are compared, by name.
    #[schemars(extend("minProperties" = 1))]
    pub variants: IndexMap<Name, Variant>,
    /// The variant that the others are held against; the first one when it is left out.
    #[schemars(extend("examples" = ["bare"]))]
    pub baseline: Option<Name>,
    /// The loads that every variant bears, by name.
    #[schemars(extend("minProperties" = 1))]
    pub loads: IndexMap<Name, Load>,
    /// Who sends the load.
    #[serde(default)]
    pub load: LoadGenerators,
    /// Rounds: each starts every variant anew, and the interval of an effect comes from how they differ.
    #[serde(default = "number::<8>")]
    #[schemars(range(min = 1, max = 1000))]
    pub rounds: u32,
    /// As many rounds as fit into this time, instead of a number of them.
    #[serde(rename = "for")]
    #[schemars(extend("examples" = ["5m"]))]
    pub time: Option<TimeSpan>,
    /// Rounds until half of the interval of each headline metric is at most this share of its figure, instead of a
    /// number of them.
    #[schemars(extend("examples" = ["3%"]))]
    pub width: Option<Share>,
    /// Cycles of a round: in each every variant bears every load twice, for a slice each time.
    #[serde(default = "number::<4>")]
    #[schemars(range(min = 1, max = 1000))]
    pub cycles: u32,
    /// The few metrics that get a verdict.
    #[serde(default = "default::headline")]
    #[schemars(length(min = 1), extend("examples" = [["latency_p50", "cpu_per_request"]]))]
    pub headline: Vec<Metric>,
    /// A difference that lies inside this share of the baseline is called no difference.
    #[serde(default = "default::bound")]
    pub bound: Share,
    /// The discarded load that brings fresh services to their steady state, before their first slice.
    #[serde(default)]
    pub settle: Settle,
    /// How long the idle cost is measured in each round, without load.
    #[serde(default = "seconds::<1>")]
    pub idle: TimeSpan,
    /// What `--quick` changes: a first look.
    #[serde(default = "default::quick")]
    pub quick: Changes,
    /// What `--paper` changes: as long as published.
    #[serde(default)]
    pub paper: Changes,
    /// What `--runtime spring` changes besides the runtime: a JVM takes longer to reach its steady state.
    #[serde(default)]
    pub spring: Changes,
    /// Where the application is going to run: costs are shown at its traffic.
    pub traffic: Option<Traffic>,
    /// Published figures of the same study, shown beside the user's own.
    pub reference: Option<Reference>,
}

/// Where the application is going to run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"rate": "2000/s", "pods": 12}]))]
pub struct Traffic {
    /// Requests per second that the entry gets there.
    #[schemars(extend("examples" = ["2000/s"]))]
    pub rate: Rate,
    /// Pods of all services together there; as many as here when it is left out.
    #[schemars(range(min = 1, max = 100_000), extend("examples" = [12]))]
    pub pods: Option<u32>,
}

/// Who sends the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadGenerators {
    /// Pods that share the load, each a part of it: only with `--on kubernetes`. On one machine there is one.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 50))]
    pub pods: u32,
}

impl Default for LoadGenerators {
    fn default() -> Self {
        Self { pods: 1 }
    }
}

/// A quantity that is compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["latency_p50"]))]
pub enum Metric {
    /// Median latency, microseconds.
    LatencyP50,
    /// 90th percentile of latency, microseconds.
    LatencyP90,
    /// 95th percentile of latency, microseconds.
    LatencyP95,
    /// 99th percentile of latency, microseconds.
    LatencyP99,
    /// Mean latency, microseconds.
    LatencyMean,
    /// CPU time of all components but the load generator and toll itself per completed request, microseconds.
    CpuPerRequest,
    /// CPU time of the application's services alone per completed request, microseconds.
    ApplicationCpuPerRequest,
    /// CPU time of the data plane's proxies (sidecars, egress gateway, its SNI proxy, node proxies, waypoint) per
    /// completed request, microseconds; of variants that have a data plane.
    MeshCpuPerRequest,
    /// Completed requests per second.
    Throughput,
    /// Anonymous memory of application and data plane at its mean in the measured window, bytes.
    Memory,
}

impl Metric {
    /// As short as it can be said, in a sentence or over a narrow column.
    pub fn name(self) -> &'static str {
        match self {
            Self::LatencyP50 => "p50",
            Self::LatencyP90 => "p90",
            Self::LatencyP95 => "p95",
            Self::LatencyP99 => "p99",
            Self::LatencyMean => "mean latency",
            Self::CpuPerRequest => "CPU per request",
            Self::ApplicationCpuPerRequest => "application CPU",
            Self::MeshCpuPerRequest => "data plane CPU",
            Self::Throughput => "throughput",
            Self::Memory => "memory",
        }
    }

    /// The unit of its figures.
    pub fn unit(self) -> &'static str {
        match self {
            Self::LatencyP50
            | Self::LatencyP90
            | Self::LatencyP95
            | Self::LatencyP99
            | Self::LatencyMean
            | Self::CpuPerRequest
            | Self::ApplicationCpuPerRequest
            | Self::MeshCpuPerRequest => "us",
            Self::Throughput => "requests/s",
            Self::Memory => "bytes",
        }
    }

    /// Which quantile of the latency's histogram a percentile is, 0..1.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::LatencyP50 => Some(0.50),
            Self::LatencyP90 => Some(0.90),
            Self::LatencyP95 => Some(0.95),
            Self::LatencyP99 => Some(0.99),
            _ => None,
        }
    }
}

impl fmt::Display for Metric {
    /// As the study file has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One configuration of the application; `{}` is the application alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// A proxy beside each service.
    pub sidecar: Option<Sidecar>,
    /// A tracing agent inside each JVM.
    pub java_agent: Option<JavaAgent>,
    /// By which way traffic to the application's external databases leaves a mesh of sidecars.
    pub egress: Option<Egress>,
    /// A proxy on each node.
    pub ambient: Option<Ambient>,
    /// Your own settings of the sidecars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envoy: Option<EnvoySettings>,
    /// Services that run as another program than in the application.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub services: IndexMap<Name, Version>,
}

/// Settings of the Envoy sidecars that toll plays: files are YAML, and a relative path follows the study file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{"concurrency": 1, "filters": ["lua.yaml"]}]))]
pub struct EnvoySettings {
    /// Worker threads; two, as Istio has them, when it is left out.
    #[schemars(range(min = 1, max = 128), extend("examples" = [1]))]
    pub concurrency: Option<u32>,
    /// Log each request, as Envoy's format has it, into the sidecar's log.
    pub access_log: bool,
    /// Files of one HTTP filter each (`name` and `typed_config`), put before the router, in order.
    #[schemars(extend("examples" = [["lua.yaml"]]))]
    pub filters: Vec<PathBuf>,
    /// File that is merged into the whole configuration at the end, as a JSON Merge Patch (RFC 7396).
    #[schemars(extend("examples" = ["overlay.yaml"]))]
    pub bootstrap_overlay: Option<PathBuf>,
}

/// Another version of a service that is a `command`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{"command": ["./my-api-2", "--port", "{port}"]}]))]
pub struct Version {
    /// In the place of the application's.
    pub command: Option<CommandLine>,
    /// Variables in the place of the application's, and beside them.
    #[schemars(extend("examples" = [{"CACHE": "on"}]))]
    pub env: IndexMap<String, Setting>,
}

impl Variant {
    /// The service as this variant has it.
    pub fn version_of(&self, name: &Name, service: &Service) -> Service {
        let mut service = service.clone();
        if let Some(version) = self.services.get(name) {
            let command = version.command.clone().map(Program::Command);
            service.program = command.unwrap_or(service.program);
            service.env.extend(version.env.clone());
        }
        service
    }
}

/// By which way traffic to external databases leaves a mesh of sidecars.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["bypass", {"gateway": {"mtls": true}}]))]
pub enum Egress {
    /// Past the sidecars, whose redirect leaves the databases' addresses out.
    Bypass,
    /// Through the caller's sidecar, which knows the host and passes TLS on by its SNI.
    #[default]
    Sidecar,
    /// Through the caller's sidecar and then through an Envoy in a pod of its own.
    Gateway(EgressGateway),
}

/// The Envoy through which traffic leaves the mesh.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{"mtls": true, "sni_proxy": true, "hosts": ["*.airline.example"]}]))]
pub struct EgressGateway {
    /// Whether sidecars speak mTLS to it, around the TLS of the application.
    pub mtls: bool,
    /// Whether an nginx in its pod finds the host by its SNI.
    pub sni_proxy: bool,
    /// Names that it lets out, `*.example.org` for all below one; those of the external databases when left out.
    #[schemars(extend("examples" = [["*.airline.example"]]))]
    pub hosts: Vec<String>,
}

/// A proxy on each node, for all pods there, which carries traffic in HBONE: ztunnel where there is one, else Envoy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("examples" = [{"mtls": "strict", "waypoint": true}]))]
pub struct Ambient {
    /// What pods accept from outside of the mesh.
    pub mtls: Mtls,
    /// Which proxy stands on the nodes.
    pub proxy: NodeProxy,
    /// Who brings it.
    pub by: By,
    /// Whether every request also crosses a waypoint, a proxy that reads HTTP.
    pub waypoint: bool,
}

/// The proxy of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["envoy"]))]
pub enum NodeProxy {
    /// ztunnel where `ZTUNNEL` names one or `PATH` has one, else Envoy in its place.
    #[default]
    Any,
    /// Envoy in ztunnel's place.
    Envoy,
    /// ztunnel; without one the variant is skipped.
    Ztunnel,
}

/// A tracing agent inside each JVM of the application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[schemars(extend("examples" = [{"kind": "opentelemetry"}]))]
pub enum JavaAgent {
    /// The OpenTelemetry Java agent; toll fetches it.
    OpenTelemetry {
        /// Its own settings by their names as system properties, for instance `otel.metrics.exporter: none`.
        #[serde(default)]
        #[schemars(extend("examples" = [{"otel.metrics.exporter": "none"}]))]
        settings: IndexMap<String, Setting>,
        /// Spans that it leaves for each request where they are others than the loads say, by service.
        #[serde(default)]
        #[schemars(extend("examples" = [{"gateway": 2}]))]
        spans: IndexMap<Name, u32>,
    },
    /// EaseAgent.
    EaseAgent {
        /// Its jar. No package registry has it: without one the variant is skipped.
        #[schemars(extend("examples" = ["${EASEAGENT}"]))]
        jar: Binary,
        /// Its own settings, for instance `plugin.observability.jdbc.tracing.enabled: true`.
        #[serde(default)]
        #[schemars(extend("examples" = [{"plugin.observability.jdbc.tracing.enabled": true}]))]
        settings: IndexMap<String, Setting>,
        /// Spans that it leaves for each request where they are others than the loads say, by service.
        #[serde(default)]
        #[schemars(extend("examples" = [{"gateway": 2}]))]
        spans: IndexMap<Name, u32>,
    },
}

impl JavaAgent {
    /// Its own settings.
    pub fn settings(&self) -> &IndexMap<String, Setting> {
        let (Self::OpenTelemetry { settings, .. } | Self::EaseAgent { settings, .. }) = self;
        settings
    }

    /// Spans that it leaves for each request where they are others than the loads say, by service.
    pub fn spans(&self) -> &IndexMap<Name, u32> {
        let (Self::OpenTelemetry { spans, .. } | Self::EaseAgent { spans, .. }) = self;
        spans
    }
}

/// The proxy beside each service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "proxy", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(extend("examples" = [{"proxy": "envoy"}]))]
pub enum Sidecar {
    /// Envoy, configured as Istio configures its sidecar.
    Envoy {
        /// What an inbound sidecar accepts.
        #[serde(default)]
        mtls: Mtls,
        /// Who brings it.
        #[serde(default)]
        by: By,
    },
    /// Apache ServiceComb Mesher, an explicit HTTP proxy.
    Mesher {
        /// The program. No package registry has it: without one the variant is skipped.
        #[schemars(extend("examples" = ["${MESHER_BIN}"]))]
        binary: Binary,
        /// Refused: Mesher has no mTLS.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mtls: Option<Mtls>,
    },
}

/// Who brings the proxies of a mesh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["cluster"]))]
pub enum By {
    /// toll, with proxies of its own.
    #[default]
    Toll,
    /// The mesh that is installed in the cluster, whichever it is; only with `--on kubernetes`.
    Cluster,
}

/// What an inbound sidecar accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["strict"]))]
pub enum Mtls {
    /// mTLS or plaintext, as Istio does by default.
    #[default]
    Permissive,
    /// mTLS only.
    Strict,
}

/// One load: what is asked, how requests are released, and how long a slice of it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Load {
    /// What is asked.
    #[serde(default)]
    pub request: Request,
    /// What is asked instead, by name: each request is one of these, drawn by weight.
    #[serde(default)]
    #[schemars(extend("minProperties" = 1, "examples" = [{"search": {"weight": 4, "path": "/flights"}}]))]
    pub mix: IndexMap<Name, Weighted>,
    /// A request without an answer after this long has failed.
    #[serde(default = "seconds::<10>")]
    pub timeout: TimeSpan,
    /// Failed requests that are tolerated; none when it is left out.
    pub failures: Option<Failures>,
    /// Spans that one request leaves where it is traced, by service; the proof of path counts them.
    #[serde(default)]
    #[schemars(extend("examples" = [{"gateway": 1, "vets": 9}]))]
    pub spans: IndexMap<Name, u32>,
    /// How requests are released.
    #[serde(flatten)]
    pub model: LoadModel,
    /// How long a slice is; one of virtual users is all their stages.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// What the load is swept over: it is borne once for each combination.
    pub matrix: Option<Matrix>,
}

/// Failed requests that a load tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"at_most": "1%"}]))]
pub struct Failures {
    /// Share of the requests of a variant in a round.
    #[schemars(extend("examples" = ["1%"]))]
    pub at_most: Share,
}

/// What a load asks the entry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// HTTP method; on a POST a service with `postgres` writes.
    pub method: Method,
    /// Path and query; `{{counter}}` and `{{random}}` in it are filled in for each request.
    pub path: UrlPath,
    /// Further headers, with the same placeholders. `${NAME}` in a value is taken from the environment whenever a load
    /// begins, and never stored.
    #[schemars(extend("examples" = [{"authorization": "Bearer ${TOKEN}"}]))]
    pub headers: IndexMap<String, Setting>,
    /// Content-Type of the body, `application/json` when it is left out.
    #[schemars(extend("examples" = ["application/json"]))]
    pub content_type: Option<String>,
    /// Body; `{{counter}}` and `{{random}}` in it are filled in for each request.
    #[schemars(extend("examples" = ["hello"]))]
    pub body: Option<String>,
    /// File with the body, instead of `body`; a relative path follows the study file.
    #[schemars(extend("examples" = ["order.json"]))]
    pub body_file: Option<PathBuf>,
    /// Statuses of good answers; all below 400 when it is left out.
    #[schemars(inner(range(min = 100, max = 599)), extend("examples" = [[200, 404]]))]
    pub expect: Vec<u16>,
}

/// One request of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Weighted {
    /// Its share of the requests, relative to the weights of the others.
    #[schemars(range(min = 1, max = 1000), extend("examples" = [4]))]
    pub weight: u32,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// The methods of HTTP (RFC 9110, RFC 5789) that a load can have. The built-in service writes on a POST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(extend("examples" = ["POST"]))]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Reads, and the answer has no body.
    Head,
    /// Writes.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
    /// Asks what is allowed.
    Options,
}

impl Method {
    /// Whether it only reads, and so has no body.
    pub fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options)
    }

    /// As it is sent.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// How requests are released.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadModel {
    /// An arrival schedule that does not wait for answers.
    Open(Open),
    /// Connections on which the next request waits for the answer to the last.
    Closed(Closed),
    /// Virtual users, who pause between their requests.
    Vus(Vus),
    /// Arrival rates from 10 to 100 % of the capacity: latency and cost against the rate.
    Curve(Curve),
}

/// How long a slice of a load is, behind its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// So long.
    Slice(
        #[schemars(extend(
            "description" = "Length of a slice behind its guard.",
            "examples" = ["400ms", "1s"]
        ))]
        TimeSpan,
    ),
    /// As long as so many requests take, in a closed loop.
    Requests(
        #[schemars(
            range(min = 1),
            extend("description" = "Requests of a slice of a closed loop.", "examples" = [100_000])
        )]
        u64,
    ),
}

/// An arrival schedule that does not wait for answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"rate": "50% of capacity"}]))]
pub struct Open {
    /// Arrivals per second, or a share of what the slowest variant carries flat out.
    pub rate: Rate,
    /// The law of the arrivals.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Bound on connections, and so on requests under way.
    #[serde(default = "number::<256>")]
    #[schemars(range(min = 1, max = 60_000))]
    pub connections: u32,
}

/// The law of the arrivals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("examples" = ["poisson"]))]
pub enum Arrivals {
    /// Evenly spaced.
    #[default]
    Constant,
    /// Exponential gaps, as many independent users make them.
    Poisson,
}

/// Connections on which the next request waits for the answer to the last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"connections": 36}]))]
pub struct Closed {
    /// Connections, each with one request under way.
    #[schemars(range(min = 1, max = 60_000), extend("examples" = [36]))]
    pub connections: u32,
}

/// Arrival rates from 10 to 100 % of the capacity, each a load of its own called `LOAD-10` to `LOAD-100`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Curve {
    /// How many rates.
    #[schemars(range(min = 2, max = 20))]
    pub steps: u32,
}

/// Virtual users over time, each with several requests at once and a pause after their answers, as k6 has them.
///
/// A slice is all three stages; without a ramp the users come in evenly over their pause, which is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"users": 320, "think": "1s", "parallel": 4}]))]
pub struct Vus {
    /// The most that are at work, before they are scaled to the machine.
    #[schemars(range(min = 1, max = 60_000), extend("examples" = [320]))]
    pub users: u32,
    /// At work at the begin and at the end, where there is a ramp; never more than `users`.
    #[serde(default)]
    #[schemars(range(min = 0, max = 60_000))]
    pub start: u32,
    /// From `start` to `users`.
    #[serde(default = "seconds::<0>")]
    pub ramp: TimeSpan,
    /// With all users.
    #[serde(default = "seconds::<2>")]
    pub hold: TimeSpan,
    /// From `users` to `start`.
    #[serde(default = "seconds::<0>")]
    pub ramp_down: TimeSpan,
    /// Pause of a user after the last answer of an iteration.
    #[serde(default = "seconds::<1>")]
    pub think: TimeSpan,
    /// Requests that a user sends at once.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = 1000))]
    pub parallel: u32,
    /// What the users were chosen for; without it they are not scaled.
    pub scale: Option<Scale>,
}

/// Scales virtual users to the machine: by what the slowest variant carries here, and never beyond the study's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Requests per second that the slowest variant carried where the users were chosen.
    #[schemars(extend("examples" = ["1526/s"]))]
    pub capacity: Rate,
}

/// A discarded load on fresh services: closed loops, slice after slice round the variants, until throughput and CPU per
/// request are stable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settle {
    /// Length of a slice; the last three are held against the three before.
    pub slice: TimeSpan,
    /// Never longer than this for one variant; room for at least six slices.
    pub max: TimeSpan,
    /// Connections of the closed loop.
    #[schemars(range(min = 1, max = 60_000))]
    pub connections: u32,
    /// Then no request is sent until the services are quiet, for this long at the most: a JIT compiler works off what
    /// it had to put by.
    pub rest: TimeSpan,
}

/// What a profile changes; what it does not name stays as the study says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Rounds instead of the study's, and instead of its `for` and `width`.
    #[schemars(range(min = 1, max = 1000), extend("examples" = [4]))]
    pub rounds: Option<u32>,
    /// Cycles instead of the study's.
    #[schemars(range(min = 1, max = 1000), extend("examples" = [2]))]
    pub cycles: Option<u32>,
    /// Length of a slice of every load, also of one whose slices the study ends by `requests`.
    pub slice: Option<TimeSpan>,
    /// Stages of every load of virtual users, which `slice` leaves alone.
    pub vus: Option<Stages>,
    /// The slices of single loads, by name; goes before `slice` and `vus`.
    #[serde(default)]
    pub loads: IndexMap<Name, End>,
    /// Sweeps of single loads, by name.
    #[serde(default)]
    pub matrices: IndexMap<Name, Matrix>,
    /// Work of every built-in service, instead of the study's.
    pub work: Option<app::Work>,
    /// Discarded load instead of the study's.
    pub settle: Option<Settle>,
    /// Idle time instead of the study's.
    pub idle: Option<TimeSpan>,
}

/// How long the users of a load of virtual users come, stay and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"ramp": "50s", "hold": "10m", "ramp_down": "50s"}]))]
pub struct Stages {
    /// From `start` to `users`.
    #[serde(default = "seconds::<0>")]
    pub ramp: TimeSpan,
    /// With all users.
    #[serde(default = "seconds::<2>")]
    pub hold: TimeSpan,
    /// From `users` to `start`.
    #[serde(default = "seconds::<0>")]
    pub ramp_down: TimeSpan,
}

/// How long a profile makes the slices of one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// So long.
    Slice(
        #[schemars(extend(
            "description" = "Length of a slice behind its guard.",
            "examples" = ["400ms", "1s"]
        ))]
        TimeSpan,
    ),
    /// As long as so many requests take, in a closed loop.
    Requests(
        #[schemars(
            range(min = 1),
            extend("description" = "Requests of a slice of a closed loop.", "examples" = [100_000])
        )]
        u64,
    ),
    /// These stages.
    Vus(Stages),
}

/// How thoroughly a study is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As the study says.
    #[default]
    Default,
    /// A first look.
    Quick,
    /// As long as published.
    Paper,
}

impl Study {
    /// The variant that the others are held against.
    ///
    /// # Panics
    /// Of a study without variants, which the reader refuses.
    pub fn baseline(&self) -> &Name {
        let first = || self.variants.keys().next().expect("a study has a variant");
        self.baseline.as_ref().unwrap_or_else(first)
    }

    /// The files that it refers to, as written: bodies of requests, and settings of proxies.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let asked = self.loads.values().flat_map(Load::asked);
        let bodies = asked.filter_map(|(request, _)| request.body_file.as_deref());
        let envoys = self.variants.values().filter_map(|variant| variant.envoy.as_ref());
        let settings =
            envoys.flat_map(|envoy| envoy.filters.iter().chain(&envoy.bootstrap_overlay));
        bodies.chain(settings.map(PathBuf::as_path))
    }

    /// The study with what the profile changes.
    pub fn with_profile(self, profile: Profile) -> Self {
        let changes = match profile {
            Profile::Default => return self,
            Profile::Quick => self.quick.clone(),
            Profile::Paper => self.paper.clone(),
        };
        self.with(&changes)
    }

    /// The study with these changes.
    pub fn with(mut self, changes: &Changes) -> Self {
        if let Some(rounds) = changes.rounds {
            (self.rounds, self.time, self.width) = (rounds, None, None);
        }
        self.cycles = changes.cycles.unwrap_or(self.cycles);
        self.settle = changes.settle.unwrap_or(self.settle);
        if let Some(work) = changes.work {
            let programs = self.app.services.values_mut().map(|service| &mut service.program);
            programs.filter_map(app::Program::work_mut).for_each(|written| *written = work);
        }
        self.idle = changes.idle.unwrap_or(self.idle);
        for (name, load) in &mut self.loads {
            load.matrix = changes.matrices.get(name).cloned().or(load.matrix.take());
            load.end_as(changes, changes.loads.get(name).copied());
        }
        self
    }
}

impl Request {
    /// Whether it has a body, from the study or from a file.
    pub fn has_body(&self) -> bool {
        self.body.is_some() || self.body_file.is_some()
    }
}

impl Load {
    /// All that it asks, at least one, each with its name in a mix.
    pub fn asked(&self) -> Vec<(&Request, Option<&Name>)> {
        match self.mix.is_empty() {
            true => vec![(&self.request, None)],
            false => self.mix.iter().map(|(name, kind)| (&kind.request, Some(name))).collect(),
        }
    }

    /// Ends as the changes say; `own` is what they say of this load alone.
    fn end_as(&mut self, changes: &Changes, own: Option<End>) {
        if let LoadModel::Vus(vus) = &mut self.model {
            let own =
                own.and_then(|end| if let End::Vus(stages) = end { Some(stages) } else { None });
            if let Some(Stages { ramp, hold, ramp_down }) = own.or(changes.vus) {
                (vus.ramp, vus.hold, vus.ramp_down) = (ramp, hold, ramp_down);
            }
            return;
        }
        let own = own.and_then(End::length);
        self.length = own.or(changes.slice.map(Length::Slice)).or(self.length);
    }
}

impl From<Length> for End {
    fn from(length: Length) -> Self {
        match length {
            Length::Slice(slice) => Self::Slice(slice),
            Length::Requests(requests) => Self::Requests(requests),
        }
    }
}

impl End {
    /// The slices of a load that is none of virtual users.
    pub fn length(self) -> Option<Length> {
        match self {
            Self::Slice(slice) => Some(Length::Slice(slice)),
            Self::Requests(requests) => Some(Length::Requests(requests)),
            Self::Vus(_) => None,
        }
    }
}

impl Default for Length {
    fn default() -> Self {
        Self::Slice(TimeSpan::from_millis(400))
    }
}

impl Default for Curve {
    fn default() -> Self {
        Self { steps: 10 }
    }
}

impl Curve {
    /// Its rates, each as a whole per cent of the capacity.
    pub fn percents(&self) -> impl Iterator<Item = u32> {
        let steps = self.steps.max(2);
        (0..steps).map(move |step| 10 + (90 * step).div_ceil(steps - 1))
    }
}

impl Vus {
    /// How long its users come, stay and go.
    pub fn stages(&self) -> Stages {
        Stages { ramp: self.ramp, hold: self.hold, ramp_down: self.ramp_down }
    }
}

impl Stages {
    /// Whether they are over at once.
    pub fn is_empty(&self) -> bool {
        self.ramp.is_zero() && self.hold.is_zero() && self.ramp_down.is_zero()
    }
}

impl Settle {
    /// Slices that a run has at the least before it can be called stable: three against the three before.
    pub const SLICES: u32 = 6;
}

impl Default for Settle {
    fn default() -> Self {
        Self {
            slice: TimeSpan::from_millis(250),
            max: TimeSpan::from_secs(3),
            connections: 32,
            rest: TimeSpan::from_secs(0),
        }
    }
}

/// A default, as `default.yaml` states and explains it.
fn number<const N: u32>() -> u32 {
    N
}

/// A default, as `default.yaml` states and explains it.
fn seconds<const N: u64>() -> TimeSpan {
    TimeSpan::from_secs(N)
}

/// The defaults that are no single number.
mod default {
    use super::{Changes, Metric, Share, TimeSpan};

    pub(super) fn headline() -> Vec<Metric> {
        vec![Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest]
    }

    pub(super) fn bound() -> Share {
        Share::percent(5.0).expect("5 % lies within 0 to 100 %")
    }

    pub(super) fn quick() -> Changes {
        Changes {
            rounds: Some(4),
            cycles: Some(3),
            idle: Some(TimeSpan::from_millis(500)),
            ..Changes::default()
        }
    }
}
