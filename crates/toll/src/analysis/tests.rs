//! Findings from runs made up here: every number is known beforehand.

mod agent;
mod chain;
mod egress;
mod sweep;

use toll_lab::{
    Component, ComponentSample, DataPlane, Deployment, HostSample, MemorySample, Proof, Reading,
    Role, Sample,
};
use toll_load::{Check, LoadReport};

use super::findings::{Caveat, CaveatKind, Effect, Findings, InvalidArm, Metric, Owner, Verdict};
use super::fixture::{
    SETTLE, Stood, arm_record, arms, each_arm, each_slice, extent, rounds, without,
};
use crate::plan::{
    Arm, Cell, Plan, PlannedExtent, PlannedKind, PlannedLoad, PlannedRate, PlannedReference,
    PlannedRequest, PlannedSlice, PlannedVariant, PublishedFigure, Release, SliceLength,
    VariantState,
};
use crate::run::fixture::phase;
use crate::store::{ArmFile, ArmRecord, CapacityRecord, HostFacts, RunRecord, SliceRecord};

const ROUNDS: usize = 5;
const CYCLES: usize = 2;
/// Requests of the measured part of a slice.
const DONE: u64 = 250;
/// Requests of its guard: what they cost has no other latency than the others', and may not show in it.
const GUARD: u64 = 50;

/// What one made-up slice shows.
#[derive(Clone, Copy)]
struct Shown {
    latency_us: u64,
    service_cpu_us: u64,
    sidecar_cpu_us: u64,
    rate_per_s: f64,
}

const BARE: Shown =
    Shown { latency_us: 1000, service_cpu_us: 300, sidecar_cpu_us: 0, rate_per_s: 100.0 };
const MESH: Shown =
    Shown { latency_us: 1600, service_cpu_us: 310, sidecar_cpu_us: 150, rate_per_s: 100.0 };

/// A run of five rounds in which `show` says what each arm shows in each round.
fn run(release: Release, show: impl Fn(&Arm, usize) -> Shown) -> RunRecord {
    run_by_cycle(release, |arm, round, _| show(arm, round))
}

/// The same by round and cycle.
fn run_by_cycle(release: Release, show: impl Fn(&Arm, usize, usize) -> Shown) -> RunRecord {
    let plan = plan(release);
    let slice = |of: &Stood<'_>, planned: &PlannedSlice| {
        slice(planned, show(of.arm, of.round, planned.cycle))
    };
    RunRecord {
        name: "made-up".into(),
        rounds: rounds(&plan, ROUNDS, arm, slice),
        plan,
        host: HostFacts { cores: Some(2), ..HostFacts::default() },
        capacities: vec![],
    }
}

fn arm(of: &Stood<'_>) -> ArmRecord {
    let proof =
        Proof { claims: vec![], left_out: vec![], traversals: vec![], calls: vec![], spans: None };
    arm_record(of, proof, ArmFile::default())
}

/// A mix of what the load asks and something else.
fn mix_after(load: &PlannedLoad) -> Vec<PlannedKind> {
    let kind =
        |name: &str, request: PlannedRequest| PlannedKind { name: name.into(), weight: 1, request };
    let other = PlannedRequest { path: "/other".into(), ..PlannedRequest::default() };
    vec![kind("first", load.request.clone()), kind("other", other)]
}

fn plan(release: Release) -> Plan {
    let variant = |name: &str| PlannedVariant {
        name: name.into(),
        describes: String::new(),
        state: VariantState::Ready(Deployment {
            nodes: 1,
            envoy: Box::default(),
            name: name.into(),
            entry: "client".into(),
            services: vec![],
            data_plane: DataPlane::Bare,
        }),
    };
    Plan {
        version: crate::plan::FORMAT,
        study: "made-up".into(),
        question: "?".into(),
        baseline: "bare".into(),
        seed: 1,
        profile: "default".into(),
        runtime: None,
        headline: vec![Metric::LatencyP50, Metric::CpuPerRequest],
        bound: 0.05,
        idle_s: 1.0,
        extent: extent(ROUNDS),
        cycles: CYCLES,
        guard_s: 0.5,
        guards_s: vec![],
        settle: SETTLE,
        side_by_side: true,
        load_pods: 1,
        variants: vec![variant("bare"), variant("mesh")],
        loads: vec![PlannedLoad {
            mix: vec![],
            cell: None,
            name: "load".into(),
            request: PlannedRequest::default(),
            spans: std::collections::BTreeMap::new(),
            release,
            slice: SliceLength::Seconds(2.5),
            timeout_ms: 10_000,
            tolerated: 0.0,
        }],
        arms: arms(&["bare", "mesh"], "bare"),
        traffic: None,
        reference: None,
        warnings: vec![],
    }
}

