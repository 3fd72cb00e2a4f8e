//! One trial: bring up and settle unless it goes on with what stands, prove the path, idle, load with sampling,
//! prove again, judge, take down unless the next goes on.

use std::time::Duration;

use toll_lab::{Environment, LabError, Proof, Sample, Traffic};
use toll_load::{Check, LoadEvent, LoadPlan, LoadReport, Phase};

use super::load::{Heard, Stopped, answered_well, drive, failures, traffic};
use super::settle::settle;
use super::standing::{Site, Standing};
use super::{RunError, Session, machine, seeds};
use crate::event::RunEvent;
use crate::plan::{PlannedLoad, PlannedTrial};
use crate::store::{Mark, MarkedSample, Noise, StoreError, TrialDir, TrialVerdict};

/// A trial and what is known when its turn comes.
pub struct Turn<'a> {
    /// The trial.
    pub planned: &'a PlannedTrial,
    /// What rates refer to, when it is known.
    pub knee_per_s: Option<f64>,
    /// Whether a later trial goes on with this one's environment.
    pub stays_up: bool,
}

/// Runs one trial and stores it. `None` when it was interrupted; then nothing counts as measured.
pub fn run(
    session: &mut Session<'_>,
    standing: &mut Standing,
    turn: &Turn<'_>,
) -> Result<Option<TrialVerdict>, RunError> {
    let (plan, planned) = (session.plan, turn.planned);
    let load = plan.load(&planned.load).expect("every trial of a plan names one of its loads");
    let deployment = plan.deployment_of(planned).expect("only variants that run have trials");
    let mut trial = Trial {
        dir: session.store.begin_trial(planned)?,
        samples: vec![],
        calibration_ns: machine::calibrate(),
        rate_per_s: load.rate_per_s(turn.knee_per_s),
        users: load.users(turn.knee_per_s),
        started_anew: None,
    };
    let mut site = standing.site(session, &planned.arm, &deployment, &trial.dir.logs())?;
    trial.started_anew = site.started_anew.take();
    let measured = trial.measure(session, &mut site, load, turn);
    let judged =
        or_crash(measured, site.environment).and_then(|measured| Ok(measured.judge(planned)?));
    // What a broken trial did to the services, the next would inherit.
    let goes_on = turn.stays_up && matches!(&judged, Ok(judgement) if judgement.services_are_sound);
    let cleared = match goes_on {
        true => Ok(()),
        false => standing.take_down(session, &planned.arm, &deployment),
    };
    let invalid = match judged {
        Ok(judgement) => judgement.invalid,
        Err(Stopped::Broken(reason)) => vec![reason],
        Err(Stopped::Interrupted) => return cleared.map(|()| None),
        Err(Stopped::Fatal(error)) => return Err(error),
    };
    cleared?;
    trial.finish(invalid).map(Some).map_err(RunError::from)
}

/// A component that has crashed explains whatever failed after it; only the user and the disk come first.
fn or_crash(
    measured: Result<Measured, Stopped>,
    environment: &mut Environment,
) -> Result<Measured, Stopped> {
    match (measured, environment.crashed()) {
        (Err(stopped @ (Stopped::Interrupted | Stopped::Fatal(RunError::Store(_)))), _) => {
            Err(stopped)
        }
        (_, Some(crash)) => Err(Stopped::Broken(crash.to_string())),
        (measured, None) => measured,
    }
}

/// What is known of a trial while it runs.
struct Trial {
    dir: TrialDir,
    samples: Vec<MarkedSample>,
    calibration_ns: u64,
    rate_per_s: Option<f64>,
    users: Option<u32>,
    started_anew: Option<String>,
}

/// What is held of a trial that ran to its end.
struct Judgement {
    /// Why it does not count; empty when it does.
    invalid: Vec<String>,
    /// Whether nothing speaks against the services: a load generator that was late says nothing of them.
    services_are_sound: bool,
}

