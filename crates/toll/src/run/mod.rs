//! Runs a plan, round after round, until it has as many as it wants, its time is over, or its figures are sharp enough.
//!
//! Measures and stores; computes nothing that a report shows. There is one way to run, for all studies: a round brings
//! every arm up, settles them, sends the load round them in slices, and takes them down.

mod arm;
mod capacity;
mod failures;
#[cfg(test)]
pub mod fixture;
mod load;
mod machine;
mod round;
mod seeds;
mod settle;
mod slice;
#[cfg(test)]
mod tests;
mod traced;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_lab::{DataPlane, Isolation, Lab, LabError};

use crate::event::{RunEvent, Stage};
use crate::plan::{Plan, Release};
use crate::store::{CapacityRecord, Failing, Store, StoreError};

use load::Stopped;

pub use machine::{cores, host_facts};
pub use settle::cpu_ns;

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
    #[error("{arm}: not one request was answered well: {reason}")]
    NothingAnswered {
        /// What ran.
        arm: String,
        /// What the load engine saw.
        reason: String,
    },
    /// So many requests failed that nothing would count.
    #[error("{arm}: {failing}")]
    Failing {
        /// What ran.
        arm: String,
        /// What was seen.
        failing: Failing,
    },
    /// An agent is loaded and says nothing.
    #[error("{arm}: the agent left no span of the requests before the load")]
    NoSpan {
        /// What ran.
        arm: String,
        /// What to do with such an agent.
        advice: &'static str,
    },
    /// The plan has node proxies, several pods of a service or several nodes, and all pods share the machine's network.
    #[error("{variant} has {what}, and with loopback isolation all pods share one address")]
    NetworksNeeded {
        variant: String,
        /// What it has several of.
        what: String,
    },
    /// The cluster's nodes take so many pods and no more.
    #[error("{variant} needs {pods} pods, and the cluster's nodes have room for {slots}")]
    NoRoom {
        /// The variant.
        variant: String,
        /// Those of one arm, the load's included.
        pods: usize,
        /// Free ones.
        slots: usize,
    },
    /// A program of the user's is not there, or cannot be read.
    #[error("cannot read the program {}: {source}", file.display())]
    NoProgram {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was measured before was measured with another program.
    #[error("{} is not the file that the run was begun with", file.display())]
    OtherProgram {
        /// The file.
        file: PathBuf,
    },
    /// A header of a load needs a variable of the environment.
    #[error("{variable} is not set, and a header of the load has it")]
    NotSet {
        /// Name of the variable.
        variable: String,
    },
    /// What a variant carries could not be measured.
    #[error("cannot measure what {variant} carries: {reason}")]
    Capacity {
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
                "look at the logs of the services and the database in the run's folder `rounds/01`, in `logs` of the arm; the load expects a status below 400"
                    .into(),
            ),
            Self::Failing { .. } => Some(
                "the logs are in the run's folder `rounds/01`, in `logs` of the arm. Mend the service; or, where that is how it is, tolerate it in the load: `failures: {at_most: 15%}`, or `expect: [200, 404]` in its request"
                    .into(),
            ),
            Self::NoSpan { advice, .. } => Some((*advice).into()),
            Self::NetworksNeeded { .. } => Some(
                "run as root or where user namespaces are allowed (`toll doctor` tells)".into(),
            ),
            Self::NoRoom { .. } => {
                Some("take fewer replicas in the study, add a node, or raise the kubelets' `maxPods`".into())
            }
            Self::NoProgram { .. } => Some("build it, or mend the `command` in the study".into()),
            Self::OtherProgram { .. } => Some(
                "one run holds one version: begin a new run with `toll run STUDY`, or put the former file back".into(),
            ),
            Self::NotSet { variable } => Some(format!(
                "export {variable}; its value is never stored, so `--resume` needs it as well"
            )),
            Self::Capacity { .. } => Some(
                "the logs of its services, proxies and database are in the run's folder `rounds/01`; when what they name is \
                 mended, `toll run --resume` goes on there (a rate in requests per second, such as `rate: 500/s`, needs no \
                 capacity)"
                    .into(),
            ),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As many rounds as wanted, the time over, or sharp enough.
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
    /// Asked after each round: whether the half-widths of the headline metrics are as the plan wants them.
    pub is_sharp: &'a mut dyn FnMut() -> bool,
}

