//! A made-up run of a study like customer-360: gateway, three services and a database, bare and with sidecars,
//! discarded runs, published figures. No number in it was measured; those of the reference are the published
//! ones. For tests of this stage and of the report.

pub mod replicas;
pub mod staircase;

use std::collections::BTreeMap;

use toll_lab::{
    BuiltIn, Claim, Component, ComponentSample, DataPlane, Deployment, Direction, Egress,
    HostSample, MemorySample, Mtls, Planted, Postgres, Program, Proof, Reading, Role, Runtime,
    Sample, Service, SidecarProxy, Topic, Traversal,
};
use toll_load::{Histogram, LoadReport, PhaseReport, Steps};

use crate::plan::{
    Arm, Derived, Metric, Plan, PlannedExtent, PlannedLoad, PlannedRate, PlannedReference,
    PlannedRequest, PlannedSettle, PlannedSlice, PlannedVariant, PublishedFigure, Recomputed,
    Release, SliceLength, VariantState,
};
use crate::store::{
    ArmFile, ArmRecord, CapacityRecord, HostFacts, RoundRecord, RunRecord, SettleRecord,
    SettleSlice, SliceRecord,
};

const ROUNDS: usize = 5;
const CYCLES: usize = 2;
const SERVICES: [&str; 3] = ["customer", "person", "name"];
/// Requests of the measured part of a slice: in all of a tally enough for a p99, few enough to be quick.
const DONE: u64 = 500;
const GUARD: u64 = 50;
/// Requests that are sent to an arm in a round: in each cycle a slice there and one back, under two loads.
const SENT_IN_ROUND: u64 = (DONE + GUARD) * 2 * 2 * CYCLES as u64;

/// An arm in a round.
#[derive(Debug, Clone, Copy)]
pub struct Stood<'a> {
    /// From 1.
    pub round: usize,
    pub arm: &'a Arm,
    /// Which of the plan's sizes.
    pub size: usize,
}

/// So many rounds of a plan in its order: `arm` says how an arm came up, without slices, and `slice` what each showed.
pub fn rounds<'a>(
    plan: &'a Plan,
    count: usize,
    arm: impl Fn(&Stood<'a>) -> ArmRecord,
    slice: impl Fn(&Stood<'a>, &PlannedSlice) -> SliceRecord,
) -> Vec<RoundRecord> {
    let stood = |round| {
        let sizes = 0..plan.sizes().len();
        sizes.flat_map(move |size| plan.arms.iter().map(move |arm| Stood { round, arm, size }))
    };
    let record = |stood: Stood<'a>| {
        let planned = plan.slices(stood.round, stood.size);
        let own = planned.iter().filter(|planned| planned.arm == *stood.arm);
        ArmRecord { slices: own.map(|planned| slice(&stood, planned)).collect(), ..arm(&stood) }
    };
    let round =
        |number| RoundRecord { number, wall_s: 20.0, arms: stood(number).map(record).collect() };
    (1..=count).map(round).collect()
}

/// An arm that came up, without slices.
pub fn arm_record(of: &Stood<'_>, proof: Proof, file: ArmFile) -> ArmRecord {
    ArmRecord { arm: of.arm.clone(), size: of.size, file, proof: Some(proof), slices: vec![] }
}

/// What makes a plan of rounds, whatever it compares.
pub fn extent(rounds: usize) -> PlannedExtent {
    PlannedExtent { rounds: Some(rounds), for_s: None, width: None, least_rounds: 4 }
}

/// A discarded load of a second a slice.
pub const SETTLE: PlannedSettle =
    PlannedSettle { slice_s: 1.0, max_s: 20.0, connections: 50, rest_s: 0.0 };

/// Every variant once, and the baseline once more.
pub fn arms(variants: &[&str], baseline: &str) -> Vec<Arm> {
    let arm = |variant: &str, again| Arm { variant: variant.into(), again };
    let first = variants.iter().map(|variant| arm(variant, false));
    first.chain([arm(baseline, true)]).collect()
}

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
    let rounds = rounds(&plan, ROUNDS, arm, slice);
    let capacity =
        |variant: &str, per_s| CapacityRecord { variant: variant.into(), per_s, slices: vec![] };
    let facts = [
        ("kernel", "made up for tests"),
        ("cpu", "made up for tests, 2 cores"),
        ("started", "2026-11-23 14:02:33 UTC"),
    ];
    RunRecord {
        name: "made-up-for-tests-customer-360".into(),
        host: HostFacts {
            facts: facts.map(|(label, value)| (label.into(), value.into())).into(),
            cores: Some(2),
            ..HostFacts::default()
        },
        capacities: vec![capacity("bare", 1900.0), capacity("sidecar", 970.0)],
        plan,
        rounds,
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
        runtime: None,
        headline: vec![Metric::LatencyP50, Metric::CpuPerRequest],
        bound: 0.05,
        idle_s: 1.0,
        extent: extent(ROUNDS),
        cycles: CYCLES,
        guard_s: 0.1,
        guards_s: vec![],
        settle: SETTLE,
        side_by_side: true,
        load_pods: 1,
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
        arms: arms(&["bare", "sidecar"], "bare"),
        loads: loads(),
        traffic: None,
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
        observed_calls: vec![],
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
            planted: Planted::default(),
        })
    };
    let postgres = Program::Postgres(Postgres { seed: String::new(), written: None });
    let deployment = Deployment {
        nodes: 1,
        envoy: Box::default(),
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
        slice: SliceLength::Seconds(0.5),
        timeout_ms: 10_000,
        tolerated: 0.0,
    };
    let rate = PlannedRate::OfCapacity(0.575);
    vec![
        load("flat-out", Release::Closed { connections: 50 }),
        load("same-rate", Release::Open { rate, poisson: false, max_connections: 100 }),
    ]
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

