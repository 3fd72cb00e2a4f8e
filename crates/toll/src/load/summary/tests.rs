use toll_load::{
    Arrivals, ErrorKind, Iteration, LoadPlan, LoadReport, Profile, Protocol, Spacing, Stage, Stop,
    Target,
};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn plan(model: LoadModel, stop: Stop) -> LoadPlan {
    LoadPlan::new(Target::get("http://127.0.0.1:8080/"), model, stop)
}

/// Most values near `typical_us`, a tail up to thirty times that.
fn times(count: u64, typical_us: u64) -> Histogram {
    let mut times = Histogram::new();
    for number in 0..count {
        let rank = number as f64 / count as f64;
        let factor = 0.7 + 0.6 * rank + 29.0 * rank.powi(400);
        times.record_ns((typical_us as f64 * 1e3 * factor) as u64);
    }
    times
}

fn measured(done: u64, seconds: u64) -> PhaseReport {
    let mut measure = PhaseReport {
        end_ns: seconds * SECOND_NS + 1_234,
        scheduled: done,
        sent: done,
        done,
        completed: done,
        connections_used: 50,
        statuses: [(200, done)].into(),
        bytes_out: done * 65,
        bytes_in: done * 812,
        latency: times(done, 402),
        service_time: times(done, 400),
        send_lag: times(done, 2),
        clients: (50, 50),
        cpu_ns: seconds * SECOND_NS / 2,
        ..PhaseReport::default()
    };
    measure.steps.connect = times(50, 110);
    measure.steps.write = times(done / 16, 6);
    measure.steps.wait = times(done, 380);
    measure.steps.read = times(done, 15);
    measure
}

/// A finished load that owns its parts.
struct Load {
    plan: LoadPlan,
    report: LoadReport,
}

impl Load {
    fn finished(&self) -> Finished<'_> {
        Finished { plan: &self.plan, report: &self.report }
    }
}

fn finished(plan: LoadPlan, measure: PhaseReport) -> Load {
    let connections_opened = measure.connections_used;
    Load {
        plan,
        report: LoadReport { measure, connections_opened, threads: 1, ..LoadReport::default() },
    }
}

fn check(name: &str, seen: &str, bound: &str, advice: &str) -> Check {
    Check {
        name: name.into(),
        holds: false,
        seen: seen.into(),
        bound: bound.into(),
        advice: advice.into(),
    }
}

fn text(load: &Load) -> String {
    summary(load.finished(), &Page { width: 80, colour: false })
}

fn closed() -> Load {
    finished(plan(LoadModel::closed(50), Stop::AfterSeconds(10.0)), measured(123_456, 10))
}

fn open() -> Load {
    let mut plan = plan(LoadModel::open(1000.0, 100), Stop::AfterSeconds(10.0));
    plan.targets[0].url = "https://api.test/v1/things?kind=all&page=17&order=descending".into();
    let mut measure = measured(9_990, 10);
    measure.scheduled = 10_000;
    measure.statuses = [(200, 9_900), (404, 60), (503, 30)].into();
    measure.errors = [(ErrorKind::Timeout, 8), (ErrorKind::Reset, 2)].into();
    (measure.waited_for_connection, measure.unsent) = (37, 0);
    measure.steps.tls = times(50, 900);
    let mut open = finished(plan, measure);
    open.report.resolve_us = 1_234.0;
    open.report.samples_lost = 12;
    open.report.checks = vec![
        check(
            "send-lag",
            "p50 450 us, p99 3200 us, 37 of 10000 requests waited for a connection",
            "at most p50 40 us, p99 200 us",
            "allow more connections, or lower the rate",
        ),
        check(
            "own-cpu",
            "97 % of a core, 12 involuntary switches",
            "below 85 % of a core",
            "lower the rate or the number of connections, or use a faster machine",
        ),
        check("errors", "8 x timeout", "no failed request", "look into the logs"),
    ];
    open
}

fn staged() -> Load {
    let stage = |duration_s, from, to| Stage { duration_s, from, to };
    let clients = Profile {
        stages: vec![stage(30.0, 1.0, 100.0), stage(60.0, 100.0, 100.0), stage(10.0, 100.0, 0.0)],
    };
    let iteration = Iteration { requests: 3, think_ms: 1000.0 };
    let model = LoadModel::Closed { clients, iteration };
    let mut measure = measured(24_000, 100);
    measure.clients = (0, 100);
    measure.iterations = times(8_000, 1_002_000);
    let stage = |begin_s, end_s, from, to, done, failed| StageReport {
        begin_s,
        end_s,
        from,
        to,
        done,
        failed,
        latency: times(done, 402),
    };
    measure.stages = vec![
        stage(0.0, 30.0, 1.0, 100.0, 4_500, 0),
        stage(30.0, 90.0, 100.0, 100.0, 18_000, 3),
        stage(90.0, 100.0, 100.0, 0.0, 1_500, 0),
    ];
    let mut plan = plan(model, Stop::AfterSeconds(100.0));
    plan.targets.push(Target::get("http://127.0.0.1:8080/2"));
    finished(plan, measure)
}

fn all_errors() -> Load {
    let measure = PhaseReport {
        end_ns: 2 * SECOND_NS,
        scheduled: 1_000,
        sent: 960,
        unsent: 40,
        connections_used: 960,
        bytes_out: 62_400,
        errors: [(ErrorKind::Closed, 960), (ErrorKind::Connect, 120)].into(),
        clients: (50, 50),
        ..PhaseReport::default()
    };
    finished(plan(LoadModel::open(500.0, 50), Stop::AfterRequests(1_000)), measure)
}

