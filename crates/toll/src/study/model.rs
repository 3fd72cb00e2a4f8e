//! The study as written: the types are the file's shape, their comments its descriptions.
//!
//! The JSON schema, the checks of the reader and the annotated default all follow from here.
//! Nothing is resolved: a rate may still be a share of the knee, a binary may still be missing.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{Binary, Name, Rate, Share, TimeSpan};

/// One study: an application, the variants it runs in, the loads it bears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study; the directory of a run carries it.
    #[serde(rename = "study")]
    #[schemars(extend("examples" = ["my-study"]))]
    pub name: Name,
    /// The question that the study answers, shown at the head of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["What does a sidecar cost?"]))]
    pub question: Option<String>,
    /// The application, the same in every variant.
    pub app: App,
    /// The configurations that are compared, by name.
    #[schemars(extend("minProperties" = 1))]
    pub variants: IndexMap<Name, Variant>,
    /// The variant that the others are held against.
    #[schemars(extend("examples" = ["bare"]))]
    pub baseline: Name,
    /// The loads that every variant bears, by name.
    #[schemars(extend("minProperties" = 1))]
    pub loads: IndexMap<Name, Load>,
    /// How often every variant bears every load; the interval of an effect comes from the blocks.
    #[serde(default = "default::blocks")]
    #[schemars(range(min = 2, max = 1000))]
    pub blocks: u32,
    /// A difference that lies inside this share of the baseline is called no difference.
    #[serde(default = "default::bound")]
    pub bound: Share,
    /// The phase before the measured one.
    #[serde(default)]
    pub warm_up: WarmUp,
    /// How long the idle cost is measured, after the start and before the first request.
    #[serde(default = "default::idle")]
    pub idle: TimeSpan,
    /// What `--quick` changes: a first look.
    #[serde(default = "default::quick")]
    pub quick: Changes,
    /// What `--paper` changes: durations as published.
    #[serde(default)]
    pub paper: Changes,
    /// Published figures of the same study, shown beside the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

/// The application: services that call each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The service that the load calls.
    pub entry: Name,
    /// The services, by name.
    #[schemars(extend("minProperties" = 1))]
    pub services: IndexMap<Name, Service>,
}

/// One service: the built-in one, or the user's own program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// TCP port that it listens on; no other service has it.
    #[schemars(range(min = 1, max = 65535), extend("examples" = [9000]))]
    pub port: u16,
    /// The services that it calls for each request it gets, in order.
    #[serde(default)]
    #[schemars(extend("examples" = [["server"]]))]
    pub calls: Vec<Name>,
    /// The user's own program and its arguments, instead of the built-in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("examples" = [["./my-api", "--port", "8080"]]))]
    pub command: Option<Vec<String>>,
    /// What the built-in service does for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::work")]
    pub work: Option<Work>,
    /// What the built-in service answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default = "default::reply")]
    pub reply: Option<Reply>,
    /// A fault with a known answer: the built-in service stops answering at regular times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
}

/// What plays a service, its defaults filled in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Program<'s> {
    /// The built-in service.
    BuiltIn {
        /// What it does for each request.
        work: Work,
        /// What it answers.
        reply: Reply,
        /// Its known-answer fault.
        stall: Option<Stall>,
    },
    /// The user's own program and its arguments, never empty.
    Command(&'s [String]),
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

/// One configuration of the application; `{}` is the application alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// A proxy beside each service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Sidecar>,
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
    },
    /// Apache ServiceComb Mesher, an explicit HTTP proxy.
    Mesher {
        /// The program. No package registry has it: the variant is skipped until an adapter could be tried.
        binary: Binary,
    },
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

/// One load: how requests are released, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Load {
    /// How requests are released.
    #[serde(flatten)]
    pub model: LoadModel,
    /// When the measured phase ends.
    #[serde(flatten)]
    pub stop: Stop,
}

/// How requests are released.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadModel {
    /// An arrival schedule that does not wait for answers.
    Open(Open),
    /// Connections on which the next request waits for the answer to the last.
    Closed(Closed),
}

