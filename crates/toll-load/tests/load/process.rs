//! The binary as a lab sees it: a plan in, lines out, an exit status.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::{Reply, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use toll_load::LoadEvent;

fn start(url: &str, seconds: f64) -> (Child, BufReader<ChildStdout>) {
    let plan = format!(
        r#"{{"targets": [{{"url": "{url}"}}],
             "model": {{"open": {{"arrivals": {{"rate_per_s": [{{"duration_s": 0, "from": 200, "to": 200}}]}}, "max_connections": 8}}}},
             "warm_up": {{"min_s": 0.2, "max_s": 0.2}}, "stop": {{"after_seconds": {seconds}}},
             "timeout_ms": 1000, "seed": 1}}"#
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_toll-load"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(plan.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn read_event(lines: &mut impl BufRead) -> LoadEvent {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// Waits for the process; panics when it takes longer than three seconds.
fn end_soon(mut child: Child) -> std::process::ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > Duration::from_secs(3) {
            child.kill().unwrap();
            panic!("the process goes on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_last_line_carries_the_report() {
    let server = Server::start(|_| Reply::ok());
    let (child, lines) = start(&server.url(), 0.5);
    let events: Vec<LoadEvent> =
        lines.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(end_soon(child).success());
    let Some(LoadEvent::Report { report }) = events.last() else { panic!("{events:?}") };
    assert_eq!(report.measure.done, 100);
    assert_eq!(report.sent_in_all_phases, server.requests());
}

#[test]
fn a_phase_is_told_when_it_begins() {
    let server = Server::start(|_| Reply::ok());
    let (child, mut lines) = start(&server.url(), 60.0);
    let begin = Instant::now();
    let event = read_event(&mut lines);
    assert!(matches!(event, LoadEvent::Phase { .. }), "{event:?}");
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert!(!end_soon(child).success());
}

#[test]
fn the_load_ends_when_nobody_reads() {
    let server = Server::start(|_| Reply::ok());
    let (child, mut lines) = start(&server.url(), 60.0);
    read_event(&mut lines);
    drop(lines);
    assert_eq!(end_soon(child).code(), Some(1));
}

#[test]
fn a_load_that_cannot_run_says_why_and_fails() {
    let (child, mut lines) = start("http://127.0.0.1:1/", 1.0);
    let event = read_event(&mut lines);
    let LoadEvent::Failed { message, help } = event else { panic!("{event:?}") };
    assert!(message.contains("127.0.0.1:1"), "{message}");
    assert!(help.unwrap().contains("check that the service runs"));
    assert_eq!(end_soon(child).code(), Some(1));
}
