//! Calibrations of simulated rounds whose truth is known, and whole ones on a lab without processes.

use rand::SeedableRng;
use rand::rngs::StdRng;
use toll_load::Histogram;

use super::chance::normal;
use super::equal::{Equal, holds_zero};
use super::marks::{Mark, State};
use super::observed::{Arm, Round, Slice};
use super::planted::{LoopCost, found, plants};
use super::studies::Studies;
use super::*;
use crate::plan::{Metric, PlannedRate, Release};
use crate::run::fixture::{Flow, STUDY, lab, planned, sound};
use crate::store::RunRecord;

/// Spread of a figure from one start to the next.
const SPREAD: f64 = 0.01;
const SEED: u64 = 7;

/// What a slice's figures are multiplied by: of which round, arm, and place in the cycle (0..1).
type Factor<'f> = &'f dyn Fn(usize, usize, f64) -> f64;

/// Rounds of two cycles, in which an arm's figures differ from start to start, and by `factor` besides.
fn simulated(labels: &[&str], rounds: usize, seed: u64, factor: Factor<'_>) -> Vec<Round> {
    let mut rng = StdRng::seed_from_u64(seed);
    let guards_s = [0.0, 0.1, 0.25];
    let mut round = |number: usize| {
        let start: Vec<f64> = labels.iter().map(|_| (SPREAD * normal(&mut rng)).exp()).collect();
        let count = labels.len() * 2;
        let arms = labels.iter().enumerate().map(|(arm, label)| {
            let slice = |(cycle, at): (usize, usize)| Slice {
                cycle: cycle + 1,
                ..slice(
                    cycle * count + at,
                    start[arm] * factor(number, arm, at as f64 / (count - 1) as f64),
                )
            };
            let places = (0..2).flat_map(|cycle| [(cycle, arm), (cycle, count - 1 - arm)]);
            Arm::new((*label).into(), places.map(slice).collect())
        });
        Round { guard_s: guards_s[number % 3], arms: arms.collect() }
    };
    (1..=rounds).map(&mut round).collect()
}

/// 1,000 us of CPU for each of 100 requests, latencies around 2 ms, 2 MiB: times `factor`.
fn slice(place: usize, factor: f64) -> Slice {
    let mut latency = Histogram::new();
    (0..100).for_each(|n| latency.record_ns(((1_900_000 + n * 2_000) as f64 * factor) as u64));
    Slice {
        place,
        cycle: 1,
        cpu_us: Some(100_000.0 * factor),
        answered: 100,
        latency,
        memory_bytes: Some(2_097_152.0 * factor),
    }
}

const SIX: [&str; 6] = ["a1", "a2", "a3", "a4", "a5", "a6"];

fn equal_arms_of(rounds: usize, factor: Factor<'_>) -> Calibration {
    let rounds = simulated(&SIX, rounds, SEED, factor);
    judged(&rounds, &[], vec![])
}

fn judged(equal: &[Round], planted_rounds: &[Round], plants: Vec<Plant>) -> Calibration {
    let mut calibration = Calibration {
        version: FORMAT,
        study: "made-up".into(),
        seed: SEED,
        marks: vec![],
        equal: Equal::of(equal, 0.05, SEED),
        order: order::of(equal),
        planted_rounds: planted_rounds.len(),
        planted: found(planted_rounds, &plants, 0.05, SEED),
        plants,
    };
    calibration.marks = marks::of(&calibration);
    calibration
}

fn mark<'c>(calibration: &'c Calibration, what: &str) -> &'c Mark {
    let marks = &calibration.marks;
    marks
        .iter()
        .find(|mark| mark.what.contains(what))
        .unwrap_or_else(|| panic!("{what}: {marks:?}"))
}

