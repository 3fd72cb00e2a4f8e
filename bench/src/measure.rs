//! Runs one client to its end and says what it cost: CPU time by getrusage(2), peak memory by proc(5).
//!
//! `ru_maxrss` of a child is never below what its parent had when it forked, so the peak is read as `VmHWM`
//! while the client lives; growth in its last moments may be missed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::machine::{self, Pins};

/// What a client said and what it cost.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// User and system time of the client and of what it waited for, seconds.
    pub(crate) cpu_s: f64,
    /// Largest resident memory, MB (10^6 bytes).
    pub(crate) peak_rss_mb: f64,
}

/// Runs clients, one at a time.
#[derive(Debug)]
pub(crate) struct Stopwatch<'a> {
    pub(crate) pins: Option<Pins>,
    /// Where outputs are caught: a pipe that nobody empties would stop the client.
    pub(crate) scratch: &'a Path,
}

impl Stopwatch<'_> {
    const LOOK_EVERY: Duration = Duration::from_millis(20);

    /// Runs a client to its end; one that takes longer than `limit` is killed.
    ///
    /// # Errors
    /// When it cannot be started, or its output cannot be kept.
    pub(crate) fn run(
        &self,
        program: &Path,
        arguments: &[String],
        limit: Duration,
    ) -> io::Result<Run> {
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.scratch.join(name));
        let before_s = cpu_of_children_s()?;
        let mut child = self.start(program, arguments, [&stdout, &stderr])?;
        let (status, peak_rss_mb) = watch(&mut child, limit)?;
        Ok(Run {
            status,
            stdout: read_lossy(&stdout)?,
            stderr: read_lossy(&stderr)?,
            cpu_s: cpu_of_children_s()? - before_s,
            peak_rss_mb,
        })
    }

    fn start(&self, program: &Path, arguments: &[String], out: [&PathBuf; 2]) -> io::Result<Child> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.scratch);
        command.stdin(Stdio::null()).stdout(File::create(out[0])?).stderr(File::create(out[1])?);
        let Some(pins) = self.pins else { return command.spawn() };
        machine::pin_to(pins.client)?;
        let child = command.spawn();
        machine::pin_to(pins.server)?;
        child
    }
}

fn watch(child: &mut Child, limit: Duration) -> io::Result<(ExitStatus, f64)> {
    let begin = Instant::now();
    let mut peak_rss_mb = 0.0;
    loop {
        peak_rss_mb = high_water_mb(child.id()).unwrap_or(peak_rss_mb);
        if let Some(status) = child.try_wait()? {
            return Ok((status, peak_rss_mb));
        }
        if begin.elapsed() > limit {
            child.kill()?;
        }
        thread::sleep(Stopwatch::LOOK_EVERY);
    }
}

/// Absent as soon as the process has ended.
fn high_water_mb(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    kib.trim().strip_suffix(" kB")?.parse().ok().map(|kib: f64| kib * 1024.0 / 1e6)
}

/// CPU time of all children that have been waited for. Clients run one at a time, so a difference is one's own.
fn cpu_of_children_s() -> io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let total = usage.user_time() + usage.system_time();
    Ok(total.num_microseconds() as f64 / 1e6)
}

fn read_lossy(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Run {
        let scratch = tempfile::tempdir().unwrap();
        let stopwatch = Stopwatch { pins: None, scratch: scratch.path() };
        stopwatch.run(Path::new("sh"), &["-c".into(), script.into()], limit).unwrap()
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn outputs_and_status_are_kept_apart() {
        let run = run("echo out; echo err >&2; exit 3", MINUTE);
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(run.status.code(), Some(3));
    }

    #[test]
    fn a_busy_client_costs_cpu_time_and_a_sleeping_one_does_not() {
        let busy = run("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", MINUTE);
        let asleep = run("sleep 0.3", MINUTE);
        assert!(busy.cpu_s > 3.0 * asleep.cpu_s, "{} and {}", busy.cpu_s, asleep.cpu_s);
    }

    #[test]
    fn the_peak_is_the_clients_own_and_not_its_parents() {
        let ballast = vec![1_u8; 64 << 20];
        let run = run("sleep 0.2", MINUTE);
        assert!(run.peak_rss_mb > 0.1 && run.peak_rss_mb < 20.0, "{} MB", run.peak_rss_mb);
        drop(ballast);
    }

    #[test]
    fn a_client_that_does_not_end_is_killed() {
        let run = run("exec sleep 60", Duration::from_millis(100));
        assert!(!run.status.success());
    }
}
