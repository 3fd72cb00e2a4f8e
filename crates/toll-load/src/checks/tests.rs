use std::collections::BTreeMap;

use super::*;
use crate::{ErrorKind, Target};

const US: u64 = 1_000;
const TEN_SECONDS: u64 = 10_000_000_000;

fn plan(model: LoadModel) -> LoadPlan {
    LoadPlan::new(Target::get("http://server"), model, Stop::AfterSeconds(10.0))
}

fn open() -> LoadPlan {
    plan(LoadModel::open(1000.0, 10))
}

fn closed(connections: u32) -> LoadPlan {
    plan(LoadModel::closed(connections))
}

fn all(value_ns: u64, count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    (0..count).for_each(|_| histogram.record_ns(value_ns));
    histogram
}

/// Ten seconds at 1000/s with a latency of 2 ms: two in flight.
fn sound() -> PhaseReport {
    PhaseReport {
        end_ns: TEN_SECONDS,
        scheduled: 10_000,
        sent: 10_000,
        done: 10_000,
        connections_used: 2,
        statuses: BTreeMap::from([(200, 10_000)]),
        latency: all(2_000 * US, 10_000),
        service_time: all(2_000 * US, 10_000),
        send_lag: all(US, 10_000),
        cpu_ns: TEN_SECONDS / 5,
        mean_in_flight: 2.0,
        completed: 10_000,
        ..PhaseReport::default()
    }
}

fn failing(plan: &LoadPlan, measure: &PhaseReport) -> Vec<String> {
    check(plan, measure).into_iter().filter(|c| !c.holds).map(|c| c.name).collect()
}

#[test]
fn a_sound_phase_passes_every_check() {
    assert_eq!(failing(&open(), &sound()), Vec::<String>::new());
    assert_eq!(failing(&closed(2), &sound()), Vec::<String>::new());
}

#[test]
fn a_generator_that_is_late_by_a_tenth_of_the_median_fails() {
    let late = PhaseReport { send_lag: all(210 * US, 10_000), ..sound() };
    assert_eq!(failing(&open(), &late), ["send-lag"]);
    let on_time = PhaseReport { send_lag: all(190 * US, 10_000), ..sound() };
    assert_eq!(failing(&open(), &on_time), Vec::<String>::new());
}

#[test]
fn lateness_of_two_in_a_hundred_shows_in_p99_and_fails() {
    let mut send_lag = all(US, 9_800);
    send_lag.merge(&all(900 * US, 200));
    assert_eq!(failing(&open(), &PhaseReport { send_lag, ..sound() }), ["send-lag"]);
}

#[test]
fn the_two_latest_of_few_requests_are_not_judged_and_the_third_is() {
    let phase = |late| {
        let mut send_lag = all(US, 60 - late);
        send_lag.merge(&all(900 * US, late));
        PhaseReport { send_lag, ..sound() }
    };
    assert_eq!(failing(&open(), &phase(2)), Vec::<String>::new());
    assert_eq!(failing(&open(), &phase(3)), ["send-lag"]);
}

#[test]
fn advice_on_lateness_depends_on_its_cause() {
    let late = PhaseReport { send_lag: all(900 * US, 10_000), ..sound() };
    let starved = PhaseReport { waited_for_connection: 50, ..late.clone() };
    let advice = |report| send_lag(report).advice;
    assert!(advice(&late).contains("core of its own"));
    assert!(advice(&starved).contains("more connections"));
}

#[test]
fn a_busy_generator_fails() {
    let busy = PhaseReport { cpu_ns: TEN_SECONDS * 9 / 10, ..sound() };
    assert_eq!(failing(&closed(2), &busy), ["own-cpu"]);
}

#[test]
fn requests_that_were_lost_break_littles_law() {
    let lost = PhaseReport { mean_in_flight: 3.0, ..sound() };
    assert_eq!(failing(&open(), &lost), ["littles-law"]);
    assert_eq!(
        failing(&closed(3), &PhaseReport { connections_used: 3, ..sound() }),
        ["littles-law"]
    );
}

#[test]
fn a_phase_without_answers_breaks_littles_law() {
    let silent = PhaseReport { done: 0, service_time: Histogram::new(), ..sound() };
    assert!(failing(&open(), &silent).contains(&"littles-law".to_owned()));
}

#[test]
fn sampling_error_at_low_occupancy_is_not_taken_for_a_fault() {
    let idle = PhaseReport {
        service_time: all(100 * US, 10_000),
        latency: all(100 * US, 10_000),
        mean_in_flight: 0.107,
        ..sound()
    };
    assert_eq!(failing(&open(), &idle), Vec::<String>::new());
}

