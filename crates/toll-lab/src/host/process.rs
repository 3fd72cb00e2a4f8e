//! Starts processes that end with toll, and tells how they ended.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::error::HostError;
use super::log::KeptLog;

/// Lines of a log that an error shows.
const LOG_LINES: usize = 10;

/// Dead orphans that nobody reaps stay in their group: they are not waited for longer than this.
const ORPHANS_DIE_WITHIN: Duration = Duration::from_millis(300);

type Started = io::Result<Child>;

/// A thread that starts all processes of an environment and lives as long as it.
///
/// The kernel sends the death signal when the *thread* that forked ends, so no shorter-lived thread may fork.
#[derive(Debug)]
pub(crate) struct Launcher {
    orders: Option<mpsc::Sender<(Command, mpsc::Sender<Started>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Launcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start() -> io::Result<Self> {
        let (orders, received) = mpsc::channel::<(Command, mpsc::Sender<Started>)>();
        let work = move || {
            for (mut command, answer) in received {
                let _ = answer.send(command.spawn());
            }
        };
        let thread = thread::Builder::new().name("toll-launcher".into()).spawn(work)?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Starts `command`.
    ///
    /// # Errors
    /// What the kernel says to the start or to its preparations in the child.
    pub(crate) fn spawn(&self, command: Command) -> Started {
        let (answer, started) = mpsc::channel();
        let orders = self.orders.as_ref().expect("the launcher runs until it is dropped");
        orders.send((command, answer)).map_err(io::Error::other)?;
        started.recv().map_err(io::Error::other)?
    }

    /// Runs `command` to its end with `input` on its stdin.
    ///
    /// # Errors
    /// As [`Self::spawn`], or when the pipes break.
    pub(crate) fn run(&self, mut command: Command, input: &str) -> io::Result<Output> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn(command)?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        match stdin.write_all(input.as_bytes()) {
            // A program that ends early says why on stderr.
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => return Err(e),
            _ => drop(stdin),
        }
        child.wait_with_output()
    }

    /// Runs `command`, which prints less than a pipe holds, for as long as there is patience.
    ///
    /// # Errors
    /// As [`Self::spawn`]; `TimedOut` or `Interrupted` when it was ended before its time.
    pub(crate) fn run_within(
        &self,
        mut command: Command,
        patience: &Patience<'_>,
    ) -> io::Result<Output> {
        const LOOK_EVERY: Duration = Duration::from_millis(2);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn(command)?;
        let deadline = Instant::now() + patience.limit;
        while child.try_wait()?.is_none() {
            let interrupted = patience.interrupt.load(Ordering::Relaxed);
            if interrupted || Instant::now() >= deadline {
                child.kill()?;
                child.wait()?;
                let limit = patience.limit.as_secs();
                return Err(match interrupted {
                    true => io::ErrorKind::Interrupted.into(),
                    false => io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("no answer within {limit} s"),
                    ),
                });
            }
            thread::sleep(LOOK_EVERY);
        }
        child.wait_with_output()
    }
}

/// How long to wait for a program, and what ends the wait early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience<'a> {
    /// The longest wait.
    pub(crate) limit: Duration,
    /// Whether the user wants to leave.
    pub(crate) interrupt: &'a AtomicBool,
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A process and the group that it leads.
#[derive(Debug)]
pub(crate) struct Process {
    /// Who it is, for errors: `client sidecar`.
    pub(crate) name: String,
    /// Its id, which stays its own until it is killed: its end alone does not free it.
    pub(crate) pid: Pid,
    /// Where its stderr goes.
    pub(crate) log: PathBuf,
    /// Of a program whose log may be long.
    kept: Option<KeptLog>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// It runs, or has ended by itself.
    NotReaped(Child),
    /// It was killed.
    Reaped,
}

impl Process {
    /// Takes charge of `child`.
    pub(crate) fn new(name: String, child: Child, log: PathBuf) -> Self {
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid is a positive i32"));
        Self { name, pid, log, kept: None, state: Mutex::new(State::NotReaped(child)) }
    }

    /// The same process, whose log is kept in part.
    pub(crate) fn logging(mut self, kept: Option<KeptLog>) -> Self {
        self.kept = kept;
        self
    }

