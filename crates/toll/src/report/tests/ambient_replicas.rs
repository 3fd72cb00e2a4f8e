//! Made-up findings of a run like ambient-replicas: three variants, eight cells of replicas and rate, two loads at
//! higher rates. The figures follow lines that are near those of a real run; none was measured. Those of the
//! reference are the published ones.

use super::made_up::{caveat, claim, extent, fact, judged, open, owner, rounds};
use crate::analysis::findings::*;

const ROUNDS: usize = 5;
const ARMS: [&str; 4] = ["bare", "sidecar", "ambient", "bare (again)"];
const MIB: f64 = 1024.0 * 1024.0;
const VARIANTS: [&str; 3] = ["bare", "sidecar", "ambient"];
const PODS: [usize; 4] = [1, 10, 50, 90];
const RATES: [f64; 2] = [20.0, 50.0];

/// Fixed part, for each pod, for each request a second.
#[derive(Clone, Copy)]
struct Line(f64, f64, f64);

impl Line {
    fn at(self, pods: usize, rate: f64) -> f64 {
        self.0 + self.1 * pods as f64 + self.2 * rate
    }
}

/// MiB.
fn memory(variant: &str) -> Line {
    match variant {
        "sidecar" => Line(20.4, 16.7, 0.02),
        "ambient" => Line(35.1, 1.43, 0.11),
        _ => Line(24.8, 1.31, 0.01),
    }
}

/// Thousandths of a core.
fn cpu(variant: &str) -> Line {
    match variant {
        "sidecar" => Line(1.9, 1.19, 0.78),
        "ambient" => Line(3.1, 0.034, 0.82),
        _ => Line(0.9, 0.021, 0.53),
    }
}

/// What CPUs that sleep between requests add to each, microseconds.
fn waking(rate: f64) -> f64 {
    640.0 / rate.sqrt()
}

/// p50, p90, p99, microseconds.
fn latency_us(variant: &str, pods: usize, rate: f64) -> [f64; 3] {
    let own = match variant {
        "sidecar" => 492.0,
        "ambient" => 208.0,
        _ => 0.0,
    };
    let p50 = 548.0 + waking(rate) + own + 0.4 * pods as f64;
    [p50, p50 * 1.14, p50 * 1.38 + 0.9 * pods as f64]
}

/// One cell.
#[derive(Clone, Copy)]
struct At {
    load: &'static str,
    pods: usize,
    rate: f64,
}

impl At {
    fn name(self) -> String {
        format!("{}-{}x{}", self.load, self.rate, self.pods)
    }
}

fn cells() -> Vec<At> {
    let get = PODS.iter().flat_map(|pods| RATES.map(|rate| At { load: "get", pods: *pods, rate }));
    let wake_up = [200.0, 800.0].map(|rate| At { load: "wake-up", pods: 1, rate });
    get.chain(wake_up).collect()
}

/// The run.
pub fn ambient_replicas() -> Findings {
    let loads: Vec<LoadFindings> = cells().into_iter().map(load).collect();
    judged(Findings {
        staircases: vec![],
        version: 3,
        study: "ambient-replicas".into(),
        question: "What do sidecars and an ambient data plane cost, from 1 replica to 90?".into(),
        run: "made-up-for-tests-ambient-replicas".into(),
        baseline: "bare".into(),
        variants: variants(),
        headline: vec![Metric::LatencyP50, Metric::LatencyP99, Metric::CpuPerRequest],
        headline_load: loads.last().map(|load| load.name.clone()),
        extent: extent(&ARMS, ROUNDS),
        failures: vec![],
        calls: vec![],
        traffic: None,
        capacities: vec![],
        curve: None,
        loads,
        published: Some(Publication {
            source: "ambient and sidecar tests of UDS Core, k3s on 12 cores".into(),
            notes: vec![],
        }),
        proofs: proofs(),
        settled: vec![],
        span_costs: vec![],
        heap_trends: vec![],
        scalings: scalings(),
        crossings: crossings(),
        service_times: vec![
            service_times(1),
            service_times(10),
            service_times(50),
            service_times(90),
        ],
        caveats: vec![caveat(
            CaveatKind::Precision,
            "p99 of a cell at 20 requests/s has 300 requests behind it: its interval is wide",
        )],
        rounds: rounds(&ARMS, ROUNDS),
        facts: vec![fact("kernel", "made up for tests"), fact("nodes", "1")],
    })
}

