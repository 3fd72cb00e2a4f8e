//! Made-up findings of a run like petclinic-agent: two JVMs without and with an agent, seven loads. No number in
//! them was measured; those of the reference are the published ones.

use toll_lab::{ServiceSpans, Spans};

use super::made_up::{caveat, claim, claim_about, extent, fact, judged, open, owner, rounds};
use crate::analysis::findings::*;

const ROUNDS: usize = 5;
const ARMS: [&str; 3] = ["baseline", "agent", "baseline (again)"];
const PODS: [&str; 2] = ["gateway", "vets"];
const MIB: f64 = 1024.0 * 1024.0;

/// What one variant shows under one load, before it is written as findings.
#[derive(Clone, Copy)]
struct Shown {
    variant: &'static str,
    rate: f64,
    /// p50, p90, p99; microseconds.
    latency_us: [f64; 3],
    /// Of gateway and vets for a request, microseconds.
    cpu_us: [f64; 2],
    /// Of the collector for a request, microseconds.
    collector_us: f64,
    heap_mib: [f64; 2],
}

/// The run.
pub fn petclinic() -> Findings {
    let loads = vec![
        equal_rate("same-rate", 10, 210.0),
        equal_rate("spans-1", 2, 105.0),
        equal_rate("spans-3", 4, 105.0),
        equal_rate("spans-27", 28, 105.0),
        users("vus-320", 89, [320.0, 291.0], [[8.9e3, 28.4e3, 74e3], [17.1e3, 81.2e3, 190e3]]),
        users("vus-700", 194, [604.0, 402.0], [[91e3, 264e3, 420e3], [221e3, 537e3, 801e3]]),
    ];
    judged(Findings {
        staircases: vec![],
        crossings: vec![],
        scalings: vec![],
        service_times: vec![],
        version: 3,
        study: "petclinic-agent".into(),
        question:
            "What does a Java tracing agent cost, and how does it grow with the number of spans?"
                .into(),
        run: "made-up-for-tests-petclinic-agent".into(),
        baseline: "baseline".into(),
        variants: variants(),
        headline: vec![Metric::CpuPerRequest, Metric::LatencyP50],
        headline_load: Some("same-rate".into()),
        extent: extent(&ARMS, ROUNDS),
        failures: vec![],
        calls: vec![],
        traffic: None,
        capacities: [("baseline", 640.0), ("agent", 420.0)]
            .map(|(variant, per_s)| Capacity { variant: variant.into(), per_s })
            .into(),
        curve: None,
        loads,
        published: Some(Publication {
            source: "EaseAgent on spring-petclinic. Machines and agent were others".into(),
            notes: vec![],
        }),
        proofs: proofs(),
        settled: vec![],
        span_costs: vec![span_costs(None, 1, 44.6, 14.2), span_costs(Some("vets"), 0, 19.5, 13.1)],
        heap_trends: heap_trends(),
        caveats: vec![caveat(
            CaveatKind::Comparison,
            "vus-700: baseline (604 of 640/s) and agent (402 of the 420/s that it carries) are both at or near their limit: their latencies are those of queues, and throughput is about what the machine carries; CPU per request can still be compared",
        )],
        rounds: rounds(&ARMS, ROUNDS),
        facts: vec![
            fact("kernel", "made up for tests"),
            fact("JVM flags", "-Xms512m -Xmx512m -XX:+UseSerialGC"),
        ],
    })
}

fn variants() -> Vec<VariantFacts> {
    let facts = |name: &str, describes: &str, skipped: Option<&str>| VariantFacts {
        name: name.into(),
        describes: describes.into(),
        skipped: skipped.map(Into::into),
        envoy_for_ztunnel: false,
    };
    vec![
        facts("baseline", "no agent", None),
        facts("agent", "OpenTelemetry Java agent 2.33.1 in both JVMs", None),
        facts("easeagent", "EaseAgent in both JVMs", Some("EASEAGENT names no jar")),
    ]
}

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate { value, low: value - half, high: value + half, level: 0.95, rounds: ROUNDS }
}

/// An estimate whose interval is 6 % of its value to either side.
fn about(value: f64) -> Estimate {
    estimate(value, value.abs() * 0.06)
}

fn shown(variant: &'static str, rate: f64, latency_us: [f64; 3]) -> Shown {
    Shown {
        variant,
        rate,
        latency_us,
        cpu_us: [702.0, 1198.0],
        collector_us: 2.1,
        heap_mib: [131.0, 148.0],
    }
}

