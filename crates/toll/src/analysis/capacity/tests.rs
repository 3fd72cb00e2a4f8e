//! Answers of a made-up run whose truth is known, and questions that it must not answer.

use super::*;
use crate::analysis::fixture::customer_360;
use crate::analysis::fixture::replicas::{TRUTH, ambient_replicas};

fn ask(pods: usize, rate_per_s: f64) -> Question {
    Question { pods, rate_per_s, extrapolate: false }
}

fn of<'a>(answer: &'a Capacity, variant: &str, quantity: ScaledQuantity) -> &'a Prediction {
    let variant = answer.variants.iter().find(|v| v.variant == variant).unwrap();
    variant.predictions.iter().find(|p| p.quantity == quantity).unwrap()
}

#[test]
fn a_fleet_between_the_measured_sizes_costs_what_the_truth_says() {
    let answer = capacity(&ambient_replicas(), &ask(40, 30.0)).unwrap();
    for truth in TRUTH {
        let memory = of(&answer, truth.variant, ScaledQuantity::Memory);
        let cpu = of(&answer, truth.variant, ScaledQuantity::Cpu);
        for (prediction, costs, within) in [(memory, truth.memory, 0.02), (cpu, truth.cpu, 0.05)] {
            let (expected, seen) = (costs.at(40, 30.0), prediction.predicted);
            assert!((seen.value / expected - 1.0).abs() < within, "{seen:?} for {expected}");
            assert!(seen.low < expected && expected < seen.high, "{seen:?} for {expected}");
            assert!(!prediction.extrapolated);
            assert_eq!(prediction.held_out.len(), 2);
        }
    }
    assert!(answer.outside.is_empty());
}

#[test]
fn the_baseline_adds_nothing_to_itself() {
    let answer = capacity(&ambient_replicas(), &ask(40, 30.0)).unwrap();
    let quantities = |at: usize| -> Vec<ScaledQuantity> {
        answer.variants[at].predictions.iter().map(|p| p.quantity).collect()
    };
    assert_eq!(quantities(0), [ScaledQuantity::Memory, ScaledQuantity::Cpu]);
    assert_eq!(quantities(1), QUANTITIES);
    let added = of(&answer, "sidecar", ScaledQuantity::AddedP50).predicted;
    let expected = TRUTH[1].p50.at(40, 30.0) - TRUTH[0].p50.at(40, 30.0);
    assert!(added.low < expected && expected < added.high, "{added:?} for {expected}");
}

#[test]
fn outside_of_the_measured_sizes_and_rates_there_is_no_answer_but_how_far_it_is() {
    let refused =
        |pods, rate| capacity(&ambient_replicas(), &ask(pods, rate)).unwrap_err().to_string();
    assert_eq!(refused(180, 30.0), "180 pods are 2.0 times the largest measured, 90");
    assert_eq!(refused(40, 10.0), "10 requests/s are 0.5 times the smallest measured, 20");
    assert_eq!(
        refused(91, 500.0),
        "91 pods are 1.011 times the largest measured, 90; 500 requests/s are 10.0 times the largest measured, 50"
    );
}

#[test]
fn the_ends_of_what_was_measured_are_inside() {
    for (pods, rate) in [(1, 20.0), (90, 50.0)] {
        assert!(capacity(&ambient_replicas(), &ask(pods, rate)).is_ok());
    }
}

#[test]
fn an_extrapolated_answer_marks_every_figure_and_is_less_certain() {
    let run = ambient_replicas();
    let answer = capacity(&run, &Question { extrapolate: true, ..ask(180, 50.0) }).unwrap();
    let predictions = || answer.variants.iter().flat_map(|v| &v.predictions);
    assert!(predictions().all(|p| p.extrapolated));
    assert_eq!(answer.outside.len(), 1);
    let inside = capacity(&run, &Question { extrapolate: true, ..ask(90, 50.0) }).unwrap();
    assert!(inside.outside.is_empty());
    let width = |answer: &Capacity| {
        let memory = of(answer, "sidecar", ScaledQuantity::Memory).predicted;
        memory.high - memory.low
    };
    assert!(width(&answer) > width(&inside));
}

#[test]
fn a_run_without_a_sweep_says_which_would_answer() {
    let refused = capacity(&customer_360(), &ask(2, 20.0)).unwrap_err();
    assert!(matches!(refused, CapacityError::NoSweep { .. }), "{refused}");
    assert!(refused.help().contains("toll run ambient-replicas"));
}

#[test]
fn a_run_that_measured_nothing_yet_says_so() {
    let mut run = ambient_replicas();
    run.rounds.clear();
    let refused = capacity(&run, &ask(40, 30.0)).unwrap_err();
    assert!(matches!(refused, CapacityError::TooFew { .. }), "{refused}");
    assert!(refused.help().contains("--resume"));
}

#[test]
fn a_rate_that_was_not_swept_is_answered_for_that_rate_alone() {
    let mut run = ambient_replicas();
    run.plan.loads.retain(|load| !load.name.starts_with("get-50x"));
    assert!(capacity(&run, &ask(40, 20.0)).is_ok());
    let refused = capacity(&run, &Question { extrapolate: true, ..ask(40, 30.0) }).unwrap_err();
    assert_eq!(refused, CapacityError::OneRate { asked: 30.0, measured: 20.0 });
    assert!(refused.help().contains("--rate 20"));
}
