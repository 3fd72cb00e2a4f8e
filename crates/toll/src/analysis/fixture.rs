//! A made-up run of a study like customer-360: gateway, three services and a database, bare and with sidecars,
//! discarded runs, published figures. No number in it was measured; those of the reference are the published
//! ones. For tests of this stage and of the report.

pub mod replicas;
pub mod staircase;

use std::collections::BTreeMap;

use toll_lab::{
    BuiltIn, Claim, Component, ComponentSample, DataPlane, Deployment, Direction, Egress,
    HostSample, MemorySample, Mtls, Postgres, Program, Proof, Reading, Role, Runtime, Sample,
    Service, SidecarProxy, Traversal,
};
use toll_load::{Histogram, LoadReport, PhaseReport, Steps, Stop, WarmUp};

use crate::plan::{
    Arm, BringUp, Derived, Plan, PlannedLoad, PlannedRate, PlannedReference, PlannedRequest,
    PlannedSettle, PlannedTrial, PlannedVariant, PublishedFigure, Recomputed, Release,
    VariantState,
};
use crate::store::{
    HostFacts, KneeRecord, Mark, MarkedSample, Noise, RunRecord, SettleRecord, SettleSlice,
    TrialRecord, TrialVerdict,
};

const BLOCKS: usize = 5;
const SERVICES: [&str; 3] = ["customer", "person", "name"];
/// Requests of each measured phase: enough for a p99, few enough to be quick.
const DONE: u64 = 2000;
const WARM_UP: u64 = 150;

/// What one request costs in one variant, microseconds of CPU.
struct Costs {
    gateway: u64,
    services: [u64; 3],
    database: u64,
    /// Beside the services in their order, then beside the database.
    sidecars: Option<[u64; 4]>,
    unattributed: u64,
}

const BARE: Costs = Costs {
    gateway: 96,
    services: [160, 150, 190],
    database: 255,
    sidecars: None,
    unattributed: 60,
};
const SIDECAR: Costs = Costs {
    gateway: 114,
    services: [192, 178, 221],
    database: 272,
    sidecars: Some([262, 251, 243, 118]),
    unattributed: 104,
};

/// The run.
pub fn customer_360() -> RunRecord {
    let plan = plan();
    let trials = plan.trials.iter().map(trial).collect();
    let knee = |variant: &str, rate_per_s| KneeRecord {
        variant: variant.into(),
        rate_per_s,
        tried: vec![],
    };
    let facts = [("kernel", "made up for tests"), ("cpu", "made up for tests, 2 cores")];
    RunRecord {
        name: "made-up-for-tests-customer-360".into(),
        plan,
        host: HostFacts {
            facts: facts.map(|(label, value)| (label.into(), value.into())).into(),
            cores: Some(2),
            lacks: vec![],
            isolation: None,
            realtime: false,
            changes: vec![],
        },
        knees: vec![knee("bare", 1850.0), knee("sidecar", 930.0)],
        trials,
    }
}

fn plan() -> Plan {
    Plan {
        version: crate::plan::FORMAT,
        study: "customer-360".into(),
        question:
            "What do four sidecars cost a chain of three services and PostgreSQL, driven flat out?"
                .into(),
        baseline: "bare".into(),
        seed: 1,
        profile: "default".into(),
        bound: 0.05,
        idle_s: 1.0,
        blocks: BLOCKS,
        bring_up: BringUp::Block,
        runtime: None,
        settle: Some(PlannedSettle {
            slice_s: 1.0,
            max_s: 20.0,
            connections: 50,
            rest_s: 0.0,
            rehearse: false,
        }),
        variants: vec![
            variant("bare", "ingress gateway only, no sidecars", DataPlane::Bare),
            variant(
                "sidecar",
                "Envoy beside customer, person, name and postgres, mTLS permissive",
                DataPlane::Sidecar {
                    egress: Egress::Sidecar,
                    proxy: SidecarProxy::Envoy,
                    mtls: Mtls::Permissive,
                },
            ),
        ],
        loads: loads(),
        trials: planned_trials(),
        reference: Some(reference()),
        warnings: vec![],
    }
}

fn variant(name: &str, describes: &str, data_plane: DataPlane) -> PlannedVariant {
    let service = |name: &str, group: &str, port, program, calls: &[&str]| Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: group.into(),
        replicas: 1,
        port,
        program,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        metrics: None,
    };
    let built_in = || {
        Program::BuiltIn(BuiltIn {
            runtime: Runtime::Native,
            work: std::time::Duration::from_micros(100),
            reply_bytes: 0,
            status: 200,
            relay: true,
            queries: None,
            stall: None,
        })
    };
    let postgres = Program::Postgres(Postgres { seed: String::new(), written: None });
    let deployment = Deployment {
        nodes: 1,
        name: name.into(),
        entry: "ingress".into(),
        services: vec![
            service("ingress", "ingress", 8080, Program::Gateway, &["customer"]),
            service("customer", "demo", 8081, built_in(), &["person"]),
            service("person", "demo", 8082, built_in(), &["name"]),
            service("name", "demo", 8083, built_in(), &["postgres"]),
            service("postgres", "database", 5432, postgres, &[]),
        ],
        data_plane,
    };
    PlannedVariant {
        name: name.into(),
        describes: describes.into(),
        state: VariantState::Ready(deployment),
    }
}

