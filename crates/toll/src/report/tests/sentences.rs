//! How each caveat is said, and how a load is described.

use toll_lab::ServiceSpans;

use super::made_up::owner;
use super::*;
use crate::analysis::findings::*;

fn said(caveat: Caveat) -> String {
    caveats::sentence(&caveat, "runs/1")
}

fn regime(variant: &str, throughput_per_s: f64, capacity_per_s: f64) -> Regime {
    let near_limit = throughput_per_s >= 0.9 * capacity_per_s;
    let variant = variant.into();
    Regime { variant, throughput_per_s, capacity_per_s, near_limit, at_limit: false }
}

fn two(metric: Metric, ratio: f64, other_ratio: f64) -> TwoFigures {
    let (load, variant) = ("same-rate".into(), "mesh".into());
    TwoFigures { load, variant, metric, ratio, other_ratio }
}

#[test]
fn what_did_not_run_or_does_not_count_is_counted_with_its_reasons() {
    let missing = Caveat::MissingRounds { ran: 3, planned: 8 };
    assert_eq!(said(missing), "only 3 of 8 rounds ran: go on with `toll run --resume runs/1`");
    let arm = |round| InvalidArm {
        arm: "mesh".into(),
        round,
        reasons: vec![Invalid::NoClaim, "it broke".into()],
    };
    let why = "(path not proven: no claim was made, it broke)";
    let expected = format!(
        "5 of 15 arms do not count: mesh in round 1 {why}; mesh in round 2 {why}; mesh in round 3 {why}; and 2 more"
    );
    assert_eq!(said(Caveat::InvalidArms { arms: (1..6).map(arm).collect(), all: 15 }), expected);
    let reasons = vec![("b".into(), 1), ("c".into(), 7), ("a".into(), 1)];
    let slices = Caveat::InvalidSlices { slices: 9, all: 60, reasons };
    assert_eq!(said(slices), "9 of 60 slices do not count: c (7); a (1); b (1)");
}

#[test]
fn a_stand_in_is_named_and_so_is_what_it_does_to_the_figures() {
    let server = DatabaseServer::StandIn { version: "1.47.0".into() };
    let said = said(Caveat::StandIn { server });
    let named = "the database is mongo-java-server 1.47.0, a stand-in for MongoDB: a request";
    assert!(said.starts_with(named), "{said}");
}

#[test]
fn comparisons_that_are_none_say_why() {
    let loads = vec![LoadRates { load: "same-rate".into(), low_per_s: 76.4, high_per_s: 100.0 }];
    assert!(said(Caveat::UnequalRates { loads }).ends_with("rate: same-rate (76 to 100/s)"));
    let arm = |arm: &str, rounds| LaggingArm { arm: arm.into(), load: "load".into(), rounds };
    let arms = vec![arm("bare", 1), arm("mesh", 2)];
    let lagging = said(Caveat::NotCarried { arms });
    assert!(lagging.ends_with("rounds: mesh under load (2); bare under load (1)"), "{lagging}");
    let pair = RegimePair {
        load: "nine".into(),
        baseline: regime("bare", 100.0, 300.0),
        variant: regime("mesh", 100.0, 105.0),
    };
    let one = said(Caveat::NearLimit { both: false, comparisons: vec![pair.clone()] });
    let rates =
        "nine: bare at 100 of the 300/s that it carries, mesh at 100 of the 105/s that it carries";
    assert!(one.starts_with("one is at or near its limit and the other is not"), "{one}");
    assert!(one.ends_with(rates), "{one}");
    let both = said(Caveat::NearLimit { both: true, comparisons: vec![pair] });
    assert!(both.starts_with("both are at or near their limit"), "{both}");
    let (variant, low_per_s, high_per_s) = ("mesh".into(), 50.0, 100.0);
    let uneven = said(Caveat::UnevenSpanRates { variant, low_per_s, high_per_s });
    let through = "the cost per span of mesh is drawn through loads of 50 to 100 requests/s: ";
    assert!(uneven.starts_with(through), "{uneven}");
}

