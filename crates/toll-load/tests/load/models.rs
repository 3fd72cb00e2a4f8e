//! Load models: what the servers saw is what the profiles, iterations and arrival laws ask for.

use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::engine::{assert_near, measured, plan};
use crate::server::{Reply, Request, Server};
use toll_load::{
    Arrivals, Iteration, LoadModel, LoadReport, Profile, Spacing, Stage, Stop, WarmUp,
};

/// When each request came, nanoseconds since 1970, and how many were in flight then.
type Log = Arc<Mutex<Vec<(u64, u64)>>>;

/// A server that takes so long for an answer, and keeps a log.
fn logging_server(answer_ms: u64) -> (Server, Log) {
    let log = Log::default();
    let kept = Arc::clone(&log);
    let server = Server::hear(move |request: &Request| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        kept.lock().unwrap().push((now, request.in_flight));
        sleep(Duration::from_millis(answer_ms));
        Reply::ok()
    });
    (server, log)
}

/// Most requests in flight at those that came between two instants of the measured phase, seconds.
fn most_between(log: &Log, report: &LoadReport, from_s: f64, to_s: f64) -> Option<u64> {
    let since_begin = |at_ns: u64| (at_ns as f64 - report.measure_begin_unix_ns as f64) / 1e9;
    let within = |at_ns| (from_s..to_s).contains(&since_begin(at_ns));
    log.lock().unwrap().iter().filter(|(at, _)| within(*at)).map(|(_, n)| *n).max()
}

fn slow_server(answer_ms: u64) -> Server {
    logging_server(answer_ms).0
}

fn stages(stages: &[(f64, f64, f64)]) -> Profile {
    let stage = |&(duration_s, from, to): &_| Stage { duration_s, from, to };
    Profile { stages: stages.iter().map(stage).collect() }
}

fn clients(profile: &[(f64, f64, f64)]) -> LoadModel {
    LoadModel::Closed { clients: stages(profile), iteration: Iteration::default() }
}

fn arrivals(profile: &[(f64, f64, f64)]) -> LoadModel {
    let arrivals = Arrivals { rate_per_s: stages(profile), spacing: Spacing::Even };
    LoadModel::Open { arrivals, max_connections: 50 }
}

fn iterating(clients: f64, iteration: Iteration) -> LoadModel {
    LoadModel::Closed { clients: Profile::constant(clients), iteration }
}

fn done_by_stage(report: &LoadReport) -> Vec<u64> {
    report.measure.stages.iter().map(|stage| stage.done).collect()
}

#[test]
fn an_iteration_sends_its_requests_at_once_each_on_a_connection_of_its_own() {
    let server = slow_server(20);
    let model = iterating(2.0, Iteration { requests: 3, think_ms: 0.0 });
    let report = measured(&plan(server.url(), model, Stop::AfterRequests(60)));
    assert_eq!((server.requests(), report.measure.done), (60, 60));
    assert_eq!((server.connections(), server.most_in_flight()), (6, 6));
    assert_eq!(report.measure.iterations.count(), 20);
    assert_near(report.measure.iterations.quantile_us(0.5), 20_000.0, 0.3);
}

#[test]
fn an_iteration_that_the_number_of_requests_cuts_short_ends_too() {
    let server = slow_server(1);
    let model = iterating(1.0, Iteration { requests: 4, think_ms: 0.0 });
    let report = measured(&plan(server.url(), model, Stop::AfterRequests(10)));
    assert_eq!((server.requests(), report.measure.done), (10, 10));
    assert_eq!(report.measure.iterations.count(), 3);
}

#[test]
fn clients_think_between_their_iterations() {
    let server = slow_server(10);
    let model = iterating(2.0, Iteration { requests: 1, think_ms: 40.0 });
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(0.72)));
    let measure = &report.measure;
    // Each client begins one every 50 ms, and a little.
    assert!((20..=30).contains(&measure.done), "{} answers", measure.done);
    let ended = measure.iterations.count();
    assert!((measure.done - 2..=measure.done).contains(&ended), "{ended} iterations");
    assert!(measure.iterations.min_us() >= 49_900.0, "{:?}", measure.iterations);
    assert_near(measure.iterations.quantile_us(0.5), 51_500.0, 0.1);
    assert!(measure.latency.quantile_us(0.5) < 30_000.0, "no part of latency");
}

#[test]
fn a_slice_sees_clients_that_think_spread_over_the_think_time() {
    let (server, log) = logging_server(5);
    let model = iterating(10.0, Iteration { requests: 1, think_ms: 500.0 });
    let mut plan = plan(server.url(), model, Stop::AfterSeconds(0.5));
    plan.warm_up = WarmUp { min_s: 0.5, max_s: 0.5 };
    let report = measured(&plan);
    // Each client once in a think time; together they would be ten at a time.
    assert!((9..=10).contains(&report.measure.done), "{} answers", report.measure.done);
    let most = most_between(&log, &report, 0.0, 0.5).unwrap();
    assert!(most <= 4, "{most} at a time");
}

