//! A plan is run and stored: in order, once, and whatever a trial or the user does meanwhile.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use toll_lab::{Asked, Deployment, FakeCall, FakeLoadScript, Traffic};
use toll_load::{
    Check, ErrorKind, LoadEvent, LoadModel, LoadPlan, LoadReport, Phase, PhaseReport, Target,
    TargetReport,
};

use super::fixture::{
    Flow, Ran, STUDY, calls, claim, completing_at_most, lab, lab_with_claims, phase, planned,
    report, reporting, saying, sound,
};
use super::*;
use crate::plan::{PlannedSettle, VariantState};
use crate::store::{Mark, TrialRecord};

/// Six trials at half of what the slowest variant carries.
fn study_of_the_knee() -> String {
    STUDY.replace("100/s", "50% of knee")
}

impl Flow {
    /// The indices of the trials that were measured, and why each does not count.
    fn verdicts(&self) -> Vec<(usize, Vec<String>)> {
        let verdict = |trial: TrialRecord| (trial.trial.index, trial.verdict.invalid);
        self.stored().trials.into_iter().map(verdict).collect()
    }
}

impl Ran {
    /// Indices of the trials that began, in order.
    fn began(&self) -> Vec<usize> {
        let index = |event: &RunEvent| match event {
            RunEvent::TrialStarted { index, .. } => Some(*index),
            _ => None,
        };
        self.events.iter().filter_map(index).collect()
    }

    fn position(&self, wanted: impl Fn(&RunEvent) -> bool) -> Option<usize> {
        self.events.iter().position(wanted)
    }
}

/// Whether trial `index` has just begun to measure.
fn measures(index: usize) -> impl Fn(&[RunEvent]) -> bool {
    move |events| {
        let began = events.iter().rev().find_map(|event| match event {
            RunEvent::TrialStarted { index, .. } => Some(*index),
            _ => None,
        });
        let stage = events.last();
        began == Some(index)
            && matches!(stage, Some(RunEvent::Stage { stage }) if stage == "measure")
    }
}

/// A lab in which trial `odd_one`, from 1, goes as `odd` says and all others are sound.
fn lab_where_one_goes_otherwise(
    odd_one: usize,
    odd: impl Fn(&Deployment, &LoadPlan) -> FakeLoadScript + Send + Sync + 'static,
) -> Lab {
    let loads = Arc::new(AtomicUsize::new(0));
    lab(move |deployment, plan| {
        if loads.fetch_add(1, Ordering::Relaxed) + 1 == odd_one {
            odd(deployment, plan)
        } else {
            sound(deployment, plan)
        }
    })
}

#[test]
fn every_planned_trial_is_run_and_stored_in_the_order_of_the_plan() {
    let flow = Flow::of(STUDY);
    let ran = flow.run(&lab(sound));
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
    let record = flow.stored();
    let stored: Vec<PlannedTrial> = record.trials.iter().map(|t| t.trial.clone()).collect();
    assert_eq!((stored.len(), &stored), (6, &flow.plan.trials));
    for trial in &record.trials {
        assert_eq!(trial.verdict.invalid, Vec::<String>::new());
        assert_eq!(trial.load.as_ref().unwrap().measure.done, 1000);
        assert!(trial.proof.as_ref().unwrap().holds());
    }
}

#[test]
fn a_trial_already_measured_is_not_run_again() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(sound)).ending.unwrap();
    let again = flow.run(&lab(|_, _| panic!("nothing is left to load")));
    assert_eq!(again.began(), [0; 0]);
    assert_eq!(again.ending.unwrap(), Ending::Complete);
    assert!(matches!(again.events[0], RunEvent::Started { trials: 6, done: 6, .. }));
}

#[test]
fn an_interrupt_keeps_what_was_measured_before() {
    let flow = Flow::of(STUDY);
    let ran = flow.run_until(&lab(sound), measures(3));
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(matches!(ran.events.last(), Some(RunEvent::Ended { interrupted: true })));
    assert_eq!(flow.verdicts(), [(1, vec![]), (2, vec![])]);
}

#[test]
fn a_trial_whose_proof_is_interrupted_is_not_measured() {
    let flow = Flow::of(STUDY);
    let Lab::Fake(fake) = lab(sound) else { unreachable!("it is the fake one") };
    let ran = flow.run(&Lab::Fake(fake.interrupted_after(2)));
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert_eq!(flow.verdicts(), [(1, vec![])]);
}

