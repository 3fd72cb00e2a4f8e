//! What a reader must find in the report of a tracing agent.

use super::*;
use crate::analysis::findings::LoadFindings;
use fixture::petclinic;

fn load<'a>(findings: &'a mut Findings, name: &str) -> &'a mut LoadFindings {
    findings.loads.iter_mut().find(|load| load.name == name).unwrap()
}

#[test]
fn the_first_screen_of_an_agent() {
    insta::assert_snapshot!(terminal(&petclinic(), RUN_DIR, 80, false));
}

#[test]
fn the_answer_about_an_agent_is_its_cpu_then_latency_and_a_span_has_a_line() {
    let said = "agent adds 187 µs of CPU to each request (+9.8 %, 7.8 to 12) and 0.496 ms to p50 (0.466 to 0.526), at 210 requests/s.";
    assert_eq!(answer_of(&petclinic()), said);
    let screen = screen_of(&petclinic());
    assert!(
        screen.contains("agent: each further span costs 14.2 us of CPU (12.9 to 15.5)"),
        "{screen}"
    );
}

#[test]
fn a_span_whose_interval_spans_zero_is_said_to_cost_between_its_ends() {
    let mut findings = petclinic();
    findings.span_costs[0].per_span_us.low = -3.0;
    let screen = screen_of(&findings);
    let said = "each further span costs between -3.0 and +15.5 us of CPU: cannot tell";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn who_pays_is_not_shared_out_where_the_verdict_on_cpu_is_that_nobody_can_tell() {
    let mut findings = petclinic();
    let shared = |findings: &Findings| {
        let text = markdown(findings);
        let of_load = text
            .split("What it costs")
            .nth(1)
            .unwrap()
            .split("Virtual users")
            .next()
            .unwrap()
            .to_owned();
        of_load.contains("100.0\u{a0}%")
    };
    assert!(shared(&findings));
    for effect in &mut load(&mut findings, "same-rate").effects {
        effect.verdict = effect.verdict.map(|_| Verdict::CannotTell { more_rounds: None });
    }
    assert!(!shared(&findings));
}

#[test]
fn a_jvm_is_told_as_the_study_prints_it() {
    let text = markdown(&petclinic()).replace('\u{a0}', " ");
    let jvms = text.split("<b>Inside the JVMs").nth(1).unwrap();
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
    let jvms = text.split("<b>Inside the JVMs").nth(1).unwrap().split("<details>").next().unwrap();
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
    let text = full(&findings, 110, false);
    assert!(!text.contains("time compiling"));
    let row = text.lines().find(|line| line.trim_start().starts_with("threads")).unwrap();
    assert!(row.split_whitespace().nth(1) == Some("-"), "{row}");
}

#[test]
fn users_at_their_limit_are_warned_of_and_others_are_not() {
    let users = |text: &str, name: &str| {
        let load = text.split(&format!("Virtual users: {name} ---")).nth(1).unwrap();
        load.split("p50 latency").next().unwrap().to_owned()
    };
    let text = told(&petclinic());
    assert!(
        users(&text, "vus-320").contains("agent at 69 % of its capacity: 291 of 420 requests/s"),
        "{text}"
    );
    assert!(users(&text, "vus-700").contains("agent near its limit (96 %): 402 of 420 requests/s"));
    assert!(users(&text, "vus-700").contains("All variants are at or near their limit"));
    let mut findings = petclinic();
    load(&mut findings, "vus-700").regimes[1].at_limit = true;
    assert!(told(&findings).contains("agent at its limit: 402"));
    load(&mut findings, "vus-700").regimes[0].near_limit = false;
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
    assert!(told(&findings).contains("A longer run or a smaller heap tells more"));
    findings.heap_trends.remove(2);
    assert!(!told(&findings).contains("A longer run or"));
}

#[test]
fn the_summary_of_k6_stands_side_by_side_in_80_columns() {
    let text = full(&petclinic(), 80, false);
    let k6 = text.split("As k6 sums it up: Virtual users: vus-320\n").nth(1).unwrap();
    let head: Vec<&str> =
        k6.lines().find(|line| line.contains("avg")).unwrap().split_whitespace().collect();
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
    let said = "An iteration that the end of a slice cuts off is not among the iterations";
    assert!(told(&findings).contains(said));
    for variant in findings.loads.iter_mut().flat_map(|load| &mut load.variants) {
        variant.k6.iter_mut().for_each(|k6| k6.interrupted = None);
    }
    let text = told(&findings);
    assert!(!text.contains(said));
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
    assert!(text.contains("baseline: 0 spans in 60 of 60 arms"));
}

#[test]
fn the_collector_is_the_instruments_own_and_in_no_sum() {
    let text = full(&petclinic(), 110, false);
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
    for report in [html(&mesher()), markdown(&mesher()), told(&mesher())] {
        for absent in ["What a span costs", "Inside the JVMs", "heap", "As k6", "collector"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}
