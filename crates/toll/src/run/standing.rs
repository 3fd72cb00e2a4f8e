//! Owns what stands: at most one environment, which the next trial goes on with or which is taken down.
//!
//! Which trials share one is the plan's affair; here it only follows whether a trial has spoilt it.

use std::path::Path;

use toll_lab::{Deployment, Environment};

use super::{RunError, Session};

/// The environment that stands, if there is one.
#[derive(Debug, Default)]
pub struct Standing(Option<Environment>);

/// What a trial gets to run in.
pub struct Site<'a> {
    /// Where it runs.
    pub environment: &'a mut Environment,
    /// Whether it has just come up: nothing has been asked of it.
    pub fresh: bool,
}

impl Standing {
    /// The environment that an earlier trial left standing, or a fresh one whose processes log to `logs`.
    ///
    /// # Errors
    /// When the fresh one does not come up, or a broken one does not go away.
    pub fn site(
        &mut self,
        session: &mut Session<'_>,
        deployment: &Deployment,
        logs: &Path,
    ) -> Result<Site<'_>, RunError> {
        // A component may have ended after the trial before was judged.
        if self.0.as_mut().is_some_and(|environment| environment.crashed().is_some()) {
            self.clear(session)?;
        }
        let fresh = self.0.is_none();
        if fresh {
            session.stage("bring up")?;
            self.0 = Some(session.lab.up(deployment, logs)?);
        }
        let environment = self.0.as_mut().expect("it stood, or has just come up");
        Ok(Site { environment, fresh })
    }

    /// Takes down what stands, if anything does.
    ///
    /// # Errors
    /// When something of it is left, or the run's directory cannot be written.
    pub fn clear(&mut self, session: &mut Session<'_>) -> Result<(), RunError> {
        let Some(environment) = self.0.take() else { return Ok(()) };
        // A full disk must not keep an environment up: what cannot be told is done all the same.
        let told = session.stage("take down");
        environment.down()?;
        told
    }
}

#[cfg(test)]
mod tests;
