//! How long a plan takes: what a person is told before it runs. Rough, and on the long side.

use std::collections::BTreeSet;

use toll_lab::{AirlineDatabase, BuiltIn, DataPlane, DatabaseServer, Deployment, Program, Runtime};
use toll_load::Stop;

use super::{Arm, BringUp, Cell, Plan, PlannedLoad, PlannedSettle, PlannedTrial};

/// Bring-up and tear-down of services that start at once, seconds.
const UP_AND_DOWN_S: f64 = 1.5;
/// What a PostgreSQL server adds: copying its data, starting, filling it, seconds.
const DATABASE_S: f64 = 0.5;
/// What a MongoDB server adds: starting, on a JVM where it is the stand-in, and filling it, seconds.
const MONGODB_S: f64 = 3.0;
/// What an egress gateway adds: a pod more, seconds.
const EGRESS_S: f64 = 0.5;
/// What an external database adds to a trial: a look into it and a handshake from each calling pod, before and after,
/// seconds.
const PROOF_OF_EXTERNAL_S: f64 = 0.4;
/// Bring-up and tear-down with services on a JVM, which are slow to start, seconds.
const JVM_UP_AND_DOWN_S: f64 = 12.0;
/// What an agent adds to that: it rewrites classes while they load, seconds.
const AGENT_S: f64 = 4.0;
/// What each further pod of a service adds to that, without and with a sidecar, seconds.
const FURTHER_POD_S: [f64; 2] = [0.01, 0.05];
/// What each further pod adds to a trial: its part of the proof of path, without and with a sidecar, seconds.
const PROOF_OF_POD_S: [f64; 2] = [0.001, 0.003];
/// How long after a load its last spans arrive at the collector, seconds.
const LAST_SPANS_S: f64 = 1.0;
/// A knee search on services that are up: a closed loop and some five tries, each 1.5 s and its warm-up, seconds.
const KNEE_TRIES_S: f64 = 12.0;
/// Share of the time that a discarded run may take which it usually does: a study sets the limit with little to spare.
const USUAL_SHARE: f64 = 0.8;
/// Requests a second that a small machine answers, to guess how long a count of them takes.
const GUESSED_THROUGHPUT_PER_S: f64 = 2000.0;

/// How long a part of a run takes, seconds, by what it is spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Environments that come up and go down.
    pub bring_ups: usize,
    /// For these, discarded runs on fresh services included.
    pub bring_ups_s: f64,
    /// For the trials.
    pub trials_s: f64,
    /// For the searches for the knee.
    pub knees_s: f64,
}

impl Budget {
    /// All of it.
    pub fn total_s(&self) -> f64 {
        self.bring_ups_s + self.trials_s + self.knees_s
    }
}

impl Plan {
    /// How long the run will take: all trials and the searches for the knee.
    pub fn budget(&self) -> Budget {
        let searches = self.ready().map(|(_, deployment)| self.knee_search_s(deployment)).sum();
        let knees_s = if self.needs_knee() { searches } else { 0.0 };
        Budget { knees_s, ..self.budget_of(&self.trials) }
    }

    /// How long the search for one knee takes, seconds. What stays up for the trials is counted with them.
    pub fn knee_search_s(&self, deployment: &Deployment) -> f64 {
        let stays_up = self.bring_up == BringUp::Run;
        KNEE_TRIES_S + if stays_up { 0.0 } else { self.fresh_s(deployment) }
    }

