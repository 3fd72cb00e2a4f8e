//! Made-up findings of a run like egress-gateway: six variants on a staircase of eight steps. No number in them was
//! measured; those of the reference are the published ones.

use super::made_up::{caveat, claim, claim_about, extent, fact, judged, open, owner, rounds};
use crate::analysis::findings::*;

const ROUNDS: usize = 4;
const ARMS: [&str; 7] =
    ["none", "bypass", "sidecar", "gateway", "gateway-mtls", "gateway-sni", "bypass (again)"];
const MIB: f64 = 1024.0 * 1024.0;
const CLIENTS: [u32; 8] = [1, 5, 10, 20, 30, 40, 50, 60];
const PARTS: [(&str, f64); 4] =
    [("web", 0.34), ("flights", 0.22), ("bookings", 0.26), ("customers", 0.18)];

/// What a request costs in one variant, microseconds.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    describes: &'static str,
    /// Of the four services.
    application_us: f64,
    /// Of sidecars, egress gateway and SNI proxy.
    mesh_us: [f64; 3],
    /// Of the whole machine, by which throughput is bounded.
    all_us: f64,
}

const CASES: [Case; 6] = [
    Case {
        name: "none",
        describes: "no data plane",
        application_us: 742.0,
        mesh_us: [0.0, 0.0, 0.0],
        all_us: 1_180.0,
    },
    Case {
        name: "bypass",
        describes: "an Envoy sidecar beside web, flights, bookings and customers, mTLS strict; the database past it",
        application_us: 751.0,
        mesh_us: [804.0, 0.0, 0.0],
        all_us: 2_060.0,
    },
    Case {
        name: "sidecar",
        describes: "the same, the database through the caller's sidecar",
        application_us: 753.0,
        mesh_us: [866.0, 0.0, 0.0],
        all_us: 2_130.0,
    },
    Case {
        name: "gateway",
        describes: "the same, then through an egress gateway (Envoy)",
        application_us: 755.0,
        mesh_us: [871.0, 92.0, 0.0],
        all_us: 2_240.0,
    },
    Case {
        name: "gateway-mtls",
        describes: "the same, mTLS between sidecar and egress gateway",
        application_us: 763.0,
        mesh_us: [938.0, 171.0, 0.0],
        all_us: 2_430.0,
    },
    Case {
        name: "gateway-sni",
        describes: "the same, with an SNI proxy (nginx) in the egress gateway's pod",
        application_us: 776.0,
        mesh_us: [941.0, 176.0, 118.0],
        all_us: 2_690.0,
    },
];

fn case(name: &str) -> Case {
    CASES.into_iter().find(|case| case.name == name).expect("it is one of the six")
}

impl Case {
    fn mesh(self) -> f64 {
        self.mesh_us.iter().sum()
    }

    /// Two cores, and 2 ms of waiting for each request.
    fn throughput(self, clients: u32) -> f64 {
        let clients = f64::from(clients);
        let limit = 2e6 / self.all_us;
        let alone = clients / (2e-3 + self.all_us * 1e-6);
        let smooth = (alone.powi(-4) + limit.powi(-4)).powf(-0.25);
        smooth * (1.0 - clients * 4e-4)
    }

    /// Mean, p50, p90, p95, p99; microseconds.
    fn response_us(self, clients: u32) -> [f64; 5] {
        let mean = f64::from(clients) / self.throughput(clients) * 1e6;
        [mean, mean * 0.93, mean * 1.62, mean * 1.94, mean * 2.83]
    }

    fn metrics(self, clients: u32) -> Vec<(Metric, f64)> {
        let [mean, p50, p90, p95, p99] = self.response_us(clients);
        let mut metrics = vec![
            (Metric::LatencyP50, p50),
            (Metric::LatencyP90, p90),
            (Metric::LatencyP95, p95),
            (Metric::LatencyP99, p99),
            (Metric::LatencyMean, mean),
            (Metric::CpuPerRequest, self.application_us + self.mesh() + 210.0),
            (Metric::ApplicationCpuPerRequest, self.application_us),
            (Metric::Throughput, self.throughput(clients)),
            (Metric::Memory, (180.0 + self.mesh() / 9.0) * MIB),
        ];
        metrics.extend((self.mesh() > 0.0).then(|| (Metric::MeshCpuPerRequest, self.mesh())));
        metrics
    }

