//! The engine as a process: JSON plans in, one JSON event a line out.
//!
//! A plan is carried out as soon as its closing brace is read; its last event is the report, and then the next plan is
//! read. A second thread writes, so that a reader who is slow does not hold up the load. When nobody reads any more
//! the load stops at its next event. SIGTERM needs no care: there is nothing to clean up.

use std::io::{BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Deserializer;

use crate::{Listener, LoadError, LoadEvent, LoadPlan, Session};

/// Reads one [`LoadPlan`] after the other, runs each as it comes and writes its [`LoadEvent`]s; the last one carries
/// the report. Plans that fit find their connections open ([`Session`]). The end of the input ends the process.
///
/// The exit code is 0 when each plan has its report. It is 1 after the first that has none, whose last event says why,
/// or when nobody reads.
pub fn serve(stdin: impl Read, stdout: impl Write + Send) -> ExitCode {
    let stop = AtomicBool::new(false);
    let (events, lines) = channel();
    thread::scope(|scope| {
        scope.spawn(|| write_lines(stdout, lines, &stop));
        let mut emit = |event| {
            // The writer goes first only when it has set `stop`, which ends the load.
            let _ = events.send(event);
        };
        let carried = carry_all(stdin, &stop, &mut emit);
        if let Err(error) = &carried {
            emit(failed(error));
        }
        drop(events);
        let is_well = carried.is_ok() && !stop.load(Ordering::Relaxed);
        if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}

fn carry_all(
    stdin: impl Read,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(LoadEvent),
) -> Result<(), LoadError> {
    let mut session = Session::new();
    let plans = Deserializer::from_reader(BufReader::new(stdin)).into_iter::<LoadPlan>();
    for plan in plans {
        let plan = plan.map_err(unreadable)?;
        let report = session.run(&plan, Listener { stop, emit, samples: None })?;
        emit(LoadEvent::Report { report: Box::new(report) });
    }
    Ok(())
}

fn unreadable(error: serde_json::Error) -> LoadError {
    if error.is_io() {
        LoadError::PlanUnreadable(error.into())
    } else {
        LoadError::PlanInvalid(error)
    }
}

fn failed(error: &LoadError) -> LoadEvent {
    LoadEvent::Failed { message: error.to_string(), help: error.help() }
}

fn write_lines(mut stdout: impl Write, events: Receiver<LoadEvent>, stop: &AtomicBool) {
    for event in events {
        if write_line(&mut stdout, &event).is_err() {
            stop.store(true, Ordering::Relaxed);
            return;
        }
    }
}

fn write_line(stdout: &mut impl Write, event: &LoadEvent) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    stdout.write_all(&line)?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_is_no_json_is_answered_with_what_to_do() {
        let mut out = Vec::new();
        assert_eq!(serve(&b"rate: 5"[..], &mut out), ExitCode::FAILURE);
        let event: LoadEvent = serde_json::from_slice(&out).unwrap();
        let LoadEvent::Failed { message, help } = event else { panic!("{event:?}") };
        assert!(message.contains("not valid"), "{message}");
        assert!(help.unwrap().contains("JSON"));
    }
}
