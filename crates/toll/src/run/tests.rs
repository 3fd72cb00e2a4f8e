//! A plan is run and stored: in order, once, and whatever an arm or the user does meanwhile.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use toll_lab::{
    AgentKind, Asked, DataPlane, Deployment, FakeCall, FakeLoadScript, JavaAgent, Traffic,
};
use toll_load::{
    Check, ErrorKind, LoadEvent, LoadModel, LoadPlan, LoadReport, Phase, PhaseReport, Target,
    TargetReport,
};

use super::fixture::{
    CLOSED_PER_S, Flow, Ran, STUDY, calls, claim, crashing_in, lab, lab_with_claims, phase,
    planned, report, reporting, saying, silent, sound,
};
use super::*;
use crate::plan::{PlannedExtent, VariantState};
use crate::store::{ArmRecord, Invalid, SliceRecord};

/// At half of what the slowest variant carries.
fn study_of_the_capacity() -> String {
    STUDY.replace("100/s", "50% of capacity")
}

impl Flow {
    /// Every arm of every round.
    fn arms(&self) -> Vec<ArmRecord> {
        self.stored().rounds.into_iter().flat_map(|round| round.arms).collect()
    }

    fn slices(&self) -> Vec<SliceRecord> {
        self.arms().into_iter().flat_map(|arm| arm.slices).collect()
    }

    /// Arms of which nothing counts, and why.
    fn invalid_arms(&self) -> Vec<(String, Vec<String>)> {
        let arms = self.arms().into_iter().filter(|arm| !arm.file.invalid.is_empty());
        let why = |reason: &Invalid| reason.to_string();
        arms.map(|of| (of.arm.label(), of.file.invalid.iter().map(why).collect())).collect()
    }
}

impl Ran {
    /// Numbers of the rounds that began, in order.
    fn began(&self) -> Vec<usize> {
        let number = |event: &RunEvent| match event {
            RunEvent::RoundStarted { round, .. } => Some(*round),
            _ => None,
        };
        self.events.iter().filter_map(number).collect()
    }

    fn count(&self, wanted: impl Fn(&RunEvent) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(event)).count()
    }
}

/// Whether a slice of round `round` has just ended.
fn measures(round: usize) -> impl Fn(&[RunEvent]) -> bool {
    move |events| {
        let began = events.iter().rev().find_map(|event| match event {
            RunEvent::RoundStarted { round, .. } => Some(*round),
            _ => None,
        });
        began == Some(round) && matches!(events.last(), Some(RunEvent::SliceEnded { .. }))
    }
}

fn settles(plan: &LoadPlan) -> bool {
    plan.model == LoadModel::closed(4)
}

/// A lab in which slice `odd_one`, from 1, goes as `odd` says and all others are sound.
fn lab_where_one_goes_otherwise(
    odd_one: usize,
    odd: impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript + Send + Sync + 'static,
) -> Lab {
    let slices = Arc::new(AtomicUsize::new(0));
    lab(move |deployment, plan| {
        if !settles(plan) && slices.fetch_add(1, Ordering::Relaxed) + 1 == odd_one {
            odd(deployment, plan)
        } else {
            sound(deployment, plan)
        }
    })
}

#[test]
fn every_round_holds_the_slices_of_the_plan_in_its_order() {
    let flow = Flow::of(STUDY);
    assert_eq!(flow.run(&lab(sound)).ending.unwrap(), Ending::Complete);
    let record = flow.stored();
    assert_eq!(record.rounds.len(), 2);
    for round in &record.rounds {
        let mut stored: Vec<(usize, String)> = Vec::new();
        for arm in &round.arms {
            assert_eq!(arm.file.invalid, []);
            assert!(arm.proof.as_ref().unwrap().holds());
            stored.extend(arm.slices.iter().map(|slice| (slice.place, arm.arm.label())));
        }
        stored.sort();
        let planned = flow.plan.slices(round.number, 0).into_iter();
        let planned: Vec<_> = planned.map(|slice| (slice.place, slice.arm.label())).collect();
        assert_eq!(stored, planned);
    }
}

