//! Findings of a made-up sweep: a gateway and nginx with 1 to 90 pods, bare, with sidecars, with a node proxy.
//!
//! A request costs 100 us in the gateway, 20 in nginx, 90 in sidecars or 60 in the node proxy, whatever the pods.

use std::collections::BTreeMap;

use toll_lab::{
    Ambient, Component, ComponentSample, DataPlane, Direction, Egress, HostSample, MemorySample,
    Mtls, Nginx, NodeProxy, Program, Proof, Reading, Role, Sample, Service, SidecarProxy,
    Traversal,
};
use toll_load::{Histogram, PhaseReport};

use super::super::findings::{
    AttributedCost, Caveat, Derived, Effect, Findings, LoadFindings, LoadNames, Metric, Owner,
    Payer, Pods, ResourceGroup, ResourceUse, Spread, VariantLoad, Verdict,
};
use super::super::fixture::{Stood, arm_record, arms, each_slice, rounds, without};
use super::{BARE, ROUNDS, called, mix_after, open, picked, run};
use crate::plan::{
    Arm, Cell, PlannedLoad, PlannedRate, PlannedReference, PlannedSlice, PlannedVariant,
    PublishedFigure, Recomputed, Release, VariantState,
};
use crate::store::{ArmFile, RunRecord, SliceRecord};

const MIB: u64 = 1024 * 1024;
/// Of a slice; there are two in each round.
const SECONDS: f64 = 3.0;
const EACH_S: f64 = 0.25;
const SLICES: u64 = 2;

/// A load at this rate on so many pods.
type Size = (&'static str, usize, f64);
const SMALL: Size = ("get-20x1", 1, 20.0);
const LARGE: Size = ("get-20x90", 90, 20.0);

/// Latency and service time of every request of a slice, microseconds: by arm, round, load and request.
type Shown = fn(&Arm, round: usize, load: &str, request: usize) -> u64;

fn steady(_: &Arm, _: usize, _: &str, _: usize) -> u64 {
    1000
}

fn swept(sizes: &[Size], shown: Shown) -> RunRecord {
    let mut record = run(open(), |_, _| BARE);
    let ambient = Ambient { proxy: NodeProxy::Envoy, mtls: Mtls::Strict, waypoint: true };
    record.plan.variants = vec![
        variant(&record, "bare", DataPlane::Bare),
        variant(
            &record,
            "sidecar",
            DataPlane::Sidecar {
                egress: Egress::Sidecar,
                proxy: SidecarProxy::Envoy,
                mtls: Mtls::Strict,
            },
        ),
        variant(&record, "ambient", DataPlane::Ambient(ambient)),
    ];
    record.plan.arms = arms(&["bare", "sidecar", "ambient"], "bare");
    record.plan.loads = sizes.iter().map(|size| load(&record.plan.loads[0], size)).collect();
    record.plan.cycles = 1;
    let arm = |of: &Stood<'_>| {
        let loads = &record.plan.sizes()[of.size];
        let on_size = loads.iter().map(|load| size_of(sizes, &load.name));
        let requests = on_size.clone().map(|size| requests(size) * SLICES).sum();
        let pods = on_size.map(|size| size.1).max().unwrap_or(1);
        arm_record(of, proof(&of.arm.variant, pods, requests), ArmFile::default())
    };
    let slice = |of: &Stood<'_>, planned: &PlannedSlice| {
        slice(of, planned, size_of(sizes, &planned.load), shown)
    };
    record.rounds = rounds(&record.plan, ROUNDS, arm, slice);
    record
}

fn size_of<'a>(sizes: &'a [Size], load: &str) -> &'a Size {
    sizes.iter().find(|size| size.0 == load).expect("the load is one of them")
}

fn requests(size: &Size) -> u64 {
    (size.2 * SECONDS) as u64
}

fn variant(record: &RunRecord, name: &str, data_plane: DataPlane) -> PlannedVariant {
    let mut variant = record.plan.variants[0].clone();
    let VariantState::Ready(deployment) = &mut variant.state else { panic!("it is ready") };
    let service = |name: &str, group: &str, program, calls: &[&str]| Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: group.into(),
        replicas: 1,
        port: 80,
        program,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        observed_calls: vec![],
        metrics: None,
    };
    deployment.services = vec![
        service("gateway", "edge", Program::Gateway, &["nginx"]),
        service("nginx", "web", Program::Nginx(Nginx { bytes: 615 }), &[]),
    ];
    deployment.data_plane = data_plane;
    PlannedVariant { name: name.into(), ..variant }
}

