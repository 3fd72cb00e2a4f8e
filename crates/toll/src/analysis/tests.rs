//! Findings from runs made up here: every number is known beforehand.

mod agent;
mod chain;
mod egress;
mod sweep;

use toll_lab::{
    Component, ComponentSample, DataPlane, Deployment, HostSample, MemorySample, Proof, Reading,
    Role, Sample,
};
use toll_load::{LoadReport, Stop, WarmUp};

use super::findings::{Effect, Findings, Metric, Verdict};
use crate::plan::{
    Arm, BringUp, Plan, PlannedKind, PlannedLoad, PlannedRate, PlannedReference, PlannedRequest,
    PlannedTrial, PlannedVariant, PublishedFigure, Release, VariantState,
};
use crate::run::fixture;
use crate::store::{
    HostFacts, KneeRecord, Mark, MarkedSample, Noise, RunRecord, TrialRecord, TrialVerdict,
};

const DONE: u64 = 1000;

/// What one made-up trial shows.
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

/// A run of five blocks in which `show` says what each arm shows in each block.
fn run(release: Release, show: impl Fn(&Arm, usize) -> Shown) -> RunRecord {
    let arms = [("bare", false), ("mesh", false), ("bare", true)]
        .map(|(variant, again)| Arm { variant: variant.into(), again });
    let mut planned = Vec::new();
    for block in 1..=5 {
        for arm in &arms {
            let index = planned.len() + 1;
            planned.push(PlannedTrial { index, block, arm: arm.clone(), load: "load".into() });
        }
    }
    let trials = planned.iter().map(|t| trial(t, show(&t.arm, t.block))).collect();
    RunRecord {
        name: "made-up".into(),
        plan: plan(release, planned),
        host: HostFacts {
            facts: vec![],
            cores: Some(2),
            lacks: vec![],
            isolation: None,
            realtime: false,
            changes: vec![],
        },
        knees: vec![],
        trials,
    }
}

/// A mix of what the load asks and something else.
fn mix_after(load: &PlannedLoad) -> Vec<PlannedKind> {
    let kind =
        |name: &str, request: PlannedRequest| PlannedKind { name: name.into(), weight: 1, request };
    let other = PlannedRequest { path: "/other".into(), ..PlannedRequest::default() };
    vec![kind("first", load.request.clone()), kind("other", other)]
}

