//! What a reader must find in the report of a tracing agent.

use super::*;
use crate::analysis::findings::{LoadFindings, TrialLine};
use fixture::petclinic;

/// A brief report on lines as long as they need to be, with plain blanks.
fn told(findings: &Findings) -> String {
    terminal(findings, 110, false).replace("\n  ", " ").replace('\u{a0}', " ")
}

fn load<'a>(findings: &'a mut Findings, name: &str) -> &'a mut LoadFindings {
    findings.loads.iter_mut().find(|load| load.name == name).unwrap()
}

/// The answers with plain blanks.
fn answers_of(findings: &Findings) -> Vec<String> {
    answers::answers(findings).iter().map(|answer| answer.replace('\u{a0}', " ")).collect()
}

/// `findings` with only that many blocks in which the agent's trials under `load` count.
fn with_valid_pairs(mut findings: Findings, load_name: &str, pairs: usize) -> Findings {
    let lost = |t: &&mut TrialLine| t.variant == "agent" && t.load == load_name && t.block > pairs;
    findings.trials.iter_mut().filter(lost).for_each(|t| t.invalid = Some("made up".into()));
    load(&mut findings, load_name).effects.clear();
    findings
}

#[test]
fn the_report_of_an_agent_fits_80_columns() {
    insta::assert_snapshot!(terminal(&petclinic(), 80, false));
}

#[test]
fn the_markdown_report_of_an_agent_has_the_same_tables() {
    insta::assert_snapshot!(markdown(&petclinic()));
}

#[test]
fn the_answer_about_an_agent_is_its_cpu_then_a_span_then_latency() {
    assert_eq!(
        answers_of(&petclinic()),
        [
            "agent costs +9.8 % CPU per request (+7.8 % to +12 %) at 210 requests/s: 187 µs. A span costs 14.2 µs of CPU (12.9 to 15.5).",
            "agent adds 0.496 ms to p50 (0.466 to 0.526) and 0.832 ms to p90 (0.782 to 0.882) at 210 requests/s.",
        ]
    );
}

#[test]
fn a_span_whose_interval_spans_zero_has_no_price() {
    let mut findings = petclinic();
    findings.span_costs[0].per_span_us.low = -3.0;
    let answer = answers_of(&findings).remove(0);
    let said = "What a span costs cannot be told (−3.0 to +15.5 µs; the noise floor is 1.9 µs).";
    assert!(answer.ends_with(said), "{answer}");
}

#[test]
fn a_span_that_costs_less_than_the_noise_floor_has_no_price() {
    let mut findings = petclinic();
    findings.span_costs[0].noise_floor_us = Some(14.3);
    let answer = answers_of(&findings).remove(0);
    let said = "What a span costs cannot be told (12.9 to 15.5 µs; the noise floor is 14.3 µs).";
    assert!(answer.ends_with(said), "{answer}");
    let table = markdown(&findings).replace('\u{a0}', " ");
    assert!(table.contains("| **all pods** | **cannot tell** |"), "{table}");
    assert!(html(&findings).replace('\u{a0}', " ").contains("agent: what a span costs cannot be"));
    findings.span_costs[0].noise_floor_us = None;
    let answer = answers_of(&findings).remove(0);
    assert!(answer.contains("; without a second run of the baseline there is no"), "{answer}");
}

#[test]
fn who_pays_is_not_shared_out_where_the_verdict_on_cpu_is_that_nobody_can_tell() {
    let mut findings = petclinic();
    for effect in &mut load(&mut findings, "same-rate").effects {
        effect.verdict = Verdict::CannotTell { floor: 300.0, more_blocks: None };
    }
    let text = markdown(&findings).replace('\u{a0}', " ");
    let of_load = text.split("same-rate").find(|part| part.contains("All in all")).unwrap();
    let said = "All in all it cannot be told what agent adds to the CPU of a request: the noise floor is 300 µs.";
    assert!(of_load.contains(said), "{of_load}");
    assert!(!of_load.contains("adds 187"), "{of_load}");
}

#[test]
fn an_agent_whose_cpu_cannot_be_told_is_not_said_to_cost_some() {
    let mut findings = petclinic();
    for effect in &mut load(&mut findings, "same-rate").effects {
        effect.verdict = Verdict::CannotTell { floor: 300.0, more_blocks: None };
    }
    let [cpu, latency] = answers_of(&findings).try_into().unwrap();
    assert!(cpu.starts_with("What agent does to CPU per request at 210 requests/s cannot be told: the noise floor is 300 µs. A span"), "{cpu}");
    assert!(latency.starts_with("What agent does to p50 and to p90"), "{latency}");
}

#[test]
fn one_valid_pair_is_said_to_be_left_and_no_effect_is_claimed() {
    let findings = with_valid_pairs(petclinic(), "same-rate", 1);
    assert_eq!(
        answers_of(&findings),
        ["agent under same-rate: one valid pair is left: no interval."]
    );
}

