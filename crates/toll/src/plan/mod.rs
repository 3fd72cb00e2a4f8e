//! What will happen: a study with everything resolved, trials in order, seed fixed. Pure.
//!
//! Turns a [`crate::study::Study`] into a [`Plan`]. Starts nothing and reads nothing but its arguments.

mod application;
mod estimate;
mod listing;
mod order;
mod resolve;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_lab::Deployment;
use toll_load::{Arrivals, Iteration, LoadModel, LoadPlan, Profile, Stage, Stop, Target, WarmUp};

pub use listing::listing;
pub use resolve::{Choices, PlanError, resolve};

pub use crate::study::Derived;

/// Version of `plan.json`.
pub const FORMAT: u32 = 1;

/// Everything a run will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Version of this format.
    pub version: u32,
    /// The study's name.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// The variant the others are held against.
    pub baseline: String,
    /// Seed of every random choice of the run.
    pub seed: u64,
    /// `default`, `quick` or `paper`.
    pub profile: String,
    /// What the built-in services are written in, in words; absent when there are none.
    #[serde(default)]
    pub runtime: Option<String>,
    /// Share of the baseline inside which a difference counts as none, 0..1.
    pub bound: f64,
    /// Seconds without load before each load, to measure the idle cost.
    pub idle_s: f64,
    /// Number of blocks.
    pub blocks: usize,
    /// How long a variant stays up.
    #[serde(default)]
    pub bring_up: BringUp,
    /// The discarded run on fresh services, if there is one.
    #[serde(default)]
    pub settle: Option<PlannedSettle>,
    /// In the order of the study.
    pub variants: Vec<PlannedVariant>,
    /// In the order of the study.
    pub loads: Vec<PlannedLoad>,
    /// In the order in which they run.
    pub trials: Vec<PlannedTrial>,
    /// Published figures, if the study has some.
    pub reference: Option<PlannedReference>,
    /// Whatever in the study or the choices weakens the result.
    pub warnings: Vec<String>,
}

/// How long a variant stays up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BringUp {
    /// For one trial: nothing is inherited.
    #[default]
    Trial,
    /// For all loads of one arm in one block: services that are slow to start are started less often.
    Block,
    /// For one block, all arms side by side: what is compared lies close together in time.
    Together,
    /// For the whole run, all arms side by side: for services that need minutes to be at their best.
    Run,
}

/// The discarded run that brings fresh services to their steady state, before their first load.
///
/// Closed loop, slice after slice, until throughput and CPU per request are stable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlannedSettle {
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Never longer than this in all, seconds.
    pub max_s: f64,
    /// Connections of the closed loop.
    pub connections: u32,
    /// The longest rest after it, until the services are quiet, seconds.
    #[serde(default)]
    pub rest_s: f64,
    /// Whether every arm then bears every load once before the first block.
    #[serde(default)]
    pub rehearse: bool,
}

/// A variant, resolved or skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedVariant {
    /// As in the study file.
    pub name: String,
    /// One line for people.
    pub describes: String,
    /// What will be brought up, or why nothing will.
    pub state: VariantState,
}

/// Whether a variant runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantState {
    /// It runs.
    Ready(Deployment),
    /// It does not, for this reason.
    Skipped(String),
}

/// One load of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedLoad {
    /// As in the study file.
    pub name: String,
    /// What is asked; the first of its `mix` when it has one.
    #[serde(default)]
    pub request: PlannedRequest,
    /// What is asked instead of `request` alone, drawn by weight; empty unless the study has a mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<PlannedKind>,
    /// Spans that one request leaves where it is traced, by service; empty when the study does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spans: BTreeMap<String, u64>,
    /// Where it lies in the study's sweep, if it is one of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
    /// How requests are released.
    pub release: Release,
    /// When the measured phase ends.
    pub stop: Stop,
    /// The phase before it.
    pub warm_up: WarmUp,
}

/// One combination of a load that is swept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The load as the study names it.
    pub load: String,
    /// The rate of this combination, per second; absent when the rate is not swept.
    pub rate_per_s: Option<f64>,
    /// Connections of a closed loop, when they are swept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// The service whose pods are as many as this, when they are swept.
    pub replicas: Option<(String, usize)>,
    /// Nodes, when they are swept.
    pub nodes: Option<usize>,
}