fn open() -> Release {
    Release::Open { rate: PlannedRate::PerSecond(100.0), poisson: false, max_connections: 10 }
}

fn slice(planned: &PlannedSlice, shown: Shown) -> SliceRecord {
    SliceRecord {
        load: planned.load.clone(),
        cycle: planned.cycle,
        place: planned.place,
        rate_per_s: Some(shown.rate_per_s),
        users: None,
        report: load_report(shown),
        samples: samples(shown, planned.place as u64),
        invalid: vec![],
    }
}

fn load_report(shown: Shown) -> LoadReport {
    let (warm_up, measure) =
        (phase(GUARD, shown.rate_per_s, 999_999), phase(DONE, shown.rate_per_s, shown.latency_us));
    let sent_in_all_phases = GUARD + DONE;
    LoadReport { version: 2, sent_in_all_phases, warm_up, measure, ..LoadReport::default() }
}

/// Counters that start at an arbitrary height: only what they rise by may count.
fn samples(shown: Shown, place: u64) -> Vec<Sample> {
    let at = |seconds: u64, requests: u64| {
        let service = 77_000_000 + requests * shown.service_cpu_us * 1000;
        let sidecar = 55_000_000 + requests * shown.sidecar_cpu_us * 1000;
        let mut components = vec![component(Role::Application, service, 10_000_000)];
        if shown.sidecar_cpu_us > 0 {
            components.push(component(Role::Sidecar, sidecar, 15_000_000));
        }
        let busy_ns =
            service + if shown.sidecar_cpu_us > 0 { sidecar } else { 0 } + requests * 20_000;
        let host = HostSample { busy_ns, steal_ns: 0, runnable: 1 };
        let at_ns = (place * 10 + seconds) * 1_000_000_000;
        Sample { at_ns, took_ns: 1, components, host, metrics: vec![] }
    };
    vec![at(0, 500), at(3, 500 + GUARD + DONE)]
}

fn component(role: Role, cpu_ns: u64, bytes: u64) -> ComponentSample {
    let memory = MemorySample {
        current: Reading::Value(bytes * 2),
        anonymous: Reading::Value(bytes),
        peak: Reading::Value(bytes * 3),
    };
    ComponentSample {
        component: Component { role, pod: "client".into() },
        cpu_ns: Reading::Value(cpu_ns),
        memory,
    }
}

fn bare_or_mesh(arm: &Arm, _: usize) -> Shown {
    if arm.variant == "mesh" { MESH } else { BARE }
}

fn effect(findings: &Findings, metric: Metric) -> Effect {
    findings.loads[0]
        .effects
        .iter()
        .find(|e| e.metric == metric)
        .expect("the metric is compared")
        .clone()
}

/// The first slices that `wanted` picks change; how many is said, or all.
fn change_slices(
    record: &mut RunRecord,
    wanted: impl Fn(usize, &Arm, &SliceRecord) -> bool,
    mut change: impl FnMut(&mut SliceRecord),
) {
    each_slice(record, |round, arm, slice| {
        if wanted(round, arm, slice) {
            change(slice);
        }
    });
}

/// What `pick` takes of the caveats.
fn picked<'a, T>(findings: &'a Findings, pick: impl Fn(&'a Caveat) -> Option<T>) -> Vec<T> {
    findings.caveats.iter().filter_map(pick).collect()
}

/// The role and the pods of an owner: `Sidecar nginx (90)`.
fn called(owner: &Owner) -> String {
    let pods = owner.pods.count.map_or_else(String::new, |count| format!(" ({count})"));
    format!("{:?} {}{pods}", owner.role, owner.pods.name).trim_end().to_owned()
}

#[test]
fn an_effect_is_the_difference_of_the_arms_within_rounds() {
    let p50 = effect(&super::findings(&run(open(), bare_or_mesh)), Metric::LatencyP50);
    // HDR histograms of three digits: within one part in a thousand.
    assert!((p50.difference.value - 600.0).abs() < 2.0, "{p50:?}");
    assert!((p50.ratio.value - 1.6).abs() < 0.005, "{p50:?}");
    assert_eq!(p50.verdict, Some(Verdict::Higher));
}

