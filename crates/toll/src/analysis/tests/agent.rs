//! Findings of a made-up gateway and vets, on JVMs that tell of themselves, without and with an agent.

use std::collections::BTreeMap;

use toll_lab::{
    AgentKind, Component, ComponentSample, DataPlane, Egress, HostSample, JavaAgent, MemorySample,
    Mtls, PodMetrics, Program, Reading, Role, Sample, Service, ServiceSpans, SidecarProxy, Spans,
    UserProgram,
};
use toll_load::{Histogram, StageReport};

use super::super::findings::{
    Caveat, Derived, Estimate, Findings, Growth, HeapTrend, JvmUse, LeftOut, LoadNames, Regime,
    SpanCosts, View,
};
use super::super::fixture::{Stood, each_arm, each_slice, rounds, without, without_arms};
use super::{ROUNDS, mix_after, open, picked, run};
use crate::plan::{
    Arm, PlannedLoad, PlannedRate, PlannedReference, PlannedRequest, PlannedSlice, PlannedUsers,
    PublishedFigure, Recomputed, Release, VariantState,
};
use crate::store::{CapacityRecord, RunRecord, SliceRecord};

const MIB: f64 = 1024.0 * 1024.0;
/// Answers of a slice.
const DONE: u64 = super::DONE + super::GUARD;

/// An arm in a round.
#[derive(Clone, Copy)]
struct Of<'a> {
    arm: &'a Arm,
    round: usize,
    /// Position of the slice among all of its arm and round.
    slice: usize,
}

/// CPU per request of gateway and vets, microseconds.
type Cost = fn(&Of<'_>, spans: u64) -> [f64; 2];
/// What vets tells, at this second of a slice.
type Told = fn(&Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>>;

/// 20 us for the gateway's span, 10 us for each of vets' own and 35 us whatever their number.
fn cost(of: &Of<'_>, spans: u64) -> [f64; 2] {
    let (noise, own) = (of.round as f64, spans.saturating_sub(1) as f64);
    match of.arm.variant.as_str() {
        "mesh" => [120.0 + noise, 200.0 + 7.0 * own + noise + 35.0 + 10.0 * own],
        _ => [100.0 + noise, 200.0 + 7.0 * own + noise],
    }
}

fn quiet(_: &Of<'_>, _: usize) -> Reading<Vec<(&'static str, f64)>> {
    Reading::Value(vec![])
}

fn made(loads: &[(&str, u64)], cost: Cost, told: Told) -> RunRecord {
    let mut record = run(open(), |_, _| super::BARE);
    record.plan.cycles = 1;
    record.plan.loads = loads.iter().map(|(name, spans)| load(name, *spans)).collect();
    for variant in &mut record.plan.variants {
        let VariantState::Ready(deployment) = &mut variant.state else { panic!("it is ready") };
        deployment.services = ["gateway", "vets"].map(service).into();
        if variant.name == "mesh" {
            let settings = BTreeMap::new();
            let kind = AgentKind::OpenTelemetry;
            deployment.data_plane =
                DataPlane::Agent(JavaAgent { kind, settings, spans: BTreeMap::new() });
        }
    }
    let slice = |of: &Stood<'_>, planned: &PlannedSlice| {
        // Three arms there, three back.
        let slice = planned.place / 3;
        let of = Of { arm: of.arm, round: of.round, slice };
        let (_, spans) = loads.iter().find(|(name, _)| *name == planned.load).expect("it is one");
        SliceRecord {
            samples: samples(&of, planned.place, cost(&of, *spans), told),
            ..super::slice(planned, super::BARE)
        }
    };
    record.rounds = rounds(&record.plan, ROUNDS, super::arm, slice);
    record
}

fn load(name: &str, spans: u64) -> PlannedLoad {
    let request = PlannedRequest { path: format!("/vets?spans={spans}"), ..Default::default() };
    let own = [("gateway", 1), ("vets", spans - 1)].map(|(pod, spans)| (pod.into(), spans));
    PlannedLoad { name: name.into(), request, spans: own.into(), ..super_load() }
}

fn super_load() -> PlannedLoad {
    run(open(), |_, _| super::BARE).plan.loads[0].clone()
}

fn service(name: &str) -> Service {
    Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: "clinic".into(),
        replicas: 1,
        port: 8080,
        program: Program::Command(UserProgram::default()),
        calls: vec![],
        observed_calls: vec![],
        metrics: None,
    }
}

