//! The run's directory: written whole, read back, resumed.

use super::*;
use crate::plan::{Arm, BringUp, FORMAT, PlannedTrial};

fn plan(trials: usize) -> Plan {
    Plan {
        version: FORMAT,
        study: "s".into(),
        question: String::new(),
        baseline: "a".into(),
        seed: 1,
        profile: "default".into(),
        runtime: None,
        bound: 0.05,
        idle_s: 0.0,
        blocks: trials,
        bring_up: BringUp::default(),
        settle: None,
        variants: vec![],
        loads: vec![],
        trials: (1..=trials)
            .map(|index| PlannedTrial {
                index,
                block: index,
                arm: Arm { variant: "a".into(), again: false },
                load: "l".into(),
            })
            .collect(),
        reference: None,
        warnings: vec![],
    }
}

fn host() -> HostFacts {
    HostFacts {
        facts: vec![],
        cores: None,
        lacks: vec![],
        isolation: None,
        realtime: false,
        changes: vec![],
    }
}

fn verdict() -> TrialVerdict {
    let noise = Noise { calibration_ns: 1, steal: 0.0, runnable: 0.0 };
    TrialVerdict {
        version: TRIAL_FORMAT,
        invalid: vec![],
        rate_per_s: None,
        users: None,
        started_anew: None,
        noise,
    }
}

#[test]
fn a_run_directory_that_holds_something_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.txt"), "precious").unwrap();
    let error = Store::create(dir.path(), "", &plan(1), &host()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert!(error.help().unwrap().contains("--resume"));
    assert_eq!(fs::read_to_string(dir.path().join("mine.txt")).unwrap(), "precious");
}

#[test]
fn an_empty_directory_can_be_the_run() {
    let dir = tempfile::tempdir().unwrap();
    Store::create(dir.path(), "study: s", &plan(1), &host()).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("study.yaml")).unwrap(), "study: s");
}

#[test]
fn the_plan_is_read_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    Store::create(dir.path(), "", &plan(3), &host()).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().1, plan(3));
}

#[test]
fn a_trial_counts_as_measured_only_once_it_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(2);
    let store = Store::create(dir.path(), "", &plan, &host()).unwrap();
    store.begin_trial(&plan.trials[0]).unwrap().finish(&verdict()).unwrap();
    store.begin_trial(&plan.trials[1]).unwrap();
    assert!(store.is_done(&plan.trials[0]));
    assert!(!store.is_done(&plan.trials[1]));
    assert_eq!(store.read().unwrap().trials.len(), 1);
}

#[test]
fn the_discarded_run_is_read_back_with_the_trial_that_it_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(2);
    let store = Store::create(dir.path(), "", &plan, &host()).unwrap();
    let slice = |cpu_per_request_us| SettleSlice {
        at_s: 1.5,
        throughput_per_s: 10.0,
        cpu_per_request_us,
        p50_us: 7.0,
    };
    let settled =
        SettleRecord { slices: vec![slice(Some(0.1)), slice(None)], stable: true, rest_s: 0.0 };
    let first = store.begin_trial(&plan.trials[0]).unwrap();
    first.write_settled(&settled).unwrap();
    first.finish(&verdict()).unwrap();
    store.begin_trial(&plan.trials[1]).unwrap().finish(&verdict()).unwrap();
    let read: Vec<_> = store.read().unwrap().trials.into_iter().map(|t| t.settled).collect();
    assert_eq!(read, [Some(settled), None]);
}

#[test]
fn a_lock_ends_with_its_holder_and_readers_need_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), "", &plan(1), &host()).unwrap();
    let lock = store.lock().unwrap();
    let (other, _) = Store::open(dir.path()).unwrap();
    assert!(matches!(other.lock(), Err(StoreError::Busy { .. })));
    drop(lock);
    other.lock().unwrap();
}

#[test]
fn what_an_interrupted_trial_left_is_gone_when_it_runs_again() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(1);
    let store = Store::create(dir.path(), "", &plan, &host()).unwrap();
    let first = store.begin_trial(&plan.trials[0]).unwrap();
    fs::write(first.logs().join("old.log"), "old").unwrap();
    let second = store.begin_trial(&plan.trials[0]).unwrap();
    assert!(!second.logs().join("old.log").exists());
}

#[test]
fn a_run_that_goes_on_elsewhere_says_what_was_another() {
    let facts = |kernel: &str, started: &str| HostFacts {
        facts: vec![("kernel".into(), kernel.into()), ("started".into(), started.into())],
        ..host()
    };
    let mut host = facts("6.1", "at noon");
    host.resume_on(&facts("6.1", "at one"));
    assert_eq!(host.changes, Vec::<String>::new());
    host.resume_on(&facts("6.2", "at two"));
    assert_eq!(host.changes, ["resumed with another kernel: 6.2; before 6.1"]);
}

#[test]
fn a_directory_without_a_plan_is_not_a_run() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::NotARun { .. })));
}

#[test]
fn a_plan_of_another_version_is_refused_by_number() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plan.json"), r#"{"version": 99}"#).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 99, wanted: FORMAT, .. }), "{error}");
}
