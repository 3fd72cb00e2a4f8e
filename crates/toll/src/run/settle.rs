//! The discarded load that brings fresh services to their steady state: slices in a closed loop round the arms, until the
//! throughput and the CPU per request of each are stable, or for as long as the plan allows.
//!
//! A virtual machine compiles while it serves: what it costs in its first seconds says nothing of what it costs
//! later (Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007).
//! Some never come to rest (Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017): that is
//! recorded and reported, but not waited for.

use std::time::{Duration, Instant};

use toll_lab::{Reading, Role, Sample};
use toll_load::{LoadModel, LoadPlan, LoadReport, Stop, Target};

use super::arm::Stand;
use super::load::{Stopped, drive, failures_in_words, throughput};
use super::{RunError, Session, failures, seeds, traced};
use crate::event::{RunEvent, Stage};
use crate::plan::{Plan, PlannedSettle};
use crate::store::{Failing, SettleRecord, SettleSlice};
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

/// Settles the arms of a round, slice by slice in turn: what compiles in one goes on while another is asked.
///
/// # Errors
/// When the run is interrupted, or an arm gives not one good answer in the first round, or its agent no span: the others would not be better.
pub fn settle(session: &mut Session<'_>, arms: &mut [Stand], round: usize) -> Result<(), Stopped> {
    session.stage(Stage::Settle, None)?;
    if round == 1 {
        traced::hear(session, arms)?;
    }
    let settle = session.plan.settle;
    let began = Instant::now();
    for number in 0..most_slices(&settle) {
        for stand in arms.iter_mut().filter(|stand| stand.is_sound()) {
            let settled = one(session, stand, number, (round, began));
            stand.unless_broken(session, settled)?;
        }
        // All bear as many: an arm that stopped at its own first stable look would be less warm than the others.
        if arms.iter().all(is_settled) {
            break;
        }
    }
    rest(session, arms)
}

/// As many slices as fit, and as many as can be judged in any case.
fn most_slices(settle: &PlannedSettle) -> u64 {
    ((settle.max_s / settle.slice_s) as u64).max(u64::from(Settle::SLICES))
}

/// How long an answer of the slowest arm took at the end of settling, seconds; 0 where none settled.
pub fn answer_s(arms: &[Stand]) -> f64 {
    let last = |stand: &Stand| Some(stand.file.settled.as_ref()?.slices.last()?.p50_us / 1e6);
    let sound = arms.iter().filter(|stand| stand.is_sound());
    sound.filter_map(last).fold(0.0, f64::max)
}

/// Whether nothing is left to settle: stable, or broken.
fn is_settled(stand: &Stand) -> bool {
    !stand.is_sound() || stand.file.settled.as_ref().is_some_and(|settled| settled.stable)
}

fn one(
    session: &mut Session<'_>,
    stand: &mut Stand,
    number: u64,
    (round, began): (usize, Instant),
) -> Result<(), Stopped> {
    let plan = slice_plan(session.plan, &stand.environment.entry_url(), number);
    let begin = stand.environment.sample_in_passing();
    let report =
        drive((&mut stand.environment, &mut stand.engine), &plan, session.interrupt, &mut |_| ())?;
    let end = stand.environment.sample_in_passing();
    if report.measure.good() == 0 {
        return Err(nothing_answered(stand, &report, round));
    }
    let fresh = stand.file.settled.as_ref().is_none_or(|settled| settled.slices.len() < WINDOW);
    if let Some(failing) = failures::while_settling(session.plan, &report).filter(|_| !fresh) {
        let failing = stand.with_last_lines(failing);
        return Err(too_many_failed(stand, failing, round));
    }
    let slice = slice(&report, [&begin, &end], began.elapsed().as_secs_f64());
    session.emit(&settling(&stand.arm.label(), &slice))?;
    let none = SettleRecord { slices: vec![], stable: false, rest_s: 0.0 };
    let settled = stand.file.settled.get_or_insert(none);
    settled.slices.push(slice);
    settled.stable = is_stable(&settled.slices);
    Ok(())
}

/// In the first round that is no arm's own affair: the study asks for what is not there.
fn nothing_answered(stand: &Stand, report: &LoadReport, round: usize) -> Stopped {
    let reason = failures_in_words(report);
    match round {
        1 => RunError::NothingAnswered { arm: stand.arm.label(), reason }.into(),
        _ => Stopped::Broken(format!("not one request was answered well: {reason}")),
    }
}