#[test]
fn what_else_the_machine_did_has_its_shares() {
    assert!(said(Caveat::DisturbedThroughout).starts_with("the machine was disturbed throughout"));
    let moved = vec![two(Metric::CpuPerRequest, 1.6203, 1.581)];
    let excused = said(Caveat::Excused { cycles: 1, all: 10, moved });
    let expected = "1 of 10 cycles are excused for stolen time or other work on the machine; with them headline figures would differ: CPU per request of mesh +62.0 % (+58.1 % with them)";
    assert_eq!(excused, expected);
    let unmoved = said(Caveat::Excused { cycles: 1, all: 10, moved: vec![] });
    assert!(unmoved.ends_with("no headline figure would differ by more than its half-width"));
    assert!(said(Caveat::Stolen { share: 0.754 }).contains("took up to 75 % of the CPU time"));
    let other = said(Caveat::OtherWork { slices: 2, all: 60, share: 0.15 / 1.15 });
    assert!(other.starts_with("in 2 of 60 slices more than 13 % of the CPU time"), "{other}");
}

#[test]
fn few_rounds_and_few_requests_name_their_loads() {
    let loads = vec![
        LoadNames::Load("same-rate".into()),
        LoadNames::Sweep { load: "clients".into(), cells: 5 },
    ];
    let rounds =
        |variant: &str, fewest, most| VariantRounds { variant: variant.into(), fewest, most };
    let variants = vec![rounds("bypass", 3, 3), rounds("gateway", 2, 3)];
    let few = said(Caveat::FewRounds { loads: loads.clone(), variants, enough: 4 });
    let expected =
        "same-rate, clients (all 5): rounds that count: bypass 3, gateway 2 to 3; below 4 they say";
    assert!(few.starts_with(expected), "{few}");
    let few = said(Caveat::FewRequests { loads, fewest: 5.2, enough: 10.0 });
    assert!(few.contains("p99 rests on fewer than 10 requests beyond it"), "{few}");
    assert!(few.contains("at the fewest on 6: "), "{few}");
    assert!(said(Caveat::OneRound).starts_with("each arm was started once: "));
    let figures = vec![two(Metric::LatencyP50, 1.1, 1.04)];
    let decided = said(Caveat::FewCyclesDecide { figures });
    assert!(decided.starts_with("a few cycles decide 1 figures, "), "{decided}");
    assert!(decided.ends_with("p50 of mesh +10.0 % under same-rate (+4.0 % trimmed)"), "{decided}");
    let late = LatePercentile {
        load: "load".into(),
        variant: "mesh".into(),
        metric: Metric::LatencyP99,
        share: 0.2512,
    };
    let late = said(Caveat::SendLag { percentiles: vec![late] });
    assert!(
        late.ends_with("above what the services did: p99 of mesh under load by 25 %"),
        "{late}"
    );
}

#[test]
fn a_leak_is_held_against_the_baselines() {
    let leak = |baseline| {
        let (variant, pod) = ("mesh".into(), "vets".into());
        said(Caveat::Leak { variant, pod, mib_per_minute: 6.0, p_value: 0.000_31, baseline })
    };
    let expected = "what collections leave in the heap of vets (mesh) grows by 6.0 MiB a minute (p = 3.1e-4): a leak, or something that still fills up";
    assert_eq!(leak(None), expected);
    assert!(leak(Some(Growth::Grows)).ends_with("; the baseline's grows, too"));
    assert!(leak(Some(Growth::DoesNot)).ends_with("; the baseline's does not"));
    assert!(leak(Some(Growth::Unknown)).ends_with("; whether the baseline's does is not known"));
    let unsettled = said(Caveat::Unsettled { arms: 1, all: 15 });
    assert!(unsettled.starts_with("1 of 15 arms had not settled"), "{unsettled}");
}