fn load(template: &PlannedLoad, (name, pods, rate): &Size) -> PlannedLoad {
    let cell = Cell {
        connections: None,
        load: "get".into(),
        share: None,
        rate_per_s: Some(*rate),
        replicas: Some(("nginx".into(), *pods)),
        nodes: None,
    };
    let rate = PlannedRate::PerSecond(*rate);
    let release = Release::Open { rate, poisson: false, max_connections: 10 };
    PlannedLoad { name: (*name).into(), cell: Some(cell), release, ..template.clone() }
}

fn slice(of: &Stood<'_>, planned: &PlannedSlice, size: &Size, shown: Shown) -> SliceRecord {
    let done = requests(size);
    let mut report = super::load_report(BARE);
    (report.warm_up, report.sent_in_all_phases) = (PhaseReport::default(), done);
    let measure = &mut report.measure;
    (measure.sent, measure.done, measure.completed) = (done, done, done);
    measure.statuses = BTreeMap::from([(200, done)]);
    measure.body_bytes_in = 615 * done;
    (measure.begin_ns, measure.end_ns) = (0, (SECONDS * 1e9) as u64);
    let mut latency = Histogram::new();
    for request in 0..done as usize {
        latency.record_ns(shown(of.arm, of.round, &planned.load, request) * 1000);
    }
    (measure.service_time, measure.latency) = (latency.clone(), latency);
    SliceRecord {
        load: planned.load.clone(),
        cycle: planned.cycle,
        place: planned.place,
        rate_per_s: Some(size.2),
        users: None,
        report,
        samples: samples(&of.arm.variant, size),
        invalid: vec![],
    }
}

fn nginx(pods: usize) -> Vec<String> {
    if pods == 1 {
        return vec!["nginx".into()];
    }
    (1..=pods).map(|number| format!("nginx-{number}")).collect()
}

/// Each request crosses the sidecar of one pod.
fn proof(variant: &str, pods: usize, requests: u64) -> Proof {
    let way = |(place, pod): (usize, String)| Traversal {
        pod,
        direction: Direction::Inbound,
        callee: None,
        counted: if place == 0 { requests } else { 0 },
    };
    let sidecars = if variant == "sidecar" { nginx(pods) } else { vec![] };
    let traversals = sidecars.into_iter().enumerate().map(way).collect();
    Proof { claims: vec![], left_out: vec![], traversals, calls: vec![], spans: None }
}

/// From the begin of a slice to its end, four a second.
fn samples(variant: &str, size: &Size) -> Vec<Sample> {
    let last = (SECONDS / EACH_S) as usize;
    (0..=last).map(|tick| sample(variant, size, tick as f64 * EACH_S)).collect()
}

fn sample(variant: &str, (_, pods, rate): &Size, at_s: f64) -> Sample {
    let used = |us: f64| (us * 1e3 * rate * at_s) as u64;
    let each = 1.0 / *pods as f64;
    let mut components = vec![component(Role::Gateway, "gateway", used(100.0), 40)];
    for pod in nginx(*pods) {
        components.push(component(Role::Application, &pod, used(20.0 * each), 5));
        if variant == "sidecar" {
            components.push(component(Role::Sidecar, &pod, used(90.0 * each), 30));
        }
    }
    if variant == "ambient" {
        components.push(component(Role::NodeProxy, "node-1", used(60.0), 25));
        components.push(component(Role::Waypoint, "waypoint", used(50.0), 35));
    }
    components.push(component(Role::Collector, "collector", used(1.0), 1));
    components.push(component(Role::LoadGenerator, "load", used(30.0), 10));
    let owned = components.iter().map(|c| match c.cpu_ns {
        Reading::Value(ns) => ns,
        Reading::Missing(_) => 0,
    });
    let host = HostSample { busy_ns: owned.sum::<u64>() + used(50.0), steal_ns: 0, runnable: 1 };
    Sample { at_ns: (at_s * 1e9) as u64, took_ns: 1, components, host, metrics: vec![] }
}

