//! What will happen: a study with everything resolved, rounds, cycles and slices ordered, seed fixed. Pure.
//!
//! Turns a [`crate::study::Study`] into a [`Plan`]. Starts nothing and reads nothing but its arguments.

mod application;
mod estimate;
#[cfg(test)]
pub mod fixture;
mod listing;
mod order;
mod resolve;
mod slice;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toll_lab::{DataPlane, Deployment};
use toll_load::{
    Arrivals, Body, Iteration, LoadModel, LoadPlan, Profile, Stage, Stop, Target, WarmUp,
};

pub use listing::listing;
pub use resolve::{Choices, Files, PlanError, resolve};
pub use slice::{LEAST_REQUESTS, REHEARSED_S, SliceLength, SliceOf};

pub use crate::study::{Derived, Metric, OF_ENVIRONMENT};
pub use order::{PlannedSlice, sizes_of_round};

/// Version of `plan.json`.
pub const FORMAT: u32 = 3;

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
    /// The metrics that get a verdict.
    pub headline: Vec<Metric>,
    /// Share of the baseline inside which a difference counts as none, 0..1.
    pub bound: f64,
    /// Seconds without load in each round, to measure the idle cost.
    pub idle_s: f64,
    /// When the run ends.
    pub extent: PlannedExtent,
    /// Cycles of a round: in each every arm bears every load twice.
    pub cycles: usize,
    /// Begin of each slice that is sent and not counted, seconds; virtual users have their think time instead.
    pub guard_s: f64,
    /// The same by rounds in turn, of a run that tries several; empty where all have `guard_s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards_s: Vec<f64>,
    /// The discarded load on fresh services.
    pub settle: PlannedSettle,
    /// Whether all arms of a round stand side by side; else they follow each other.
    pub side_by_side: bool,
    /// In the order of the study.
    pub variants: Vec<PlannedVariant>,
    /// What comes up in each round: every variant that runs, and the baseline once more.
    pub arms: Vec<Arm>,
    /// Pods that share each load, where the lab can have several.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub load_pods: usize,
    /// In the order of the study, then those of the curve.
    pub loads: Vec<PlannedLoad>,
    /// Where the application is going to run, if the study says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Published figures, if the study has some.
    pub reference: Option<PlannedReference>,
    /// Whatever in the study or the choices weakens the result.
    pub warnings: Vec<String>,
}

fn one() -> usize {
    1
}

fn is_one(count: &usize) -> bool {
    *count == 1
}

/// Where the application is going to run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Requests per second.
    pub per_s: f64,
    /// Pods of all services there, and in this run.
    pub pods: Option<(usize, usize)>,
}

/// When a run ends; never because something became significant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlannedExtent {
    /// After so many rounds; absent where time or width decide.
    pub rounds: Option<usize>,
    /// When so much time has passed, seconds.
    pub for_s: Option<f64>,
    /// When the half-widths of all headline metrics are at most this share of their figures.
    pub width: Option<f64>,
    /// Rounds before a width is looked at: fewer starts say little of how one differs from the next.
    pub least_rounds: usize,
}

/// The discarded load that brings fresh services to their steady state, before their first slice.
///
/// Closed loop, slice after slice round the arms, until throughput and CPU per request are stable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlannedSettle {
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Never longer than this for one arm, seconds.
    pub max_s: f64,
    /// Connections of the closed loop.
    pub connections: u32,
    /// The longest rest after it, until the services are quiet, seconds.
    #[serde(default)]
    pub rest_s: f64,
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
    /// A request without an answer after so many milliseconds has failed.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: u64,
    /// Share of an arm's requests that may fail in a round, 0..1; at 0 a failed request makes its slice invalid.
    #[serde(default)]
    pub tolerated: f64,
    /// Length of a slice behind its guard.
    pub slice: SliceLength,
}

/// One combination of a load that is swept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The load as the study names it.
    pub load: String,
    /// The rate of this combination, per second; absent when the rate is not swept.
    pub rate_per_s: Option<f64>,
    /// Share of the capacity, of a point of a curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
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
    /// Further headers; `{{env.NAME}}` in a value is filled in whenever a load begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Content-Type of the body, when there is one.
    pub content_type: Option<String>,
    /// Body; `{{...}}` in it, in headers and in the path is filled in for each request as [`toll_load::Target`] says.
    pub body: Body,
    /// Statuses of good answers; all below 400 when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<u16>,
}