/// When the measured phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this time.
    Duration(#[schemars(extend("examples" = ["30s", "5m", "500ms"]))] TimeSpan),
    /// After this many requests.
    Requests(#[schemars(range(min = 1), extend("examples" = [100_000]))] u64),
}

/// An arrival schedule that does not wait for answers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"rate": "60% of knee"}]))]
pub struct Open {
    /// Arrivals per second, or a share of what the slowest variant can take.
    pub rate: Rate,
    /// The law of the arrivals.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Bound on connections, and so on requests under way.
    #[serde(default = "default::connections")]
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

/// The warm-up ends when the series is stable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WarmUp {
    /// Never shorter than this.
    pub min: TimeSpan,
    /// Never longer than this.
    pub max: TimeSpan,
}

/// What a profile changes; what it does not name stays as the study says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Blocks instead of the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 1000), extend("examples" = [5]))]
    pub blocks: Option<u32>,
    /// Duration of every load, also of one that the study ends after a number of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<TimeSpan>,
    /// Warm-up instead of the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Idle time instead of the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<TimeSpan>,
}

/// Published figures of the same study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Where they were published.
    #[schemars(extend("examples" = ["Mesher performance tests"]))]
    pub source: String,
    /// What a reader must know about them, a sentence each.
    #[serde(default)]
    pub note: Vec<String>,
    /// The figures, by variant and load.
    pub figures: IndexMap<Name, IndexMap<Name, Figures>>,
}

/// The published figures of one variant under one load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Completed requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("examples" = [2303.69]))]
    pub throughput_per_s: Option<f64>,
    /// Latency, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<LatencyMs>,
}

/// Published latency, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyMs {
    /// Arithmetic mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("examples" = [17.702]))]
    pub mean: Option<f64>,
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
    /// With the published durations.
    Paper,
}

impl Study {
    /// The study with what the profile changes.
    pub fn with_profile(mut self, profile: Profile) -> Self {
        let changes = match profile {
            Profile::Default => return self,
            Profile::Quick => self.quick,
            Profile::Paper => self.paper,
        };
        self.blocks = changes.blocks.unwrap_or(self.blocks);
        self.warm_up = changes.warm_up.unwrap_or(self.warm_up);
        self.idle = changes.idle.unwrap_or(self.idle);
        if let Some(duration) = changes.duration {
            self.loads.values_mut().for_each(|load| load.stop = Stop::Duration(duration));
        }
        self
    }
}

impl Service {
    /// What plays the service.
    pub fn program(&self) -> Program<'_> {
        match &self.command {
            Some(command) => Program::Command(command),
            None => Program::BuiltIn {
                work: self.work.unwrap_or_default(),
                reply: self.reply.unwrap_or_default(),
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
        Self { status: 200, bytes: 5 }
    }
}

impl Default for WarmUp {
    fn default() -> Self {
        Self { min: TimeSpan::from_secs(2), max: TimeSpan::from_secs(10) }
    }
}

/// The defaults that are no type's own; `default.yaml` states and explains them.
mod default {
    use super::{Changes, Reply, Share, TimeSpan, WarmUp, Work};

    pub(super) fn blocks() -> u32 {
        5
    }

    pub(super) fn bound() -> Share {
        Share::percent(5.0).expect("5 % lies within 0 to 100 %")
    }

    pub(super) fn idle() -> TimeSpan {
        TimeSpan::from_secs(2)
    }

    pub(super) fn connections() -> u32 {
        256
    }

    pub(super) fn work() -> Option<Work> {
        Some(Work::default())
    }

    pub(super) fn reply() -> Option<Reply> {
        Some(Reply::default())
    }

    pub(super) fn quick() -> Changes {
        Changes {
            blocks: None,
            duration: Some(TimeSpan::from_secs(3)),
            warm_up: Some(WarmUp { min: TimeSpan::from_millis(500), max: TimeSpan::from_secs(2) }),
            idle: Some(TimeSpan::from_secs(1)),
        }
    }
}