/// Eleven samples a second apart.
fn samples(of: &Of<'_>, place: usize, cost: [f64; 2], told: Told) -> Vec<Sample> {
    let sample = |second: usize| {
        let used = |us: f64| (us * 1e3 * DONE as f64 * second as f64 / 10.0) as u64;
        let components = [component("gateway", used(cost[0])), component("vets", used(cost[1]))];
        let at_ns = (place * 100 + second) as u64 * 1_000_000_000;
        let series = match told(of, second) {
            Reading::Value(series) => {
                Reading::Value(series.into_iter().map(|(key, value)| (key.into(), value)).collect())
            }
            Reading::Missing(reason) => Reading::Missing(reason),
        };
        let host = HostSample { busy_ns: used(cost[0] + cost[1]), steal_ns: 0, runnable: 1 };
        let metrics = vec![PodMetrics { pod: "vets".into(), at_ns, series }];
        Sample { at_ns, took_ns: 1, components: components.into(), host, metrics }
    };
    (0..=10).map(sample).collect()
}

fn component(pod: &str, cpu_ns: u64) -> ComponentSample {
    let bytes = || Reading::Value(1_000_000);
    ComponentSample {
        component: Component { role: Role::Application, pod: pod.into() },
        cpu_ns: Reading::Value(cpu_ns),
        memory: MemorySample { current: bytes(), anonymous: bytes(), peak: bytes() },
    }
}

fn found(run: &RunRecord) -> Findings {
    super::super::findings(run)
}

fn is(estimate: &Estimate, value: f64) {
    assert!((estimate.value - value).abs() < 1e-3, "{estimate:?} is not {value}");
}

fn has(findings: &Findings, wanted: impl Fn(&Caveat) -> bool) -> bool {
    findings.caveats.iter().any(wanted)
}

// Spans.

const SPANS: [(&str, u64); 4] = [("one", 1), ("three", 3), ("nine", 9), ("twenty-seven", 27)];

/// Of a service, or of all components.
fn costs<'a>(findings: &'a Findings, of: &str) -> Option<&'a SpanCosts> {
    let is_it = |costs: &&SpanCosts| costs.service.as_deref().unwrap_or("all") == of;
    findings.span_costs.iter().find(is_it)
}

#[test]
fn what_a_span_costs_is_the_slope_of_the_effects_over_the_loads() {
    let found = found(&made(&SPANS, cost, quiet));
    // 20 us of the gateway and 35 us of vets, and 10 us for each span but the gateway's.
    let all = costs(&found, "all").unwrap();
    is(&all.per_span_us, 10.0);
    is(&all.per_request_us, 45.0);
    assert_eq!(all.per_span_us.rounds, ROUNDS);
    let vets = costs(&found, "vets").unwrap();
    is(&vets.per_span_us, 10.0);
    is(&vets.per_request_us, 35.0);
    let points: Vec<u64> = vets.points.iter().map(|point| point.spans).collect();
    assert_eq!(points, [0, 2, 8, 26]);
    is(&vets.points[2].effect_us, 115.0);
}

/// The variant's gateway leaves two spans a request, whatever the loads say.
fn with_spans_of_its_own(mut record: RunRecord) -> RunRecord {
    let mesh = record.plan.variants.iter_mut().find(|variant| variant.name == "mesh").unwrap();
    let VariantState::Ready(deployment) = &mut mesh.state else { panic!("it is ready") };
    let DataPlane::Agent(agent) = &mut deployment.data_plane else { panic!("it has an agent") };
    agent.spans = [("gateway".into(), 2)].into();
    record
}

