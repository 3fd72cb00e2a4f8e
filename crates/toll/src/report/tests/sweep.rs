//! What a reader must find in the report of a sweep.

use super::*;
use crate::analysis::findings::{ScaledQuantity, Scaling};

#[test]
fn the_first_screen_of_a_sweep() {
    insta::assert_snapshot!(terminal(&ambient_replicas(), RUN_DIR, 80, false));
}

fn with_crossings(pods: &[(f64, f64)]) -> Findings {
    let mut findings = ambient_replicas();
    findings.crossings.truncate(pods.len());
    for (crossing, (low, high)) in findings.crossings.iter_mut().zip(pods) {
        let value = f64::midpoint(*low, *high);
        crossing.pods = Estimate { value, low: *low, high: *high, ..crossing.pods };
    }
    findings
}

/// What is said of where the first two variants cross.
fn crossing_of(findings: &Findings) -> String {
    let told = told(findings);
    let list = told.split("memory of all pods. * ").nth(1).unwrap();
    let said = list.split(" * ").next().unwrap().split(" fixed ").next().unwrap();
    said.split(" (the lines cross").next().unwrap().trim_end_matches('.').to_owned() + "."
}

#[test]
fn what_a_pod_costs_is_a_line_of_the_first_screen() {
    let screen = screen_of(&ambient_replicas());
    let said = "each further nginx pod takes, in MiB, 1.31 with bare, 16.70 with sidecar and 1.43 with ambient";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn a_narrow_interval_of_a_large_difference_has_two_ends() {
    let mut findings = mesher();
    let effect = headline_effect(&mut findings, Metric::LatencyP50);
    effect.difference =
        Estimate { value: 1_262_100.0, low: 1_259_600.0, high: 1_264_600.0, ..effect.difference };
    let said = answer_of(&findings);
    assert!(said.contains("to p50 (1,260 to 1,265)"), "{said}");
}

#[test]
fn the_crossing_is_the_first_whole_pod_beyond_the_interval() {
    let findings = with_crossings(&[(0.68, 1.48), (2.1, 4.3)]);
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 requests/s and from 5 to 90 pods at 50 requests/s.";
    assert_eq!(crossing_of(&findings), said);
}

#[test]
fn rates_at_which_lines_cross_at_the_same_number_of_pods_are_named_together() {
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 and 50 requests/s.";
    assert_eq!(crossing_of(&with_crossings(&[(0.68, 1.48), (1.1, 1.9)])), said);
}

#[test]
fn a_crossing_beyond_the_measured_sizes_is_a_verdict_for_all_of_them() {
    let said = |ends| crossing_of(&with_crossings(&[ends]));
    let always = "ambient takes less memory than sidecar from 1 to 90 pods at 20 requests/s.";
    assert_eq!(said((-3.0, 0.9)), always);
    let never = "sidecar takes less memory than ambient from 1 to 90 pods at 20 requests/s.";
    assert_eq!(said((96.0, 130.0)), never);
}

#[test]
fn no_verdict_reaches_beyond_the_sizes_that_were_measured() {
    let mut findings = with_crossings(&[(2.1, 4.3)]);
    findings.crossings[0].measured = (10, 50);
    let said = "ambient takes less memory than sidecar from 10 to 50 pods at 20 requests/s.";
    assert_eq!(crossing_of(&findings), said);
    findings.crossings[0].pods = Estimate { low: 45.0, high: 49.5, ..findings.crossings[0].pods };
    let said = "ambient takes less memory than sidecar with 50 pods at 20 requests/s.";
    assert_eq!(crossing_of(&findings), said);
}

#[test]
fn sizes_whose_own_rounds_tell_nothing_are_left_out_of_what_the_lines_say() {
    let mut findings = with_crossings(&[(-3.0, 0.9)]);
    findings.crossings[0].alike = vec![1];
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 requests/s.";
    assert_eq!(crossing_of(&findings), said);
    findings.crossings[0].alike = vec![90];
    let said =
        "from how many pods on ambient takes less memory than sidecar is unclear at 20 requests/s.";
    assert_eq!(crossing_of(&findings), said);
}

#[test]
fn a_crossing_whose_interval_reaches_past_the_largest_size_cannot_be_told() {
    let said =
        "from how many pods on ambient takes less memory than sidecar is unclear at 20 requests/s.";
    assert_eq!(crossing_of(&with_crossings(&[(40.0, 120.0)])), said);
}

#[test]
fn of_a_slope_whose_interval_holds_zero_the_most_is_told_and_without_an_interval_nothing() {
    let mut findings = ambient_replicas();
    findings.scalings[1].per_pod.low = -0.02;
    let said = "in mCPU, at most 0.035 with bare, 1.190 with sidecar and 0.034 with ambient";
    assert!(screen_of(&findings).contains(said), "{}", screen_of(&findings));
    findings.scalings[1].per_pod.rounds = 1;
    let said = "in mCPU, what needs a second round with bare";
    assert!(screen_of(&findings).contains(said), "{}", screen_of(&findings));
}

#[test]
fn what_a_prediction_of_added_latency_is_off_by_is_told_in_its_unit() {
    let mut findings = ambient_replicas();
    let added = |s: &&mut Scaling| s.quantity == ScaledQuantity::AddedP50;
    let sidecar = findings.scalings.iter_mut().find(added).expect("it is fitted");
    let held = &mut sidecar.held_out[0];
    held.measured.value = 1.0;
    held.predicted.value = 41.0;
    held.error = 40.0;
    let page = html(&findings).replace('\u{a0}', " ");
    assert!(page.contains("added p50 is off by 40.0 µs at most"), "{page}");
    assert!(!page.contains("+4,000 %"));
}

#[test]
fn service_time_that_falls_in_the_baseline_too_is_not_blamed_on_the_mesh() {
    let said = "the median falls by 119 µs (103 to 135) from 20 to 800 requests/s in bare, too: waking up, no variant's cost";
    assert!(html(&ambient_replicas()).replace('\u{a0}', " ").contains(said));
    let mut findings = ambient_replicas();
    let bare = &mut findings.service_times[0].variants[0];
    bare.fall = bare.fall.map(|fall| Estimate { high: 4.0, ..fall });
    let said =
        "whether the median falls from 20 to 800 requests/s in bare is unclear (−135.3 to +4.0 µs)";
    assert!(html(&findings).replace('\u{a0}', " ").contains(said));
}

#[test]
fn the_report_names_the_node_proxy_that_played_the_part() {
    let said = "a node proxy (Envoy in ztunnel's place) on each node, mTLS strict";
    let page = html(&ambient_replicas());
    assert!(page.split("<details").next().unwrap().contains(said), "on the first screen");
    assert!(told(&ambient_replicas()).contains(said));
}

#[test]
fn what_kubectl_top_would_show_stands_beside_the_counters() {
    let said = "ambient: counters say 47.2m, kubectl top would show 109m: 92 pods rounded up";
    assert!(told(&ambient_replicas()).contains(said));
}

#[test]
fn every_cell_is_folded_in_the_page_and_so_is_its_summary_by_vegeta() {
    let page = html(&ambient_replicas());
    let cells = between(&page, "<summary><h3>", "</h3>");
    assert_eq!(cells.iter().filter(|title| title.contains("pod")).count(), 10);
    assert_eq!(page.matches("<h3>As vegeta sums it up").count(), 10);
}

#[test]
fn the_charts_of_a_sweep_are_in_the_page_with_a_text_for_each() {
    let page = html(&ambient_replicas());
    let ids = attributes(&page, "id");
    for chart in [
        "scaling-memory-20",
        "scaling-memory-50",
        "scaling-CPU-20",
        "scaling-CPU-50",
        "service-times-1",
    ] {
        assert!(ids.contains(&chart), "{chart}: {ids:?}");
    }
    let memory = page.split("id=\"scaling-memory-20\"").nth(1).unwrap();
    let memory = memory.split("</figure>").next().unwrap();
    for mark in [
        "class=\"band\"",
        "class=\"hollow\"",
        "class=\"crossing\"",
        "sidecar, 90 pods as predicted",
    ] {
        assert!(memory.contains(mark), "{mark}");
    }
}

#[test]
fn a_study_without_cells_has_none_of_this() {
    for report in [html(&mesher()), markdown(&mesher()), told(&mesher())] {
        for absent in ["What grows", "kubectl top would", "As vegeta", "All sizes", "Cell by cell"]
        {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}

#[test]
fn a_forge_takes_the_markdown_report_of_a_sweep() {
    let report = markdown(&ambient_replicas());
    assert!(report.chars().count() < 65_536, "{}", report.chars().count());
}

#[test]
fn what_is_recomputed_against_another_variant_names_both() {
    let report = markdown(&ambient_replicas());
    assert!(report.contains("ambient against sidecar, memory of all groups, ratio"), "{report}");
}

#[test]
fn where_nodes_are_swept_it_is_told_on_how_many_the_lines_are() {
    let mut findings = ambient_replicas();
    for cell in findings.loads.iter_mut().filter_map(|load| load.cell.as_mut()) {
        cell.nodes = Some(2);
    }
    assert!(told(&findings).contains("all sizes and rates on 2 nodes:"));
    assert!(!told(&ambient_replicas()).contains(" on 2 nodes"));
}