#[test]
fn intervals_over_rounds_that_scatter_normally_hold_zero_in_about_95_of_100_studies() {
    let (mut holding, mut all) = (0, 0);
    for seed in 0..20 {
        let rounds = simulated(&SIX, 24, seed, &|_, _, _| 1.0);
        let studies = Studies::of(24, 6, seed);
        let effects = studies.effects(Metric::CpuPerRequest, &rounds).unwrap();
        holding += effects.iter().filter(|effect| holds_zero(effect)).count();
        all += effects.len();
    }
    let share = holding as f64 / all as f64;
    assert!((0.93..0.97).contains(&share), "{share}");
}

#[test]
fn equal_arms_pass_or_leave_it_open_and_never_fail() {
    let calibration = equal_arms_of(24, &|_, _, _| 1.0);
    let equal = calibration.equal.as_ref().unwrap();
    assert!(equal.studies >= 200 && equal.metrics.len() == 4, "{equal:?}");
    assert!(calibration.marks.iter().all(|mark| mark.state != State::Failed), "{calibration:?}");
}

#[test]
fn an_arm_that_always_costs_more_fails_coverage_and_makes_false_reports() {
    let calibration = equal_arms_of(24, &|_, arm, _| if arm == 0 { 1.05 } else { 1.0 });
    assert_eq!(mark(&calibration, "95 % intervals, CPU").state, State::Failed);
    assert_eq!(mark(&calibration, "false verdict").state, State::Failed);
}

#[test]
fn few_rounds_are_not_enough_to_judge_coverage() {
    let calibration = equal_arms_of(8, &|_, _, _| 1.0);
    assert!(calibration.marks.iter().all(|mark| mark.state == State::NotEnoughData));
}

#[test]
fn what_the_last_place_of_a_cycle_costs_more_is_found() {
    let calibration = equal_arms_of(12, &|_, _, at| if at == 1.0 { 1.05 } else { 1.0 });
    for order in &calibration.order {
        let last = order.last.unwrap();
        assert!((0.04..0.06).contains(&last.value) && last.low > 0.0, "{order:?}");
    }
    let even = equal_arms_of(12, &|_, _, _| 1.0);
    assert!(even.order.iter().all(|order| order.last.unwrap().value.abs() < 0.01));
}

#[test]
fn what_an_arm_leaves_behind_is_found_under_its_guard_alone() {
    // The last arm is at the turning point: its second slice follows its own. Rounds 3, 6, ... have no guard.
    let after_itself = |round: usize, arm: usize, at: f64| {
        if round.is_multiple_of(3) && arm == 5 && at > 0.5 { 0.9 } else { 1.0 }
    };
    let calibration = equal_arms_of(12, &after_itself);
    let cpu = &calibration.order[0].carry_over;
    let changes: Vec<_> = cpu.iter().map(|of| of.change.unwrap()).collect();
    assert_eq!(cpu.iter().map(|of| of.rounds).collect::<Vec<_>>(), [4, 4, 4]);
    assert!(changes[0].high < -0.03, "{cpu:?}");
    assert!(changes[1..].iter().all(|change| change.value.abs() < 0.02), "{cpu:?}");
}

/// Effects planted as `truths` say, times `honesty`.
fn planted_rounds(plants: &[Plant], rounds: usize, honesty: f64) -> Vec<Round> {
    let labels: Vec<&str> = ["base", "base (again)"]
        .into_iter()
        .chain(plants.iter().map(|plant| plant.name.as_str()))
        .collect();
    let mut rounds = simulated(&labels, rounds, SEED + 1, &|_, _, _| 1.0);
    for arm in rounds.iter_mut().flat_map(|round| &mut round.arms) {
        let Some(plant) = plants.iter().find(|plant| plant.name == arm.label) else { continue };
        for truth in &plant.truths {
            arm.slices.iter_mut().for_each(|slice| bear(slice, truth, honesty));
        }
        *arm = Arm::new(arm.label.clone(), std::mem::take(&mut arm.slices));
    }
    rounds
}