#[test]
fn all_arms_of_a_round_come_up_before_the_first_is_loaded_and_go_down_after_the_last() {
    let (flow, lab) = (Flow::of(STUDY), lab(sound));
    flow.run(&lab).ending.unwrap();
    let calls = calls(&lab);
    let first = |wanted: &dyn Fn(&FakeCall) -> bool| calls.iter().position(wanted).unwrap();
    let ups = calls
        .iter()
        .take_while(|call| !matches!(call, FakeCall::Load))
        .filter(|call| matches!(call, FakeCall::Up(_)));
    assert_eq!(ups.count(), 3);
    assert!(
        first(&|call| matches!(call, FakeCall::CloseProof(_)))
            < first(&|call| matches!(call, FakeCall::Down(_)))
    );
}

#[test]
fn one_engine_carries_all_loads_of_an_arm_in_a_round() {
    let (flow, lab) = (Flow::of(STUDY), lab(sound));
    flow.run(&lab).ending.unwrap();
    let engines = calls(&lab).into_iter().filter(|call| *call == FakeCall::Engine).count();
    assert_eq!(engines, 3 * 2);
}

#[test]
fn the_counters_of_a_slice_enclose_its_guard() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(sound)).ending.unwrap();
    for arm in flow.arms() {
        for slice in arm.slices {
            let cpu = |sample: &toll_lab::Sample| settle::cpu_ns(sample).unwrap();
            let used = cpu(slice.samples.last().unwrap()) - cpu(&slice.samples[0]);
            let answered = slice.report.warm_up.done + slice.report.measure.done;
            assert_eq!(answered, 1010);
            let each_us = if arm.arm.variant == "mesh" { 460 } else { 300 };
            assert_eq!(used, answered * each_us * 1000);
        }
    }
}

#[test]
fn a_round_already_measured_is_not_run_again() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(sound)).ending.unwrap();
    let again = flow.run(&lab(|_, _| panic!("nothing is left to load")));
    assert_eq!(again.began(), [0; 0]);
    assert_eq!(again.ending.unwrap(), Ending::Complete);
    assert!(matches!(again.events[0], RunEvent::Started { rounds: Some(2), done: 2, .. }));
}

#[test]
fn a_finished_run_goes_on_with_more_rounds() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(sound)).ending.unwrap();
    let extent = PlannedExtent { rounds: Some(4), ..flow.plan.extent };
    flow.store.extend(&Plan { extent, ..flow.plan.clone() }).unwrap();
    let (store, plan) = Store::open(flow.store.dir()).unwrap();
    let (interrupt, lab) = (AtomicBool::new(false), lab(sound));
    let (watch, is_sharp) = (&mut |_: &RunEvent| (), &mut || false);
    let interrupt = &interrupt;
    let mut session = Session { plan: &plan, lab: &lab, store: &store, interrupt, watch, is_sharp };
    session.run().unwrap();
    let rounds: Vec<usize> = flow.stored().rounds.iter().map(|round| round.number).collect();
    assert_eq!(rounds, [1, 2, 3, 4]);
}

#[test]
fn a_run_ends_when_it_is_sharp_enough_but_not_before_its_least_rounds() {
    let mut plan = planned(STUDY);
    plan.extent = PlannedExtent { rounds: None, for_s: None, width: Some(0.03), least_rounds: 3 };
    let flow = Flow::planned(plan);
    assert_eq!(flow.run(&lab(sound)).began(), [1, 2, 3]);
}

#[test]
fn a_run_whose_time_is_over_has_one_round_at_the_least() {
    let mut plan = planned(STUDY);
    plan.extent = PlannedExtent { rounds: None, for_s: Some(1e-9), width: None, least_rounds: 3 };
    let flow = Flow::planned(plan);
    assert_eq!(flow.run(&lab(sound)).began(), [1]);
}

