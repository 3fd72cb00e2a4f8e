//! Fresh services settle: until they are stable or the time is up, before the first load and before a knee.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toll_lab::{
    Component, ComponentSample, Deployment, FakeCall, FakeLoadScript, HostSample, MemorySample,
};
use toll_load::PhaseReport;

use super::*;
use crate::plan::{Plan, PlannedKind, PlannedRequest};
use crate::run::Ending;
use crate::run::fixture::{
    Flow, Ran, STUDY, calls, lab, phase, planned, report, reporting, shared, sound,
};

/// Time for ten slices: a fake lab takes two samples a slice, a second apart.
const SETTLE: PlannedSettle =
    PlannedSettle { slice_s: 1.0, max_s: 20.0, connections: 8, rest_s: 0.0, rehearse: false };

fn settling(plan: Plan) -> Flow {
    Flow::planned(Plan { settle: Some(SETTLE), ..plan })
}

/// A lab whose closed loops complete so many requests a second one after the other, the last for ever.
fn warming_up(per_s: &'static [u64]) -> toll_lab::Lab {
    let slices = AtomicUsize::new(0);
    lab(move |deployment, plan| match plan.model {
        LoadModel::Closed { .. } => {
            let slice = slices.fetch_add(1, Ordering::Relaxed);
            let done = per_s[slice.min(per_s.len() - 1)];
            reporting(deployment, report(phase(done, done as f64, 1000)))
        }
        LoadModel::Open { .. } => sound(deployment, plan),
    })
}

fn loads_before_the_first_proof(lab: &toll_lab::Lab) -> usize {
    calls(lab).iter().take_while(|call| **call != FakeCall::OpenProof).skip(1).count()
}

fn slices_of(per_s: &'static [u64]) -> SettleRecord {
    let flow = settling(planned(STUDY));
    assert_eq!(flow.run(&warming_up(per_s)).ending.unwrap(), Ending::Complete);
    flow.stored().trials.remove(0).settled.unwrap()
}

#[test]
fn settling_ends_once_two_windows_of_three_slices_agree() {
    // 800, 950, 1000 against 1000 differ by 9 %; 950, 1000, 1000 against 1000 by less than 2 %.
    let settled = slices_of(&[500, 800, 950, 1000]);
    let per_s: Vec<f64> = settled.slices.iter().map(|slice| slice.throughput_per_s).collect();
    assert_eq!(per_s, [500.0, 800.0, 950.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0]);
    assert!(settled.stable);
}

#[test]
fn services_that_never_come_to_rest_are_recorded_and_measured_all_the_same() {
    let flow = settling(planned(STUDY));
    let never = &[100, 120, 150, 190, 240, 300, 380, 480, 600, 750, 940, 1200];
    assert_eq!(flow.run(&warming_up(never)).ending.unwrap(), Ending::Complete);
    let trial = &flow.stored().trials[0];
    let settled = trial.settled.as_ref().unwrap();
    // The tenth slice ends 19 s after the first began; another would end after 20.
    assert_eq!((settled.slices.len(), settled.stable), (10, false));
    assert_eq!(trial.verdict.invalid, [""; 0]);
}

#[test]
fn a_slice_tells_the_cpu_of_the_measured_components_for_each_request() {
    let flow = settling(planned(STUDY));
    flow.run(&lab(sound)).ending.unwrap();
    for trial in flow.stored().trials {
        // 300 us in the service; in `mesh` 310 and 150 in the sidecar.
        let expected = if trial.trial.arm.variant == "mesh" { 460.0 } else { 300.0 };
        for slice in trial.settled.unwrap().slices {
            assert_eq!(slice.cpu_per_request_us, Some(expected));
            assert_eq!(slice.throughput_per_s, 1000.0);
        }
    }
}

#[test]
fn cpu_that_still_falls_keeps_the_services_settling() {
    let slice = |(n, us): (usize, &f64)| SettleSlice {
        at_s: n as f64,
        throughput_per_s: 1000.0,
        cpu_per_request_us: Some(*us).filter(|us| *us > 0.0),
        p50_us: 900.0,
    };
    let stable = |cpu_us: &[f64]| {
        is_stable(&cpu_us.iter().enumerate().map(slice).collect::<Vec<SettleSlice>>())
    };
    assert!(stable(&[400.0, 300.0, 300.0, 300.0, 300.0, 300.0, 300.0]));
    assert!(!stable(&[400.0, 380.0, 360.0, 340.0, 320.0, 300.0]));
    assert!(!stable(&[300.0, 300.0, 300.0, 300.0, 300.0, 0.0]), "a missing reading is not stable");
}

