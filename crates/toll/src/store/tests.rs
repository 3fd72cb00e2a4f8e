//! The run's directory: written whole, read back, resumed.

use super::*;
use crate::plan::FORMAT;
use crate::plan::fixture::{STUDY, planned};

fn host() -> HostFacts {
    HostFacts {
        facts: vec![],
        cores: None,
        programs: [].into(),
        lacks: vec![],
        isolation: None,
        realtime: false,
        changes: vec![],
    }
}

fn created(dir: &Path) -> (Store, Plan) {
    let plan = planned(STUDY);
    (Store::create(dir, "study: s", &plan, &host()).unwrap(), plan)
}

#[test]
fn a_run_directory_that_holds_something_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.txt"), "precious").unwrap();
    let error = Store::create(dir.path(), "", &planned(STUDY), &host()).unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert!(error.help().unwrap().contains("--resume"));
    assert_eq!(fs::read_to_string(dir.path().join("mine.txt")).unwrap(), "precious");
}

#[test]
fn an_empty_directory_can_be_the_run() {
    let dir = tempfile::tempdir().unwrap();
    created(dir.path());
    assert_eq!(fs::read_to_string(dir.path().join("study.yaml")).unwrap(), "study: s");
}

#[test]
fn the_plan_is_read_back_as_it_was_written_or_extended() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plan) = created(dir.path());
    assert_eq!(Store::open(dir.path()).unwrap().1, plan);
    let longer = Plan { cycles: 9, ..plan };
    store.extend(&longer).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().1, longer);
}

#[test]
fn a_round_counts_as_measured_only_once_it_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plan) = created(dir.path());
    for (number, finishes) in [(1, true), (2, false), (11, true)] {
        let round = store.begin_round(number).unwrap();
        round.arm(&plan.arms[0], 0).unwrap().finish(&ArmFile::default()).unwrap();
        if finishes {
            round.finish(2.5).unwrap();
        }
    }
    assert_eq!(store.rounds().unwrap(), [1, 11]);
    let read = store.read().unwrap().rounds;
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].arms.len(), read[0].wall_s), (1, 2.5));
}

#[test]
fn what_is_known_of_an_arm_is_read_back_at_each_size() {
    let dir = tempfile::tempdir().unwrap();
    let two_sizes = "slice: 10s, matrix: {replicas: {leaf: [1, 2]}}";
    let leaf = "    server: {port: 9000, calls: [leaf]}\n    leaf: {port: 9001}";
    let study = STUDY.replace("slice: 10s", two_sizes);
    let plan = planned(&study.replace("    server: {port: 9000}", leaf));
    let store = Store::create(dir.path(), "", &plan, &host()).unwrap();
    let round = store.begin_round(1).unwrap();
    for size in 0..2 {
        let invalid = vec![Invalid::Broke(format!("size {size}"))];
        let file = ArmFile { invalid, ..ArmFile::default() };
        round.arm(&plan.arms[0], size).unwrap().finish(&file).unwrap();
    }
    round.finish(1.0).unwrap();
    let arms = store.read().unwrap().rounds.remove(0).arms;
    let read: Vec<_> = arms.iter().map(|arm| (arm.size, arm.file.invalid[0].clone())).collect();
    assert_eq!(read, [(0, "size 0".into()), (1, "size 1".into())]);
}

#[test]
fn a_reason_that_was_stored_as_a_text_is_read_as_it_stands() {
    let text = r#"["14 requests failed", "no_claim", {"check": {"name": "errors", "seen": "3", "bound": "0"}}]"#;
    let reasons: Vec<Invalid> = serde_json::from_str(text).unwrap();
    let said: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    let expected =
        ["14 requests failed", "path not proven: no claim was made", "errors: 3 (should be 0)"];
    assert_eq!(said, expected);
    let written = serde_json::to_string(&reasons).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Invalid>>(&written).unwrap(), reasons);
}

#[test]
fn a_lock_ends_with_its_holder_and_readers_need_none() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = created(dir.path());
    let lock = store.lock().unwrap();
    let (other, _) = Store::open(dir.path()).unwrap();
    assert!(matches!(other.lock(), Err(StoreError::Busy { .. })));
    drop(lock);
    other.lock().unwrap();
}

#[test]
fn what_an_interrupted_round_left_is_gone_when_it_runs_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, plan) = created(dir.path());
    let first = store.begin_round(1).unwrap().arm(&plan.arms[0], 0).unwrap();
    fs::write(first.logs().join("old.log"), "old").unwrap();
    let second = store.begin_round(1).unwrap().arm(&plan.arms[0], 0).unwrap();
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
    fs::write(dir.path().join("plan.json"), r#"{"version": 1}"#).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Version { found: 1, wanted: FORMAT, .. }), "{error}");
}
