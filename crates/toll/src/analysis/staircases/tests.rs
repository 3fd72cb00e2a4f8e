//! Lines and differences of a made-up staircase whose truth is known.

use super::*;
use crate::analysis::findings;
use crate::analysis::findings::{Findings, Verdict};
use crate::analysis::fixture::staircase::{
    ANSWER_BYTES, BASELINE, STAIRCASE, STEPS, Shape, TRUTH, Truth, egress_gateway, run,
};
use crate::plan::VariantState;

fn climbed(run: &RunRecord) -> Staircase {
    let valid = crate::analysis::valid(run);
    let [staircase] = staircases(run, &valid).try_into().expect("one load is swept");
    staircase
}

/// A run of four steps, of which nothing but the scatter differs between seeds.
fn seeded(seed: u64) -> RunRecord {
    run(&Shape { seed, blocks: 5, steps: &[1, 10, 20, 60], latencies: 1 })
}

fn difference<'a>(
    staircase: &'a Staircase,
    variant: &str,
    against: &str,
) -> &'a StaircaseDifference {
    let is = |d: &&StaircaseDifference| d.variant == variant && d.against == against;
    staircase.differences.iter().find(is).expect("the pair is compared")
}

#[test]
fn every_variant_has_a_line_in_the_order_of_the_study_with_a_step_for_each_number_of_clients() {
    let found = climbed(&egress_gateway());
    assert_eq!(found.load, STAIRCASE);
    let variants: Vec<&str> = found.lines.iter().map(|line| line.variant.as_str()).collect();
    assert_eq!(variants, TRUTH.map(|truth| truth.variant));
    for line in &found.lines {
        let steps: Vec<u32> = line.steps.iter().map(|step| step.connections).collect();
        assert_eq!(steps, STEPS);
        for step in &line.steps {
            let truth = Truth::of(&line.variant);
            let expected = truth.per_s(step.connections);
            let seen = step.throughput_per_s;
            assert!((seen.value / expected - 1.0).abs() < 0.06, "{line:?} {expected}");
            assert_eq!(
                (seen.blocks, step.load.as_str()),
                (5, &*format!("clients-{}", step.connections))
            );
            assert_eq!(step.mesh_cpu_us.is_some(), line.variant != "none");
        }
    }
}

#[test]
fn each_variant_is_held_against_the_baseline_and_then_against_the_one_before_it() {
    let found = climbed(&egress_gateway());
    let pairs: Vec<(&str, &str)> =
        found.differences.iter().map(|d| (d.variant.as_str(), d.against.as_str())).collect();
    let expected = [
        ("none", "bypass"),
        ("sidecar", "bypass"),
        ("gateway", "bypass"),
        ("gateway-mtls", "bypass"),
        ("gateway-sni", "bypass"),
        ("gateway", "sidecar"),
        ("gateway-mtls", "gateway"),
        ("gateway-sni", "gateway-mtls"),
    ];
    assert_eq!(pairs, expected);
}