fn component(role: Role, pod: &str, cpu_ns: u64, mib: u64) -> ComponentSample {
    let memory = MemorySample {
        current: Reading::Value(mib * MIB * 2),
        anonymous: Reading::Value(mib * MIB),
        peak: Reading::Value(mib * MIB * 3),
    };
    let component = Component { role, pod: pod.into() };
    ComponentSample { component, cpu_ns: Reading::Value(cpu_ns), memory }
}

fn found(record: &RunRecord) -> Findings {
    super::super::findings(record)
}

fn cell<'a>(findings: &'a Findings, size: &Size) -> &'a LoadFindings {
    findings.loads.iter().find(|load| load.name == size.0).unwrap()
}

fn of<'a>(load: &'a LoadFindings, variant: &str) -> &'a VariantLoad {
    load.variants.iter().find(|of| of.variant == variant).unwrap()
}

fn used<'a>(load: &'a LoadFindings, group: ResourceGroup, variant: &str) -> &'a ResourceUse {
    let row = load.resources.iter().find(|row| row.group == group).unwrap();
    row.uses.iter().find(|of| of.variant == variant).unwrap()
}

fn memory(load: &LoadFindings, group: ResourceGroup, variant: &str) -> Spread {
    used(load, group, variant).memory_mib.unwrap()
}

fn cpu(load: &LoadFindings, group: ResourceGroup, variant: &str) -> Spread {
    used(load, group, variant).cpu_millicores.unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-3 * b.abs().max(1e-9)
}

fn change_all(record: &mut RunRecord, mut change: impl FnMut(&mut SliceRecord)) {
    each_slice(record, |_, _, slice| change(slice));
}

mod owners {
    use super::*;

