//! Fresh services settle: slice after slice round the arms, until they are stable or the time is up.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use toll_lab::{
    Component, ComponentSample, Deployment, FakeCall, FakeLoadScript, HostSample, MemorySample,
};
use toll_load::PhaseReport;

use super::*;
use crate::plan::{PlannedKind, PlannedRequest};
use crate::run::Ending;
use crate::run::fixture::{Flow, STUDY, calls, lab, phase, planned, report, reporting, sound};

/// Slices of settling that each arm of the first round had, and whether it was stable then.
fn settled(flow: &Flow) -> Vec<(usize, bool)> {
    let first = flow.stored().rounds.remove(0);
    let settled = first.arms.into_iter().map(|arm| arm.file.settled.unwrap());
    settled.map(|settled| (settled.slices.len(), settled.stable)).collect()
}

/// A lab whose services answer as many requests a second as `series` says, slice of settling after slice of all arms.
fn warming_up(series: &'static [u64]) -> toll_lab::Lab {
    let slices = AtomicUsize::new(0);
    lab(move |deployment, plan| {
        if plan.model != LoadModel::closed(4) {
            return sound(deployment, plan);
        }
        let number = slices.fetch_add(1, Ordering::Relaxed) / 3;
        let per_s = series[number.min(series.len() - 1)];
        reporting(deployment, report(phase(per_s, per_s as f64, 900)))
    })
}

#[test]
fn services_at_rest_are_stable_after_as_many_slices_as_can_be_judged() {
    let flow = Flow::of(STUDY);
    flow.run(&warming_up(&[500])).ending.unwrap();
    assert_eq!(settled(&flow), [(6, true); 3]);
}

#[test]
fn services_that_still_grow_faster_settle_until_they_do_not() {
    let flow = Flow::of(&STUDY.replace("max: 6s", "max: 20s"));
    flow.run(&warming_up(&[100, 200, 300, 400, 500])).ending.unwrap();
    // The windows are of the slices 5 to 7 and 8 to 10 when they are alike.
    assert_eq!(settled(&flow), [(10, true); 3]);
}

#[test]
fn services_that_never_come_to_rest_are_recorded_and_measured_all_the_same() {
    let flow = Flow::of(&STUDY.replace("max: 6s", "max: 8s"));
    let never = &[100, 120, 150, 190, 240, 300, 380, 480, 600, 750, 940, 1200];
    assert_eq!(flow.run(&warming_up(never)).ending.unwrap(), Ending::Complete);
    assert_eq!(settled(&flow), [(8, false); 3]);
    assert!(flow.stored().rounds[0].arms.iter().all(|arm| arm.file.invalid.is_empty()));
}