    /// With their CPU of a request.
    fn components(self) -> Vec<(Owner, f64)> {
        let [sidecars, egress, sni] = self.mesh_us;
        let own = PARTS
            .iter()
            .map(|(pod, share)| (owner(Role::Application, pod), share * self.application_us));
        let beside = PARTS.iter().map(|(pod, share)| (owner(Role::Sidecar, pod), share * sidecars));
        let gateways = [
            (owner(Role::EgressGateway, "egress"), egress),
            (owner(Role::SniProxy, "egress"), sni),
            (owner(Role::Database, "airline-db"), 210.0),
        ];
        own.chain(beside).chain(gateways).filter(|(_, us)| *us > 0.0).collect()
    }
}

/// The run.
pub fn egress_gateway() -> Findings {
    let mut loads = vec![same_rate()];
    loads.extend(CLIENTS.map(load));
    judged(Findings {
        staircases: vec![staircase()],
        version: 3,
        study: "egress-gateway".into(),
        question: "What does each step on the way to an external TLS database cost?".into(),
        run: "made-up-for-tests-egress-gateway".into(),
        baseline: "bypass".into(),
        variants: CASES
            .map(|case| VariantFacts {
                name: case.name.into(),
                describes: case.describes.into(),
                skipped: None,
                envoy_for_ztunnel: false,
            })
            .into(),
        headline: vec![Metric::CpuPerRequest, Metric::LatencyP50],
        headline_load: Some("same-rate".into()),
        extent: extent(&ARMS, ROUNDS),
        failures: vec![],
        calls: vec![],
        traffic: None,
        capacities: vec![],
        curve: None,
        loads,
        published: Some(Publication {
            source: "Istio egress gateway performance, a table and two percentages".into(),
            notes: vec![],
        }),
        proofs: CASES.map(proof).into(),
        settled: vec![],
        span_costs: vec![],
        heap_trends: vec![],
        scalings: vec![],
        crossings: vec![],
        service_times: vec![],
        caveats: vec![caveat(
            CaveatKind::Comparison,
            "all of it shares two cores with the load generator",
        )],
        rounds: rounds(&ARMS, ROUNDS),
        facts: vec![
            fact("kernel", "made up for tests"),
            Fact::Database(DatabaseServer::StandIn { version: "1.47.0".into() }),
        ],
    })
}

fn estimate(value: f64, half: f64) -> Estimate {
    let half = half.abs();
    Estimate { value, low: value - half, high: value + half, level: 0.95, rounds: ROUNDS }
}

/// An estimate whose interval is 2 % of its value to either side.
fn about(value: f64) -> Estimate {
    estimate(value, value * 0.02)
}

fn name(clients: u32) -> String {
    format!("clients-{clients}")
}

fn staircase() -> Staircase {
    let line = |case: Case| StaircaseLine {
        variant: case.name.into(),
        steps: CLIENTS.map(|clients| step(case, clients)).into(),
    };
    let pairs = [
        ("none", "bypass"),
        ("sidecar", "bypass"),
        ("gateway", "bypass"),
        ("gateway-mtls", "bypass"),
        ("gateway-sni", "bypass"),
        ("gateway", "sidecar"),
        ("gateway-mtls", "gateway"),
        ("gateway-sni", "gateway-mtls"),
    ];
    Staircase {
        load: "clients".into(),
        lines: CASES.map(line).into(),
        differences: pairs.map(|(variant, against)| difference(variant, against)).into(),
        again: Some(difference("bypass", "bypass")),
        answer_bytes: Some(617.4),
        recomputed: recomputed(),
    }
}

fn step(case: Case, clients: u32) -> StaircaseStep {
    StaircaseStep {
        load: name(clients),
        connections: clients,
        throughput_per_s: about(case.throughput(clients)),
        mesh_cpu_us: (case.mesh() > 0.0).then(|| about(case.mesh())),
        application_cpu_us: Some(about(case.application_us)),
    }
}

fn difference(variant: &str, against: &str) -> StaircaseDifference {
    let (case, other) = (self::case(variant), self::case(against));
    let logs = CLIENTS.map(|c| (case.throughput(c) / other.throughput(c)).ln());
    let ratio = (logs.iter().sum::<f64>() / CLIENTS.len() as f64).exp();
    let mesh = case.mesh() - other.mesh();
    StaircaseDifference {
        variant: variant.into(),
        against: against.into(),
        throughput_ratio: estimate(ratio, 0.011),
        mesh_cpu_us: Some(estimate(mesh, 9.0)),
        mesh_cpu_ratio: Some(estimate(case.mesh() / other.mesh(), 0.012)),
        application_cpu_us: Some(estimate(case.application_us - other.application_us, 6.0)),
    }
}