#[test]
fn the_line_of_a_variant_stands_on_the_spans_that_its_own_agent_leaves() {
    let found = found(&with_spans_of_its_own(made(&SPANS, cost, quiet)));
    let all = costs(&found, "all").unwrap();
    let points: Vec<u64> = all.points.iter().map(|point| point.spans).collect();
    assert_eq!(points, [2, 4, 10, 28]);
    // One span more each, so that one less is whatever the spans are.
    is(&all.per_span_us, 10.0);
    is(&all.per_request_us, 35.0);
    is(&costs(&found, "vets").unwrap().per_request_us, 35.0);
}

/// As [`cost`], but each span of the baseline's second arm costs up to 4 us more than in the first.
fn uneven(of: &Of<'_>, spans: u64) -> [f64; 2] {
    let [gateway, vets] = cost(of, spans);
    let more = if of.arm.again { of.round as f64 % 2.0 * 4.0 * spans as f64 } else { 0.0 };
    [gateway, vets + more]
}

#[test]
fn the_slope_of_the_baseline_against_itself_is_a_diagnostic() {
    let even = found(&made(&SPANS, cost, quiet));
    let even = costs(&even, "all").unwrap();
    assert!(even.again_us.unwrap().value.abs() < 1e-3 && even.is_clear());
    let found = found(&made(&SPANS, uneven, quiet));
    let all = costs(&found, "all").unwrap();
    // Slopes of 4, 0, 4, 0 and 4; half of it is in the baseline of the variant.
    is(&all.again_us.unwrap(), 2.4);
    is(&all.per_span_us, 10.0 - 1.2);
}

#[test]
fn a_study_whose_baseline_has_no_second_arm_that_counts_has_no_such_slope() {
    let record = without_arms(made(&SPANS, cost, quiet), |_, arm| arm.again);
    assert_eq!(costs(&found(&record), "all").unwrap().again_us, None);
}

#[test]
fn a_service_whose_spans_do_not_vary_has_no_line() {
    let found = found(&made(&SPANS, cost, quiet));
    assert!(costs(&found, "gateway").is_none());
}

#[test]
fn two_numbers_of_spans_make_no_line() {
    assert_eq!(found(&made(&SPANS[..2], cost, quiet)).span_costs, []);
}

#[test]
fn a_mix_that_begins_alike_is_no_point_of_the_line() {
    let mut record = made(&SPANS, cost, quiet);
    record.plan.loads[0].mix = mix_after(&record.plan.loads[0]);
    assert_eq!(costs(&found(&record), "all").unwrap().points.len(), 3);
}

#[test]
fn loads_of_users_or_of_another_path_are_no_points_of_the_line() {
    let mut record = made(&SPANS, cost, quiet);
    record.plan.loads[0].request.path = "/owners?spans=1".into();
    assert_eq!(costs(&found(&record), "all").unwrap().points.len(), 3);
    record.plan.loads[1].release = Release::Users(users());
    assert!(costs(&found(&record), "all").is_none());
}

#[test]
fn a_round_that_lost_loads_counts_for_what_its_spread_is_worth() {
    let record =
        without(made(&SPANS, cost, quiet), |round, _, load| round == 2 && load.starts_with('t'));
    let found = found(&record);
    let lost = costs(&found, "all").unwrap().per_span_us;
    is(&lost, 10.0);
    assert_eq!(lost.rounds, ROUNDS);
}

#[test]
fn loads_at_different_rates_are_said_beside_the_cost_per_span() {
    let mut record = made(&SPANS, cost, quiet);
    let is_uneven = |caveat: &Caveat| matches!(caveat, Caveat::UnevenSpanRates { .. });
    assert!(!has(&found(&record), is_uneven));
    each_slice(&mut record, |_, _, slice| {
        if slice.load == "nine" {
            slice.rate_per_s = Some(50.0);
        }
    });
    let (variant, low_per_s, high_per_s) = ("mesh".into(), 50.0, 100.0);
    let told = Caveat::UnevenSpanRates { variant, low_per_s, high_per_s };
    assert!(found(&record).caveats.contains(&told));
}

// JVMs.