impl Cell {
    /// The deployment that this combination is of.
    pub fn of(&self, deployment: &Deployment) -> Deployment {
        let mut scaled = deployment.clone();
        scaled.nodes = self.nodes.unwrap_or(scaled.nodes);
        if let Some((name, replicas)) = &self.replicas {
            let of_name = scaled.services.iter_mut().filter(|service| service.name == *name);
            of_name.for_each(|service| service.replicas = *replicas);
        }
        scaled
    }

    /// Whether what came up for one is what the other needs.
    pub fn shares_deployment(one: Option<&Self>, other: Option<&Self>) -> bool {
        let scale = |cell: Option<&Self>| {
            cell.map(|cell| (cell.replicas.clone(), cell.nodes)).unwrap_or_default()
        };
        scale(one) == scale(other)
    }
}

/// One request of a mix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedKind {
    /// As in the study file.
    pub name: String,
    /// Its share of the requests, relative to the weights of the others.
    pub weight: u32,
    /// What is asked.
    pub request: PlannedRequest,
}

/// What a load asks the entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRequest {
    /// HTTP method.
    pub method: String,
    /// Path and query, from the slash on.
    pub path: String,
    /// Content-Type of the body, when there is one.
    pub content_type: Option<String>,
    /// Body; `{{...}}` in it and in the path is filled in for each request as [`toll_load::Target`] says.
    pub body: String,
}

impl Default for PlannedRequest {
    fn default() -> Self {
        Self { method: "GET".into(), path: "/".into(), content_type: None, body: String::new() }
    }
}

impl PlannedRequest {
    /// Whether it is to write to the application's database.
    pub fn writes(&self) -> bool {
        self.method == "POST"
    }

    /// For the load engine, at the URL of an entry.
    pub fn target(&self, entry_url: &str) -> Target {
        let url = format!("{}{}", entry_url.trim_end_matches('/'), self.path);
        let content_type =
            self.content_type.iter().map(|kind| ("content-type".into(), kind.clone()));
        Target {
            method: self.method.clone(),
            headers: content_type.collect(),
            template: self.body.contains("{{") || self.path.contains("{{"),
            body: self.body.as_str().into(),
            ..Target::get(url)
        }
    }
}

/// How requests are released; the rate may still wait for the knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// N connections, the next request waits for the answer.
    Closed {
        /// How many.
        connections: u32,
    },
    /// An arrival schedule.
    Open {
        /// How many a second.
        rate: PlannedRate,
        /// Exponential gaps instead of even ones.
        poisson: bool,
        /// Bound on outstanding requests.
        max_connections: u32,
    },
    /// Virtual users: each sends some requests at once, waits for all answers, pauses, and begins again.
    Users(PlannedUsers),
}

/// Virtual users over time: from `start` up to `users`, all of them for a while, and down again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlannedUsers {
    /// The most that are at work, as the study says: before they are scaled to the machine.
    pub users: u32,
    /// At work at the begin and at the end.
    pub start: u32,
    /// From the first to the most, seconds.
    pub ramp_s: f64,
    /// All at work, seconds.
    pub hold_s: f64,
    /// From the most to the last, seconds.
    pub ramp_down_s: f64,
    /// Pause between a user's iterations, seconds.
    pub think_s: f64,
    /// Requests that a user sends at once.
    pub parallel: u32,
    /// Requests per second that the slowest variant carried where `users` was chosen; with it they are scaled by
    /// what the slowest variant carries here, and never beyond `users`.
    pub made_for_knee_per_s: Option<f64>,
}

/// An arrival rate, absolute or relative to what the slowest variant carries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedRate {
    /// Requests per second.
    PerSecond(f64),
    /// Share of the knee of the slowest variant, 0..1.
    OfKnee(f64),
}

/// One trial: one variant under one load, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// Position in the run, from 1.
    pub index: usize,
    /// Block, from 1; 0 for the rehearsal, which counts for nothing.
    pub block: usize,
    /// What runs.
    pub arm: Arm,
    /// Name of the load.
    pub load: String,
}

/// A variant, or the baseline for the second time in its block (the A/A pair).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Arm {
    /// The variant.
    pub variant: String,
    /// Whether this is the second half of the A/A pair.
    pub again: bool,
}

/// Published figures, flattened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedReference {
    /// Where they were published.
    pub source: String,
    /// What to know about them.
    pub notes: Vec<String>,
    /// In the order of the study.
    pub figures: Vec<PublishedFigure>,
    /// What follows from the figures, where the source derived it wrongly or not at all.
    #[serde(default)]
    pub recomputed: Vec<Recomputed>,
}