#[test]
fn valid_trials_in_no_common_block_are_told_from_no_valid_trial() {
    let findings = with_valid_pairs(petclinic(), "same-rate", 0);
    let said = "agent under same-rate: no block has a valid trial of it and of baseline.";
    assert_eq!(answers_of(&findings), [said]);
}

#[test]
fn a_flat_out_comparison_that_is_lost_is_said_to_be_lost() {
    let mut findings = customer_360();
    let flat_out = load(&mut findings, "flat-out");
    flat_out.effects.clear();
    let answers = answers_of(&findings);
    assert_eq!(answers.len(), 2);
    assert_eq!(
        answers[1],
        "Nothing can be told about sidecar under flat-out: readings are missing."
    );
    load(&mut findings, "flat-out").variants.remove(0);
    assert_eq!(
        answers_of(&findings)[1],
        "Nothing can be told about sidecar: the baseline bare has no valid trial under flat-out."
    );
}

#[test]
fn a_difference_of_cpu_load_stands_below_a_sentence_when_the_rates_differ() {
    let text = terminal(&petclinic(), 110, false).replace('\u{a0}', " ");
    let jvms = text.split("Inside the JVMs").nth(1).unwrap();
    let before = jvms.split("CPU load, %").next().unwrap().replace("\n  ", " ");
    assert!(before.contains("The achieved rates differ by 9.1 %, and raw CPU changes"), "{before}");
    let mut alike = petclinic();
    for variant in alike.loads.iter_mut().flat_map(|l| &mut l.variants) {
        variant
            .metrics
            .iter_mut()
            .filter(|m| m.0 == Metric::Throughput)
            .for_each(|m| m.1.value = 300.0);
    }
    assert!(!told(&alike).contains("achieved rates differ"));
}

#[test]
fn a_jvm_is_told_as_the_study_prints_it() {
    let text = markdown(&petclinic()).replace('\u{a0}', " ");
    let jvms = text.split("## Inside the JVMs").nth(1).unwrap();
    let row = |title: &str| jvms.lines().find(|line| line.contains(title)).unwrap().to_owned();
    assert!(
        row("CPU load, %").contains("| 11.2 | 10.7 | −0.49 points |"),
        "{}",
        row("CPU load, %")
    );
    assert!(row("CPU load, %").ends_with("| 33.2 / 44.4 / +11.2 |"), "{}", row("CPU load, %"));
    assert!(row("CPU per request, µs").contains("| 702 | 738 | +5.1 % |"));
    let throughput = row("throughput, requests/s");
    assert!(throughput.contains("| −29.0 requests/s | −30.7 to −27.3 | 1,164 / 1,057 / −107 |"));
    assert!(row("heap used, MiB").contains("| 131 | 162 | +31 MiB |"));
}

#[test]
fn published_figures_are_rounded_beside_what_the_jvms_tell() {
    let mut findings = petclinic();
    for row in &mut load(&mut findings, "vus-320").reference {
        row.published = match (row.figure.as_str(), row.variant.as_str()) {
            ("throughput_per_s", "baseline") => 1164.420944,
            ("throughput_per_s", _) => 1057.555,
            ("latency_ms.p90", "baseline") => 0.76351,
            ("latency_ms.p90", _) => 9.25,
            _ => continue,
        };
    }
    let text = markdown(&findings).replace('\u{a0}', " ");
    let jvms = text.split("## Inside the JVMs").nth(1).unwrap().split("\n## ").next().unwrap();
    assert!(jvms.contains("| 1,164 / 1,058 / −107 |"), "{jvms}");
    assert!(jvms.contains("| 0.76 / 9.25 / +8.49 |"), "{jvms}");
}

#[test]
fn a_reading_that_no_jvm_gave_is_left_out_and_one_that_one_gave_is_marked() {
    let mut findings = petclinic();
    for load in &mut findings.loads {
        for jvm in load.jvms.iter_mut().flat_map(|row| &mut row.uses) {
            jvm.jit_share = None;
            if jvm.variant == "baseline" {
                jvm.threads = None;
            }
        }
    }
    let text = terminal(&findings, 110, false);
    assert!(!text.contains("time compiling"));
    let row = text.lines().find(|line| line.trim_start().starts_with("threads")).unwrap();
    assert!(row.split_whitespace().nth(1) == Some("-"), "{row}");
}

