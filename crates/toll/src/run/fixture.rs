//! Runs of made-up studies on a lab without processes: for tests of this stage and of later ones.
//!
//! What the lab's load engine says is made of the engine's own types, and every number is known beforehand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use toll_lab::{
    Claim, Component, Deployment, FakeCall, FakeLab, FakeLoadScript, Lab, Proof, Role, Topic,
};
use toll_load::{
    Histogram, LoadEvent, LoadModel, LoadPlan, LoadReport, Phase, PhaseReport, Stop, TargetReport,
};

use super::{Ending, RunError, Session};
use crate::event::RunEvent;
use crate::plan::Plan;
pub use crate::plan::fixture::{STUDY, planned};
use crate::store::{HostFacts, RunRecord, Store};

/// Latency in every guard, microseconds: so far off that it shows wherever it is mixed in.
const GUARD_LATENCY_US: u64 = 999_999;

/// Requests a second in every closed loop.
pub const CLOSED_PER_S: f64 = 1000.0;

/// A run's directory, in which the plan can be run, interrupted and run again.
pub struct Flow {
    /// What runs.
    pub plan: Plan,
    /// Where it is kept.
    pub store: Store,
    /// Removes the directory when it is dropped.
    _dir: TempDir,
}

/// What one call of [`Session::run`] did.
pub struct Ran {
    /// How it ended.
    pub ending: Result<Ending, RunError>,
    /// All that it said.
    pub events: Vec<RunEvent>,
}

impl Flow {
    /// An empty directory and the plan of `study`.
    pub fn of(study: &str) -> Self {
        Self::planned(planned(study))
    }

    /// An empty directory and the plan.
    pub fn planned(plan: Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let host = HostFacts { cores: Some(2), ..HostFacts::default() };
        let store = Store::create(&dir.path().join("run"), "", &plan, &host).unwrap();
        Self { plan, store, _dir: dir }
    }

    /// Runs all that is not yet measured.
    pub fn run(&self, lab: &Lab) -> Ran {
        self.run_until(lab, |_| false)
    }

    /// Runs until the events so far are such that the user presses Ctrl-C.
    pub fn run_until(&self, lab: &Lab, interrupts: impl Fn(&[RunEvent]) -> bool) -> Ran {
        let interrupt = AtomicBool::new(false);
        let mut events = Vec::new();
        let mut watch = |event: &RunEvent| {
            events.push(event.clone());
            if interrupts(&events) {
                interrupt.store(true, Ordering::Relaxed);
            }
        };
        let (plan, store, interrupt) = (&self.plan, &self.store, &interrupt);
        let (watch, is_sharp) = (&mut watch, &mut || true);
        let ending = Session { plan, lab, store, interrupt, watch, is_sharp }.run();
        Ran { ending, events }
    }

    /// All that was stored.
    pub fn stored(&self) -> RunRecord {
        self.store.read().unwrap()
    }
}

/// What has been asked of the lab.
pub fn calls(lab: &Lab) -> Vec<FakeCall> {
    match lab {
        Lab::Fake(fake) => fake.calls(),
        Lab::Local(_) | Lab::Kubernetes(_) | Lab::Manifests(_) => {
            panic!("labs of the fixture have no processes")
        }
    }
}

/// The same lab, in whose load number `load`, from 1, PostgreSQL ends by itself.
pub fn crashing_in(load: usize, lab: Lab) -> Lab {
    match lab {
        Lab::Fake(fake) => Lab::Fake(fake.crashing_in(load)),
        Lab::Local(_) | Lab::Kubernetes(_) | Lab::Manifests(_) => {
            panic!("labs of the fixture have no processes")
        }
    }
}

/// The same lab, whose agents send no spans.
pub fn silent(lab: Lab) -> Lab {
    match lab {
        Lab::Fake(fake) => Lab::Fake(fake.silent()),
        Lab::Local(_) | Lab::Kubernetes(_) | Lab::Manifests(_) => {
            panic!("labs of the fixture have no processes")
        }
    }
}

/// A lab in which every path is as claimed and each load goes as `engine` says.
pub fn lab(
    engine: impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript + Send + Sync + 'static,
) -> Lab {
    lab_with_claims(vec![claim(true)], engine)
}

/// As [`lab`], with these claims about every path.
pub fn lab_with_claims(
    claims: Vec<Claim>,
    engine: impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript + Send + Sync + 'static,
) -> Lab {
    let proof = Proof { claims, left_out: vec![], traversals: vec![], calls: vec![], spans: None };
    Lab::Fake(FakeLab::new(proof, move |deployment, plan| {
        engine(deployment, &serde_json::from_slice(plan).unwrap())
    }))
}

