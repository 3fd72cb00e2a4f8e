//! How long a plan takes: what a person is told before it runs. Rough, and on the long side.

use toll_lab::{BuiltIn, DataPlane, Deployment, Program, Runtime};
use toll_load::Stop;

use super::{Arm, BringUp, Plan, PlannedLoad, PlannedSettle, PlannedTrial};

/// Bring-up and tear-down of services that start at once, seconds.
const UP_AND_DOWN_S: f64 = 1.5;
/// What a PostgreSQL server adds: copying its data, starting, filling it, seconds.
const DATABASE_S: f64 = 0.5;
/// Bring-up and tear-down with services on a JVM, which are slow to start, seconds.
const JVM_UP_AND_DOWN_S: f64 = 12.0;
/// What an agent adds to that: it rewrites classes while they load, seconds.
const AGENT_S: f64 = 4.0;
/// How long after a load its last spans arrive at the collector, seconds.
const LAST_SPANS_S: f64 = 1.0;
/// A knee search on services that are up: a closed loop and some five tries, each 1.5 s and its warm-up, seconds.
const KNEE_TRIES_S: f64 = 12.0;
/// Share of the time that a discarded run may take which it usually does: a study sets the limit with little to spare.
const USUAL_SHARE: f64 = 0.8;
/// Requests a second that a small machine answers, to guess how long a count of them takes.
const GUESSED_THROUGHPUT_PER_S: f64 = 2000.0;

impl Plan {
    /// How long the run will take, seconds: all trials and the searches for the knee.
    pub fn estimate_s(&self) -> f64 {
        let searches = self.ready().map(|(_, deployment)| self.knee_search_s(deployment)).sum();
        self.trials_s(&self.trials) + if self.needs_knee() { searches } else { 0.0 }
    }

    /// How long the search for one knee takes, seconds. What stays up for the trials is counted with them.
    pub fn knee_search_s(&self, deployment: &Deployment) -> f64 {
        let stays_up = self.bring_up == BringUp::Run;
        KNEE_TRIES_S + if stays_up { 0.0 } else { self.fresh_s(deployment) }
    }

    /// How long these trials will take, seconds; they run in this order, the first on fresh services.
    pub fn trials_s<'t>(&self, trials: impl IntoIterator<Item = &'t PlannedTrial>) -> f64 {
        let mut in_all_s = 0.0;
        let mut up: Vec<(usize, &Arm)> = Vec::new();
        for trial in trials {
            let bring_up = match self.bring_up {
                BringUp::Trial => (trial.index, &trial.arm),
                BringUp::Block => (trial.block, &trial.arm),
                BringUp::Run => (0, &trial.arm),
            };
            let deployment = self.deployment(&trial.arm.variant);
            if !up.contains(&bring_up) {
                in_all_s += deployment.map_or(0.0, |d| self.fresh_s(d));
                up.push(bring_up);
            }
            in_all_s += if deployment.is_some_and(has_agent) { LAST_SPANS_S } else { 0.0 };
            in_all_s += self.load(&trial.load).map_or(0.0, |load| self.load_s(load));
        }
        in_all_s
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

fn has_agent(deployment: &Deployment) -> bool {
    matches!(deployment.data_plane, DataPlane::Agent(_))
}

fn up_and_down_s(deployment: &Deployment) -> f64 {
    let on_jvm = |program: &Program| {
        let spring = matches!(program, Program::BuiltIn(BuiltIn { runtime: Runtime::Spring, .. }));
        spring || matches!(program, Program::Petclinic(_))
    };
    let mut programs = deployment.services.iter().map(|service| &service.program);
    if programs.clone().any(on_jvm) {
        JVM_UP_AND_DOWN_S + if has_agent(deployment) { AGENT_S } else { 0.0 }
    } else if programs.any(Program::is_database) {
        UP_AND_DOWN_S + DATABASE_S
    } else {
        UP_AND_DOWN_S
    }
}