#[test]
fn a_knee_whose_proof_is_interrupted_is_not_found() {
    let flow = Flow::of(&study_of_the_knee());
    let Lab::Fake(fake) = lab_with_knees() else { unreachable!("it is the fake one") };
    let ran = flow.run(&Lab::Fake(fake.interrupted_after(1)));
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(flow.store.knees().unwrap().is_empty());
}

#[test]
fn an_interrupted_run_goes_on_with_the_trial_that_was_cut_short() {
    let flow = Flow::of(STUDY);
    flow.run_until(&lab(sound), measures(3)).ending.unwrap();
    let rest = flow.run(&lab(sound));
    assert_eq!(rest.began(), [3, 4, 5, 6]);
    assert_eq!(flow.verdicts().len(), 6);
}

/// A lab whose variants carry 1000/s in a closed loop; in an open one `mesh` carries 620/s, `bare` all.
fn lab_with_knees() -> Lab {
    lab(|deployment, plan| match plan.model {
        LoadModel::Closed { .. } => reporting(deployment, report(phase(1500, 1000.0, 1000))),
        LoadModel::Open { .. } if deployment.name == "mesh" => {
            completing_at_most(620.0, deployment, plan)
        }
        LoadModel::Open { .. } => sound(deployment, plan),
    })
}

#[test]
fn the_knee_of_every_variant_is_searched_for_before_the_first_trial_and_stored() {
    let flow = Flow::of(&study_of_the_knee());
    let ran = flow.run(&lab_with_knees());
    let found = ran.events.iter().rposition(|e| matches!(e, RunEvent::KneeFound { .. }));
    assert!(found.unwrap() < ran.position(|e| matches!(e, RunEvent::TrialStarted { .. })).unwrap());
    let knees = flow.store.knees().unwrap();
    let [bare, mesh] = &knees[..] else { panic!("{knees:?}") };
    // Four halvings of 500..1000 end on a multiple of 31.25.
    assert_eq!((mesh.variant.as_str(), mesh.rate_per_s), ("mesh", 562.5));
    // It carries whatever it is asked: the search goes beyond what the closed loop showed, and ends.
    assert_eq!(bare.variant, "bare");
    assert!(bare.rate_per_s > 1000.0 && bare.tried.iter().all(|(_, carried)| *carried), "{bare:?}");
}

#[test]
fn the_rate_of_every_variant_follows_the_knee_of_the_slowest() {
    let flow = Flow::of(&study_of_the_knee());
    flow.run(&lab_with_knees()).ending.unwrap();
    for trial in flow.stored().trials {
        // Half of 562.5, in whole requests; ten seconds of it were sent.
        assert_eq!(trial.verdict.rate_per_s, Some(281.0));
        assert_eq!(trial.load.unwrap().measure.sent, 2810);
    }
}

/// Six trials of users who were chosen where the slowest variant carried 1125/s: here it carries half of that.
fn study_of_users() -> String {
    let users = "vus: {users: 100, ramp: 1s, hold: 8s, ramp_down: 1s, scale: {knee: 1125/s}}";
    STUDY.replace("open: {rate: 100/s}, duration: 10s", users)
}

/// Trials' users as they are stored, and what was told of them.
fn users_told(flow: &Flow, ran: &Ran) -> (Vec<Option<u32>>, Vec<(u32, u32)>) {
    let stored = flow.stored().trials.into_iter().map(|trial| trial.verdict.users);
    let told = |event: &RunEvent| match event {
        RunEvent::UsersScaled { users, of, .. } => Some((*users, *of)),
        _ => None,
    };
    (stored.collect(), ran.events.iter().filter_map(told).collect())
}

#[test]
fn users_follow_the_knee_of_the_slowest_and_are_stored_and_told_once() {
    let flow = Flow::of(&study_of_users());
    let ran = flow.run(&lab_with_knees());
    assert_eq!(users_told(&flow, &ran), (vec![Some(50); 6], vec![(50, 100)]));
    let told = ran.position(|e| matches!(e, RunEvent::UsersScaled { .. })).unwrap();
    assert!(told < ran.position(|e| matches!(e, RunEvent::TrialStarted { .. })).unwrap());
}

