//! What a reader must find in every report, and what no findings may do to it.

mod ambient_replicas;
mod egress_gateway;
mod fixture;
mod made_up;
mod petclinic;
mod schema;
mod sentences;
mod staircase;
mod sweep;

use super::composition::Document;
use super::sections::Detail;
use super::*;
use crate::analysis::findings::{
    Caveat, CaveatKind, Effect, Estimate, Extent, Metric, Verdict, View,
};

/// Where every run of these tests is kept.
pub const RUN_DIR: &str = "runs/20261123-1402-mesher";

fn read(text: &str) -> Findings {
    serde_json::from_str(text).unwrap()
}

pub fn mesher() -> Findings {
    read(include_str!("../../tests/fixtures/findings-mesher.json"))
}

pub fn edges() -> Findings {
    read(include_str!("../../tests/fixtures/findings-edges.json"))
}

/// Made up: gateway, database, sidecars, published figures and discarded runs.
pub fn customer_360() -> Findings {
    crate::analysis::findings(&crate::analysis::fixture::customer_360())
}

pub fn petclinic() -> Findings {
    fixture::petclinic()
}

pub fn ambient_replicas() -> Findings {
    ambient_replicas::ambient_replicas()
}

pub fn egress_gateway() -> Findings {
    egress_gateway::egress_gateway()
}

fn nothing() -> Findings {
    Findings { loads: vec![], proofs: vec![], rounds: vec![], ..mesher() }
}

/// Every number that an analysis of broken data could leave undefined.
fn undefined() -> Findings {
    let mut findings = mesher();
    let no_number = Estimate {
        value: f64::NAN,
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        level: 0.95,
        rounds: 0,
    };
    for load in &mut findings.loads {
        for effect in &mut load.effects {
            effect.difference = no_number;
            effect.ratio = no_number;
            effect.trimmed_ratio = Some(f64::NAN);
            effect.unexcused_ratio = Some(no_number);
            effect.verdict = effect.verdict.map(|_| Verdict::CannotTell { more_rounds: None });
        }
        for variant in &mut load.variants {
            variant.metrics.iter_mut().for_each(|m| m.1 = no_number);
            variant.cpu_per_request.iter_mut().for_each(|c| c.cost = no_number);
            variant.throughput_by_round = vec![f64::NAN];
            variant.latency_curve[0].merged_us = f64::NAN;
            variant.latency_curve[1].high_us = f64::INFINITY;
            variant.memory.iter_mut().for_each(|m| m.points[20].1 = f64::NAN);
        }
    }
    findings
}

/// Names and texts as an enemy would choose them.
fn hostile() -> Findings {
    let evil = "<script>alert(1)</script>\"|`\u{1b}[31m";
    let text = serde_json::to_string(&mesher()).unwrap();
    let escaped = serde_json::to_string(evil).unwrap();
    let inside = &escaped[1..escaped.len() - 1];
    read(&text.replace("istio", inside).replace("\"client\"", &escaped))
}

/// The same with every estimate of the chain's own tables left undefined.
fn undefined_chain() -> Findings {
    let text = serde_json::to_string(&customer_360()).unwrap();
    let mut findings = read(&text);
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, rounds: 0 };
    for load in &mut findings.loads {
        for attribution in &mut load.attribution {
            let sums = attribution.counted.iter_mut().chain(&mut attribution.whole);
            attribution.parts.iter_mut().chain(sums).for_each(|line| line.change = gone);
        }
        for pod in load.top_pods.iter_mut().flat_map(|row| &mut row.uses) {
            pod.cpu_millicores.iter_mut().for_each(|m| (m.mean, m.ratio) = (gone, Some(gone)));
        }
        for variant in &mut load.variants {
            variant.traversals.iter_mut().for_each(|t| t.total.per_traversal_us = Some(gone));
            variant.hey.iter_mut().for_each(|hey| hey.average_s = f64::NAN);
        }
        load.recomputed.iter_mut().for_each(|row| row.measured = Some(gone));
    }
    for settled in &mut findings.settled {
        settled.throughput_per_s.0 = gone;
        settled.runs[0].slices[1].throughput_per_s = f64::NAN;
        settled.runs[1].slices.clear();
    }
    findings
}

/// A chain whose services are named by an enemy.
fn hostile_chain() -> Findings {
    let text = serde_json::to_string(&customer_360()).unwrap();
    read(&text.replace("customer", "<b onclick=x>|`").replace("flat-out", "</svg><i>"))
}