/// In the first round that would be so in all others.
fn too_many_failed(stand: &Stand, failing: Failing, round: usize) -> Stopped {
    match round {
        1 => RunError::Failing { arm: stand.arm.label(), failing }.into(),
        _ => Stopped::Broken(failing.to_string()),
    }
}

/// Sends nothing until the services of all arms are quiet, at most as long as the plan says. Under load a compiler gets
/// the cores last; what it has put by it would do in the first slices, at the expense of their requests.
pub fn rest(session: &mut Session<'_>, arms: &mut [Stand]) -> Result<(), Stopped> {
    let (most_s, began) = (session.plan.settle.rest_s, Instant::now());
    let mut quiet = 0;
    let mut before = samples(arms);
    while quiet < QUIET_LOOKS && began.elapsed().as_secs_f64() < most_s {
        if session.interrupted() {
            return Err(Stopped::Interrupted);
        }
        std::thread::sleep(LOOK_EVERY);
        let now = samples(arms);
        let all_quiet = before.iter().zip(&now).all(|(before, now)| is_quiet(before, now));
        quiet = if all_quiet { quiet + 1 } else { 0 };
        before = now;
    }
    let rest_s = if most_s > 0.0 { began.elapsed().as_secs_f64() } else { 0.0 };
    for settled in arms.iter_mut().filter_map(|stand| stand.file.settled.as_mut()) {
        settled.rest_s += rest_s;
    }
    Ok(())
}

fn samples(arms: &mut [Stand]) -> Vec<Sample> {
    let sound = arms.iter_mut().filter(|stand| stand.is_sound());
    sound.map(|stand| stand.environment.sample_in_passing()).collect()
}

/// What cannot be read is not known to be quiet.
fn is_quiet(before: &Sample, now: &Sample) -> bool {
    let passed_ns = now.at_ns.saturating_sub(before.at_ns) as f64;
    let used_ns = cpu_ns(now).zip(cpu_ns(before)).map(|(now, before)| now.saturating_sub(before));
    used_ns.is_some_and(|used_ns| used_ns as f64 <= passed_ns * QUIET)
}

/// The requests of all loads in turn: code that compiles for the first one's alone is compiled anew when the next
/// asks for something else, in the middle of its slices.
fn slice_plan(plan: &Plan, url: &str, number: u64) -> LoadPlan {
    let settle = plan.settle;
    let stop = Stop::AfterSeconds(settle.slice_s);
    let targets: Vec<Target> =
        plan.loads.iter().flat_map(|load| of_equal_share(load.targets(url))).collect();
    let first = targets.first().expect("a plan has a load").clone();
    LoadPlan {
        targets,
        timeout_ms: TIMEOUT_MS,
        seed: seeds::of_settling(plan, number),
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

/// `ends` are the counters before the first request and after the last answer, so all requests are counted.
fn slice(report: &LoadReport, ends: [&Sample; 2], at_s: f64) -> SettleSlice {
    let completed = report.warm_up.done + report.measure.done;
    let cpu_ns = cpu_ns(ends[1]).zip(cpu_ns(ends[0]));
    let per_request =
        |(end, begin): (u64, u64)| end.saturating_sub(begin) as f64 / completed as f64 / 1e3;
    SettleSlice {
        at_s,
        throughput_per_s: throughput(report),
        cpu_per_request_us: cpu_ns.filter(|_| completed > 0).map(per_request),
        p50_us: report.measure.latency.quantile_us(0.5),
    }
}

/// CPU time of all that is measured; `None` when a counter could not be read.
pub fn cpu_ns(sample: &Sample) -> Option<u64> {
    let is_measured = |role| {
        use Role::{Collector, ControlPlane, Harness, LoadGenerator};
        !matches!(role, ControlPlane | Collector | LoadGenerator | Harness)
    };
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

fn settling(arm: &str, slice: &SettleSlice) -> RunEvent {
    RunEvent::Settling {
        arm: arm.into(),
        at_s: slice.at_s,
        throughput_per_s: slice.throughput_per_s,
        cpu_per_request_us: slice.cpu_per_request_us,
    }
}

#[cfg(test)]
mod tests;