fn loads() -> Vec<PlannedLoad> {
    let load = |name: &str, release| PlannedLoad {
        mix: vec![],
        cell: None,
        name: name.into(),
        request: PlannedRequest { path: "/api/customer".into(), ..PlannedRequest::default() },
        spans: BTreeMap::new(),
        release,
        stop: Stop::AfterSeconds(10.0),
        warm_up: WarmUp { min_s: 1.0, max_s: 5.0 },
    };
    let rate = PlannedRate::OfKnee(0.6);
    vec![
        load("flat-out", Release::Closed { connections: 50 }),
        load("same-rate", Release::Open { rate, poisson: false, max_connections: 100 }),
    ]
}

fn planned_trials() -> Vec<PlannedTrial> {
    let arms = [("bare", false), ("sidecar", false), ("bare", true)];
    let mut trials = Vec::new();
    for block in 1..=BLOCKS {
        for (variant, again) in arms {
            for load in ["flat-out", "same-rate"] {
                trials.push(PlannedTrial {
                    index: trials.len() + 1,
                    block,
                    arm: Arm { variant: variant.into(), again },
                    load: load.into(),
                });
            }
        }
    }
    trials
}

/// The published figures and what STUDIES says of them.
fn reference() -> PlannedReference {
    const FIGURES: [(&str, f64, f64); 13] = [
        ("throughput_per_s", 7448.3475, 4187.5014),
        ("latency_ms.mean", 6.3, 10.5),
        ("latency_ms.p50", 6.4, 10.8),
        ("latency_ms.p95", 8.2, 15.2),
        ("latency_ms.p99", 9.3, 17.4),
        ("cpu_millicores.customer", 3011.0, 3579.0),
        ("cpu_millicores.person", 2848.0, 3178.0),
        ("cpu_millicores.name", 3087.0, 3362.0),
        ("cpu_millicores.postgres", 751.0, 1030.0),
        ("memory_mib.customer", 3081.0, 3108.0),
        ("memory_mib.person", 3064.0, 3107.0),
        ("memory_mib.name", 3066.0, 3112.0),
        ("memory_mib.postgres", 55.0, 95.0),
    ];
    let figure = |variant: &str, name: &str, value| PublishedFigure {
        variant: variant.into(),
        load: "flat-out".into(),
        figure: name.into(),
        value,
    };
    PlannedReference {
        source: "Demo 1, degraded performance with naive performance testing".into(),
        notes: vec!["One node for each pod there, one machine for all here.".into()],
        figures: FIGURES
            .iter()
            .flat_map(|(name, bare, sidecar)| {
                [figure("bare", name, *bare), figure("sidecar", name, *sidecar)]
            })
            .collect(),
        recomputed: recomputed(),
    }
}

/// What follows from the published figures, as printed and as it should be.
fn recomputed() -> Vec<Recomputed> {
    let row = |variant: &str, derived, printed, recomputed, because: &str| Recomputed {
        variant: variant.into(),
        load: "flat-out".into(),
        derived,
        pod: None,
        printed,
        recomputed: Some(recomputed),
        against: None,
        because: because.into(),
    };
    vec![
        row("sidecar", Derived::ThroughputChange, Some(-44.0), -43.8, "It follows as printed."),
        row(
            "sidecar",
            Derived::LatencyP95Change,
            Some(90.0),
            85.4,
            "8.2 and 15.2 ms make 85.4 %, not 90.",
        ),
        row("sidecar", Derived::CpuChange, Some(15.0), 15.0, "It holds, but at 44 % less traffic."),
        row(
            "bare",
            Derived::CpuPerRequest,
            None,
            1.302,
            "The source does not divide the CPU of the four pods by their throughput.",
        ),
        row(
            "sidecar",
            Derived::CpuPerRequestChange,
            None,
            104.5,
            "For each request the CPU more than doubles: the printed +15 % is at 44 % less traffic.",
        ),
        row(
            "bare",
            Derived::MemoryTotal,
            Some(9248.0),
            9266.0,
            "The four pods add up to 9266 MiB, not 9248.",
        ),
        row("sidecar", Derived::MemoryChange, Some(2.0), 1.7, "From the right sum it is +156 MiB."),
        row(
            "bare",
            Derived::UnderWay,
            Some(50.0),
            46.9,
            "Throughput times mean latency leaves 6 % of the 50 workers' time outside of the measured latency.",
        ),
    ]
}