/// What a trial that ran to its end gave.
struct Measured {
    load: LoadReport,
    proof: Proof,
}

impl Trial {
    fn measure(
        &mut self,
        session: &mut Session<'_>,
        site: &mut Site<'_>,
        load: &PlannedLoad,
        turn: &Turn<'_>,
    ) -> Result<Measured, Stopped> {
        let environment = &mut *site.environment;
        let seed = seeds::of_trial(session.plan, turn.planned);
        let engine_plan = load
            .engine_plan(&environment.entry_url(), turn.knee_per_s, seed)
            .ok_or_else(|| Stopped::Broken("the knee that it refers to is not known".into()))?;
        if site.fresh {
            *site.settled = settle(session, environment)?.map(Ok);
        }
        match site.settled.take() {
            Some(Ok(settled)) => self.dir.write_settled(&settled)?,
            Some(Err(broken)) => return Err(Stopped::Broken(broken)),
            None => {}
        }
        session.stage("prove path")?;
        environment.open_proof().map_err(RunError::from)?;
        if session.plan.idle_s > 0.0 {
            self.idle(session, environment)?;
        }
        let report = self.load(session, environment, &engine_plan)?;
        self.dir.write_load(&report)?;
        let proof = close_proof(environment, traffic(load, &report))?;
        self.dir.write_proof(&proof)?;
        Ok(Measured { load: report, proof })
    }

    /// A window without load: what the variant costs when nobody calls.
    fn idle(
        &mut self,
        session: &mut Session<'_>,
        environment: &mut Environment,
    ) -> Result<(), Stopped> {
        const SLICE: Duration = Duration::from_millis(50);
        session.stage("idle")?;
        self.sample(environment, Mark::IdleBegin)?;
        let slices = (session.plan.idle_s / SLICE.as_secs_f64()).ceil() as u32;
        for _ in 0..slices {
            if session.interrupted() {
                return Err(Stopped::Interrupted);
            }
            std::thread::sleep(SLICE);
        }
        Ok(self.sample(environment, Mark::IdleEnd)?)
    }

    fn load(
        &mut self,
        session: &mut Session<'_>,
        environment: &mut Environment,
        engine_plan: &LoadPlan,
    ) -> Result<LoadReport, Stopped> {
        let interrupt = session.interrupt;
        drive(environment, engine_plan, interrupt, &mut |environment, heard| {
            // The sample comes before the talk: it belongs to the instant the phase began.
            if let Some(mark) = mark_of(&heard) {
                self.sample(environment, mark)?;
            }
            match heard {
                Heard::Event(event) => announce(session, &event),
                Heard::Tick => Ok(()),
            }
        })
    }

    fn sample(&mut self, environment: &mut Environment, mark: Mark) -> Result<(), StoreError> {
        let sample = match mark {
            Mark::Tick => environment.sample_in_passing(),
            _ => environment.sample(),
        };
        let sample = MarkedSample { mark, sample };
        self.dir.add_sample(&sample)?;
        self.samples.push(sample);
        Ok(())
    }

    fn finish(self, invalid: Vec<String>) -> Result<TrialVerdict, StoreError> {
        let verdict = TrialVerdict {
            version: crate::store::TRIAL_FORMAT,
            invalid,
            rate_per_s: self.rate_per_s,
            users: self.users,
            started_anew: self.started_anew,
            noise: noise(self.calibration_ns, &self.samples),
        };
        self.dir.finish(&verdict)?;
        Ok(verdict)
    }
}

/// A path that cannot be proven costs the trial, not the run: services that broke under the load may not answer
/// a probe, and the next environment is a fresh one.
fn close_proof(environment: &mut Environment, traffic: Traffic) -> Result<Proof, Stopped> {
    environment.close_proof(traffic).map_err(|error| match error {
        LabError::Interrupted => Stopped::Interrupted,
        error => Stopped::Broken(format!("path not proven: {error}")),
    })
}

