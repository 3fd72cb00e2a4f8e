//! An arm as it stands in a round: its environment, the load engine in it, and what is known of it so far.

use std::collections::BTreeMap;

use toll_lab::{Claim, Deployment, Environment, LabError, LoadEngine, Traffic};

use super::failures::{self, Failures};
use super::load::{Stopped, add, traffic};
use super::{RunError, Session};
use crate::event::{RunEvent, Stage};
use crate::plan::{Arm, PlannedLoad};
use crate::store::{ArmDir, ArmFile, Failing, Invalid, RoundDir};
use toll_load::LoadReport;

/// Load pods whose clocks move by more do not begin a slice together: a tenth of the guard.
const MOST_CLOCK_DRIFT_MS: u64 = 10;

/// An arm that stands.
#[derive(Debug)]
pub struct Stand {
    /// Which one.
    pub arm: Arm,
    /// What was brought up.
    pub deployment: Deployment,
    /// Where its deployment runs.
    pub environment: Environment,
    /// Carries all its loads, so that connections stay open between slices.
    pub engine: LoadEngine,
    /// Where what it shows is kept.
    pub dir: ArmDir,
    /// How it came up and what became of it.
    pub file: ArmFile,
    /// What was sent to it since its proof was opened.
    pub sent: Traffic,
    /// What of it failed, by load.
    pub failures: BTreeMap<String, Failures>,
}

impl Stand {
    /// Brings an arm up at one of the plan's sizes.
    pub fn up(
        session: &mut Session<'_>,
        round: &RoundDir,
        arm: &Arm,
        size: usize,
    ) -> Result<Self, Stopped> {
        session.stage(Stage::BringUp, Some(arm.label()))?;
        let dir = round.arm(arm, size)?;
        let deployment =
            session.plan.deployment_at(arm, size).expect("only variants that run have arms");
        let mut environment = session.lab.up(&deployment, &dir.logs())?;
        let engine = environment.start_engine()?;
        let (file, sent) = (ArmFile::default(), Traffic::default());
        let (arm, failures) = (arm.clone(), BTreeMap::new());
        Ok(Self { arm, deployment, environment, engine, dir, file, sent, failures })
    }

    /// Whether what it shows may still count.
    pub fn is_sound(&self) -> bool {
        self.file.invalid.is_empty()
    }

    /// None of its slices counts, for this reason, and nothing more is sent to it: the next slice is another arm's.
    pub fn break_off(
        &mut self,
        session: &mut Session<'_>,
        reason: Invalid,
    ) -> Result<(), RunError> {
        self.engine.kill();
        let event = RunEvent::ArmInvalid { arm: self.arm.label(), reason: reason.to_string() };
        self.file.invalid.push(reason);
        session.emit(&event)
    }

    /// Breaks it off where something of its own broke; hands on all else.
    pub fn unless_broken<T>(
        &mut self,
        session: &mut Session<'_>,
        outcome: Result<T, Stopped>,
    ) -> Result<Option<T>, Stopped> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(Stopped::Broken(reason)) => {
                self.break_off(session, Invalid::Broke(reason))?;
                Ok(None)
            }
            Err(stopped) => Err(stopped),
        }
    }

    /// Probes the path and reads the data plane's counters.
    pub fn open_proof(&mut self) -> Result<(), Stopped> {
        self.sent = Traffic::default();
        self.environment.open_proof().map_err(|error| self.broken_path(error))
    }

    /// What a slice sent is part of what the proof must find.
    pub fn note_sent(&mut self, load: &PlannedLoad, report: &LoadReport) {
        add(&mut self.sent, traffic(load, &self.deployment, report));
        self.failures.entry(load.name.clone()).or_default().add(report);
    }

    /// Breaks it off where more failed than a load tolerates.
    pub fn judge_failures(&mut self, session: &mut Session<'_>) -> Result<(), RunError> {
        for load in &session.plan.loads {
            let seen = self.failures.get(&load.name);
            if let Some(failing) = seen.and_then(|seen| failures::under(load, seen)) {
                let failing = self.with_last_lines(failing);
                self.break_off(session, Invalid::Failures { load: load.name.clone(), failing })?;
            }
        }
        Ok(())
    }

    /// The same with what was logged last.
    pub fn with_last_lines(&self, failing: Failing) -> Failing {
        Failing { log: failures::last_lines(&self.environment, &self.deployment), ..failing }
    }

    /// Judges and stores whether all that was sent took the path of the variant.
    pub fn close_proof(&mut self, session: &mut Session<'_>) -> Result<(), Stopped> {
        let sent = std::mem::take(&mut self.sent);
        let closed = self.environment.close_proof(sent);
        let closed = closed.map_err(|error| self.broken_path(error));
        let Some(proof) = self.unless_broken(session, closed)? else { return Ok(()) };
        self.dir.write_proof(&proof)?;
        let moved = self.engine.clock_drift_ns().map_err(|error| self.broken_path(error));
        let moved_ms = self.unless_broken(session, moved)?.unwrap_or(0) / 1_000_000;
        if moved_ms > MOST_CLOCK_DRIFT_MS {
            let (by_ms, most_ms) = (moved_ms, MOST_CLOCK_DRIFT_MS);
            self.break_off(session, Invalid::ClocksMoved { by_ms, most_ms })?;
        }
        let has_none = proof.claims.is_empty();
        for Claim { claim, expected, seen, .. } in proof.claims.into_iter().filter(|c| !c.holds) {
            self.break_off(session, Invalid::Claim { claim, expected, seen })?;
        }
        if has_none {
            self.break_off(session, Invalid::NoClaim)?;
        }
        Ok(())
    }

    /// A path that cannot be proven costs the arm its round, not the run: services that broke under load may not
    /// answer a probe, and the next round is a fresh start.
    fn broken_path(&mut self, error: LabError) -> Stopped {
        match error {
            LabError::Interrupted => Stopped::Interrupted,
            error => Stopped::Broken(match self.environment.crashed() {
                Some(crash) => crash.to_string(),
                None => format!("path not proven: {error}"),
            }),
        }
    }

    /// Ends its engine and takes it down; then stores how it fared.
    ///
    /// # Errors
    /// When something of it is left, or the run's directory cannot be written.
    pub fn down(self) -> Result<(), RunError> {
        let Self { mut engine, environment, dir, mut file, .. } = self;
        engine.kill();
        file.cut_logs = environment.cut_logs();
        environment.down()?;
        Ok(dir.finish(&file)?)
    }
}
