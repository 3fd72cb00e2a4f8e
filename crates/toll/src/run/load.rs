//! Has an arm's engine carry one load, listens to what it says, and reads its report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_lab::{
    Asked, Deployment, ENTRY_NAME, Environment, LabError, LoadEngine, NextLine, Traffic,
};
use toll_load::{LoadEvent, LoadPlan, LoadReport, Part, Tls};

use super::RunError;
use crate::plan::{OF_ENVIRONMENT, PlannedLoad};

/// How often it is looked whether the user wants to leave.
const LOOK: Duration = Duration::from_millis(100);
/// How often counters are sampled under load, for a curve of memory; more would be the harness's own noise.
const TICK: Duration = Duration::from_secs(1);

/// Why a load gave no report.
pub enum Stopped {
    /// The run was interrupted.
    Interrupted,
    /// A component or the load engine broke: the arm cannot count.
    Broken(String),
    /// Nothing more can be measured.
    Fatal(RunError),
}

impl<E: Into<RunError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// Runs `plan` to its end, when the last request is answered; over TLS as the entry shows itself. `tick` is called once
/// a second.
///
/// # Errors
/// When the run is interrupted, or a component of the arm ends by itself.
pub fn drive(
    (environment, engine): (&mut Environment, &mut LoadEngine),
    plan: &LoadPlan,
    interrupt: &AtomicBool,
    tick: &mut dyn FnMut(&mut Environment),
) -> Result<LoadReport, Stopped> {
    if let Some(crash) = environment.crashed() {
        return Err(Stopped::Broken(crash.to_string()));
    }
    let plan = with_secrets(trusting(plan, environment.entry_ca()))?;
    let parts = parts(&plan, engine)?;
    for (pod, part) in parts.iter().enumerate() {
        engine.send(pod, &serde_json::to_vec(part).expect("a load plan is plain data"))?;
    }
    let mut reports = Vec::new();
    let mut next_tick = Instant::now() + TICK;
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        match engine.next_line(LOOK.min(next_tick.saturating_duration_since(Instant::now()))) {
            NextLine::Quiet => {
                if let Some(crash) = environment.crashed() {
                    return Err(Stopped::Broken(crash.to_string()));
                }
            }
            NextLine::Ended(how) => return Err(Stopped::Broken(early_end(how))),
            NextLine::Line(line) => match understand(&line)? {
                LoadEvent::Report { report } => {
                    reports.push(*report);
                    if reports.len() == parts.len() {
                        return unless_crashed(environment, merged(&reports));
                    }
                }
                LoadEvent::Failed { message, help } => {
                    return Err(Stopped::Broken(with_help(message, help)));
                }
                LoadEvent::Phase { .. } | LoadEvent::Progress { .. } => {}
            },
        }
        if Instant::now() >= next_tick {
            tick(environment);
            next_tick = Instant::now() + TICK;
        }
    }
}

/// The plan for each load pod: its part of the load, and when all of them begin.
fn parts(plan: &LoadPlan, engine: &LoadEngine) -> Result<Vec<LoadPlan>, LabError> {
    let starts = engine.common_start()?;
    let of = engine.pods();
    let part = |index: usize| LoadPlan {
        part: Part { index: index as u32, of: of as u32 },
        start_at_unix_ns: starts.as_ref().map(|starts| starts[index]),
        ..plan.clone()
    };
    Ok(match of {
        1 => vec![plan.clone()],
        of => (0..of).map(part).collect(),
    })
}

/// The parts' reports as that of the whole load.
fn merged(reports: &[LoadReport]) -> LoadReport {
    LoadReport::merge(reports).expect("there is a report for each part")
}

/// A component that has crashed explains whatever failed.
fn unless_crashed(
    environment: &mut Environment,
    report: LoadReport,
) -> Result<LoadReport, Stopped> {
    match environment.crashed() {
        Some(crash) => Err(Stopped::Broken(crash.to_string())),
        None => Ok(report),
    }
}