#[test]
fn what_was_measured_before_counts_towards_the_time() {
    let mut plan = planned(STUDY);
    plan.extent = PlannedExtent { rounds: None, for_s: Some(1e-9), width: None, least_rounds: 3 };
    let flow = Flow::planned(plan);
    flow.run(&lab(sound)).ending.unwrap();
    assert_eq!(flow.run(&lab(sound)).began(), [0; 0]);
}

#[test]
fn an_interrupt_keeps_the_rounds_that_were_measured_before() {
    let flow = Flow::of(STUDY);
    let ran = flow.run_until(&lab(sound), measures(2));
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(matches!(ran.events.last(), Some(RunEvent::Ended { interrupted: true })));
    assert_eq!(flow.stored().rounds.len(), 1);
    let rest = flow.run(&lab(sound));
    assert_eq!(rest.began(), [2]);
    assert_eq!(flow.stored().rounds.len(), 2);
}

#[test]
fn an_interrupt_leaves_nothing_up() {
    let (flow, lab) = (Flow::of(STUDY), lab(sound));
    flow.run_until(&lab, measures(1)).ending.unwrap();
    let calls = calls(&lab);
    let count = |wanted: fn(&FakeCall) -> bool| calls.iter().filter(|call| wanted(call)).count();
    assert_eq!(count(|call| matches!(call, FakeCall::Up(_))), 3);
    assert_eq!(count(|call| matches!(call, FakeCall::Down(_))), 3);
}

#[test]
fn a_round_whose_proof_is_interrupted_is_not_measured() {
    let flow = Flow::of(STUDY);
    let Lab::Fake(fake) = lab(sound) else { unreachable!("it is the fake one") };
    let ran = flow.run(&Lab::Fake(fake.interrupted_after(1)));
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(flow.stored().rounds.is_empty());
}

/// A lab whose `mesh` carries 562/s in a closed loop, and all others 1000/s.
fn lab_with_capacities() -> Lab {
    lab(|deployment, plan| match plan.model {
        LoadModel::Closed { .. } if deployment.name == "mesh" => {
            reporting(deployment, report(phase(562, 562.0, 1000)))
        }
        _ => sound(deployment, plan),
    })
}

#[test]
fn the_capacity_of_every_variant_is_measured_once_in_the_first_round() {
    let flow = Flow::of(&study_of_the_capacity());
    let ran = flow.run(&lab_with_capacities());
    assert_eq!(ran.count(|event| matches!(event, RunEvent::CapacityFound { .. })), 2);
    let mut capacities = flow.store.capacities().unwrap();
    capacities.sort_by(|a, b| a.variant.cmp(&b.variant));
    let found: Vec<_> = capacities.iter().map(|c| (c.variant.as_str(), c.per_s.round())).collect();
    assert_eq!(found, [("bare", CLOSED_PER_S), ("mesh", 562.0)]);
    assert!(capacities.iter().all(|capacity| capacity.slices.len() == 4));
}

#[test]
fn the_rate_of_every_variant_follows_the_capacity_of_the_slowest() {
    let flow = Flow::of(&study_of_the_capacity());
    flow.run(&lab_with_capacities()).ending.unwrap();
    for slice in flow.slices() {
        assert_eq!((slice.rate_per_s, slice.report.measure.sent), (Some(281.0), 2810));
    }
}

#[test]
fn a_capacity_that_is_stored_is_not_measured_again() {
    let flow = Flow::of(&study_of_the_capacity());
    flow.run_until(&lab_with_capacities(), measures(1)).ending.unwrap();
    let rest = flow.run(&lab(sound));
    assert_eq!(rest.count(|event| matches!(event, RunEvent::CapacityFound { .. })), 0);
    assert!(flow.slices().iter().all(|slice| slice.rate_per_s == Some(281.0)));
}