/// A figure derived from published ones, as printed and as it follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recomputed {
    /// The variant; held against the baseline when the figure is a change.
    pub variant: String,
    /// The variant that it is held against instead of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The load that it belongs to.
    pub load: String,
    /// What is derived.
    pub derived: Derived,
    /// The pod that it is of, for what is derived of one pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// As printed in the source; absent when it does not say.
    pub printed: Option<f64>,
    /// As it follows from the published figures; absent when they are not enough.
    pub recomputed: Option<f64>,
    /// Why the two differ, or why it matters; one sentence.
    pub because: String,
}

/// One published number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The variant it belongs to.
    pub variant: String,
    /// The load it belongs to.
    pub load: String,
    /// `throughput_per_s`, `latency_ms.mean`, `latency_ms.p95`, `cpu_millicores.POD`, `memory_mib.POD`,
    /// `cpu_load_percent.POD`, `heap_mib.POD` and so on; `cpu_total_millicores` and `memory_total_mib` of all groups.
    pub figure: String,
    /// As published.
    pub value: f64,
}

impl Plan {
    /// The deployments that run, in order.
    pub fn ready(&self) -> impl Iterator<Item = (&str, &Deployment)> {
        self.variants.iter().filter_map(|v| match &v.state {
            VariantState::Ready(deployment) => Some((v.name.as_str(), deployment)),
            VariantState::Skipped(_) => None,
        })
    }

    /// The deployment of a variant that runs.
    pub fn deployment(&self, variant: &str) -> Option<&Deployment> {
        self.ready().find(|(name, _)| *name == variant).map(|(_, deployment)| deployment)
    }

    /// The largest deployment of a variant that runs: that of a sweep's largest cell.
    pub fn largest(&self, variant: &str) -> Option<Deployment> {
        let deployment = self.deployment(variant)?;
        let of_load = |load: &PlannedLoad| match &load.cell {
            Some(cell) => cell.of(deployment),
            None => deployment.clone(),
        };
        let sizes = self.loads.iter().map(of_load);
        sizes.max_by_key(|size| (size.pods().len(), size.nodes))
    }

    /// What a trial brings up: its variant's deployment, of the size of its load's cell.
    pub fn deployment_of(&self, trial: &PlannedTrial) -> Option<Deployment> {
        let deployment = self.deployment(&trial.arm.variant)?;
        let cell = self.load(&trial.load).and_then(|load| load.cell.as_ref());
        Some(cell.map_or_else(|| deployment.clone(), |cell| cell.of(deployment)))
    }

    /// The same for a lab with room for one arm at a time: none stands beside another.
    #[must_use]
    pub fn one_after_another(mut self) -> Self {
        let mut arms: Vec<Arm> = self.trials.iter().map(|trial| trial.arm.clone()).collect();
        arms.sort();
        arms.dedup();
        let sizes = order::sizes(&self.loads);
        self.bring_up = BringUp::Block;
        self.trials = order::trials(&arms, &sizes, 1..=self.blocks, self.seed, self.bring_up);
        self.warnings.push(
            "the arms followed each other in each block, as with loopback isolation there is room for one: what the machine did meanwhile is in their differences"
                .into(),
        );
        self
    }

    /// The load of that name.
    pub fn load(&self, name: &str) -> Option<&PlannedLoad> {
        self.loads.iter().find(|load| load.name == name)
    }

    /// Whether a knee must be known before the first trial.
    pub fn needs_knee(&self) -> bool {
        self.loads.iter().any(|load| load.refers_to_knee())
    }
}

impl PlannedUsers {
    /// Users here, once the knee is known.
    pub fn scaled(&self, knee_per_s: Option<f64>) -> Option<u32> {
        let Some(made_for) = self.made_for_knee_per_s else { return Some(self.users) };
        let scale = (knee_per_s? / made_for).min(1.0);
        Some(((f64::from(self.users) * scale).round() as u32).max(1))
    }

    /// From the first user's begin to the last one's end, seconds.
    pub fn length_s(&self) -> f64 {
        self.ramp_s + self.hold_s + self.ramp_down_s
    }