/// An agent's findings with every estimate of its own tables and charts left undefined.
fn undefined_agent() -> Findings {
    let mut findings = petclinic();
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, rounds: 0 };
    let (mut without, mut holed) = (findings.span_costs[1].clone(), findings.span_costs[1].clone());
    (without.service, holed.service) = (Some("without".into()), Some("holed".into()));
    without.points.clear();
    holed.points[3].effect_us = gone;
    findings.span_costs.extend([without, holed]);
    findings.span_costs[0].per_span_us = gone;
    for trend in &mut findings.heap_trends {
        trend.series[1] = (f64::NAN, f64::INFINITY);
        trend.mib_per_minute = trend.mib_per_minute.map(|_| f64::NAN);
    }
    findings.heap_trends[0].series.clear();
    for load in &mut findings.loads {
        load.regimes.iter_mut().for_each(|regime| regime.capacity_per_s = 0.0);
        for jvm in load.jvms.iter_mut().flat_map(|row| &mut row.uses) {
            jvm.heap_used_mib.iter_mut().for_each(|m| (m.mean, m.change) = (gone, Some(gone)));
        }
        for k6 in load.variants.iter_mut().filter_map(|v| v.k6.as_mut()) {
            k6.trends[0].avg_us = f64::NAN;
            (k6.total_s, k6.requests) = (0.0, 0);
        }
    }
    findings
}

/// An agent's findings whose pods and loads are named by an enemy.
fn hostile_agent() -> Findings {
    let text = serde_json::to_string(&petclinic()).unwrap();
    read(&text.replace("vets", "<b onclick=x>|`").replace("vus-320", "</svg><i>"))
}

/// A sweep with every estimate of its own tables and charts left undefined.
fn undefined_sweep() -> Findings {
    let mut findings = ambient_replicas();
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, rounds: 0 };
    for (i, scaling) in findings.scalings.iter_mut().enumerate() {
        match i % 3 {
            0 => (scaling.fixed, scaling.per_request) = (gone, None),
            1 => scaling.points[2].measured = gone,
            _ => scaling.points[1].band = Some((f64::NAN, f64::INFINITY)),
        }
        scaling.held_out.iter_mut().for_each(|h| (h.predicted, h.error) = (gone, f64::NAN));
    }
    findings.crossings.iter_mut().for_each(|crossing| crossing.pods = gone);
    for curve in findings.service_times.iter_mut().flat_map(|times| &mut times.variants) {
        curve.points[0].2 = gone;
        curve.fall = Some(gone);
    }
    for load in &mut findings.loads {
        load.between.iter_mut().for_each(|effect| effect.difference = gone);
        load.top_totals.iter_mut().for_each(|top| top.counted_millicores = gone);
        for of in load.resources.iter_mut().flat_map(|row| &mut row.uses) {
            of.cpu_millicores.iter_mut().for_each(|s| (s.mean, s.max) = (gone, f64::NAN));
            of.memory_mib = None;
        }
        for variant in &mut load.variants {
            variant.metrics[0].1 = gone;
            variant.vegeta.iter_mut().for_each(|v| v.latencies_us[6] = f64::NAN);
        }
    }
    findings
}

/// A sweep whose variants, services and loads are named by an enemy.
fn hostile_sweep() -> Findings {
    let text = serde_json::to_string(&ambient_replicas()).unwrap();
    let text = text.replace("\"ambient\"", "\"<b onclick=x>|`\"");
    read(&text.replace("nginx", "</svg><i>").replace("get-", "<u>-"))
}

/// A staircase with every estimate of its own tables and charts left undefined.
fn undefined_staircase() -> Findings {
    let mut findings = egress_gateway();
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, rounds: 0 };
    let stairs = &mut findings.staircases[0];
    stairs.answer_bytes = Some(f64::NAN);
    stairs.lines[0].steps.clear();
    stairs.lines[1].steps[2].throughput_per_s = gone;
    stairs.lines[2].steps[0].mesh_cpu_us = Some(gone);
    stairs.lines[3].steps[3].application_cpu_us = None;
    for difference in &mut stairs.differences {
        difference.throughput_ratio = gone;
        difference.mesh_cpu_us = Some(gone);
        difference.mesh_cpu_ratio = Some(gone);
        difference.application_cpu_us = None;
    }
    for variant in findings.loads.iter_mut().flat_map(|load| &mut load.variants) {
        variant.metrics[0].1 = gone;
        variant.cpu_per_request[0].cost = gone;
    }
    findings
}

