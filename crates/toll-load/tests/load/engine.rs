//! The engine as a library.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::server::{OK, Reply, Server};
use toll_load::{
    Arrivals, Body, ErrorKind, LoadError, LoadEvent, LoadModel, LoadPlan, LoadReport, Phase,
    PhaseReport, Stop, Target, WarmUp, run, run_until,
};

/// The tests of pacing want the machine for themselves; each test here takes it.
static MACHINE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn plan(url: String, model: LoadModel, stop: Stop) -> LoadPlan {
    LoadPlan { timeout_ms: 2000, seed: 7, ..LoadPlan::new(Target::get(url), model, stop) }
}

pub fn closed(connections: u32) -> LoadModel {
    LoadModel::closed(connections)
}

pub fn open(rate_per_s: f64, max_connections: u32) -> LoadModel {
    LoadModel::open(rate_per_s, max_connections)
}

pub fn measured(plan: &LoadPlan) -> LoadReport {
    let _alone = alone();
    run(plan, &mut |_| {}).unwrap()
}

pub fn holds(report: &LoadReport, name: &str) -> bool {
    report.checks.iter().find(|check| check.name == name).unwrap().holds
}

#[track_caller]
pub fn assert_near(seen: f64, expected: f64, share: f64) {
    assert!((seen / expected - 1.0).abs() <= share, "{seen} instead of {expected}");
}

#[test]
fn a_closed_loop_sends_exactly_the_number_asked_for() {
    let server = Server::start(|_| Reply::ok());
    let report = measured(&plan(server.url(), closed(4), Stop::AfterRequests(1003)));
    let measure = &report.measure;
    assert_eq!((measure.scheduled, measure.sent, measure.done), (1003, 1003, 1003));
    assert_eq!(measure.statuses.get(&200), Some(&1003));
    assert_eq!(measure.latency.count(), 1003);
    assert_eq!((report.sent_in_all_phases, server.requests()), (1003, 1003));
    assert_eq!(measure.bytes_in, 1003 * OK.len() as u64);
}

#[test]
fn a_closed_loop_opens_and_uses_all_its_connections() {
    let server = Server::start(|_| Reply::ok());
    let report = measured(&plan(server.url(), closed(7), Stop::AfterSeconds(0.5)));
    assert_eq!((server.connections(), report.connections_opened), (7, 7));
    assert_eq!(report.measure.connections_used, 7);
    assert!(holds(&report, "connections") && holds(&report, "littles-law"), "{:?}", report.checks);
}

#[test]
fn an_open_loop_sends_the_whole_schedule() {
    let server = Server::start(|_| Reply::ok());
    let report = measured(&plan(server.url(), open(500.0, 20), Stop::AfterSeconds(1.0)));
    let measure = &report.measure;
    assert_eq!((measure.scheduled, measure.sent, measure.unsent), (500, 500, 0));
    assert_eq!((measure.done, server.requests()), (500, 500));
    assert!(holds(&report, "schedule") && holds(&report, "littles-law"), "{:?}", report.checks);
    assert_eq!(measure.end_ns - measure.begin_ns, 1_000_000_000);
}

#[test]
fn poisson_arrivals_have_the_rate_on_average() {
    let server = Server::start(|_| Reply::ok());
    let arrivals = Arrivals::poisson(400.0);
    let model = LoadModel::Open { arrivals, max_connections: 50 };
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(2.0)));
    assert_near(report.measure.sent as f64, 800.0, 0.2);
    assert_eq!(report.measure.sent, server.requests());
}

#[test]
fn an_open_loop_ends_after_a_number_of_requests() {
    let server = Server::start(|_| Reply::ok());
    let report = measured(&plan(server.url(), open(1000.0, 20), Stop::AfterRequests(321)));
    assert_eq!((report.measure.sent, report.measure.done, server.requests()), (321, 321, 321));
}

