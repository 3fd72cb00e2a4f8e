//! The engine as a process: a JSON plan in, one JSON event a line out.
//!
//! A second thread writes, so that a reader who is slow does not hold up the load. When nobody reads any more
//! the load stops at its next event. SIGTERM needs no care: there is nothing to clean up.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::engine::run_until;
use crate::{LoadError, LoadEvent, LoadPlan};

/// Reads one [`LoadPlan`], runs it and writes its [`LoadEvent`]s; the last one carries the report, or says
/// why there is none. The exit code is 0 with a report and 1 without, or
/// when nobody read it.
pub fn serve(stdin: impl Read, stdout: impl Write + Send) -> ExitCode {
    let stop = AtomicBool::new(false);
    let (events, lines) = channel();
    thread::scope(|scope| {
        scope.spawn(|| write_lines(stdout, lines, &stop));
        let mut emit = |event| {
            // The writer goes first only when it has set `stop`, which ends the load.
            let _ = events.send(event);
        };
        let result = read_plan(stdin).and_then(|plan| run_until(&plan, &stop, &mut emit));
        let (last, code) = match result {
            Ok(report) => (LoadEvent::Report { report: Box::new(report) }, ExitCode::SUCCESS),
            Err(error) => (failed(&error), ExitCode::FAILURE),
        };
        emit(last);
        drop(events);
        if stop.load(Ordering::Relaxed) { ExitCode::FAILURE } else { code }
    })
}

fn read_plan(mut stdin: impl Read) -> Result<LoadPlan, LoadError> {
    let mut text = String::new();
    stdin.read_to_string(&mut text).map_err(LoadError::PlanUnreadable)?;
    serde_json::from_str(&text).map_err(LoadError::PlanInvalid)
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
