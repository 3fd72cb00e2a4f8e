//! A faulty upstream beside a healthy one: its failures are counted by kind and are its own.

use std::time::Duration;

use crate::engine::{open, plan};
use crate::listening::sampled;
use crate::server::{Reply, Server};
use toll_load::{ErrorKind, LoadPlan, LoadReport, Sample, Stop, Target};

const HALF: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";

fn two_targets(healthy: &Server, other: &Server, max_connections: u32) -> LoadPlan {
    let model = open(1000.0, max_connections);
    let mut plan = plan(healthy.url(), model, Stop::AfterRequests(300));
    plan.targets.push(Target::get(other.url()));
    plan.timeout_ms = 300;
    plan
}

/// The 99th percentile of the healthy target's latency, milliseconds.
#[track_caller]
fn healthy_p99_ms(samples: &[Sample]) -> f64 {
    let healthy = samples.iter().filter(|s| s.target == 0 && s.outcome == Ok(200));
    let mut latencies: Vec<_> = healthy.map(|s| s.done_ns - s.intended_ns).collect();
    latencies.sort_unstable();
    assert_eq!(latencies.len(), 150);
    latencies[148] as f64 / 1e6
}

#[track_caller]
fn assert_only_its_own(report: &LoadReport, samples: &[Sample], kind: ErrorKind) {
    let measure = &report.measure;
    assert_eq!(measure.errors, [(kind, 15)].into());
    assert_eq!((measure.sent, measure.done, measure.unsent), (300, 285, 0));
    let failed: Vec<_> = samples.iter().filter(|s| s.outcome.is_err()).collect();
    assert!(failed.iter().all(|s| s.target == 1 && s.outcome == Err(kind)));
    let p99_ms = healthy_p99_ms(samples);
    assert!(p99_ms < 250.0, "{kind:?}: p99 {p99_ms} ms");
}

#[test]
fn every_tenth_answer_of_a_faulty_upstream_fails_alone() {
    let table = [
        (ErrorKind::Reset, Reply::Reset),
        (ErrorKind::Closed, Reply::Close(HALF.into())),
        (ErrorKind::Garbage, Reply::Keep("220 smtp.example ESMTP\r\n".into())),
        (ErrorKind::Timeout, Reply::Silence),
    ];
    for (kind, bad) in table {
        let healthy = Server::start(|_| Reply::ok());
        let faulty = Server::start(move |n| if n % 10 == 5 { bad.clone() } else { Reply::ok() });
        let (report, samples) = sampled(&two_targets(&healthy, &faulty, 60));
        assert_eq!((healthy.requests(), faulty.requests()), (150, 150));
        assert_only_its_own(&report, &samples, kind);
    }
}

#[test]
fn a_request_waits_only_when_all_connections_to_its_own_host_are_busy() {
    // 80 ms at 500/s keep 40 of 70 connections busy, the same on both hosts.
    let slow = || {
        Server::start(|_| {
            std::thread::sleep(Duration::from_millis(80));
            Reply::ok()
        })
    };
    let servers = [slow(), slow()];
    let mut plan = two_targets(&servers[0], &servers[1], 70);
    plan.timeout_ms = 2000;
    let (report, _) = sampled(&plan);
    assert_eq!((report.measure.done, report.measure.waited_for_connection), (300, 0));
}

#[test]
fn a_host_that_answers_nothing_does_not_hold_up_the_others() {
    let healthy = Server::start(|_| Reply::ok());
    let silent = Server::start(|n| if n == 0 { Reply::ok() } else { Reply::Silence });
    // 500/s for a host that frees each of 8 connections after 300 ms: most of its requests wait.
    let mut plan = two_targets(&healthy, &silent, 8);
    plan.stop = Stop::AfterSeconds(0.3);
    let (report, samples) = sampled(&plan);
    assert!(report.measure.errors[&ErrorKind::Timeout] >= 8);
    let p99_ms = healthy_p99_ms(&samples);
    assert!(p99_ms < 250.0, "p99 {p99_ms} ms");
}