#[test]
fn failures_are_counted_by_kind_and_do_not_stop_the_load() {
    let oversize = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let table = [
        (ErrorKind::Reset, Reply::Reset),
        (
            ErrorKind::Closed,
            Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".into()),
        ),
        (ErrorKind::Timeout, Reply::Silence),
        (ErrorKind::Garbage, Reply::Keep("220 smtp.example ESMTP\r\n".into())),
        (ErrorKind::Oversize, Reply::Keep(oversize.into())),
    ];
    for (kind, bad) in table {
        let server = Server::start(move |n| if n % 10 == 5 { bad.clone() } else { Reply::ok() });
        let mut plan = plan(server.url(), closed(3), Stop::AfterRequests(100));
        plan.timeout_ms = 300;
        let report = measured(&plan);
        let errors: Vec<_> = report.measure.errors.iter().map(|(kind, n)| (*kind, *n)).collect();
        assert_eq!(errors, [(kind, 10)]);
        assert_eq!((report.measure.sent, report.measure.done), (100, 90), "{kind:?}");
        assert_eq!(report.connections_opened, server.connections());
        assert!(!holds(&report, "errors"));
    }
}

#[test]
fn statuses_are_counted_apart_and_fail_the_check() {
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";
    let server =
        Server::start(move |n| if n % 4 == 0 { Reply::Keep(busy.into()) } else { Reply::ok() });
    let report = measured(&plan(server.url(), closed(2), Stop::AfterRequests(40)));
    assert_eq!(report.measure.statuses, [(200, 30), (503, 10)].into());
    assert!(report.measure.errors.is_empty() && !holds(&report, "errors"));
}

#[test]
fn chunked_answers_are_read_to_their_end() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n";
    let server = Server::start(move |_| Reply::Keep(chunked.into()));
    let report = measured(&plan(server.url(), closed(2), Stop::AfterRequests(200)));
    assert_eq!((report.measure.done, report.connections_opened), (200, 2));
}

#[test]
fn a_connection_closed_after_each_answer_is_replaced() {
    let last = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end";
    let server = Server::start(move |_| Reply::Close(last.into()));
    for model in [closed(3), open(500.0, 10)] {
        let before = server.connections();
        let report = measured(&plan(server.url(), model, Stop::AfterRequests(60)));
        assert_eq!((report.measure.done, report.measure.errors.len()), (60, 0));
        assert!(report.connections_opened >= 60);
        assert_eq!(report.connections_opened, server.connections() - before);
    }
}

#[test]
fn answers_to_head_have_no_body() {
    let server =
        Server::start(|_| Reply::Keep("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n".into()));
    let mut plan = plan(server.url(), closed(2), Stop::AfterRequests(50));
    plan.targets[0].method = "HEAD".into();
    assert_eq!(measured(&plan).measure.done, 50);
}

#[test]
fn a_body_larger_than_the_socket_takes_at_once_is_sent_whole() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), closed(2), Stop::AfterRequests(6));
    plan.targets[0].method = "POST".into();
    plan.targets[0].body = Body(vec![b'x'; 20_000_000]);
    let report = measured(&plan);
    assert_eq!((report.measure.done, server.body_bytes()), (6, 120_000_000));
    assert!(report.measure.bytes_out > 120_000_000);
}

/// Answers before it has read the request's body, as a server does that refuses its length.
fn hasty_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        // Kept open and unread: the rest of the body never fits into the socket's buffers.
        let mut unread = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; 64]).unwrap();
            stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n").unwrap();
            unread.push(stream);
        }
    });
    url
}

#[test]
fn an_answer_before_the_request_is_written_ends_the_connection() {
    let mut plan = plan(hasty_server(), closed(1), Stop::AfterRequests(3));
    plan.targets[0].method = "POST".into();
    plan.targets[0].body = Body(vec![b'x'; 50_000_000]);
    let report = measured(&plan);
    assert_eq!((report.measure.done, report.measure.errors.len()), (3, 0));
    assert!((3..=4).contains(&report.connections_opened), "{}", report.connections_opened);
}

#[test]
fn a_target_that_accepts_nothing_is_an_error_with_help() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plan = plan(format!("http://{address}/"), closed(2), Stop::AfterSeconds(1.0));
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
    assert!(error.help().unwrap().contains("service runs"));
}