#[test]
fn a_slice_tells_the_cpu_of_the_measured_components_for_each_request() {
    let flow = Flow::of(STUDY);
    flow.run(&lab(sound)).ending.unwrap();
    for arm in flow.stored().rounds.remove(0).arms {
        // 300 us in the service; in `mesh` 310 and 150 in the sidecar.
        let expected = if arm.arm.variant == "mesh" { 460.0 } else { 300.0 };
        for slice in arm.file.settled.unwrap().slices {
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

fn component(role: Role, cpu_ns: Reading<u64>) -> ComponentSample {
    let memory = MemorySample {
        current: Reading::Value(0),
        anonymous: Reading::Value(0),
        peak: Reading::Value(0),
    };
    ComponentSample { component: Component { role, pod: "p".into() }, cpu_ns, memory }
}

fn sample(at_ns: u64, components: Vec<ComponentSample>) -> Sample {
    let host = HostSample { busy_ns: 0, steal_ns: 0, runnable: 0 };
    Sample { at_ns, took_ns: 0, components, host, metrics: vec![] }
}

#[test]
fn the_load_generator_and_toll_itself_are_not_on_the_bill() {
    let measured = [Role::Application, Role::Sidecar, Role::Gateway, Role::Database]
        .map(|role| component(role, Reading::Value(10)));
    let others = [Role::LoadGenerator, Role::Harness]
        .map(|role| component(role, Reading::Missing("ended".into())));
    assert_eq!(cpu_ns(&sample(0, [&measured[..], &others].concat())), Some(40));
    let gone = component(Role::Database, Reading::Missing("ended".into()));
    assert_eq!(cpu_ns(&sample(0, [&measured[..], &[gone]].concat())), None);
}

#[test]
fn a_rest_ends_when_the_services_are_quiet_or_its_time_is_up() {
    // A fake lab's seconds are samples: without load its services use nothing.
    let rested = |rest_s| {
        let mut plan = planned(STUDY);
        plan.settle.rest_s = rest_s;
        plan.extent.rounds = Some(1);
        let flow = Flow::planned(plan);
        flow.run(&lab(sound)).ending.unwrap();
        flow.stored().rounds.remove(0).arms.remove(0).file.settled.unwrap().rest_s
    };
    let looks_s = LOOK_EVERY.as_secs_f64() * f64::from(QUIET_LOOKS);
    assert!((looks_s..looks_s + 2.0).contains(&rested(60.0)));
    assert!((0.01..looks_s).contains(&rested(0.01)));
    assert_eq!(rested(0.0), 0.0);
}

#[test]
fn what_uses_a_core_or_cannot_be_read_is_not_quiet() {
    let of = |at_ns, cpu_ns| sample(at_ns, vec![component(Role::Application, cpu_ns)]);
    let before = of(0, Reading::Value(0));
    let after = |cpu_ns| is_quiet(&before, &of(1_000_000_000, cpu_ns));
    assert!(after(Reading::Value(40_000_000)));
    assert!(!after(Reading::Value(60_000_000)));
    assert!(!after(Reading::Missing("ended".into())));
}

#[test]
fn a_slice_without_one_good_answer_in_a_later_round_costs_its_arm_the_round() {
    let flow = Flow::of(STUDY);
    let slices = AtomicUsize::new(0);
    let lab = lab(move |deployment, plan| {
        let settles = plan.model == LoadModel::closed(4);
        // The first round has 18 slices of settling.
        if settles && slices.fetch_add(1, Ordering::Relaxed) == 18 {
            let refused = PhaseReport { unexpected: [(503, 40)].into(), ..phase(40, 40.0, 900) };
            return reporting(deployment, report(refused));
        }
        sound(deployment, plan)
    });
    assert_eq!(flow.run(&lab).ending.unwrap(), Ending::Complete);
    let arms = flow.stored().rounds.into_iter().flat_map(|round| round.arms);
    let invalid: Vec<_> = arms.filter(|arm| !arm.file.invalid.is_empty()).collect();
    let [arm] = invalid.as_slice() else { panic!("{invalid:?}") };
    let why = "not one request was answered well: 40 x status 503";
    assert_eq!(arm.file.invalid, [why.into()]);
    assert!(arm.slices.is_empty());
}

#[test]
fn an_interrupt_while_services_settle_leaves_nothing_up_and_nothing_measured() {
    let (flow, lab) = (Flow::of(STUDY), lab(sound));
    let ran = flow.run_until(&lab, |events| {
        events.iter().filter(|event| matches!(event, RunEvent::Settling { .. })).count() == 3
    });
    assert_eq!(ran.ending.unwrap(), Ending::Interrupted);
    assert!(flow.stored().rounds.is_empty());
    assert!(matches!(calls(&lab).last(), Some(FakeCall::Down(_))));
    assert!(!calls(&lab).contains(&FakeCall::OpenProof));
}

/// Another load at a rate of its own, then a POST at half of the capacity.
fn plan_of_writes() -> crate::plan::Plan {
    let mut plan = planned(&STUDY.replace(
        "loads:\n  steady: {open: {rate: 100/s}",
        "loads:\n  before: {open: {rate: 50/s}, slice: 10s}\n  steady: {open: {rate: 50% of capacity}",
    ));
    plan.loads[0].request.path = "/first".into();
    plan.loads[1].request = PlannedRequest {
        method: "POST".into(),
        path: "/second".into(),
        content_type: Some("application/json".into()),
        body: "{}".into(),
        ..PlannedRequest::default()
    };
    plan
}

type Heard = Arc<Mutex<Vec<LoadPlan>>>;

/// A sound lab, and what its loads were told.
fn listening() -> (toll_lab::Lab, Heard) {
    let heard = Heard::default();
    let listener = Arc::clone(&heard);
    let engine = move |deployment: &Deployment, plan: &LoadPlan| -> FakeLoadScript {
        listener.lock().unwrap().push(plan.clone());
        sound(deployment, plan)
    };
    (lab(engine), heard)
}

#[test]
fn where_answers_are_slow_the_guards_and_slices_of_all_arms_are_longer() {
    let heard = Heard::default();
    let listener = Arc::clone(&heard);
    let lab = lab(move |deployment: &Deployment, plan: &LoadPlan| {
        listener.lock().unwrap().push(plan.clone());
        match plan.model == LoadModel::closed(4) && deployment.name == "mesh" {
            true => reporting(deployment, report(phase(4, 4.0, 2_000_000))),
            false => sound(deployment, plan),
        }
    });
    Flow::of(&STUDY.replace("100/s", "50% of capacity")).run(&lab).ending.unwrap();
    let heard = heard.lock().unwrap();
    let loads = heard.iter().filter(|plan| plan.model != LoadModel::closed(4));
    for plan in loads {
        assert!((plan.warm_up.min_s - 3.0).abs() < 0.01, "{:?}", plan.warm_up);
        let is_closed = matches!(plan.model, LoadModel::Closed { .. });
        let Stop::AfterSeconds(slice_s) = plan.stop else { panic!("{:?}", plan.stop) };
        let expected_s = if is_closed { 16.0 } else { 10.0 };
        assert!((slice_s - expected_s).abs() < 0.05, "{slice_s}");
    }
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
    let weights = slice_plan(&plan, "http://server.invalid", 0).targets;
    let weights: Vec<u32> = weights.iter().map(|target| target.weight).collect();
    assert_eq!(weights, [1_000_000, 666_666, 333_333]);
}

#[test]
fn settling_asks_what_all_loads_ask_and_the_capacity_is_that_of_the_load_that_refers_to_it() {
    let (flow, (lab, heard)) = (Flow::planned(plan_of_writes()), listening());
    flow.run(&lab).ending.unwrap();
    let heard = heard.lock().unwrap();
    let of =
        |connections| heard.iter().filter(move |plan| plan.model == LoadModel::closed(connections));
    let (first, second) =
        (("GET", "http://server.invalid/first"), ("POST", "http://server.invalid/second"));
    assert!(of(4).all(|plan| requests(plan) == [first, second]));
    assert!(of(32).all(|plan| requests(plan) == [second]));
    assert_eq!((of(4).count(), of(32).count()), (2 * 3 * 6, 2 * 4));
}

#[test]
fn no_slice_of_an_environment_writes_what_another_writes() {
    let (flow, (lab, heard)) = (Flow::planned(plan_of_writes()), listening());
    assert_eq!(flow.run(&lab).ending.unwrap(), Ending::Complete);
    let heard = heard.lock().unwrap();
    let of_mesh =
        |plans: &[LoadPlan]| -> BTreeSet<u64> { plans.iter().map(|plan| plan.seed).collect() };
    // Six of settling, in each round the same on fresh services; four of the capacity; four slices in each round.
    assert_eq!(of_mesh(&heard).len(), 6 + 4 + 2 * 4);
}