#[test]
fn users_past_the_knee_are_warned_of_and_others_are_not() {
    let text = told(&petclinic());
    let users = |name: &str| {
        text.split(&format!("Virtual users: {name}\n"))
            .nth(1)
            .unwrap()
            .split("throughput")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert!(users("vus-320").contains("agent at 69 % of its knee: 291 of 420 requests/s"));
    assert!(!users("vus-320").contains("past"));
    assert!(users("vus-700").contains("agent near its knee (96 %): 402 of 420 requests/s"));
    assert!(users("vus-700").contains("All variants are at or near their limit"));
    let mut findings = petclinic();
    load(&mut findings, "vus-700").regimes[1].past_knee = true;
    assert!(told(&findings).contains("agent past its knee: 402"));
    load(&mut findings, "vus-700").regimes[0].near_knee = false;
    assert!(told(&findings).contains("The variants are in different regimes"));
}

#[test]
fn the_verdict_on_a_heap_is_one_of_four() {
    let mut findings = petclinic();
    findings.heap_trends[0].falls = true;
    findings.heap_trends[0].mib_per_minute = Some(-2.5);
    let text = told(&findings);
    assert!(
        text.contains(
            "vets, agent: grows by 1.20 MiB a minute (p 0.0003, 38 points): maybe a leak"
        )
    );
    assert!(text.contains("gateway, agent: no trend (-0.100 MiB a minute, p 0.43, 34 points)"));
    assert!(text.contains("gateway, baseline: falls by 2.50 MiB a minute (p 0.43, 30 points)"));
    let cannot = "vets, baseline: cannot tell: the old generation was collected 3 times";
    assert!(text.contains(cannot), "{text}");
}

#[test]
fn a_longer_run_is_named_where_heaps_were_collected_too_rarely() {
    let mut findings = petclinic();
    assert!(told(&findings).contains("A longer run (--paper) or a smaller heap tells more"));
    findings.heap_trends.remove(2);
    assert!(!told(&findings).contains("--paper"));
}

#[test]
fn the_summary_of_k6_stands_side_by_side_in_80_columns() {
    let text = terminal(&petclinic(), 80, false);
    let k6 = text.split("As k6 sums up all valid trials: vus-320\n").nth(1).unwrap();
    let head: Vec<&str> = k6.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(head, ["avg", "min", "med", "max", "p(90)", "p(95)"]);
    let row = |name: &str| k6.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
    let waiting = "http_req_waiting          10.6 ms  4.41 ms  8.83 ms   117 ms  28.2 ms  50.8 ms";
    assert_eq!(row("http_req_waiting").trim(), waiting);
    assert!(row("http_reqs ").ends_with("8,800     8,002"), "{}", row("http_reqs "));
    let interrupted = row("iterations, interrupted");
    assert!(interrupted.ends_with("44        44"), "{interrupted}");
}

#[test]
fn iterations_that_the_end_cut_off_are_said_to_be() {
    let mut findings = petclinic();
    let said = "An iteration that the end of a trial cuts off is not among the iterations";
    assert!(told(&findings).contains(said));
    for variant in findings.loads.iter_mut().flat_map(|load| &mut load.variants) {
        variant.k6.iter_mut().for_each(|k6| k6.interrupted = None);
    }
    let text = told(&findings);
    assert!(!text.contains(said) && !text.contains("interrupted"));
}

#[test]
fn spans_are_told_by_load_and_so_is_what_was_dropped() {
    let mut findings = petclinic();
    let whole = "agent: 10 of 10 spans a request (gateway 1, vets 9) under same-rate, vus-320, vus-700; 2 of 2 under spans-1; 4 of 4 under spans-3; 28 of 28 under spans-27; 0.0 % dropped";
    assert!(told(&findings).contains(whole), "{}", told(&findings));
    findings.proofs[1].spans[0].spans.services[1].arrived = 208_000;
    let text = told(&findings);
    let said = "agent: 9.61 of 10 spans a request (gateway 1, vets 8.61) under same-rate, vus-320, vus-700; 2 of 2 under spans-1; 4 of 4 under spans-3; 28 of 28 under spans-27; 2.5 % dropped";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("baseline: 0 spans in 60 of 60 trials"));
}

#[test]
fn the_collector_is_the_instruments_own_and_in_no_sum() {
    let text = terminal(&petclinic(), 110, false);
    let own = text.split("the instrument's own, not in the sum").nth(1).unwrap();
    assert!(own.lines().nth(1).unwrap().trim_start().starts_with("collector"), "{own}");
    let chart = html(&petclinic())
        .split("id=\"cpu-same-rate\"")
        .nth(1)
        .unwrap()
        .split("</figure>")
        .next()
        .unwrap()
        .to_owned();
    assert!(chart.contains("vets") && !chart.contains("collector"));
}

#[test]
fn loads_that_only_serve_the_line_are_named_where_they_are_left_out() {
    let brief = told(&petclinic());
    assert!(!brief.contains("At equal rate: spans-1"));
    assert!(brief.contains("spans-1, spans-3, spans-27 only serve this line"));
    assert!(markdown(&petclinic()).contains("## At equal rate: spans-1"));
}

#[test]
fn the_charts_of_spans_and_heaps_are_in_the_page_with_a_text_for_each() {
    let page = html(&petclinic());
    for chart in ["spans-all", "spans-vets", "heap-gateway", "heap-vets"] {
        let figure = page.split(&format!("figure id=\"{chart}\"")).nth(1).unwrap();
        let text = between(figure, "<desc", "</desc>")[0].to_owned();
        assert!(text.contains("agent: ") && text.len() > 60, "{chart}: {text}");
    }
}

#[test]
fn a_study_without_agents_has_none_of_this() {
    for report in [html(&customer_360()), markdown(&mesher()), told(&customer_360())] {
        for absent in ["What a span costs", "Inside the JVMs", "heap", "k6", "collector"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}