#[test]
fn a_target_that_accepts_nothing_is_an_error_beside_one_that_answers_and_on_any_thread() {
    let server = Server::start(|_| Reply::ok());
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut plan = plan(server.url(), closed(8), Stop::AfterSeconds(1.0));
    plan.targets.push(Target::get(format!("http://{nobody}/")));
    plan.threads = 4;
    for model in [closed(8), open(100.0, 8)] {
        plan.model = model;
        let error = run(&plan, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(&nobody.to_string()), "{error}");
    }
}

#[test]
fn a_target_that_is_gone_does_not_hold_up_the_other() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(5));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(4), Stop::AfterSeconds(2.0));
    plan.targets.push(Target::get(vanishing_server()));
    plan.timeout_ms = 100;
    let measure = measured(&plan).measure;
    // Half of the requests wait for a timeout each: every client ends one of them in about 100 ms.
    assert!(measure.done >= 40, "{} answered", measure.done);
    assert!(measure.unsent >= 20, "{} never sent", measure.unsent);
    assert_eq!(measure.scheduled, measure.sent + measure.unsent);
}

#[test]
fn a_phase_that_ends_by_number_lasts_until_its_last_answer() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(300));
        Reply::ok()
    });
    for model in [closed(4), open(1000.0, 10)] {
        let measure = measured(&plan(server.url(), model, Stop::AfterRequests(4))).measure;
        assert_eq!((measure.done, measure.completed), (4, 4));
        assert!(measure.end_ns - measure.begin_ns >= 300_000_000);
    }
}

#[test]
fn bytes_behind_an_answer_end_the_connection_and_not_the_answer() {
    let server = Server::start(|_| Reply::Keep(format!("{OK}\r\n")));
    let report = measured(&plan(server.url(), closed(2), Stop::AfterRequests(20)));
    assert_eq!((report.measure.done, report.measure.errors.len()), (20, 0));
}

/// Accepts two connections, then is gone.
fn vanishing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || (listener.accept(), listener.accept()));
    url
}

#[test]
fn a_target_that_is_gone_is_tried_again_at_a_bounded_pace() {
    let mut plan = plan(vanishing_server(), closed(2), Stop::AfterSeconds(1.0));
    plan.timeout_ms = 500;
    let report = measured(&plan);
    let attempts = report.measure.errors[&ErrorKind::Connect];
    // Two slots, one attempt each in every twentieth of a second, and half a second's grace at the end.
    assert!((4..=62).contains(&attempts), "{attempts} attempts");
    assert!(report.measure.cpu_ns < 500_000_000, "{} ns of CPU time", report.measure.cpu_ns);
}

#[test]
fn a_number_of_requests_that_cannot_be_sent_does_not_take_for_ever() {
    for model in [closed(2), open(1000.0, 2)] {
        let mut plan = plan(vanishing_server(), model, Stop::AfterRequests(1000));
        plan.timeout_ms = 200;
        let report = measured(&plan);
        assert_eq!(report.measure.scheduled, 1000);
        assert!(report.measure.unsent > 900, "{} unsent", report.measure.unsent);
    }
}

#[test]
fn a_server_that_stalls_shows_in_p99_as_arithmetic_says() {
    const PERIOD: Duration = Duration::from_millis(1000);
    // So long that what this machine itself sleeps through hardly counts beside it.
    const STALL: Duration = Duration::from_millis(400);
    let begin = Instant::now();
    let server = Server::start(move |_| {
        let into_period = begin.elapsed().as_nanos() % PERIOD.as_nanos();
        let left = STALL.as_nanos().saturating_sub(into_period);
        sleep(Duration::from_nanos(left as u64));
        Reply::ok()
    });
    let report = measured(&plan(server.url(), open(300.0, 200), Stop::AfterSeconds(4.0)));
    assert_eq!((report.measure.sent, report.measure.unsent), (1200, 0));
    // P(latency > x) = (STALL - x) / PERIOD, hence p99 = 400 ms - 0.01 x 1000 ms.
    assert_near(report.measure.latency.quantile_us(0.99), 390_000.0, 0.08);
    assert!(report.measure.latency.quantile_us(0.5) < 5_000.0);
}

