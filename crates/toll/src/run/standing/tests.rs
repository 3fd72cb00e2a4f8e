//! What stands during a run: shared within a block, fresh after anything broke, gone at the end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toll_lab::{FakeCall, FakeLab, Lab, Proof};
use toll_load::{Check, LoadReport, PhaseReport};

use crate::event::RunEvent;
use crate::plan::{Arm, BringUp, Plan};
use crate::run::fixture::{
    Flow, Ran, STUDY, calls, crashing_in, lab, phase, report, reporting, saying, shared, sound,
};
use crate::run::standing::Standing;
use crate::run::{Ending, RunError, Session};

/// Two loads for each of three arms in each of two blocks.
fn two_loads() -> String {
    let second = "  steady: {open: {rate: 100/s}, duration: 10s}\n  harder: {open: {rate: 200/s}";
    STUDY.replace("  steady: {open: {rate: 100/s}", second)
}

/// A letter a call: `U`p, proof `(` opened and `)` closed, load `-`, `D`own, dropped `!`.
fn course(lab: &Lab) -> String {
    let letter = |call| match call {
        FakeCall::Up(_) => 'U',
        FakeCall::OpenProof => '(',
        FakeCall::Load => '-',
        FakeCall::CloseProof(_) => ')',
        FakeCall::Down(_) => 'D',
        FakeCall::Dropped(_) => '!',
    };
    calls(lab).into_iter().map(letter).collect()
}

/// The trial whose begin was told last, and whether the last event ends it or is its `stage`.
fn is_now(events: &[RunEvent], index: usize, stage: &str) -> bool {
    let begun = events.iter().rev().find_map(|event| match event {
        RunEvent::TrialStarted { index, .. } => Some(*index),
        _ => None,
    });
    begun == Some(index)
        && match events.last() {
            Some(RunEvent::Stage { stage: now }) => now == stage,
            Some(RunEvent::TrialEnded { .. }) => stage == "ended",
            _ => false,
        }
}

/// A lab whose load number `odd`, from 1, reports that this check failed.
fn lab_with_a_bad_load(odd: usize, check: &'static str) -> Lab {
    let loads = Arc::new(AtomicUsize::new(0));
    lab(move |deployment, plan| {
        if loads.fetch_add(1, Ordering::Relaxed) + 1 != odd {
            return sound(deployment, plan);
        }
        let failed = Check { name: check.into(), holds: false, ..Check::default() };
        let sound = report(phase(1000, 100.0, 900));
        reporting(deployment, LoadReport { checks: vec![failed], ..sound })
    })
}

fn invalid(flow: &Flow) -> Vec<usize> {
    let trials = flow.stored().trials.into_iter();
    trials.filter(|t| !t.verdict.invalid.is_empty()).map(|t| t.trial.index).collect()
}

#[track_caller]
fn assert_complete(ran: Ran) {
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
}

#[test]
fn each_trial_has_an_environment_of_its_own_unless_the_plan_shares_them() {
    let (flow, lab) = (Flow::of(&two_loads()), lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "U(-)D".repeat(12));
}

#[test]
fn the_loads_of_one_arm_in_one_block_share_an_environment() {
    let (flow, lab) = (Flow::planned(shared(&two_loads())), lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "U(-)(-)D".repeat(6));
    assert_eq!(flow.stored().trials.len(), 12);
}

/// Every arm is brought up once; the arms of one load run back to back.
fn once() -> Plan {
    let mut plan = shared(&two_loads());
    plan.bring_up = BringUp::Run;
    plan.trials.sort_by_key(|trial| (trial.block, trial.load.clone(), trial.arm.clone()));
    (1..).zip(&mut plan.trials).for_each(|(index, trial)| trial.index = index);
    plan
}

#[test]
fn arms_that_are_brought_up_once_stand_side_by_side_to_the_end() {
    let (flow, lab) = (Flow::planned(once()), lab(sound));
    assert_complete(flow.run(&lab));
    let expected = format!("{}{}D{}D{}D", "U(-)".repeat(3), "(-)".repeat(7), "(-)", "(-)");
    assert_eq!(course(&lab), expected);
}

#[test]
fn a_crash_among_arms_side_by_side_costs_its_own_arm_only() {
    let (flow, lab) = (Flow::planned(once()), crashing_in(1, lab(sound)));
    assert_complete(flow.run(&lab));
    assert_eq!(invalid(&flow), [1]);
    let ups = course(&lab).matches('U').count();
    assert_eq!((ups, course(&lab).matches('D').count()), (4, 4));
}