/// A staircase whose variants, services and loads are named by an enemy.
fn hostile_staircase() -> Findings {
    let text = serde_json::to_string(&egress_gateway()).unwrap();
    let text = text.replace("gateway-mtls", "<b onclick=x>|`").replace("clients-", "</svg><i>");
    read(&text.replace("airline-db", "<u>"))
}

fn all() -> Vec<Findings> {
    let chains = [customer_360(), undefined_chain(), hostile_chain()];
    let agents = [petclinic(), undefined_agent(), hostile_agent()];
    let others = [mesher(), edges(), nothing(), undefined(), hostile()];
    let sweeps = [ambient_replicas(), undefined_sweep(), hostile_sweep()];
    let stairs = [egress_gateway(), undefined_staircase(), hostile_staircase()];
    others.into_iter().chain(chains).chain(agents).chain(sweeps).chain(stairs).collect()
}

/// Values of `name="..."` in `page`.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn between<'a>(page: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    page.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
}

#[test]
fn no_terminal_line_is_wider_than_the_terminal() {
    for findings in all() {
        for width in [40, 60, 80, 100, 110] {
            let text = terminal(&findings, RUN_DIR, width, false);
            let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "{width}: {widest}");
        }
    }
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    assert!(!terminal(&hostile(), RUN_DIR, 80, false).contains('\u{1b}'));
}

#[test]
fn ids_and_chart_titles_are_unique() {
    for findings in all() {
        let page = html(&findings);
        let titles = between(&page, "-title\">", "</title>");
        for mut names in [attributes(&page, "id"), titles] {
            names.sort_unstable();
            let twice = names.windows(2).find(|w| w[0] == w[1]);
            assert_eq!(twice, None);
        }
    }
}

#[test]
fn every_number_in_a_drawing_is_finite() {
    for findings in all() {
        let page = html(&findings);
        for drawing in between(&page, "<svg", "</svg>") {
            for word in ["NaN", "inf"] {
                let coordinates = [
                    "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "viewBox",
                ];
                for name in coordinates {
                    assert!(attributes(drawing, name).iter().all(|v| !v.contains(word)), "{name}");
                }
            }
        }
    }
}

#[test]
fn no_drawing_has_a_negative_width() {
    for findings in all() {
        let page = html(&findings);
        for name in ["width", "height", "r"] {
            assert!(attributes(&page, name).iter().all(|v| !v.starts_with('-')));
        }
    }
}

#[test]
fn the_page_is_well_formed() {
    for findings in all() {
        let page = html(&findings);
        assert_eq!(unclosed(&page), Vec::<String>::new());
        assert!(between(&page, "<", ">").iter().all(|tag| tag.matches(" class=").count() <= 1));
    }
}

#[test]
fn json_reads_back_as_the_same_findings() {
    assert_eq!(read(&json(&mesher())), mesher());
}

/// Elements that are opened and not closed in order.
fn unclosed(page: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for tag in between(page, "<", ">") {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes in order");
        } else if !matches!(name, "meta" | "!DOCTYPE") {
            open.push(name.to_string());
        }
    }
    open
}

