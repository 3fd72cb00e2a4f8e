//! Runs a plan: the knee first when a rate asks for it, then every trial that is not yet measured.
//!
//! Measures and stores; computes nothing that a report shows. Each trial brings its variant up afresh, so that
//! no trial inherits connections, heaps or caches from another; a plan may let the loads of one arm
//! share what came up, in one block or in the whole run, where services are slow to start.

#[cfg(test)]
pub mod fixture;
mod knee;
mod load;
mod machine;
mod pace;
mod seeds;
mod settle;
mod standing;
#[cfg(test)]
mod tests;
mod trial;

use std::sync::atomic::{AtomicBool, Ordering};

use toll_lab::{Isolation, Lab, LabError};

use crate::event::RunEvent;
use crate::plan::{BringUp, Cell, Plan, PlannedTrial, Release};
use crate::store::{KneeRecord, Store, StoreError};

use load::Stopped;
use pace::Pace;
use standing::Standing;
use trial::Turn;

pub use machine::host_facts;

/// What ends a run early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lab could not do its part.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The run's directory could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Not one request was answered well.
    #[error("{arm} under {load}: not one request was answered well: {reason}")]
    NothingAnswered {
        /// What ran.
        arm: String,
        /// Under which load.
        load: String,
        /// What the load engine saw.
        reason: String,
    },
    /// The plan wants all arms up at once, and the lab has room for one.
    #[error("the arms cannot stand side by side: with loopback isolation they share their ports")]
    SideBySide,
    /// The plan has several pods of a service or several nodes, and all pods share the machine's network.
    #[error("{variant} has {what}, and with loopback isolation all pods share one address")]
    NetworksNeeded {
        /// The variant.
        variant: String,
        /// What it has several of.
        what: String,
    },
    /// The search for a knee broke.
    #[error("cannot find the knee of {variant}: {reason}")]
    Knee {
        /// The variant.
        variant: String,
        /// What happened.
        reason: String,
    },
}

impl RunError {
    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Lab(error) => error.help(),
            Self::Store(error) => error.help(),
            Self::NothingAnswered { .. } => Some(
                "look at the logs of the services and the database in the trial's `logs` folder, or in `bring-ups` where arms stand together; the load expects a status below 400"
                    .into(),
            ),
            Self::NetworksNeeded { .. } => Some(
                "run as root or where user namespaces are allowed (`toll doctor` tells)".into(),
            ),
            Self::SideBySide => Some(
                "run as root or where user namespaces are allowed (`toll doctor` tells), or set `bring_up: together`"
                    .into(),
            ),
            Self::Knee { variant, .. } => Some(format!(
                "the logs of its services, proxies and database are in the run's folder `knee/{variant}`; when what they \
                 name is mended, `toll run --resume` goes on there (a rate in requests per second, such as \
                 `rate: 500/s`, needs no search)"
            )),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every trial of the plan was measured.
    Complete,
    /// It was interrupted; what was measured is kept.
    Interrupted,
}

/// A run under way.
pub struct Session<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// Where to do it.
    pub lab: &'a Lab,
    /// Where to keep it.
    pub store: &'a Store,
    /// Set from outside to end the run early.
    pub interrupt: &'a AtomicBool,
    /// Who watches.
    pub watch: &'a mut dyn FnMut(&RunEvent),
}