    /// What these trials will take; they run in this order, the first on fresh services.
    pub fn budget_of<'t>(&'t self, trials: impl IntoIterator<Item = &'t PlannedTrial>) -> Budget {
        self.course(trials).last().unwrap_or_default()
    }

    /// What the first of these trials will take, the first two, and so on.
    pub fn course<'t>(
        &'t self,
        trials: impl IntoIterator<Item = &'t PlannedTrial>,
    ) -> impl Iterator<Item = Budget> {
        let all: Vec<&PlannedTrial> = trials.into_iter().collect();
        let ready = |t: &'t PlannedTrial| Some((t, self.deployment_of(t)?));
        let trials: Vec<_> = all.iter().copied().filter_map(ready).collect();
        let none = (Budget::default(), BTreeSet::new());
        trials.into_iter().scan(none, move |(budget, up), (trial, deployment)| {
            if !up.contains(&self.bring_up_of(trial)) {
                for (trial, deployment) in
                    self.come_up_with(trial, &all).into_iter().filter_map(ready)
                {
                    up.insert(self.bring_up_of(trial));
                    budget.bring_ups += 1;
                    budget.bring_ups_s += self.fresh_s(&deployment);
                }
            }
            budget.trials_s += if has_agent(&deployment) { LAST_SPANS_S } else { 0.0 };
            budget.trials_s += each_further_pod_s(&deployment, PROOF_OF_POD_S);
            let external = deployment.services.iter().filter(|s| s.external.is_some()).count();
            budget.trials_s += external as f64 * PROOF_OF_EXTERNAL_S;
            budget.trials_s += self.load(&trial.load).map_or(0.0, |load| self.load_s(load));
            Some(*budget)
        })
    }

    /// The trials whose environments come up when `trial` finds its own not standing: itself, or, where arms stand
    /// together, the first of each arm among `trials` that shares its block and size.
    pub fn come_up_with<'t>(
        &self,
        trial: &'t PlannedTrial,
        trials: &[&'t PlannedTrial],
    ) -> Vec<&'t PlannedTrial> {
        if self.bring_up != BringUp::Together {
            return vec![trial];
        }
        let mut first: Vec<&PlannedTrial> = Vec::new();
        for other in trials.iter().filter(|other| self.stand_together(trial, other)) {
            if first.iter().all(|known| known.arm != other.arm) {
                first.push(other);
            }
        }
        first
    }

    /// Whether the arms of two trials stand beside each other: in one block, at one size.
    pub fn stand_together(&self, one: &PlannedTrial, other: &PlannedTrial) -> bool {
        let size = |of: &PlannedTrial| self.load(&of.load).and_then(|load| load.cell.as_ref());
        self.bring_up == BringUp::Together
            && one.block == other.block
            && Cell::shares_deployment(size(one), size(other))
    }

    /// What tells the environment of a trial from those of others.
    fn bring_up_of<'t>(&'t self, trial: &'t PlannedTrial) -> Up<'t> {
        let since = match self.bring_up {
            BringUp::Trial => trial.index,
            BringUp::Block | BringUp::Together => trial.block,
            BringUp::Run => 0,
        };
        let cell = self.load(&trial.load).and_then(|load| load.cell.as_ref());
        let size = cell.and_then(|cell| cell.replicas.as_ref());
        (since, &trial.arm, size, cell.and_then(|cell| cell.nodes))
    }

    /// Idle window, warm-up and measured phase, seconds.
    fn load_s(&self, load: &PlannedLoad) -> f64 {
        self.idle_s + load.warm_up.max_s + load.measured_s()
    }

    /// What fresh services cost: bring-up, discarded run, tear-down, seconds.
    fn fresh_s(&self, deployment: &Deployment) -> f64 {
        up_and_down_s(deployment)
            + self.settle.map_or(0.0, |settle| settle.usual_s() + settle.rest_s / 2.0)
    }
}

impl PlannedSettle {
    /// How long it usually takes, seconds: most of what it may, but never less than can show it stable.
    fn usual_s(&self) -> f64 {
        let least_s = self.slice_s * f64::from(crate::study::Settle::SLICES);
        (self.max_s * USUAL_SHARE).max(least_s).min(self.max_s)
    }
}

impl PlannedLoad {
    /// Length of the measured phase, seconds; a guess when it ends by count.
    fn measured_s(&self) -> f64 {
        match (self.stop, self.rate_per_s(None)) {
            (Stop::AfterSeconds(seconds), _) => seconds,
            (Stop::AfterRequests(count), Some(rate_per_s)) => count as f64 / rate_per_s,
            (Stop::AfterRequests(count), None) => count as f64 / GUESSED_THROUGHPUT_PER_S,
        }
    }
}

/// The trial or block since when it is up, its arm, the pods of the service that is swept, the nodes.
type Up<'t> = (usize, &'t Arm, Option<&'t (String, usize)>, Option<usize>);

fn has_agent(deployment: &Deployment) -> bool {
    matches!(deployment.data_plane, DataPlane::Agent(_))
}

fn up_and_down_s(deployment: &Deployment) -> f64 {
    let on_jvm = |program: &Program| {
        let spring = matches!(program, Program::BuiltIn(BuiltIn { runtime: Runtime::Spring, .. }));
        spring || matches!(program, Program::Petclinic(_))
    };
    let programs = deployment.services.iter().map(|service| &service.program);
    let first_pods_s = if programs.clone().any(on_jvm) {
        JVM_UP_AND_DOWN_S + if has_agent(deployment) { AGENT_S } else { 0.0 }
    } else {
        // They start side by side: the slowest counts.
        UP_AND_DOWN_S + programs.map(database_s).fold(0.0, f64::max)
    };
    let egress_s = deployment.data_plane.egress_gateway().map_or(0.0, |_| EGRESS_S);
    first_pods_s + egress_s + each_further_pod_s(deployment, FURTHER_POD_S)
}

/// What a server takes beyond services that start at once, seconds.
fn database_s(program: &Program) -> f64 {
    match program {
        Program::AirlineDatabase(AirlineDatabase { server: DatabaseServer::MongoDb, .. }) => {
            MONGODB_S
        }
        program if program.is_database() => DATABASE_S,
        _ => 0.0,
    }
}

/// For all pods but the first of each service, seconds; of a pod without and with a sidecar.
fn each_further_pod_s(deployment: &Deployment, [bare_s, sidecar_s]: [f64; 2]) -> f64 {
    let has_sidecars = deployment.data_plane.has_sidecars();
    let of_service = |service: &toll_lab::Service| {
        let meshed = has_sidecars && service.program.takes_sidecar();
        let each_s = if meshed { sidecar_s } else { bare_s };
        service.replicas.saturating_sub(1) as f64 * each_s
    };
    deployment.services.iter().map(of_service).sum()
}