fn variants() -> Vec<VariantFacts> {
    let describes = [
        "no data plane",
        "Envoy sidecar in each pod, mTLS strict",
        "a node proxy (Envoy in ztunnel's place) on each node, mTLS strict",
    ];
    let facts = |(name, describes): (&str, &str)| VariantFacts {
        name: name.into(),
        describes: describes.into(),
        skipped: None,
        envoy_for_ztunnel: describes.contains("Envoy in ztunnel's place"),
    };
    VARIANTS.into_iter().zip(describes).map(facts).collect()
}

fn estimate(value: f64, half: f64) -> Estimate {
    let half = half.abs();
    Estimate { value, low: value - half, high: value + half, level: 0.95, rounds: ROUNDS }
}

/// An estimate whose interval is 6 % of its value to either side.
fn about(value: f64) -> Estimate {
    estimate(value, value * 0.06)
}

/// A little off the line, each cell in its own way.
fn off(at: At) -> f64 {
    1.0 + 0.012 * ((at.pods as f64 * 0.7 + at.rate * 0.3).sin())
}

fn load(at: At) -> LoadFindings {
    LoadFindings {
        name: at.name(),
        view: View::EqualRate,
        cell: Some(Cell {
            share: None,
            connections: None,
            load: at.load.into(),
            rate_per_s: Some(at.rate),
            replicas: Some(("nginx".into(), at.pods)),
            nodes: None,
        }),
        release: open(at.rate),
        rate_per_s: Some(at.rate),
        slice: SliceLength::Seconds(3.0),
        variants: VARIANTS.map(|variant| variant_load(variant, at)).into(),
        effects: ["sidecar", "ambient"].iter().flat_map(|v| effects("bare", v, at)).collect(),
        between: effects("sidecar", "ambient", at)
            .into_iter()
            .map(|effect| Effect { against: Some("sidecar".into()), ..effect })
            .collect(),
        again: vec![],
        attribution: vec![],
        top_pods: vec![],
        resources: resources(at),
        top_totals: VARIANTS.map(|variant| top_total(variant, at)).into(),
        jvms: vec![],
        regimes: vec![],
        reference: reference(at),
        recomputed: recomputed(at),
    }
}

fn metrics(variant: &str, at: At) -> Vec<(Metric, f64)> {
    let [p50, p90, p99] = latency_us(variant, at.pods, at.rate).map(|us| us * off(at));
    vec![
        (Metric::LatencyP50, p50),
        (Metric::LatencyP90, p90),
        (Metric::LatencyP95, f64::midpoint(p90, p99)),
        (Metric::LatencyP99, p99),
        (Metric::LatencyMean, p50 * 1.04),
        (Metric::CpuPerRequest, cpu(variant).at(at.pods, at.rate) * off(at) / at.rate * 1e3),
        (Metric::Throughput, at.rate),
        (Metric::Memory, memory(variant).at(at.pods, at.rate) * off(at) * MIB),
    ]
}

fn variant_load(variant: &str, at: At) -> VariantLoad {
    let of = |metric: Metric| {
        let all = metrics(variant, at);
        all.into_iter().find(|(m, _)| *m == metric).map_or(0.0, |(_, value)| value)
    };
    let [p50, p90, p99] = [Metric::LatencyP50, Metric::LatencyP90, Metric::LatencyP99].map(of);
    let parts = components(variant);
    let cpu_us = of(Metric::CpuPerRequest);
    let cost = |scale: f64| {
        let part = |(owner, share): &(Owner, f64)| ComponentCost {
            owner: owner.clone(),
            cost: about(share * scale),
        };
        let own = [(owner(Role::LoadGenerator, "load"), 0.2), (owner(Role::Unattributed, ""), 0.1)];
        parts.iter().chain(&own).map(part).collect::<Vec<_>>()
    };
    let memory_of = of(Metric::Memory);
    VariantLoad {
        variant: variant.into(),
        rounds: ROUNDS,
        slices: 60 * ROUNDS,
        metrics: metrics(variant, at)
            .into_iter()
            .map(|(m, v)| (m, estimate(v, v * 0.02)))
            .collect(),
        latency_curve: curve([p50, p90, p99]),
        hey: None,
        vegeta: Some(vegeta([p50, p90, p99], at)),
        k6: None,
        throughput_by_round: vec![at.rate; ROUNDS],
        cpu_per_request: cost(cpu_us),
        traversals: None,
        idle_cpu: cost(cpu(variant).at(at.pods, 0.0)),
        memory: parts
            .iter()
            .map(|(owner, share)| MemorySeries {
                owner: owner.clone(),
                points: (0..4).map(|s| (f64::from(s), share * memory_of)).collect(),
            })
            .collect(),
    }
}