impl Default for PlannedRequest {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            path: "/".into(),
            headers: vec![],
            content_type: None,
            body: Body::default(),
            expect: vec![],
        }
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
            headers: content_type.chain(self.headers.clone()).collect(),
            template: self.is_template(),
            body: self.body.clone(),
            expect: self.expect.clone(),
            ..Target::get(url)
        }
    }

    fn is_template(&self) -> bool {
        let of_request =
            |value: &str| value.split("{{").skip(1).any(|rest| !rest.starts_with(OF_ENVIRONMENT));
        let text = std::str::from_utf8(&self.body.0).unwrap_or_default();
        let headers = self.headers.iter().map(|(_, value)| value.as_str());
        headers.chain([text, self.path.as_str()]).any(of_request)
    }
}

/// How requests are released; the rate may still wait for the capacity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    pub made_for_per_s: Option<f64>,
}

/// An arrival rate, absolute or relative to what the slowest variant carries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlannedRate {
    /// Requests per second.
    PerSecond(f64),
    /// Share of the capacity of the slowest variant, 0..1.
    OfCapacity(f64),
}

/// A variant as it stands in a round; the baseline has two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Arm {
    pub variant: String,
    /// Whether this is the second one of the baseline.
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

    /// What comes up for an arm at one of the sizes.
    pub fn deployment_at(&self, arm: &Arm, size: usize) -> Option<Deployment> {
        let deployment = self.deployment(&arm.variant)?;
        let first = self.sizes().into_iter().nth(size)?.into_iter().next()?;
        Some(first.cell.as_ref().map_or_else(|| deployment.clone(), |cell| cell.of(deployment)))
    }

    /// The loads by the size of the application that they need, each size where the plan first has it; one in a study
    /// that sweeps none.
    pub fn sizes(&self) -> Vec<Vec<&PlannedLoad>> {
        order::sizes(&self.loads)
    }

    /// The slices of one round at one size, in order.
    pub fn slices(&self, round: usize, size: usize) -> Vec<PlannedSlice> {
        order::slices(self, round, size)
    }

    /// Slices before those of a round at one size that count for nothing; none without a JVM that compiles as it likes. What
    /// that compiles in a closed loop it compiles anew when requests come at another pace, for seconds, at the expense of the
    /// first slices.
    pub fn rehearsal(&self, size: usize) -> Vec<PlannedSlice> {
        let rehearses = self.ready().any(|(_, deployment)| estimate::compiles_for_long(deployment));
        if rehearses { order::rehearsal(self, size) } else { vec![] }
    }

    /// The same for a lab in which two arms cannot stand side by side, for this reason.
    #[must_use]
    pub fn one_after_another(mut self, reason: &str) -> Self {
        self.side_by_side = false;
        self.warnings.push(format!(
            "the arms followed each other in each round, as {reason}: what the machine did meanwhile is in their differences"
        ));
        self
    }

    /// Begin of each slice of a round that is sent and not counted, seconds.
    pub fn guard_of(&self, round: usize) -> f64 {
        match self.guards_s.as_slice() {
            [] => self.guard_s,
            guards_s => guards_s[round % guards_s.len()],
        }
    }

    /// Verdicts that a report is to give.
    pub fn verdicts(&self) -> usize {
        let compared = self.ready().filter(|(variant, _)| *variant != self.baseline).count();
        compared * self.headline.len()
    }

    /// The load whose headline metrics get verdicts: the first at an equal rate, of a sweep its last cell.
    pub fn headline_load(&self) -> Option<&PlannedLoad> {
        headline_load(&self.loads)
    }

    /// The load of that name.
    pub fn load(&self, name: &str) -> Option<&PlannedLoad> {
        self.loads.iter().find(|load| load.name == name)
    }

    /// Whether the capacity must be known before the first slice.
    pub fn needs_capacity(&self) -> bool {
        self.loads.iter().any(|load| load.refers_to_capacity())
    }
}

fn headline_load(loads: &[PlannedLoad]) -> Option<&PlannedLoad> {
    let is_open = |load: &&PlannedLoad| matches!(load.release, Release::Open { .. });
    let first = loads.iter().filter(|load| !load.is_of_curve()).find(is_open)?;
    let sweep = |load: &PlannedLoad| load.cell.as_ref().map(|cell| cell.load.clone());
    match sweep(first) {
        None => Some(first),
        cells => loads.iter().rfind(|load| sweep(load) == cells),
    }
}

impl PlannedUsers {
    /// Users here, once the capacity is known.
    pub fn scaled(&self, capacity_per_s: Option<f64>) -> Option<u32> {
        let Some(made_for) = self.made_for_per_s else { return Some(self.users) };
        let scale = (capacity_per_s? / made_for).min(1.0);
        Some(((f64::from(self.users) * scale).round() as u32).max(1))
    }

