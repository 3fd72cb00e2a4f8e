//! What a reader must find in the report of a sweep.

use super::*;
use crate::analysis::findings::{Effect, ScaledQuantity, Scaling};

#[test]
fn the_report_of_a_sweep_fits_80_columns() {
    insta::assert_snapshot!(terminal(&ambient_replicas(), 80, false));
}

#[test]
fn the_terminal_report_of_ten_cells_is_no_longer_than_200_lines() {
    let lines = terminal(&ambient_replicas(), 80, false).lines().count();
    assert!(lines <= 200, "{lines} lines");
}

/// What a terminal shows of `findings`, on lines as long as they need to be.
fn told(findings: &Findings) -> String {
    terminal(findings, 110, false).replace("\n  ", " ").replace('\u{a0}', " ")
}

fn answers_of(findings: &Findings) -> Vec<String> {
    answers::answers(findings).iter().map(|answer| answer.replace('\u{a0}', " ")).collect()
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

#[test]
fn the_markdown_report_of_a_sweep_has_the_same_tables_and_folds_its_cells() {
    insta::assert_snapshot!(markdown(&ambient_replicas()));
}

#[test]
fn the_answer_of_a_sweep_is_what_the_variants_take_against_each_other_at_the_largest_size() {
    assert_eq!(
        answers_of(&ambient_replicas())[0],
        "With 90 nginx pods at 50 requests/s ambient against sidecar takes 0.286 ms off p50 (0.281 to 0.291), 0.394 ms off p99 (0.388 to 0.400), 1,360 MiB off memory (1,310 to 1,420) and saves 2,030 µs CPU per request (−68 %)."
    );
}

#[test]
fn a_narrow_interval_of_a_large_difference_has_two_ends() {
    let mut findings = ambient_replicas();
    let memory = |e: &&mut Effect| e.metric == Metric::Memory;
    for effect in findings.loads.iter_mut().flat_map(|l| &mut l.between).filter(memory) {
        let mib = |count: f64| count * 1_048_576.0;
        let (value, low, high) = (mib(-1_262.1), mib(-1_264.6), mib(-1_259.6));
        effect.difference = Estimate { value, low, high, ..effect.difference };
    }
    let answer = answers_of(&findings).remove(0);
    assert!(answer.contains("1,262 MiB off memory (1,260 to 1,265)"), "{answer}");
}

#[test]
fn what_cannot_be_told_between_variants_is_an_aside_of_the_answer() {
    let mut findings = ambient_replicas();
    let p99 = |e: &&mut Effect| e.metric == Metric::LatencyP99;
    for effect in findings.loads.iter_mut().flat_map(|l| &mut l.between).filter(p99) {
        effect.verdict = Verdict::CannotTell { floor: 410.0, more_blocks: Some(7) };
    }
    let answer = answers_of(&findings).remove(0);
    let aside =
        "(−68 %); its effect on p99 cannot be told (the noise floor is 410 µs; run 7 more blocks).";
    assert!(answer.ends_with(aside) && !answer.contains("off p99"), "{answer}");
}

#[test]
fn the_crossing_is_the_first_whole_pod_beyond_the_interval() {
    let findings = with_crossings(&[(0.68, 1.48), (2.1, 4.3)]);
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 requests/s and from 5 to 90 pods at 50 requests/s.";
    assert_eq!(answers_of(&findings)[1], said);
}

#[test]
fn rates_at_which_lines_cross_at_the_same_number_of_pods_are_named_together() {
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 and 50 requests/s.";
    assert_eq!(answers_of(&with_crossings(&[(0.68, 1.48), (1.1, 1.9)]))[1], said);
}

#[test]
fn a_crossing_beyond_the_measured_sizes_is_a_verdict_for_all_of_them() {
    let said = |ends| answers_of(&with_crossings(&[ends])).remove(1);
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
    assert_eq!(answers_of(&findings)[1], said);
    findings.crossings[0].pods = Estimate { low: 45.0, high: 49.5, ..findings.crossings[0].pods };
    let said = "ambient takes less memory than sidecar with 50 pods at 20 requests/s.";
    assert_eq!(answers_of(&findings)[1], said);
}

#[test]
fn sizes_whose_own_trials_tell_nothing_are_left_out_of_what_the_lines_say() {
    let mut findings = with_crossings(&[(-3.0, 0.9)]);
    findings.crossings[0].alike = vec![1];
    let said = "ambient takes less memory than sidecar from 2 to 90 pods at 20 requests/s.";
    assert_eq!(answers_of(&findings)[1], said);
    findings.crossings[0].alike = vec![90];
    let said = "from how many pods on ambient takes less memory than sidecar cannot be told at 20 requests/s.";
    assert_eq!(answers_of(&findings)[1], said);
}

#[test]
fn a_crossing_whose_interval_reaches_past_the_largest_size_cannot_be_told() {
    let said = "from how many pods on ambient takes less memory than sidecar cannot be told at 20 requests/s.";
    assert_eq!(answers_of(&with_crossings(&[(40.0, 120.0)]))[1], said);
}

#[test]
fn of_a_slope_whose_interval_holds_zero_the_most_is_told_and_without_an_interval_nothing() {
    let mut findings = ambient_replicas();
    findings.scalings[1].per_pod.low = -0.02;
    let said = "in mCPU, at most 0.035 with bare, 1.190 with sidecar and 0.034 with ambient";
    assert!(answers_of(&findings)[3].contains(said), "{:?}", answers_of(&findings));
    findings.scalings[1].per_pod.blocks = 1;
    let said = "in mCPU, what cannot be told with bare, 1.190 with sidecar and 0.034 with ambient";
    assert!(answers_of(&findings)[3].contains(said), "{:?}", answers_of(&findings));
}

#[test]
fn a_fixed_part_or_a_cost_of_a_request_whose_interval_holds_zero_is_left_to_the_table() {
    let mut findings = ambient_replicas();
    let ends = |findings: &Findings| {
        let said = answers_of(findings).remove(3);
        said.split_once("0.034 with ambient").expect("a pod is told").1.to_owned()
    };
    let mut bare = findings.scalings.iter_mut().filter(|s| s.variant == "bare");
    let bare = bare.find(|s| s.quantity == ScaledQuantity::Cpu).expect("it is fitted");
    bare.fixed.low = 0.1;
    assert_eq!(
        ends(&findings),
        ", on top of 0.900, 1.90 and 3.10 and of 0.530, 0.780 and 0.820 for each request/s."
    );
    assert_eq!(ends(&ambient_replicas()), ", on top of 0.530, 0.780 and 0.820 for each request/s.");
    for scaling in &mut findings.scalings {
        scaling.fixed.low = -1.0;
        scaling.per_request = scaling.per_request.map(|part| Estimate { low: -1.0, ..part });
    }
    assert_eq!(ends(&findings), ".");
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
    let said = "The median service time falls by 119 µs (103 to 135) from 20 to 800 requests/s in bare, too: most likely that is waking up, no variant's cost.";
    assert_eq!(answers_of(&ambient_replicas())[4], said);
    let mut findings = ambient_replicas();
    let bare = &mut findings.service_times[0].variants[0];
    bare.fall = bare.fall.map(|fall| Estimate { high: 4.0, ..fall });
    let said = "Whether the median service time falls from 20 to 800 requests/s in bare cannot be told (−135.3 to +4.0 µs).";
    assert_eq!(answers_of(&findings)[4], said);
    let bare = &mut findings.service_times[0].variants[0];
    bare.fall = bare.fall.map(|fall| Estimate { blocks: 1, ..fall });
    let said =
        "Whether the median service time falls from 20 to 800 requests/s in bare cannot be told.";
    assert_eq!(answers_of(&findings)[4], said, "one block has no interval");
}

#[test]
fn the_report_names_the_node_proxy_that_played_the_part() {
    let said = "a node proxy (Envoy in ztunnel's place) on each node, mTLS strict";
    for report in [told(&ambient_replicas()), html(&ambient_replicas())] {
        assert!(report.contains(said), "{report}");
    }
}

#[test]
fn what_kubectl_top_would_show_stands_beside_the_counters() {
    let said = "ambient: counters say 47.2m, kubectl top would show 109m: 92 pods rounded up";
    assert!(told(&ambient_replicas()).contains(said));
}

#[test]
fn every_cell_is_folded_in_the_page_with_its_effects_and_its_summary_by_vegeta() {
    let page = html(&ambient_replicas());
    let folded = between(&page, "<details", "</details>");
    assert_eq!(folded.len(), 11, "ten cells and the trials");
    let parts = ["bytes of bodies", "noise floor", "ambient against sidecar", "As vegeta sums up"];
    for cell in &folded[..10] {
        for part in parts {
            assert!(cell.contains(part), "{part}: {cell}");
        }
    }
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
fn many_trials_that_do_not_count_are_told_by_what_they_failed_in() {
    let mut findings = ambient_replicas();
    for (trial, why) in findings
        .trials
        .iter_mut()
        .zip(["send-lag: p99 1 ms", "crashed: nginx-1"].iter().cycle())
        .take(9)
    {
        trial.invalid = Some((*why).into());
    }
    let said = told(&findings);
    assert_eq!(said.matches("does not count").count(), 2, "{said}");
    assert!(said.contains("does not count: send-lag: p99 1 ms; 4 more for send-lag"), "{said}");
    assert!(said.contains("does not count: crashed: nginx-1; 3 more for crashed"), "{said}");
    for trial in findings.trials.iter_mut().skip(5) {
        trial.invalid = None;
    }
    assert_eq!(told(&findings).matches("does not count").count(), 5);
}

#[test]
fn a_sweep_that_lost_its_largest_size_says_that_nothing_can_be_told() {
    let mut findings = ambient_replicas();
    for load in findings.loads.iter_mut().filter(|load| load.name.ends_with("x90")) {
        load.effects.clear();
        load.between.clear();
    }
    assert_eq!(
        answers_of(&findings),
        ["Nothing can be told: the largest size has no two variants to compare."]
    );
}

#[test]
fn a_study_without_cells_has_none_of_this() {
    for report in [html(&customer_360()), markdown(&customer_360()), told(&customer_360())] {
        for absent in ["What grows", "kubectl top would", "<details", "As vegeta", "All cells"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}

#[test]
fn a_forge_takes_the_markdown_report_of_a_sweep() {
    let report = markdown(&ambient_replicas());
    assert!(report.chars().count() < 65_536, "{}", report.chars().count());
    assert_eq!(report.matches("<details>").count(), 3, "two cells and the trials");
}

#[test]
fn what_is_recomputed_against_another_variant_names_both() {
    let report = markdown(&ambient_replicas());
    assert!(report.contains("ambient against sidecar, memory of all groups, ratio"), "{report}");
}

#[test]
fn where_nodes_are_swept_it_is_told_on_how_many_the_lines_and_their_crossings_are() {
    let mut findings = ambient_replicas();
    for cell in findings.loads.iter_mut().filter_map(|load| load.cell.as_mut()) {
        cell.nodes = Some(2);
    }
    let crossing = answers_of(&findings).into_iter().find(|said| said.contains("takes less"));
    assert!(crossing.is_some_and(|said| said.contains(" on 2 nodes. ")));
    assert!(told(&findings).contains("all sizes and rates on 2 nodes:"));
    assert!(!told(&ambient_replicas()).contains(" on 2 nodes"));
}