#[test]
fn cpu_per_request_counts_only_what_counters_rose_by_in_slices() {
    let found = super::findings(&run(open(), bare_or_mesh));
    let cpu = effect(&found, Metric::CpuPerRequest);
    assert!((cpu.baseline - 300.0).abs() < 1e-6 && (cpu.value - 460.0).abs() < 1e-6, "{cpu:?}");
    let own = effect(&found, Metric::ApplicationCpuPerRequest);
    assert!((own.difference.value - 10.0).abs() < 1e-6, "{own:?}");
}

#[test]
fn what_a_request_costs_is_found_wherever_in_its_slice_it_falls() {
    // Answers that take 2 s in slices of half a second: none comes while arrivals last.
    let slow = |_: &Arm, _| Shown { latency_us: 2_000_000, service_cpu_us: 828, ..BARE };
    let mut record = run(open(), slow);
    each_slice(&mut record, |_, _, slice| slice.report.measure.completed = 0);
    let found = super::findings(&record);
    let metrics = &found.loads[0].variants[0].metrics;
    let cpu = metrics.iter().find(|(metric, _)| *metric == Metric::CpuPerRequest).unwrap().1;
    assert!((cpu.value - 828.0).abs() < 1e-6, "{cpu:?}");
}

#[test]
fn the_guard_is_in_no_latency() {
    let found = super::findings(&run(open(), bare_or_mesh));
    let p99 = effect(&found, Metric::LatencyP99);
    assert!((p99.baseline - 1000.0).abs() < 2.0 && (p99.value - 1600.0).abs() < 3.0, "{p99:?}");
}

#[test]
fn both_arms_of_the_baseline_are_what_a_variant_is_held_against() {
    let apart = |arm: &Arm, _| match (arm.variant.as_str(), arm.again) {
        ("mesh", _) => MESH,
        (_, true) => Shown { service_cpu_us: 400, latency_us: 3000, ..BARE },
        _ => BARE,
    };
    let found = super::findings(&run(open(), apart));
    let cpu = effect(&found, Metric::CpuPerRequest);
    assert!((cpu.baseline - 350.0).abs() < 1e-6, "{cpu:?}");
    // Arms count alike in the ratio: the geometric mean of 300 and 400.
    assert!((cpu.ratio.value - 460.0 / 120_000_f64.sqrt()).abs() < 1e-9, "{cpu:?}");
    // Of as many requests at 1000 as at 3000 us the median is the last of the fast ones, the p90 a slow one.
    let p90 = effect(&found, Metric::LatencyP90);
    assert!((p90.baseline / 3000.0 - 1.0).abs() < 2e-3, "{p90:?}");
}

#[test]
fn the_value_of_an_effect_is_its_baseline_times_its_ratio() {
    let uneven = |arm: &Arm, round: usize| {
        let shown = bare_or_mesh(arm, round);
        let scatter = 90 + (round as u64 * 7 + u64::from(arm.again) * 5) % 21;
        let latency_us = shown.latency_us * scatter / 100;
        Shown { latency_us, service_cpu_us: shown.service_cpu_us * scatter / 100, ..shown }
    };
    let found = super::findings(&run(open(), uneven));
    assert!(!found.loads[0].effects.is_empty());
    for effect in found.loads[0].effects.iter().chain(&found.loads[0].again) {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        let difference = |ratio: f64| effect.baseline * (ratio - 1.0);
        assert!(near(effect.value, effect.baseline * effect.ratio.value), "{effect:?}");
        assert!(near(effect.difference.value, difference(effect.ratio.value)), "{effect:?}");
        assert!(near(effect.difference.low, difference(effect.ratio.low)), "{effect:?}");
        assert!(near(effect.difference.high, difference(effect.ratio.high)), "{effect:?}");
    }
}

#[test]
fn what_no_component_used_is_unattributed() {
    let found = super::findings(&run(open(), bare_or_mesh));
    for variant in &found.loads[0].variants {
        let last = variant.cpu_per_request.last().unwrap();
        assert_eq!(last.owner, Owner::unattributed());
        assert!((last.cost.value - 20.0).abs() < 1e-6, "{last:?}");
    }
}