fn telling(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
    let agent = if of.arm.variant == "mesh" { 1.0 } else { 0.0 };
    let at = second as f64;
    Reading::Value(vec![
        ("process_cpu_seconds_total", 30.0 + at * (0.8 + 0.5 * agent)),
        ("jvm_memory_used_bytes{area=\"heap\"}", MIB * (100.0 + 40.0 * agent + at)),
        ("jvm_memory_used_bytes{area=\"nonheap\"}", MIB * 900.0),
        ("jvm_memory_pool_collection_used_bytes{pool=\"Eden Space\"}", 0.0),
        ("jvm_memory_pool_collection_used_bytes{pool=\"Survivor Space\"}", MIB * (2.0 + agent)),
        ("jvm_memory_pool_collection_used_bytes{pool=\"Tenured Gen\"}", MIB * 60.0),
        ("jvm_gc_collection_seconds_sum{gc=\"Copy\"}", at * 0.03),
        ("jvm_gc_collection_seconds_sum{gc=\"MarkSweepCompact\"}", 2.0 + at * 0.01),
        ("jvm_gc_collection_seconds_count{gc=\"Copy\"}", 77.0),
        ("jvm_compilation_time_seconds_total", 9.0 + at * 0.2),
        ("jvm_threads_current", 20.0 + 3.0 * agent),
    ])
}

fn vets(record: &RunRecord) -> [JvmUse; 2] {
    let found = found(record);
    let [row] = found.loads[0].jvms.as_slice() else { panic!("one JVM tells of itself") };
    assert_eq!(row.pod, "vets");
    row.uses.clone().try_into().unwrap()
}

#[test]
fn a_jvm_is_told_by_the_growth_of_its_counters_and_the_mean_of_its_levels() {
    let [bare, agent] = vets(&made(&SPANS[2..3], cost, telling));
    // 0.8 s of CPU a second on two cores.
    is(&bare.cpu_load.unwrap().mean, 0.4);
    is(&agent.cpu_load.unwrap().change.unwrap(), 0.25);
    is(&bare.heap_used_mib.unwrap().mean, 105.0);
    is(&agent.heap_used_mib.unwrap().change.unwrap(), 40.0);
    is(&bare.heap_live_mib.unwrap().mean, 62.0);
    is(&bare.gc_share.unwrap().mean, 0.04);
    is(&bare.jit_share.unwrap().mean, 0.2);
    is(&agent.threads.unwrap().mean, 23.0);
    is(&agent.threads.unwrap().ratio.unwrap(), 1.15);
    // The cgroup's word, not the JVM's: 35 us and 10 us for each of eight spans more.
    is(&agent.cpu_per_request_us.unwrap().change.unwrap(), 115.0);
}

#[test]
fn what_a_pool_keeps_that_was_never_collected_is_not_known() {
    fn never(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
        let Reading::Value(mut series) = telling(of, second) else { panic!("it tells") };
        series[5].1 = 0.0;
        Reading::Value(series)
    }
    let record = made(&SPANS[2..3], cost, never);
    assert_eq!(vets(&record)[0].heap_live_mib, None);
    assert!(found(&record).caveats.contains(&Caveat::UnknownHeaps { pods: vec!["vets".into()] }));
}

#[test]
fn a_reading_that_is_missing_is_left_out_and_said_once_with_its_reason() {
    fn refused(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
        match second {
            3 | 4 => Reading::Missing("connection refused".into()),
            _ => telling(of, second),
        }
    }
    let record = made(&SPANS[2..3], cost, refused);
    is(&vets(&record)[0].heap_used_mib.unwrap().mean, 100.0 + (55.0 - 7.0) / 9.0);
    let found = found(&record);
    let reasons = vec![("vets".into(), "connection refused".into(), 30)];
    assert!(found.caveats.contains(&Caveat::MissingMetrics { reasons }));
}

#[test]
fn the_share_of_the_machine_is_absent_when_its_cores_are_not_known() {
    let mut record = made(&SPANS[2..3], cost, telling);
    record.host.cores = None;
    let [bare, _] = vets(&record);
    assert!(bare.cpu_load.is_none() && bare.threads.is_some());
}

