//! A load pod: keeps one load engine for a round, and every line of it until it was fetched; runs probes.
//!
//! Plans are numbered, so that one that is sent again after a broken connection is carried out once.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hyper::{Method, StatusCode};

use super::exchange::{Question, Reply};
use super::protocol::{Answered, Ask, EngineEnd, Lines};

/// Lines of stderr that are kept.
const LOG_LINES: usize = 20;

/// The longest that a question for lines may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// A load pod.
#[derive(Debug)]
pub(super) struct Load {
    program: String,
    engine: Mutex<Option<Engine>>,
}

/// A load engine that runs, or ran.
#[derive(Debug)]
struct Engine {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Number of the last plan that it was given.
    plan: usize,
    output: Arc<Output>,
}

/// What it says.
#[derive(Debug, Default)]
struct Output {
    said: Mutex<Said>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Said {
    lines: Vec<String>,
    log: VecDeque<String>,
    ended: Option<EngineEnd>,
}

impl Load {
    pub(super) fn new(program: String) -> Self {
        Self { program, engine: Mutex::default() }
    }

    pub(super) fn reply(&self, question: &Question) -> Reply {
        let answered = match (&question.method, question.segments().as_slice()) {
            (&Method::PUT, ["plans", number]) => match number.parse() {
                Ok(number) => self.take_plan(number, &question.body),
                Err(_) => Ok(Reply::unknown()),
            },
            (&Method::GET, ["lines"]) => Ok(self.lines(
                question.field("from").unwrap_or(0),
                Duration::from_millis(question.field("wait_ms").unwrap_or(0)).min(LONGEST_WAIT),
            )),
            (&Method::DELETE, ["engine"]) => self.end().map(|()| Reply::done()),
            (&Method::POST, ["ask"]) => match question.read::<Ask>() {
                Ok(ask) => self.ask(&ask),
                Err(refused) => return refused,
            },
            _ => Ok(Reply::unknown()),
        };
        answered.unwrap_or_else(|error| {
            Reply::refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
        })
    }

    fn engine(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the engine with the first plan.
    fn take_plan(&self, number: usize, plan: &[u8]) -> std::io::Result<Reply> {
        let mut slot = self.engine();
        let engine = match &mut *slot {
            Some(engine) => engine,
            none => none.insert(Engine::start(&self.program)?),
        };
        if number <= engine.plan {
            // Sent again: the answer to the first got lost.
            return Ok(Reply::done());
        }
        if number != engine.plan + 1 {
            let reason = format!("plan {number} comes after plan {}", engine.plan);
            return Ok(Reply::refused(StatusCode::CONFLICT, &reason));
        }
        engine.plan = number;
        if let Some(stdin) = &mut engine.stdin {
            // One that has ended says so by its lines.
            let _ = stdin.write_all(plan).and_then(|()| stdin.write_all(b"\n"));
        }
        Ok(Reply::done())
    }

    fn lines(&self, from: usize, wait: Duration) -> Reply {
        let output = self.engine().as_ref().map(|engine| Arc::clone(&engine.output));
        match output {
            Some(output) => Reply::json(&output.since(from, wait)),
            None => Reply::refused(StatusCode::CONFLICT, "no plan has come yet"),
        }
    }

    fn end(&self) -> std::io::Result<()> {
        let Some(mut engine) = self.engine().take() else { return Ok(()) };
        drop(engine.stdin.take());
        engine.child.kill()?;
        engine.child.wait().map(drop)
    }

    /// Runs the service program with these arguments to its end.
    fn ask(&self, ask: &Ask) -> std::io::Result<Reply> {
        let mut command = Command::new(&self.program);
        let output = command.arg("service").args(&ask.arguments).stdin(Stdio::null()).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Reply::json(&Answered {
            success: output.status.success(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }))
    }
}

impl Engine {
    fn start(program: &str) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("engine");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let output = Arc::new(Output::default());
        let log = keep(&output, stderr, |said, line| {
            said.log.push_back(line);
            if said.log.len() > LOG_LINES {
                said.log.pop_front();
            }
        });
        let lines = keep(&output, stdout, |said, line| said.lines.push(line));
        let told = Arc::clone(&output);
        let pid = child.id();
        thread::spawn(move || {
            let _ = (lines.join(), log.join());
            told.close(&format!("its output ended (process {pid})"));
        });
        Ok(Self { child, stdin, plan: 0, output })
    }
}

/// A thread that ends with the pipe keeps what comes through it.
fn keep(
    output: &Arc<Output>,
    pipe: impl Read + Send + 'static,
    store: fn(&mut Said, String),
) -> thread::JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            store(&mut output.said(), line);
            output.more.notify_all();
        }
    })
}