#[test]
fn a_request_that_waits_for_a_connection_keeps_its_due_time() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(20));
        Reply::ok()
    });
    // One connection serves 50 a second; 40 requests come in 0.4 s and take 0.8 s.
    let report = measured(&plan(server.url(), open(100.0, 1), Stop::AfterRequests(40)));
    let measure = &report.measure;
    assert_eq!((measure.sent, measure.done), (40, 40));
    assert!(measure.waited_for_connection >= 35, "{} waited", measure.waited_for_connection);
    let service_us = measure.service_time.quantile_us(0.5);
    assert_near(service_us, 20_000.0, 0.2);
    // The 40th is due at 0.39 s and is answered at 0.8 s.
    assert_near(measure.latency.max_us(), 40.0 * service_us - 390_000.0, 0.2);
    assert!(!holds(&report, "send-lag"));
}

#[test]
fn an_overload_shows_in_completed_though_every_request_is_answered_in_the_end() {
    // One connection that answers every 10 ms carries 100/s; 150/s are offered for a second.
    let server = Server::start(|_| {
        sleep(Duration::from_millis(10));
        Reply::ok()
    });
    let plan = plan(server.url(), open(150.0, 1), Stop::AfterSeconds(1.0));
    let measure = measured(&plan).measure;
    assert_eq!(measure.done + measure.unsent, measure.scheduled);
    assert!((60..=105).contains(&measure.completed), "{} completed", measure.completed);
}

#[test]
fn a_schedule_that_cannot_be_kept_is_reported() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(10));
        Reply::ok()
    });
    let report = measured(&plan(server.url(), open(1000.0, 2), Stop::AfterSeconds(0.5)));
    let measure = &report.measure;
    assert_eq!(measure.scheduled, 500);
    assert_eq!(measure.sent + measure.unsent, 500);
    assert!((300..450).contains(&measure.unsent), "{} unsent", measure.unsent);
    assert!(!holds(&report, "schedule"));
}

#[test]
fn answers_that_come_after_the_end_of_the_phase_belong_to_it() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(300));
        Reply::ok()
    });
    let report = measured(&plan(server.url(), open(50.0, 40), Stop::AfterSeconds(0.5)));
    assert_eq!((report.measure.scheduled, report.measure.done), (25, 25));
}

/// Requests of a phase that came to an end: answered, failed, or left when the load was stopped. Attempts to
/// connect are no requests.
fn ended(phase: &PhaseReport) -> u64 {
    let attempts = [ErrorKind::Connect, ErrorKind::Tls];
    let failed = phase.errors.iter().filter(|(kind, _)| !attempts.contains(kind));
    phase.statuses.values().sum::<u64>() + failed.map(|(_, n)| n).sum::<u64>() + phase.unanswered
}

/// A server that is slow enough for answers to cross the phases' bounds, and of ten requests refuses one, breaks
/// one off and leaves one without an answer. Counts its answers of success.
fn unreliable_server() -> (Server, Arc<AtomicU64>) {
    let successes = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&successes);
    let server = Server::start(move |number| {
        sleep(Duration::from_millis(60));
        match number % 10 {
            3 => Reply::Keep("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".into()),
            5 => Reply::Close("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".into()),
            7 => Reply::Silence,
            _ => {
                counted.fetch_add(1, Ordering::Relaxed);
                Reply::ok()
            }
        }
    });
    (server, successes)
}

#[test]
fn every_request_sent_ends_once_in_the_phase_that_sent_it() {
    for model in [closed(8), open(100.0, 50)] {
        let (server, successes) = unreliable_server();
        let mut plan = plan(server.url(), model, Stop::AfterSeconds(1.0));
        plan.warm_up = WarmUp { min_s: 0.5, max_s: 0.5 };
        plan.timeout_ms = 600;
        let report = measured(&plan);
        let phases = [&report.warm_up, &report.measure];
        for phase in phases {
            assert!(phase.sent > 10 && !phase.errors.is_empty(), "{phase:?}");
            assert_eq!((ended(phase), phase.unanswered), (phase.sent, 0));
        }
        assert_eq!(report.sent_in_all_phases, server.requests());
        let told: u64 = phases.iter().filter_map(|phase| phase.statuses.get(&200)).sum();
        assert_eq!(told, successes.load(Ordering::Relaxed), "every answer counts once");
        let crossed = report.warm_up.done + report.measure.done;
        let within = report.warm_up.completed + report.measure.completed;
        assert!(crossed > within, "some answers came in while the load drained");
    }
}