/// With their shares of the whole.
fn components(variant: &str) -> Vec<(Owner, f64)> {
    let of_nginx = |role| Owner { role, pods: Pods { name: "nginx".into(), count: Some(90) } };
    let (gateway, nginx) = (owner(Role::Gateway, "gateway"), of_nginx(Role::Application));
    match variant {
        "sidecar" => vec![(gateway, 0.1), (nginx, 0.2), (of_nginx(Role::Sidecar), 0.7)],
        "ambient" => {
            vec![(gateway, 0.4), (nginx, 0.3), (owner(Role::NodeProxy, "node-1"), 0.3)]
        }
        _ => vec![(gateway, 0.6), (nginx, 0.4)],
    }
}

fn curve([p50, p90, p99]: [f64; 3]) -> Vec<CurvePoint> {
    let points = [(0.01, p50 * 0.7), (0.25, p50 * 0.9), (0.5, p50), (0.9, p90), (0.99, p99)];
    let point = |(quantile, us): (f64, f64)| CurvePoint {
        quantile,
        merged_us: us,
        low_us: us * 0.97,
        high_us: us * 1.04,
    };
    points.map(point).into()
}

fn vegeta([p50, p90, p99]: [f64; 3], at: At) -> VegetaSummary {
    let attack_s = 15.0;
    let requests = (at.rate * attack_s) as u64;
    VegetaSummary {
        requests,
        rate_per_s: at.rate,
        throughput_per_s: at.rate,
        attack_s,
        latencies_us: [p50 * 0.6, p50 * 1.04, p50, p90, f64::midpoint(p90, p99), p99, p99 * 1.9],
        bytes_in: (requests * 615, 615.0),
        bytes_out: (0, 0.0),
        success: 1.0,
        statuses: vec![(200, requests)],
        errors: vec![],
    }
}

fn effects(against: &str, variant: &str, at: At) -> Vec<Effect> {
    let pairs = metrics(against, at).into_iter().zip(metrics(variant, at));
    let effect = |((metric, baseline), (_, value)): ((Metric, f64), (Metric, f64))| {
        let difference = value - baseline;
        Effect {
            variant: variant.into(),
            against: None,
            metric,
            baseline,
            value,
            difference: estimate(difference, difference * 0.05 + baseline * 0.008),
            ratio: estimate(value / baseline, 0.02),
            trimmed_ratio: None,
            unexcused_ratio: None,
            scatter: None,
            verdict: None,
        }
    };
    pairs.filter(|((metric, _), _)| *metric != Metric::Throughput).map(effect).collect()
}

/// Gateway, application and, in ambient, node proxies; then both ways to add them up.
fn resources(at: At) -> Vec<ResourceRow> {
    use ResourceGroup::{Application, ColumnSums, Gateway, NodeProxies, Total};
    let share = |group: ResourceGroup, variant: &str| match (group, variant) {
        (Gateway, "sidecar") => Some(0.12),
        (Gateway, _) => Some(0.42),
        (Application, "ambient") => Some(0.31),
        (Application, "sidecar") => Some(0.88),
        (Application, _) => Some(0.58),
        (NodeProxies, "ambient") => Some(0.27),
        (Total | ColumnSums, _) => Some(1.0),
        _ => None,
    };
    let row = |group: ResourceGroup| {
        let wide = if group == ColumnSums { 1.3 } else { 1.0 };
        let spread = |mean: f64| Spread {
            min: mean * (1.0 - 0.21 * wide),
            max: mean * (1.0 + 0.34 * wide),
            mean: about(mean),
        };
        let of = |variant: &&str| {
            let share = share(group, variant)?;
            Some(ResourceUse {
                variant: (*variant).into(),
                cpu_millicores: Some(spread(share * cpu(variant).at(at.pods, at.rate) * off(at))),
                memory_mib: Some(spread(share * memory(variant).at(at.pods, at.rate) * off(at))),
            })
        };
        ResourceRow { group, uses: VARIANTS.iter().filter_map(of).collect() }
    };
    [Gateway, Application, NodeProxies, Total, ColumnSums].map(row).into()
}