fn load(clients: u32) -> LoadFindings {
    let others = CASES.iter().filter(|case| case.name != "bypass");
    let mut order = vec![case("bypass")];
    order.extend(others.clone());
    let before =
        [("gateway", "sidecar"), ("gateway-mtls", "gateway"), ("gateway-sni", "gateway-mtls")];
    LoadFindings {
        name: name(clients),
        view: View::FlatOut,
        cell: Some(Cell {
            load: "clients".into(),
            rate_per_s: None,
            share: None,
            connections: Some(clients),
            replicas: None,
            nodes: None,
        }),
        release: Release::Closed { connections: clients },
        rate_per_s: None,
        slice: SliceLength::Seconds(3.0),
        variants: order.iter().map(|case| variant_load(*case, clients)).collect(),
        effects: others.flat_map(|case| effects(*case, self::case("bypass"), clients)).collect(),
        between: before
            .iter()
            .flat_map(|(variant, against)| {
                let effects = effects(case(variant), case(against), clients);
                effects.into_iter().map(|e| Effect { against: Some((*against).into()), ..e })
            })
            .collect(),
        again: vec![],
        attribution: vec![],
        top_pods: vec![],
        resources: vec![],
        top_totals: vec![],
        jvms: vec![],
        regimes: vec![],
        reference: vec![],
        recomputed: vec![],
    }
}

/// All at the rate of five clients of the slowest.
fn same_rate() -> LoadFindings {
    let rate = case("gateway-sni").throughput(5);
    let mut load = LoadFindings {
        name: "same-rate".into(),
        view: View::EqualRate,
        cell: None,
        release: open(704.0),
        rate_per_s: Some(704.0),
        ..load(5)
    };
    for variant in &mut load.variants {
        variant.hey = None;
        let rates = variant.metrics.iter_mut().filter(|(m, _)| *m == Metric::Throughput);
        rates.for_each(|(_, of)| *of = estimate(rate, 0.4));
    }
    for effects in [&mut load.effects, &mut load.between] {
        effects.retain(|effect| effect.metric != Metric::Throughput);
    }
    load
}

fn effects(case: Case, other: Case, clients: u32) -> Vec<Effect> {
    let of_other = other.metrics(clients);
    let effect = |(metric, value): (Metric, f64)| {
        let baseline = of_other.iter().find(|(m, _)| *m == metric)?.1;
        Some(Effect {
            variant: case.name.into(),
            against: None,
            metric,
            baseline,
            value,
            difference: estimate(value - baseline, baseline * 0.01),
            ratio: estimate(value / baseline, 0.01),
            trimmed_ratio: None,
            unexcused_ratio: None,
            scatter: None,
            verdict: None,
        })
    };
    case.metrics(clients).into_iter().filter_map(effect).collect()
}

fn variant_load(case: Case, clients: u32) -> VariantLoad {
    let own = [(owner(Role::LoadGenerator, "load"), 130.0), (owner(Role::Unattributed, ""), 90.0)];
    let components = case.components();
    let cost = |owner: &Owner, us: f64| ComponentCost { owner: owner.clone(), cost: about(us) };
    VariantLoad {
        variant: case.name.into(),
        rounds: ROUNDS,
        slices: 60 * ROUNDS,
        metrics: case.metrics(clients).into_iter().map(|(m, v)| (m, about(v))).collect(),
        latency_curve: curve(case, clients),
        hey: Some(hey(case, clients)),
        vegeta: None,
        k6: None,
        throughput_by_round: (0..ROUNDS)
            .map(|round| case.throughput(clients) * (0.99 + 0.007 * round as f64))
            .collect(),
        cpu_per_request: components
            .iter()
            .chain(&own)
            .map(|(owner, us)| cost(owner, *us))
            .collect(),
        traversals: None,
        idle_cpu: components.iter().map(|(owner, us)| cost(owner, us / 90.0)).collect(),
        memory: components
            .iter()
            .map(|(owner, _)| MemorySeries {
                owner: owner.clone(),
                points: (0..4).map(|s| (f64::from(s), 21.0 * MIB)).collect(),
            })
            .collect(),
    }
}

fn curve(case: Case, clients: u32) -> Vec<CurvePoint> {
    let [_, p50, p90, p95, p99] = case.response_us(clients);
    let points = [(0.01, p50 * 0.6), (0.5, p50), (0.9, p90), (0.95, p95), (0.99, p99)];
    let point = |(quantile, us): (f64, f64)| CurvePoint {
        quantile,
        merged_us: us,
        low_us: us * 0.97,
        high_us: us * 1.04,
    };
    points.map(point).into()
}