/// `base` as the agent makes it, with `spans` to a request.
fn with_agent(base: Shown, rate: f64, latency_us: [f64; 3], spans: u64) -> Shown {
    Shown {
        variant: "agent",
        rate,
        latency_us,
        cpu_us: [702.0 + 25.1 + 1.1 * spans as f64, 1198.0 + 19.5 + 13.1 * spans as f64],
        collector_us: 2.0 + 3.1 * spans as f64,
        heap_mib: base.heap_mib.map(|mib| mib + 31.0),
    }
}

fn equal_rate(name: &str, spans: u64, rate: f64) -> LoadFindings {
    let base = shown("baseline", rate, [3.1e3, 5.2e3, 11.8e3]);
    let slower = base.latency_us.map(|us| us * (1.04 + 0.012 * spans as f64));
    let agent = with_agent(base, rate, slower, spans);
    load(name, View::EqualRate, open(rate), [base, agent])
}

fn users(name: &str, here: u64, rates: [f64; 2], latency_us: [[f64; 3]; 2]) -> LoadFindings {
    let base = shown("baseline", rates[0], latency_us[0]);
    let agent = with_agent(base, rates[1], latency_us[1], 10);
    let release = Release::Users(PlannedUsers {
        users: name[4..].parse().unwrap(),
        start: 5,
        ramp_s: 1.0,
        hold_s: 4.0,
        ramp_down_s: 0.5,
        think_s: 1.0,
        parallel: 4,
        made_for_per_s: Some(1526.0),
    });
    let mut load = load(name, View::Users, release, [base, agent]);
    for (variant, shown) in load.variants.iter_mut().zip([base, agent]) {
        variant.k6 = Some(k6(here, shown));
    }
    load.reference = reference(name);
    load.recomputed = recomputed(name);
    load
}

fn load(name: &str, view: View, release: Release, arms: [Shown; 2]) -> LoadFindings {
    LoadFindings {
        between: vec![],
        cell: None,
        resources: vec![],
        top_totals: vec![],
        name: name.into(),
        view,
        release,
        rate_per_s: (view == View::EqualRate).then_some(arms[0].rate),
        slice: SliceLength::Seconds(8.0),
        variants: arms.map(variant_load).into(),
        effects: effects(view, arms),
        again: vec![],
        attribution: vec![attribution(arms)],
        top_pods: PODS.iter().enumerate().map(|(i, pod)| pod_row(pod, i, arms)).collect(),
        jvms: PODS.iter().enumerate().map(|(i, pod)| jvm_row(pod, i, arms)).collect(),
        regimes: arms.map(regime).into(),
        reference: vec![],
        recomputed: vec![],
    }
}

fn metrics(shown: Shown) -> Vec<(Metric, f64)> {
    let [p50, p90, p99] = shown.latency_us;
    let cpu = shown.cpu_us.iter().sum();
    vec![
        (Metric::LatencyP50, p50),
        (Metric::LatencyP90, p90),
        (Metric::LatencyP95, f64::midpoint(p90, p99)),
        (Metric::LatencyP99, p99),
        (Metric::LatencyMean, p50 * 1.2),
        (Metric::Throughput, shown.rate),
        (Metric::CpuPerRequest, cpu),
        (Metric::ApplicationCpuPerRequest, cpu),
        (Metric::Memory, shown.heap_mib.iter().sum::<f64>() * 2.1 * MIB),
    ]
}

fn variant_load(shown: Shown) -> VariantLoad {
    let costs = |gateway, vets, scale: f64| {
        [
            component(Role::Application, "gateway", gateway),
            component(Role::Application, "vets", vets),
            component(Role::Collector, "collector", shown.collector_us * scale),
            component(Role::LoadGenerator, "load", 71.0 * scale),
            component(Role::Harness, "toll", 9.0 * scale),
            component(Role::Unattributed, "", 160.0 * scale),
        ]
    };
    VariantLoad {
        vegeta: None,
        variant: shown.variant.into(),
        rounds: ROUNDS,
        slices: 60 * ROUNDS,
        metrics: metrics(shown).into_iter().map(|(m, value)| (m, about(value))).collect(),
        latency_curve: curve(shown.latency_us),
        hey: None,
        k6: None,
        throughput_by_round: (0..ROUNDS).map(|i| shown.rate * (0.98 + 0.01 * i as f64)).collect(),
        cpu_per_request: costs(shown.cpu_us[0], shown.cpu_us[1], 1.0).into(),
        traversals: None,
        idle_cpu: costs(1.4, 2.2, 0.01).into(),
        memory: memory(shown),
    }
}

