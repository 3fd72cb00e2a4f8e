//! A toll that was started, how it ended, and what `/proc` tells of processes.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::run_dir::Event;

/// Longer than any of these runs takes on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often something is looked at that nobody announces.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A toll under way; killed when the test fails.
pub struct Toll {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// A toll that has ended.
#[derive(Debug)]
pub struct Ended {
    status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Toll {
    /// In a process group of its own, as a shell starts it.
    pub fn start(mut command: Command, stdout: PathBuf, stderr: PathBuf) -> Self {
        command.stdin(Stdio::null());
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let child = command.process_group(0).spawn().unwrap();
        Self { child, stdout, stderr }
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// What a terminal does on Ctrl-C: SIGINT to the whole foreground group. Waits until it has arrived, as
    /// the kernel makes one of two that are pending.
    pub fn press_ctrl_c(&self) {
        killpg(Pid::from_raw(self.pid()), Signal::SIGINT).unwrap();
        let pending = || field(self.pid(), "ShdPnd:");
        let arrived = || pending().is_none_or(|mask| mask.chars().all(|digit| digit == '0'));
        wait_until(arrived, || "SIGINT is still pending".into());
    }

    /// SIGKILL: no handler and no destructor runs.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the run has come to where `is_there` holds.
    pub fn wait_for(&mut self, run: &Path, is_there: impl Fn(&[Event]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_there(&Event::of_latest_start(run)) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "toll ended before that: {}", self.stderr());
            assert!(Instant::now() < deadline, "the run does not come there: {}", self.stderr());
            sleep(LOOK_EVERY);
        }
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let stdout = fs::read_to_string(&self.stdout).unwrap();
                return Ended { status, stdout, stderr: self.stderr() };
            }
            assert!(Instant::now() < deadline, "toll does not end: {}", self.stderr());
            sleep(LOOK_EVERY);
        }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// The process below it whose command line holds `words`; waits until it is there.
    #[track_caller]
    pub fn descendant(&self, words: &str) -> i32 {
        let find =
            || descendants(self.pid()).into_iter().find(|pid| command_line(*pid).contains(words));
        wait_until(|| find().is_some(), || format!("toll started no `{words}`: {}", self.stderr()));
        find().unwrap()
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then seen.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    #[track_caller]
    pub fn assert_status(&self, status: i32) -> &Self {
        assert_eq!(self.status.code(), Some(status), "{self:#?}");
        self
    }

    /// None when a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// stderr holds the words; where a line ends does not matter.
    #[track_caller]
    pub fn assert_says(&self, words: &str) -> &Self {
        let said = self.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "`{words}` is not in: {}", self.stderr);
        self
    }
}

/// Waits until `holds`; the reason why not is asked for when it takes too long.
#[track_caller]
pub fn wait_until(holds: impl Fn() -> bool, why_not: impl Fn() -> String) {
    const LONGEST: Duration = Duration::from_secs(10);
    let deadline = Instant::now() + LONGEST;
    while !holds() {
        assert!(Instant::now() < deadline, "after {LONGEST:?}: {}", why_not());
        sleep(LOOK_EVERY);
    }
}

pub fn kill_hard(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// All processes that `/proc` shows.
pub fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that `pid` started, and theirs.
pub fn descendants(pid: i32) -> Vec<i32> {
    let children: Vec<i32> =
        all().into_iter().filter(|child| field(*child, "PPid:") == Some(pid.to_string())).collect();
    let below = children.iter().flat_map(|child| descendants(*child));
    below.chain(children.iter().copied()).collect()
}

/// Whether the process runs, or waits for something: one that only waits to be reaped has ended.
pub fn is_alive(pid: i32) -> bool {
    field(pid, "State:").is_some_and(|state| !state.starts_with('Z'))
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