/// Two loads for each of three arms in each of two blocks; the arms of a block stand side by side.
fn together() -> Flow {
    Flow::of(&two_loads().replace("blocks: 2", "blocks: 2\nbring_up: together"))
}

#[test]
fn arms_that_stand_together_come_up_before_the_first_trial_of_each_block() {
    let (flow, lab) = (together(), lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "UUU(-)(-)(-)(-)(-)(-)DDD".repeat(2));
}

#[test]
fn arms_that_stand_together_settle_before_the_first_trial_and_tell_it_in_theirs() {
    let settle = "bring_up: together\nsettle: {slice: 1s, max: 6s, connections: 2}";
    let study = two_loads().replace("blocks: 2", &format!("blocks: 2\n{settle}"));
    let (flow, lab) = (Flow::of(&study), lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), format!("{}(-)(-)(-)(-)(-)(-)DDD", "U------".repeat(3)).repeat(2));
    let settled: Vec<usize> = flow
        .stored()
        .trials
        .iter()
        .filter(|t| t.settled.is_some())
        .map(|t| t.trial.index)
        .collect();
    assert_eq!(settled, [1, 2, 3, 7, 8, 9]);
}

#[test]
fn an_arm_that_breaks_while_it_settles_beside_others_costs_its_own_trial_only() {
    let settle = "bring_up: together\nsettle: {slice: 1s, max: 6s, connections: 2}";
    let study = two_loads().replace("blocks: 2", &format!("blocks: 2\n{settle}"));
    let (flow, lab) = (Flow::of(&study), crashing_in(1, lab(sound)));
    assert_complete(flow.run(&lab));
    assert_eq!(invalid(&flow), [1], "its first trial says so, and what came up then was sound");
    assert_eq!(course(&lab).matches('U').count(), 7);
    assert_eq!(course(&lab).matches('D').count(), 7);
}

#[test]
fn a_crash_among_arms_that_stand_together_costs_its_own_arm_only() {
    let (flow, lab) = (together(), crashing_in(1, lab(sound)));
    assert_complete(flow.run(&lab));
    assert_eq!(invalid(&flow), [1]);
    assert_eq!(course(&lab).matches('U').count(), 7);
    assert_eq!(course(&lab).matches('D').count(), 7);
}

#[test]
fn what_is_left_of_a_block_brings_up_only_the_arms_that_are_still_to_come() {
    let (flow, interrupted) = (together(), lab(sound));
    flow.run_until(&interrupted, |events| is_now(events, 5, "ended"));
    let rest = lab(sound);
    assert_complete(flow.run(&rest));
    assert_eq!(course(&rest), format!("U(-)D{}", "UUU(-)(-)(-)(-)(-)(-)DDD"));
    assert_eq!(flow.stored().trials.len(), 12);
}

#[test]
fn where_there_is_room_for_one_arm_they_follow_each_other_and_it_is_told() {
    let plan = together().plan.one_after_another();
    let warned = plan.warnings.concat();
    assert!(warned.contains("followed each other in each block"), "{warned}");
    let (flow, lab) = (Flow::planned(plan), lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "U(-)(-)D".repeat(6));
}

#[test]
fn services_that_failed_requests_leave_their_environment_to_nobody() {
    let lab = lab_with_a_bad_load(3, Check::ERRORS);
    let flow = Flow::planned(shared(&two_loads()));
    assert_complete(flow.run(&lab));
    let expected = format!("{}U(-)DU(-)D{}", "U(-)(-)D", "U(-)(-)D".repeat(4));
    assert_eq!(course(&lab), expected);
    assert_eq!(invalid(&flow), [3]);
}

#[test]
fn a_load_generator_that_was_too_busy_costs_its_trial_and_no_environment() {
    let lab = lab_with_a_bad_load(3, "own-cpu");
    let flow = Flow::planned(shared(&two_loads()));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "U(-)(-)D".repeat(6));
    assert_eq!(invalid(&flow), [3]);
}

#[test]
fn a_crash_costs_its_trial_and_the_next_has_a_fresh_environment() {
    let flow = Flow::planned(shared(&two_loads()));
    let lab = crashing_in(1, lab(sound));
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), format!("U(-DU(-)D{}", "U(-)(-)D".repeat(5)));
    assert_eq!(invalid(&flow), [1]);
    let reason = "postgres ended by itself with exit status 9; its last lines:\n  the last words";
    assert_eq!(flow.stored().trials[0].verdict.invalid, [reason]);
}