fn component(role: Role, pod: &str, cost: f64) -> ComponentCost {
    ComponentCost { owner: owner(role, pod), cost: about(cost) }
}

fn curve([p50, p90, p99]: [f64; 3]) -> Vec<CurvePoint> {
    let points = [(0.01, p50 * 0.6), (0.25, p50 * 0.8), (0.5, p50), (0.75, p50 * 1.3)];
    let point = |(quantile, us): (f64, f64)| CurvePoint {
        quantile,
        merged_us: us,
        low_us: us * 0.94,
        high_us: us * 1.07,
    };
    points.into_iter().chain([(0.9, p90), (0.99, p99)]).map(point).collect()
}

fn memory(shown: Shown) -> Vec<MemorySeries> {
    let series = |role, pod: &str, mib: f64| MemorySeries {
        owner: owner(role, pod),
        points: (-2..8).map(|s| (f64::from(s), mib * MIB * (1.0 + 0.004 * f64::from(s)))).collect(),
    };
    vec![
        series(Role::Application, "gateway", shown.heap_mib[0] * 2.1),
        series(Role::Application, "vets", shown.heap_mib[1] * 2.1),
        series(Role::Collector, "collector", 9.0),
        series(Role::LoadGenerator, "load", 14.0),
        series(Role::Harness, "toll", 12.0),
    ]
}

fn effects(view: View, [base, agent]: [Shown; 2]) -> Vec<Effect> {
    let pairs = metrics(base).into_iter().zip(metrics(agent));
    pairs
        .filter(|((metric, _), _)| view == View::Users || *metric != Metric::Throughput)
        .map(|((metric, baseline), (_, value))| Effect {
            against: None,
            variant: agent.variant.into(),
            metric,
            baseline,
            value,
            difference: about(value - baseline),
            ratio: estimate(value / baseline, 0.02),
            trimmed_ratio: None,
            unexcused_ratio: None,
            scatter: None,
            verdict: None,
        })
        .collect()
}

fn attribution([base, agent]: [Shown; 2]) -> Attribution {
    let of = |variant: Shown| variant_load(variant).cpu_per_request;
    let whole = agent.cpu_us.iter().sum::<f64>() - base.cpu_us.iter().sum::<f64>();
    let line = |payer: Payer, baseline: f64, value: f64| AttributedCost {
        share: (!payer.role().is_some_and(Role::is_instrument))
            .then_some((value - baseline) / whole),
        payer,
        baseline: Some(baseline),
        value: Some(value),
        change: about(value - baseline),
    };
    let parts = of(base).into_iter().zip(of(agent));
    let parts = parts.map(|(b, a)| line(Payer::Owner(b.owner), b.cost.value, a.cost.value));
    let sum = |of: Shown| of.cpu_us.iter().sum::<f64>();
    let all = |payer| line(payer, sum(base), sum(agent));
    Attribution {
        variant: agent.variant.into(),
        parts: parts.collect(),
        subtotals: vec![all(Payer::Role(Role::Application))],
        counted: Some(all(Payer::Counted)),
        whole: Some(line(Payer::Whole, sum(base) + 160.0, sum(agent) + 160.0)),
    }
}

fn measured(base: f64, value: f64, is_baseline: bool) -> Option<Measured> {
    let here = if is_baseline { base } else { value };
    Some(Measured {
        mean: about(here),
        change: (!is_baseline).then(|| about(value - base)),
        ratio: (!is_baseline).then(|| estimate(value / base, 0.03)),
    })
}

fn pod_row(pod: &str, at: usize, arms: [Shown; 2]) -> PodRow {
    let millicores = |of: Shown| of.rate * of.cpu_us[at] / 1e3;
    let of = |shown: Shown| PodUse {
        variant: shown.variant.into(),
        cpu_millicores: measured(
            millicores(arms[0]),
            millicores(arms[1]),
            shown.variant == "baseline",
        ),
        memory_mib: measured(
            arms[0].heap_mib[at] * 2.2,
            arms[1].heap_mib[at] * 2.2,
            shown.variant == "baseline",
        ),
    };
    PodRow {
        owner: Some(owner(Role::Application, pod)),
        group: "petclinic".into(),
        uses: arms.map(of).into(),
    }
}

