//! What a reader must find in every report, and what no findings may do to it.

mod ambient_replicas;
mod egress_gateway;
mod fixture;
mod petclinic;
mod staircase;
mod sweep;

use super::*;
use crate::analysis::findings::{Estimate, Metric, Verdict, View};

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
    Findings { loads: vec![], proofs: vec![], trials: vec![], ..mesher() }
}

/// Every number that an analysis of broken data could leave undefined.
fn undefined() -> Findings {
    let mut findings = mesher();
    let no_number = Estimate {
        value: f64::NAN,
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        level: 0.95,
        blocks: 0,
    };
    for load in &mut findings.loads {
        for effect in &mut load.effects {
            effect.difference = no_number;
            effect.ratio = no_number;
            effect.noise_floor = Some(f64::NAN);
            effect.verdict = Verdict::CannotTell { floor: f64::NAN, more_blocks: None };
        }
        for variant in &mut load.variants {
            // Throughput stays, so that its chart is drawn with an undefined block.
            let metrics = variant.metrics.iter_mut().filter(|m| m.0 != Metric::Throughput);
            metrics.for_each(|m| m.1 = no_number);
            variant.cpu_per_request.iter_mut().for_each(|c| c.cost = no_number);
            variant.throughput_by_block = vec![f64::NAN];
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
    read(&text.replace("istio", inside).replace("client sidecar", inside))
}

/// The same with every estimate of the chain's own tables left undefined.
fn undefined_chain() -> Findings {
    let text = serde_json::to_string(&customer_360()).unwrap();
    let mut findings = read(&text);
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, blocks: 0 };
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
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, blocks: 0 };
    let (mut without, mut holed) = (findings.span_costs[1].clone(), findings.span_costs[1].clone());
    (without.of, holed.of) = ("without".into(), "holed".into());
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
        load.regimes.iter_mut().for_each(|regime| regime.knee_per_s = 0.0);
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
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, blocks: 0 };
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
    let gone = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN, level: 0.95, blocks: 0 };
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
        difference.verdict = Verdict::CannotTell { floor: f64::NAN, more_blocks: None };
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
fn the_terminal_report_fits_80_columns() {
    insta::assert_snapshot!(terminal(&mesher(), 80, false));
}

#[test]
fn the_terminal_report_uses_110_columns() {
    insta::assert_snapshot!(terminal(&mesher(), 110, false));
}

#[test]
fn the_terminal_report_carries_every_edge() {
    insta::assert_snapshot!(terminal(&edges(), 80, false));
}

#[test]
fn the_markdown_report_has_the_same_tables() {
    insta::assert_snapshot!(markdown(&mesher()));
}

#[test]
fn the_report_of_a_chain_with_a_database_fits_80_columns() {
    insta::assert_snapshot!(terminal(&customer_360(), 80, false));
}

#[test]
fn the_report_of_a_chain_with_a_database_uses_110_columns() {
    insta::assert_snapshot!(terminal(&customer_360(), 110, false));
}

#[test]
fn the_markdown_report_of_a_chain_with_a_database_has_the_same_tables() {
    insta::assert_snapshot!(markdown(&customer_360()));
}

#[test]
fn no_terminal_line_is_wider_than_the_terminal() {
    for findings in all() {
        for width in [40, 60, 80, 100, 110] {
            let text = terminal(&findings, width, false);
            let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
            assert!(widest.chars().count() <= width, "{width}: {widest}");
        }
    }
}

#[test]
fn only_verdicts_are_coloured_and_only_on_demand() {
    assert!(!terminal(&mesher(), 80, false).contains('\u{1b}'));
    let coloured = terminal(&mesher(), 80, true);
    assert!(coloured.contains("\u{1b}[31mhigher\u{1b}[0m"));
    assert!(coloured.contains("\u{1b}[33mcannot tell"));
}