#[test]
fn a_variant_that_fails_in_the_closed_loop_has_no_capacity_and_the_help_gives_a_way_out() {
    let flow = Flow::of(&study_of_the_capacity());
    let refusing = |deployment: &Deployment, plan: &LoadPlan| match settles(plan) {
        true => sound(deployment, plan),
        false => {
            let measured =
                PhaseReport { unexpected: [(503, 100)].into(), ..phase(100, 1000.0, 900) };
            reporting(deployment, report(measured))
        }
    };
    let error = flow.run(&lab(refusing)).ending.unwrap_err();
    assert!(matches!(&error, RunError::Capacity { .. }), "{error}");
    assert!(error.help().unwrap().contains("rate: 500/s"));
}

/// Users who were chosen where the slowest variant carried 1124/s: here it carries half of that.
fn study_of_users() -> String {
    let users = "vus: {users: 100, ramp: 1s, hold: 8s, ramp_down: 1s, scale: {capacity: 1124/s}}";
    STUDY.replace("open: {rate: 100/s}, slice: 10s", users)
}

#[test]
fn users_follow_the_capacity_of_the_slowest_and_are_stored_and_told_once() {
    let flow = Flow::of(&study_of_users());
    let ran = flow.run(&lab_with_capacities());
    let told = |event: &RunEvent| match event {
        RunEvent::UsersScaled { users, of, .. } => Some((*users, *of)),
        _ => None,
    };
    assert_eq!(ran.events.iter().filter_map(told).collect::<Vec<_>>(), [(50, 100)]);
    assert!(flow.slices().iter().all(|slice| slice.users == Some(50)));
}

#[test]
fn users_that_are_not_scaled_need_no_capacity() {
    let flow = Flow::of(&study_of_users().replace(", scale: {capacity: 1124/s}", ""));
    let ran = flow.run(&lab_with_capacities());
    assert_eq!(ran.count(|event| matches!(event, RunEvent::CapacityFound { .. })), 0);
    assert!(flow.slices().iter().all(|slice| slice.users == Some(100)));
}

fn failing(name: &str) -> impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript + use<> {
    let check = Check { name: name.into(), holds: false, ..Check::default() };
    move |deployment, _| {
        let sound = report(phase(1000, 100.0, 900));
        reporting(deployment, LoadReport { checks: vec![check.clone()], ..sound })
    }
}

#[test]
fn failed_requests_or_an_unkept_schedule_cost_one_slice() {
    for check in [Check::ERRORS, Check::SCHEDULE] {
        let flow = Flow::of(STUDY);
        let ran = flow.run(&lab_where_one_goes_otherwise(2, failing(check)));
        assert_eq!(ran.ending.unwrap(), Ending::Complete);
        let invalid: Vec<usize> = flow
            .slices()
            .iter()
            .filter(|slice| !slice.invalid.is_empty())
            .map(|slice| slice.place)
            .collect();
        assert_eq!(invalid, [1], "{check}");
        assert!(flow.invalid_arms().is_empty());
    }
}

#[test]
fn jvms_bear_each_load_once_before_the_slices_that_count() {
    let on_a_jvm =
        STUDY.replace("{port: 9000}", "{port: 9000, program: {built_in: {runtime: spring}}}");
    for (study, rehearsed) in [(STUDY, 0), (on_a_jvm.as_str(), 3)] {
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        let lab = lab(move |deployment, plan| {
            counted.fetch_add(usize::from(!settles(plan)), Ordering::Relaxed);
            sound(deployment, plan)
        });
        let flow = Flow::of(study);
        let ran = flow.run(&lab);
        ran.ending.as_ref().unwrap();
        assert_eq!((flow.slices().len(), open.load(Ordering::Relaxed)), (12, 12 + 2 * rehearsed));
        let is_rehearsal =
            |e: &RunEvent| matches!(e, RunEvent::Stage { stage: Stage::Rehearse, .. });
        assert_eq!(ran.count(is_rehearsal), 2 * rehearsed);
        // What they sent is not part of what the proof must find.
        let proven = calls(&lab).into_iter().filter_map(|call| match call {
            FakeCall::CloseProof(traffic) => Some(traffic.requests),
            _ => None,
        });
        assert!(proven.into_iter().all(|requests| requests == 2 * 1010), "{study}");
    }
}