fn jvm_row(pod: &str, at: usize, arms: [Shown; 2]) -> JvmRow {
    let of = |shown: Shown| {
        let both = |value: &dyn Fn(Shown) -> f64| {
            measured(value(arms[0]), value(arms[1]), shown.variant == "baseline")
        };
        let more = |of: Shown, by: f64| if of.variant == "baseline" { 0.0 } else { by };
        JvmUse {
            variant: shown.variant.into(),
            cpu_load: both(&|s| s.rate * s.cpu_us[at] / 2e6),
            cpu_per_request_us: both(&|s| s.cpu_us[at]),
            heap_used_mib: both(&|s| s.heap_mib[at]),
            heap_live_mib: both(&|s| s.heap_mib[at] * 0.31),
            gc_share: both(&|s| 0.011 + more(s, 0.006)),
            jit_share: both(&|s| 0.042 + more(s, 0.019)),
            threads: both(&|s| 38.0 + more(s, 5.0)),
        }
    };
    JvmRow { pod: pod.into(), uses: arms.map(of).into() }
}

fn regime(shown: Shown) -> Regime {
    let capacity_per_s = if shown.variant == "baseline" { 640.0 } else { 420.0 };
    Regime {
        variant: shown.variant.into(),
        throughput_per_s: shown.rate,
        capacity_per_s,
        near_limit: shown.rate >= 0.9 * capacity_per_s,
        at_limit: shown.rate >= capacity_per_s,
    }
}

fn k6(users: u64, shown: Shown) -> K6Summary {
    let [p50, p90, p99] = shown.latency_us;
    let trend = |name: &str, least: f64, of: f64| K6Trend {
        name: name.into(),
        avg_us: least + p50 * 1.2 * of,
        min_us: least + p50 * 0.5 * of,
        med_us: least + p50 * of,
        max_us: least + p99 * 1.6 * of,
        p90_us: least + p90 * of,
        p95_us: least + f64::midpoint(p90, p99) * of,
    };
    let trends = [
        ("http_req_blocked", 0.0, 0.0004),
        ("http_req_connecting", 0.0, 0.0),
        ("http_req_duration", 0.0, 1.0),
        ("http_req_duration{expected_response:true}", 0.0, 1.0),
        ("http_req_receiving", 0.0, 0.006),
        ("http_req_sending", 0.0, 0.002),
        ("http_req_tls_handshaking", 0.0, 0.0),
        ("http_req_waiting", 0.0, 0.992),
        ("iteration_duration", 1e6, 1.3),
    ];
    let requests = (shown.rate * 27.5) as u64;
    K6Summary {
        trends: trends.map(|(name, least, of)| trend(name, least, of)).into(),
        failed: 0,
        requests,
        requests_per_s: shown.rate,
        iterations: requests / 4,
        iterations_per_s: shown.rate / 4.0,
        interrupted: Some(users / 2),
        vus: [1, 1, users],
        vus_max: users,
        data_received: requests * 1480,
        data_sent: requests * 96,
        total_s: 27.5,
    }
}

fn reference(load: &str) -> Vec<ReferenceRow> {
    let figures: [(&str, f64, f64); 6] = if load == "vus-320" {
        [
            ("throughput_per_s", 1164.0, 1057.0),
            ("latency_ms.p90", 28.94, 189.39),
            ("cpu_load_percent.gateway", 33.2, 44.4),
            ("cpu_load_percent.vets", 40.2, 65.2),
            ("heap_mib.gateway", 208.0, 253.0),
            ("heap_mib.vets", 236.0, 284.0),
        ]
    } else {
        [
            ("throughput_per_s", 1800.0, 1526.0),
            ("latency_ms.p90", 564.69, 737.55),
            ("cpu_load_percent.gateway", 57.5, 61.1),
            ("cpu_load_percent.vets", 69.0, 81.2),
            ("heap_mib.gateway", 385.0, 583.0),
            ("heap_mib.vets", 303.0, 464.0),
        ]
    };
    let row = |variant: &str, figure: &str, published: f64, ratio: Option<f64>| ReferenceRow {
        variant: variant.into(),
        figure: figure.into(),
        published,
        measured: Some(published * 0.4),
        published_ratio: ratio,
        measured_ratio: ratio.map(|_| about(1.3)),
    };
    figures
        .into_iter()
        .flat_map(|(name, base, agent)| {
            [row("baseline", name, base, None), row("agent", name, agent, Some(agent / base))]
        })
        .collect()
}

