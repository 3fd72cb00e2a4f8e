//! What a reader must find in the report of a staircase.

use super::*;
use crate::analysis::findings::StaircaseDifference;

#[test]
fn the_first_screen_of_a_staircase() {
    insta::assert_snapshot!(terminal(&egress_gateway(), RUN_DIR, 80, false));
}

/// What a full report shows of `findings` from `title` to the next section.
fn section_of(findings: &Findings, title: &str) -> String {
    let text = full(findings, 80, false).replace('\u{a0}', " ");
    let rest = text.split(&format!("\n{title}\n-")).nth(1).unwrap();
    rest.split("\n--").next().unwrap().to_owned()
}

fn difference<'f>(findings: &'f mut Findings, pair: [&str; 2]) -> &'f mut StaircaseDifference {
    let differences = &mut findings.staircases[0].differences;
    differences.iter_mut().find(|d| [&*d.variant, &*d.against] == pair).unwrap()
}

#[test]
fn a_step_stands_against_the_baseline_and_against_the_step_before_it() {
    let text = terminal(&egress_gateway(), RUN_DIR, 80, false);
    let row = text.lines().find(|line| line.trim_start().starts_with("gateway-mtls")).unwrap();
    let row = on_a_line(row);
    assert_eq!(row, "gateway-mtls 2,082 +18 % +-1.0 +8.0 % +-1.0 -14 % +-1.1");
}

#[test]
fn published_changes_stand_beside_the_measured_ones_on_the_first_screen() {
    let screen = screen_of(&egress_gateway());
    let said = "published throughput: gateway-mtls -10 % (here -14 % +-1.1), gateway-sni -24 % (here -22 % +-1.1)";
    assert!(screen.contains(said), "{screen}");
}

#[test]
fn the_answer_of_many_variants_names_the_least_and_the_most() {
    let said = "Against bypass, CPU per request changes from −46 % ±1.0 (none) to +26 % ±1.0 (gateway-sni), at 704 requests/s.";
    assert_eq!(answer_of(&egress_gateway()), said);
}

#[test]
fn what_ran_at_equal_rate_stands_before_the_staircase() {
    let text = full(&egress_gateway(), 80, false);
    let at = |title: &str| text.find(&format!("\n{title}\n-")).unwrap();
    assert!(at("At equal rate: same-rate") < at("What each step costs, flat out"));
    let report = markdown(&egress_gateway());
    let same_rate = report.split("<b>At equal rate: same-rate</b>").nth(1).unwrap();
    let same_rate = same_rate.split("</details>").next().unwrap();
    for said in ["CPU per request, data plane, µs", "gateway-mtls against gateway"] {
        assert!(same_rate.contains(said), "{said}: {same_rate}");
    }
}