#[test]
fn identical_arms_give_no_difference() {
    let found = super::findings(&run(open(), |_, _| BARE));
    let p50 = effect(&found, Metric::LatencyP50);
    assert!(matches!(p50.verdict, Some(Verdict::NoDifference { .. })), "{p50:?}");
    for again in &found.loads[0].again {
        assert_eq!((again.ratio.value, again.verdict), (1.0, None), "{again:?}");
        assert_eq!(again.variant, "bare (again)");
    }
}

#[test]
fn a_drift_of_the_whole_machine_cancels_within_rounds() {
    let drifting = |arm: &Arm, round: usize| {
        let shown = bare_or_mesh(arm, round);
        Shown {
            service_cpu_us: shown.service_cpu_us * (100 + 20 * round as u64) / 100,
            sidecar_cpu_us: 0,
            ..shown
        }
    };
    let cpu = effect(&super::findings(&run(open(), drifting)), Metric::CpuPerRequest);
    assert!((cpu.ratio.high - cpu.ratio.low).abs() < 0.01, "{cpu:?}");
}

#[test]
fn the_baseline_against_itself_is_no_hurdle_for_a_variant() {
    // The variant is 30 us slower in every round, while the baseline's second arm scatters by more.
    let noisy = |arm: &Arm, round: usize| match (arm.variant.as_str(), arm.again) {
        ("mesh", _) => Shown { service_cpu_us: 600, ..BARE },
        (_, true) => Shown { service_cpu_us: 240 + 30 * round as u64, ..BARE },
        _ => BARE,
    };
    let found = super::findings(&run(open(), noisy));
    assert_eq!(effect(&found, Metric::CpuPerRequest).verdict, Some(Verdict::Higher));
    assert!(found.loads[0].again.iter().all(|again| again.verdict.is_none()));
}

#[test]
fn only_headline_metrics_under_the_headline_load_have_verdicts() {
    let mut record = run(open(), bare_or_mesh);
    let closed = PlannedLoad {
        name: "flat-out".into(),
        release: Release::Closed { connections: 4 },
        ..record.plan.loads[0].clone()
    };
    record.plan.loads.insert(0, closed);
    each_arm(&mut record, |_, of| {
        let mut copies = of.slices.clone();
        copies.iter_mut().for_each(|slice| slice.load = "flat-out".into());
        of.slices.extend(copies);
    });
    let found = super::findings(&record);
    assert_eq!(found.headline_load.as_deref(), Some("load"));
    for load in &found.loads {
        for effect in &load.effects {
            let wanted = load.name == "load" && found.headline.contains(&effect.metric);
            assert_eq!(effect.verdict.is_some(), wanted, "{} {:?}", load.name, effect.metric);
        }
    }
    let live = super::headline(&record);
    let told: Vec<&Effect> =
        found.loads[0].effects.iter().filter(|effect| effect.verdict.is_some()).collect();
    assert_eq!(live.iter().collect::<Vec<_>>(), told);
}

#[test]
fn one_round_has_effects_without_an_interval_or_a_verdict() {
    let mut record = run(open(), bare_or_mesh);
    record.rounds.truncate(1);
    let found = super::findings(&record);
    let cpu = effect(&found, Metric::CpuPerRequest);
    assert_eq!(
        (cpu.ratio.rounds, cpu.ratio.low, cpu.ratio.high),
        (1, cpu.ratio.value, cpu.ratio.value)
    );
    assert!(found.loads[0].effects.iter().all(|effect| effect.verdict.is_none()));
    assert!(found.caveats.contains(&Caveat::OneRound));
    assert!(!super::is_sharp(&wanting(1.0, 2), &super::headline(&record)));
}

#[test]
fn a_run_is_sharp_when_every_headline_metric_is() {
    let scattered = |arm: &Arm, round: usize| match arm.variant.as_str() {
        "mesh" => Shown { service_cpu_us: 300 + 10 * round as u64, ..MESH },
        _ => BARE,
    };
    let effects = super::headline(&run(open(), scattered));
    assert_eq!(effects.len(), 2);
    // 460 to 500 us in steps of 10: a half-width of 2.776 x 15.8 / sqrt(5) = 19.6 of 480.
    assert!(super::is_sharp(&wanting(0.042, 5), &effects));
    assert!(!super::is_sharp(&wanting(0.039, 5), &effects));
    assert!(!super::is_sharp(&wanting(0.042, 6), &effects));
    assert!(!super::is_sharp(&wanting(1.0, 1), &[]));
    // What has no figure at all is not sharp either.
    assert!(!super::is_sharp(&wanting(1.0, 1), &effects[..1]));
}

