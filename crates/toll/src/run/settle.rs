//! Runs the discarded load that brings fresh services to their steady state: slice after slice in a closed loop,
//! until throughput and CPU per request are stable, or for as long as the plan allows.
//!
//! A virtual machine compiles while it serves: what it costs in its first seconds says nothing of what it costs
//! later (Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007).
//! Some never come to rest (Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017): that is
//! recorded and told, but not waited for.

use std::time::{Duration, Instant};

use toll_lab::{Environment, Reading, Role, Sample};
use toll_load::{LoadEvent, LoadModel, LoadPlan, LoadReport, Phase, Stop, Target};

use super::load::{Heard, Stopped, answered_well, drive, failures_in_words, throughput};
use super::{RunError, Session, seeds};
use crate::event::RunEvent;
use crate::plan::{Plan, PlannedSettle};
use crate::store::{SettleRecord, SettleSlice};
use crate::study::Settle;

/// Slices in each of the two windows that are compared.
const WINDOW: usize = Settle::SLICES as usize / 2;
/// Share by which the windows' means may differ.
const TOLERANCE: f64 = 0.05;
/// Cores that services without requests may use and still be called quiet.
const QUIET: f64 = 0.05;
/// Parts that the weight of one load's requests is divided into.
const SHARES: u64 = 1_000_000;
/// How often it is looked at, and how many looks in a row must be quiet.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const QUIET_LOOKS: u32 = 4;
/// A service that has just started may take its time for the first requests.
const TIMEOUT_MS: u64 = 10_000;

/// Settles fresh services, when the plan wants it. `None` when it does not.
///
/// # Errors
/// When the run is interrupted, a component breaks, or a slice passes without one good answer.
pub fn settle(
    session: &mut Session<'_>,
    environment: &mut Environment,
) -> Result<Option<SettleRecord>, Stopped> {
    let Some(settle) = session.plan.settle else { return Ok(None) };
    session.stage("settle")?;
    let url = environment.entry_url();
    let mut slices: Vec<SettleSlice> = Vec::new();
    let mut began_ns = None;
    let mut stable = false;
    while !stable && is_time_left(&settle, &slices) {
        let plan = slice_plan(session.plan, &settle, &url, slices.len() as u64);
        let (report, ends) = one_slice(session, environment, &plan)?;
        let began_ns = *began_ns.get_or_insert(ends.begin.at_ns);
        let slice = slice(&report, &ends, began_ns);
        session.emit(&settling(&slice))?;
        slices.push(slice);
        stable = is_stable(&slices);
    }
    let rest_s = rest(session, environment, settle.rest_s)?;
    Ok(Some(SettleRecord { slices, stable, rest_s }))
}

/// Sends nothing until the services are quiet, and tells how long that took, seconds. Under load a compiler gets
/// the cores last; what it has put by it would do in the first trials, at the expense of their requests.
fn rest(
    session: &mut Session<'_>,
    environment: &mut Environment,
    most_s: f64,
) -> Result<f64, Stopped> {
    let began = Instant::now();
    let mut quiet = 0;
    let mut before = environment.sample_in_passing();
    while quiet < QUIET_LOOKS && began.elapsed().as_secs_f64() < most_s {
        if session.interrupted() {
            return Err(Stopped::Interrupted);
        }
        std::thread::sleep(LOOK_EVERY);
        let now = environment.sample_in_passing();
        quiet = if is_quiet(&before, &now) { quiet + 1 } else { 0 };
        before = now;
    }
    Ok(began.elapsed().as_secs_f64())
}

/// What cannot be read is not known to be quiet.
fn is_quiet(before: &Sample, now: &Sample) -> bool {
    let passed_ns = now.at_ns.saturating_sub(before.at_ns) as f64;
    let used_ns = cpu_ns(now).zip(cpu_ns(before)).map(|(now, before)| now.saturating_sub(before));
    used_ns.is_some_and(|used_ns| used_ns as f64 <= passed_ns * QUIET)
}

/// The counters at the ends of a slice.
struct Ends {
    begin: Sample,
    end: Sample,
}