    fn parts<'a>(load: &'a LoadFindings, variant: &str) -> &'a [AttributedCost] {
        &load.attribution.iter().find(|of| of.variant == variant).unwrap().parts
    }

    fn names(parts: &[AttributedCost]) -> String {
        let name = |part: &AttributedCost| match &part.payer {
            Payer::Owner(owner) => called(owner),
            other => panic!("{other:?}"),
        };
        parts.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_pods_of_a_service_with_many_are_one_owner_and_so_are_their_sidecars() {
        let found = found(&swept(&[LARGE], steady));
        let sidecar = of(cell(&found, &LARGE), "sidecar");
        let costs: Vec<(String, f64)> =
            sidecar.cpu_per_request.iter().map(|c| (called(&c.owner), c.cost.value)).collect();
        let [gateway, pods, sidecars, ..] = costs.as_slice() else { panic!("{costs:?}") };
        assert_eq!(
            (gateway.0.as_str(), pods.0.as_str()),
            ("Gateway gateway", "Application nginx (90)")
        );
        assert_eq!(sidecars.0, "Sidecar nginx (90)");
        assert!(near(pods.1, 20.0) && near(sidecars.1, 90.0), "{costs:?}");
        assert_eq!(costs.len(), 6, "{costs:?}");
        let memory: Vec<(String, f64)> =
            sidecar.memory.iter().map(|m| (called(&m.owner), m.points[0].1)).collect();
        let of_sidecars = ("Sidecar nginx (90)".to_owned(), (90 * 30 * MIB) as f64);
        assert!(memory.contains(&of_sidecars), "{memory:?}");
    }

    #[test]
    fn four_pods_are_four_owners() {
        let size = ("get-20x4", 4, 20.0);
        let found = found(&swept(&[size], steady));
        let parts = parts(cell(&found, &size), "sidecar");
        let names = names(parts);
        assert!(
            names.contains("Application nginx-4") && names.contains("Sidecar nginx-4"),
            "{names}"
        );
    }

    #[test]
    fn proxies_of_nodes_and_the_waypoint_pay_behind_the_sidecars() {
        let found = found(&swept(&[LARGE], steady));
        let load = cell(&found, &LARGE);
        let expected = "Gateway gateway, Application nginx (90), NodeProxy node-1, Waypoint waypoint, Collector collector, LoadGenerator load, Unattributed";
        assert_eq!(names(parts(load, "ambient")), expected);
        let cost = |variant: &str| {
            let metrics = &of(load, variant).metrics;
            metrics.iter().find(|(m, _)| *m == Metric::CpuPerRequest).unwrap().1.value
        };
        assert!(near(cost("ambient"), 230.0) && near(cost("sidecar"), 210.0));
        assert!(
            parts(load, "ambient")
                .iter()
                .all(|part| { part.share.is_none() == part.payer.role().unwrap().is_instrument() })
        );
    }

    #[test]
    fn many_pods_are_one_row_of_their_group_in_the_view_of_pods() {
        let found = found(&swept(&[LARGE], steady));
        let rows = &cell(&found, &LARGE).top_pods;
        let name = |of: &Option<Owner>| of.as_ref().map_or_else(|| "TOTAL".into(), called);
        let names: Vec<(String, &str)> =
            rows.iter().map(|row| (name(&row.owner), row.group.as_str())).collect();
        let expected = [
            ("Application nginx (90)", "web"),
            ("NodeProxy node-1", ""),
            ("Waypoint waypoint", ""),
            ("TOTAL", ""),
            ("Gateway gateway", "edge"),
        ];
        assert_eq!(names, expected.map(|(name, group)| (name.to_owned(), group)));
        let charged = rows[0].uses[1].memory_mib.unwrap().mean.value;
        assert!(near(charged, 90.0 * 2.0 * 35.0), "{charged}");
    }

    #[test]
    fn what_crossed_any_of_many_sidecars_crossed_their_owner() {
        let found = found(&swept(&[LARGE], steady));
        let costs = of(cell(&found, &LARGE), "sidecar").traversals.as_ref().unwrap();
        let [sidecars] = costs.sidecars.as_slice() else { panic!("{:?}", costs.sidecars) };
        assert_eq!(sidecars.pods, Some(Pods { name: "nginx".into(), count: Some(90) }));
        assert!(near(sidecars.traversals.value, 1.0) && near(sidecars.cpu_us.value, 90.0));
    }

    #[test]
    fn one_counter_of_many_that_is_missing_makes_the_sum_unknown() {
        let mut record = swept(&[LARGE], steady);
        each_slice(&mut record, |round, arm, slice| {
            if round == 1 && arm.variant == "sidecar" {
                let end = &mut slice.samples.last_mut().unwrap().components;
                end.iter_mut().find(|c| c.component.pod == "nginx-17").unwrap().cpu_ns =
                    Reading::Missing("made up".into());
            }
        });
        let found = found(&record);
        let owner = |name: &str| {
            let costs = &of(cell(&found, &LARGE), "sidecar").cpu_per_request;
            costs.iter().find(|c| called(&c.owner) == name).unwrap().cost.rounds
        };
        let rounds = (owner("Application nginx (90)"), owner("Sidecar nginx (90)"));
        assert_eq!(rounds, (ROUNDS - 1, ROUNDS));
        let reasons = picked(&found, |caveat| match caveat {
            Caveat::MissingReadings { reasons } => Some(reasons.as_slice()),
            _ => None,
        });
        let [[(owner, why, slices)]] = reasons[..] else { panic!("{reasons:?}") };
        let told = (called(owner), why.as_str(), *slices);
        assert_eq!(told, ("Application nginx-17".into(), "made up", 2));
    }
}

mod resources {
    use super::*;

    #[test]
    fn groups_add_up_to_the_total_over_exactly_the_window() {
        let found = found(&swept(&[LARGE], steady));
        let load = cell(&found, &LARGE);
        let groups: Vec<ResourceGroup> = load.resources.iter().map(|row| row.group).collect();
        assert_eq!(
            groups,
            [
                ResourceGroup::Gateway,
                ResourceGroup::Application,
                ResourceGroup::NodeProxies,
                ResourceGroup::Control,
                ResourceGroup::Total,
                ResourceGroup::ColumnSums,
            ]
        );
        // 20 requests a second at 20 + 90, 60 + 50 and 100 us.
        for (group, variant, millicores, mib) in [
            (ResourceGroup::Gateway, "sidecar", 2.0, 40.0),
            (ResourceGroup::Application, "sidecar", 2.2, 90.0 * 35.0),
            (ResourceGroup::Application, "bare", 0.4, 450.0),
            (ResourceGroup::NodeProxies, "ambient", 2.2, 60.0),
            (ResourceGroup::Total, "ambient", 4.6, 450.0 + 100.0),
            (ResourceGroup::ColumnSums, "ambient", 4.6, 450.0 + 100.0),
        ] {
            let (cpu, memory) = (cpu(load, group, variant), memory(load, group, variant));
            assert!(near(cpu.mean.value, millicores), "{group:?} {variant} {cpu:?}");
            assert!(near(memory.mean.value, mib), "{group:?} {variant} {memory:?}");
        }
    }