#[test]
fn a_process_that_began_anew_in_a_slice_has_no_cpu_load() {
    fn anew(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
        let Reading::Value(mut series) = telling(of, second) else { panic!("it tells") };
        series[0].1 = 40.0 - second as f64;
        Reading::Value(series)
    }
    assert_eq!(vets(&made(&SPANS[2..3], cost, anew))[0].cpu_load, None);
}

#[test]
fn published_figures_of_jvms_are_measured_in_their_units() {
    let mut record = made(&SPANS[2..3], cost, telling);
    let figure = |figure: &str| PublishedFigure {
        variant: "mesh".into(),
        load: "nine".into(),
        figure: figure.into(),
        value: 1.0,
    };
    let derived = |derived| Recomputed {
        variant: "mesh".into(),
        load: "nine".into(),
        derived,
        pod: Some("vets".into()),
        printed: None,
        recomputed: Some(1.0),
        against: None,
        because: String::new(),
    };
    record.plan.reference = Some(PlannedReference {
        source: "a page".into(),
        notes: vec![],
        figures: vec![figure("cpu_load_percent.vets"), figure("heap_mib.vets")],
        recomputed: [
            Derived::CpuLoadPoints,
            Derived::HeapDifference,
            Derived::PodCpuPerRequestChange,
            Derived::LatencyP90Change,
        ]
        .map(derived)
        .into(),
    });
    let found = found(&record);
    let measured: Vec<f64> =
        found.loads[0].reference.iter().map(|row| row.measured.unwrap()).collect();
    assert!((measured[0] - 65.0).abs() < 1e-6 && (measured[1] - 145.0).abs() < 1e-6);
    let recomputed = &found.loads[0].recomputed;
    is(&recomputed[0].measured.unwrap(), 25.0);
    is(&recomputed[1].measured.unwrap(), 40.0);
    // 115 us on top of 256 us and the round's noise.
    assert!((recomputed[2].measured.unwrap().value - 44.4).abs() < 0.5, "{recomputed:?}");
    is(&recomputed[3].measured.unwrap(), 0.0);
}

// Heaps.

/// Whose old generation is collected at the second and the seventh second of each slice. What young collections
/// leave is noise.
fn collected(
    of: &Of<'_>,
    second: usize,
    left_mib: impl Fn(f64) -> f64,
) -> Reading<Vec<(&'static str, f64)>> {
    let Reading::Value(mut series) = telling(of, second) else { panic!("it tells") };
    let (collections, at) = match second {
        0..2 => (0, 0),
        2..7 => (1, 2),
        _ => (2, 7),
    };
    series[4].1 = MIB * (second * 7 % 5) as f64 * if second == at { 0.0 } else { 1.0 };
    series[5].1 = MIB * left_mib((of.slice * 10 + at) as f64);
    let count = (of.slice * 2 + collections) as f64;
    series.push(("jvm_gc_collection_seconds_count{gc=\"MarkSweepCompact\"}", count));
    Reading::Value(series)
}

/// A MiB more every ten seconds under load in `mesh`.
fn leaking(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
    let grows = of.arm.variant == "mesh";
    collected(of, second, |s| 60.0 + if grows { s / 10.0 } else { (s * 7.0) % 3.0 })
}

fn shrinking(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
    collected(of, second, |s| 60.0 - s / 10.0)
}

/// Collected only between two slices.
fn between_slices(of: &Of<'_>, second: usize) -> Reading<Vec<(&'static str, f64)>> {
    let Reading::Value(mut series) = leaking(of, second) else { panic!("it tells") };
    series.last_mut().unwrap().1 = of.slice as f64;
    Reading::Value(series)
}

fn heap<'a>(findings: &'a Findings, variant: &str) -> &'a HeapTrend {
    findings.heap_trends.iter().find(|trend| trend.variant == variant).unwrap()
}