/// A plan of a run that is to end when its half-widths are so narrow.
fn wanting(width: f64, least_rounds: usize) -> Plan {
    let mut plan = run(open(), bare_or_mesh).plan;
    plan.extent = PlannedExtent { rounds: None, for_s: None, width: Some(width), least_rounds };
    plan
}

#[test]
fn an_invalid_slice_counts_for_nothing_and_is_told_with_its_reason() {
    let mut record = run(open(), bare_or_mesh);
    let second = |round, arm: &Arm, slice: &SliceRecord| {
        round == 2 && arm.variant == "mesh" && slice.cycle == 1
    };
    change_slices(&mut record, second, |slice| {
        slice.invalid = vec!["3 requests failed".into()];
        slice.report = load_report(Shown { latency_us: 900_000, ..MESH });
    });
    let found = super::findings(&record);
    let p99 = effect(&found, Metric::LatencyP99);
    assert_eq!(p99.difference.rounds, 5);
    assert!((p99.value - 1600.0).abs() < 3.0, "{p99:?}");
    let reasons = vec![("3 requests failed".into(), 2)];
    let told = Caveat::InvalidSlices { slices: 2, all: 60, reasons };
    assert!(found.caveats.contains(&told), "{:?}", found.caveats);
    assert_eq!(found.extent.slices, (58, 60));
}

#[test]
fn an_invalid_slice_takes_the_other_of_its_cycle_with_it() {
    let mut record = run(open(), bare_or_mesh);
    let of_cycle = |round, arm: &Arm, slice: &SliceRecord| {
        round == 2 && arm.variant == "mesh" && slice.cycle == 1
    };
    let mut is_first = true;
    change_slices(&mut record, of_cycle, |slice| match std::mem::take(&mut is_first) {
        true => slice.invalid = vec!["3 requests failed".into()],
        false => slice.report = load_report(Shown { latency_us: 900_000, ..MESH }),
    });
    let found = super::findings(&record);
    assert!((effect(&found, Metric::LatencyP99).value - 1600.0).abs() < 3.0);
    let reasons = vec![("3 requests failed".into(), 1)];
    assert!(found.caveats.contains(&Caveat::InvalidSlices { slices: 1, all: 60, reasons }));
}

#[test]
fn a_check_of_the_load_generator_that_does_not_hold_is_told() {
    let mut record = run(open(), bare_or_mesh);
    let is_mesh = |round, arm: &Arm, _: &SliceRecord| round == 2 && arm.variant == "mesh";
    change_slices(&mut record, is_mesh, |slice| {
        let check = |name: &str| Check { name: name.into(), ..Check::default() };
        slice.report.checks = vec![check("own-cpu"), check("send-lag")];
    });
    let found = super::findings(&record);
    assert!(found.caveats.contains(&Caveat::Generator { checks: vec![("own-cpu".into(), 4)] }));
}

#[test]
fn an_arm_without_a_proof_counts_for_nothing_and_its_round_is_not_compared() {
    let mut record = run(open(), bare_or_mesh);
    each_arm(&mut record, |round, of| {
        if round == 2 && of.arm.variant == "mesh" {
            of.file.invalid = vec!["path not proven".into()];
        }
    });
    let found = super::findings(&record);
    assert_eq!(effect(&found, Metric::CpuPerRequest).ratio.rounds, 4);
    let reasons = vec!["path not proven".into()];
    let arms = vec![InvalidArm { arm: "mesh".into(), round: 2, reasons: reasons.clone() }];
    assert!(found.caveats.contains(&Caveat::InvalidArms { arms, all: 15 }));
    let line = found.rounds.iter().find(|line| line.round == 2 && line.arm == "mesh").unwrap();
    assert_eq!((line.slices, &line.invalid), ((0, 4), &reasons));
}

#[test]
fn a_round_with_one_arm_of_the_baseline_still_counts() {
    let record = without(run(open(), bare_or_mesh), |round, arm, _| round == 2 && arm.again);
    assert_eq!(effect(&super::findings(&record), Metric::CpuPerRequest).ratio.rounds, 5);
}

