//! Findings of the made-up chain: gateway, three services, a database, four sidecars.

use toll_lab::{Reading, Role};

use super::super::findings::{
    AttributedCost, Attribution, Caveat, Derived, Findings, HeySummary, LoadFindings, Metric,
    Payer, PodRow, RecomputedRow, Role as OwnerRole, TraversalCosts, VariantLoad,
};
use super::super::fixture::{customer_360, each_arm, each_slice, without_arms};
use super::called;
use crate::store::RunRecord;

fn found(run: &RunRecord) -> Findings {
    super::super::findings(run)
}

fn load<'a>(findings: &'a Findings, name: &str) -> &'a LoadFindings {
    findings.loads.iter().find(|load| load.name == name).unwrap()
}

fn variant<'a>(load: &'a LoadFindings, name: &str) -> &'a VariantLoad {
    load.variants.iter().find(|v| v.variant == name).unwrap()
}

fn hey<'a>(findings: &'a Findings, name: &str) -> &'a HeySummary {
    variant(load(findings, "flat-out"), name).hey.as_ref().unwrap()
}

/// The role and the pod of a line that has an owner.
fn name(line: &AttributedCost) -> String {
    let Payer::Owner(owner) = &line.payer else { panic!("{line:?}") };
    called(owner)
}

fn attribution(findings: &Findings) -> &Attribution {
    &load(findings, "same-rate").attribution[0]
}

fn traversals(findings: &Findings) -> &TraversalCosts {
    variant(load(findings, "same-rate"), "sidecar").traversals.as_ref().unwrap()
}

fn pod<'a>(load: &'a LoadFindings, name: &str) -> &'a PodRow {
    let is_it = |row: &&PodRow| row.owner.as_ref().map_or("TOTAL", |of| &of.pods.name) == name;
    load.top_pods.iter().find(is_it).unwrap()
}