#[test]
fn a_heap_that_grows_in_each_life_is_a_suspected_leak() {
    let found = found(&made(&SPANS[1..3], cost, leaking));
    let (agent, bare) = (heap(&found, "mesh"), heap(&found, "bare"));
    // Five lives of four slices, two collections each; of the baseline ten.
    assert_eq!((agent.points, bare.points, agent.series.len()), (40, 80, 40));
    assert!(agent.grows && !agent.falls && agent.p_value.unwrap() < 0.01, "{agent:?}");
    assert!((agent.mib_per_minute.unwrap() - 6.0).abs() < 0.2, "{agent:?}");
    assert!(!bare.grows && !bare.falls, "{bare:?}");
    let leaks = picked(&found, |caveat| match caveat {
        Caveat::Leak { variant, pod, baseline, .. } => {
            Some((variant.as_str(), pod.as_str(), *baseline))
        }
        _ => None,
    });
    assert_eq!(leaks, [("mesh", "vets", Some(Growth::DoesNot))]);
}

#[test]
fn a_heap_that_shrinks_is_said_to_fall_and_is_no_leak() {
    let found = found(&made(&SPANS[1..3], cost, shrinking));
    let agent = heap(&found, "mesh");
    assert!(agent.falls && !agent.grows, "{agent:?}");
    assert!(!has(&found, |caveat| matches!(caveat, Caveat::Leak { .. })));
}

#[test]
fn a_collection_between_two_slices_is_a_point_and_nine_points_tell_nothing() {
    let record = without(made(&SPANS[1..3], cost, between_slices), |round, _, _| round > 3);
    let found = found(&record);
    let agent = heap(&found, "mesh");
    // Of the first slice of a life nobody knows when its heap was collected.
    assert_eq!((agent.points, agent.p_value, agent.mib_per_minute), (9, None, None));
}

#[test]
fn collections_of_the_young_pools_are_no_points() {
    let found = found(&made(&SPANS[1..3], cost, telling));
    let agent = heap(&found, "mesh");
    assert_eq!((agent.points, agent.p_value, agent.grows), (0, None, false));
}

// Users and regimes.

fn users() -> PlannedUsers {
    PlannedUsers {
        users: 320,
        start: 5,
        ramp_s: 1.0,
        hold_s: 4.0,
        ramp_down_s: 0.5,
        think_s: 1.0,
        parallel: 4,
        made_for_per_s: Some(1526.0),
    }
}

fn capacities(record: &mut RunRecord, bare: f64, mesh: f64) {
    let capacity = |(variant, per_s): (&str, f64)| CapacityRecord {
        variant: variant.into(),
        per_s,
        slices: vec![],
    };
    record.capacities = [("bare", bare), ("mesh", mesh)].map(capacity).into();
}

fn by_users() -> RunRecord {
    let mut record = made(&SPANS[2..3], cost, quiet);
    record.plan.loads[0].release = Release::Users(users());
    let stage = |[begin_s, end_s]: [f64; 2], from, to, done| StageReport {
        begin_s,
        end_s,
        from,
        to,
        done,
        failed: 0,
        latency: Histogram::new(),
    };
    each_slice(&mut record, |_, _, slice| {
        let measured = &mut slice.report.measure;
        measured.clients = (5, 84);
        measured.iterations.record_n_ns(1_100_000_000, 50);
        measured.stages = vec![
            stage([0.0, 1.0], 5.0, 84.0, 90),
            stage([1.0, 5.0], 84.0, 84.0, 720),
            stage([5.0, 5.5], 84.0, 5.0, 40),
        ];
        slice.rate_per_s = None;
    });
    record
}

#[test]
fn a_regime_is_told_by_the_throughput_of_the_whole_measured_phase() {
    let mut record = by_users();
    capacities(&mut record, 105.0, 100.0);
    let found = found(&record);
    let regime = |variant: &str, capacity_per_s, at_limit| Regime {
        variant: variant.into(),
        // Not the 180 while all are at work: it is the figure that the table beside it prints.
        throughput_per_s: 100.0,
        capacity_per_s,
        near_limit: true,
        at_limit,
    };
    assert_eq!(found.loads[0].regimes, [regime("bare", 105.0, false), regime("mesh", 100.0, true)]);
}

