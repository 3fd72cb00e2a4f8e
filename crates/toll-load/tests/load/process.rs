//! The binary as a lab sees it: a plan in, lines out, an exit status.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::engine::alone;
use crate::server::{Reply, Server};
use nix::sys::signal::{Signal, kill};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use toll_load::{LoadEvent, LoadReport, Phase};

fn plan(url: &str, seconds: f64) -> String {
    format!(
        r#"{{"targets": [{{"url": "{url}"}}],
             "model": {{"open": {{"arrivals": {{"rate_per_s": [{{"duration_s": 0, "from": 200, "to": 200}}]}}, "max_connections": 8}}}},
             "warm_up": {{"min_s": 0.2, "max_s": 0.2}}, "stop": {{"after_seconds": {seconds}}},
             "timeout_ms": 1000, "seed": 1}}"#
    )
}

/// The process with this for a first plan; the end of its input is not yet reached.
fn start_with(plan: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toll-load"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(plan.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, stdin, lines)
}

fn start(url: &str, seconds: f64) -> (Child, BufReader<ChildStdout>) {
    let (child, _, lines) = start_with(&plan(url, seconds));
    (child, lines)
}

/// `CLOCK_MONOTONIC`, as in the events.
fn now_ns() -> u64 {
    Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_nanos() as u64
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
    let _alone = alone();
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

/// Reads the events of one plan; gives when its warm-up and its drain began, and its report.
fn read_plan(lines: &mut impl BufRead) -> (u64, u64, LoadReport) {
    let (mut begin_ns, mut drain_ns) = (0, 0);
    loop {
        match read_event(lines) {
            LoadEvent::Phase { phase: Phase::WarmUp, at_ns } => begin_ns = at_ns,
            LoadEvent::Phase { phase: Phase::Drain, at_ns } => drain_ns = at_ns,
            LoadEvent::Report { report } => return (begin_ns, drain_ns, *report),
            _ => {}
        }
    }
}

#[test]
fn plans_are_carried_as_they_come_until_the_input_ends() {
    let server = Server::start(|_| Reply::ok());
    let _alone = alone();
    let slice = plan(&server.url(), 0.2);
    let (child, mut stdin, mut lines) = start_with(&slice);
    let mut opened = read_plan(&mut lines).2.connections_opened;
    for _ in 0..3 {
        let asked_ns = now_ns();
        stdin.write_all(slice.as_bytes()).unwrap();
        let (begin_ns, drain_ns, report) = read_plan(&mut lines);
        let told_ns = now_ns();
        assert_eq!((report.measure.done, report.measure.errors.len()), (40, 0));
        opened += report.connections_opened;
        // A few milliseconds each, on a machine that has nothing else to do.
        assert!(begin_ns - asked_ns < 150_000_000, "{} ns to its begin", begin_ns - asked_ns);
        assert!(told_ns - drain_ns < 150_000_000, "{} ns to its report", told_ns - drain_ns);
    }
    // Eight are allowed, and none is opened twice.
    assert!(opened <= 8 && server.connections() == opened, "{opened} opened");
    drop(stdin);
    assert!(end_soon(child).success());
}

#[test]
fn nothing_is_done_between_two_plans() {
    let server = Server::start(|_| Reply::ok());
    let _alone = alone();
    let (child, _stdin, mut lines) = start_with(&plan(&server.url(), 0.1));
    read_plan(&mut lines);
    let used = || std::fs::read_to_string(format!("/proc/{}/schedstat", child.id())).unwrap();
    let switches = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let status = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("status")).unwrap()
        };
        let of = |text: String| -> u64 {
            let counts = text.lines().filter_map(|line| line.split_once("_ctxt_switches:"));
            counts.map(|(_, count)| count.trim().parse::<u64>().unwrap()).sum()
        };
        tasks.map(status).map(of).sum::<u64>()
    };
    std::thread::sleep(Duration::from_millis(100));
    let before = (used(), switches());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((used(), switches()), before);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    end_soon(child);
}

#[test]
fn a_plan_that_cannot_run_ends_the_process_though_its_input_is_open() {
    let server = Server::start(|_| Reply::ok());
    let (child, mut stdin, mut lines) = start_with(&plan(&server.url(), 0.1));
    read_plan(&mut lines);
    stdin.write_all(plan("http://127.0.0.1:1/", 0.1).as_bytes()).unwrap();
    let event = read_event(&mut lines);
    assert!(matches!(event, LoadEvent::Failed { .. }), "{event:?}");
    assert_eq!(end_soon(child).code(), Some(1));
}