#[test]
fn a_resumed_run_has_the_users_that_it_had_before() {
    let flow = Flow::of(&study_of_users());
    flow.run_until(&lab_with_knees(), measures(3)).ending.unwrap();
    let rest = flow.run(&lab_with_knees());
    assert_eq!(rest.position(|e| matches!(e, RunEvent::KneeSearch { .. })), None);
    assert_eq!(users_told(&flow, &rest), (vec![Some(50); 6], vec![(50, 100)]));
}

#[test]
fn users_that_are_not_scaled_need_no_knee() {
    let flow = Flow::of(&study_of_users().replace(", scale: {knee: 1125/s}", ""));
    let ran = flow.run(&lab_with_knees());
    assert_eq!(ran.position(|e| matches!(e, RunEvent::KneeSearch { .. })), None);
    assert_eq!(users_told(&flow, &ran), (vec![Some(100); 6], vec![]));
}

#[test]
fn the_proof_is_told_the_spans_that_each_request_leaves() {
    let spans = "steady: {spans: {server: 9}, ";
    let (flow, lab) =
        (Flow::of(&study_of_the_knee().replace("steady: {", spans)), lab_with_knees());
    flow.run(&lab).ending.unwrap();
    let told = traffic_told(&lab);
    assert_eq!(told.len(), 2 + 6, "knees and trials");
    assert!(told.iter().all(|traffic| traffic.spans == [("server".to_owned(), 9)].into()));
}

#[test]
fn a_knee_that_is_stored_is_not_searched_for_again() {
    let flow = Flow::of(&study_of_the_knee());
    flow.run_until(&lab_with_knees(), measures(1)).ending.unwrap();
    let rest = flow.run(&lab_with_knees());
    assert_eq!(rest.position(|e| matches!(e, RunEvent::KneeSearch { .. })), None);
    assert_eq!(flow.stored().trials[0].verdict.rate_per_s, Some(281.0));
}

#[test]
fn an_interrupt_while_a_knee_is_searched_for_ends_the_run_without_a_trial() {
    let flow = Flow::of(&study_of_the_knee());
    let second = |events: &[RunEvent]| {
        events.iter().filter(|e| matches!(e, RunEvent::KneeSearch { .. })).count() == 2
    };
    let ran = flow.run_until(&lab_with_knees(), second);
    assert_eq!(ran.began(), [0; 0]);
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert_eq!(flow.store.knees().unwrap().len(), 1, "the first knee is kept");
}

#[test]
fn a_variant_that_fails_in_the_closed_loop_has_no_knee_and_the_help_gives_a_way_out() {
    let flow = Flow::of(&study_of_the_knee());
    let error = flow
        .run(&lab(|deployment, _| {
            let refused = [(200, 1400), (503, 100)].into();
            let measured = PhaseReport { statuses: refused, ..phase(1500, 1000.0, 900) };
            reporting(deployment, report(measured))
        }))
        .ending
        .unwrap_err();
    assert!(matches!(&error, RunError::Knee { variant, .. } if variant == "bare"), "{error}");
    assert!(error.help().unwrap().contains("rate: 500/s"));
}

#[test]
fn a_knee_found_on_another_path_than_the_variants_is_not_believed() {
    let flow = Flow::of(&study_of_the_knee());
    let engine = |deployment: &Deployment, plan: &LoadPlan| match plan.model {
        LoadModel::Closed { .. } => reporting(deployment, report(phase(1500, 1000.0, 1000))),
        LoadModel::Open { .. } => sound(deployment, plan),
    };
    let error = flow.run(&lab_with_claims(vec![claim(false)], engine)).ending.unwrap_err();
    assert!(error.to_string().contains("path not proven: no proxy runs"), "{error}");
}

#[test]
fn a_failed_check_of_the_load_makes_its_trial_invalid_with_that_reason() {
    let flow = Flow::of(STUDY);
    let busy = |deployment: &Deployment, _: &LoadPlan| {
        let check = Check {
            name: "own-cpu".into(),
            holds: false,
            seen: "97 % of a core".into(),
            bound: "below 85 %".into(),
            advice: "lower the rate".into(),
        };
        let sound = report(phase(1000, 100.0, 900));
        reporting(deployment, LoadReport { checks: vec![check], ..sound })
    };
    let ran = flow.run(&lab_where_one_goes_otherwise(2, busy));
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
    let reason = "own-cpu: 97 % of a core (should be below 85 %); lower the rate";
    let verdicts = flow.verdicts();
    assert_eq!(verdicts[1], (2, vec![reason.to_owned()]));
    assert!(verdicts.iter().all(|(index, invalid)| *index == 2 || invalid.is_empty()));
}