#[test]
fn throughput_is_an_effect_flat_out_and_a_check_at_an_equal_rate() {
    let slower = |arm: &Arm, round: usize| {
        let rate_per_s = if arm.variant == "mesh" { 76.0 } else { 100.0 };
        Shown { rate_per_s, ..bare_or_mesh(arm, round) }
    };
    let flat_out = super::findings(&run(Release::Closed { connections: 36 }, slower));
    assert!((effect(&flat_out, Metric::Throughput).ratio.value - 0.76).abs() < 1e-6);
    let equal_rate = super::findings(&run(open(), slower));
    assert!(equal_rate.loads[0].effects.iter().all(|e| e.metric != Metric::Throughput));
    let unequal = |caveat: &Caveat| matches!(caveat, Caveat::UnequalRates { .. });
    assert!(equal_rate.caveats.iter().any(unequal), "{:?}", equal_rate.caveats);
}

#[test]
fn a_late_generator_drops_no_slice_and_weakens_the_percentile_that_it_shows_in() {
    let mut record = run(open(), bare_or_mesh);
    change_slices(
        &mut record,
        |_, arm, _| arm.variant == "mesh",
        |slice| {
            // Two requests in a hundred were sent 400 us late.
            slice.report.measure.latency.record_n_ns(2_000_000, 5);
            slice.report.measure.service_time.record_n_ns(1_600_000, 5);
        },
    );
    let found = super::findings(&record);
    assert_eq!(found.extent.slices, (60, 60));
    let late = picked(&found, |caveat| match caveat {
        Caveat::SendLag { percentiles } => Some(percentiles.as_slice()),
        _ => None,
    });
    let [[p99]] = late[..] else { panic!("{late:?}") };
    assert_eq!((p99.metric, p99.variant.as_str()), (Metric::LatencyP99, "mesh"));
    assert!((p99.share - 0.25).abs() < 0.005, "{p99:?}");
}

/// Cycle 2 of round 3 as if something else had run beside `hit`.
fn disturbed(hit: impl Fn(&Arm) -> bool) -> RunRecord {
    let costs = |arm: &Arm, round: usize, cycle: usize| {
        let shown = bare_or_mesh(arm, round);
        let more = if (round, cycle) == (3, 2) && hit(arm) { 300 } else { 0 };
        Shown { service_cpu_us: shown.service_cpu_us + more, ..shown }
    };
    let mut record = run_by_cycle(open(), costs);
    let there = |round, arm: &Arm, slice: &SliceRecord| round == 3 && slice.cycle == 2 && hit(arm);
    change_slices(&mut record, there, |slice| {
        // Three quarters of both cores.
        slice.samples.last_mut().unwrap().host.busy_ns += 4_500_000_000;
    });
    record
}

#[test]
fn a_disturbed_cycle_is_excused_for_all_arms_whichever_it_hit() {
    let hits: [fn(&Arm) -> bool; 2] = [|arm| arm.variant == "mesh", |arm| arm.again];
    for hit in hits {
        let found = super::findings(&disturbed(hit));
        assert_eq!(found.extent.excused, (1, 10));
        let excused: Vec<(usize, (usize, usize))> =
            found.rounds.iter().map(|line| (line.round, line.slices)).collect();
        assert!(
            excused
                .iter()
                .all(|(round, slices)| *slices == if *round == 3 { (2, 4) } else { (4, 4) })
        );
        let cpu = effect(&found, Metric::CpuPerRequest);
        assert!((cpu.ratio.value - 460.0 / 300.0).abs() < 1e-9, "{cpu:?}");
        let with = cpu.unexcused_ratio.unwrap();
        assert!((with.value - cpu.ratio.value).abs() > 0.01, "{with:?}");
        let moved = picked(&found, |caveat| match caveat {
            Caveat::Excused { cycles: 1, all: 10, moved } => Some(moved),
            _ => None,
        });
        let of_cpu = moved[0].iter().find(|of| of.metric == Metric::CpuPerRequest).unwrap();
        assert_eq!((of_cpu.ratio, of_cpu.other_ratio), (cpu.ratio.value, with.value));
    }
}