/// The requests of all loads in turn: code that compiles for the first one's alone is compiled anew when the next
/// asks for something else, in the middle of its trial.
fn slice_plan(plan: &Plan, settle: &PlannedSettle, url: &str, number: u64) -> LoadPlan {
    let stop = Stop::AfterSeconds(settle.slice_s);
    let targets: Vec<Target> =
        plan.loads.iter().flat_map(|load| of_equal_share(load.targets(url))).collect();
    let first = targets.first().expect("a plan with trials has a load").clone();
    LoadPlan {
        targets,
        timeout_ms: TIMEOUT_MS,
        seed: seeds::of_slice(plan, number),
        ..LoadPlan::new(first, LoadModel::closed(settle.connections), stop)
    }
}

/// The requests of one load, as heavy together as those of any other.
fn of_equal_share(mut targets: Vec<Target>) -> Vec<Target> {
    let total: u64 = targets.iter().map(|target| u64::from(target.weight)).sum();
    for target in &mut targets {
        let share = u64::from(target.weight) * SHARES / total.max(1);
        target.weight = u32::try_from(share.max(1)).expect("a share of the whole is no more");
    }
    targets
}

/// Whether another slice ends in time: between slices the engine starts again, which takes its time as well. As many
/// as can be judged are run in any case.
fn is_time_left(settle: &PlannedSettle, slices: &[SettleSlice]) -> bool {
    if slices.len() < 2 * WINDOW {
        return true;
    }
    let over_s = slices.last().map_or(0.0, |slice| slice.at_s);
    let each_s = over_s / slices.len().max(1) as f64;
    over_s + each_s.max(settle.slice_s) <= settle.max_s
}

fn one_slice(
    session: &mut Session<'_>,
    environment: &mut Environment,
    plan: &LoadPlan,
) -> Result<(LoadReport, Ends), Stopped> {
    let (mut begin, mut end) = (None, None);
    let report = drive(environment, plan, session.interrupt, &mut |environment, heard| {
        match heard {
            Heard::Event(LoadEvent::Phase { phase: Phase::Measure, .. }) => {
                begin = Some(environment.sample());
            }
            Heard::Event(LoadEvent::Phase { phase: Phase::Drain, .. }) => {
                end = Some(environment.sample());
            }
            Heard::Event(_) | Heard::Tick => {}
        }
        Ok::<(), RunError>(())
    })?;
    if answered_well(&report) == 0 {
        let failed = failures_in_words(&report);
        return Err(Stopped::Broken(format!("no request was answered well in settling: {failed}")));
    }
    match (begin, end) {
        (Some(begin), Some(end)) => Ok((report, Ends { begin, end })),
        _ => Err(Stopped::Broken("the load engine reported a phase that it never told".into())),
    }
}

fn slice(report: &LoadReport, ends: &Ends, began_ns: u64) -> SettleSlice {
    let completed = report.measure.completed;
    let cpu_ns = cpu_ns(&ends.end).zip(cpu_ns(&ends.begin));
    let per_request =
        |(end, begin): (u64, u64)| end.saturating_sub(begin) as f64 / completed as f64 / 1e3;
    SettleSlice {
        at_s: ends.end.at_ns.saturating_sub(began_ns) as f64 / 1e9,
        throughput_per_s: throughput(report),
        cpu_per_request_us: cpu_ns.filter(|_| completed > 0).map(per_request),
        p50_us: report.measure.latency.quantile_us(0.5),
    }
}

/// CPU time of all that is measured; `None` when a counter could not be read.
fn cpu_ns(sample: &Sample) -> Option<u64> {
    let is_measured = |role| !matches!(role, Role::Collector | Role::LoadGenerator | Role::Harness);
    let measured = sample.components.iter().filter(|c| is_measured(c.component.role));
    measured
        .map(|component| match component.cpu_ns {
            Reading::Value(ns) => Some(ns),
            Reading::Missing(_) => None,
        })
        .sum()
}

/// What cannot be read is not known to be stable.
fn is_stable(slices: &[SettleSlice]) -> bool {
    let series = |of: fn(&SettleSlice) -> f64| -> Vec<f64> { slices.iter().map(of).collect() };
    let is_settled = |series: &[f64]| toll_stats::settled(series, WINDOW, TOLERANCE);
    is_settled(&series(|slice| slice.throughput_per_s))
        && is_settled(&series(|slice| slice.cpu_per_request_us.unwrap_or(f64::NAN)))
}

fn settling(slice: &SettleSlice) -> RunEvent {
    RunEvent::Settling {
        at_s: slice.at_s,
        throughput_per_s: slice.throughput_per_s,
        cpu_per_request_us: slice.cpu_per_request_us,
    }
}

#[cfg(test)]
mod tests;