#[test]
fn a_claim_that_does_not_hold_makes_the_trial_invalid_with_that_reason() {
    let flow = Flow::of(STUDY);
    flow.run(&lab_with_claims(vec![claim(false)], sound)).ending.unwrap();
    for (_, invalid) in flow.verdicts() {
        let reason = "path not proven: no proxy runs: expected 0 proxies, saw 1 proxy";
        assert_eq!(invalid, [reason]);
    }
}

#[test]
fn a_trial_about_whose_path_nothing_is_claimed_is_invalid() {
    let flow = Flow::of(STUDY);
    flow.run(&lab_with_claims(vec![], sound)).ending.unwrap();
    for (_, invalid) in flow.verdicts() {
        assert_eq!(invalid, ["path not proven: no claim was made"]);
    }
}

#[test]
fn a_load_engine_that_breaks_costs_one_trial_and_the_run_goes_on() {
    let failed = LoadEvent::Failed { message: "refused".into(), help: Some("start it".into()) };
    let begun = LoadEvent::Phase { phase: Phase::WarmUp, at_ns: 0 };
    let table = [
        (saying(&[begun.clone(), failed]), "refused (start it)"),
        (saying(&[begun]), "the load engine ended early: without a report"),
        (FakeLoadScript { lines: vec!["?".into()], usage: vec![] }, "toll cannot read"),
    ];
    for (script, reason) in table {
        let flow = Flow::of(STUDY);
        let ran = flow.run(&lab_where_one_goes_otherwise(4, move |_, _| script.clone()));
        assert_eq!(ran.ending.unwrap(), Ending::Complete);
        let verdicts = flow.verdicts();
        let invalid: Vec<_> = verdicts.iter().filter(|(_, why)| !why.is_empty()).collect();
        let [(4, why)] = invalid.as_slice() else { panic!("{invalid:?}") };
        assert!(why.len() == 1 && why[0].contains(reason), "{why:?}");
        assert_eq!(verdicts.len(), 6);
    }
}

#[test]
fn a_run_in_which_nothing_is_answered_well_ends_at_once() {
    let flow = Flow::of(STUDY);
    let ran = flow.run(&lab(|deployment, _| {
        let refused = [(503, 1000)].into();
        let measured = PhaseReport { statuses: refused, ..phase(1000, 100.0, 900) };
        reporting(deployment, report(measured))
    }));
    assert_eq!(ran.began(), [1]);
    let error = ran.ending.unwrap_err();
    assert!(matches!(error, RunError::NothingAnswered { .. }), "{error}");
    assert!(error.help().unwrap().contains("logs"));
    assert!(flow.stored().trials.is_empty(), "it is run again once the service is mended");
}

/// An egress gateway that does not let the host out must not end the other variants' trials.
#[test]
fn a_trial_in_which_nothing_is_answered_on_a_broken_path_is_invalid_and_the_run_goes_on() {
    let flow = Flow::of(STUDY);
    let ran = flow.run(&lab_with_claims(vec![claim(false)], |deployment, _| {
        let refused = [(503, 1000)].into();
        let measured = PhaseReport { statuses: refused, ..phase(1000, 100.0, 900) };
        reporting(deployment, report(measured))
    }));
    assert_eq!(ran.ending.unwrap(), Ending::Complete);
    let verdicts = flow.verdicts();
    assert_eq!(verdicts.len(), 6);
    let says_why = |why: &Vec<String>| why.iter().any(|why| why.starts_with("path not proven"));
    assert!(verdicts.iter().all(|(_, why)| says_why(why)), "{verdicts:?}");
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
        errors: [(ErrorKind::Timeout, 4)].into(),
        done: 996,
        ..phase(1000, 100.0, 900)
    };
    reporting(deployment, report(measured))
}

#[test]
fn writes_are_acknowledged_by_answers_of_success_in_every_phase() {
    let mut plan = planned(STUDY);
    plan.loads[0].request.method = "POST".into();
    let (flow, lab) = (Flow::planned(plan), lab(faulty));
    flow.run(&lab).ending.unwrap();
    // The ten of the warm-up were sent and acknowledged, too.
    let asked = vec![asked("POST", "/", 1010, 1000)];
    let told = Traffic { requests: 1010, writes: 1010, acknowledged: 1000, ..Traffic::default() };
    assert_eq!(traffic_told(&lab), vec![Traffic { asked, ..told }; 6]);
}