fn top_total(variant: &str, at: At) -> TopTotal {
    let counted = cpu(variant).at(at.pods, at.rate);
    let pods = at.pods + if variant == "ambient" { 2 } else { 1 };
    TopTotal {
        variant: variant.into(),
        pods,
        counted_millicores: about(counted),
        shown_millicores: about((counted * 0.4).ceil() + at.pods as f64),
    }
}

fn scalings() -> Vec<Scaling> {
    use ScaledQuantity::{AddedP50, AddedP99, Cpu, Memory};
    let mut scalings = Vec::new();
    for variant in VARIANTS {
        scalings.push(scaling(variant, Memory, memory(variant), 2.1));
        scalings.push(scaling(variant, Cpu, cpu(variant), 1.4));
    }
    for (variant, p50, p99) in [("sidecar", 494.0, 679.0), ("ambient", 209.0, 287.0)] {
        scalings.push(scaling(variant, AddedP50, Line(p50, 0.03, -0.05), 9.0));
        scalings.push(scaling(variant, AddedP99, Line(p99, 0.04, 0.02), 60.0));
    }
    scalings
}

fn scaling(variant: &str, quantity: ScaledQuantity, line: Line, scatter: f64) -> Scaling {
    let get: Vec<At> = cells().into_iter().filter(|at| at.load == "get").collect();
    let point = |at: &At| {
        let fitted = line.at(at.pods, at.rate);
        let half = scatter * (0.6 + at.pods as f64 / 120.0);
        ScalingPoint {
            load: at.name(),
            pods: at.pods,
            rate_per_s: at.rate,
            measured: estimate(fitted * off(*at), scatter),
            fitted,
            band: Some((fitted - half, fitted + half)),
        }
    };
    let held_out = |at: &At| {
        let measured = line.at(at.pods, at.rate) * off(*at);
        let predicted = line.at(at.pods, at.rate) * 1.021;
        HeldOut {
            load: at.name(),
            fitted_on: PODS[..3].into(),
            predicted: estimate(predicted, scatter * 4.0),
            measured: estimate(measured, scatter),
            error: predicted / measured - 1.0,
        }
    };
    Scaling {
        variant: variant.into(),
        quantity,
        service: "nginx".into(),
        fixed: estimate(line.0, scatter * 0.9),
        per_pod: estimate(line.1, scatter * 0.01),
        per_request: Some(estimate(line.2, scatter * 0.02)),
        points: get.iter().map(point).collect(),
        held_out: get.iter().filter(|at| at.pods == 90).map(held_out).collect(),
    }
}

fn crossings() -> Vec<Crossing> {
    use ScaledQuantity::{Cpu, Memory};
    let between = |quantity, pods, half, rate| Crossing {
        quantity,
        below: "sidecar".into(),
        above: "ambient".into(),
        rate_per_s: Some(rate),
        pods: estimate(pods, half),
        measured: (1, 90),
        alike: vec![],
    };
    let bare =
        Crossing { below: "ambient".into(), above: "bare".into(), ..between(Cpu, -9.0, 3.0, 20.0) };
    vec![
        between(Memory, 1.08, 0.4, 20.0),
        between(Memory, 1.26, 0.4, 50.0),
        between(Cpu, 1.73, 1.1, 20.0),
        between(Cpu, 2.77, 1.4, 50.0),
        bare,
    ]
}

fn service_times(pods: usize) -> ServiceTimes {
    let of_size: Vec<At> = cells().into_iter().filter(|at| at.pods == pods).collect();
    let time = |variant: &str, at: &At| latency_us(variant, pods, at.rate)[0] * 0.99;
    let curve = |variant: &str| {
        let mut points: Vec<(String, f64, Estimate)> = of_size
            .iter()
            .map(|at| (at.name(), at.rate, estimate(time(variant, at), 14.0)))
            .collect();
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        let fall = points[points.len() - 1].2.value - points[0].2.value;
        let own = match variant {
            "sidecar" => Some(estimate(-31.0, 12.0)),
            "ambient" => Some(estimate(-6.0, 15.0)),
            _ => None,
        };
        ServiceTimeCurve {
            variant: variant.into(),
            points,
            fall: Some(estimate(fall, 16.0)),
            own_fall: own,
        }
    };
    ServiceTimes { replicas: Some(("nginx".into(), pods)), variants: VARIANTS.map(curve).into() }
}