#[test]
fn a_variant_at_its_limit_is_told_from_one_below() {
    let mut record = by_users();
    capacities(&mut record, 300.0, 105.0);
    let near = |record: &RunRecord| {
        let found = found(record);
        picked(&found, |caveat| match caveat {
            Caveat::NearLimit { both, comparisons } => {
                let pair = &comparisons[0];
                Some((*both, pair.baseline.capacity_per_s, pair.variant.capacity_per_s))
            }
            _ => None,
        })
    };
    assert_eq!(near(&record), [(false, 300.0, 105.0)]);
    capacities(&mut record, 105.0, 105.0);
    assert_eq!(near(&record), [(true, 105.0, 105.0)]);
    capacities(&mut record, 300.0, 290.0);
    assert_eq!(near(&record), []);
}

#[test]
fn a_load_that_asks_something_else_than_for_the_capacity_has_no_regime() {
    let mut record = made(&SPANS[1..3], cost, quiet);
    capacities(&mut record, 300.0, 290.0);
    assert!(found(&record).loads.iter().all(|load| load.regimes.is_empty()));
    let rate = PlannedRate::OfCapacity(0.5);
    record.plan.loads[1].release = Release::Open { rate, poisson: false, max_connections: 9 };
    let found = found(&record);
    assert_eq!(found.loads[0].regimes, []);
    assert_eq!(found.loads[1].regimes.len(), 2);
}

#[test]
fn a_mix_that_begins_alike_has_no_regime() {
    let mut record = made(&SPANS[1..3], cost, quiet);
    capacities(&mut record, 300.0, 290.0);
    let rate = PlannedRate::OfCapacity(0.5);
    record.plan.loads[1].release = Release::Open { rate, poisson: false, max_connections: 9 };
    record.plan.loads[0].request = record.plan.loads[1].request.clone();
    assert_eq!(found(&record).loads[0].regimes.len(), 2);
    record.plan.loads[0].mix = mix_after(&record.plan.loads[0]);
    assert_eq!(found(&record).loads[0].regimes, []);
}

#[test]
fn without_a_capacity_there_is_no_regime() {
    assert_eq!(found(&by_users()).loads[0].regimes, []);
}

#[test]
fn users_are_a_view_of_their_own() {
    let load = &found(&by_users()).loads[0];
    assert_eq!((load.view, load.release), (View::Users, Release::Users(users())));
}

#[test]
fn k6s_summary_is_that_of_all_slices_one_after_the_other() {
    let mut record = by_users();
    capacities(&mut record, 1000.0, 400.0);
    each_slice(&mut record, |round, arm, slice| {
        if round == 1 && arm.variant == "bare" && !arm.again {
            slice.invalid = vec!["made up".into()];
        }
    });
    let found = found(&record);
    let of = |variant: &str| {
        let variants = &found.loads[0].variants;
        variants.iter().find(|v| v.variant == variant).unwrap().k6.clone().unwrap()
    };
    let (bare, mesh) = (of("bare"), of("mesh"));
    // Ten slices of the variant, eighteen of the baseline's two arms.
    assert_eq!((bare.requests, mesh.requests), (18 * super::DONE, 10 * super::DONE));
    assert_eq!((mesh.iterations, mesh.total_s), (500, 25.0));
    assert_eq!((mesh.iterations_per_s, mesh.requests_per_s), (20.0, 100.0));
    // Four requests each: 2500 requests are 625 iterations, 4500 are 1125.
    assert_eq!((mesh.interrupted, bare.interrupted), (Some(125), Some(225)));
    // Slices follow each other: their users are not added up. The profile ends where it began.
    assert_eq!((mesh.vus, mesh.vus_max), ([5, 5, 84], 84));
    let names: Vec<&str> = mesh.trends.iter().map(|trend| trend.name.as_str()).collect();
    assert_eq!(names[2..4], ["http_req_duration", "http_req_duration{expected_response:true}"]);
    assert!(names.is_sorted() && names.last() == Some(&"iteration_duration"));
}

#[test]
fn an_iteration_of_one_request_is_never_interrupted() {
    let mut record = by_users();
    capacities(&mut record, 1000.0, 400.0);
    let one = PlannedUsers { parallel: 1, ..users() };
    record.plan.loads[0].release = Release::Users(one);
    let variants = &found(&record).loads[0].variants;
    assert_eq!(variants[0].k6.as_ref().unwrap().interrupted, None);
}