fn recomputed(load: &str) -> Vec<RecomputedRow> {
    let row = |derived, pod: Option<&str>, printed, recomputed, because: &str| RecomputedRow {
        variant: "agent".into(),
        derived,
        pod: pod.map(Into::into),
        printed,
        recomputed: Some(recomputed),
        against: None,
        measured: Some(about(recomputed * 0.6)),
        because: because.into(),
    };
    use Derived::{CpuLoadPoints, HeapDifference, LatencyP90Change, PodCpuPerRequestChange};
    if load == "vus-320" {
        return vec![
            row(
                CpuLoadPoints,
                Some("gateway"),
                Some(21.2),
                11.2,
                "33.2 and 44.4 % are 11.2 points apart, not 21.2.",
            ),
            row(PodCpuPerRequestChange, Some("gateway"), None, 47.0, "At 9 % less traffic."),
            row(PodCpuPerRequestChange, Some("vets"), None, 79.0, "At 9 % less traffic."),
            row(
                LatencyP90Change,
                None,
                None,
                554.0,
                "The source prints both values and no change.",
            ),
        ];
    }
    vec![
        row(HeapDifference, Some("gateway"), Some(200.0), 198.0, "385 and 583 MiB are 198 apart."),
        row(HeapDifference, Some("vets"), Some(151.0), 161.0, "303 and 464 MiB are 161 apart."),
    ]
}

/// `gateway_spans` are those besides the spans of vets.
fn span_costs(
    service: Option<&str>,
    gateway_spans: u64,
    each_request_us: f64,
    each_span_us: f64,
) -> SpanCosts {
    let loads = [
        ("spans-1", 1, 1.06),
        ("spans-3", 3, 0.97),
        ("same-rate", 9, 0.985),
        ("spans-27", 27, 1.004),
    ];
    let point = |(load, of_vets, off): (&str, u64, f64)| {
        let spans = of_vets + gateway_spans;
        let us = (each_request_us + each_span_us * spans as f64) * off;
        SpanPoint {
            load: load.into(),
            spans,
            rate_per_s: Some(if load == "same-rate" { 210.0 } else { 105.0 }),
            effect_us: estimate(us, 9.0 + 0.6 * spans as f64),
        }
    };
    SpanCosts {
        variant: "agent".into(),
        service: service.map(Into::into),
        points: loads.map(point).into(),
        per_span_us: estimate(each_span_us, each_span_us * 0.09),
        per_request_us: estimate(each_request_us, 12.0),
        again_us: Some(estimate(0.2, 1.7)),
    }
}

fn heap_trends() -> Vec<HeapTrend> {
    let trend = |variant: &str, pod: &str, from: f64, growth: f64, points: usize| HeapTrend {
        variant: variant.into(),
        pod: pod.into(),
        points,
        mib_per_minute: (points > 4).then_some(growth),
        p_value: (points > 4).then_some(if growth > 1.0 { 0.0003 } else { 0.43 }),
        grows: growth > 1.0,
        falls: growth < -1.0,
        series: (0..points)
            .map(|i| {
                let minute = 0.12 * i as f64;
                (minute, from + growth * minute + [0.4, -0.7, 0.2, -0.1, 0.5][i % 5])
            })
            .collect(),
    };
    vec![
        trend("baseline", "gateway", 41.0, 0.02, 30),
        trend("agent", "gateway", 52.0, -0.1, 34),
        trend("baseline", "vets", 46.0, 0.05, 3),
        trend("agent", "vets", 57.0, 1.2, 38),
    ]
}

fn proofs() -> Vec<ProofSummary> {
    let of_loads = |loads: &[&str], of_vets: u64, requests: u64| {
        let service = |service: &str, count| ServiceSpans {
            service: service.into(),
            expected: count,
            arrived: count,
        };
        let services = vec![service("gateway", requests), service("vets", of_vets * requests)];
        SpansOfLoads {
            loads: loads.iter().map(|load| (*load).into()).collect(),
            spans: Spans { services, requests, whole: requests },
        }
    };
    let summary = |variant: &str, arms, claims, spans| ProofSummary {
        variant: variant.into(),
        arms,
        proven: arms,
        claims,
        spans,
    };
    vec![
        summary(
            "baseline",
            60,
            vec![
                claim_about(Topic::Spans, "collector: no span arrived", "0"),
                claim("no JVM was started with an agent", "no agent"),
            ],
            vec![],
        ),
        summary(
            "agent",
            30,
            vec![claim_about(
                Topic::Spans,
                "collector: every request left 10 spans: 1 of gateway, 9 of vets",
                "9060",
            )],
            vec![
                of_loads(&["same-rate", "vus-320", "vus-700"], 9, 24_160),
                of_loads(&["spans-1"], 1, 4_200),
                of_loads(&["spans-3"], 3, 4_200),
                of_loads(&["spans-27"], 27, 4_200),
            ],
        ),
    ]
}