/// A claim about a path, true or not.
pub fn claim(holds: bool) -> Claim {
    Claim {
        topic: Topic::Other,
        claim: "no proxy runs".into(),
        expected: "0 proxies".into(),
        seen: if holds { "0 proxies" } else { "1 proxy" }.into(),
        holds,
    }
}

/// What one request costs in a variant, microseconds.
struct Cost {
    latency_us: u64,
    service_us: u64,
    sidecar_us: u64,
}

/// `mesh` adds 600 us of latency, 10 us to the service's CPU and 150 us in a sidecar.
fn cost(deployment: &Deployment) -> Cost {
    match deployment.name.as_str() {
        "mesh" => Cost { latency_us: 1600, service_us: 310, sidecar_us: 150 },
        _ => Cost { latency_us: 1000, service_us: 300, sidecar_us: 0 },
    }
}

/// An engine that completes all that it is told to send, at the cost of the variant.
pub fn sound(deployment: &Deployment, plan: &LoadPlan) -> FakeLoadScript {
    completing_at_most(f64::MAX, deployment, plan)
}

/// As [`sound`], but no more than `most_per_s` requests a second are completed; the rest is never sent.
pub fn completing_at_most(
    most_per_s: f64,
    deployment: &Deployment,
    plan: &LoadPlan,
) -> FakeLoadScript {
    let seconds = match plan.stop {
        Stop::AfterSeconds(seconds) => seconds,
        Stop::AfterRequests(requests) => requests as f64 / CLOSED_PER_S,
    };
    let offered_per_s = match &plan.model {
        LoadModel::Open { arrivals, .. } => arrivals.rate_per_s.highest(),
        LoadModel::Closed { .. } => CLOSED_PER_S,
    };
    let done_per_s = offered_per_s.min(most_per_s);
    let done = (done_per_s * seconds).round() as u64;
    let unsent = ((offered_per_s - done_per_s) * seconds) as u64;
    let measured = phase(done, done_per_s, cost(deployment).latency_us);
    reporting(deployment, report(PhaseReport { unsent, ..measured }))
}

/// All that an engine says on the way to `report`, and what the deployment uses meanwhile.
pub fn reporting(deployment: &Deployment, report: LoadReport) -> FakeLoadScript {
    let answered = report.good_in_all_phases();
    let phase = |phase| LoadEvent::Phase { phase, at_ns: 0 };
    let report = LoadEvent::Report { report: Box::new(report) };
    let events = [phase(Phase::WarmUp), phase(Phase::Measure), phase(Phase::Drain), report];
    // Counters enclose the whole slice, its guard included.
    let whole_ns = |us_per_request| us_per_request * 1000 * answered;
    let used = |role, us_per_request| {
        (Component { role, pod: "server".into() }, whole_ns(us_per_request), 10_000_000)
    };
    let Cost { service_us, sidecar_us, .. } = cost(deployment);
    let mut usage = vec![used(Role::Application, service_us)];
    if sidecar_us > 0 {
        usage.push(used(Role::Sidecar, sidecar_us));
    }
    FakeLoadScript { usage, ..saying(&events) }
}

/// An engine that says just this.
pub fn saying(events: &[LoadEvent]) -> FakeLoadScript {
    let line = |event: &LoadEvent| serde_json::to_string(event).unwrap();
    FakeLoadScript { lines: events.iter().map(line).collect(), usage: vec![] }
}

/// A report about `measure` that no check objects to.
pub fn report(measure: PhaseReport) -> LoadReport {
    let warm_up = phase(10, 10.0, GUARD_LATENCY_US);
    let statuses = [&warm_up, &measure].into_iter().flat_map(|phase| &phase.statuses);
    let succeeded = statuses.filter(|(status, _)| **status < 300).map(|(_, count)| count).sum();
    LoadReport {
        version: 1,
        targets: vec![TargetReport { sent: warm_up.sent + measure.sent, succeeded }],
        warm_up_stable: true,
        sent_in_all_phases: warm_up.sent + measure.sent,
        warm_up,
        measure,
        connections_opened: 1,
        ..LoadReport::default()
    }
}

/// A phase in which `done` requests, `rate_per_s` of them a second, took `latency_us` each.
pub fn phase(done: u64, rate_per_s: f64, latency_us: u64) -> PhaseReport {
    let mut latency = Histogram::new();
    latency.record_n_ns(latency_us * 1000, done);
    PhaseReport {
        begin_ns: 0,
        end_ns: (done as f64 / rate_per_s * 1e9) as u64,
        scheduled: done,
        sent: done,
        done,
        completed: done,
        connections_used: 1,
        statuses: BTreeMap::from([(200, done)]),
        service_time: latency.clone(),
        latency,
        ..PhaseReport::default()
    }
}