impl Measured {
    /// A trial does not count when a claim about the path or a check of the load fails.
    ///
    /// # Errors
    /// When nothing was answered but errors: no further trial would be better.
    fn judge(&self, planned: &PlannedTrial) -> Result<Judgement, RunError> {
        let checks = self.load.checks.iter().filter(|check| !check.holds).map(|check| {
            format!("{}: {} (should be {}); {}", check.name, check.seen, check.bound, check.advice)
        });
        let claims = self.proof.claims.iter().filter(|claim| !claim.holds).map(|claim| {
            format!(
                "path not proven: {}: expected {}, saw {}",
                claim.claim, claim.expected, claim.seen
            )
        });
        let unproven =
            self.proof.claims.is_empty().then(|| "path not proven: no claim was made".to_owned());
        let invalid: Vec<String> = checks.chain(claims).chain(unproven).collect();
        if self.is_hopeless() {
            return Err(RunError::NothingAnswered {
                arm: planned.arm.label(),
                load: planned.load.clone(),
                reason: invalid.join("; "),
            });
        }
        let failed =
            self.load.checks.iter().find(|check| !check.holds && check.name == Check::ERRORS);
        let services_are_sound = self.proof.holds() && failed.is_none();
        Ok(Judgement { invalid, services_are_sound })
    }
}

impl Measured {
    /// Whether all that came back on the path that the variant claims were failures. A path that is broken is this
    /// variant's own affair, and a short phase in which nothing came back at all a stall.
    fn is_hopeless(&self) -> bool {
        answered_well(&self.load) == 0 && failures(&self.load) > 0 && self.proof.holds()
    }
}

fn mark_of(heard: &Heard) -> Option<Mark> {
    match heard {
        Heard::Tick => Some(Mark::Tick),
        Heard::Event(LoadEvent::Phase { phase: Phase::Measure, .. }) => Some(Mark::MeasureBegin),
        Heard::Event(LoadEvent::Phase { phase: Phase::Drain, .. }) => Some(Mark::MeasureEnd),
        Heard::Event(_) => None,
    }
}

fn announce(session: &mut Session<'_>, event: &LoadEvent) -> Result<(), RunError> {
    match event {
        LoadEvent::Phase { phase, .. } => session.stage(match phase {
            Phase::WarmUp => "warm up",
            Phase::Measure => "measure",
            Phase::Drain => "drain",
        }),
        LoadEvent::Progress { share, throughput_per_s, p50_us, p99_us, errors, .. } => session
            .emit(&RunEvent::Progress {
                share: *share,
                throughput_per_s: *throughput_per_s,
                p50_us: *p50_us,
                p99_us: *p99_us,
                errors: *errors,
            }),
        LoadEvent::Report { .. } | LoadEvent::Failed { .. } => Ok(()),
    }
}

/// Steal and run queue over the samples from the measured phase's begin on.
fn noise(calibration_ns: u64, samples: &[MarkedSample]) -> Noise {
    let from = samples.iter().position(|s| s.mark == Mark::MeasureBegin).unwrap_or(0);
    let window: Vec<&Sample> = samples[from..].iter().map(|s| &s.sample).collect();
    let (Some(first), Some(last)) = (window.first(), window.last()) else {
        return Noise { calibration_ns, steal: 0.0, runnable: 0.0 };
    };
    let cores_ns = last.at_ns.saturating_sub(first.at_ns) as f64 * machine::cores() as f64;
    let stolen_ns = last.host.steal_ns.saturating_sub(first.host.steal_ns) as f64;
    let runnable: f64 = window.iter().map(|s| f64::from(s.host.runnable)).sum();
    Noise {
        calibration_ns,
        steal: if cores_ns > 0.0 { stolen_ns / cores_ns } else { 0.0 },
        runnable: runnable / window.len() as f64,
    }
}
