//! One slice: an arm under a load for a short time, its counters read before the first request is sent and after the last
//! is answered and agents have exported its spans, so that no request's cost falls outside.

use toll_lab::Sample;
use toll_load::{Check, LoadPlan, LoadReport, Stop};

use super::arm::Stand;
use super::load::{Stopped, drive, throughput};
use super::{Session, seeds, settle};
use crate::event::{RunEvent, Stage};
use crate::plan::{Plan, PlannedLoad, PlannedSlice, REHEARSED_S, SliceOf};
use crate::store::{Invalid, SliceRecord};

/// The slices of a round at one size, of the arms that stand, in the plan's order.
pub fn all(
    session: &mut Session<'_>,
    arms: &mut [Stand],
    (round, size): (usize, usize),
) -> Result<(), Stopped> {
    let slices = session.plan.slices(round, size);
    let in_turn = InTurn::of(session, arms, round)?;
    for planned in &slices {
        let Some(stand) = sound(arms, planned) else { continue };
        let measured = one(session, stand, planned, &in_turn);
        let measured = stand.unless_broken(session, measured)?;
        if let Some(slice) = measured {
            tell(session, planned, &slice, slices.len())?;
        }
    }
    Ok(())
}

/// The slices before them that count for nothing, and then no request until the arms are quiet.
pub fn rehearse(
    session: &mut Session<'_>,
    arms: &mut [Stand],
    (round, size): (usize, usize),
) -> Result<(), Stopped> {
    let slices = session.plan.rehearsal(size);
    if slices.is_empty() {
        return Ok(());
    }
    let in_turn = InTurn::of(session, arms, round)?;
    for planned in &slices {
        let Some(stand) = sound(arms, planned) else { continue };
        session.stage(Stage::Rehearse, Some(planned.arm.label()))?;
        let sent = in_turn.engine_plan(session.plan, stand, planned).and_then(|plan| {
            let plan = LoadPlan { stop: Stop::AfterSeconds(REHEARSED_S), ..plan };
            drive(
                (&mut stand.environment, &mut stand.engine),
                &plan,
                session.interrupt,
                &mut |_| (),
            )
        });
        stand.unless_broken(session, sent)?;
    }
    settle::rest(session, arms)
}

/// What the slices of a round have in common.
struct InTurn {
    round: usize,
    capacity_per_s: Option<f64>,
    answer_s: f64,
}

impl InTurn {
    fn of(session: &Session<'_>, arms: &[Stand], round: usize) -> Result<Self, Stopped> {
        let (capacity_per_s, answer_s) = (session.capacity_per_s()?, settle::answer_s(arms));
        Ok(Self { round, capacity_per_s, answer_s })
    }

    fn engine_plan(
        &self,
        plan: &Plan,
        stand: &Stand,
        slice: &PlannedSlice,
    ) -> Result<LoadPlan, Stopped> {
        let Self { round, capacity_per_s, answer_s } = *self;
        let (guard_s, seed) = (plan.guard_of(round), seeds::of_slice(plan, round, slice));
        let of = SliceOf { capacity_per_s, guard_s, answer_s, seed };
        load_of(plan, slice)
            .engine_plan(&stand.environment.entry_url(), &of)
            .ok_or_else(|| Stopped::Broken("the capacity that it refers to is not known".into()))
    }
}

fn sound<'a>(arms: &'a mut [Stand], planned: &PlannedSlice) -> Option<&'a mut Stand> {
    arms.iter_mut().find(|stand| stand.arm == planned.arm && stand.is_sound())
}

fn load_of<'p>(plan: &'p Plan, slice: &PlannedSlice) -> &'p PlannedLoad {
    plan.load(&slice.load).expect("a slice is of one of the plan's loads")
}

fn one(
    session: &mut Session<'_>,
    stand: &mut Stand,
    planned: &PlannedSlice,
    in_turn: &InTurn,
) -> Result<SliceRecord, Stopped> {
    let plan = in_turn.engine_plan(session.plan, stand, planned)?;
    let (load, capacity_per_s) = (load_of(session.plan, planned), in_turn.capacity_per_s);
    let mut samples = vec![begin(stand)];
    let report = drive(
        (&mut stand.environment, &mut stand.engine),
        &plan,
        session.interrupt,
        &mut |environment| {
            samples.push(environment.sample_in_passing());
        },
    )?;
    session.wait(session.plan.exports_after_s())?;
    let closing = end(stand, &samples[0]);
    samples.push(closing);
    stand.note_sent(load, &report);
    let slice = SliceRecord {
        load: load.name.clone(),
        cycle: planned.cycle,
        place: planned.place,
        rate_per_s: load.rate_per_s(capacity_per_s),
        users: load.users(capacity_per_s),
        invalid: why_invalid(load, &report),
        report,
        samples,
    };
    stand.dir.add_slice(&slice)?;
    Ok(slice)
}

/// What pods tell of themselves is asked before the counters, and at the end after them: answering it costs the pods,
/// and that is no request's cost.
pub(super) fn begin(stand: &mut Stand) -> Sample {
    let sample = stand.environment.sample();
    if sample.metrics.is_empty() {
        return sample;
    }
    Sample { metrics: sample.metrics, ..stand.environment.sample_in_passing() }
}

pub(super) fn end(stand: &mut Stand, begin: &Sample) -> Sample {
    let counted = stand.environment.sample_in_passing();
    // In passing they are asked but once a second, and a slice may be shorter.
    if begin.metrics.is_empty() {
        return counted;
    }
    Sample { metrics: stand.environment.sample().metrics, ..counted }
}

/// Failed requests that nobody tolerates, or a schedule that was not carried; nothing else makes a slice invalid (docs/method.md rule 9). Beyond
/// its capacity a variant cannot carry a schedule, and a curve goes there to show it.
fn why_invalid(load: &PlannedLoad, report: &LoadReport) -> Vec<Invalid> {
    let judged = |check: &&Check| match check.name.as_str() {
        Check::ERRORS => load.tolerated == 0.0,
        Check::SCHEDULE => !load.is_of_curve(),
        _ => false,
    };
    let failed = report.checks.iter().filter(judged).filter(|check| !check.holds);
    let reason = |Check { name, seen, bound, .. }: &Check| Invalid::Check {
        name: name.clone(),
        seen: seen.clone(),
        bound: bound.clone(),
    };
    failed.map(reason).collect()
}

fn tell(
    session: &mut Session<'_>,
    planned: &PlannedSlice,
    slice: &SliceRecord,
    all: usize,
) -> Result<(), Stopped> {
    Ok(session.emit(&RunEvent::SliceEnded {
        cycle: planned.cycle,
        progress: (planned.place + 1, all),
        arm: planned.arm.label(),
        load: planned.load.clone(),
        throughput_per_s: throughput(&slice.report),
        p50_us: slice.report.measure.latency.quantile_us(0.5),
        invalid: slice.invalid.iter().map(ToString::to_string).collect(),
    })?)
}