fn grpc() -> Load {
    let arrivals = Arrivals {
        rate_per_s: Profile { stages: vec![Stage { duration_s: 5.0, from: 0.0, to: 250.5 }] },
        spacing: Spacing::Poisson,
    };
    let mut plan = plan(LoadModel::Open { arrivals, max_connections: 5 }, Stop::AfterSeconds(5.0));
    plan.connection.protocol = Protocol::Grpc { streams: 10 };
    plan.part.of = 3;
    let mut measure = measured(626, 5);
    measure.grpc_statuses = [(0, 620), (14, 6)].into();
    finished(plan, measure)
}

#[test]
fn a_closed_loop() {
    insta::assert_snapshot!(text(&closed()));
}

#[test]
fn an_open_loop_that_was_late() {
    insta::assert_snapshot!(text(&open()));
}

#[test]
fn clients_in_stages_with_think_time() {
    insta::assert_snapshot!(text(&staged()));
}

#[test]
fn a_service_that_never_answers() {
    insta::assert_snapshot!(text(&all_errors()));
}

#[test]
fn nothing_at_all() {
    let plan = plan(LoadModel::closed(1), Stop::AfterRequests(1));
    insta::assert_snapshot!(text(&finished(plan, PhaseReport::default())));
}

#[test]
fn a_part_of_a_ramp_of_grpc_calls() {
    insta::assert_snapshot!(text(&grpc()));
}

#[test]
fn a_load_of_milliseconds_has_the_rate_of_its_milliseconds() {
    let mut measure = measured(50, 0);
    measure.end_ns = 4_000_000;
    let plan = plan(LoadModel::closed(50), Stop::AfterRequests(50));
    let told = text(&finished(plan.clone(), measure.clone()));
    assert!(told.contains("50 answered, 12,500/s in 4.00 ms"), "{told}");
    assert!(told.contains("read 10.2 MB/s (40.6 kB), written"), "{told}");
    // Without a length there is no rate: none is made up.
    measure.end_ns = 0;
    measure.cpu_ns = 1_000_000;
    let told = text(&finished(plan, measure));
    assert!(told.contains("50 answered, 0/s in 0 us"), "{told}");
    assert!(told.contains("read 0 B/s (40.6 kB)"), "{told}");
    assert!(told.contains("generator    0 % of a core"), "{told}");
}

#[test]
fn a_stage_of_no_length_has_no_rate() {
    let mut load = staged();
    load.report.measure.stages[0].end_s = 0.0;
    let told = text(&load);
    let line = told.lines().find(|line| line.starts_with("0:00 to 0:00")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>()[6..8], ["4,500", "0"], "{line}");
}

#[test]
fn who_was_the_limit_is_told_of_a_schedule_that_was_not_kept() {
    let schedule = check("schedule", "960 sent, 40 never sent", "1000 sent", "");
    let mut load = all_errors();
    load.report.checks = vec![schedule];
    assert!(text(&load).contains("\n  the service did not keep up: lower the rate, or allow more"));
    load.report.checks.push(check("own-cpu", "99 %", "below 85 %", "lower the rate"));
    let told = text(&load);
    assert!(told.contains("\n  the generator was the limit: give it more --threads"), "{told}");
    assert!(!told.contains("the service did not keep up"), "{told}");
}

#[test]
fn a_late_send_is_the_generators_fault_only_when_a_connection_was_free() {
    let mut load = open();
    assert!(text(&load).contains("\n  every connection was busy: "));
    load.report.measure.waited_for_connection = 0;
    assert!(text(&load).contains("\n  the generator was late: "));
}

#[test]
fn a_load_stopped_before_its_first_answer_says_what_was_in_flight() {
    let measure = PhaseReport { scheduled: 10, sent: 10, unanswered: 10, ..PhaseReport::default() };
    let mut load = finished(plan(LoadModel::closed(10), Stop::AfterSeconds(10.0)), measure);
    load.report.checks = vec![check("littles-law", "0.00 requests", "10.00 +- 0.50 requests", "")];
    let told = text(&load);
    assert!(told.contains("0 of 10 answered, 0/s in 0 us; 10 without an answer yet"), "{told}");
    assert!(!told.contains("littles-law"), "{told}");
    load.report.measure.done = 1;
    assert!(text(&load).contains("! littles-law"));
}

#[test]
fn requests_that_were_never_sent_are_no_errors() {
    let mut load = closed();
    load.report.measure.unsent = 2_084;
    let told = text(&load);
    assert!(told.contains("errors       none\nlate         2,084 never sent"), "{told}");
    load.report.measure.done = 99;
    load.report.measure.errors = [(ErrorKind::Reset, 1)].into();
    assert!(text(&load).contains("1 reset (1 % of the requests that ended)"));
}

#[test]
fn every_summary_fits_into_eighty_columns() {
    for load in [closed(), open(), staged(), all_errors(), grpc()] {
        for line in text(&load).lines() {
            let is_url = line.split_whitespace().any(|word| word.chars().count() > 60);
            assert!(line.chars().count() <= 80 || is_url, "{line}");
        }
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    for load in [closed(), open(), staged(), all_errors(), grpc()] {
        let coloured = summary(load.finished(), &Page { width: 80, colour: true });
        assert_ne!(coloured, text(&load));
        let plain = console::strip_ansi_codes(&coloured).into_owned();
        let plain: Vec<_> = plain.lines().map(str::trim_end).collect();
        assert_eq!(plain, text(&load).lines().collect::<Vec<_>>());
    }
}