#[test]
fn nothing_is_thrown_away_for_being_late_or_for_the_generators_cpu() {
    for check in ["send-lag", "own-cpu", "littles-law", "connections"] {
        let flow = Flow::of(STUDY);
        flow.run(&lab_where_one_goes_otherwise(2, failing(check))).ending.unwrap();
        assert!(flow.slices().iter().all(|slice| slice.invalid.is_empty()), "{check}");
    }
}

#[test]
fn a_claim_that_does_not_hold_costs_the_arm_its_round() {
    let flow = Flow::of(STUDY);
    flow.run(&lab_with_claims(vec![claim(false)], sound)).ending.unwrap();
    let invalid = flow.invalid_arms();
    assert_eq!(invalid.len(), 6);
    for (_, why) in invalid {
        assert_eq!(why, ["path not proven: no proxy runs: expected 0 proxies, saw 1 proxy"]);
    }
}

#[test]
fn an_arm_about_whose_path_nothing_is_claimed_does_not_count() {
    let flow = Flow::of(STUDY);
    flow.run(&lab_with_claims(vec![], sound)).ending.unwrap();
    for (_, why) in flow.invalid_arms() {
        assert_eq!(why, ["path not proven: no claim was made"]);
    }
}

#[test]
fn a_load_engine_that_breaks_costs_its_arm_the_round_and_the_others_go_on() {
    let failed = LoadEvent::Failed { message: "refused".into(), help: Some("start it".into()) };
    let begun = LoadEvent::Phase { phase: Phase::WarmUp, at_ns: 0 };
    let table = [
        (saying(&[begun.clone(), failed]), "refused (start it)"),
        (saying(&[begun]), "the load engine ended early: without a report"),
        (FakeLoadScript { lines: vec!["?".into()], usage: vec![] }, "toll cannot read"),
    ];
    for (script, reason) in table {
        let flow = Flow::of(STUDY);
        let ran = flow.run(&lab_where_one_goes_otherwise(2, move |_, _| script.clone()));
        assert_eq!(*ran.ending.as_ref().unwrap(), Ending::Complete);
        let invalid = flow.invalid_arms();
        let [(_, why)] = invalid.as_slice() else { panic!("{invalid:?}") };
        assert!(why.len() == 1 && why[0].contains(reason), "{why:?}");
        assert_eq!(ran.count(|event| matches!(event, RunEvent::ArmInvalid { .. })), 1);
        assert_eq!(flow.stored().rounds.len(), 2);
    }
}

#[test]
fn a_component_that_ends_under_load_costs_its_arm_the_round() {
    let flow = Flow::of(STUDY);
    // The first round has 18 slices of settling.
    let ran = flow.run(&crashing_in(20, lab(sound)));
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
    let invalid = flow.invalid_arms();
    let [(_, why)] = invalid.as_slice() else { panic!("{invalid:?}") };
    assert!(why[0].starts_with("postgres ended by itself with exit status 9"), "{why:?}");
}

#[test]
fn a_run_in_which_nothing_is_answered_well_ends_at_once() {
    let flow = Flow::of(STUDY);
    let ran = flow.run(&lab(|deployment, _| {
        let refused = std::collections::BTreeMap::from([(503, 1000)]);
        let measured = PhaseReport {
            unexpected: refused.clone(),
            statuses: refused,
            ..phase(1000, 100.0, 900)
        };
        reporting(deployment, report(measured))
    }));
    let error = ran.ending.unwrap_err();
    assert!(matches!(error, RunError::NothingAnswered { .. }), "{error}");
    assert!(error.help().unwrap().contains("logs"));
    assert!(flow.stored().rounds.is_empty(), "it is run again once the service is mended");
}