fn trial(planned: &PlannedTrial) -> TrialRecord {
    let meshed = planned.arm.variant == "sidecar";
    let costs = if meshed { SIDECAR } else { BARE };
    let flat_out = planned.load == "flat-out";
    let noise = Noisy { planned };
    let (rate_per_s, latency_us) = match (flat_out, meshed) {
        (true, false) => (noise.around(1890.0, 0), noise.around(24_000.0, 1)),
        (true, true) => (noise.around(962.0, 0), noise.around(48_500.0, 1)),
        (false, false) => (558.0, noise.around(1_700.0, 1)),
        (false, true) => (558.0, noise.around(3_350.0, 1)),
    };
    TrialRecord {
        trial: planned.clone(),
        verdict: TrialVerdict {
            version: crate::store::TRIAL_FORMAT,
            invalid: vec![],
            rate_per_s: (!flat_out).then_some(558.0),
            users: None,
            started_anew: None,
            noise: Noise { calibration_ns: 1_000_000, steal: 0.0, runnable: 2.0 },
        },
        load: Some(load_report(rate_per_s, latency_us)),
        proof: Some(proof(meshed)),
        samples: samples(&costs, rate_per_s, &noise),
        settled: flat_out.then(|| settled(planned, meshed)),
    }
}

/// Numbers that differ a little between the blocks, always in the same way.
struct Noisy<'a> {
    planned: &'a PlannedTrial,
}

impl Noisy<'_> {
    /// Within 2.5 % of `value`; `what` tells quantities of one trial apart.
    fn around(&self, value: f64, what: usize) -> f64 {
        let PlannedTrial { block, arm, load, .. } = self.planned;
        let step = block * 37
            + arm.variant.len() * 13
            + usize::from(arm.again) * 7
            + load.len() * 5
            + what * 29;
        value * (0.975 + 0.005 * (step % 11) as f64)
    }
}

fn load_report(rate_per_s: f64, latency_us: f64) -> LoadReport {
    let seconds = DONE as f64 / rate_per_s;
    let latency = spread(latency_us, DONE);
    let mut connect = Histogram::new();
    connect.record_n_ns(180_000, 50);
    let measure = PhaseReport {
        begin_ns: 0,
        end_ns: (seconds * 1e9) as u64,
        scheduled: DONE,
        sent: DONE,
        done: DONE,
        completed: DONE,
        connections_used: 50,
        statuses: BTreeMap::from([(200, DONE)]),
        body_bytes_in: DONE * 412,
        service_time: latency.clone(),
        steps: Steps {
            connect,
            tls: Histogram::new(),
            write: spread(9.0, DONE / 16),
            wait: spread(latency_us * 0.99, DONE),
            read: spread(14.0, DONE),
        },
        latency,
        ..PhaseReport::default()
    };
    LoadReport {
        version: 2,
        warm_up_stable: true,
        sent_in_all_phases: DONE + WARM_UP,
        measure,
        connections_opened: 50,
        ..LoadReport::default()
    }
}

/// Values around `middle_us` with the long tail of latencies.
fn spread(middle_us: f64, count: u64) -> Histogram {
    let mut histogram = Histogram::new();
    for i in 0..count {
        let quantile = (i as f64 + 0.5) / count as f64;
        let us = middle_us * (0.62 + 0.7 * quantile + 0.018 / (1.008 - quantile));
        histogram.record_ns((us * 1e3) as u64);
    }
    histogram
}

fn proof(meshed: bool) -> Proof {
    let requests = DONE + WARM_UP;
    let claim = |claim: &str, expected: String| Claim {
        claim: claim.into(),
        seen: expected.clone(),
        expected,
        holds: true,
    };
    let (crossed, crossing) = if meshed {
        (7, "every request crossed 7 sidecars")
    } else {
        (0, "no request crossed a sidecar")
    };
    let way = |pod: &str, direction, callee: Option<&str>| Traversal {
        pod: pod.into(),
        direction,
        callee: callee.map(Into::into),
        counted: requests,
    };
    let ways = || {
        let callees = ["person", "name", "postgres"];
        let both = SERVICES.iter().zip(callees).flat_map(|(pod, callee)| {
            [way(pod, Direction::Inbound, None), way(pod, Direction::Outbound, Some(callee))]
        });
        both.chain([way("postgres", Direction::Inbound, None)]).collect()
    };
    Proof {
        spans: None,
        claims: vec![
            claim("ingress gateway: every request was counted", requests.to_string()),
            claim("customer: every request arrived", requests.to_string()),
            claim("person: every request arrived", requests.to_string()),
            claim("postgres: every request led to one statement", requests.to_string()),
            claim(crossing, (crossed * requests).to_string()),
            claim(
                "postgres: every acknowledged write is there, and nothing that was not sent",
                "0 rows".into(),
            ),
            claim("postgres: no row was written twice", "0 rows".into()),
        ],
        left_out: vec![],
        traversals: if meshed { ways() } else { vec![] },
    }
}