    #[test]
    fn a_group_that_a_variant_lacks_has_no_use_and_no_variant_has_a_control_plane() {
        let found = found(&swept(&[SMALL], steady));
        let load = cell(&found, &SMALL);
        for (group, variant) in [
            (ResourceGroup::NodeProxies, "sidecar"),
            (ResourceGroup::NodeProxies, "bare"),
            (ResourceGroup::Control, "ambient"),
        ] {
            let used = used(load, group, variant);
            assert_eq!((used.cpu_millicores, used.memory_mib), (None, None));
        }
    }

    #[test]
    fn column_sums_add_up_what_was_never_there_at_one_instant() {
        let mut record = swept(&[SMALL], steady);
        change_all(&mut record, |slice| {
            for (tick, sample) in slice.samples.iter_mut().enumerate() {
                for of in &mut sample.components {
                    let mib = match (of.component.role, tick % 2) {
                        (Role::Gateway, 0) | (Role::Application, 1) => 10,
                        (Role::Gateway, 1) | (Role::Application, 0) => 30,
                        _ => continue,
                    };
                    of.memory.anonymous = Reading::Value(mib * MIB);
                }
            }
        });
        let found = found(&record);
        let load = cell(&found, &SMALL);
        let total = memory(load, ResourceGroup::Total, "bare");
        let sums = memory(load, ResourceGroup::ColumnSums, "bare");
        assert_eq!((total.min, total.max), (40.0, 40.0));
        assert_eq!((sums.min, sums.max), (20.0, 60.0));
        assert_eq!(total.mean, sums.mean);
    }

    /// All of the CPU time of a slice of three seconds in its first one.
    fn early(slice: &mut SliceRecord) {
        let end = slice.samples.last().unwrap().components.clone();
        for sample in &mut slice.samples {
            let first_s = sample.at_ns.min(1_000_000_000) as f64 / 1e9;
            for (of, end) in sample.components.iter_mut().zip(&end) {
                let Reading::Value(all) = end.cpu_ns else { panic!("it was read") };
                of.cpu_ns = Reading::Value((all as f64 * first_s) as u64);
            }
        }
    }

    #[test]
    fn cpu_is_read_over_a_second_at_the_least_and_its_mean_over_whole_slices() {
        let mut record = swept(&[SMALL], steady);
        change_all(&mut record, early);
        let gateway = cpu(cell(&found(&record), &SMALL), ResourceGroup::Gateway, "bare");
        assert!(near(gateway.mean.value, 2.0), "{gateway:?}");
        assert!(near(gateway.max, 6.0) && gateway.min == 0.0, "{gateway:?}");
    }

    #[test]
    fn a_slice_shorter_than_two_readings_is_one() {
        let mut record = swept(&[SMALL], steady);
        change_all(&mut record, |slice| {
            early(slice);
            slice.samples.truncate(6);
        });
        let gateway = cpu(cell(&found(&record), &SMALL), ResourceGroup::Gateway, "bare");
        // 6 ms of CPU time in 1.25 s.
        assert!(near(gateway.mean.value, 4.8), "{gateway:?}");
        assert_eq!((gateway.min, gateway.max), (gateway.mean.value, gateway.mean.value));
    }

