//! Drives one load in a running environment, listens to what the engine says, and reads its report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use toll_lab::{Asked, ENTRY_NAME, Environment, NextLine, Traffic};
use toll_load::{LoadEvent, LoadPlan, LoadReport, Tls};

use super::RunError;
use crate::plan::PlannedLoad;

/// How often counters are sampled under load where that costs little: fast enough for a memory curve of a
/// three-second trial.
const TICK: Duration = Duration::from_millis(250);

/// The longest time between two samples, however many components there are.
const LONGEST_TICK: Duration = Duration::from_secs(1);

/// The time from the begin of one sample, which took so long, to the next: sampling takes less than one hundredth
/// of the time.
fn tick_after(took: Duration) -> Duration {
    (took * 100).clamp(TICK, LONGEST_TICK)
}

/// Why a load gave no report.
pub enum Stopped {
    /// The run was interrupted.
    Interrupted,
    /// A component or the load engine broke: the trial cannot count.
    Broken(String),
    /// Nothing more can be measured.
    Fatal(RunError),
}

impl<E: Into<RunError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// What was heard while the load ran.
pub enum Heard {
    /// The engine said so.
    Event(LoadEvent),
    /// Time for a sample.
    Tick,
}

/// Runs `plan` to its end, over TLS as the entry shows itself. `hear` is told of every event but the report, and of every tick.
///
/// # Errors
/// When the run is interrupted, a component ends by itself, or `hear` fails.
pub fn drive(
    environment: &mut Environment,
    plan: &LoadPlan,
    interrupt: &AtomicBool,
    hear: &mut dyn FnMut(&mut Environment, Heard) -> Result<(), RunError>,
) -> Result<LoadReport, Stopped> {
    let plan = trusting(plan, environment.entry_ca());
    let json = serde_json::to_vec(&plan).expect("a load plan is plain data");
    let mut load = environment.start_load(&json).map_err(RunError::from)?;
    let mut next_tick = Instant::now() + TICK;
    loop {
        if interrupt.load(Ordering::Relaxed) {
            load.kill();
            return Err(Stopped::Interrupted);
        }
        match load.next_line(next_tick.saturating_duration_since(Instant::now())) {
            NextLine::Quiet => {}
            NextLine::Ended(how) => {
                let how =
                    how.map_or_else(|error| error.to_string(), |()| "without a report".into());
                return Err(Stopped::Broken(format!("the load engine ended early: {how}")));
            }
            NextLine::Line(line) => match understand(&line)? {
                LoadEvent::Report { report } => return Ok(*report),
                LoadEvent::Failed { message, help } => {
                    return Err(Stopped::Broken(with_help(message, help)));
                }
                event => hear(environment, Heard::Event(event))?,
            },
        }
        let now = Instant::now();
        if now >= next_tick {
            hear(environment, Heard::Tick)?;
            next_tick += tick_after(now.elapsed());
        }
        if let Some(crash) = environment.crashed() {
            load.kill();
            return Err(Stopped::Broken(crash.to_string()));
        }
    }
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

/// What the load sent in all its phases: the path and the database behind it know of none.
///
/// A request that timed out or failed is not acknowledged, whatever became of it.
pub fn traffic(load: &PlannedLoad, report: &LoadReport) -> Traffic {
    let mut traffic = Traffic {
        requests: report.sent_in_all_phases,
        spans: load.spans.clone(),
        ..Traffic::default()
    };
    for ((_, request), told) in load.kinds().into_iter().zip(&report.targets) {
        let asked = Asked {
            method: request.method.clone(),
            path: request.path.clone(),
            requests: told.sent,
            acknowledged: told.succeeded,
        };
        if request.writes() {
            traffic.writes += asked.requests;
            traffic.acknowledged += asked.acknowledged;
        }
        traffic.asked.push(asked);
    }
    traffic
}

/// Requests completed per second of the measured phase.
pub fn throughput(report: &LoadReport) -> f64 {
    let measured = &report.measure;
    measured.completed as f64 * 1e9
        / measured.end_ns.saturating_sub(measured.begin_ns).max(1) as f64
}

/// Requests of the measured phase that were answered with no error of the service's.
pub fn answered_well(report: &LoadReport) -> u64 {
    let well = report.measure.statuses.iter().filter(|(status, _)| **status < 400);
    well.map(|(_, count)| count).sum()
}

/// Requests of the measured phase that were answered with an error, or not at all.
pub fn failures(report: &LoadReport) -> u64 {
    let refused = report.measure.statuses.iter().filter(|(status, _)| **status >= 400);
    report.measure.errors.values().sum::<u64>() + refused.map(|(_, count)| count).sum::<u64>()
}

/// How requests of the measured phase failed, kind by kind.
pub fn failures_in_words(report: &LoadReport) -> String {
    let measured = &report.measure;
    let errors = measured.errors.iter().map(|(kind, count)| format!("{count} x {}", kind.name()));
    let refused = measured.statuses.iter().filter(|(status, _)| **status >= 400);
    let statuses = refused.map(|(status, count)| format!("{count} x status {status}"));
    let all: Vec<String> = errors.chain(statuses).collect();
    if all.is_empty() { "nothing was answered".into() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_many_components_are_taken_less_often_but_once_a_second() {
        let ms = Duration::from_millis;
        let ticks = [0, 2, 4, 9, 50].map(|took| tick_after(ms(took)));
        assert_eq!(ticks, [ms(250), ms(250), ms(400), ms(900), ms(1000)]);
    }
}
