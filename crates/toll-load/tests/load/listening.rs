//! Who listens to a load: its end on request, its samples; and what it costs to wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{alone, closed, measured, open, plan};
use crate::server::{Reply, Server};
use toll_load::{
    ErrorKind, Idle, Listener, LoadError, LoadPlan, LoadReport, Sample, Stop, WarmUp, run_until,
    run_with,
};

/// Runs a plan; gives the samples with the report.
pub fn sampled(plan: &LoadPlan) -> (LoadReport, Vec<Sample>) {
    let _alone = alone();
    let mut samples = Vec::new();
    let mut take = |batch: &[Sample]| samples.extend_from_slice(batch);
    let listener =
        Listener { stop: &AtomicBool::new(false), emit: &mut |_| {}, samples: Some(&mut take) };
    let report = run_with(plan, listener).unwrap();
    (report, samples)
}

/// Runs a plan that is stopped after 0.3 s; also gives the time that it took.
fn stopped(plan: &LoadPlan) -> (Result<LoadReport, LoadError>, Duration) {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        run_until(plan, &stop, &mut |_| {})
    });
    (result, begin.elapsed())
}

#[test]
fn a_load_that_is_stopped_tells_soon_what_was_measured() {
    let server = Server::start(|_| Reply::ok());
    for (model, threads) in [(closed(4), 1), (open(500.0, 10), 2)] {
        let before = server.requests();
        let mut plan = plan(server.url(), model, Stop::AfterSeconds(60.0));
        plan.threads = threads;
        let (report, took) = stopped(&plan);
        let measure = report.unwrap().measure;
        assert!(took < Duration::from_millis(2000), "{took:?}");
        assert!(measure.done > 10);
        assert_eq!((measure.done, measure.errors.len()), (server.requests() - before, 0));
        let length_s = (measure.end_ns - measure.begin_ns) as f64 / 1e9;
        assert!((0.05..1.0).contains(&length_s), "{length_s} s");
    }
}

#[test]
fn a_stop_does_not_wait_for_answers_that_do_not_come() {
    let server = Server::start(|n| if n < 10 { Reply::ok() } else { Reply::Silence });
    let mut plan = plan(server.url(), closed(4), Stop::AfterSeconds(60.0));
    plan.timeout_ms = 30_000;
    let (report, took) = stopped(&plan);
    assert!(took < Duration::from_millis(2000), "{took:?}");
    let measure = report.unwrap().measure;
    assert_eq!((measure.done, measure.errors.len()), (10, 0));
}

#[test]
fn a_load_that_is_stopped_while_it_warms_up_has_no_report() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), closed(1), Stop::AfterSeconds(1.0));
    plan.warm_up = WarmUp { min_s: 60.0, max_s: 60.0 };
    let (result, took) = stopped(&plan);
    assert!(matches!(result, Err(LoadError::Stopped)), "{result:?}");
    assert!(took < Duration::from_millis(2000), "{took:?}");
}

#[test]
fn a_load_that_is_stopped_before_its_instant_sends_nothing() {
    let server = Server::start(|_| Reply::ok());
    let mut plan = plan(server.url(), closed(1), Stop::AfterSeconds(1.0));
    plan.start_at_unix_ns = Some(u64::MAX / 2);
    let (result, took) = stopped(&plan);
    assert!(matches!(result, Err(LoadError::Stopped)), "{result:?}");
    assert!(took < Duration::from_millis(2000), "{took:?}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn there_is_a_sample_of_each_request_with_its_instants_in_order() {
    for (model, threads) in [(closed(3), 1), (open(1000.0, 10), 2)] {
        let server = Server::start(|n| match n % 50 {
            7 => Reply::Reset,
            9 => Reply::Silence,
            _ => Reply::ok(),
        });
        let mut plan = plan(server.url(), model, Stop::AfterRequests(300));
        plan.warm_up = WarmUp { min_s: 0.1, max_s: 0.1 };
        plan.timeout_ms = 100;
        plan.threads = threads;
        let (report, samples) = sampled(&plan);
        let measure = &report.measure;
        assert_eq!((samples.len() as u64, report.samples_lost), (measure.sent, 0));
        for sample in &samples {
            let Sample { intended_ns, sent_ns, first_byte_ns, done_ns, .. } = *sample;
            assert!([intended_ns, sent_ns, first_byte_ns, done_ns].is_sorted(), "{sample:?}");
            assert!(intended_ns >= report.measure_begin_unix_ns, "{sample:?}");
        }
        let sum = |of: fn(&Sample) -> u32| samples.iter().map(|s| u64::from(of(s))).sum::<u64>();
        assert_eq!(sum(|s| s.bytes_out), measure.bytes_out);
        assert_eq!(sum(|s| s.body_bytes_in), measure.body_bytes_in);
        let failed = samples.iter().filter(|s| s.outcome.is_err()).count() as u64;
        assert_eq!(failed, measure.errors.values().sum::<u64>());
        assert!(measure.errors.contains_key(&ErrorKind::Timeout));
    }
}

#[test]
fn a_request_that_had_to_wait_until_the_end_has_a_sample_too() {
    let server = Server::start(|_| {
        thread::sleep(Duration::from_millis(10));
        Reply::ok()
    });
    // One connection that answers every 10 ms; of 40 requests in 0.2 s, 20 are sent after that.
    let plan = plan(server.url(), open(200.0, 1), Stop::AfterSeconds(0.2));
    let (report, samples) = sampled(&plan);
    assert!(report.measure.done > report.measure.completed);
    assert_eq!(samples.len() as u64, report.measure.sent);
}

#[test]
fn a_sample_names_its_client() {
    let server = Server::start(|_| {
        thread::sleep(Duration::from_millis(1));
        Reply::ok()
    });
    let mut plan = plan(server.url(), closed(4), Stop::AfterRequests(200));
    plan.threads = 2;
    let (_, samples) = sampled(&plan);
    let mut clients: Vec<u32> = samples.iter().map(|s| s.client).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients, [0, 1, 2, 3]);
}

#[test]
fn every_idle_policy_carries_the_same_load() {
    for idle in [Idle::Block, Idle::Spin] {
        for model in [closed(2), open(1000.0, 10)] {
            let server = Server::start(|_| Reply::ok());
            let mut plan = plan(server.url(), model, Stop::AfterRequests(200));
            plan.idle = idle;
            let report = measured(&plan);
            assert_eq!((report.measure.done, server.requests()), (200, 200), "{idle:?}");
        }
    }
}

#[test]
fn a_load_that_mostly_waits_sleeps_unless_told_to_spin() {
    let server = Server::start(|_| Reply::ok());
    let used = [Idle::Block, Idle::Spin].map(|idle| {
        let mut plan = plan(server.url(), open(100.0, 4), Stop::AfterSeconds(0.3));
        plan.idle = idle;
        let measure = measured(&plan).measure;
        measure.cpu_ns as f64 / (measure.end_ns - measure.begin_ns) as f64
    });
    // Beside others, even spinning has only a part of a core.
    assert!(used[0] < 0.4 * used[1], "{used:?} of a core");
}