    #[test]
    fn published_totals_of_all_groups_have_measured_ones_beside_them() {
        let mut record = swept(&[LARGE], steady);
        let figure = |figure: &str, value| PublishedFigure {
            variant: "ambient".into(),
            load: LARGE.0.into(),
            figure: figure.into(),
            value,
        };
        let ratio = |derived| Recomputed {
            variant: "ambient".into(),
            against: Some("sidecar".into()),
            load: LARGE.0.into(),
            derived,
            pod: None,
            printed: Some(0.5),
            recomputed: None,
            because: "made up".into(),
        };
        record.plan.reference = Some(PlannedReference {
            source: "a paper".into(),
            notes: vec![],
            figures: vec![
                figure("cpu_total_millicores", 107.17),
                figure("memory_total_mib", 1105.33),
            ],
            recomputed: vec![ratio(Derived::CpuRatio), ratio(Derived::MemoryRatio)],
        });
        let found = found(&record);
        let ratios = &cell(&found, &LARGE).recomputed;
        assert!(near(ratios[0].measured.unwrap().value, 4.6 / 4.2), "{ratios:?}");
        assert!(near(ratios[1].measured.unwrap().value, 550.0 / 3190.0), "{ratios:?}");
        assert_eq!(ratios[0].against.as_deref(), Some("sidecar"));
        let rows = &cell(&found, &LARGE).reference;
        assert!(near(rows[0].measured.unwrap(), 4.6), "{rows:?}");
        assert!(near(rows[1].measured.unwrap(), 550.0), "{rows:?}");
    }
}

mod kubectl_top {
    use super::*;

    #[test]
    fn every_pod_is_rounded_up_to_a_whole_millicore_with_its_sidecar() {
        let found = found(&swept(&[LARGE], steady));
        let load = cell(&found, &LARGE);
        let of = |variant: &str| load.top_totals.iter().find(|t| t.variant == variant).unwrap();
        // Gateway at 2m, ninety pods below 1m each, two proxies of 1.2m and 1m.
        let shown = ["bare", "sidecar", "ambient"].map(|v| of(v).shown_millicores.value);
        assert_eq!(shown, [92.0, 92.0, 95.0]);
        assert_eq!([of("bare").pods, of("ambient").pods], [91, 93]);
        assert!(near(of("sidecar").counted_millicores.value, 4.2), "{:?}", of("sidecar"));
    }

    #[test]
    fn rounding_that_makes_much_of_little_is_told() {
        let found = found(&swept(&[SMALL, LARGE], steady));
        let rounded = picked(&found, |caveat| match caveat {
            Caveat::RoundedUp { load, pods, shown_millicores, .. } => {
                Some((load.as_str(), *pods, *shown_millicores))
            }
            _ => None,
        });
        assert_eq!(rounded, [("get-20x90", 91, 92.0)]);
    }
}

mod summaries {
    use super::*;

    #[test]
    fn an_open_load_has_vegetas_summary_of_all_its_slices() {
        let found = found(&swept(&[SMALL], steady));
        let summary = of(cell(&found, &SMALL), "sidecar").vegeta.clone().unwrap();
        assert_eq!((summary.requests, summary.attack_s), (600, 30.0));
        assert_eq!((summary.rate_per_s, summary.throughput_per_s), (20.0, 20.0));
        assert_eq!((summary.bytes_in, summary.bytes_out), ((600 * 615, 615.0), (0, 0.0)));
        assert_eq!((summary.success, summary.statuses), (1.0, vec![(200, 600)]));
        assert!(summary.latencies_us.iter().all(|us| near(*us, 1000.0)));
    }

    #[test]
    fn variants_are_held_against_each_other_by_the_same_rules() {
        let slower: Shown = |arm, _, _, _| match arm.variant.as_str() {
            "sidecar" => 1800,
            "ambient" => 1500,
            _ => 1000,
        };
        let found = found(&swept(&[LARGE], slower));
        let load = cell(&found, &LARGE);
        let pairs: Vec<(&str, Option<&str>)> =
            load.between.iter().map(|e| (e.variant.as_str(), e.against.as_deref())).collect();
        assert!(!pairs.is_empty() && pairs.iter().all(|p| *p == ("ambient", Some("sidecar"))));
        let of = |effects: &[Effect], metric| -> Effect {
            effects.iter().find(|e| e.metric == metric).unwrap().clone()
        };
        let p50 = of(&load.between, Metric::LatencyP50);
        assert!(near(p50.difference.value, -300.0) && near(p50.ratio.value, 1500.0 / 1800.0));
        assert_eq!(p50.verdict, None);
        let metrics = |effects: &[Effect]| -> Vec<Metric> {
            let first = &effects[0].variant;
            effects.iter().filter(|e| e.variant == *first).map(|e| e.metric).collect()
        };
        assert_eq!(metrics(&load.between), metrics(&load.effects));
        assert!(load.effects.iter().all(|e| e.against.is_none()));
    }

