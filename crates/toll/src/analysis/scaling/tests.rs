//! Costs by pods and rate of a made-up run whose truth is known.

use super::*;
use crate::analysis::Counted;
use crate::analysis::findings::Estimate;
use crate::analysis::fixture::replicas::{Costs, TRUTH, Truth, ambient_replicas};
use crate::analysis::fixture::{each_slice, without, without_arms};
use crate::analysis::tally::Tally;
use crate::plan::{Release, VariantState};
use crate::store::{ArmRecord, RunRecord, SliceRecord};

/// What this module finds in a run.
struct Found {
    scalings: Vec<Scaling>,
    crossings: Vec<Crossing>,
}

fn costs(run: &RunRecord) -> Found {
    let counted = Counted::of(run, |_| true);
    let valid: Vec<&Tally<'_>> = counted.tallies.iter().collect();
    let Some(sweep) = Sweep::of(run, &valid) else {
        return Found { scalings: vec![], crossings: vec![] };
    };
    Found { scalings: scalings(&run.plan, &sweep), crossings: crossings(&run.plan, &sweep) }
}

fn scaling_of<'a>(found: &'a Found, variant: &str, quantity: ScaledQuantity) -> &'a Scaling {
    let of = |s: &&Scaling| s.variant == variant && s.quantity == quantity;
    found.scalings.iter().find(of).expect("it is fitted")
}

fn crossings_in(found: &Found, quantity: ScaledQuantity) -> Vec<&Crossing> {
    found.crossings.iter().filter(|c| c.quantity == quantity).collect()
}

#[track_caller]
fn assert_holds(estimate: Estimate, truth: f64, within: f64) {
    let Estimate { value, low, high, .. } = estimate;
    assert!(low <= truth && truth <= high, "{truth} is not in {low} to {high}");
    assert!((value - truth).abs() <= within, "{value} is not {truth} +- {within}");
}

#[track_caller]
fn assert_costs(scaling: &Scaling, truth: Costs, within: [f64; 3]) {
    assert_holds(scaling.fixed, truth.fixed, within[0]);
    assert_holds(scaling.per_pod, truth.per_pod, within[1]);
    assert_holds(scaling.per_request.expect("the rate is swept"), truth.per_request, within[2]);
}

/// The run without the loads that `dropped` picks.
fn without_loads(dropped: impl Fn(&str) -> bool) -> RunRecord {
    without(ambient_replicas(), |_, _, load| dropped(load))
}

#[test]
fn every_variant_has_the_costs_that_it_was_given() {
    let found = costs(&ambient_replicas());
    for Truth { variant, memory, cpu, .. } in TRUTH {
        assert_costs(scaling_of(&found, variant, ScaledQuantity::Memory), memory, [6.0, 0.2, 0.3]);
        assert_costs(scaling_of(&found, variant, ScaledQuantity::Cpu), cpu, [1.0, 0.02, 0.03]);
    }
}

#[test]
fn added_latency_is_what_lies_above_the_baseline() {
    let found = costs(&ambient_replicas());
    let [bare, sidecar, _] = TRUTH;
    let added = scaling_of(&found, "sidecar", ScaledQuantity::AddedP50);
    let per_pod = sidecar.p50.per_pod - bare.p50.per_pod;
    assert_holds(added.per_pod, per_pod, 0.3);
    assert_holds(added.fixed, sidecar.p50.fixed - bare.p50.fixed, 30.0);
    let tail = scaling_of(&found, "sidecar", ScaledQuantity::AddedP99);
    assert_holds(tail.per_pod, 2.0 * per_pod, 0.6);
    assert!(!found.scalings.iter().any(|s| {
        s.variant == "bare"
            && matches!(s.quantity, ScaledQuantity::AddedP50 | ScaledQuantity::AddedP99)
    }));
}

#[test]
fn a_percentile_of_a_cell_is_that_of_its_merged_rounds() {
    let run = ambient_replicas();
    let found = costs(&run);
    let merged = |variant: &str| {
        let arms = run.rounds.iter().flat_map(|round| &round.arms);
        let slices = arms.filter(|of| of.arm.variant == variant).flat_map(|of| &of.slices);
        let of_cell = slices.filter(|slice| slice.load == "get-20x90");
        let all: Vec<_> = of_cell.map(|slice| &slice.report.measure.latency).collect();
        crate::analysis::latency::merged(&all).unwrap().quantile_us(0.99)
    };
    let added = scaling_of(&found, "ambient", ScaledQuantity::AddedP99);
    let point = added.points.iter().find(|p| p.load == "get-20x90").unwrap();
    assert!((point.measured.value - (merged("ambient") - merged("bare"))).abs() < 1e-6);
    assert_eq!(point.measured.rounds, 5);
}