/// Counters that start at an arbitrary height: only what they rise by may count.
fn samples(costs: &Costs, rate_per_s: f64, noise: &Noisy<'_>) -> Vec<MarkedSample> {
    let seconds = DONE as f64 / rate_per_s;
    let at = |mark, at_s: f64, requests: f64| MarkedSample {
        mark,
        sample: sample(costs, at_s, requests, noise),
    };
    let ticks = (1..8).map(|tick| f64::from(tick) / 8.0);
    let measured = |share: f64| (4.0 + seconds * share, 600.0 + DONE as f64 * share);
    let mut samples = vec![at(Mark::IdleBegin, 0.0, 0.0), at(Mark::IdleEnd, 1.0, 0.0)];
    samples.push(at(Mark::MeasureBegin, 4.0, 600.0));
    samples.extend(ticks.map(|share| at(Mark::Tick, measured(share).0, measured(share).1)));
    samples.push(at(Mark::MeasureEnd, measured(1.0).0, measured(1.0).1));
    samples
}

fn sample(costs: &Costs, at_s: f64, requests: f64, noise: &Noisy<'_>) -> Sample {
    let cpu_ns =
        |us: u64, what| (noise.around(us as f64, what) * requests * 1e3 + at_s * 2e5) as u64;
    let mut components = vec![component(Role::Gateway, "ingress", cpu_ns(costs.gateway, 2), 38.0)];
    for (i, pod) in SERVICES.iter().enumerate() {
        components.push(component(Role::Application, pod, cpu_ns(costs.services[i], 3 + i), 9.0));
        if let Some(sidecars) = costs.sidecars {
            components.push(component(Role::Sidecar, pod, cpu_ns(sidecars[i], 6 + i), 41.0));
        }
    }
    components.push(component(Role::Database, "postgres", cpu_ns(costs.database, 10), 62.0));
    if let Some(sidecars) = costs.sidecars {
        components.push(component(Role::Sidecar, "postgres", cpu_ns(sidecars[3], 11), 39.0));
    }
    components.push(component(Role::LoadGenerator, "load", cpu_ns(72, 12), 14.0));
    components.push(component(Role::Harness, "toll", cpu_ns(2, 13), 11.0));
    let owned: u64 = components.iter().filter_map(|c| value(&c.cpu_ns)).sum();
    let busy_ns = owned + cpu_ns(costs.unattributed, 14);
    let host = HostSample { busy_ns, steal_ns: 0, runnable: 2 };
    Sample { at_ns: (at_s * 1e9) as u64, took_ns: 1, components, host, metrics: vec![] }
}

fn value(reading: &Reading<u64>) -> Option<u64> {
    match reading {
        Reading::Value(value) => Some(*value),
        Reading::Missing(_) => None,
    }
}

fn component(role: Role, pod: &str, cpu_ns: u64, mib: f64) -> ComponentSample {
    let bytes = (mib * 1024.0 * 1024.0) as u64;
    let memory = MemorySample {
        current: Reading::Value(bytes),
        anonymous: Reading::Value(bytes * 3 / 4),
        peak: Reading::Value(bytes * 5 / 4),
    };
    ComponentSample {
        component: Component { role, pod: pod.into() },
        cpu_ns: Reading::Value(cpu_ns),
        memory,
    }
}

/// Throughput that rises and CPU that falls to their steady state; in one block they have not reached it.
fn settled(planned: &PlannedTrial, meshed: bool) -> SettleRecord {
    let unstable = meshed && planned.block == 3;
    let noise = Noisy { planned };
    let (rate, cpu) = if meshed { (962.0, 1851.0) } else { (1890.0, 851.0) };
    let count = if unstable { 20 } else { 6 + planned.block % 3 };
    let slice = |i: usize| {
        let cold = 0.45 / i as f64 + if unstable && i.is_multiple_of(4) { 0.12 } else { 0.0 };
        SettleSlice {
            at_s: i as f64,
            throughput_per_s: noise.around(rate, 20 + i) * (1.0 - cold),
            cpu_per_request_us: Some(noise.around(cpu, 40 + i) * (1.0 + cold)),
            p50_us: noise.around(24_000.0, 60 + i),
        }
    };
    SettleRecord { slices: (1..=count).map(slice).collect(), stable: !unstable, rest_s: 0.0 }
}