#[test]
fn colour_does_not_move_a_column() {
    let coloured = terminal(&edges(), 80, true);
    let plain = ["31", "32", "33", "0"]
        .iter()
        .fold(coloured, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
    assert_eq!(plain, terminal(&edges(), 80, false));
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    assert!(!terminal(&hostile(), 80, false).contains('\u{1b}'));
}

#[test]
fn the_answer_is_the_first_sentence_and_names_the_rate() {
    let text = terminal(&mesher(), 110, false).replace("\n  ", " ");
    let answer = "istio adds 0.623 ms to p50 (0.584 to 0.662) and 309 us CPU per request (+48 %) at 1,050 requests/s.";
    assert!(text.contains(answer), "{text}");
}

#[test]
fn an_effect_that_cannot_be_told_is_not_answered() {
    let mut findings = mesher();
    for effect in &mut findings.loads[0].effects {
        effect.verdict = Verdict::CannotTell { floor: 52.0, more_blocks: Some(6) };
    }
    let answer = answers::answers(&findings).remove(0).replace('\u{a0}', " ");
    assert_eq!(
        answer,
        "What istio does to p50 and to CPU per request at 1,050 requests/s cannot be told: the noise floor is 52.0 µs in p50 and 52.0 µs in CPU per request; run 6 more blocks."
    );
}

#[test]
fn a_baseline_without_a_valid_trial_leaves_nothing_to_tell() {
    let mut findings = mesher();
    findings.loads[0].variants.remove(0);
    let answers = answers::answers(&findings);
    assert_eq!(
        answers,
        ["Nothing can be told: the baseline original has no valid trial under same-rate."]
    );
}

#[test]
fn the_answer_of_a_study_without_equal_rate_says_flat_out() {
    let mut findings = mesher();
    findings.loads.retain(|l| l.view == View::FlatOut);
    let answer = answers::answers(&findings).remove(0).replace('\u{a0}', " ");
    assert!(
        answer.starts_with("istio carries 564 requests/s less (523 to 605), −24 %, and adds"),
        "{answer}"
    );
    assert!(answer.ends_with("flat out."), "{answer}");
}

#[test]
fn rates_that_differ_are_reported_and_not_called_equal() {
    let mut findings = mesher();
    let metrics = &mut findings.loads[0].variants[1].metrics;
    metrics.iter_mut().filter(|m| m.0 == Metric::Throughput).for_each(|m| m.1.value = 900.0);
    let text = terminal(&findings, 110, false);
    assert!(text.contains("The rates were not equal"), "{text}");
    assert!(!text.contains("Check: all variants completed"));
}

#[test]
fn throughput_is_an_effect_flat_out_and_never_at_equal_rate() {
    for report in [terminal(&mesher(), 80, false), markdown(&mesher())] {
        let equal_rate = report.split("Flat out: flat-out").next().unwrap();
        assert!(!equal_rate.contains("throughput, requests/s"));
        assert!(report.contains("throughput, requests/s"));
    }
}

#[test]
fn every_section_is_in_the_page_once() {
    let page = html(&mesher());
    let ids = attributes(&page, "id");
    let sections = "answer caveats load-1 load-2 cpu memory proof published trials machine reading";
    for section in sections.split(' ') {
        assert_eq!(ids.iter().filter(|id| **id == section).count(), 1, "{section}");
    }
}

#[test]
fn the_page_goes_from_the_verdict_to_the_details() {
    let page = html(&customer_360());
    let sections = "answer caveats load-1 load-2 cpu pods published proof memory settled trials machine reading";
    let ids = attributes(&page, "id");
    let seen: Vec<&str> =
        ids.into_iter().filter(|id| sections.split(' ').any(|s| s == *id)).collect();
    assert_eq!(seen.join(" "), sections);
}

#[test]
fn what_a_study_does_not_have_is_not_shown_empty() {
    let reports = [html(&mesher()), markdown(&mesher()), terminal(&mesher(), 80, false)];
    for report in reports {
        for absent in ["Top pods", "Discarded runs", "As hey", "Recomputed", "traversal"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
    let mut bare = customer_360();
    bare.loads.iter_mut().for_each(|load| {
        load.reference.clear();
        load.recomputed.clear();
    });
    assert!(!html(&bare).contains("Published figures"));
}

#[test]
fn raw_cpu_stands_below_a_sentence_when_the_rates_differ() {
    let text = terminal(&customer_360(), 110, false);
    let pods = text.split("Top pods\n").nth(1).unwrap();
    let (equal_rate, flat_out) = pods.split_once("Flat out: flat-out").unwrap();
    let sentence = "The achieved rates differ by 49.3 %, and raw CPU changes with the rate: read CPU per request instead";
    assert!(!equal_rate.contains("rates differ"), "{equal_rate}");
    let before_the_table = flat_out.split("CPU, millicores").next().unwrap();
    assert!(before_the_table.replace("\n  ", " ").contains(sentence), "{before_the_table}");
}

#[test]
fn the_crossing_and_the_row_check_are_among_the_claims_of_a_brief_report() {
    let text = terminal(&customer_360(), 110, false).replace("\n  ", " ");
    assert!(text.contains("sidecar: 10 of 10 trials proven: every request crossed 7 sidecars; postgres: every acknowledged write is there"), "{text}");
    assert!(text.contains("bare: 20 of 20 trials proven: no request crossed a sidecar;"), "{text}");
}

#[test]
fn what_does_not_fit_a_terminal_of_the_published_figures_is_counted() {
    let text = terminal(&customer_360(), 80, false);
    assert!(text.contains("16 more published figures are in the HTML report."));
    assert!(!text.contains("CPU by pod") && markdown(&customer_360()).contains("CPU by pod"));
}

#[test]
fn a_chain_with_too_many_components_is_told_by_role_in_a_brief_report() {
    let mut findings = customer_360();
    for variant in &mut findings.loads[0].variants {
        let first = variant.cpu_per_request[0].clone();
        variant.cpu_per_request.push(crate::analysis::findings::ComponentCost {
            component: "one more".into(),
            ..first
        });
    }
    let brief = terminal(&findings, 80, false);
    let payers = brief.split("who pays\n").nth(1).unwrap().split("What a sidecar").next().unwrap();
    assert!(payers.contains("\n  sidecars") && !payers.contains("person sidecar"), "{payers}");
}

#[test]
fn every_chart_is_in_the_page() {
    let page = html(&mesher());
    let ids = attributes(&page, "id");
    let charts = "effects-same-rate latency-same-rate cpu-same-rate memory-same-rate-original memory-same-rate-istio effects-flat-out latency-flat-out throughput-flat-out cpu-flat-out memory-flat-out-original memory-flat-out-istio";
    for chart in charts.split(' ') {
        assert!(ids.contains(&chart), "{chart}");
    }
    assert_eq!(page.matches("<svg").count(), charts.split(' ').count());
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<svg").count());
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
fn the_page_asks_the_network_for_nothing() {
    for findings in all() {
        let page = html(&findings);
        let asks =
            ["http://", "https://", "url(", "@import", "<script", "<link", " src=", " href="];
        for ask in asks {
            assert!(!page.contains(ask), "{ask}");
        }
    }
}

#[test]
fn names_are_text_and_never_markup() {
    assert!(html(&hostile()).contains("&lt;script&gt;alert(1)"));
    assert!(!markdown(&hostile()).contains("<script>"));
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<usize> = markdown(&hostile())
        .lines()
        .skip_while(|l| !l.contains("noise floor |"))
        .take_while(|l| !l.is_empty())
        .map(columns)
        .collect();
    assert!(table.len() > 10 && table.iter().all(|c| *c == table[0]), "{table:?}");
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

#[test]
fn a_variant_without_a_valid_trial_is_named_where_it_is_missing() {
    for report in [terminal(&edges(), 80, false), markdown(&edges()), html(&edges())] {
        assert!(report.contains("broken has no valid trial under this load"));
        assert!(report.contains("Nothing can be told about broken: no valid trial under steady."));
    }
}

#[test]
fn one_block_has_no_interval() {
    let text = terminal(&edges(), 110, false);
    let flat_out = text.split("Flat out: once").nth(1).unwrap();
    assert!(flat_out.contains("no interval"));
}

#[test]
fn json_reads_back_as_the_same_findings() {
    assert_eq!(read(&json(&mesher())), mesher());
}