#[test]
fn what_has_crashed_between_two_trials_does_not_stand_any_more() {
    let flow = Flow::planned(shared(&two_loads()));
    let proof = Proof { claims: vec![], left_out: vec![], traversals: vec![], spans: None };
    let lab = Lab::Fake(FakeLab::new(proof, |_, _| saying(&[])).crashing_in(1));
    let (plan, store, interrupt) = (&flow.plan, &flow.store, &AtomicBool::new(false));
    let mut session = Session { plan, lab: &lab, store, interrupt, watch: &mut |_| {} };
    let (deployment, logs) = (plan.deployment("bare").unwrap(), store.dir());
    let (mut standing, arm) = (Standing::default(), Arm { variant: "bare".into(), again: false });
    assert!(standing.site(&mut session, &arm, deployment, logs).unwrap().fresh);
    let site = standing.site(&mut session, &arm, deployment, logs).unwrap();
    assert!(!site.fresh);
    assert_eq!(site.started_anew, None);
    site.environment.start_load(b"{}").unwrap();
    let site = standing.site(&mut session, &arm, deployment, logs).unwrap();
    assert!(site.fresh);
    let reason = site.started_anew.unwrap();
    assert!(reason.contains("ended by itself") && !reason.contains(';'), "{reason}");
    standing.clear(&mut session).unwrap();
    assert_eq!(course(&lab), "U-DUD");
}

#[test]
fn a_crash_comes_before_the_failures_that_follow_from_it() {
    let flow = Flow::planned(shared(&two_loads()));
    let all_refused = PhaseReport { statuses: [(503, 9)].into(), ..phase(9, 100.0, 900) };
    let loads = AtomicUsize::new(0);
    let lab = lab(move |deployment, plan| match loads.fetch_add(1, Ordering::Relaxed) {
        0 => reporting(deployment, report(all_refused.clone())),
        _ => sound(deployment, plan),
    });
    assert_complete(flow.run(&crashing_in(1, lab)));
    assert_eq!(invalid(&flow), [1]);
}

#[test]
fn an_interrupt_takes_down_what_stands_and_keeps_what_was_measured() {
    // Between two loads of a shared environment, in the middle of its second, and after it.
    for (trial, stage, kept, expected) in
        [(1, "ended", 1, "U(-)D"), (2, "measure", 1, "U(-)(-D"), (2, "ended", 2, "U(-)(-)D")]
    {
        let (flow, lab) = (Flow::planned(shared(&two_loads())), lab(sound));
        let ran = flow.run_until(&lab, |events| is_now(events, trial, stage));
        assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
        assert_eq!((flow.stored().trials.len(), course(&lab).as_str()), (kept, expected));
    }
}

#[test]
fn a_resumed_block_has_a_fresh_environment_for_its_rest() {
    let flow = Flow::planned(shared(&two_loads()));
    flow.run_until(&lab(sound), |events| is_now(events, 1, "ended")).ending.unwrap();
    let rest = lab(sound);
    assert_complete(flow.run(&rest));
    assert_eq!(course(&rest), format!("U(-)D{}", "U(-)(-)D".repeat(5)));
}

#[test]
fn an_error_that_ends_the_run_takes_down_what_stands() {
    let flow = Flow::planned(shared(&two_loads()));
    let refused = PhaseReport { statuses: [(503, 9)].into(), ..phase(9, 100.0, 900) };
    let lab = lab(move |deployment, _| reporting(deployment, report(refused.clone())));
    let error = flow.run(&lab).ending.unwrap_err();
    assert!(matches!(error, RunError::NothingAnswered { .. }), "{error}");
    assert_eq!(course(&lab), "U(-)D");
}

#[test]
fn a_directory_that_cannot_be_written_any_more_takes_down_what_stands() {
    let (flow, lab) = (Flow::planned(shared(&two_loads())), lab(sound));
    let log = flow.store.dir().join("events.jsonl");
    let ran = flow.run_until(&lab, |events| {
        if is_now(events, 1, "ended") {
            std::fs::remove_file(&log).unwrap();
            std::fs::create_dir(&log).unwrap();
        }
        false
    });
    assert!(matches!(ran.ending, Err(RunError::Store(_))), "{:?}", ran.ending);
    assert_eq!(course(&lab), "U(-)D");
}

