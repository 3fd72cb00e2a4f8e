//! The load program as a process: plans on its stdin, lines from its stdout.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::LabError;
use crate::host::process::{Launcher, Process, log_to};
use crate::host::spawn::SpawnContext;
use crate::output::NextLine;

/// How long it may take to end once it was told that there are no more plans.
const LONGEST_END: Duration = Duration::from_secs(10);

/// A load program that runs.
#[derive(Debug)]
pub(crate) struct LocalEngine {
    stdin: ChildStdin,
    output: Output,
}

/// What it says, and how it ends.
#[derive(Debug)]
struct Output {
    process: Arc<Process>,
    lines: Receiver<String>,
}

impl LocalEngine {
    pub(super) fn start(
        launcher: &Launcher,
        argv: &[OsString],
        context: &SpawnContext,
        log: PathBuf,
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::Start {
            component: "load generator".into(),
            program: PathBuf::from(&argv[0]),
            source,
        };
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]);
        log_to(&mut command, &log)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        context.apply(&mut command).map_err(failed)?;
        let mut child = launcher.spawn(command).map_err(failed)?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = read_lines(child.stdout.take().expect("stdout is piped"));
        let process = Arc::new(Process::new("load generator".into(), child, log));
        Ok(Self { stdin, output: Output { process, lines } })
    }

    pub(super) fn process(&self) -> Arc<Process> {
        Arc::clone(&self.output.process)
    }

    pub(crate) fn send(&mut self, plan: &[u8]) -> Result<(), LabError> {
        match self.stdin.write_all(plan).and_then(|()| self.stdin.write_all(b"\n")) {
            // A program that ended says more by its status: `next_line` tells.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(LabError::LoadPipe { source: e, log: self.output.process.log_tail() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn next_line(&mut self, wait: Duration) -> NextLine {
        self.output.next_line(wait)
    }

    pub(crate) fn kill(&mut self) {
        if let Err(e) = self.output.process.kill() {
            tracing::warn!("the load generator was not ended: {e}");
        }
    }

    /// Lines that nobody asked for any more are dropped.
    pub(crate) fn end(self) -> Result<(), LabError> {
        let Self { stdin, mut output } = self;
        drop(stdin);
        let deadline = Instant::now() + LONGEST_END;
        loop {
            match output.next_line(deadline.saturating_duration_since(Instant::now())) {
                NextLine::Ended(outcome) => return outcome,
                NextLine::Line(_) => {}
                NextLine::Quiet => {
                    let (waited_s, log) = (LONGEST_END.as_secs(), output.process.log_tail());
                    return Err(LabError::LoadStuck { waited_s, log });
                }
            }
        }
    }
}

impl Output {
    fn next_line(&mut self, wait: Duration) -> NextLine {
        let deadline = Instant::now() + wait;
        match self.lines.recv_timeout(wait) {
            Ok(line) => NextLine::Line(line),
            Err(RecvTimeoutError::Timeout) => NextLine::Quiet,
            Err(RecvTimeoutError::Disconnected) => self.ending(deadline),
        }
    }

    /// Its stdout is closed; the end itself follows at once, or the program does something odd.
    fn ending(&self, deadline: Instant) -> NextLine {
        loop {
            match self.process.ended() {
                Some(ending) if ending.success() => return NextLine::Ended(Ok(())),
                Some(ending) => {
                    return NextLine::Ended(Err(LabError::Crashed {
                        component: self.process.name.clone(),
                        ending,
                        log: self.process.log_tail(),
                    }));
                }
                None if Instant::now() >= deadline => return NextLine::Quiet,
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

/// A thread that ends with the pipe hands the lines on, so that a reader can wait with a bound.
pub(super) fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