/// 500/s at a service that answers nothing in the first 100 ms of each second and at once in the rest of it.
/// The phase lasts from `begin_ms` to `end_ms`; what is in flight is known, not sampled.
fn stalling(begin_ms: u64, end_ms: u64) -> PhaseReport {
    let answered_ms = |sent_ms: u64| sent_ms.max(sent_ms / 1000 * 1000 + 100);
    let mut service_time = Histogram::new();
    let [mut in_flight_ms, mut after_end_ms, mut inherited_ms] = [0; 3];
    for sent_ms in (0..end_ms).step_by(2) {
        let answered_ms = answered_ms(sent_ms);
        in_flight_ms += answered_ms.min(end_ms).saturating_sub(sent_ms.max(begin_ms));
        if sent_ms >= begin_ms {
            service_time.record_ns((answered_ms - sent_ms) * 1_000_000);
            after_end_ms += answered_ms.saturating_sub(end_ms);
        } else {
            inherited_ms += answered_ms.min(end_ms).saturating_sub(begin_ms);
        }
    }
    let done = service_time.count();
    PhaseReport {
        begin_ns: begin_ms * 1_000_000,
        end_ns: end_ms * 1_000_000,
        scheduled: done,
        sent: done,
        done,
        cpu_ns: 0,
        latency: service_time.clone(),
        service_time,
        mean_in_flight: in_flight_ms as f64 / (end_ms - begin_ms) as f64,
        after_end_ns: after_end_ms * 1_000_000,
        inherited_ns: inherited_ms * 1_000_000,
        ..sound()
    }
}

#[test]
fn a_service_that_stalls_is_not_held_against_the_generator_wherever_the_phase_begins_and_ends() {
    for begin_ms in (1000..2000).step_by(10) {
        for length_ms in [2500, 3000, 10_050] {
            let stalling = stalling(begin_ms, begin_ms + length_ms);
            let failing = failing(&open(), &stalling);
            assert_eq!(failing, Vec::<String>::new(), "from {begin_ms} ms for {length_ms} ms");
        }
    }
}

/// 100 users send four requests at once, all in the last half second, and all are answered half a second after the
/// end: none of their time in flight is the phase's but that half second.
#[test]
fn a_burst_that_is_in_flight_when_the_phase_ends_is_not_held_against_the_generator() {
    let users = LoadModel::Closed {
        clients: crate::Profile::constant(100.0),
        iteration: crate::Iteration { requests: 4, think_ms: 1000.0 },
    };
    let burst = PhaseReport {
        scheduled: 400,
        sent: 400,
        done: 400,
        service_time: all(TEN_SECONDS / 10, 400),
        mean_in_flight: 400.0 * 0.5 / 10.0,
        after_end_ns: 400 * TEN_SECONDS / 20,
        ..sound()
    };
    assert_eq!(failing(&plan(users.clone()), &burst), Vec::<String>::new());
    let untold = PhaseReport { after_end_ns: 0, ..burst };
    assert_eq!(failing(&plan(users), &untold), ["littles-law"]);
}

#[test]
fn requests_lost_at_a_service_that_stalls_still_break_littles_law() {
    let sound = stalling(1050, 11_000);
    let lost = PhaseReport { mean_in_flight: sound.mean_in_flight + 1.0, ..sound };
    assert_eq!(failing(&open(), &lost), ["littles-law"]);
}

#[test]
fn a_connection_that_carried_nothing_fails_a_closed_loop() {
    assert_eq!(
        failing(&closed(2), &PhaseReport { connections_used: 1, ..sound() }),
        ["connections"]
    );
}

#[test]
fn fewer_requests_than_connections_need_no_more_connections() {
    let check = connections_used(&sound(), 50, Stop::AfterRequests(2));
    assert!(check.holds, "{check:?}");
}

#[test]
fn a_schedule_that_was_not_kept_fails() {
    let behind = PhaseReport { scheduled: 10_001, unsent: 1, ..sound() };
    assert_eq!(failing(&open(), &behind), ["schedule"]);
}

#[test]
fn errors_say_which_and_how_many() {
    let failed = PhaseReport {
        errors: BTreeMap::from([(ErrorKind::Reset, 3)]),
        statuses: BTreeMap::from([(200, 9_990), (302, 3), (404, 2), (503, 5)]),
        unexpected: BTreeMap::from([(404, 2), (503, 5)]),
        ..sound()
    };
    let check = errors(&failed);
    assert!(!check.holds);
    assert_eq!(check.seen, "3 x reset, 2 x status 404, 5 x status 503 of 10000 requests");
}

#[test]
fn a_grpc_call_that_failed_is_an_error() {
    let grpc_statuses = BTreeMap::from([(0, 90), (13, 10)]);
    let check = errors(&PhaseReport { grpc_statuses, sent: 100, ..PhaseReport::default() });
    assert_eq!((check.holds, check.seen.as_str()), (false, "10 x grpc-status 13 of 100 requests"));
}