    /// Users over time for the load engine, once the knee is known.
    fn profile(&self, knee_per_s: Option<f64>) -> Option<Profile> {
        let most = self.scaled(knee_per_s)?;
        let (start, most) = (f64::from(self.start.min(most)), f64::from(most));
        let stage = |duration_s, from, to| Stage { duration_s, from, to };
        let stages = vec![
            stage(self.ramp_s, start, most),
            stage(self.hold_s, most, most),
            stage(self.ramp_down_s, most, start),
        ];
        Some(Profile { stages: stages.into_iter().filter(|s| s.duration_s > 0.0).collect() })
    }
}

impl PlannedLoad {
    /// All that it asks, each with its weight.
    pub fn kinds(&self) -> Vec<(u32, &PlannedRequest)> {
        match self.mix.as_slice() {
            [] => vec![(1, &self.request)],
            mix => mix.iter().map(|kind| (kind.weight, &kind.request)).collect(),
        }
    }

    /// The same for the load engine, at the URL of an entry, in the same order.
    pub fn targets(&self, entry_url: &str) -> Vec<Target> {
        let target = |(weight, request): (u32, &PlannedRequest)| Target {
            weight,
            ..request.target(entry_url)
        };
        self.kinds().into_iter().map(target).collect()
    }

    /// Share of the knee, when the rate is relative to it.
    pub fn share_of_knee(&self) -> Option<f64> {
        match self.release {
            Release::Open { rate: PlannedRate::OfKnee(share), .. } => Some(share),
            _ => None,
        }
    }

    /// Whether it can begin only when the knee is known.
    pub fn refers_to_knee(&self) -> bool {
        let scaled = matches!(
            self.release,
            Release::Users(PlannedUsers { made_for_knee_per_s: Some(_), .. })
        );
        scaled || self.share_of_knee().is_some()
    }

    /// Arrivals per second, once the knee is known; absent in a closed loop.
    pub fn rate_per_s(&self, knee_per_s: Option<f64>) -> Option<f64> {
        match self.release {
            Release::Closed { .. } | Release::Users(_) => None,
            Release::Open { rate: PlannedRate::PerSecond(rate), .. } => Some(rate),
            // Whole requests per second: the report states the rate, and a reader may want to type it.
            Release::Open { rate: PlannedRate::OfKnee(share), .. } => {
                knee_per_s.map(|knee| (knee * share).round().max(1.0))
            }
        }
    }

    /// Most virtual users at work, once the knee is known; absent in other loads.
    pub fn users(&self, knee_per_s: Option<f64>) -> Option<u32> {
        match self.release {
            Release::Users(users) => users.scaled(knee_per_s),
            Release::Closed { .. } | Release::Open { .. } => None,
        }
    }

    /// What the load engine is told. `None` while the knee it needs is unknown.
    pub fn engine_plan(&self, url: &str, knee_per_s: Option<f64>, seed: u64) -> Option<LoadPlan> {
        let model = match self.release {
            Release::Closed { connections } => LoadModel::closed(connections),
            Release::Users(users) => LoadModel::Closed {
                clients: users.profile(knee_per_s)?,
                iteration: Iteration { requests: users.parallel, think_ms: users.think_s * 1e3 },
            },
            Release::Open { poisson, max_connections, .. } => {
                let rate_per_s = self.rate_per_s(knee_per_s)?;
                let arrivals = if poisson {
                    Arrivals::poisson(rate_per_s)
                } else {
                    Arrivals::even(rate_per_s)
                };
                LoadModel::Open { arrivals, max_connections }
            }
        };
        Some(LoadPlan {
            targets: self.targets(url),
            warm_up: self.warm_up,
            timeout_ms: REQUEST_TIMEOUT_MS,
            seed,
            ..LoadPlan::new(self.request.target(url), model, self.stop)
        })
    }
}

/// Longer than any stall a study would inject, shorter than a reader's patience.
const REQUEST_TIMEOUT_MS: u64 = 10_000;

impl Arm {
    /// For people: `original`, or `original (again)`.
    pub fn label(&self) -> String {
        if self.again { format!("{} (again)", self.variant) } else { self.variant.clone() }
    }

    /// For a directory name: `original`, or `original-again`.
    fn slug(&self) -> String {
        if self.again { format!("{}-again", self.variant) } else { self.variant.clone() }
    }
}

impl PlannedTrial {
    /// Directory name: `0007-istio-same-rate`.
    pub fn slug(&self) -> String {
        format!("{:04}-{}-{}", self.index, self.arm.slug(), self.load)
    }
}
