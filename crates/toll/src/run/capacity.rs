//! What each variant carries flat out: the throughput of a closed loop, measured in slices round the arms as everything
//! else, at the end of settling in the first round.

use toll_load::{LoadModel, LoadPlan, LoadReport, Stop, WarmUp};

use super::arm::Stand;
use super::load::{Stopped, drive, failures_in_words, throughput};
use super::{RunError, Session, seeds, settle};
use crate::event::{RunEvent, Stage};
use crate::plan::{Plan, PlannedLoad, SliceOf};
use crate::store::{CapacityRecord, StoreError};

/// Enough to keep every core of a small machine busy, few enough to keep queues short.
const CONNECTIONS: u32 = 32;
/// Slices of each arm, their guard and what is counted of them, seconds; longer where answers are slow.
const SLICES: u64 = 4;
const GUARD_S: f64 = 0.1;
const SLICE_S: f64 = 0.5;
/// Longer than a slow answer of a service at its limit.
const TIMEOUT_MS: u64 = 10_000;
/// Tells these slices from those of settling: apart by more than that has.
const FIRST_NUMBER: u64 = 1 << 20;

impl Session<'_> {
    /// Whether a rate refers to a capacity that is not known yet, at the size of the application that it is of.
    pub(super) fn needs_capacity(&self, size: usize) -> Result<bool, StoreError> {
        let sizes = self.plan.sizes();
        let refers = sizes[size].iter().any(|load| load.refers_to_capacity());
        Ok(refers && !self.has_capacities()?)
    }

    fn has_capacities(&self) -> Result<bool, StoreError> {
        let known = self.store.capacities()?;
        let is_known = |variant: &str| known.iter().any(|capacity| capacity.variant == variant);
        Ok(self.plan.ready().all(|(variant, _)| is_known(variant)))
    }
}

/// Measures and stores what the variants of the arms that stand carry. The second arm of the baseline adds nothing.
pub fn measure(session: &mut Session<'_>, arms: &mut [Stand]) -> Result<(), Stopped> {
    session.stage(Stage::Capacity, None)?;
    let answer_s = settle::answer_s(arms);
    let mut slices: Vec<Vec<f64>> = vec![Vec::new(); arms.len()];
    for number in 0..SLICES {
        // There and back, as in a cycle.
        let mut order: Vec<usize> = (0..arms.len()).collect();
        if number % 2 == 1 {
            order.reverse();
        }
        order.retain(|at| !arms[*at].arm.again);
        for at in order {
            slices[at].push(throughput(&one(session, &mut arms[at], (number, answer_s))?));
        }
    }
    let mut capacities = session.store.capacities()?;
    for (stand, slices) in arms.iter().zip(slices).filter(|(stand, _)| !stand.arm.again) {
        let per_s = slices.iter().sum::<f64>() / slices.len() as f64;
        let variant = stand.arm.variant.clone();
        session.emit(&RunEvent::CapacityFound { variant: variant.clone(), per_s })?;
        capacities.retain(|known| known.variant != variant);
        capacities.push(CapacityRecord { variant, per_s, slices });
    }
    session.store.write_capacities(&capacities)?;
    if session.has_capacities()? {
        let capacity_per_s = session.capacity_per_s()?.expect("all capacities are known");
        session.tell_users(capacity_per_s)?;
    }
    Ok(())
}

fn one(
    session: &mut Session<'_>,
    stand: &mut Stand,
    (number, answer_s): (u64, f64),
) -> Result<LoadReport, Stopped> {
    let targets = asking(session.plan).targets(&stand.environment.entry_url());
    let first = targets[0].clone();
    let seed = seeds::of_settling(session.plan, FIRST_NUMBER + number);
    let of = SliceOf { capacity_per_s: None, guard_s: GUARD_S, answer_s, seed };
    let slice_s = SLICE_S.max(of.least_closed_s());
    let plan = LoadPlan {
        targets,
        warm_up: WarmUp { min_s: of.guard_s(), max_s: of.guard_s() },
        timeout_ms: TIMEOUT_MS,
        seed: of.seed,
        ..LoadPlan::new(first, LoadModel::closed(CONNECTIONS), Stop::AfterSeconds(slice_s))
    };
    let failed = |variant: &str, reason: String| {
        Stopped::Fatal(RunError::Capacity { variant: variant.into(), reason })
    };
    if !stand.is_sound() {
        let reasons: Vec<String> = stand.file.invalid.iter().map(ToString::to_string).collect();
        return Err(failed(&stand.arm.variant, reasons.join("; ")));
    }
    match drive((&mut stand.environment, &mut stand.engine), &plan, session.interrupt, &mut |_| ())
    {
        Ok(report) if report.measure.good() == 0 => {
            Err(failed(&stand.arm.variant, failures_in_words(&report)))
        }
        Err(Stopped::Broken(reason)) => Err(failed(&stand.arm.variant, reason)),
        measured => measured,
    }
}

/// What the first load asks whose rate refers to the capacity: another request has another one.
fn asking(plan: &Plan) -> &PlannedLoad {
    let of_rate = plan.loads.iter().find(|load| load.share_of_capacity().is_some());
    let load = of_rate.or_else(|| plan.loads.iter().find(|load| load.refers_to_capacity()));
    load.expect("a capacity is measured when a load refers to it")
}