/// An engine of whose requests one in so many is answered with status 500.
fn failing_one_in(many: u64) -> impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript {
    move |deployment, _| {
        let refused = [(500, 1000 / many)].into();
        let measured = PhaseReport { unexpected: refused, ..phase(1000, 100.0, 900) };
        let errors = Check { name: Check::ERRORS.into(), holds: false, ..Check::default() };
        reporting(deployment, LoadReport { checks: vec![errors], ..report(measured) })
    }
}

fn tolerating(share: &str) -> Flow {
    Flow::of(&STUDY.replace("steady: {", &format!("steady: {{failures: {{at_most: {share}}}, ")))
}

#[test]
fn a_run_in_which_one_in_ten_fails_ends_while_it_settles_and_says_how() {
    let flow = Flow::of(STUDY);
    let error = flow.run(&lab(failing_one_in(10))).ending.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("100 of 1010 requests failed (at most 10 may): 100 x status 500"),
        "{said}"
    );
    assert!(error.help().unwrap().contains("failures: {at_most: 15%}"));
}

#[test]
fn failures_that_are_tolerated_cost_no_slice() {
    let flow = tolerating("20%");
    assert_eq!(flow.run(&lab(failing_one_in(10))).ending.unwrap(), Ending::Complete);
    assert!(flow.slices().iter().all(|slice| slice.invalid.is_empty()));
    assert_eq!(flow.invalid_arms(), []);
}

#[test]
fn an_arm_that_fails_more_often_than_is_tolerated_does_not_count() {
    let flow = tolerating("0.1%");
    let ran = flow.run(&lab(failing_one_in(200)));
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
    let invalid = flow.invalid_arms();
    assert_eq!(invalid.len(), 6);
    assert!(invalid[0].1[0].contains("x status 500"), "{invalid:?}");
}

#[test]
fn without_tolerance_a_failed_request_costs_its_slice_alone() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(failing_one_in(200))).ending.unwrap();
    assert!(flow.slices().iter().all(|slice| !slice.invalid.is_empty()));
    assert_eq!(flow.invalid_arms(), []);
}

/// What the lab was told of the traffic, proof by proof.
fn traffic_told(lab: &Lab) -> Vec<Traffic> {
    let told = |call| match call {
        FakeCall::CloseProof(traffic) => Some(traffic),
        _ => None,
    };
    calls(lab).into_iter().filter_map(told).collect()
}

/// An engine of whose 1000 measured requests 990 succeed, six fail and four are never answered in time.
fn faulty(deployment: &Deployment, _: &LoadPlan) -> FakeLoadScript {
    let measured = PhaseReport {
        statuses: [(200, 900), (201, 90), (302, 1), (404, 2), (503, 3)].into(),
        unexpected: [(404, 2), (503, 3)].into(),
        errors: [(ErrorKind::Timeout, 4)].into(),
        done: 996,
        ..phase(1000, 100.0, 900)
    };
    reporting(deployment, report(measured))
}

#[test]
fn the_proof_is_told_what_all_slices_of_a_round_sent_guards_included() {
    let mut plan = planned(STUDY);
    plan.loads[0].request.method = "POST".into();
    let (flow, lab) = (Flow::planned(plan), lab(faulty));
    flow.run(&lab).ending.unwrap();
    let asked = vec![asked("POST", "/", 2020, 2000)];
    let told = Traffic { requests: 2020, writes: 2020, acknowledged: 2000, asked };
    assert_eq!(traffic_told(&lab), vec![told; 6]);
}

#[test]
fn a_load_that_only_reads_writes_nothing() {
    let (flow, lab) = (Flow::of(STUDY), lab(faulty));
    flow.run(&lab).ending.unwrap();
    let asked = vec![asked("GET", "/", 2020, 2000)];
    let told = Traffic { requests: 2020, asked, ..Traffic::default() };
    assert_eq!(traffic_told(&lab), vec![told; 6]);
}

