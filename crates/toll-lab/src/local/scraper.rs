//! Asks the pods' Prometheus endpoints through the service program's `scrape`, which runs beside the load.
//!
//! A line on its stdin asks, a line from its stdout answers. Whatever goes wrong is the reading's matter: nothing
//! here ends a run, and nobody waits longer than [`LONGEST_WAIT`].

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::engine::read_lines;
use crate::host::process::{Launcher, Process, log_to};
use crate::host::spawn::SpawnContext;
use crate::topology::Site;
use crate::{LabError, PodMetrics, Reading, sampler};

/// The longest wait for an answer; the program itself gives an endpoint one second.
const LONGEST_WAIT: Duration = Duration::from_millis(1500);

/// How long the endpoints are left alone between questions that nobody waits for: a second less a tick's jitter.
const LEFT_ALONE: Duration = Duration::from_millis(900);

/// The scrape program and the endpoints that it knows.
#[derive(Debug)]
pub(super) struct Scraper {
    process: Arc<Process>,
    stdin: ChildStdin,
    lines: Receiver<String>,
    pods: Vec<String>,
    asked: Instant,
    /// Answers that have not come yet.
    owed: usize,
}

/// Where a pod tells of itself, and what is wanted of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Endpoint {
    pod: String,
    address: SocketAddrV4,
    path: String,
    series: Vec<String>,
}

/// The endpoints of all pods that have one.
pub(super) fn endpoints<'a>(sites: impl Iterator<Item = Site<'a>>) -> Vec<Endpoint> {
    let endpoint = |site: Site<'_>| {
        let metrics = site.service.metrics.as_ref()?;
        Some(Endpoint {
            pod: site.pod.pod.clone(),
            address: SocketAddrV4::new(site.pod.ip, metrics.port),
            path: metrics.path.clone(),
            series: metrics.selected().into_iter().map(str::to_owned).collect(),
        })
    };
    sites.filter_map(endpoint).collect()
}

/// The program's first line.
#[derive(Debug, Serialize)]
struct Targets<'a> {
    targets: &'a [Endpoint],
}

impl Scraper {
    /// Starts the program and names the endpoints to it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        launcher: &Launcher,
        service: &[OsString],
        context: &SpawnContext,
        endpoints: Vec<Endpoint>,
        log: PathBuf,
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::Start {
            component: "scraper".into(),
            program: PathBuf::from(&service[0]),
            source,
        };
        let mut command = Command::new(&service[0]);
        command.args(&service[1..]).arg("scrape");
        log_to(&mut command, &log)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        context.apply(&mut command).map_err(failed)?;
        let mut child = launcher.spawn(command).map_err(failed)?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let lines = read_lines(child.stdout.take().expect("stdout is piped"));
        let process = Arc::new(Process::new("scraper".into(), child, log));
        let targets = Targets { targets: &endpoints };
        let targets = serde_json::to_string(&targets).expect("texts and numbers always make JSON");
        // The readings show when a program has ended.
        let _ = writeln!(stdin, "{targets}");
        let pods = endpoints.into_iter().map(|endpoint| endpoint.pod).collect();
        Ok(Self { process, stdin, lines, pods, asked: Instant::now(), owed: 0 })
    }

    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// What all endpoints tell now. Waits for it.
    pub(super) fn ask(&mut self) -> Vec<PodMetrics> {
        let at_ns = sampler::monotonic_ns();
        let answers = self.question().and_then(|()| self.newest());
        answers.unwrap_or_else(|reason| self.missing(at_ns, &reason))
    }

    /// What all endpoints answered since they were last asked, if they did; asks anew when that is a while ago.
    pub(super) fn ask_in_passing(&mut self) -> Vec<PodMetrics> {
        let at_ns = sampler::monotonic_ns();
        self.come_by().unwrap_or_else(|reason| self.missing(at_ns, &reason))
    }

    fn come_by(&mut self) -> Result<Vec<PodMetrics>, String> {
        let mut answers = Vec::new();
        loop {
            match self.lines.try_recv() {
                Ok(line) => answers = self.understand(&line)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(self.ending()),
            }
        }
        match self.owed {
            0 if self.asked.elapsed() >= LEFT_ALONE => self.question()?,
            1.. if self.asked.elapsed() >= LONGEST_WAIT => return Err(silent()),
            _ => {}
        }
        Ok(answers)
    }

    fn question(&mut self) -> Result<(), String> {
        self.asked = Instant::now();
        writeln!(self.stdin, "now").map_err(|_| self.ending())?;
        self.owed += 1;
        Ok(())
    }

    /// The answer to the last question: those to earlier ones that are late come before it.
    fn newest(&mut self) -> Result<Vec<PodMetrics>, String> {
        let deadline = self.asked + LONGEST_WAIT;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let answers = match line {
                Ok(line) => self.understand(&line)?,
                Err(RecvTimeoutError::Timeout) => return Err(silent()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ending()),
            };
            if self.owed == 0 {
                return Ok(answers);
            }
        }
    }

    fn understand(&mut self, line: &str) -> Result<Vec<PodMetrics>, String> {
        self.owed = self.owed.saturating_sub(1);
        serde_json::from_str(line)
            .map_err(|e| format!("the scraper said what toll cannot read: {e}"))
    }

    fn ending(&self) -> String {
        let how = self.process.ended().map_or_else(String::new, |ending| format!(" with {ending}"));
        format!("the scraper has ended{how}")
    }

    fn missing(&self, at_ns: u64, reason: &str) -> Vec<PodMetrics> {
        let of = |pod: &String| PodMetrics {
            pod: pod.clone(),
            at_ns,
            series: Reading::Missing(reason.to_owned()),
        };
        self.pods.iter().map(of).collect()
    }
}

fn silent() -> String {
    format!("the scraper did not answer within {} ms", LONGEST_WAIT.as_millis())
}

#[cfg(test)]
mod tests;