fn hey(case: Case, clients: u32) -> HeySummary {
    let total_s = 12.0;
    let answers = (case.throughput(clients) * total_s) as u64;
    let [mean, p50, p90, p95, p99] = case.response_us(clients).map(|us| us / 1e6);
    HeySummary {
        total_s,
        slowest_s: p99 * 1.8,
        fastest_s: p50 * 0.4,
        average_s: mean,
        requests_per_s: answers as f64 / total_s,
        body_bytes: answers * 617,
        bytes_per_request: 617,
        histogram: (0..11).map(|i| (p50 * (0.4 + 0.4 * f64::from(i)), answers / 11)).collect(),
        percentiles: vec![(50, p50), (90, p90), (95, p95), (99, p99)],
        details: vec![],
        statuses: vec![(200, answers - answers / 5), (201, answers / 5)],
        errors: vec![],
    }
}

/// As printed, against whatever it may be.
fn recomputed() -> Vec<RecomputedRow> {
    let row = |variant: &str, against: Option<&str>, printed, because: &str| RecomputedRow {
        variant: variant.into(),
        against: against.map(str::to_owned),
        derived: Derived::ThroughputChange,
        pod: None,
        printed,
        recomputed: None,
        measured: None,
        because: because.into(),
    };
    let no_figure = "The source says \"no major impact\", without a figure.";
    let of_which = "The source shows no figures behind it.";
    vec![
        row("sidecar", None, None, no_figure),
        row("gateway", None, None, no_figure),
        row("gateway", Some("sidecar"), None, no_figure),
        row("gateway-mtls", None, Some(-10.0), of_which),
        row("gateway-mtls", Some("gateway"), Some(-10.0), of_which),
        row("gateway-sni", None, Some(-24.0), of_which),
        row("gateway-sni", Some("gateway-mtls"), Some(-24.0), of_which),
        RecomputedRow {
            derived: Derived::MeshCpuPerRequestChange,
            measured: Some(estimate(53.6, 1.4)),
            ..row("gateway-sni", None, None, "The source finds it clearly higher.")
        },
    ]
}

fn proof(case: Case) -> ProofSummary {
    let mut claims = vec![
        claim_about(
            Topic::EndToEnd,
            "airline-db: TLS is end to end: its callers meet its own certificate",
            "SHA-256 61...",
        ),
        claim_about(
            Topic::EndToEnd,
            "airline-db: TLS is end to end: it saw its callers' own certificates",
            "flights",
        ),
        claim_about(
            Topic::Acknowledged,
            "airline-db: every acknowledged booking is there, and none that was not sent",
            "431",
        ),
        claim_about(Topic::Doubled, "airline-db: no booking was made twice", "0"),
        claim("airline-db: one seat is taken for each booking, none was lost or doubled", "431"),
    ];
    claims.extend(PARTS.map(|(part, _)| {
        claim(&format!("{part}: the application got exactly the requests that were sent"), "2155")
    }));
    if case.name == "none" {
        claims.push(claim_about(Topic::Crossings, "no request crossed a sidecar", "0"));
    } else {
        claims.push(claim_about(
            Topic::Crossings,
            "every request crossed the sidecars on its way",
            "5200",
        ));
        let links = ["flights", "bookings", "customers"];
        claims.extend(links.map(|to| {
            claim(&format!("web to {to}: every connection between the sidecars is TLS"), "16 of 16")
        }));
        claims.extend(PARTS.map(|(part, _)| {
            claim(&format!("{part} sidecar, inbound: every request came over mTLS"), "700")
        }));
    }
    match case.name {
        "none" => {}
        "bypass" => claims.push(claim_about(
            Topic::Bypass,
            "airline-db: its bytes went past every sidecar",
            "0",
        )),
        _ => claims.extend(["flights", "bookings", "customers"].map(|part| {
            let said = "sidecar, outbound: enough bytes for every operation of airline-db";
            claim(&format!("{part} {said}"), "210000")
        })),
    }
    if case.name.starts_with("gateway") {
        let said = "airline-db: every open connection's source address is the egress gateway's";
        claims.push(claim_about(Topic::EgressAddress, said, "10.77.0.9 (48)"));
    }
    if case.mesh_us[1] > 100.0 {
        let said = "egress gateway: it refuses a client without an identity of the mesh";
        claims.push(claim_about(
            Topic::Identity,
            said,
            "connection closed without an answer, 1 counted",
        ));
    }
    if case.mesh_us[2] > 0.0 {
        let said = "SNI proxy: it took every connection of the egress gateway for airline-db";
        claims.push(claim_about(Topic::SniProxy, said, "48"));
    }
    let arms = if case.name == "bypass" { 64 } else { 32 };
    ProofSummary { variant: case.name.into(), arms, proven: arms, claims, spans: vec![] }
}