/// `text` on one line, with plain blanks.
fn on_a_line(text: &str) -> String {
    text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The answer with plain blanks.
fn answer_of(findings: &Findings) -> String {
    answer::answer(findings).replace('\u{a0}', " ")
}

/// The first screen of `findings`, on one line.
fn screen_of(findings: &Findings) -> String {
    on_a_line(&terminal(findings, RUN_DIR, 110, false))
}

/// Everything of `findings`, on one line.
fn told(findings: &Findings) -> String {
    on_a_line(&full(findings, 110, false))
}

/// The first effect on `metric` under the headline load.
fn headline_effect(findings: &mut Findings, metric: Metric) -> &mut Effect {
    let name = findings.headline_load.clone();
    let load = findings.loads.iter_mut().find(|load| Some(&load.name) == name.as_ref()).unwrap();
    load.effects.iter_mut().find(|effect| effect.metric == metric).unwrap()
}

/// Only one round was run: no interval, no verdict.
fn one_round() -> Findings {
    let mut findings = mesher();
    findings.extent = Extent { rounds: 1, planned: Some(10), ..findings.extent };
    for effect in findings.loads.iter_mut().flat_map(|load| &mut load.effects) {
        (effect.difference.rounds, effect.ratio.rounds) = (1, 1);
        (effect.verdict, effect.scatter, effect.unexcused_ratio) = (None, None, None);
    }
    findings.loads.iter_mut().for_each(|load| load.again.clear());
    findings
}

/// The median is unclear.
fn unclear() -> Findings {
    let mut findings = mesher();
    let effect = headline_effect(&mut findings, Metric::LatencyP50);
    let difference = Estimate { value: 150.0, low: -200.0, high: 500.0, ..effect.difference };
    let ratio = Estimate { value: 1.12, low: 0.84, high: 1.41, ..effect.ratio };
    (effect.difference, effect.ratio) = (difference, ratio);
    effect.verdict = Some(Verdict::CannotTell { more_rounds: Some(6) });
    findings
}

#[test]
fn the_first_screen_of_two_variants() {
    insta::assert_snapshot!(terminal(&mesher(), RUN_DIR, 80, false));
}

#[test]
fn the_first_screen_of_every_edge() {
    insta::assert_snapshot!(terminal(&edges(), RUN_DIR, 80, false));
}

#[test]
fn the_first_screen_of_one_round() {
    insta::assert_snapshot!(terminal(&one_round(), RUN_DIR, 80, false));
}

#[test]
fn the_first_screen_of_what_cannot_be_told() {
    insta::assert_snapshot!(terminal(&unclear(), RUN_DIR, 80, false));
}

#[test]
fn everything_of_two_variants() {
    insta::assert_snapshot!(full(&mesher(), 100, false));
}

#[test]
fn the_markdown_of_two_variants_is_folded() {
    insta::assert_snapshot!(markdown(&mesher()));
}

#[test]
fn first_screen_fits_40_lines_at_80_columns() {
    let more = [one_round(), unclear(), undefined()];
    for findings in all().into_iter().chain(more) {
        let text = terminal(&findings, RUN_DIR, 80, false);
        assert!(text.lines().count() <= 40, "{} lines:\n{text}", text.lines().count());
    }
}

#[test]
fn many_caveats_take_three_lines_and_the_rest_is_counted() {
    let mut findings = mesher();
    let caveat = |i| Caveat::Text {
        kind: CaveatKind::Readings,
        text: format!("reading {i} of the memory of a pod is missing"),
    };
    findings.caveats = (0..40).map(caveat).collect();
    let text = terminal(&findings, RUN_DIR, 80, false);
    let weak: Vec<&str> = text
        .lines()
        .skip_while(|l| !l.contains("to know:"))
        .take_while(|l| !l.is_empty())
        .collect();
    assert!(weak.len() <= 3, "{weak:?}");
    assert!(weak.concat().contains("more in the report"), "{weak:?}");
}

#[test]
fn the_answer_has_intervals_and_names_the_rate() {
    let said = "istio adds 0.623 ms to p50 (0.584 to 0.662) and 309 µs of CPU to each request (+48 %, 46 to 50), at 1,050 requests/s.";
    assert_eq!(answer_of(&mesher()), said);
}

#[test]
fn what_cannot_be_told_is_said_with_what_is_known() {
    let said = answer_of(&unclear());
    assert!(
        said.starts_with("istio changes p50 by between −0.200 and +0.500 ms and adds 309"),
        "{said}"
    );
    assert!(said.contains("(cannot tell p50; 6 more rounds would)"), "{said}");
}

#[test]
fn an_effect_within_the_bound_is_said_to_leave_the_metric_there() {
    let mut findings = mesher();
    let effect = headline_effect(&mut findings, Metric::LatencyP50);
    effect.difference = Estimate { value: 2.0, low: -10.0, high: 14.0, ..effect.difference };
    effect.verdict = Some(Verdict::NoDifference { bound: 0.05 });
    let said = answer_of(&findings);
    assert!(said.starts_with("istio leaves p50 within 5.0 % (−0.010 to +0.014 ms)"), "{said}");
}

#[test]
fn one_round_has_no_interval_and_no_verdict() {
    let said = answer_of(&one_round());
    assert!(said.contains("(one round, so no interval)"), "{said}");
    let text = told(&one_round());
    let text = text.split("How to read this").next().unwrap();
    for word in ["higher", "cannot tell"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_verdict_stands_only_at_headline_metrics() {
    let text = full(&mesher(), 100, false);
    let headline = text.split("How sure the headline figures are").nth(1).unwrap();
    let (headline, rest) = headline.split_once("At equal rate").unwrap();
    assert_eq!(headline.matches("  higher").count(), 2, "{headline}");
    let rest = rest.split("How to read this").next().unwrap();
    assert!(!rest.contains("higher") && !rest.contains("cannot tell"), "{rest}");
}

#[test]
fn no_report_has_the_words_of_the_old_design() {
    for findings in [mesher(), edges(), petclinic(), ambient_replicas(), egress_gateway()] {
        for report in [
            terminal(&findings, RUN_DIR, 100, false),
            full(&findings, 100, false),
            markdown(&findings),
        ] {
            let words: Vec<String> =
                report.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
            for old in ["block", "blocks", "trial", "trials", "floor", "floors"] {
                assert!(!words.iter().any(|word| word == old), "{old}: {}", findings.study);
            }
        }
    }
}

#[test]
fn where_a_spread_comes_from_is_one_sentence_a_headline_metric() {
    let text = told(&mesher());
    let said = "p50 latency of istio: most of the spread lies between starts; more rounds would help, not longer ones";
    assert!(text.contains(said), "{text}");
    assert_eq!(text.matches("most of the spread").count(), 3);
}

#[test]
fn colour_marks_changes_only_and_only_on_demand() {
    assert!(!terminal(&mesher(), RUN_DIR, 80, false).contains('\u{1b}'));
    let coloured = terminal(&mesher(), RUN_DIR, 80, true);
    assert!(coloured.contains("\u{1b}[31m+51 % +-3\u{1b}[0m"), "{coloured}");
    assert!(coloured.contains("\u{1b}[90m+34 % +-39\u{1b}[0m"), "grey for what is unclear");
}

#[test]
fn colour_does_not_move_a_column() {
    let strip = |text: String| {
        ["31", "32", "90", "0"]
            .iter()
            .fold(text, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""))
    };
    assert_eq!(
        strip(terminal(&edges(), RUN_DIR, 80, true)),
        terminal(&edges(), RUN_DIR, 80, false)
    );
    assert_eq!(strip(full(&edges(), 80, true)), full(&edges(), 80, false));
}

#[test]
fn a_baseline_without_a_slice_that_counts_leaves_nothing_to_tell() {
    let mut findings = mesher();
    findings.loads[0].variants.remove(0);
    let said = "No result: the baseline original has no slice that counts under same-rate.";
    assert_eq!(answer_of(&findings), said);
}

#[test]
fn the_answer_of_a_study_without_equal_rate_says_flat_out() {
    let mut findings = mesher();
    (findings.headline_load, findings.headline) =
        (None, vec![Metric::Throughput, Metric::CpuPerRequest]);
    findings.loads.retain(|l| l.view == View::FlatOut);
    let said = answer_of(&findings);
    assert!(
        said.starts_with("istio carries 24 % less (23 to 26) and adds 259 µs of CPU"),
        "{said}"
    );
    assert!(said.ends_with("flat out."), "{said}");
}

#[test]
fn rates_that_differ_are_reported_and_not_called_equal() {
    let mut findings = mesher();
    let metrics = &mut findings.loads[0].variants[1].metrics;
    metrics.iter_mut().filter(|m| m.0 == Metric::Throughput).for_each(|m| m.1.value = 900.0);
    let text = told(&findings);
    assert!(text.contains("The rates were not equal"), "{text}");
    assert!(!text.contains("Check: all variants completed"));
}

#[test]
fn throughput_is_an_effect_flat_out_and_never_at_equal_rate() {
    let text = full(&mesher(), 100, false);
    let (equal_rate, flat_out) = text.split_once("Flat out: flat-out").unwrap();
    assert!(!equal_rate.contains("throughput, requests/s"));
    assert!(flat_out.contains("throughput, requests/s"));
}

#[test]
fn every_section_is_in_the_page_once_and_in_the_contents() {
    let page = html(&mesher());
    let ids = attributes(&page, "id");
    let sections = "answer headline load-1 curve load-2 cpu memory published proof caveats rounds machine reading";
    let seen: Vec<&str> =
        ids.into_iter().filter(|id| sections.split(' ').any(|s| s == *id)).collect();
    assert_eq!(seen.join(" "), sections, "from the answer to the details");
    for section in sections.split(' ') {
        assert!(page.contains(&format!("<a href=\"#{section}\">")), "{section}");
    }
}

#[test]
fn every_fold_but_a_dictionary_answers_in_its_summary() {
    for findings in [mesher(), petclinic(), egress_gateway(), ambient_replicas()] {
        let silent: Vec<String> = Document::of(&findings, Detail::All)
            .sections
            .into_iter()
            .filter(|section| section.answer.is_empty())
            .map(|section| section.title)
            .collect();
        assert!(silent.len() <= 7, "{silent:?}");
        assert!(!silent.iter().any(|title| title.contains("At equal rate")), "{silent:?}");
    }
}

#[test]
fn caveats_are_grouped_by_kind_with_counts() {
    let text = markdown(&edges());
    assert!(text.contains("### Readings that are missing (4)"), "{text}");
    let order = ["What does not count", "How it was compared", "Readings that"];
    let at: Vec<usize> = order.iter().map(|title| text.find(title).unwrap()).collect();
    assert!(at.is_sorted(), "{at:?}");
}

#[test]
fn what_a_study_does_not_have_is_not_shown_empty() {
    for report in [html(&mesher()), markdown(&mesher()), full(&mesher(), 80, false)] {
        for absent in ["Top pods", "Settling", "As hey", "Recomputed", "traversal"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}

#[test]
fn both_pictures_of_the_first_screen_come_before_the_first_fold() {
    let page = html(&mesher());
    let (screen, rest) = page.split_once("<details").unwrap();
    assert_eq!(screen.matches("<svg").count(), 2);
    assert!(screen.contains("id=\"latency-by-rate\"") && screen.contains("id=\"cpu-same-rate\""));
    assert!(!rest.contains("id=\"cpu-same-rate\""), "no chart is drawn twice");
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<svg").count());
    let page = html(&petclinic());
    let screen = page.split("<details").next().unwrap();
    assert!(screen.contains("id=\"latency-same-rate\""), "without a curve by percentile");
}

#[test]
fn one_wild_interval_does_not_flatten_a_chart_and_is_marked() {
    let page = html(&mesher());
    let chart =
        page.split("id=\"latency-by-rate\"").nth(1).unwrap().split("</figure>").next().unwrap();
    assert!(chart.contains("class=\"arrow\"") && chart.contains("are cut"), "{chart}");
    assert!(chart.contains(" to 600."), "the figure is said");
    assert!(page.contains("line cut-right"), "the interval of p99 in the table");
    let effects = page.split("id=\"effects-same-rate\"").nth(1).unwrap();
    assert!(!effects.split("</figure>").next().unwrap().contains("class=\"arrow\""));
}

#[test]
fn the_knee_of_every_variant_is_marked() {
    let page = html(&mesher());
    let chart =
        page.split("id=\"latency-by-rate\"").nth(1).unwrap().split("</figure>").next().unwrap();
    assert_eq!(chart.matches("class=\"knee\"").count(), 2);
    assert_eq!(chart.matches("class=\"line dashed\"").count(), 2, "p99 of both");
}

#[test]
fn the_page_asks_the_network_for_nothing() {
    for findings in all() {
        let page = html(&findings);
        for ask in ["http://", "https://", "url(", "@import", "<script", "<link", " src="] {
            assert!(!page.contains(ask), "{ask}");
        }
        assert!(attributes(&page, "href").iter().all(|to| to.starts_with('#')));
    }
}

#[test]
fn names_are_text_and_never_markup() {
    assert!(html(&hostile()).contains("&lt;script&gt;alert(1)"));
    assert!(!markdown(&hostile()).contains("<script>"));
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<usize> = markdown(&hostile())
        .lines()
        .skip_while(|l| !l.contains("trimmed mean |"))
        .take_while(|l| !l.is_empty())
        .map(columns)
        .collect();
    assert!(table.len() > 3 && table.iter().all(|c| *c == table[0]), "{table:?}");
}

#[test]
fn a_variant_without_a_slice_that_counts_is_named_where_it_is_missing() {
    for report in [screen_of(&edges()), told(&edges()), markdown(&edges()), html(&edges())] {
        assert!(report.contains("no slice that counts under this load"), "{report}");
    }
}

#[test]
fn the_first_screen_of_a_chain_with_a_database() {
    insta::assert_snapshot!(terminal(&customer_360(), RUN_DIR, 80, false));
}

#[test]
fn raw_cpu_stands_below_a_sentence_when_the_rates_differ() {
    let text = told(&customer_360());
    let pods = text.split(" Top pods -").nth(1).unwrap();
    let (equal_rate, flat_out) = pods.split_once("Flat out: flat-out").unwrap();
    let sentence = "and raw CPU changes with the rate: read CPU per request instead";
    assert!(!equal_rate.contains(sentence), "{equal_rate}");
    let before_the_table = flat_out.split("CPU, millicores").next().unwrap();
    assert!(before_the_table.contains(sentence), "{before_the_table}");
}