#[test]
fn the_load_generator_and_toll_itself_are_not_on_the_bill() {
    let component = |role, ns| ComponentSample {
        component: Component { role, pod: "p".into() },
        cpu_ns: ns,
        memory: MemorySample {
            current: Reading::Value(0),
            anonymous: Reading::Value(0),
            peak: Reading::Value(0),
        },
    };
    let sample = |components| Sample {
        at_ns: 0,
        took_ns: 0,
        components,
        host: HostSample { busy_ns: 0, steal_ns: 0, runnable: 0 },
        metrics: vec![],
    };
    let measured = [Role::Application, Role::Sidecar, Role::Gateway, Role::Database]
        .map(|role| component(role, Reading::Value(10)));
    let others = [Role::LoadGenerator, Role::Harness]
        .map(|role| component(role, Reading::Missing("ended".into())));
    assert_eq!(cpu_ns(&sample([&measured[..], &others].concat())), Some(40));
    let gone = component(Role::Database, Reading::Missing("ended".into()));
    assert_eq!(cpu_ns(&sample([&measured[..], &[gone]].concat())), None);
}

#[test]
fn a_rest_ends_when_the_services_are_quiet_or_its_time_is_up() {
    // A fake lab's seconds are samples: without load its services use nothing.
    let rested = |rest_s| {
        let settle = PlannedSettle { rest_s, ..SETTLE };
        let mut plan = Plan { settle: Some(settle), ..planned(STUDY) };
        plan.trials.truncate(1);
        let flow = Flow::planned(plan);
        flow.run(&lab(sound)).ending.unwrap();
        flow.stored().trials.remove(0).settled.unwrap().rest_s
    };
    let looks_s = LOOK_EVERY.as_secs_f64() * f64::from(QUIET_LOOKS);
    assert!((looks_s..looks_s + 2.0).contains(&rested(60.0)));
    assert!((0.01..looks_s).contains(&rested(0.01)));
    assert!(rested(0.0) < 0.01);
}

#[test]
fn what_uses_a_core_or_cannot_be_read_is_not_quiet() {
    let sample = |at_ns, cpu_ns| Sample {
        at_ns,
        took_ns: 0,
        components: vec![ComponentSample {
            component: Component { role: Role::Application, pod: "p".into() },
            cpu_ns,
            memory: MemorySample {
                current: Reading::Value(0),
                anonymous: Reading::Value(0),
                peak: Reading::Value(0),
            },
        }],
        host: HostSample { busy_ns: 0, steal_ns: 0, runnable: 0 },
        metrics: vec![],
    };
    let before = sample(0, Reading::Value(0));
    let after = |cpu_ns| is_quiet(&before, &sample(1_000_000_000, cpu_ns));
    assert!(after(Reading::Value(40_000_000)));
    assert!(!after(Reading::Value(60_000_000)));
    assert!(!after(Reading::Missing("ended".into())));
}

#[test]
fn only_the_first_trial_of_an_environment_has_settled_it() {
    let two_loads =
        STUDY.replace("loads:\n", "loads:\n  before: {open: {rate: 50/s}, duration: 10s}\n");
    let flow = settling(shared(&two_loads));
    let lab = lab(sound);
    flow.run(&lab).ending.unwrap();
    let settled: Vec<bool> =
        flow.stored().trials.iter().map(|trial| trial.settled.is_some()).collect();
    assert_eq!(settled, [true, false].repeat(6));
    assert_eq!(loads_before_the_first_proof(&lab), 6, "a level series is stable after six slices");
}

#[test]
fn a_plan_that_does_not_settle_begins_with_the_load() {
    let (flow, lab) = (Flow::of(STUDY), lab(sound));
    flow.run(&lab).ending.unwrap();
    assert_eq!(loads_before_the_first_proof(&lab), 0);
    assert!(flow.stored().trials.iter().all(|trial| trial.settled.is_none()));
}

#[test]
fn a_slice_without_one_good_answer_makes_the_trial_invalid_and_the_run_goes_on() {
    let flow = settling(shared(STUDY));
    let slices = AtomicUsize::new(0);
    let lab = lab(move |deployment, plan| match plan.model {
        LoadModel::Closed { .. } if slices.fetch_add(1, Ordering::Relaxed) == 1 => {
            let refused = PhaseReport { statuses: [(503, 40)].into(), ..phase(40, 40.0, 900) };
            reporting(deployment, report(refused))
        }
        _ => sound(deployment, plan),
    });
    assert_eq!(flow.run(&lab).ending.unwrap(), Ending::Complete);
    let verdicts: Vec<Vec<String>> =
        flow.stored().trials.into_iter().map(|trial| trial.verdict.invalid).collect();
    assert_eq!(verdicts[0], ["no request was answered well in settling: 40 x status 503"]);
    assert!(verdicts[1..].iter().all(Vec::is_empty), "{verdicts:?}");
}

/// Ctrl-C at the third slice.
fn interrupted_while_settling(flow: &Flow, lab: &toll_lab::Lab) -> Ran {
    flow.run_until(lab, |events| {
        events.iter().filter(|event| matches!(event, RunEvent::Settling { .. })).count() == 3
    })
}