#[test]
fn a_load_that_only_reads_writes_nothing() {
    let (flow, lab) = (Flow::of(STUDY), lab(faulty));
    flow.run(&lab).ending.unwrap();
    let asked = vec![asked("GET", "/", 1010, 1000)];
    let told = Traffic { requests: 1010, asked, ..Traffic::default() };
    assert_eq!(traffic_told(&lab), vec![told; 6]);
}

fn asked(method: &str, path: &str, requests: u64, acknowledged: u64) -> Asked {
    Asked { method: method.into(), path: path.into(), requests, acknowledged }
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
    let asked = vec![asked("GET", "/find", 750, 749), asked("POST", "/book", 250, 249)];
    let told = Traffic { requests: 1000, writes: 250, acknowledged: 249, ..Traffic::default() };
    assert_eq!(traffic_told(&lab), vec![Traffic { asked, ..told }; 6]);
}

#[test]
fn the_proof_of_a_knee_is_told_the_writes_of_all_its_tries() {
    let mut plan = planned(&study_of_the_knee());
    plan.loads[0].request.method = "POST".into();
    let (flow, lab) = (Flow::planned(plan), lab_with_knees());
    flow.run(&lab).ending.unwrap();
    for told in &traffic_told(&lab)[..2] {
        assert!(told.requests > 3000, "{told:?}");
        assert_eq!((told.writes, told.acknowledged), (told.requests, told.requests));
        assert_eq!(told.asked, [asked("POST", "/", told.requests, told.requests)]);
    }
}

#[test]
fn a_trial_is_idle_before_its_load_only_if_the_plan_says_so() {
    for (idle, expected) in [("idle: 0s", 0), ("idle: 0.05s", 2)] {
        let flow = Flow::of(&STUDY.replace("idle: 0s", idle));
        flow.run(&lab(sound)).ending.unwrap();
        for trial in flow.stored().trials {
            let idle = |mark| matches!(mark, Mark::IdleBegin | Mark::IdleEnd);
            let marks = trial.samples.iter().filter(|sample| idle(sample.mark)).count();
            assert_eq!(marks, expected);
        }
    }
}

#[test]
fn every_load_verifies_an_entry_that_speaks_tls_whether_it_settles_searches_or_measures() {
    let mut plan = planned(&study_of_the_knee());
    let settle =
        PlannedSettle { slice_s: 1.0, max_s: 2.0, connections: 4, rest_s: 0.0, rehearse: false };
    plan.settle = Some(settle);
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
    assert!(told.iter().any(|plan| plan.model == LoadModel::closed(4)), "settles");
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

/// What was told to be left, seconds: before each trial and after it.
fn left_s(ran: &Ran) -> (Vec<f64>, Vec<f64>) {
    let before = ran.events.iter().filter_map(|event| match event {
        RunEvent::TrialStarted { remaining_s, .. } => Some(*remaining_s),
        _ => None,
    });
    let after = ran.events.iter().filter_map(|event| match event {
        RunEvent::TrialEnded { remaining_s, .. } => Some(*remaining_s),
        _ => None,
    });
    (before.collect(), after.collect())
}

#[test]
fn the_budget_is_told_first_and_what_is_left_falls_from_it_to_nothing_also_after_a_resume() {
    let flow = Flow::of(STUDY);
    let first = flow.run_until(&lab(sound), measures(3));
    let rest = flow.run(&lab(sound));
    for (ran, trials) in [(first, 6), (rest, 4)] {
        let RunEvent::Started { estimate_s, bring_ups, bring_ups_s, trials_s, .. } = ran.events[0]
        else {
            panic!("{:?}", ran.events[0])
        };
        assert_eq!(bring_ups, trials, "each trial has its own");
        assert!((estimate_s - bring_ups_s - trials_s).abs() < 1e-9);
        let (before, after) = left_s(&ran);
        // The lab takes no time: less than a second has passed since.
        assert!((before[0] - estimate_s).abs() < 0.5, "{before:?}, of {estimate_s}");
        assert!(before.windows(2).all(|pair| pair[1] < pair[0]), "{before:?}");
        assert!(after.iter().zip(&before).all(|(after, before)| after < before));
    }
    let (_, after) = left_s(&flow.run(&lab(sound)));
    assert_eq!(after, [0.0; 0]);
}