fn is_meshed(of: &Stood<'_>) -> bool {
    of.arm.variant == "sidecar"
}

fn costs(of: &Stood<'_>) -> Costs {
    if is_meshed(of) { SIDECAR } else { BARE }
}

fn arm(of: &Stood<'_>) -> ArmRecord {
    let noise = Noisy { of, load: "" };
    let idle = [0.0, 1.0].map(|at_s| sample(&costs(of), at_s, 0.0, &noise));
    let settled = Some(settled(of));
    let file = ArmFile { settled, idle: Some(idle), ..ArmFile::default() };
    arm_record(of, proof(is_meshed(of)), file)
}

fn slice(of: &Stood<'_>, planned: &PlannedSlice) -> SliceRecord {
    let flat_out = planned.load == "flat-out";
    let noise = Noisy { of, load: &planned.load };
    let (rate_per_s, latency_us) = match (flat_out, is_meshed(of)) {
        (true, false) => (noise.around(1890.0, 0), noise.around(24_000.0, 1)),
        (true, true) => (noise.around(962.0, 0), noise.around(48_500.0, 1)),
        (false, false) => (558.0, noise.around(1_700.0, 1)),
        (false, true) => (558.0, noise.around(3_350.0, 1)),
    };
    SliceRecord {
        load: planned.load.clone(),
        cycle: planned.cycle,
        place: planned.place,
        rate_per_s: (!flat_out).then_some(558.0),
        users: None,
        report: load_report(rate_per_s, latency_us),
        samples: samples(&costs(of), rate_per_s, planned.place, &noise),
        invalid: vec![],
    }
}

/// Numbers that differ a little between the rounds, always in the same way.
struct Noisy<'a> {
    of: &'a Stood<'a>,
    load: &'a str,
}

impl Noisy<'_> {
    /// Within 2.5 % of `value`; `what` tells quantities of one slice apart.
    fn around(&self, value: f64, what: usize) -> f64 {
        let Stood { round, arm, .. } = self.of;
        let step = round * 37
            + arm.variant.len() * 13
            + usize::from(arm.again) * 7
            + self.load.len() * 5
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
        warm_up: PhaseReport { sent: GUARD, done: GUARD, ..PhaseReport::default() },
        sent_in_all_phases: DONE + GUARD,
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
    let requests = SENT_IN_ROUND;
    let claim = |topic, claim: &str, expected: String| Claim {
        topic,
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
            claim(Topic::Other, "ingress gateway: every request was counted", requests.to_string()),
            claim(Topic::Other, "customer: every request arrived", requests.to_string()),
            claim(Topic::Other, "person: every request arrived", requests.to_string()),
            claim(
                Topic::Other,
                "postgres: every request led to one statement",
                requests.to_string(),
            ),
            claim(Topic::Crossings, crossing, (crossed * requests).to_string()),
            claim(
                Topic::Acknowledged,
                "postgres: every acknowledged write is there, and nothing that was not sent",
                "0 rows".into(),
            ),
            claim(Topic::Doubled, "postgres: no row was written twice", "0 rows".into()),
        ],
        left_out: vec![],
        traversals: if meshed { ways() } else { vec![] },
        calls: vec![],
    }
}

/// Counters that start at an arbitrary height: only what they rise by may count.
fn samples(costs: &Costs, rate_per_s: f64, place: usize, noise: &Noisy<'_>) -> Vec<Sample> {
    let requests = (DONE + GUARD) as f64;
    let (begin_s, before) = (4.0 + 10.0 * place as f64, 600.0 + requests * place as f64);
    let at = |share: f64| {
        sample(costs, begin_s + share * requests / rate_per_s, before + share * requests, noise)
    };
    [0.0, 0.5, 1.0].map(at).into()
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

/// Throughput that rises and CPU that falls to their steady state; in one round they have not reached it.
fn settled(of: &Stood<'_>) -> SettleRecord {
    let unstable = is_meshed(of) && of.round == 3;
    let noise = Noisy { of, load: "" };
    let (rate, cpu) = if is_meshed(of) { (962.0, 1851.0) } else { (1890.0, 851.0) };
    let count = if unstable { 20 } else { 6 + of.round % 3 };
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

/// Changes every arm; `change` gets the number of its round.
pub fn each_arm(run: &mut RunRecord, mut change: impl FnMut(usize, &mut ArmRecord)) {
    for round in &mut run.rounds {
        round.arms.iter_mut().for_each(|of| change(round.number, of));
    }
}

/// Changes every slice; `change` gets the number of its round and its arm.
pub fn each_slice(run: &mut RunRecord, mut change: impl FnMut(usize, &Arm, &mut SliceRecord)) {
    each_arm(run, |round, of| {
        let ArmRecord { arm, slices, .. } = of;
        slices.iter_mut().for_each(|slice| change(round, arm, slice));
    });
}

/// Drops the slices that `dropped` picks, by round, arm and load.
pub fn without(mut run: RunRecord, dropped: impl Fn(usize, &Arm, &str) -> bool) -> RunRecord {
    each_arm(&mut run, |round, of| {
        let ArmRecord { arm, slices, .. } = of;
        slices.retain(|slice| !dropped(round, arm, &slice.load));
    });
    run
}

/// Drops the arms that `dropped` picks, by round.
pub fn without_arms(mut run: RunRecord, dropped: impl Fn(usize, &Arm) -> bool) -> RunRecord {
    for round in &mut run.rounds {
        let number = round.number;
        round.arms.retain(|of| !dropped(number, &of.arm));
    }
    run
}