/// Replicas, rate, then as published: mean and p99 latency, ms; CPU, millicores; memory, MiB.
const PUBLISHED: [(usize, f64, [f64; 4]); 8] = [
    (1, 20.0, [0.880_7, 1.537, 14.60, 166.21]),
    (1, 50.0, [0.693_6, 1.432, 25.03, 168.22]),
    (10, 20.0, [0.939_9, 1.771, 25.03, 258.02]),
    (10, 50.0, [0.745_3, 1.42, 32.98, 272.60]),
    (50, 20.0, [1.011, 2.263, 71.50, 653.21]),
    (50, 50.0, [0.797_5, 1.563, 74.81, 675.76]),
    (90, 20.0, [1.052, 3.036, 107.17, 1105.33]),
    (90, 50.0, [0.822_3, 1.759, 116.67, 1097.17]),
];
const FIGURES: [&str; 4] =
    ["latency_ms.mean", "latency_ms.p99", "cpu_total_millicores", "memory_total_mib"];

fn reference(at: At) -> Vec<ReferenceRow> {
    let of_cell = PUBLISHED.iter().filter(|(pods, rate, _)| (*pods, *rate) == (at.pods, at.rate));
    let [p50, _, p99] = latency_us("ambient", at.pods, at.rate);
    let measured = [
        p50 * 1.04 / 1e3,
        p99 / 1e3,
        cpu("ambient").at(at.pods, at.rate),
        memory("ambient").at(at.pods, at.rate),
    ];
    let row = |i: usize, published: f64| ReferenceRow {
        variant: "ambient".into(),
        figure: FIGURES[i].into(),
        published,
        measured: Some(measured[i]),
        published_ratio: None,
        measured_ratio: Some(estimate(1.3, 0.02)),
    };
    of_cell.flat_map(|(.., figures)| figures.iter().enumerate().map(|(i, f)| row(i, *f))).collect()
}

fn recomputed(at: At) -> Vec<RecomputedRow> {
    if at.pods != 90 || at.load != "get" {
        return vec![];
    }
    let per_request = RecomputedRow {
        variant: "ambient".into(),
        derived: Derived::CpuPerRequest,
        pod: None,
        printed: None,
        recomputed: Some(if at.rate > 30.0 { 2.33 } else { 5.36 }),
        against: None,
        measured: Some(about(cpu("ambient").at(at.pods, at.rate) / at.rate)),
        because: "kubectl top rounds every pod up to 1m, so the printed CPU counts pods.".into(),
    };
    let ratio = RecomputedRow {
        derived: Derived::MemoryRatio,
        printed: Some(0.2),
        recomputed: None,
        against: Some("sidecar".into()),
        measured: Some(about(0.11)),
        because: "The source prints a fifth and no figure of its sidecars.".into(),
        ..per_request.clone()
    };
    vec![per_request, ratio]
}

fn proofs() -> Vec<ProofSummary> {
    let summary = |variant: &str, arms, claims: Vec<_>| ProofSummary {
        variant: variant.into(),
        arms,
        proven: arms,
        claims,
        spans: vec![],
    };
    vec![
        summary(
            "bare",
            100,
            vec![
                claim("nginx (90 pods) answered every request", "150"),
                claim("no HBONE on the wire", "0"),
            ],
        ),
        summary(
            "sidecar",
            50,
            vec![
                claim("nginx (90 pods) answered every request", "150"),
                claim("nginx sidecars (90): every connection from the gateway was mTLS", "90"),
                claim("nginx (90 pods): plaintext is refused", "refused"),
            ],
        ),
        summary(
            "ambient",
            50,
            vec![
                claim(
                    "gateway to nginx: every connection was HBONE with the identity of nginx",
                    "90",
                ),
                claim("node-1: every stream came from the gateway's identity", "150"),
                claim("nginx (90 pods) answered every request", "150"),
                claim("no plaintext left a pod", "0"),
            ],
        ),
    ]
}