/// Two rates at each of two sizes, for each of three arms in each of two blocks.
fn sweep() -> String {
    let gateway = "entry: ingress\n  gateways: {ingress: {port: 8080, to: server}}";
    let matrix = "duration: 10s, matrix: {rate: [100/s, 200/s], replicas: {server: [1, 3]}}";
    let study = STUDY.replace("entry: server", gateway).replace("duration: 10s", matrix);
    study.replace("blocks: 2", "blocks: 2\nbring_up: block")
}

/// A sound lab, and the pods of `server` at each of its loads.
fn lab_that_notes_sizes() -> (Lab, Arc<Mutex<Vec<usize>>>) {
    let sizes = Arc::<Mutex<Vec<usize>>>::default();
    let seen = Arc::clone(&sizes);
    let lab = lab(move |deployment, plan| {
        seen.lock().unwrap().push(deployment.pods().len() - 1);
        sound(deployment, plan)
    });
    (lab, sizes)
}

/// The size that each trial of a plan needs.
fn sizes_planned(plan: &Plan) -> Vec<usize> {
    let pods = |trial| plan.deployment_of(trial).unwrap().pods().len() - 1;
    plan.trials.iter().map(pods).collect()
}

#[test]
fn another_size_of_a_sweep_comes_up_afresh_and_the_loads_of_one_share_it() {
    let (flow, (lab, sizes)) = (Flow::of(&sweep()), lab_that_notes_sizes());
    assert_complete(flow.run(&lab));
    assert_eq!(course(&lab), "U(-)(-)D".repeat(2 * 2 * 3));
    assert_eq!(*sizes.lock().unwrap(), sizes_planned(&flow.plan));
    let offered = flow.stored().trials.into_iter().map(|t| t.verdict.rate_per_s.unwrap() as u64);
    assert_eq!(offered.collect::<Vec<_>>(), [100, 200].repeat(12));
}

#[test]
fn a_sweep_is_resumed_in_the_middle_of_a_size_with_the_size_that_it_was_at() {
    for cut in [1, 2, 13] {
        let flow = Flow::of(&sweep());
        let first = flow.run_until(&lab(sound), |events| is_now(events, cut, "ended"));
        assert_eq!(first.ending.unwrap(), Ending::Interrupted);
        let (rest, sizes) = lab_that_notes_sizes();
        assert_complete(flow.run(&rest));
        assert_eq!(flow.stored().trials.len(), 24);
        assert_eq!(*sizes.lock().unwrap(), sizes_planned(&flow.plan)[cut..]);
        let left = 24 - cut;
        assert_eq!(course(&rest).matches('-').count(), left);
        assert_eq!(course(&rest).matches('U').count(), left.div_ceil(2));
    }
}

#[test]
fn sizes_that_are_brought_up_once_stand_side_by_side() {
    let study = sweep().replace("bring_up: block", "bring_up: run");
    let (flow, (lab, sizes)) = (Flow::of(&study), lab_that_notes_sizes());
    assert_complete(flow.run(&lab));
    assert_eq!(*sizes.lock().unwrap(), sizes_planned(&flow.plan));
    assert_eq!(course(&lab).matches('U').count(), 3 * 2);
    assert_eq!(course(&lab).matches('D').count(), 3 * 2);
}

#[test]
fn arms_of_one_size_stand_together_and_no_size_beside_another() {
    let study = sweep().replace("bring_up: block", "bring_up: together");
    let (flow, (lab, sizes)) = (Flow::of(&study), lab_that_notes_sizes());
    assert_complete(flow.run(&lab));
    assert_eq!(*sizes.lock().unwrap(), sizes_planned(&flow.plan));
    let ups_and_downs: String =
        course(&lab).chars().filter(|letter| matches!(letter, 'U' | 'D')).collect();
    assert_eq!(ups_and_downs, "UUUDDD".repeat(4));
}

#[test]
fn a_crash_at_one_size_of_a_sweep_costs_its_own_environment_only() {
    let study = sweep().replace("bring_up: block", "bring_up: run");
    let (flow, lab) = (Flow::of(&study), crashing_in(1, lab(sound)));
    assert_complete(flow.run(&lab));
    assert_eq!(invalid(&flow), [1]);
    assert_eq!(course(&lab).matches('U').count(), 3 * 2 + 1);
}
