//! Owns what stands: the environments that later trials go on with, each under the arm and the deployment that it
//! was brought up for. An arm of a sweep has a deployment for each size.
//!
//! Which trials share one is the plan's affair; here it only follows whether a trial has spoilt it.

use std::path::Path;

use toll_lab::{Deployment, Environment};

use super::{RunError, Session};
use crate::event::RunEvent;
use crate::plan::Arm;
use crate::store::SettleRecord;

/// The environments that stand, in the order in which they came up.
#[derive(Debug, Default)]
pub struct Standing(Vec<Stand>);

/// An environment and its past.
#[derive(Debug)]
struct Stand {
    arm: Arm,
    deployment: Deployment,
    environment: Environment,
    settled: Option<Settled>,
}

/// What a trial gets to run in.
pub struct Site<'a> {
    /// Where it runs.
    pub environment: &'a mut Environment,
    /// Whether it has just come up: nothing has been asked of it.
    pub fresh: bool,
    /// What had ended of that which stood, and how.
    pub started_anew: Option<String>,
    /// Its discarded run, until the first trial that counts on it stores it.
    pub settled: &'a mut Option<Settled>,
}

/// A discarded run, or why it broke.
pub type Settled = Result<SettleRecord, String>;

impl Standing {
    /// The environment of `deployment` that `arm` has standing, or a fresh one whose processes log to `logs`.
    ///
    /// # Errors
    /// When the fresh one does not come up, or a broken one does not go away.
    pub fn site(
        &mut self,
        session: &mut Session<'_>,
        arm: &Arm,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<Site<'_>, RunError> {
        // A component may have ended after the trial before was judged; what broke before any is its first trial's.
        let crash = |stand: &mut Stand| match stand.settled {
            Some(Err(_)) => None,
            _ => stand.environment.crashed().map(|crash| in_short(&crash.to_string())),
        };
        let started_anew = self.of(arm, deployment).and_then(crash);
        if let Some(reason) = &started_anew {
            let event = RunEvent::StartedAnew { arm: arm.label(), reason: reason.clone() };
            session.emit(&event)?;
            self.take_down(session, arm, deployment)?;
        }
        let fresh = self.of(arm, deployment).is_none();
        if fresh {
            session.stage("bring up")?;
            let environment = session.lab.up(deployment, logs)?;
            let (arm, deployment) = (arm.clone(), deployment.clone());
            self.0.push(Stand { arm, deployment, environment, settled: None });
        }
        let Stand { environment, settled, .. } =
            self.of(arm, deployment).expect("it stood, or has just come up");
        Ok(Site { environment, fresh, started_anew, settled })
    }

    fn of(&mut self, arm: &Arm, deployment: &Deployment) -> Option<&mut Stand> {
        self.0.iter_mut().find(|stand| stand.is(arm, deployment))
    }

    /// Takes down what `arm` has standing of `deployment`, if anything.
    ///
    /// # Errors
    /// When something of it is left, or the run's directory cannot be written.
    pub fn take_down(
        &mut self,
        session: &mut Session<'_>,
        arm: &Arm,
        deployment: &Deployment,
    ) -> Result<(), RunError> {
        let stand = self.0.iter().position(|stand| stand.is(arm, deployment));
        stand.map_or(Ok(()), |index| down(session, self.0.remove(index)))
    }

    /// Takes down all that stands, and goes on when one does not go away.
    ///
    /// # Errors
    /// The first that left something, or that the run's directory cannot be written.
    pub fn clear(&mut self, session: &mut Session<'_>) -> Result<(), RunError> {
        let stands: Vec<Stand> = self.0.drain(..).collect();
        stands.into_iter().map(|stand| down(session, stand)).fold(Ok(()), Result::and)
    }
}

impl Stand {
    fn is(&self, arm: &Arm, deployment: &Deployment) -> bool {
        self.arm == *arm && self.deployment == *deployment
    }
}

fn down(session: &mut Session<'_>, stand: Stand) -> Result<(), RunError> {
    // A full disk must not keep an environment up: what cannot be told is done all the same.
    let told = session.stage("take down");
    stand.environment.down()?;
    told
}

/// Without the lines of its log.
fn in_short(crash: &str) -> String {
    crash.split(';').next().unwrap_or(crash).to_owned()
}

#[cfg(test)]
mod tests;