impl Output {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An engine that was not told to end does not close its output: it broke.
    fn close(&self, status: &str) {
        let mut said = self.said();
        let log = said.log.iter().cloned().collect();
        said.ended = Some(EngineEnd { success: false, status: status.to_owned(), log });
        self.more.notify_all();
    }

    /// The lines from this number on; waits for one where there is none yet.
    fn since(&self, from: usize, wait: Duration) -> Lines {
        let deadline = Instant::now() + wait;
        let mut said = self.said();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if said.lines.len() > from || said.ended.is_some() || left.is_zero() {
                let lines = said.lines.get(from..).unwrap_or_default().to_vec();
                return Lines { next: from + lines.len(), lines, ended: said.ended.clone() };
            }
            said = self.more.wait_timeout(said, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder is there as long as the engine may be started from it.
    fn engine_of(script: &str) -> (tempfile::TempDir, Load) {
        // A shell in the engine's place, which ignores its first argument.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        // Written by another process: one that a test beside this one forks meanwhile would have the file open for
        // writing, and then nobody may run it (ETXTBSY).
        let text = format!("#!/bin/sh\n{script}\n");
        let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let mut written = std::process::Command::new("sh");
        written.arg("-c").arg(write).arg(&path).arg(text);
        assert!(written.status().unwrap().success());
        let load = Load::new(path.display().to_string());
        (folder, load)
    }

    fn put(load: &Load, number: usize, plan: &str) -> StatusCode {
        let path = format!("/plans/{number}");
        let body = plan.to_owned().into();
        load.reply(&Question { method: Method::PUT, path, body }).status
    }

    fn get(load: &Load, from: usize) -> Lines {
        let path = format!("/lines?from={from}&wait_ms=5000");
        let question = Question { method: Method::GET, path, body: Default::default() };
        serde_json::from_slice(&load.reply(&question).body).unwrap()
    }

    #[test]
    fn a_plan_that_is_sent_again_is_carried_out_once_and_lines_are_kept_until_asked_for() {
        let (_folder, load) = engine_of("while read line; do echo \"did $line\"; done");
        assert_eq!(put(&load, 1, "one"), StatusCode::NO_CONTENT);
        assert_eq!(put(&load, 1, "one"), StatusCode::NO_CONTENT);
        assert_eq!(put(&load, 2, "two"), StatusCode::NO_CONTENT);
        let mut lines = Vec::new();
        while lines.len() < 2 {
            lines.extend(get(&load, lines.len()).lines);
        }
        assert_eq!(lines, ["did one", "did two"]);
        assert_eq!(get(&load, 1).lines, ["did two"], "fetched again");
        assert_eq!(put(&load, 4, "four"), StatusCode::CONFLICT);
        load.end().unwrap();
    }

    #[test]
    fn an_engine_that_breaks_says_so_with_its_last_words() {
        let (_folder, load) = engine_of("echo oh no >&2; exit 3");
        put(&load, 1, "one");
        let ended = get(&load, 0).ended.unwrap();
        assert!(!ended.success);
        assert_eq!(ended.log, ["oh no"]);
    }
}