#[test]
fn what_proofs_left_out_names_the_variants() {
    let left_out = |what| {
        let variants = vec!["bare".into(), "mesh".into()];
        said(Caveat::LeftOut { variants, what })
    };
    let rows = LeftOut::Rows { database: "postgres".into() };
    let expected = "bare, mesh: left out of the proof: the rows of postgres: the study does not say how to count them";
    assert_eq!(left_out(rows), expected);
    let crossing = "bare, mesh: left out of the proof: that no request crossed a sidecar, a claim that needs a service that reports its requests";
    assert_eq!(left_out(LeftOut::NoCrossing), crossing);
    let services = vec![ServiceSpans { service: "vets".into(), expected: 3600, arrived: 3564 }];
    let dropped = said(Caveat::DroppedSpans { variant: "mesh".into(), services });
    assert!(dropped.contains("collector: 1.00 % of 3600 from vets; what"), "{dropped}");
    let loads = vec![LoadNames::Load("three".into())];
    let uncounted = said(Caveat::UncountedSpans { variant: "mesh".into(), loads });
    let expected = "mesh: whether spans were dropped is not known under three: ";
    assert!(uncounted.starts_with(expected), "{uncounted}");
}

#[test]
fn missing_readings_are_told_by_owner_and_reason() {
    let reason = |role, pod: &str, slices| (owner(role, pod), "gone".to_owned(), slices);
    let reasons = vec![reason(Role::Application, "vets", 1), reason(Role::Sidecar, "vets", 2)];
    let missing = said(Caveat::MissingReadings { reasons });
    let expected = "readings are missing, and what they are of is left out (slices): vets sidecar: gone (2); vets: gone (1)";
    assert_eq!(missing, expected);
    let reasons = vec![("vets".into(), "connection refused".into(), 30)];
    let metrics = said(Caveat::MissingMetrics { reasons });
    assert_eq!(metrics, "metrics of pods are missing (slices): vets: connection refused (30)");
    let heaps = said(Caveat::UnknownHeaps { pods: vec!["gateway".into(), "vets".into()] });
    assert!(heaps.contains("in the heap of gateway, vets is not known"), "{heaps}");
    let rounded = said(Caveat::RoundedUp {
        load: "get-20x90".into(),
        variant: "bare".into(),
        pods: 91,
        counted_millicores: 7.24,
        shown_millicores: 92.0,
    });
    let expected = "get-20x90: `kubectl top pods` would show 92m for the 91 pods of bare, by counters it is 7.2m: every";
    assert!(rounded.starts_with(expected), "{rounded}");
}

#[test]
fn a_load_is_described_with_what_it_was_scaled_by() {
    let findings = petclinic();
    let described = |name: &str| {
        let load = findings.loads.iter().find(|load| load.name == name).unwrap();
        loads::describe(&findings, load)
    };
    let users = "88 of 320 virtual users (the capacity of agent is 420/s here, 1526/s where there were 320): 4 requests at once, then 1 s of pause; up in 1 s, all for 4 s, down in 0.5 s";
    assert_eq!(described("vus-320"), users);
    let open = "open loop, 210/s, constant arrivals, slices of 8.00 s";
    assert_eq!(described("same-rate"), open);
    let of_capacity = "open loop, 1050/s (60 % of the capacity of istio, 1750/s), constant arrivals, slices of 60.00 s";
    assert_eq!(loads::describe(&mesher(), &mesher().loads[0]), of_capacity);
}

#[test]
fn an_owner_is_called_by_its_role_and_its_pods() {
    let label = |role, pod: &str| owners::label(&owner(role, pod));
    assert_eq!(label(Role::Application, "client"), "client");
    assert_eq!(label(Role::Sidecar, "client"), "client sidecar");
    assert_eq!(label(Role::EgressGateway, "egress"), "egress gateway");
    assert_eq!(label(Role::SniProxy, "egress"), "egress SNI proxy");
    assert_eq!(label(Role::NodeProxy, "node-1"), "node-1 proxy");
    assert_eq!(label(Role::LoadGenerator, "load"), "load generator");
    assert_eq!(label(Role::Harness, "toll"), "toll");
    let all = |role| {
        let pods = Pods { name: "nginx".into(), count: Some(90) };
        owners::label(&Owner { role, pods })
    };
    let said = [Role::Application, Role::Sidecar].map(all);
    assert_eq!(said, ["nginx (90 pods)", "nginx sidecars (90)"]);
}