#[test]
fn the_largest_size_is_predicted_from_the_smaller_ones() {
    let found = costs(&ambient_replicas());
    for (quantity, bar) in [(ScaledQuantity::Memory, 0.10), (ScaledQuantity::Cpu, 0.20)] {
        for Truth { variant, .. } in TRUTH {
            let held_out = &scaling_of(&found, variant, quantity).held_out;
            let loads: Vec<&str> = held_out.iter().map(|cell| cell.load.as_str()).collect();
            assert_eq!(loads, ["get-20x90", "get-50x90"]);
            for cell in held_out {
                assert_eq!(cell.fitted_on, [1, 10, 50]);
                assert!(cell.error.abs() < bar, "{cell:?}");
                assert!(cell.predicted.low < cell.measured.value, "{cell:?}");
                assert!(cell.measured.value < cell.predicted.high, "{cell:?}");
            }
        }
    }
}

/// Has every component use so many bytes.
fn remember(slice: &mut SliceRecord, bytes: u64) {
    for component in slice.samples.iter_mut().flat_map(|sample| &mut sample.components) {
        component.memory.anonymous = toll_lab::Reading::Value(bytes);
    }
}

#[test]
fn what_the_largest_size_showed_does_not_help_to_predict_it() {
    let mut run = ambient_replicas();
    each_slice(&mut run, |_, _, slice| {
        if slice.load.ends_with("x90") {
            remember(slice, 1 << 30);
        }
    });
    let (sound, spoilt) = (costs(&ambient_replicas()), costs(&run));
    let predicted = |found: &Found| {
        let scaling = scaling_of(found, "sidecar", ScaledQuantity::Memory);
        scaling.held_out.iter().map(|cell| cell.predicted).collect::<Vec<_>>()
    };
    assert_eq!(predicted(&sound), predicted(&spoilt));
    assert!(scaling_of(&spoilt, "sidecar", ScaledQuantity::Memory).held_out[0].error < -0.5);
}

#[test]
fn two_sizes_make_a_line_and_leave_none_to_hold_out() {
    let large = |load: &str| load.ends_with("x50") || load.ends_with("x90");
    let mut run = without_loads(large);
    run.plan.loads.retain(|load| !large(&load.name));
    let found = costs(&run);
    assert_holds(scaling_of(&found, "sidecar", ScaledQuantity::Memory).per_pod, 20.0, 1.0);
    assert!(found.scalings.iter().all(|scaling| scaling.held_out.is_empty()));
}

#[test]
fn sidecar_and_ambient_cost_the_same_where_their_lines_meet() {
    let found = costs(&ambient_replicas());
    let memory = crossings_in(&found, ScaledQuantity::Memory);
    assert_eq!(memory.iter().map(|c| c.rate_per_s).collect::<Vec<_>>(), [Some(20.0), Some(50.0)]);
    for crossing in memory {
        assert_eq!([&crossing.below, &crossing.above], ["sidecar", "ambient"]);
        assert_eq!(crossing.measured, (1, 90));
        // 65 + 20 n = 116 + 3 n + 0.1 r
        assert_holds(crossing.pods, (51.0 + 0.1 * crossing.rate_per_s.unwrap()) / 17.0, 0.5);
    }
    for crossing in crossings_in(&found, ScaledQuantity::Cpu) {
        // 4 + n + 0.5 r = 12 + 0.2 n + 0.4 r
        assert_holds(crossing.pods, (8.0 - 0.1 * crossing.rate_per_s.unwrap()) / 0.8, 2.0);
    }
}

#[test]
fn a_size_whose_rounds_disagree_is_one_where_both_may_cost_the_same() {
    let alike = |run: &RunRecord| {
        let found = costs(run);
        crossings_in(&found, ScaledQuantity::Memory)[0].alike.clone()
    };
    let mut run = ambient_replicas();
    assert_eq!(alike(&run), [0; 0]);
    each_slice(&mut run, |round, arm, slice| {
        if slice.load == "get-20x1" && arm.variant == "ambient" {
            // From far below the sidecar's to far above it, round after round.
            remember(slice, (round as u64) << 24);
        }
    });
    assert_eq!(alike(&run), [1]);
}

#[test]
fn what_is_in_every_variant_crosses_none() {
    let found = costs(&ambient_replicas());
    let named = |c: &Crossing| [c.below.clone(), c.above.clone()];
    assert!(!found.crossings.is_empty());
    assert!(!found.crossings.iter().flat_map(named).any(|name| name == "bare"));
}