#[test]
fn a_published_change_stands_beside_what_was_measured_against_either_case() {
    let mut findings = egress_gateway();
    difference(&mut findings, ["gateway-sni", "bypass"]).throughput_ratio.value = 0.777;
    let published = section_of(&findings, "Published beside measured");
    let of_sni = published.split("gateway-sni\n").nth(1).unwrap();
    let figures = |row: &str| {
        let line = of_sni.lines().find(|line| line.trim_start().starts_with(row)).unwrap();
        line.split_whitespace().skip(2).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(figures("against bypass"), ["-24", "-22.3"]);
    assert_eq!(figures("against gateway-mtls"), ["-24", "-9.1"]);
    let said = "does not say against which case, so each is held against all that it may mean";
    assert!(published.replace('\n', " ").contains(said), "{published}");
}

#[test]
fn the_rows_of_published_changes_are_those_that_the_study_writes() {
    let mut findings = egress_gateway();
    let stairs = &mut findings.staircases[0];
    stairs.recomputed.retain(|row| row.against.is_some());
    // Where gateway-mtls was left out, the case before is gateway: the source says nothing of that pair.
    stairs.differences.retain(|d| d.variant != "gateway-mtls" && d.against != "gateway-mtls");
    let last = stairs.differences.last().unwrap().clone();
    let pair = ["gateway-sni".to_owned(), "gateway".to_owned()];
    let [variant, against] = pair;
    stairs.differences.push(StaircaseDifference { variant, against, ..last });
    let published = section_of(&findings, "Published beside measured");
    let rows: Vec<&str> =
        published.lines().map(str::trim).filter(|line| line.starts_with("against ")).collect();
    assert_eq!(rows.len(), 3, "{published}");
    assert!(rows[0].starts_with("against sidecar"), "{published}");
    assert!(rows[1].starts_with("against gateway ") && rows[1].ends_with("did not run"));
    assert!(rows[2].starts_with("against gateway-mtls") && rows[2].ends_with("did not run"));
}

#[test]
fn the_mean_answer_stands_beside_the_throughput() {
    let mut findings = egress_gateway();
    findings.staircases[0].answer_bytes = Some(583.2);
    let said = section_of(&findings, "What each step costs, flat out");
    assert!(on_a_line(&said).contains("An answer carries 583 bytes on average."), "{said}");
}

#[test]
fn response_times_are_those_of_the_step_nearest_20_clients() {
    let mut findings = egress_gateway();
    for line in &mut findings.staircases[0].lines {
        line.steps.retain(|step| step.connections != 20 && step.connections != 10);
    }
    let told = section_of(&findings, "Response times with 30 clients");
    let of_gateway = told.lines().find(|line| line.starts_with("  gateway ")).unwrap();
    assert_eq!(of_gateway.split_whitespace().nth(1), Some("34.0"), "{told}");
}

#[test]
fn the_charts_of_a_staircase_are_in_the_page_with_a_text_for_each() {
    let page = html(&egress_gateway());
    let charts = [
        "stairs-climb-1",
        "stairs-response-times-1",
        "data-plane-clients-20",
        "application-clients-20",
        "stairs-data-plane-climb-1",
    ];
    for chart in charts {
        let of = page.split(&format!("id=\"{chart}\"")).nth(1).unwrap();
        let of = of.split("</figure>").next().unwrap();
        let said = between(of, "<desc", "</desc>").concat();
        assert!(said.contains("gateway-sni"), "{chart}: {said}");
    }
    let climb =
        page.split("id=\"stairs-climb-1\"").nth(1).unwrap().split("</figure>").next().unwrap();
    assert_eq!(climb.matches("class=\"band\"").count(), 6);
    assert_eq!(climb.matches("class=\"label\"").count(), 6);
}

#[test]
fn sidecars_egress_gateway_and_sni_proxy_have_colours_of_their_own() {
    let page = html(&egress_gateway());
    let of = page.split("id=\"data-plane-clients-20\"").nth(1).unwrap();
    let of = of.split("</figure>").next().unwrap();
    for (class, name) in
        [("k-proxy-0", "sidecars"), ("k-egress-0", "egress gateway"), ("k-sni-0", "SNI proxy")]
    {
        assert!(of.contains(&format!("<i class=\"{class}\"></i>{name}")), "{class}: {of}");
    }
}

#[test]
fn every_step_is_folded_in_the_page_and_the_leading_one_in_markdown() {
    let steps = |report: &str, open: &str| {
        between(report, open, "</").iter().filter(|title| title.contains(" (clients-")).count()
    };
    assert_eq!(steps(&html(&egress_gateway()), "<summary><h3>"), 8);
    assert_eq!(steps(&markdown(&egress_gateway()), "<summary><b>"), 1);
}

/// As long as a run of the study is: claims of a real database behind real names, and a reason for a lost slice.
fn as_long_as_a_real_run() -> Findings {
    let mut findings = egress_gateway();
    let claims = findings.proofs.iter_mut().flat_map(|proof| &mut proof.claims);
    claims.for_each(|of| (of.expected, of.seen) = (of.expected.repeat(20), of.seen.repeat(20)));
    findings.rounds[9].slices.0 = 58;
    findings.rounds[9].invalid = vec!["2 requests failed: connection reset".into()];
    findings
}

#[test]
fn a_forge_takes_the_markdown_report_of_a_staircase() {
    let report = markdown(&as_long_as_a_real_run());
    assert!(report.chars().count() < 65_536, "{}", report.chars().count());
    assert!(report.contains("2 requests failed: connection reset"), "why a slice does not count");
}

#[test]
fn claims_of_the_same_cases_stand_together_and_what_fails_stands_first() {
    let mut findings = egress_gateway();
    let sni = findings.proofs.last_mut().unwrap();
    let of_customers = "customers sidecar, inb";
    let last = sni.claims.iter_mut().find(|of| of.claim.starts_with(of_customers)).unwrap();
    last.holds = false;
    let report = markdown(&findings);
    let rows: Vec<&str> = report.lines().skip_while(|line| !line.contains("arms proven")).collect();
    let at = |said: &str| rows.iter().position(|row| row.contains(said)).unwrap();
    let failed = rows[at("customers sidecar, inbound")];
    assert!(failed.ends_with("| – | yes | yes | yes | yes | **no** |"), "{failed}");
    assert!(at("customers sidecar, inbound") < at("every request crossed the sidecars"));
    assert!(rows[at("3 more of these cases")].contains("| yes | yes | yes | yes | yes | yes |"));
    assert!(rows[at("past every sidecar")].ends_with("| – | yes | – | – | – | – |"));
}

#[test]
fn of_two_staircases_each_is_named() {
    let mut findings = egress_gateway();
    let second = findings.staircases[0].clone();
    findings.staircases.push(second);
    assert!(
        full(&findings, 80, false).contains("What each step costs, flat out: clients, staircase 2")
    );
}

#[test]
fn a_study_without_a_staircase_has_none_of_this() {
    for report in [html(&mesher()), markdown(&ambient_replicas())] {
        for absent in ["What each step costs", "against clients", "step before"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}