fn asked(method: &str, path: &str, requests: u64, acknowledged: u64) -> Asked {
    let spans = std::collections::BTreeMap::new();
    Asked { method: method.into(), path: path.into(), requests, acknowledged, spans }
}

/// An engine that sends a thousand requests, to each target its share, and gets all but one of these answered well.
fn mixing(deployment: &Deployment, plan: &LoadPlan) -> FakeLoadScript {
    let total: u32 = plan.targets.iter().map(|target| target.weight).sum();
    let told = |target: &Target| {
        let sent = 1000 * u64::from(target.weight) / u64::from(total);
        TargetReport { sent, succeeded: sent - 1 }
    };
    let targets = plan.targets.iter().map(told).collect();
    reporting(deployment, LoadReport { targets, ..report(phase(990, 99.0, 900)) })
}

#[test]
fn the_proof_is_told_what_a_mix_asked_for_and_how_much_of_it_was_acknowledged() {
    let mix = "steady: {mix: {find: {weight: 3, path: /find}, book: {weight: 1, method: POST, path: /book, body: x}}, ";
    let (flow, lab) = (Flow::of(&STUDY.replace("steady: {", mix)), lab(mixing));
    flow.run(&lab).ending.unwrap();
    let asked = vec![asked("GET", "/find", 1500, 1498), asked("POST", "/book", 500, 498)];
    let told = Traffic { requests: 2000, writes: 500, acknowledged: 498, asked };
    assert_eq!(traffic_told(&lab), vec![told; 6]);
}

#[test]
fn the_proof_is_told_the_spans_that_each_request_leaves_load_by_load() {
    let two = "loads:\n  other: {spans: {server: 1}, open: {rate: 50/s}, slice: 10s}\n  steady: {spans: {server: 9}, ";
    let (flow, lab) = (Flow::of(&STUDY.replace("loads:\n  steady: {", two)), lab(sound));
    flow.run(&lab).ending.unwrap();
    for told in traffic_told(&lab) {
        let mut spans: Vec<u64> = told.asked.iter().map(|asked| asked.spans["server"]).collect();
        spans.sort_unstable();
        assert_eq!(spans, [1, 9]);
    }
}

/// The study with an agent in place of its mesh, which leaves a span of its own.
fn traced() -> Plan {
    let study = STUDY.replace("steady: {", "steady: {spans: {server: 1}, ");
    let mut plan = planned(&study);
    let mesh = plan.variants.iter_mut().find(|variant| variant.name == "mesh").unwrap();
    let VariantState::Ready(deployment) = &mut mesh.state else { panic!("{mesh:?}") };
    deployment.data_plane = DataPlane::Agent(JavaAgent {
        kind: AgentKind::EaseAgent { jar: "/opt/easeagent-dep.jar".into() },
        settings: Default::default(),
        spans: [("server".into(), 2)].into(),
    });
    plan
}

#[test]
fn the_proof_is_told_the_spans_that_the_variants_own_agent_leaves() {
    let (flow, lab) = (Flow::planned(traced()), lab(sound));
    flow.run(&lab).ending.unwrap();
    let told = traffic_told(&lab);
    let of = |spans: u64| {
        told.iter().filter(|told| told.asked.iter().all(|a| a.spans["server"] == spans)).count()
    };
    // In each of two rounds both arms of the baseline, and the agent.
    assert_eq!((of(1), of(2)), (4, 2));
}

#[test]
fn an_agent_that_says_nothing_ends_the_run_before_any_load_with_advice() {
    let mut plan = traced();
    plan.settle.max_s = 0.1;
    let (flow, lab) = (Flow::planned(plan), silent(lab(sound)));
    let error = flow.run(&lab).ending.unwrap_err();
    assert!(error.to_string().starts_with("mesh: the agent left no span"), "{error}");
    let help = error.help().unwrap();
    assert!(help.contains("-Dnet.bytebuddy.experimental=true"), "{help}");
    let loads = calls(&lab).into_iter().filter(|call| *call == FakeCall::Load).count();
    assert_eq!(loads, 1, "the few requests whose spans were waited for");
}