#[test]
fn where_nothing_was_excused_there_is_no_second_figure() {
    let found = super::findings(&run(open(), bare_or_mesh));
    assert_eq!(found.extent.excused, (0, 10));
    assert!(found.loads[0].effects.iter().all(|effect| effect.unexcused_ratio.is_none()));
}

#[test]
fn a_machine_that_is_disturbed_throughout_excuses_nothing() {
    let mut record = run(open(), bare_or_mesh);
    change_slices(
        &mut record,
        |round, _, _| round > 3,
        |slice| {
            slice.samples.last_mut().unwrap().host.steal_ns += 4_500_000_000;
        },
    );
    // Four of ten.
    let found = super::findings(&record);
    assert_eq!(found.extent.excused, (0, 10));
    assert!(found.caveats.contains(&Caveat::DisturbedThroughout));
    assert!((found.extent.steal - 0.75).abs() < 1e-9);
    assert!(found.caveats.contains(&Caveat::Stolen { share: found.extent.steal }));
}

#[test]
fn the_trimmed_mean_leaves_a_wild_cycle_out() {
    let wild = |arm: &Arm, round: usize, cycle: usize| match (arm.variant.as_str(), round, cycle) {
        ("mesh", 4, 1) => Shown { service_cpu_us: 3000, ..MESH },
        _ => bare_or_mesh(arm, round),
    };
    let found = super::findings(&run_by_cycle(open(), wild));
    let cpu = effect(&found, Metric::CpuPerRequest);
    assert!((cpu.trimmed_ratio.unwrap() - 460.0 / 300.0).abs() < 1e-9, "{cpu:?}");
    assert!(cpu.ratio.value > 1.7, "{cpu:?}");
    let scatter = cpu.scatter.unwrap();
    assert!(scatter.within_rounds > scatter.between_rounds, "{scatter:?}");
}

#[test]
fn a_spread_between_starts_says_that_more_of_them_would_help() {
    let by_start = |arm: &Arm, round: usize| match arm.variant.as_str() {
        "mesh" => Shown { service_cpu_us: 300 + 20 * round as u64, ..MESH },
        _ => BARE,
    };
    let scatter = effect(&super::findings(&run(open(), by_start)), Metric::CpuPerRequest).scatter;
    let scatter = scatter.unwrap();
    assert!(scatter.rounds_help_more && scatter.between_rounds > 0.03, "{scatter:?}");
    assert!(scatter.within_rounds < 1e-9, "{scatter:?}");
}

/// A curve at a tenth, half and all of a capacity of 1000/s.
fn curved() -> RunRecord {
    let mut record = run(open(), bare_or_mesh);
    record.capacities =
        vec![CapacityRecord { variant: "mesh".into(), per_s: 1000.0, slices: vec![] }];
    let shares = [0.1, 0.5, 1.0];
    for share in shares {
        let cell = Cell {
            load: "curve".into(),
            share: Some(share),
            rate_per_s: None,
            connections: None,
            replicas: None,
            nodes: None,
        };
        let rate = PlannedRate::OfCapacity(share);
        let point = PlannedLoad {
            name: format!("curve-{share}"),
            cell: Some(cell),
            release: Release::Open { rate, poisson: false, max_connections: 10 },
            ..record.plan.loads[0].clone()
        };
        record.plan.loads.push(point);
    }
    each_arm(&mut record, |_, of| {
        let first = of.slices[0].clone();
        for share in shares {
            let rate_per_s = share * 1000.0;
            // All of it is more than mesh carries.
            let is_past = of.arm.variant == "mesh" && share == 1.0;
            let completed = if is_past { 900.0 } else { rate_per_s };
            let latency_us = if is_past { 40_000 } else { 1000 + (share * 1000.0) as u64 };
            let mut slice = first.clone();
            slice.load = format!("curve-{share}");
            slice.rate_per_s = Some(rate_per_s);
            slice.report = load_report(Shown { rate_per_s: completed, latency_us, ..MESH });
            of.slices.push(slice);
        }
    });
    record
}

