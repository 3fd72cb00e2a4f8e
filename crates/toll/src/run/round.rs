//! One round: every arm comes up side by side and settles, the path's proof is opened, the load goes round the arms in
//! slices, the proof is closed, all go down.

use std::time::Instant;

use super::arm::Stand;
use super::load::Stopped;
use super::{Ending, RunError, Session, capacity, settle, slice};
use crate::event::Stage;
use crate::plan::{Arm, Plan, sizes_of_round};
use crate::store::RoundDir;

/// Runs one round and stores it. Interrupted, nothing of it counts as measured.
pub fn run(session: &mut Session<'_>, number: usize) -> Result<Ending, RunError> {
    let began = Instant::now();
    let round = session.store.begin_round(number)?;
    match measure(session, &round, number) {
        Ok(()) => {}
        Err(Stopped::Interrupted) => return Ok(Ending::Interrupted),
        Err(Stopped::Fatal(error)) => return Err(error),
        Err(Stopped::Broken(reason)) => unreachable!("what breaks is an arm's: {reason}"),
    }
    round.finish(began.elapsed().as_secs_f64())?;
    Ok(Ending::Complete)
}

fn measure(session: &mut Session<'_>, round: &RoundDir, number: usize) -> Result<(), Stopped> {
    for size in sizes_of_round(session.plan, number) {
        let groups = groups(session.plan);
        if groups.len() > 1 && session.needs_capacity(size)? {
            for group in &groups {
                standing(session, round, size, group, &mut |session, arms| {
                    settle::settle(session, arms, number)?;
                    capacity::measure(session, arms)
                })?;
            }
        }
        for group in &groups {
            standing(session, round, size, group, &mut |session, arms| {
                of_group(session, arms, (number, size))
            })?;
        }
    }
    Ok(())
}

/// The arms that stand side by side: all of them, or one where the lab can hold no more.
fn groups(plan: &Plan) -> Vec<Vec<Arm>> {
    if plan.side_by_side {
        vec![plan.arms.clone()]
    } else {
        plan.arms.iter().map(|arm| vec![arm.clone()]).collect()
    }
}

/// What is done with arms that stand.
type Measure<'a> = dyn FnMut(&mut Session<'_>, &mut [Stand]) -> Result<(), Stopped> + 'a;

/// Brings a group of arms up for as long as `measure` takes. Whatever ends it, nothing stays up.
fn standing(
    session: &mut Session<'_>,
    round: &RoundDir,
    size: usize,
    group: &[Arm],
    measure: &mut Measure<'_>,
) -> Result<(), Stopped> {
    let mut arms = Vec::new();
    let measured =
        bring_up(session, round, size, group, &mut arms).and_then(|()| measure(session, &mut arms));
    // A full disk must not keep an environment up: it is taken down even if the event cannot be stored.
    let noted = session.stage(Stage::TakeDown, None);
    // The last one first: each puts back what it found.
    let down = arms.into_iter().rev().map(Stand::down).fold(Ok(()), Result::and);
    // What ended the round comes first.
    measured?;
    down?;
    Ok(noted?)
}

fn bring_up(
    session: &mut Session<'_>,
    round: &RoundDir,
    size: usize,
    group: &[Arm],
    arms: &mut Vec<Stand>,
) -> Result<(), Stopped> {
    for arm in group {
        if session.interrupted() {
            return Err(Stopped::Interrupted);
        }
        arms.push(Stand::up(session, round, arm, size)?);
    }
    Ok(())
}

fn of_group(
    session: &mut Session<'_>,
    arms: &mut [Stand],
    (number, size): (usize, usize),
) -> Result<(), Stopped> {
    settle::settle(session, arms, number)?;
    if session.needs_capacity(size)? {
        capacity::measure(session, arms)?;
    }
    slice::rehearse(session, arms, (number, size))?;
    if session.plan.idle_s > 0.0 {
        idle(session, arms)?;
    }
    session.stage(Stage::Proof, None)?;
    for stand in arms.iter_mut().filter(|stand| stand.is_sound()) {
        let opened = stand.open_proof();
        stand.unless_broken(session, opened)?;
    }
    session.stage(Stage::Slices, None)?;
    slice::all(session, arms, (number, size))?;
    session.stage(Stage::Proof, None)?;
    for stand in arms.iter_mut().filter(|stand| stand.is_sound()) {
        stand.judge_failures(session)?;
    }
    for stand in arms.iter_mut().filter(|stand| stand.is_sound()) {
        stand.close_proof(session)?;
    }
    Ok(())
}

/// A window without load: what each variant costs when nobody calls.
fn idle(session: &mut Session<'_>, arms: &mut [Stand]) -> Result<(), Stopped> {
    session.stage(Stage::Idle, None)?;
    let begins: Vec<_> = arms.iter_mut().map(slice::begin).collect();
    session.wait(session.plan.idle_s)?;
    for (stand, begin) in arms.iter_mut().zip(begins) {
        let end = slice::end(stand, &begin);
        stand.file.idle = Some([begin, end]);
    }
    Ok(())
}