    /// From the first user's begin to the last one's end, seconds.
    pub fn length_s(&self) -> f64 {
        self.ramp_s + self.hold_s + self.ramp_down_s
    }

    /// Users over time for the load engine, once the capacity is known.
    fn profile(&self, capacity_per_s: Option<f64>) -> Option<Profile> {
        let most = self.scaled(capacity_per_s)?;
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
    /// Spans that one request leaves in `deployment`, by service: the load's, except where its agent leaves others.
    /// Empty when the study does not say.
    pub fn spans_in(&self, deployment: &Deployment) -> BTreeMap<String, u64> {
        let mut spans = self.spans.clone();
        if let DataPlane::Agent(agent) = &deployment.data_plane
            && !spans.is_empty()
        {
            spans.extend(agent.spans.iter().map(|(service, count)| (service.clone(), *count)));
        }
        spans
    }

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

    /// Whether it is a point of the curve of latency against rate.
    pub fn is_of_curve(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.share.is_some())
    }

    /// Share of the capacity, when the rate is relative to it.
    pub fn share_of_capacity(&self) -> Option<f64> {
        match self.release {
            Release::Open { rate: PlannedRate::OfCapacity(share), .. } => Some(share),
            _ => None,
        }
    }

    /// Whether it can begin only when the capacity is known.
    pub fn refers_to_capacity(&self) -> bool {
        let scaled =
            matches!(self.release, Release::Users(PlannedUsers { made_for_per_s: Some(_), .. }));
        scaled || self.share_of_capacity().is_some()
    }

    /// Arrivals per second, once the capacity is known; absent in a closed loop.
    pub fn rate_per_s(&self, capacity_per_s: Option<f64>) -> Option<f64> {
        match self.release {
            Release::Closed { .. } | Release::Users(_) => None,
            Release::Open { rate: PlannedRate::PerSecond(rate), .. } => Some(rate),
            // Whole requests per second: the report states the rate, and a reader may want to type it.
            Release::Open { rate: PlannedRate::OfCapacity(share), .. } => {
                capacity_per_s.map(|capacity| (capacity * share).round().max(1.0))
            }
        }
    }

    /// Most virtual users at work, once the capacity is known; absent in other loads.
    pub fn users(&self, capacity_per_s: Option<f64>) -> Option<u32> {
        match self.release {
            Release::Users(users) => users.scaled(capacity_per_s),
            Release::Closed { .. } | Release::Open { .. } => None,
        }
    }

    /// The load engine's plan of one slice. `None` while the capacity that it needs is unknown.
    pub fn engine_plan(&self, url: &str, context: &SliceOf) -> Option<LoadPlan> {
        let capacity_per_s = context.capacity_per_s;
        let model = match self.release {
            Release::Closed { connections } => LoadModel::closed(connections),
            Release::Users(users) => LoadModel::Closed {
                clients: users.profile(capacity_per_s)?,
                iteration: Iteration { requests: users.parallel, think_ms: users.think_s * 1e3 },
            },
            Release::Open { poisson, max_connections, .. } => {
                let rate_per_s = self.rate_per_s(capacity_per_s)?;
                let arrivals = if poisson {
                    Arrivals::poisson(rate_per_s)
                } else {
                    Arrivals::even(rate_per_s)
                };
                LoadModel::Open { arrivals, max_connections }
            }
        };
        let slice_s = self.slice_s(capacity_per_s);
        let stop = match (self.release, self.slice) {
            (Release::Closed { .. }, SliceLength::Requests(count)) => Stop::AfterRequests(count),
            (Release::Closed { .. }, _) => {
                Stop::AfterSeconds(slice_s.max(context.least_closed_s()))
            }
            _ => Stop::AfterSeconds(slice_s),
        };
        let guard_s = self.guard_s(context.guard_s());
        Some(LoadPlan {
            targets: self.targets(url),
            warm_up: WarmUp { min_s: guard_s, max_s: guard_s },
            timeout_ms: self.timeout_ms,
            seed: context.seed,
            ..LoadPlan::new(self.request.target(url), model, stop)
        })
    }
}

/// Longer than any stall a study would inject, shorter than a reader's patience.
fn ten_seconds() -> u64 {
    10_000
}

impl Arm {
    /// For people: `original`, or `original (again)`.
    pub fn label(&self) -> String {
        if self.again { format!("{} (again)", self.variant) } else { self.variant.clone() }
    }

    /// For a directory name: `original`, or `original-again`.
    pub fn slug(&self) -> String {
        if self.again { format!("{}-again", self.variant) } else { self.variant.clone() }
    }
}