fn early_end(how: Result<(), LabError>) -> String {
    let how = how.map_or_else(|error| error.to_string(), |()| "without a report".into());
    format!("the load engine ended early: {how}")
}

/// Every load of a run trusts the entry's own authority and no other, and verifies.
fn trusting(plan: &LoadPlan, entry_ca: Option<String>) -> LoadPlan {
    let mut plan = plan.clone();
    if entry_ca.is_some() {
        let server_name = Some(ENTRY_NAME.to_owned());
        plan.connection.tls = Tls { server_name, ca_pem: entry_ca, ..plan.connection.tls };
    }
    plan
}

/// The plan with what the environment has for the headers' placeholders: no file of the run has it.
fn with_secrets(mut plan: LoadPlan) -> Result<LoadPlan, RunError> {
    let values = plan.targets.iter_mut().flat_map(|target| &mut target.headers);
    for (_, value) in values {
        *value = filled_in(value)?;
    }
    Ok(plan)
}

fn filled_in(value: &str) -> Result<String, RunError> {
    let Some((before, rest)) = value.split_once(&format!("{{{{{OF_ENVIRONMENT}")) else {
        return Ok(value.into());
    };
    let (name, after) = rest.split_once("}}").unwrap_or((rest, ""));
    let secret = std::env::var(name).map_err(|_| RunError::NotSet { variable: name.into() })?;
    Ok(format!("{before}{secret}{}", filled_in(after)?))
}

fn understand(line: &str) -> Result<LoadEvent, Stopped> {
    serde_json::from_str(line).map_err(|error| {
        Stopped::Broken(format!("the load engine said what toll cannot read ({error}): {line}"))
    })
}

fn with_help(message: String, help: Option<String>) -> String {
    match help {
        Some(help) => format!("{message} ({help})"),
        None => message,
    }
}

/// What a load sent in all its phases: the path and the database behind it know of none.
///
/// A request that timed out or failed is not acknowledged, whatever became of it.
pub fn traffic(load: &PlannedLoad, deployment: &Deployment, report: &LoadReport) -> Traffic {
    let mut traffic = Traffic { requests: report.sent_in_all_phases, ..Traffic::default() };
    for ((_, request), target) in load.kinds().into_iter().zip(&report.targets) {
        let asked = Asked {
            method: request.method.clone(),
            path: request.path.clone(),
            requests: target.sent,
            acknowledged: target.succeeded,
            spans: load.spans_in(deployment),
        };
        if request.writes() {
            traffic.writes += asked.requests;
            traffic.acknowledged += asked.acknowledged;
        }
        traffic.asked.push(asked);
    }
    traffic
}

/// Adds what another load sent; what asks the same and leaves the same spans is one kind.
pub fn add(sum: &mut Traffic, further: Traffic) {
    sum.requests += further.requests;
    sum.writes += further.writes;
    sum.acknowledged += further.acknowledged;
    for more in further.asked {
        let same = |asked: &&mut Asked| {
            (&asked.method, &asked.path, &asked.spans) == (&more.method, &more.path, &more.spans)
        };
        match sum.asked.iter_mut().find(same) {
            Some(asked) => {
                asked.requests += more.requests;
                asked.acknowledged += more.acknowledged;
            }
            None => sum.asked.push(more),
        }
    }
}

/// Requests completed per second of the measured phase.
pub fn throughput(report: &LoadReport) -> f64 {
    let measured = &report.measure;
    measured.completed as f64 * 1e9
        / measured.end_ns.saturating_sub(measured.begin_ns).max(1) as f64
}

/// How requests of the measured phase failed, kind by kind.
pub fn failures_in_words(report: &LoadReport) -> String {
    let failures = report.measure.failures().into_iter();
    let all: Vec<String> = failures.map(|(how, count)| format!("{count} x {how}")).collect();
    if all.is_empty() { "nothing was answered".into() } else { all.join(", ") }
}