fn bear(slice: &mut Slice, truth: &planted::Truth, honesty: f64) {
    let size = truth.size.unwrap_or_default() * honesty;
    match truth.metric {
        Metric::CpuPerRequest => {
            slice.cpu_us = slice.cpu_us.map(|us| us + size * slice.answered as f64);
        }
        Metric::Memory => slice.memory_bytes = slice.memory_bytes.map(|bytes| bytes + size),
        Metric::LatencyP50 => {
            let mut later = Histogram::new();
            let values: Vec<u64> =
                slice.latency.0.iter_recorded().map(|v| v.value_iterated_to()).collect();
            values.iter().for_each(|ns| later.record_ns(ns + (size * 1e3) as u64));
            slice.latency = later;
        }
        _ => slice.latency.record_n_ns(22_000_000, 3),
    }
}

fn sized() -> (Vec<Round>, Vec<Plant>) {
    let rounds = simulated(&SIX, 24, SEED, &|_, _, _| 1.0);
    let equal = Equal::of(&rounds, 0.05, SEED).unwrap();
    let plants = plants(&equal, LoopCost { us: 0.002, error: 0.0 });
    (rounds, plants)
}

#[test]
fn plants_are_as_large_as_what_a_report_says_it_finds() {
    let (rounds, plants) = sized();
    let equal = Equal::of(&rounds, 0.05, SEED).unwrap();
    let cpu = equal.metric(Metric::CpuPerRequest).unwrap();
    let size = |name: &str| {
        let plant = plants.iter().find(|plant| plant.name == name).unwrap();
        plant.truths[0].size.unwrap()
    };
    assert!((size("cpu-once") / (cpu.detectable * cpu.figure) - 1.0).abs() < 0.01);
    assert!((size("cpu-twice") / size("cpu-half") - 4.0).abs() < 0.01);
    // Whole microseconds.
    assert!((size("sleep-twice") / size("sleep-half") - 4.0).abs() < 0.5);
}

#[test]
fn what_was_planted_is_found_as_large_as_it_is() {
    let (equal, plants) = sized();
    let rounds = planted_rounds(&plants, 16, 1.0);
    let calibration = judged(&equal, &rounds, plants);
    let twice = |found: &&Found| found.truth.multiple == Some(2.0);
    for found in calibration.planted.iter().filter(twice) {
        assert!(found.right.unwrap().share > 0.9, "{found:?}");
    }
    let biases = calibration.planted.iter().filter_map(|found| found.bias);
    assert!(biases.clone().count() >= 10 && biases.into_iter().all(|bias| bias.abs() < 3.5));
    let failed = calibration.marks.iter().find(|mark| mark.state == State::Failed);
    assert!(failed.is_none(), "{failed:?}");
    let late = calibration.planted.iter().find(|found| found.variant == "late").unwrap();
    assert!(late.found.low > 1.0 && late.bias.is_none(), "{late:?}");
}

#[test]
fn an_effect_twice_as_large_as_was_planted_fails_its_bias() {
    let (equal, plants) = sized();
    let rounds = planted_rounds(&plants, 16, 2.0);
    let calibration = judged(&equal, &rounds, plants);
    assert_eq!(mark(&calibration, "bias in memory").state, State::Failed);
    let of_cpu = calibration.planted.iter().find(|found| found.variant == "cpu-twice").unwrap();
    assert!(of_cpu.bias.unwrap() > 2.0, "{of_cpu:?}");
}

#[test]
fn an_effect_too_small_to_be_found_fails_its_power() {
    let (equal, plants) = sized();
    let rounds = planted_rounds(&plants, 32, 0.1);
    let calibration = judged(&equal, &rounds, plants);
    let found = calibration.planted.iter().find(|found| found.variant == "cpu-once").unwrap();
    assert!(found.right.unwrap().share < 0.5, "{found:?}");
    let figure = mark(&calibration, &format!("found: {}", found.describes));
    assert_eq!(figure.state, State::Failed);
}