    /// All that it has logged, bytes, where not all of it is kept.
    pub(crate) fn cut_log_bytes(&self) -> Option<u64> {
        self.kept.as_ref()?.cut_bytes()
    }

    /// How it ended, if it did so by itself.
    pub(crate) fn ended(&self) -> Option<Ending> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match *self.state() {
            State::NotReaped(_) => Ending::of(waitid(Id::Pid(self.pid), flags).ok()?),
            State::Reaped => None,
        }
    }

    /// Kills its whole process group and does not wait: for many that are to end at once.
    pub(crate) fn strike(&self) {
        if let State::NotReaped(_) = *self.state() {
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
    }

    /// Kills its whole process group, also when the leader has ended, and waits for the leader's end.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(crate) fn kill(&self) -> io::Result<()> {
        let mut state = self.state();
        if let State::NotReaped(child) = &mut *state {
            let _ = killpg(self.pid, Signal::SIGKILL);
            child.wait()?;
            *state = State::Reaped;
            self.wait_for_orphans();
            self.kept.iter().for_each(KeptLog::settle);
        }
        Ok(())
    }

    /// What the leader left behind was killed with it, but dies in its own time, and holds a port until then.
    fn wait_for_orphans(&self) {
        let end = Instant::now() + ORPHANS_DIE_WITHIN;
        while killpg(self.pid, None).is_ok() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The last lines that it wrote.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        self.kept.iter().for_each(KeptLog::settle);
        tail(&self.log)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Has `command` write into `log`, read nothing, and print nothing.
///
/// # Errors
/// When the log cannot be made.
pub(crate) fn log_to(command: &mut Command, log: &Path) -> Result<(), HostError> {
    let make = || {
        let file = File::create(log)?;
        Ok((file.try_clone()?, file))
    };
    let (out, err) =
        make().map_err(|source: io::Error| HostError::Write { path: log.to_owned(), source })?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    Ok(())
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Status(i32),
    /// By a signal.
    Signal(Signal),
}

impl Ending {
    fn of(status: WaitStatus) -> Option<Self> {
        match status {
            WaitStatus::Exited(_, code) => Some(Self::Status(code)),
            WaitStatus::Signaled(_, signal, _) => Some(Self::Signal(signal)),
            _ => None,
        }
    }

    /// Whether it ended by itself with status 0.
    pub fn success(self) -> bool {
        self == Self::Status(0)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The last lines of a log; none when it cannot be read.
fn tail(log: &Path) -> Vec<String> {
    let Ok(file) = File::open(log) else { return Vec::new() };
    let mut last = VecDeque::with_capacity(LOG_LINES + 1);
    for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
        last.push_back(String::from_utf8_lossy(&line).into_owned());
        if last.len() > LOG_LINES {
            last.pop_front();
        }
    }
    last.into()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn only_the_last_ten_lines_of_a_log_are_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (1..=25).map(|i| format!("line {i}\n")).collect();
        std::fs::write(file.path(), text).unwrap();
        let lines = tail(file.path());
        assert_eq!((lines.len(), lines[0].as_str()), (10, "line 16"));
    }

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped()).process_group(0);
        Process::new("sh".into(), command.spawn().unwrap(), PathBuf::new())
    }

    fn ending_of(process: &Process) -> String {
        loop {
            match process.ended() {
                Some(ending) => return ending.to_string(),
                None => thread::yield_now(),
            }
        }
    }

    #[test]
    fn the_way_a_process_ended_is_told_in_words() {
        assert_eq!(ending_of(&shell("exit 3")), "exit status 3");
        assert_eq!(ending_of(&shell("kill -TERM $$")), "signal SIGTERM");
    }

    #[test]
    fn what_a_leader_leaves_behind_is_killed_with_its_group() {
        let leader = shell("sleep 600 & true");
        assert_eq!(ending_of(&leader), "exit status 0");
        let stdout = match &mut *leader.state() {
            State::NotReaped(child) => child.stdout.take().unwrap(),
            State::Reaped => panic!("nobody killed it yet"),
        };
        leader.kill().unwrap();
        // The orphan holds the pipe open: it reads as ended when the orphan has.
        let mut rest = String::new();
        BufReader::new(stdout).read_to_string(&mut rest).unwrap();
    }
}