#[test]
fn clients_join_and_leave_as_a_ramp_says() {
    let (server, log) = logging_server(5);
    let model = clients(&[(0.6, 0.0, 6.0), (0.6, 6.0, 0.0)]);
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(1.2)));
    assert_eq!(report.measure.clients, (0, 6));
    assert_eq!(most_between(&log, &report, 0.0, 0.045), None);
    for (from_s, to_s, most) in [(0.05, 0.15, 1), (0.25, 0.35, 3), (0.55, 0.65, 6), (0.96, 1.04, 2)]
    {
        let seen = most_between(&log, &report, from_s, to_s);
        assert_eq!(seen, Some(most), "from {from_s} to {to_s} s");
    }
    let by_stage = done_by_stage(&report);
    assert_eq!(by_stage.iter().sum::<u64>(), server.requests());
    assert_near(by_stage[0] as f64, by_stage[1] as f64, 0.25);
}

#[test]
fn a_staircase_of_clients_is_reported_step_by_step() {
    let (server, log) = logging_server(10);
    let model = clients(&[(0.2, 1.0, 1.0), (0.2, 2.0, 2.0), (0.2, 4.0, 4.0)]);
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(0.6)));
    assert_eq!((report.measure.clients, server.connections()), ((1, 4), 4));
    let by_stage = done_by_stage(&report);
    assert_eq!(by_stage.iter().sum::<u64>(), report.measure.done);
    for (step, clients) in [(0, 1), (1, 2), (2, 4)] {
        let stage = &report.measure.stages[step];
        assert_eq!((stage.from, stage.to), (clients as f64, clients as f64));
        assert_eq!(stage.latency.count(), by_stage[step]);
        let per_client = by_stage[step] as f64 / clients as f64;
        assert!((10.0..=21.0).contains(&per_client), "{per_client} in step {step}");
        let seen = most_between(&log, &report, stage.begin_s, stage.end_s);
        assert_eq!(seen, Some(clients), "step {step}");
    }
}

#[test]
fn a_ramped_rate_sends_its_integral_in_each_stage() {
    let server = slow_server(0);
    let model = arrivals(&[(0.2, 0.0, 1000.0), (0.2, 1000.0, 1000.0), (0.2, 1000.0, 0.0)]);
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(0.6)));
    assert_eq!(done_by_stage(&report), [100, 200, 100]);
    assert_eq!((server.requests(), report.measure.unsent), (400, 0));
}

#[test]
fn nothing_is_sent_while_the_rate_is_zero() {
    let (server, log) = logging_server(0);
    let model = arrivals(&[(0.2, 200.0, 200.0), (0.3, 0.0, 0.0), (0.2, 200.0, 200.0)]);
    let report = measured(&plan(server.url(), model, Stop::AfterSeconds(0.7)));
    assert_eq!(done_by_stage(&report), [40, 0, 40]);
    assert_eq!(most_between(&log, &report, 0.3, 0.499), None);
    assert_eq!(server.requests(), 80);
}

#[test]
fn a_seed_decides_poisson_arrivals() {
    let server = slow_server(0);
    let arrivals = Arrivals::poisson(1000.0);
    let model = LoadModel::Open { arrivals, max_connections: 50 };
    let mut plan = plan(server.url(), model, Stop::AfterSeconds(0.2));
    let mut sent = |seed| {
        plan.seed = seed;
        let before = server.requests();
        measured(&plan);
        server.requests() - before
    };
    let (first, again, other) = (sent(1), sent(1), sent(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn the_profile_stands_at_its_begin_while_the_load_warms_up() {
    let (server, log) = logging_server(5);
    let mut plan =
        plan(server.url(), clients(&[(0.2, 2.0, 2.0), (0.2, 5.0, 5.0)]), Stop::AfterSeconds(0.4));
    plan.warm_up = toll_load::WarmUp { min_s: 0.25, max_s: 0.25 };
    let report = measured(&plan);
    assert_eq!((report.warm_up.clients, report.measure.clients), ((2, 2), (2, 5)));
    assert_eq!(most_between(&log, &report, -0.25, 0.2), Some(2));
    assert_eq!(most_between(&log, &report, 0.2, 0.4), Some(5));
}

#[test]
fn clients_that_are_all_gone_end_a_load_by_number_after_a_timeout() {
    let server = slow_server(1);
    let mut plan = plan(
        server.url(),
        clients(&[(0.2, 1.0, 1.0), (0.0, 0.0, 0.0)]),
        Stop::AfterRequests(100_000),
    );
    plan.timeout_ms = 200;
    let report = measured(&plan);
    assert_eq!(report.measure.scheduled, 100_000);
    assert_eq!(report.measure.done + report.measure.unsent, 100_000);
    assert_eq!(server.requests(), report.measure.done);
}