fn plan(release: Release, trials: Vec<PlannedTrial>) -> Plan {
    let variant = |name: &str| PlannedVariant {
        name: name.into(),
        describes: String::new(),
        state: VariantState::Ready(Deployment {
            nodes: 1,
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
        bound: 0.05,
        idle_s: 1.0,
        blocks: 5,
        bring_up: BringUp::default(),
        settle: None,
        variants: vec![variant("bare"), variant("mesh")],
        loads: vec![PlannedLoad {
            mix: vec![],
            cell: None,
            name: "load".into(),
            request: PlannedRequest::default(),
            spans: std::collections::BTreeMap::new(),
            release,
            stop: Stop::AfterSeconds(10.0),
            warm_up: WarmUp { min_s: 0.0, max_s: 0.0 },
        }],
        trials,
        reference: None,
        warnings: vec![],
    }
}

fn open() -> Release {
    Release::Open { rate: PlannedRate::PerSecond(100.0), poisson: false, max_connections: 10 }
}

fn trial(planned: &PlannedTrial, shown: Shown) -> TrialRecord {
    TrialRecord {
        trial: planned.clone(),
        verdict: TrialVerdict {
            version: crate::store::TRIAL_FORMAT,
            invalid: vec![],
            rate_per_s: Some(shown.rate_per_s),
            users: None,
            started_anew: None,
            noise: Noise { calibration_ns: 1000, steal: 0.0, runnable: 1.0 },
        },
        load: Some(load_report(shown)),
        proof: Some(Proof { claims: vec![], left_out: vec![], traversals: vec![], spans: None }),
        samples: samples(shown),
        settled: None,
    }
}

fn load_report(shown: Shown) -> LoadReport {
    fixture::report(fixture::phase(DONE, shown.rate_per_s, shown.latency_us))
}

/// Counters that start at an arbitrary height: only what they rise by may count.
fn samples(shown: Shown) -> Vec<MarkedSample> {
    let at = |mark: Mark, seconds: u64, requests: u64| {
        let service = 77_000_000 + requests * shown.service_cpu_us * 1000;
        let sidecar = 55_000_000 + requests * shown.sidecar_cpu_us * 1000;
        let mut components = vec![component(Role::Application, service, 10_000_000)];
        if shown.sidecar_cpu_us > 0 {
            components.push(component(Role::Sidecar, sidecar, 15_000_000));
        }
        let busy_ns =
            service + if shown.sidecar_cpu_us > 0 { sidecar } else { 0 } + requests * 20_000;
        let host = HostSample { busy_ns, steal_ns: 0, runnable: 1 };
        MarkedSample {
            mark,
            sample: Sample {
                at_ns: seconds * 1_000_000_000,
                took_ns: 1,
                components,
                host,
                metrics: vec![],
            },
        }
    };
    vec![
        at(Mark::IdleBegin, 0, 0),
        at(Mark::IdleEnd, 1, 0),
        at(Mark::MeasureBegin, 2, 500),
        at(Mark::MeasureEnd, 12, 500 + DONE),
    ]
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

#[test]
fn an_effect_is_the_paired_difference_of_the_arms() {
    let p50 = effect(&super::findings(&run(open(), bare_or_mesh)), Metric::LatencyP50);
    // HDR histograms of three digits: within one part in a thousand.
    assert!((p50.difference.value - 600.0).abs() < 2.0, "{p50:?}");
    assert!((p50.ratio.value - 1.6).abs() < 0.005, "{p50:?}");
    assert_eq!(p50.verdict, Verdict::Difference);
}

#[test]
fn cpu_per_request_counts_only_what_counters_rose_by_in_the_measured_window() {
    let found = super::findings(&run(open(), bare_or_mesh));
    let cpu = effect(&found, Metric::CpuPerRequest);
    assert!((cpu.baseline - 300.0).abs() < 1e-6 && (cpu.value - 460.0).abs() < 1e-6, "{cpu:?}");
    let own = effect(&found, Metric::ApplicationCpuPerRequest);
    assert!((own.difference.value - 10.0).abs() < 1e-6, "{own:?}");
}

#[test]
fn what_no_component_used_is_unattributed() {
    let found = super::findings(&run(open(), bare_or_mesh));
    for variant in &found.loads[0].variants {
        let last = variant.cpu_per_request.last().unwrap();
        assert_eq!(last.component, "unattributed");
        assert!((last.cost.value - 20.0).abs() < 1e-6, "{last:?}");
    }
}

#[test]
fn identical_arms_give_no_difference() {
    let p50 = effect(&super::findings(&run(open(), |_, _| BARE)), Metric::LatencyP50);
    assert!(matches!(p50.verdict, Verdict::NoDifference { .. }), "{p50:?}");
}

#[test]
fn a_drift_of_the_whole_machine_cancels_within_blocks() {
    let drifting = |arm: &Arm, block: usize| {
        let shown = bare_or_mesh(arm, block);
        Shown { latency_us: shown.latency_us * (100 + 20 * block as u64) / 100, ..shown }
    };
    let p50 = effect(&super::findings(&run(open(), drifting)), Metric::LatencyP50);
    assert!((p50.ratio.low - 1.6).abs() < 0.01 && (p50.ratio.high - 1.6).abs() < 0.01, "{p50:?}");
}

#[test]
fn an_effect_below_the_noise_floor_is_not_called_a_difference() {
    // The variant is 30 us slower in every block, but the baseline's second run differs by up to 400 us.
    let noisy = |arm: &Arm, block: usize| match (arm.variant.as_str(), arm.again) {
        ("mesh", _) => Shown { latency_us: 1030, ..BARE },
        (_, true) => Shown { latency_us: 800 + 100 * block as u64, ..BARE },
        _ => BARE,
    };
    let p50 = effect(&super::findings(&run(open(), noisy)), Metric::LatencyP50);
    assert!(p50.difference.low > 0.0, "{p50:?}");
    assert_ne!(p50.verdict, Verdict::Difference, "{p50:?}");
}

#[test]
fn an_invalid_trial_counts_for_nothing_and_its_block_is_not_paired() {
    let mut record = run(open(), bare_or_mesh);
    let broken = record.trials.iter_mut().find(|t| t.trial.arm.variant == "mesh").unwrap();
    broken.verdict.invalid = vec!["path not proven".into()];
    broken.load = Some(load_report(Shown { latency_us: 900_000, ..MESH }));
    let found = super::findings(&record);
    let p50 = effect(&found, Metric::LatencyP50);
    assert_eq!(p50.difference.blocks, 4);
    assert!((p50.value - 1600.0).abs() < 3.0, "{p50:?}");
    assert!(
        found.warnings.iter().any(|w| w.contains("1 of 15 trials are invalid")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn throughput_is_an_effect_flat_out_and_a_check_at_an_equal_rate() {
    let slower = |arm: &Arm, block: usize| {
        let rate_per_s = if arm.variant == "mesh" { 76.0 } else { 100.0 };
        Shown { rate_per_s, ..bare_or_mesh(arm, block) }
    };
    let flat_out = super::findings(&run(Release::Closed { connections: 36 }, slower));
    assert!((effect(&flat_out, Metric::Throughput).ratio.value - 0.76).abs() < 1e-6);
    let equal_rate = super::findings(&run(open(), slower));
    assert!(equal_rate.loads[0].effects.iter().all(|e| e.metric != Metric::Throughput));
    assert!(equal_rate.warnings.iter().any(|w| w.contains("not an equal-rate comparison")));
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
fn a_rate_relative_to_the_knee_names_the_slowest_variant() {
    let share =
        Release::Open { rate: PlannedRate::OfKnee(0.6), poisson: false, max_connections: 10 };
    let mut record = run(share, bare_or_mesh);
    let knee = |variant: &str, rate_per_s: f64| KneeRecord {
        variant: variant.into(),
        rate_per_s,
        tried: vec![],
    };
    record.knees = vec![knee("bare", 2000.0), knee("mesh", 1500.0)];
    let describes = &super::findings(&record).loads[0].describes;
    assert!(describes.contains("900 requests/s (60 % of the knee of mesh, 1500/s)"), "{describes}");
}

#[test]
fn the_same_run_gives_the_same_findings_byte_for_byte() {
    let record = run(open(), bare_or_mesh);
    let text = |record: &RunRecord| serde_json::to_string(&super::findings(record)).unwrap();
    assert_eq!(text(&record), text(&record));
}

#[test]
fn a_known_effect_of_a_run_is_what_its_findings_say() {
    let flow = fixture::Flow::of(fixture::STUDY);
    flow.run(&fixture::lab(fixture::sound)).ending.unwrap();
    let found = super::findings(&flow.stored());
    let table = [
        // HDR histograms of three digits: within one part in a thousand.
        (Metric::LatencyP50, 600.0, 1.6),
        (Metric::LatencyP99, 600.0, 1.6),
        (Metric::CpuPerRequest, 160.0, 460.0 / 300.0),
        (Metric::ApplicationCpuPerRequest, 10.0, 310.0 / 300.0),
    ];
    for (metric, difference, ratio) in table {
        let effect = effect(&found, metric);
        assert!((effect.difference.value - difference).abs() < 2.0, "{effect:?}");
        assert!((effect.ratio.value - ratio).abs() < 0.002, "{effect:?}");
        assert_eq!((effect.verdict, effect.difference.blocks), (Verdict::Difference, 2));
    }
}