// Caveats.

#[test]
fn what_the_proofs_left_out_is_a_caveat_unless_another_one_says_it() {
    let mut record = made(&SPANS[2..3], cost, quiet);
    let rows = LeftOut::Rows { database: "postgres".into() };
    let missing = LeftOut::MissingSpans { missing: 222, refused: 0 };
    let left_out = [LeftOut::NoCrossing, missing, rows.clone()];
    let first = record.rounds[0].arms.iter_mut().find(|of| of.arm.variant == "bare").unwrap();
    first.proof.as_mut().unwrap().left_out = left_out.into();
    let not_proven = |record: &RunRecord| -> Vec<LeftOut> {
        picked(&found(record), |caveat| match caveat {
            Caveat::LeftOut { variants, what } => {
                assert_eq!(*variants, ["bare"]);
                Some(what.clone())
            }
            _ => None,
        })
    };
    assert_eq!(not_proven(&record), std::slice::from_ref(&rows));
    let VariantState::Ready(mesh) = &mut record.plan.variants[1].state else { panic!("ready") };
    mesh.data_plane = DataPlane::Sidecar {
        egress: Egress::Sidecar,
        proxy: SidecarProxy::Envoy,
        mtls: Mtls::Strict,
    };
    assert_eq!(not_proven(&record), [LeftOut::NoCrossing, rows]);
}

// Proofs.

fn proven(record: &mut RunRecord, arrived: u64) {
    let of = |service: &str, expected, arrived| ServiceSpans {
        service: service.into(),
        expected,
        arrived,
    };
    each_arm(record, |_, arm| {
        if arm.arm.variant == "mesh" {
            let services = vec![of("gateway", 100, 100), of("vets", 900, arrived)];
            let spans = Spans { services, requests: 100, whole: 90 };
            arm.proof.as_mut().unwrap().spans = Some(spans);
        }
    });
}

#[test]
fn spans_are_added_up_over_the_arms_that_count_and_what_was_dropped_is_said() {
    let mut record = made(&SPANS[2..4], cost, quiet);
    proven(&mut record, 891);
    each_arm(&mut record, |round, of| {
        if round == 1 && of.arm.variant == "mesh" {
            of.file.invalid = vec!["made up".into()];
        }
    });
    let found = found(&record);
    let [of_loads] = found.proofs[1].spans.as_slice() else { panic!("one proof a round") };
    let spans = &of_loads.spans;
    assert_eq!(of_loads.loads, ["nine", "twenty-seven"]);
    assert_eq!((spans.requests, spans.whole), (400, 360));
    assert_eq!((spans.services[1].expected, spans.services[1].arrived), (3600, 3564));
    assert_eq!(found.proofs[0].spans, []);
    assert_eq!((found.proofs[0].arms, found.proofs[1].arms), (10, 5));
    let dropped = picked(&found, |caveat| match caveat {
        Caveat::DroppedSpans { services, .. } => Some(services.as_slice()),
        _ => None,
    });
    assert_eq!(dropped, [&spans.services[1..]]);
}

#[test]
fn nothing_is_said_of_spans_that_all_arrived() {
    let mut record = made(&SPANS[2..3], cost, quiet);
    proven(&mut record, 900);
    assert!(!has(&found(&record), |caveat| matches!(caveat, Caveat::DroppedSpans { .. })));
}

#[test]
fn a_load_that_does_not_say_its_spans_is_said_not_to() {
    let mut record = made(&SPANS, cost, quiet);
    let is_uncounted = |caveat: &Caveat| matches!(caveat, Caveat::UncountedSpans { .. });
    assert!(!has(&found(&record), is_uncounted));
    record.plan.loads[1].spans.clear();
    let loads = vec![LoadNames::Load("three".into())];
    let told = Caveat::UncountedSpans { variant: "mesh".into(), loads };
    assert!(found(&record).caveats.contains(&told));
}