impl Session<'_> {
    /// Runs all trials that are not yet measured.
    ///
    /// # Errors
    /// When the lab or the directory fails for good, or another toll runs in the directory. What was measured
    /// before is kept.
    pub fn run(&mut self) -> Result<Ending, RunError> {
        check(self.plan, self.lab)?;
        match self.run_alone() {
            // The lab waited for something, and stopped because the user wants to leave.
            Err(RunError::Lab(LabError::Interrupted)) => self.end(Ending::Interrupted),
            ended => ended,
        }
    }

    fn run_alone(&mut self) -> Result<Ending, RunError> {
        let _alone = self.store.lock()?;
        let todo: Vec<&PlannedTrial> =
            self.plan.trials.iter().filter(|trial| !self.store.is_done(trial)).collect();
        let budget = self.plan.budget_of(todo.iter().copied());
        self.emit(&RunEvent::Started {
            trials: self.plan.trials.len(),
            done: self.plan.trials.len() - todo.len(),
            blocks: self.plan.blocks,
            estimate_s: budget.total_s() + self.knee_estimate_s(&todo)?,
            bring_ups: budget.bring_ups,
            bring_ups_s: budget.bring_ups_s,
            trials_s: budget.trials_s,
        })?;
        let mut standing = Standing::default();
        let ended = self.measure(&mut standing, &todo);
        // Whatever ended the trials: nothing stays up. What ended them is told first.
        let cleared = standing.clear(self);
        let ending = ended?;
        cleared?;
        self.end(ending)
    }

    fn measure(
        &mut self,
        standing: &mut Standing,
        todo: &[&PlannedTrial],
    ) -> Result<Ending, RunError> {
        match self.knee(standing, todo)? {
            Some(knee_per_s) => {
                self.tell_users(todo, knee_per_s)?;
                self.trials(standing, todo, knee_per_s)
            }
            None => Ok(Ending::Interrupted),
        }
    }

    /// The lowest knee, searched for when the plan needs one and the store does not hold it yet. The outer
    /// `None` says that the search was interrupted.
    fn knee(
        &mut self,
        standing: &mut Standing,
        todo: &[&PlannedTrial],
    ) -> Result<Option<Option<f64>>, RunError> {
        if !self.plan.needs_knee() || todo.is_empty() {
            return Ok(Some(None));
        }
        let mut knees = self.store.knees()?;
        for (variant, deployment) in self.plan.ready() {
            if knees.iter().any(|knee| knee.variant == variant) {
                continue;
            }
            if self.interrupted() {
                return Ok(None);
            }
            match knee::search(self, standing, variant, deployment)? {
                Some(knee) => knees.push(knee),
                None => return Ok(None),
            }
            self.store.write_knees(&knees)?;
        }
        Ok(Some(KneeRecord::lowest(&knees).map(|knee| knee.rate_per_s)))
    }

    /// Says how many virtual users each load of theirs has on this machine.
    fn tell_users(
        &mut self,
        todo: &[&PlannedTrial],
        knee_per_s: Option<f64>,
    ) -> Result<(), RunError> {
        let Some(knee_per_s) = knee_per_s else { return Ok(()) };
        for load in &self.plan.loads {
            let Release::Users(planned) = load.release else { continue };
            let scaled = planned.made_for_knee_per_s.zip(planned.scaled(Some(knee_per_s)));
            let to_come = todo.iter().any(|trial| trial.load == load.name);
            if let Some((made_for_knee_per_s, users)) = scaled.filter(|_| to_come) {
                self.emit(&RunEvent::UsersScaled {
                    load: load.name.clone(),
                    users,
                    of: planned.users,
                    knee_per_s,
                    made_for_knee_per_s,
                })?;
            }
        }
        Ok(())
    }

    fn trials(
        &mut self,
        standing: &mut Standing,
        todo: &[&PlannedTrial],
        knee_per_s: Option<f64>,
    ) -> Result<Ending, RunError> {
        let pace = Pace::new(self.plan, todo);
        for (done, planned) in todo.iter().enumerate() {
            if self.interrupted() {
                return Ok(Ending::Interrupted);
            }
            self.emit(&RunEvent::TrialStarted {
                index: planned.index,
                block: planned.block,
                arm: planned.arm.label(),
                load: planned.load.clone(),
                remaining_s: pace.remaining_s(done),
            })?;
            let goes_on = done > 0 && self.plan.stand_together(todo[done - 1], planned);
            if !goes_on && self.come_up(standing, planned, &todo[done..])? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
            let stays_up = stays_up(self.plan, planned, &todo[done + 1..]);
            let turn = Turn { planned, knee_per_s, stays_up };
            let Some(verdict) = trial::run(self, standing, &turn)? else {
                return Ok(Ending::Interrupted);
            };
            if !stays_up && self.plan.bring_up == BringUp::Together {
                standing.clear(self)?;
            }
            self.emit(&RunEvent::TrialEnded {
                index: planned.index,
                invalid: verdict.invalid,
                remaining_s: pace.remaining_s(done + 1),
            })?;
        }
        Ok(Ending::Complete)
    }

    /// Brings up and settles all arms that are to stand beside that of `trial`, so that their trials follow each other
    /// without a pause. One that breaks stays as it is: its first trial says so, and does not count.
    fn come_up(
        &mut self,
        standing: &mut Standing,
        trial: &PlannedTrial,
        to_come: &[&PlannedTrial],
    ) -> Result<Ending, RunError> {
        if self.plan.bring_up != BringUp::Together {
            return Ok(Ending::Complete);
        }
        for first in self.plan.come_up_with(trial, to_come) {
            let deployment =
                self.plan.deployment_of(first).expect("only variants that run have trials");
            let logs = self.store.bring_up_logs(first)?;
            let site = standing.site(self, &first.arm, &deployment, &logs)?;
            *site.settled = match settle::settle(self, site.environment) {
                Ok(settled) => settled.map(Ok),
                Err(Stopped::Broken(reason)) => Some(Err(reason)),
                Err(Stopped::Interrupted) => return Ok(Ending::Interrupted),
                Err(Stopped::Fatal(RunError::Lab(_))) if site.environment.crashed().is_some() => {
                    Some(Err("it ended while it settled".into()))
                }
                Err(Stopped::Fatal(error)) => return Err(error),
            };
        }
        Ok(Ending::Complete)
    }

    fn knee_estimate_s(&self, todo: &[&PlannedTrial]) -> Result<f64, StoreError> {
        if !self.plan.needs_knee() || todo.is_empty() {
            return Ok(0.0);
        }
        let known = self.store.knees()?;
        let unknown = |variant: &str| known.iter().all(|knee| knee.variant != variant);
        let searches = self.plan.ready().filter(|(variant, _)| unknown(variant));
        Ok(searches.map(|(_, deployment)| self.plan.knee_search_s(deployment)).sum())
    }

    fn end(&mut self, ending: Ending) -> Result<Ending, RunError> {
        self.emit(&RunEvent::Ended { interrupted: ending == Ending::Interrupted })?;
        Ok(ending)
    }

    fn stage(&mut self, stage: &str) -> Result<(), RunError> {
        self.emit(&RunEvent::Stage { stage: stage.into() })
    }

    fn emit(&mut self, event: &RunEvent) -> Result<(), RunError> {
        (self.watch)(event);
        // Progress is for eyes only; the series is stored with the trial.
        if !matches!(event, RunEvent::Progress { .. } | RunEvent::Settling { .. }) {
            self.store.log_event(event)?;
        }
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

/// The plan, with arms that would stand side by side one after another where the lab has room for one.
#[must_use]
pub fn fitted(plan: Plan, lab: &Lab) -> Plan {
    match (plan.bring_up, lab.isolation()) {
        (BringUp::Together, Some(Isolation::Loopback)) => plan.one_after_another(),
        _ => plan,
    }
}

/// Whether the lab has room for the plan; to be asked before anything is stored.
///
/// # Errors
/// [`RunError::SideBySide`], [`RunError::NetworksNeeded`].
pub fn check(plan: &Plan, lab: &Lab) -> Result<(), RunError> {
    match (plan.bring_up, lab.isolation()) {
        (BringUp::Together | BringUp::Run, Some(Isolation::Loopback)) => Err(RunError::SideBySide),
        (_, Some(Isolation::Loopback)) => match several(plan) {
            Some((variant, what)) => Err(RunError::NetworksNeeded { variant, what }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A variant that has several pods of a service, or several nodes, at the largest of its sizes; and what of.
fn several(plan: &Plan) -> Option<(String, String)> {
    plan.ready().find_map(|(variant, _)| {
        let largest = plan.largest(variant)?;
        let replicated = largest.services.iter().find(|service| service.replicas > 1);
        let pods =
            replicated.map(|service| format!("{} pods of {}", service.replicas, service.name));
        let nodes = (largest.nodes > 1).then(|| format!("{} nodes", largest.nodes));
        Some((variant.to_owned(), pods.or(nodes)?))
    })
}

/// Whether a trial to come goes on with the environment of `trial`, if that is still sound.
fn stays_up(plan: &Plan, trial: &PlannedTrial, to_come: &[&PlannedTrial]) -> bool {
    let cell = |trial: &PlannedTrial| plan.load(&trial.load).and_then(|load| load.cell.as_ref());
    let goes_on = |later: &PlannedTrial| {
        trial.arm == later.arm && Cell::shares_deployment(cell(trial), cell(later))
    };
    match plan.bring_up {
        BringUp::Trial => false,
        BringUp::Block => {
            to_come.first().is_some_and(|next| trial.block == next.block && goes_on(next))
        }
        BringUp::Together => to_come.first().is_some_and(|next| plan.stand_together(trial, next)),
        BringUp::Run => to_come.iter().any(|later| goes_on(later)),
    }
}