impl Session<'_> {
    /// Measures the rounds that are wanted and not yet there.
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
        let mut pace = Pace::new(self.plan, self.store.rounds()?, self.store.measured_s()?);
        self.emit(&RunEvent::Started {
            rounds: self.plan.extent.rounds,
            done: pace.done.len(),
            arms: self.plan.arms.len(),
            estimate_s: pace.remaining_s(),
        })?;
        while pace.goes_on() && !self.is_sharp_enough(&pace) {
            let round = pace.next();
            self.emit(&RunEvent::RoundStarted { round, remaining_s: pace.remaining_s() })?;
            if self.interrupted() || round::run(self, round)? == Ending::Interrupted {
                return self.end(Ending::Interrupted);
            }
            pace.ended(round);
            self.emit(&RunEvent::RoundEnded { round, remaining_s: pace.remaining_s() })?;
        }
        self.end(Ending::Complete)
    }

    fn is_sharp_enough(&mut self, pace: &Pace<'_>) -> bool {
        let extent = self.plan.extent;
        let enough = pace.done.len() >= extent.least_rounds;
        extent.width.is_some() && enough && (self.is_sharp)()
    }

    /// What relative rates refer to, when it is known.
    fn capacity_per_s(&self) -> Result<Option<f64>, StoreError> {
        Ok(CapacityRecord::lowest(&self.store.capacities()?).map(|lowest| lowest.per_s))
    }

    /// Says how many virtual users each load of theirs has on this machine.
    fn tell_users(&mut self, capacity_per_s: f64) -> Result<(), RunError> {
        for load in &self.plan.loads {
            let Release::Users(planned) = load.release else { continue };
            let scaled = planned.made_for_per_s.zip(planned.scaled(Some(capacity_per_s)));
            if let Some((made_for_per_s, users)) = scaled {
                let (load, of) = (load.name.clone(), planned.users);
                self.emit(&RunEvent::UsersScaled {
                    load,
                    users,
                    of,
                    capacity_per_s,
                    made_for_per_s,
                })?;
            }
        }
        Ok(())
    }

    fn end(&mut self, ending: Ending) -> Result<Ending, RunError> {
        self.emit(&RunEvent::Ended { interrupted: ending == Ending::Interrupted })?;
        Ok(ending)
    }

    fn stage(&mut self, stage: Stage, arm: Option<String>) -> Result<(), RunError> {
        self.emit(&RunEvent::Stage { stage, arm })
    }

    fn emit(&mut self, event: &RunEvent) -> Result<(), RunError> {
        (self.watch)(event);
        // Slices are stored with their arms.
        if !matches!(event, RunEvent::SliceEnded { .. } | RunEvent::Settling { .. }) {
            self.store.log_event(event)?;
        }
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Does nothing for so long, seconds, unless the run is interrupted.
    fn wait(&self, seconds: f64) -> Result<(), Stopped> {
        const LOOK: Duration = Duration::from_millis(50);
        for _ in 0..(seconds / LOOK.as_secs_f64()).ceil() as u32 {
            if self.interrupted() {
                return Err(Stopped::Interrupted);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Which rounds are to come, and how long they will take.
struct Pace<'a> {
    plan: &'a Plan,
    began: Instant,
    /// Numbers of the rounds that are there, in order.
    done: Vec<usize>,
    /// What those took that were there before, seconds.
    before_s: f64,
    /// Rounds of this session, and when the last of them ended.
    here: Option<(usize, Instant)>,
}

impl<'a> Pace<'a> {
    fn new(plan: &'a Plan, done: Vec<usize>, before_s: f64) -> Self {
        Self { plan, began: Instant::now(), done, before_s, here: None }
    }

    fn goes_on(&self) -> bool {
        let extent = self.plan.extent;
        let wanted = extent.rounds.is_none_or(|rounds| self.done.len() < rounds);
        // A round is not begun that would end well after the time; one there must be.
        let in_time = self
            .left_s()
            .is_none_or(|left_s| self.done.is_empty() || self.round_s() / 2.0 < left_s);
        wanted && in_time
    }

    /// The first number that is free.
    fn next(&self) -> usize {
        (1..).find(|number| !self.done.contains(number)).expect("numbers have no end")
    }

    fn ended(&mut self, round: usize) {
        self.done.push(round);
        let before = self.here.map_or(0, |(rounds, _)| rounds);
        self.here = Some((before + 1, Instant::now()));
    }

    /// How long a round takes, by those of this session, else by the plan's estimate, seconds.
    fn round_s(&self) -> f64 {
        match self.here {
            Some((rounds, last)) => last.duration_since(self.began).as_secs_f64() / rounds as f64,
            None => self.plan.budget().round_s,
        }
    }

    /// What is left of the time, seconds; `None` where it decides nothing.
    fn left_s(&self) -> Option<f64> {
        let spent_s = self.before_s + self.began.elapsed().as_secs_f64();
        self.plan.extent.for_s.map(|for_s| (for_s - spent_s).max(0.0))
    }

    /// Seconds; of a width alone, that of the rounds it needs at the least.
    fn remaining_s(&self) -> f64 {
        let extent = self.plan.extent;
        let of_rounds =
            |rounds: usize| rounds.saturating_sub(self.done.len()) as f64 * self.round_s();
        match (extent.rounds, self.left_s()) {
            (Some(rounds), Some(left_s)) => of_rounds(rounds).min(left_s),
            (None, Some(left_s)) => left_s,
            (rounds, None) => of_rounds(rounds.unwrap_or(extent.least_rounds)),
        }
    }
}

/// The plan, with arms that cannot stand side by side in this lab one after another.
#[must_use]
pub fn fitted(plan: Plan, lab: &Lab) -> Plan {
    let alone = plan.ready().any(|(_, deployment)| lab.stands_alone(deployment));
    let all: usize = plan.arms.iter().map(|arm| pods_of(&plan, &arm.variant)).sum();
    let crowded = lab.pod_slots().is_some_and(|slots| all > slots);
    match (alone, crowded) {
        (true, _) => plan.one_after_another(
            "a program of yours has a fixed port and with loopback isolation there is one of each",
        ),
        (_, true) => plan.one_after_another("the cluster's nodes have no room for all their pods"),
        (false, false) => plan,
    }
}

/// Pods of one arm at the largest of the plan's sizes, those of the load included.
fn pods_of(plan: &Plan, variant: &str) -> usize {
    plan.largest(variant).map_or(0, |largest| largest.pods().len() + plan.load_pods)
}

/// Whether the lab can hold the plan; to be asked before anything is stored.
///
/// # Errors
/// [`RunError::NetworksNeeded`].
pub fn check(plan: &Plan, lab: &Lab) -> Result<(), RunError> {
    if let Some(slots) = lab.pod_slots() {
        let needed = |variant: &str| pods_of(plan, variant);
        let too_large = plan.ready().find(|(variant, _)| needed(variant) > slots);
        return match too_large {
            None => Ok(()),
            Some((variant, _)) => {
                Err(RunError::NoRoom { variant: variant.to_owned(), pods: needed(variant), slots })
            }
        };
    }
    match (lab.isolation(), several(plan)) {
        (Some(Isolation::Loopback), Some((variant, what))) => {
            Err(RunError::NetworksNeeded { variant, what })
        }
        _ => Ok(()),
    }
}

/// A variant that has node proxies, several pods of a service, or several nodes, at the largest of its sizes; and what of.
fn several(plan: &Plan) -> Option<(String, String)> {
    plan.ready().find_map(|(variant, deployment)| {
        if let DataPlane::Ambient(_) = deployment.data_plane {
            return Some((
                variant.to_owned(),
                "node proxies, which capture in the pods' own networks".into(),
            ));
        }
        let largest = plan.largest(variant)?;
        let replicated = largest.services.iter().find(|service| service.replicas > 1);
        let pods =
            replicated.map(|service| format!("{} pods of {}", service.replicas, service.name));
        let nodes = (largest.nodes > 1).then(|| format!("{} nodes", largest.nodes));
        Some((variant.to_owned(), pods.or(nodes)?))
    })
}
