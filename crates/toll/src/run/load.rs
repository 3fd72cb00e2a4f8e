//! Drives one load in a running environment and listens to what the engine says.

use std::time::{Duration, Instant};

use toll_lab::{Environment, NextLine};
use toll_load::{LoadEvent, LoadPlan, LoadReport};

use super::RunError;

/// How often counters are sampled under load: fast enough for a memory curve of a three-second trial, slow
/// enough to cost well under one per cent of a core.
const TICK: Duration = Duration::from_millis(250);

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

/// Runs `plan` to its end. `hear` is told of every event but the report, and of every tick.
///
/// # Errors
/// When the run is interrupted, a component ends by itself, or `hear` fails.
pub fn drive(
    environment: &mut Environment,
    plan: &LoadPlan,
    interrupted: &dyn Fn() -> bool,
    hear: &mut dyn FnMut(&mut Environment, Heard) -> Result<(), RunError>,
) -> Result<LoadReport, Stopped> {
    let json = serde_json::to_vec(plan).expect("a load plan is plain data");
    let mut load = environment.start_load(&json).map_err(RunError::from)?;
    let mut next_tick = Instant::now() + TICK;
    loop {
        if interrupted() {
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
        if Instant::now() >= next_tick {
            next_tick += TICK;
            hear(environment, Heard::Tick)?;
        }
        if let Some(crash) = environment.crashed() {
            load.kill();
            return Err(Stopped::Broken(crash.to_string()));
        }
    }
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