fn derived(findings: &Findings, wanted: Derived) -> &RecomputedRow {
    load(findings, "flat-out").recomputed.iter().find(|row| row.derived == wanted).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

#[test]
fn heys_summary_is_that_of_all_slices_that_count_as_one_load() {
    let mut run = customer_360();
    let mut total = 0.0;
    each_slice(&mut run, |round, arm, slice| {
        if arm.variant == "bare" && slice.load == "flat-out" {
            match (round, arm.again) {
                (1, true) => slice.invalid = vec!["made up".into()],
                _ => total += slice.report.measure.end_ns as f64 / 1e9,
            }
        }
    });
    let summary = hey(&found(&run), "bare").clone();
    assert!((summary.total_s / total - 1.0).abs() < 1e-6, "{} and {total}", summary.total_s);
    // Four slices of 500 requests in nine of ten arms.
    assert!((summary.requests_per_s * total / 18_000.0 - 1.0).abs() < 1e-6, "{summary:?}");
    assert_eq!(summary.statuses, [(200, 18_000)]);
    assert_eq!(summary.histogram.len(), 11);
    assert_eq!(summary.histogram.iter().map(|(_, count)| count).sum::<u64>(), 18_000);
    let percents: Vec<u8> = summary.percentiles.iter().map(|(percent, _)| *percent).collect();
    assert_eq!(percents, [10, 25, 50, 75, 90, 95, 99]);
    assert_eq!(summary.details.len(), 5);
}

#[test]
fn an_open_loop_has_no_summary_of_heys() {
    let found = found(&customer_360());
    assert!(load(&found, "same-rate").variants.iter().all(|v| v.hey.is_none()));
}

#[test]
fn the_parts_of_the_change_add_up_to_the_whole() {
    let found = found(&customer_360());
    let attribution = attribution(&found);
    let sum = |wanted: fn(OwnerRole) -> bool| -> f64 {
        let parts = attribution.parts.iter().filter(|part| part.payer.role().is_some_and(wanted));
        parts.map(|part| part.change.value).sum()
    };
    let whole = attribution.whole.as_ref().unwrap();
    assert!(close(whole.change.value, sum(|role| !role.is_instrument())));
    let counted = attribution.counted.as_ref().unwrap();
    let nobodys = sum(|role| role == OwnerRole::Unattributed);
    assert!(close(whole.change.value, counted.change.value + nobodys));
    let shares: f64 = attribution.parts.iter().filter_map(|part| part.share).sum();
    assert!(close(shares, 1.0), "{shares}");
    let is_own = |p: &AttributedCost| p.payer.role().is_some_and(OwnerRole::is_instrument);
    assert!(attribution.parts.iter().filter(|p| is_own(p)).all(|p| p.share.is_none()));
}

#[test]
fn the_counted_change_is_the_effect_in_cpu_per_request() {
    let found = found(&customer_360());
    let same_rate = load(&found, "same-rate");
    let effect = same_rate.effects.iter().find(|e| e.metric == Metric::CpuPerRequest).unwrap();
    let counted = attribution(&found).counted.clone().unwrap();
    // Differences add up, ratios are geometric: within rounds that scatter by 2.5 % the two are nearly alike.
    assert!((counted.change.value / effect.difference.value - 1.0).abs() < 0.005);
    assert!(close(counted.baseline.unwrap(), effect.baseline));
}

#[test]
fn the_applications_own_extra_is_kept_apart_from_its_sidecars() {
    let found = found(&customer_360());
    let subtotals = &attribution(&found).subtotals;
    let roles: Vec<OwnerRole> = subtotals.iter().filter_map(|line| line.payer.role()).collect();
    assert_eq!(roles, [OwnerRole::Application, OwnerRole::Sidecar]);
    // The fixture's services use 91 us more, its sidecars 874, each within 2.5 %.
    assert!((subtotals[0].change.value - 91.0).abs() < 14.0, "{:?}", subtotals[0]);
    assert!((subtotals[1].change.value - 874.0).abs() < 22.0, "{:?}", subtotals[1]);
    assert_eq!(subtotals[1].baseline, None);
}

#[test]
fn payers_stand_in_the_order_in_which_a_request_meets_them() {
    let found = found(&customer_360());
    let parts = &attribution(&found).parts;
    let names: Vec<String> = parts.iter().map(name).collect();
    let expected = "Gateway ingress, Application customer, Application person, Application name, Sidecar customer, Sidecar person, Sidecar name, Sidecar postgres, Database postgres, LoadGenerator load, Harness toll, Unattributed";
    assert_eq!(names.join(", "), expected);
}

#[test]
fn a_change_that_may_be_none_has_no_shares() {
    let mut run = customer_360();
    for round in &mut run.rounds {
        let again = round.arms.iter().find(|of| of.arm.again).unwrap().slices.clone();
        let sidecar = round.arms.iter_mut().find(|of| of.arm.variant == "sidecar").unwrap();
        for slice in &mut sidecar.slices {
            let same = again.iter().find(|s| s.load == slice.load && s.cycle == slice.cycle);
            slice.samples = same.unwrap().samples.clone();
        }
    }
    let found = found(&run);
    let attribution = attribution(&found);
    assert!(attribution.parts.iter().all(|part| part.share.is_none()));
}

#[test]
fn a_round_with_a_missing_counter_is_not_compared() {
    let mut run = customer_360();
    each_slice(&mut run, |round, arm, slice| {
        if round == 2 && arm.variant == "sidecar" && slice.load == "same-rate" {
            let mut components = slice.samples.last_mut().unwrap().components.iter_mut();
            let database = components.find(|c| c.component.role == Role::Database).unwrap();
            database.cpu_ns = Reading::Missing("made up".into());
        }
    });
    let found = found(&run);
    let attribution = attribution(&found);
    let rounds = |name: &str| {
        let part = attribution.parts.iter().find(|part| self::name(part) == name).unwrap();
        part.change.rounds
    };
    let of = (rounds("Database postgres"), rounds("Application customer"));
    assert_eq!(of, (4, 5));
    assert_eq!(attribution.whole.as_ref().unwrap().change.rounds, 4);
}

#[test]
fn traversals_are_those_that_the_proof_counted() {
    let mut run = customer_360();
    let whole = found(&run);
    let of = |costs: &TraversalCosts| -> Vec<f64> {
        costs.sidecars.iter().map(|sidecar| sidecar.traversals.value).collect()
    };
    assert_eq!(of(traversals(&whole)), [2.0, 2.0, 2.0, 1.0]);
    assert!(close(traversals(&whole).total.traversals.value, 7.0));
    each_arm(&mut run, |_, of| {
        let ways = &mut of.proof.as_mut().unwrap().traversals;
        ways.iter_mut().filter(|way| way.pod == "postgres").for_each(|way| way.counted = 0);
    });
    let found = found(&run);
    let costs = traversals(&found);
    assert!(close(costs.total.traversals.value, 6.0));
    assert_eq!(costs.sidecars[3].per_traversal_us, None);
}

#[test]
fn cpu_of_a_traversal_is_that_of_the_sidecars_over_the_traversals() {
    let found = found(&customer_360());
    let total = &traversals(&found).total;
    let each = total.per_traversal_us.unwrap();
    assert!(close(each.value, total.cpu_us.value / 7.0));
    assert!(each.low < each.value && each.value < each.high);
}

#[test]
fn a_pod_has_its_sidecars_cpu_and_memory() {
    let found = found(&customer_360());
    let customer = pod(load(&found, "same-rate"), "customer");
    let [bare, sidecar] = customer.uses.as_slice() else { panic!("two variants") };
    assert!(close(bare.memory_mib.unwrap().mean.value, 9.0));
    assert!(close(sidecar.memory_mib.unwrap().mean.value, 9.0 + 41.0));
    // 558 requests a second at 192 and 262 us, within 2.5 %, and 0.4 of it for what each does by itself.
    let cpu = sidecar.cpu_millicores.unwrap();
    assert!((cpu.mean.value - 253.7).abs() < 7.0, "{cpu:?}");
    assert_eq!((bare.cpu_millicores.unwrap().change, customer.group.as_str()), (None, "demo"));
    assert!(cpu.change.unwrap().low > 0.0);
}

#[test]
fn the_total_of_pods_leaves_the_gateway_out() {
    let found = found(&customer_360());
    let flat_out = load(&found, "flat-out");
    let names = flat_out.top_pods.iter().map(|row| Some(row.owner.as_ref()?.pods.name.as_str()));
    let names: Vec<Option<&str>> = names.collect();
    let pods = ["customer", "person", "name", "postgres"].map(Some);
    assert_eq!(names, [&pods[..], &[None, Some("ingress")]].concat());
    let cpu = |row: &PodRow| row.uses[1].cpu_millicores.unwrap().mean.value;
    let pods: f64 = flat_out.top_pods[..4].iter().map(cpu).sum();
    assert!(close(cpu(pod(flat_out, "TOTAL")), pods));
}

#[test]
fn published_figures_by_pod_and_percentile_have_measured_ones_beside_them() {
    let found = found(&customer_360());
    let flat_out = load(&found, "flat-out");
    let row = |figure: &str| {
        let rows = &flat_out.reference;
        rows.iter().find(|r| r.figure == figure && r.variant == "sidecar").unwrap()
    };
    let person = &pod(flat_out, "person").uses[1];
    let cpu = person.cpu_millicores.unwrap();
    assert!(close(row("cpu_millicores.person").measured.unwrap(), cpu.mean.value));
    assert_eq!(row("cpu_millicores.person").measured_ratio, cpu.ratio);
    assert!(close(row("memory_mib.person").measured.unwrap(), 50.0));
    let p95 = flat_out.effects.iter().find(|e| e.metric == Metric::LatencyP95).unwrap();
    assert!(close(row("latency_ms.p95").measured.unwrap() * 1e3, p95.value));
}

#[test]
fn a_figure_of_a_pod_that_is_not_there_is_not_measured() {
    let mut run = customer_360();
    let figures = &mut run.plan.reference.as_mut().unwrap().figures;
    figures
        .iter_mut()
        .for_each(|figure| figure.figure = figure.figure.replace(".person", ".nobody"));
    let found = found(&run);
    let rows = &load(&found, "flat-out").reference;
    let mut of_nobody = rows.iter().filter(|row| row.figure.ends_with(".nobody"));
    assert!(of_nobody.all(|row| row.measured.is_none() && row.measured_ratio.is_none()));
}

#[test]
fn recomputed_figures_are_derived_from_what_was_measured_in_the_same_way() {
    let found = found(&customer_360());
    let flat_out = load(&found, "flat-out");
    let measured = |wanted| derived(&found, wanted).measured.unwrap().value;
    let ratio = |metric| {
        let effect = flat_out.effects.iter().find(|e| e.metric == metric).unwrap();
        (effect.ratio.value - 1.0) * 100.0
    };
    assert!(close(measured(Derived::ThroughputChange), ratio(Metric::Throughput)));
    assert!(close(measured(Derived::LatencyP95Change), ratio(Metric::LatencyP95)));
    let total = pod(flat_out, "TOTAL");
    let cpu_change = (total.uses[1].cpu_millicores.unwrap().ratio.unwrap().value - 1.0) * 100.0;
    assert!(close(measured(Derived::CpuChange), cpu_change));
    assert!(close(measured(Derived::MemoryTotal), 9.0 * 3.0 + 62.0));
    assert!(close(
        measured(Derived::MemoryChange),
        ((89.0 + 41.0 * 3.0 + 39.0) / 89.0 - 1.0) * 100.0
    ));
    // Without the gateway: 755 and 1737 us a request in the fixture, each within 2.5 %.
    assert!((measured(Derived::CpuPerRequestChange) - 130.0).abs() < 8.0);
    // Fifty workers, in a fixture whose mean latency is 1.05 times its middle.
    assert!((measured(Derived::UnderWay) - 48.0).abs() < 2.0);
    let throughput = derived(&found, Derived::ThroughputChange).measured.unwrap();
    assert!(throughput.low < throughput.value && throughput.value < throughput.high);
}

#[test]
fn a_recomputed_figure_of_a_variant_without_slices_is_not_measured() {
    let run = without_arms(customer_360(), |_, arm| arm.variant == "sidecar");
    let found = found(&run);
    assert_eq!(derived(&found, Derived::CpuChange).measured, None);
    assert!(derived(&found, Derived::UnderWay).measured.is_some());
}

#[test]
fn settling_is_summed_up_by_variant_and_a_restless_one_is_a_caveat() {
    let found = found(&customer_360());
    let [bare, sidecar] = found.settled.as_slice() else { panic!("two variants") };
    assert_eq!((bare.runs.len(), sidecar.runs.len()), (10, 5));
    let (first, last) = sidecar.throughput_per_s;
    assert!(first.value < last.value * 0.7, "{first:?}, {last:?}");
    assert!(sidecar.length_s.value > bare.length_s.value);
    assert!(found.caveats.contains(&Caveat::Unsettled { arms: 1, all: 15 }));
}

#[test]
fn the_same_chain_gives_the_same_bytes() {
    let text = |run: &RunRecord| serde_json::to_string(&found(run)).unwrap();
    assert_eq!(text(&customer_360()), text(&customer_360()));
}

#[test]
fn the_extent_of_a_run_is_what_was_measured_and_when() {
    let extent = found(&customer_360()).extent;
    assert_eq!((extent.rounds, extent.planned, extent.wall_s), (5, Some(5), 100.0));
    assert_eq!((extent.slices, extent.excused, extent.proven), ((120, 120), (0, 10), (15, 15)));
    assert_eq!((extent.began.as_str(), extent.steal), ("2026-11-23 14:02", 0.0));
}