#[test]
fn a_curve_has_a_line_a_variant_and_its_knee_and_its_points_are_no_loads() {
    let found = super::findings(&curved());
    assert_eq!(found.loads.len(), 1);
    let curve = found.curve.as_ref().unwrap();
    let [bare, mesh] = curve.lines.as_slice() else { panic!("two variants") };
    assert_eq!(
        bare.points.iter().map(|p| p.rate_per_s).collect::<Vec<_>>(),
        [100.0, 500.0, 1000.0]
    );
    assert_eq!(mesh.points.iter().map(|p| p.carried).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!((bare.knee_per_s, mesh.knee_per_s), (None, Some(500.0)));
    assert!((mesh.points[1].p50_us.value - 1500.0).abs() < 3.0);
    assert!((mesh.points[1].cpu_us.unwrap().value - 460.0).abs() < 1e-6);
    let lags = |caveat: &Caveat| matches!(caveat, Caveat::NotCarried { .. });
    assert!(!found.caveats.iter().any(lags), "{:?}", found.caveats);
    assert_eq!(super::findings(&run(open(), bare_or_mesh)).curve, None);
}

#[test]
fn a_rate_that_is_carried_late_is_past_the_knee() {
    let mut record = curved();
    change_slices(
        &mut record,
        |_, _, slice| slice.load == "curve-0.5",
        |slice| {
            slice.report.measure.latency.record_n_ns(60_000_000, 50);
        },
    );
    let curve = super::findings(&record).curve.unwrap();
    assert_eq!((curve.lines[0].knee_per_s, curve.lines[1].knee_per_s), (Some(100.0), Some(100.0)));
}

#[test]
fn answers_that_do_not_keep_up_are_told_by_arm_and_load() {
    let mut record = run(open(), bare_or_mesh);
    change_slices(
        &mut record,
        |round, arm, _| round < 3 && arm.variant == "mesh",
        |slice| {
            slice.report.measure.completed -= 20;
        },
    );
    let found = super::findings(&record);
    let lagging = picked(&found, |caveat| match caveat {
        Caveat::NotCarried { arms } => Some(arms.as_slice()),
        _ => None,
    });
    let [[of]] = lagging[..] else { panic!("{lagging:?}") };
    assert_eq!((of.arm.as_str(), of.load.as_str(), of.rounds), ("mesh", "load", 2));
}

#[test]
fn caveats_come_kind_by_kind() {
    let mut record = run(open(), bare_or_mesh);
    record.rounds.truncate(2);
    record.host.lacks = vec!["no cgroups".into()];
    record.plan.warnings = vec!["few connections".into()];
    let kinds: Vec<CaveatKind> =
        super::findings(&record).caveats.iter().map(Caveat::kind).collect();
    assert_eq!(
        kinds,
        [CaveatKind::Missing, CaveatKind::Comparison, CaveatKind::Precision, CaveatKind::Lab]
    );
}

#[test]
fn published_figures_are_compared_by_their_ratio_to_the_published_baseline() {
    let mut record = run(open(), bare_or_mesh);
    let figure = |variant: &str, value: f64| PublishedFigure {
        variant: variant.into(),
        load: "load".into(),
        figure: "latency_ms.mean".into(),
        value,
    };
    record.plan.reference = Some(PlannedReference {
        source: "a paper".into(),
        notes: vec![],
        figures: vec![figure("bare", 10.0), figure("mesh", 12.0)],
        recomputed: vec![],
    });
    let found = super::findings(&record);
    let [bare, mesh] = found.loads[0].reference.as_slice() else { panic!("two rows") };
    assert_eq!((bare.published_ratio, bare.measured_ratio), (None, None));
    assert!((mesh.published_ratio.unwrap() - 1.2).abs() < 1e-9);
    assert!((mesh.measured_ratio.unwrap().value - 1.6).abs() < 0.005);
    assert!((mesh.measured.unwrap() - 1.6).abs() < 0.005);
}

#[test]
fn a_rate_relative_to_the_capacity_is_that_of_the_slowest_variant() {
    let share =
        Release::Open { rate: PlannedRate::OfCapacity(0.6), poisson: false, max_connections: 10 };
    let mut record = run(share, bare_or_mesh);
    let capacity =
        |variant: &str, per_s| CapacityRecord { variant: variant.into(), per_s, slices: vec![] };
    record.capacities = vec![capacity("bare", 2000.0), capacity("mesh", 1500.0)];
    assert_eq!(super::findings(&record).loads[0].rate_per_s, Some(900.0));
}

#[test]
fn the_same_run_gives_the_same_findings_byte_for_byte() {
    let record = run(open(), bare_or_mesh);
    let text = |record: &RunRecord| serde_json::to_string(&super::findings(record)).unwrap();
    assert_eq!(text(&record), text(&record));
}