#[test]
fn an_interrupt_while_services_settle_leaves_nothing_up_and_nothing_measured() {
    let (flow, lab) = (settling(planned(STUDY)), lab(sound));
    let ran = interrupted_while_settling(&flow, &lab);
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(flow.stored().trials.is_empty());
    assert!(matches!(calls(&lab).last(), Some(FakeCall::Down(_))));
    assert!(!calls(&lab).contains(&FakeCall::OpenProof));
}

/// Another load at a rate of its own, then a POST at half of the knee.
fn plan_of_writes() -> Plan {
    let mut plan = planned(&STUDY.replace(
        "loads:\n  steady: {open: {rate: 100/s}",
        "loads:\n  before: {open: {rate: 50/s}, duration: 10s}\n  steady: {open: {rate: 50% of knee}",
    ));
    plan.loads[0].request.path = "/first".into();
    plan.loads[1].request = PlannedRequest {
        method: "POST".into(),
        path: "/second".into(),
        content_type: Some("application/json".into()),
        body: "{}".into(),
    };
    plan
}

type Asked = Arc<Mutex<Vec<(bool, LoadPlan)>>>;

/// A sound lab, and what its loads were told: whether in a closed loop of [`SETTLE`], and the plan.
fn listening() -> (toll_lab::Lab, Asked) {
    let asked = Asked::default();
    let listener = Arc::clone(&asked);
    let engine = move |deployment: &Deployment, plan: &LoadPlan| -> FakeLoadScript {
        let settles = plan.model == LoadModel::closed(SETTLE.connections);
        listener.lock().unwrap().push((settles, plan.clone()));
        sound(deployment, plan)
    };
    (lab(engine), asked)
}

fn requests(plan: &LoadPlan) -> Vec<(&str, &str)> {
    plan.targets.iter().map(|target| (target.method.as_str(), target.url.as_str())).collect()
}

#[test]
fn settling_asks_each_load_equally_often_and_what_it_mixes_as_often_as_it_does() {
    let mut plan = plan_of_writes();
    let kind = |weight, path: &str| PlannedKind {
        name: path.into(),
        weight,
        request: PlannedRequest { path: path.into(), ..PlannedRequest::default() },
    };
    plan.loads[1].mix = vec![kind(2, "/often"), kind(1, "/seldom")];
    let weights = slice_plan(&plan, &SETTLE, "http://server.invalid", 0).targets;
    let weights: Vec<u32> = weights.iter().map(|target| target.weight).collect();
    assert_eq!(weights, [1_000_000, 666_666, 333_333]);
}

#[test]
fn settling_asks_what_all_loads_ask_and_a_knee_what_its_load_does() {
    let flow = settling(plan_of_writes());
    let (lab, asked) = listening();
    let found = |event: &&RunEvent| matches!(event, RunEvent::KneeFound { .. });
    let both = |events: &[RunEvent]| events.iter().filter(found).count() == 2;
    flow.run_until(&lab, both).ending.unwrap();
    let asked = asked.lock().unwrap();
    let (settles, tries): (Vec<_>, Vec<_>) = asked.iter().partition(|(settles, _)| *settles);
    let (first, second) =
        (("GET", "http://server.invalid/first"), ("POST", "http://server.invalid/second"));
    assert!(settles.iter().all(|(_, plan)| requests(plan) == [first, second]));
    assert!(tries.iter().all(|(_, plan)| requests(plan) == [second]));
    // A closed loop, four rates below what it showed and six beyond: this lab carries all of them.
    assert_eq!((settles.len(), tries.len()), (2 * 6, 2 * 11), "a variant");
}

#[test]
fn no_slice_of_an_environment_writes_what_another_or_a_trial_writes() {
    let flow = settling(plan_of_writes());
    let (lab, asked) = listening();
    assert_eq!(flow.run(&lab).ending.unwrap(), Ending::Complete);
    let asked = asked.lock().unwrap();
    let (settles, others): (Vec<_>, Vec<_>) = asked.iter().partition(|(settles, _)| *settles);
    let seeds =
        |of: &[&(bool, LoadPlan)]| of.iter().map(|(_, plan)| plan.seed).collect::<BTreeSet<_>>();
    assert_eq!(seeds(&settles).len(), 6);
    assert!(seeds(&settles).is_disjoint(&seeds(&others)));
}

#[test]
fn services_settle_before_their_knee_is_searched_for() {
    let flow = settling(plan_of_writes());
    let (lab, _) = listening();
    flow.run_until(&lab, |events| matches!(events.last(), Some(RunEvent::KneeFound { .. })))
        .ending
        .unwrap();
    assert_eq!(loads_before_the_first_proof(&lab), 6);
    let text = std::fs::read_to_string(flow.store.dir().join("knee/bare/settled.json")).unwrap();
    let settled: SettleRecord = serde_json::from_str(&text).unwrap();
    assert!(settled.stable && settled.slices.len() == 6, "{settled:?}");
}