    #[test]
    fn without_steps_each_variant_is_held_against_all_before_it() {
        let mut record = swept(&[SMALL], steady);
        let ambient = record.plan.variants.last().unwrap().clone();
        record.plan.variants.push(PlannedVariant { name: "third".into(), ..ambient });
        for round in &mut record.rounds {
            let mut third =
                round.arms.iter().find(|of| of.arm.variant == "ambient").unwrap().clone();
            third.arm.variant = "third".into();
            round.arms.push(third);
        }
        let found = found(&record);
        let between = &cell(&found, &SMALL).between;
        let mut pairs: Vec<(&str, &str)> =
            between.iter().map(|e| (e.variant.as_str(), e.against.as_deref().unwrap())).collect();
        pairs.dedup();
        let all = [("ambient", "sidecar"), ("third", "sidecar"), ("third", "ambient")];
        assert_eq!(pairs, all);
    }

    #[test]
    fn two_variants_leave_nothing_between_them() {
        let mut record = swept(&[SMALL], steady);
        record.plan.variants.pop();
        assert!(cell(&found(&record), &SMALL).between.is_empty());
    }
}

mod percentiles {
    use super::*;

    /// One request in twenty is slow, but only in the last two rounds; the variants' are slower by 100 us.
    fn tailed(arm: &Arm, round: usize, _: &str, request: usize) -> u64 {
        let more = if arm.variant == "bare" { 0 } else { 100 };
        let slow = round > 3 && request.is_multiple_of(20);
        1000 + more + if slow { 8000 } else { request as u64 }
    }

    fn p99(findings: &Findings) -> Effect {
        let effects = &cell(findings, &SMALL).effects;
        effects.iter().find(|e| e.metric == Metric::LatencyP99).unwrap().clone()
    }

    #[test]
    fn a_percentile_is_that_of_the_merged_rounds_and_no_mean_of_theirs() {
        let found = found(&swept(&[SMALL], tailed));
        let p99 = p99(&found);
        // Of a hundred requests two are slow: the slowest is one. The mean of the rounds' own would be about 4200.
        assert!(near(p99.baseline, 9000.0) && near(p99.value, 9100.0), "{p99:?}");
        // Each of the two is known to one part in a thousand.
        assert!((p99.difference.value - 100.0).abs() < 18.0, "{p99:?}");
        let metrics = &of(cell(&found, &SMALL), "bare").metrics;
        let of_variant = metrics.iter().find(|(m, _)| *m == Metric::LatencyP99).unwrap().1;
        assert!(near(of_variant.value, 9000.0), "{of_variant:?}");
    }

    #[test]
    fn the_interval_of_a_percentile_is_that_of_the_jackknife_over_rounds() {
        let drifting: Shown = |_, round, _, _| 900 + 100 * round as u64;
        let found = found(&swept(&[SMALL], drifting));
        let metrics = &of(cell(&found, &SMALL), "bare").metrics;
        let p50 = metrics.iter().find(|(m, _)| *m == Metric::LatencyP50).unwrap().1;
        // 1200 of all; without a round 1200, 1200, 1100, 1100, 1100: pseudo-values with a deviation of 219.1.
        assert!(near(p50.value, 1200.0) && p50.rounds == ROUNDS, "{p50:?}");
        let half = 2.776 * 219.1 / 5_f64.sqrt();
        assert!((p50.high - p50.value - half).abs() < 6.0, "{p50:?}");
        assert!(near(p50.high - p50.value, p50.value - p50.low), "{p50:?}");
    }

