//! What a person reads of a fleet.

use super::*;
use crate::analysis::capacity::{Question, capacity as ask};
use crate::analysis::fixture::replicas::ambient_replicas;

fn answer(pods: usize, extrapolate: bool) -> Capacity {
    ask(&ambient_replicas(), &Question { pods, rate_per_s: 30.0, extrapolate }).unwrap()
}

#[test]
fn the_answer_fits_80_columns() {
    let text = capacity(&answer(40, false), 80, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn every_extrapolated_figure_is_marked_and_the_mark_explained() {
    let text = capacity(&answer(180, true), 80, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let rows = ["  bare ", "  sidecar ", "  ambient "];
    let figures: Vec<&str> =
        text.lines().filter(|line| rows.iter().any(|row| line.starts_with(row))).collect();
    assert_eq!(figures.len(), 10);
    assert!(figures.iter().all(|line| line.contains(" * ")), "{text}");
    assert!(text.contains("* Outside of what was measured: 180 pods are 2.0 times the largest"));
    assert!(!capacity(&answer(40, false), 80, false).contains('*'));
}

#[test]
fn a_fleet_on_more_nodes_is_told_to_pay_for_more_node_proxies() {
    let said = "All of it is on 1 node: ambient has 1 proxy, and a fleet on more nodes pays for one more on each.";
    let text = |answer: &Capacity| capacity(answer, 200, false).replace('\u{a0}', " ");
    assert!(text(&answer(40, false)).contains(said));
    let mut without = answer(40, false);
    without.variants.retain(|variant| variant.variant != "ambient");
    assert!(!text(&without).contains("more nodes"));
}

#[test]
fn the_json_has_every_digit_and_the_cells_behind_the_error() {
    let answer = answer(40, false);
    let json: serde_json::Value = serde_json::from_str(&capacity_json(&answer)).unwrap();
    let memory = &json["variants"][1]["predictions"][0];
    assert_eq!(memory["quantity"], "memory");
    assert_eq!(memory["predicted"]["value"], answer.variants[1].predictions[0].predicted.value);
    assert_eq!(memory["held_out"][0]["fitted_on"], serde_json::json!([1, 10, 50]));
    assert_eq!(json["measured"]["pods"], serde_json::json!([1, 10, 50, 90]));
    assert_eq!(json["measured"]["nodes"], 1);
}

#[test]
fn an_added_latency_whose_interval_holds_zero_cannot_be_told() {
    let said = |answer: &Capacity| {
        let text = capacity(answer, 80, false);
        let added =
            text.split("added to p50").nth(1).unwrap().split("added to p99").next().unwrap();
        added.lines().find(|line| line.starts_with("  sidecar ")).unwrap().to_owned()
    };
    let mut told = answer(40, false);
    assert!(said(&told).ends_with(" higher"), "{}", said(&told));
    let of_sidecar = told.variants.iter_mut().find(|v| v.variant == "sidecar").unwrap();
    let p50 = ScaledQuantity::AddedP50;
    let p50 = of_sidecar.predictions.iter_mut().find(|p| p.quantity == p50).unwrap();
    p50.predicted.low = -12.0;
    assert!(said(&told).ends_with(" cannot tell"), "{}", said(&told));
}

#[test]
fn an_error_that_is_nothing_in_the_unit_of_its_column_is_told_in_its_own() {
    let seconds = Scale::of(quantity(ScaledQuantity::AddedP99), [2.5e6]);
    let shown = |off| shown_off(ScaledQuantity::AddedP99, seconds, off).replace('\u{a0}', " ");
    assert_eq!(shown(41.0), "+41.0 µs");
    assert_eq!(shown(-41.0), "−41.0 µs");
    assert_eq!(shown(60_000.0), "+0.06");
    assert_eq!(shown(0.0), "0.00");
}
