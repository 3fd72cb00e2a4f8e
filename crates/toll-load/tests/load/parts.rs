//! A load in shares: over event loops, over engines, from an agreed instant on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::engine::{alone, assert_near, closed, measured, open, plan};
use crate::server::{Reply, Server};
use crate::targets::{hearing, template};
use toll_load::{LoadError, LoadEvent, LoadModel, LoadReport, Part, Phase, Stop, run};

fn models() -> [LoadModel; 2] {
    [closed(5), open(1000.0, 5)]
}

#[test]
fn two_threads_send_exactly_the_number_asked_for() {
    for model in models() {
        let server = Server::start(|_| Reply::ok());
        let mut plan = plan(server.url(), model, Stop::AfterRequests(501));
        plan.threads = 2;
        let report = measured(&plan);
        let measure = &report.measure;
        assert_eq!((measure.scheduled, measure.sent, measure.done), (501, 501, 501));
        assert_eq!((server.requests(), measure.latency.count()), (501, 501));
        assert_eq!((report.threads, report.connections_opened), (2, server.connections()));
        assert!(server.connections() <= 5, "{} connections", server.connections());
    }
}

#[test]
fn two_threads_share_the_clients() {
    let server = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(5), Stop::AfterSeconds(0.3));
    plan.threads = 2;
    let report = measured(&plan);
    assert_eq!((server.connections(), server.most_in_flight()), (5, 5));
    assert_eq!((report.measure.connections_used, report.measure.clients), (5, (5, 5)));
}

#[test]
fn two_threads_tell_one_course_of_events() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), open(400.0, 20), Stop::AfterSeconds(1.0));
    plan.threads = 2;
    let (mut phases, mut progress) = (Vec::new(), Vec::new());
    let _alone = alone();
    let report = run(&plan, &mut |event| match event {
        LoadEvent::Phase { phase, .. } => phases.push(phase),
        LoadEvent::Progress { share, throughput_per_s, .. } => {
            progress.push((share.unwrap(), throughput_per_s));
        }
        LoadEvent::Report { .. } | LoadEvent::Failed { .. } => {}
    })
    .unwrap();
    assert_eq!(phases, [Phase::WarmUp, Phase::Measure, Phase::Drain]);
    assert_eq!((progress.len(), report.measure.series.len()), (4, 4));
    for (quarter, (share, throughput_per_s)) in (1..).zip(&progress) {
        assert_near(*share, f64::from(quarter) / 4.0, 0.01);
        assert_near(*throughput_per_s, 400.0, 0.1);
    }
}

#[test]
fn a_thread_that_is_done_first_does_not_end_the_course_of_events() {
    let server = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(5));
        Reply::ok()
    });
    // Two clients on one thread and one on the other have the same number of requests to send.
    let mut plan = plan(server.url(), closed(3), Stop::AfterRequests(240));
    plan.threads = 2;
    let mut last_share = 0.0;
    let _alone = alone();
    let report = run(&plan, &mut |event| {
        if let LoadEvent::Progress { share, .. } = event {
            last_share = share.unwrap();
        }
    })
    .unwrap();
    let length_s = (report.measure.end_ns - report.measure.begin_ns) as f64 / 1e9;
    let told_s = report.measure.series.last().unwrap().at_s;
    assert!(told_s > length_s - 0.25, "{told_s} of {length_s} s");
    assert!(last_share > 0.9, "{last_share}");
    let counted = report.measure.series.iter().map(|point| point.throughput_per_s / 4.0);
    assert!((counted.sum::<f64>() - 240.0).abs() < 30.0);
}

#[test]
fn a_thread_without_a_client_does_not_keep_requests_from_the_others() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), closed(1), Stop::AfterRequests(100));
    plan.threads = 2;
    let begin = Instant::now();
    let report = measured(&plan);
    assert_eq!((report.measure.done, report.measure.unsent), (100, 0));
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

/// Runs each of three parts on its own.
fn three_parts(model: LoadModel, stop: Stop, server: &Server) -> Vec<LoadReport> {
    let mut plan = plan(server.url(), model, stop);
    plan.targets = vec![template(format!("{}{{{{counter}}}}", server.url()))];
    let mut run_part = |index| {
        plan.part = Part { index, of: 3 };
        measured(&plan)
    };
    (0..3).map(&mut run_part).collect()
}

#[test]
fn three_parts_are_the_whole() {
    for model in models() {
        let (server, heard) = hearing(|request| request.path().into());
        let parts = three_parts(model, Stop::AfterRequests(100), &server);
        let done: Vec<u64> = parts.iter().map(|part| part.measure.done).collect();
        assert_eq!((done, server.requests()), (vec![34, 33, 33], 100));
        let heard: BTreeSet<String> = heard.lock().unwrap().iter().cloned().collect();
        assert_eq!(heard, (0..100).map(|n| format!("/{n}")).collect());
        let whole = LoadReport::merge(&parts).unwrap();
        assert_eq!((whole.measure.done, whole.measure.latency.count()), (100, 100));
        assert_eq!(whole.measure.bytes_in, parts.iter().map(|p| p.measure.bytes_in).sum::<u64>());
        assert_eq!((whole.connections_opened, whole.threads), (server.connections(), 3));
    }
}

#[test]
fn three_parts_of_a_rate_add_up_to_it() {
    let server = Server::start(|_| Reply::ok());
    let parts = three_parts(open(450.0, 6), Stop::AfterSeconds(0.2), &server);
    assert_eq!(parts.iter().map(|part| part.measure.done).collect::<Vec<_>>(), [30, 30, 30]);
    assert_eq!(LoadReport::merge(&parts).unwrap().measure.scheduled, server.requests());
}

#[test]
fn a_part_without_a_client_is_empty_and_ends() {
    let server = Server::start(|_| Reply::ok());
    let parts = three_parts(closed(2), Stop::AfterRequests(90), &server);
    let done: Vec<u64> = parts.iter().map(|part| part.measure.done).collect();
    assert_eq!((done, server.requests()), (vec![45, 45, 0], 90));
    assert_eq!(LoadReport::merge(&parts).unwrap().measure.clients, (2, 2));
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_load_begins_at_the_instant_agreed_on() {
    let first = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&first);
    let server = Server::start(move |_| {
        kept.lock().unwrap().get_or_insert_with(unix_ns);
        Reply::ok()
    });
    let mut plan = plan(server.url(), open(200.0, 4), Stop::AfterSeconds(0.1));
    plan.threads = 2;
    let _alone = alone();
    let start_ns = unix_ns() + 700_000_000;
    plan.start_at_unix_ns = Some(start_ns);
    let report = run(&plan, &mut |_| {}).unwrap();
    assert!(report.measure_begin_unix_ns.abs_diff(start_ns) < 5_000_000);
    let first_ns = first.lock().unwrap().unwrap();
    assert!((start_ns - 1_000_000..start_ns + 50_000_000).contains(&first_ns));
}

#[test]
fn an_instant_that_has_passed_is_an_error() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), closed(1), Stop::AfterSeconds(0.1));
    plan.start_at_unix_ns = Some(unix_ns() - 1);
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::StartIsPast), "{error}");
    assert_eq!(server.requests(), 0);
}