#[test]
fn the_page_fits_a_terminal() {
    let (equal, mut plants) = sized();
    plants.push(planted::proxy("istio"));
    let rounds = planted_rounds(&plants, 16, 1.0);
    let page = terminal(&judged(&equal, &rounds, plants));
    let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    assert!(page.lines().count() <= 60, "{} lines:\n{page}", page.lines().count());
}

#[test]
fn a_calibration_of_nothing_says_so() {
    let page = terminal(&judged(&[], &[], vec![]));
    assert!(page.contains("Too few rounds to judge anything"), "{page}");
}

#[test]
fn the_page_for_a_browser_has_all_marks() {
    let calibration = equal_arms_of(12, &|_, _, _| 1.0);
    let page = html(&calibration);
    assert!(calibration.marks.iter().all(|mark| page.contains(&mark.what)));
}

#[test]
fn equal_arms_are_one_deployment_six_times_under_the_headline_load() {
    let study = planned(STUDY);
    let plan = super::equal_arms(&study, 600.0).unwrap();
    assert_eq!(plan.arms.len(), 6);
    assert!(plan.arms.iter().all(|arm| !arm.again));
    let deployments = plan.arms.iter().map(|arm| plan.deployment(&arm.variant).unwrap());
    let baseline = study.deployment(&study.baseline).unwrap();
    for deployment in deployments {
        let named = toll_lab::Deployment { name: deployment.name.clone(), ..baseline.clone() };
        assert_eq!(*deployment, named);
    }
    assert_eq!((plan.loads.len(), plan.extent.for_s), (1, Some(600.0)));
    let guards: Vec<f64> = (1..=4).map(|round| plan.guard_of(round)).collect();
    assert_eq!(guards, [0.1, 0.0, 0.1, 0.25]);
}

#[test]
fn a_study_without_a_service_to_plant_in_is_refused() {
    let nothing_built_in =
        STUDY.replace("{port: 9000}", "{port: 9000, program: {command: [./own]}}");
    let refused = super::equal_arms(&planned(&nothing_built_in), 600.0).unwrap_err();
    assert_eq!(refused, Unfit::NoService { study: "made-up".into() });
}

#[test]
fn a_study_without_an_open_load_is_refused() {
    let closed = STUDY.replace("open: {rate: 100/s}", "closed: {connections: 4}");
    let refused = super::equal_arms(&planned(&closed), 600.0).unwrap_err();
    assert_eq!(refused, Unfit::NoLoad { study: "made-up".into() });
}

/// The same plan for so many rounds.
fn of_rounds(plan: Plan, rounds: usize) -> Plan {
    let extent = crate::plan::PlannedExtent { rounds: Some(rounds), for_s: None, ..plan.extent };
    Plan { extent, cycles: 1, ..plan }
}

fn run(plan: Plan) -> RunRecord {
    let flow = Flow::planned(plan);
    flow.run(&lab(sound)).ending.unwrap();
    flow.stored()
}

#[test]
fn a_calibration_goes_from_a_study_to_a_page() {
    let study = planned(STUDY);
    let equal = run(of_rounds(super::equal_arms(&study, 600.0).unwrap(), 4));
    let (plan, plants) = planted_effects(&study, &equal, 400.0, 1).unwrap().unwrap();
    assert!(plan.arms.iter().any(|arm| arm.label() == "base (again)"));
    assert!(plan.arms.iter().any(|arm| arm.variant == "proxy"));
    let Release::Open { rate, .. } = plan.loads[0].release else { panic!("{:?}", plan.loads) };
    assert_eq!(rate, PlannedRate::PerSecond(100.0));
    let planted = run(of_rounds(plan, 3));
    let calibration = calibration(&equal, Some((&planted, plants)));
    assert_eq!((calibration.planted_rounds, calibration.equal.as_ref().unwrap().rounds), (3, 4));
    assert!(calibration.planted.iter().any(|found| found.variant == "proxy"), "{calibration:?}");
    let text = serde_json::to_string(&calibration).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
    assert!(terminal(&calibration).contains("not decided for want of data"));
}