/// The sidecars' arms under the name of the other variant.
fn of_sidecars(arms: &[ArmRecord]) -> Vec<ArmRecord> {
    let mut copies: Vec<ArmRecord> =
        arms.iter().filter(|of| of.arm.variant == "sidecar").cloned().collect();
    copies.iter_mut().for_each(|of| of.arm.variant = "ambient".into());
    copies
}

#[test]
fn variants_whose_pods_cost_the_same_have_no_crossing() {
    let mut run = ambient_replicas();
    // The second is the first with another name and the slices of other rounds.
    let sidecars: Vec<_> = run.rounds.iter().map(|round| of_sidecars(&round.arms)).collect();
    for (at, round) in run.rounds.iter_mut().enumerate() {
        round.arms.retain(|of| of.arm.variant != "ambient");
        round.arms.extend(sidecars[(at + 1) % sidecars.len()].clone());
    }
    let found = costs(&run);
    assert!(crossings_in(&found, ScaledQuantity::Memory).is_empty(), "{:?}", found.crossings);
}

#[test]
fn a_load_beside_the_sweep_does_not_bend_the_lines() {
    let alone = without_loads(|load| load.starts_with("wake-up"));
    assert_eq!(costs(&ambient_replicas()).scalings, costs(&alone).scalings);
}

#[test]
fn only_cells_of_one_load_on_as_many_nodes_make_a_plane() {
    let mut run = ambient_replicas();
    for load in run.plan.loads.iter_mut().filter(|load| load.name.ends_with("x90")) {
        load.cell.as_mut().unwrap().nodes = Some(2);
    }
    for load in run.plan.loads.iter_mut().filter(|load| load.name.ends_with("x50")) {
        load.cell.as_mut().unwrap().load = "another".into();
    }
    assert_eq!(Sweep::of(&run, &[]).unwrap().sizes(), [1, 10]);
    for load in &mut run.plan.loads {
        load.cell.as_mut().unwrap().nodes = Some(2);
    }
    assert_eq!(Sweep::of(&run, &[]).unwrap().nodes, 2);
}

#[test]
fn without_a_swept_rate_there_is_no_cost_of_a_request() {
    let mut run = without_loads(|load| load.starts_with("get-50x"));
    run.plan.loads.retain(|load| !load.name.starts_with("get-50x"));
    let found = costs(&run);
    let memory = scaling_of(&found, "sidecar", ScaledQuantity::Memory);
    assert_eq!(memory.per_request, None);
    assert_holds(memory.per_pod, 20.0, 0.3);
    assert!(found.crossings.iter().all(|crossing| crossing.rate_per_s.is_none()));
}

#[test]
fn a_run_without_a_sweep_has_no_costs_of_pods() {
    let found = costs(&crate::analysis::fixture::customer_360());
    assert!(found.scalings.is_empty() && found.crossings.is_empty());
    let mut closed = ambient_replicas();
    for load in &mut closed.plan.loads {
        load.release = Release::Closed { connections: 5 };
    }
    assert!(costs(&closed).scalings.is_empty());
}

#[test]
fn a_variant_that_was_skipped_or_never_measured_has_no_line() {
    let mut run = without_arms(ambient_replicas(), |_, arm| arm.variant == "ambient");
    let variants = |found: &Found| -> Vec<String> {
        let memory = |s: &&Scaling| s.quantity == ScaledQuantity::Memory;
        found.scalings.iter().filter(memory).map(|s| s.variant.clone()).collect()
    };
    assert_eq!(variants(&costs(&run)), ["bare", "sidecar"]);
    run.plan.variants[1].state = VariantState::Skipped("no Envoy".into());
    assert_eq!(variants(&costs(&run)), ["bare"]);
}

#[test]
fn an_invalid_slice_takes_no_part() {
    let mut run = ambient_replicas();
    each_slice(&mut run, |round, _, slice| {
        if round == 1 && slice.load == "get-20x90" {
            slice.invalid = vec!["crashed".into()];
            slice.samples.clear();
        }
    });
    let of = |found: &Found| {
        let scaling = scaling_of(found, "bare", ScaledQuantity::Memory);
        scaling.points.iter().map(|p| p.measured.rounds).collect::<Vec<_>>()
    };
    assert_eq!(of(&costs(&ambient_replicas())), [5; 8]);
    assert_eq!(of(&costs(&run)), [5, 5, 5, 4, 5, 5, 5, 5]);
}

#[test]
fn one_round_gives_a_line_all_the_same() {
    let mut run = ambient_replicas();
    run.rounds.truncate(1);
    let found = costs(&run);
    let memory = scaling_of(&found, "sidecar", ScaledQuantity::Memory);
    assert_eq!(memory.per_pod.rounds, 1);
    assert!((memory.per_pod.value - 20.0).abs() < 0.5);
}
