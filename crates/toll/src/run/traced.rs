//! Hears each agent before any load: one that is loaded and sends nothing would be found only by the proof, at the end
//! of a round.

use std::time::{Duration, Instant};

use toll_lab::{DataPlane, JavaAgent, LabError};
use toll_load::{LoadModel, LoadPlan, Stop};

use super::arm::Stand;
use super::load::{Stopped, drive};
use super::{RunError, Session, seeds};

/// Sent one after another.
const REQUESTS: u64 = 4;
/// A service that has just started may take its time for the first requests.
const TIMEOUT_MS: u64 = 10_000;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Sends a few requests to each arm that has an agent, and waits for the first span.
///
/// # Errors
/// When none comes, or the user wants to leave.
pub fn hear(session: &mut Session<'_>, arms: &mut [Stand]) -> Result<(), Stopped> {
    for stand in arms.iter_mut().filter(|stand| stand.is_sound()) {
        let DataPlane::Agent(agent) = stand.deployment.data_plane.clone() else { continue };
        let answered = ask(session, stand);
        // Settling says it where nothing is answered.
        if stand.unless_broken(session, answered)?.is_some_and(|answered| answered > 0) {
            let heard = is_heard(session, stand, &agent);
            if stand.unless_broken(session, heard)? == Some(false) {
                let advice = agent.when_silent();
                return Err(RunError::NoSpan { arm: stand.arm.label(), advice }.into());
            }
        }
    }
    Ok(())
}

/// How many of the requests were answered well.
fn ask(session: &mut Session<'_>, stand: &mut Stand) -> Result<u64, Stopped> {
    let load = session.plan.loads.first().expect("a plan has a load");
    let targets = load.targets(&stand.environment.entry_url());
    let first = targets.first().expect("a load asks for something").clone();
    let plan = LoadPlan {
        targets,
        timeout_ms: TIMEOUT_MS,
        seed: seeds::of_settling(session.plan, 0),
        ..LoadPlan::new(first, LoadModel::closed(1), Stop::AfterRequests(REQUESTS))
    };
    let ends = (&mut stand.environment, &mut stand.engine);
    drive(ends, &plan, session.interrupt, &mut |_| ()).map(|report| report.measure.good())
}

/// Whether a span has come, or comes within the time that fresh services may take to settle; yes where nobody counts.
fn is_heard(
    session: &mut Session<'_>,
    stand: &mut Stand,
    agent: &JavaAgent,
) -> Result<bool, Stopped> {
    let patience = Duration::from_secs_f64(session.plan.settle.max_s) + agent.batch_delay() * 2;
    let began = Instant::now();
    loop {
        if spans(stand)? != Some(0) {
            return Ok(true);
        }
        if began.elapsed() >= patience {
            return Ok(false);
        }
        if session.interrupted() {
            return Err(Stopped::Interrupted);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn spans(stand: &mut Stand) -> Result<Option<u64>, Stopped> {
    let cannot = |error: LabError| Stopped::Broken(format!("spans not counted: {error}"));
    stand.environment.spans_so_far().map_err(cannot)
}