#[test]
fn arms_are_idle_before_their_slices_only_if_the_plan_says_so() {
    for (idle, expected) in [("idle: 0s", false), ("idle: 0.05s", true)] {
        let flow = Flow::of(&STUDY.replace("idle: 0s", idle));
        flow.run(&lab(sound)).ending.unwrap();
        assert!(flow.arms().iter().all(|arm| arm.file.idle.is_some() == expected));
    }
}

#[test]
fn arms_that_cannot_stand_side_by_side_follow_each_other() {
    let plan = planned(&study_of_the_capacity()).one_after_another("there is room for one");
    let (flow, lab) = (Flow::planned(plan), lab_with_capacities());
    flow.run(&lab).ending.unwrap();
    let mut standing = 0_i32;
    for call in calls(&lab) {
        match call {
            FakeCall::Up(_) => standing += 1,
            FakeCall::Down(_) => standing -= 1,
            _ => {}
        }
        assert!(standing <= 1);
    }
    assert_eq!(flow.slices().len(), 6 * 2);
    assert!(flow.slices().iter().all(|slice| slice.rate_per_s == Some(281.0)));
}

#[test]
fn every_load_verifies_an_entry_that_speaks_tls_whether_it_settles_or_measures() {
    let mut plan = planned(&study_of_the_capacity());
    for variant in &mut plan.variants {
        let VariantState::Ready(deployment) = &mut variant.state else { panic!("all run") };
        deployment.services[0].tls = true;
    }
    let told: Arc<Mutex<Vec<LoadPlan>>> = Arc::default();
    let heard = Arc::clone(&told);
    let lab = lab(move |deployment, plan| {
        heard.lock().unwrap().push(plan.clone());
        sound(deployment, plan)
    });
    assert_eq!(Flow::planned(plan).run(&lab).ending.unwrap(), Ending::Complete);
    let told = told.lock().unwrap();
    assert!(told.iter().any(settles), "settles");
    for plan in told.iter() {
        let tls = &plan.connection.tls;
        assert!(plan.targets[0].url.starts_with("https://"), "{plan:?}");
        assert_eq!(tls.server_name.as_deref(), Some("toll.test"));
        assert_eq!(tls.ca_pem.as_deref(), Some("the edge's authority"));
        assert!(!tls.insecure);
    }
}

#[test]
fn a_second_toll_does_not_run_in_the_directory_of_the_first() {
    let flow = Flow::of(STUDY);
    let lock = flow.store.lock().unwrap();
    let second = flow.run(&lab(|_, _| panic!("nothing is to be loaded"))).ending.unwrap_err();
    assert!(matches!(second, RunError::Store(StoreError::Busy { .. })), "{second}");
    assert!(second.help().unwrap().contains("Ctrl-C"));
    drop(lock);
    assert_eq!(flow.run(&lab(sound)).ending.unwrap(), Ending::Complete);
}

#[test]
fn what_is_left_falls_from_the_estimate_to_nothing() {
    let flow = Flow::of(STUDY);
    let ran = flow.run(&lab(sound));
    let left = ran.events.iter().filter_map(|event| match event {
        RunEvent::Started { estimate_s, .. } => Some(*estimate_s),
        RunEvent::RoundStarted { remaining_s, .. } | RunEvent::RoundEnded { remaining_s, .. } => {
            Some(*remaining_s)
        }
        _ => None,
    });
    let left: Vec<f64> = left.collect();
    assert!(left[0] > 1.0 && left.last() == Some(&0.0), "{left:?}");
    assert!(left.windows(2).all(|pair| pair[1] <= pair[0]), "{left:?}");
}