    #[test]
    fn a_difference_of_half_a_bucket_is_within_the_interval() {
        let closely: Shown = |arm, _, _, _| match arm.variant.as_str() {
            "bare" => 9_000,
            _ => 9_004,
        };
        let found = found(&swept(&[SMALL], closely));
        let effects = &cell(&found, &SMALL).effects;
        let p50 = effects.iter().find(|e| e.metric == Metric::LatencyP50).unwrap();
        let (low, high) = (p50.ratio.low, p50.ratio.high);
        assert!(low < 1.0 && 1.0 < high && high - low < 0.004, "{p50:?}");
        assert!(matches!(p50.verdict, Some(Verdict::NoDifference { .. })), "{p50:?}");
    }

    #[test]
    fn only_rounds_that_have_both_are_merged() {
        let record =
            without(swept(&[SMALL], tailed), |round, arm, _| arm.variant == "sidecar" && round > 3);
        let p99 = p99(&found(&record));
        assert!(p99.baseline < 1100.0, "{p99:?}");
        assert_eq!((p99.variant.as_str(), p99.difference.rounds), ("sidecar", 3));
    }

    #[test]
    fn a_percentile_that_few_requests_lie_beyond_is_told_once_for_all_loads() {
        let busy = ("get-400x1", 1, 400.0);
        let found = found(&swept(&[SMALL, LARGE, busy], steady));
        let few = picked(&found, |caveat| match caveat {
            Caveat::FewRequests { loads, fewest, .. } => Some((loads.clone(), *fewest)),
            _ => None,
        });
        let names = ["get-20x1", "get-20x90"].map(|name| LoadNames::Load(name.into()));
        assert_eq!(few, [(names.to_vec(), 6.0)]);
    }
}

mod service_times {
    use super::*;

    const LOADS: [Size; 4] =
        [SMALL, ("wake-up-800x1", 1, 800.0), ("wake-up-200x1", 1, 200.0), LARGE];

    /// Waking up costs 300 us at 20 a second in any variant, and 50 us more in the sidecar's.
    fn sleepy(arm: &Arm, round: usize, load: &str, request: usize) -> u64 {
        let (waking, own) = match load {
            "get-20x1" | "get-20x90" => (300, 50),
            "wake-up-200x1" => (100, 20),
            _ => (0, 0),
        };
        let own = if arm.variant == "sidecar" { 200 + own } else { 0 };
        500 + waking + own + round as u64 + request as u64 % 3
    }

    #[test]
    fn what_falls_with_the_rate_in_every_variant_is_not_the_variants_own() {
        let found = found(&swept(&LOADS, sleepy));
        let [of_one_pod] = found.service_times.as_slice() else { panic!("one size has rates") };
        assert_eq!(of_one_pod.replicas, Some(("nginx".into(), 1)));
        let [bare, sidecar, ambient] = of_one_pod.variants.as_slice() else { panic!("three") };
        let rates: Vec<f64> = bare.points.iter().map(|(_, rate, _)| *rate).collect();
        assert_eq!(rates, [20.0, 200.0, 800.0]);
        assert!((bare.points[0].2.value - 804.0).abs() < 2.0, "{:?}", bare.points[0]);
        assert!((bare.fall.unwrap().value + 300.0).abs() < 2.0, "{:?}", bare.fall);
        assert!((sidecar.fall.unwrap().value + 350.0).abs() < 2.0, "{:?}", sidecar.fall);
        let own = sidecar.own_fall.unwrap();
        assert!((own.value + 50.0).abs() < 2.0 && own.high < 0.0, "{own:?}");
        assert!(ambient.own_fall.unwrap().value.abs() < 2.0);
        assert_eq!(bare.own_fall, None);
    }

    #[test]
    fn another_request_is_another_curve() {
        let mut record = swept(&LOADS, sleepy);
        record.plan.loads[0].request.path = "/other".into();
        let found = found(&record);
        let [of_one_pod] = found.service_times.as_slice() else { panic!("one size has rates") };
        assert_eq!(of_one_pod.variants[0].points.len(), 2);
    }

    #[test]
    fn a_mix_that_begins_alike_is_another_curve() {
        let mut record = swept(&LOADS, sleepy);
        record.plan.loads[0].mix = mix_after(&record.plan.loads[0]);
        let found = found(&record);
        let [of_one_pod] = found.service_times.as_slice() else { panic!("one size has rates") };
        assert_eq!(of_one_pod.variants[0].points.len(), 2);
    }
}