#[test]
fn what_a_stopped_load_left_unanswered_is_neither_answered_nor_failed() {
    let (server, _) = unreliable_server();
    let _alone = alone();
    let plan = plan(server.url(), closed(8), Stop::AfterSeconds(30.0));
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let report = run_until(&plan, &stop, &mut |_| {
        stop.store(began.elapsed() > Duration::from_millis(500), Ordering::Relaxed);
    })
    .unwrap();
    assert!(report.measure.unanswered > 0, "{:?}", report.measure);
    assert_eq!(ended(&report.measure), report.measure.sent);
    assert_eq!(report.sent_in_all_phases, report.measure.sent);
}

#[test]
fn warm_up_is_not_mixed_into_the_measured_phase() {
    let cold = "HTTP/1.1 503 Cold\r\ncontent-length: 0\r\n\r\n";
    let begin = Instant::now();
    let server = Server::start(move |_| match begin.elapsed() {
        age if age < Duration::from_millis(200) => Reply::Keep(cold.into()),
        _ => Reply::ok(),
    });
    for model in [closed(4), open(500.0, 20)] {
        let mut plan = plan(server.url(), model, Stop::AfterRequests(100));
        plan.warm_up = WarmUp { min_s: 0.5, max_s: 0.5 };
        let before = server.requests();
        let report = measured(&plan);
        assert_eq!(report.measure.statuses, [(200, 100)].into());
        assert!(report.warm_up.done > 100 && report.measure.done == 100);
        assert_eq!(report.sent_in_all_phases, server.requests() - before);
    }
}

#[test]
fn warm_up_ends_when_the_series_is_stable() {
    let server = Server::start(|_| {
        sleep(Duration::from_millis(5));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(2), Stop::AfterRequests(10));
    plan.warm_up = WarmUp { min_s: 1.0, max_s: 30.0 };
    let report = measured(&plan);
    assert!(report.warm_up_stable);
    let length_ns = report.warm_up.end_ns - report.warm_up.begin_ns;
    assert!((1_000_000_000..15_000_000_000).contains(&length_ns), "{length_ns} ns");
}

#[test]
fn events_tell_the_phases_in_order_and_the_progress_between() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), open(200.0, 10), Stop::AfterSeconds(1.2));
    plan.warm_up = WarmUp { min_s: 0.6, max_s: 0.6 };
    let mut told = Vec::new();
    run(&plan, &mut |event| {
        told.push(match event {
            LoadEvent::Phase { phase, .. } => format!("{phase:?}"),
            LoadEvent::Progress { phase, .. } => format!("{phase:?} goes on"),
            LoadEvent::Report { .. } | LoadEvent::Failed { .. } => "last line".into(),
        });
    })
    .unwrap();
    told.dedup();
    assert_eq!(told, ["WarmUp", "WarmUp goes on", "Measure", "Measure goes on", "Drain"]);
}

#[test]
fn a_report_survives_json() {
    let server = Server::start(|n| if n == 3 { Reply::Reset } else { Reply::ok() });
    let mut plan = plan(server.url(), open(500.0, 10), Stop::AfterSeconds(0.6));
    plan.warm_up = WarmUp { min_s: 0.1, max_s: 0.1 };
    let event = LoadEvent::Report { report: Box::new(measured(&plan)) };
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<LoadEvent>(&json).unwrap(), event);
}

#[test]
fn phases_are_named_in_json_as_in_the_documentation() {
    let json = serde_json::to_string(&LoadEvent::Phase { phase: Phase::WarmUp, at_ns: 5 }).unwrap();
    assert_eq!(json, r#"{"event":"phase","phase":"warm_up","at_ns":5}"#);
}
