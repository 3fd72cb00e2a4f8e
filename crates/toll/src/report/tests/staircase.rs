//! What a reader must find in the report of a staircase.

use super::*;
use crate::analysis::findings::{LoadFindings, StaircaseDifference, TrialLine};
use crate::analysis::fixture::staircase::egress_gateway as made_up;

#[test]
fn the_report_of_a_staircase_fits_80_columns() {
    insta::assert_snapshot!(terminal(&egress_gateway(), 80, false));
}

#[test]
fn the_markdown_report_of_a_staircase_has_the_same_tables_and_folds_its_steps() {
    insta::assert_snapshot!(markdown(&egress_gateway()));
}

fn answers_of(findings: &Findings) -> Vec<String> {
    answers::answers(findings).iter().map(|answer| answer.replace('\u{a0}', " ")).collect()
}

/// What a terminal shows of `findings` from `title` to the next section.
fn section_of(findings: &Findings, title: &str) -> String {
    let text = terminal(findings, 80, false).replace('\u{a0}', " ");
    let rest = text.split(&format!("\n{title}\n-")).nth(1).unwrap();
    rest.split("\n--").next().unwrap().to_owned()
}

fn difference<'f>(findings: &'f mut Findings, pair: [&str; 2]) -> &'f mut StaircaseDifference {
    let differences = &mut findings.staircases[0].differences;
    differences.iter_mut().find(|d| [&*d.variant, &*d.against] == pair).unwrap()
}

#[test]
fn the_terminal_report_of_six_cases_is_no_longer_than_260_lines() {
    let lines = terminal(&egress_gateway(), 80, false).lines().count();
    assert!(lines <= 260, "{lines} lines");
}

#[test]
fn a_case_is_answered_against_the_baseline_and_against_the_case_before_it() {
    let said = "gateway-mtls carries 14.2 % less than bypass (13.1 to 15.3) and 7.3 % less than gateway (6.2 to 8.4); a request takes 305 µs more CPU in the data plane than with bypass (296 to 314) and 146 µs more than with gateway (137 to 155).";
    let [first, flat_out] = sentences(&answers_of(&egress_gateway())[3]);
    assert_eq!(flat_out, said);
    assert!(first.starts_with("At ") && first.contains(" gateway-mtls adds "), "{first}");
    assert!(first.contains(" to p50 (") && first.contains(" CPU per request (+"), "{first}");
}

/// What is said at equal rate, and what flat out.
fn sentences(answer: &str) -> [String; 2] {
    let (first, flat_out) = answer.split_once(". Flat out, ").unwrap();
    [first.to_owned(), flat_out.to_owned()]
}

#[test]
fn what_a_case_carries_less_is_told_as_the_analysis_judged_it() {
    let mut findings = egress_gateway();
    let of = difference(&mut findings, ["gateway-sni", "gateway-mtls"]);
    of.verdict = Verdict::NoDifference { bound: 0.05 };
    let said =
        "; the throughput of gateway-sni shows no difference larger than 5.0 % from gateway-mtls;";
    assert!(answers_of(&findings)[4].contains(said), "{:?}", answers_of(&findings));
    let of = difference(&mut findings, ["gateway-sni", "gateway-mtls"]);
    of.verdict = Verdict::CannotTell { floor: 0.03, more_blocks: Some(2) };
    let said = "less than bypass (20.8 to 23.0); whether gateway-sni carries more or less than gateway-mtls (−10.2 to −8.0 %) cannot be told;";
    assert!(answers_of(&findings)[4].contains(said), "{:?}", answers_of(&findings));
}

#[test]
fn cpu_that_cannot_be_told_is_not_told_and_is_marked() {
    let mut findings = egress_gateway();
    let of = difference(&mut findings, ["gateway", "sidecar"]);
    of.mesh_cpu_verdict = Some(Verdict::CannotTell { floor: 110.0, more_blocks: None });
    let said = &answers_of(&findings)[2];
    assert!(said.contains("with bypass (150 to 168); what its data plane takes"), "{said}");
    assert!(said.ends_with(" µs) cannot be told."), "{said}");
    let table = section_of(&findings, "What each case costs");
    let before = table.split("against sidecar, the case before").nth(1).unwrap();
    let row = before.lines().find(|line| line.starts_with("  gateway ")).unwrap();
    assert_eq!(row.matches('?').count(), 2, "data plane and application: {row}");
}

#[test]
fn nothing_is_said_of_the_data_plane_of_a_case_without_one() {
    let said = &answers_of(&egress_gateway())[0];
    assert!(said.contains(" none carries ") && !said.contains("data plane"), "{said}");
}

#[test]
fn what_ran_at_equal_rate_stands_before_the_staircase() {
    let text = terminal(&egress_gateway(), 80, false);
    let at = |title: &str| text.find(&format!("\n{title}\n-")).unwrap();
    assert!(at("At equal rate: same-rate") < at("What each case costs"));
    let same_rate = section_of(&egress_gateway(), "At equal rate: same-rate");
    assert!(same_rate.contains("CPU per request of the data plane, us"), "{same_rate}");
    assert!(same_rate.contains("Against the case before: gateway against sidecar,"), "{same_rate}");
}

#[test]
fn of_a_single_block_it_is_said_that_blocks_are_too_few() {
    let mut findings = egress_gateway();
    findings.staircases[0].differences.clear();
    let said = answers_of(&findings);
    assert!(said[0].contains("fewer than two blocks have both"), "{said:?}");
}

#[test]
fn a_published_change_stands_beside_what_was_measured_against_either_case() {
    let mut findings = egress_gateway();
    difference(&mut findings, ["gateway-sni", "bypass"]).throughput_ratio.value = 0.777;
    let published = section_of(&findings, "Published figures");
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
fn a_measured_change_like_the_published_one_is_not_reproduced_while_nothing_can_be_told() {
    let mut findings = egress_gateway();
    let of = difference(&mut findings, ["gateway-mtls", "gateway"]);
    of.throughput_ratio.value = 0.897;
    of.verdict = Verdict::CannotTell { floor: 0.14, more_blocks: None };
    let report = markdown(&findings).replace('\u{a0}', " ");
    let rows: Vec<&str> =
        report.lines().filter(|line| line.contains("| against gateway |")).collect();
    let [row] = rows[..] else { panic!("{rows:?}") };
    assert!(row.contains("| -10 | -10.3 |") || row.contains("| −10 | −10.3 |"), "{row}");
    assert!(row.ends_with("| cannot tell: the noise floor is 14.0 % |"), "{row}");
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
    let published = section_of(&findings, "Published figures");
    let rows: Vec<&str> =
        published.lines().map(str::trim).filter(|line| line.starts_with("against ")).collect();
    assert_eq!(rows.len(), 3, "{published}");
    assert!(rows[0].starts_with("against sidecar"), "{published}");
    assert!(rows[1].starts_with("against gateway ") && rows[1].ends_with("did not run"));
    assert!(rows[2].starts_with("against gateway-mtls") && rows[2].ends_with("did not run"));
}

#[test]
fn the_database_that_ran_and_the_mean_answer_stand_before_all_figures() {
    let mut findings = egress_gateway();
    findings.staircases[0].answer_bytes = Some(583.2);
    findings.manifest[1].1 = "mongod 7.0.14".into();
    let said = section_of(&findings, "What ran");
    let lead = "The database is mongod 7.0.14. An answer carries 583 bytes on average.";
    assert!(said.trim_start_matches('-').trim_start().starts_with(lead), "{said}");
    findings.manifest.remove(1);
    assert!(!section_of(&findings, "What ran").contains("The database is"));
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
        "climb",
        "response-times",
        "data-plane-clients-20",
        "application-clients-20",
        "data-plane-climb",
    ];
    for chart in charts {
        let of = page.split(&format!("id=\"{chart}\"")).nth(1).unwrap();
        let of = of.split("</figure>").next().unwrap();
        let said = between(of, "<desc", "</desc>").concat();
        assert!(said.contains("gateway-sni"), "{chart}: {said}");
    }
    let climb = page.split("id=\"climb\"").nth(1).unwrap().split("</figure>").next().unwrap();
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
    let folded = |report: &str| between(report, "<details", "</details>").len();
    assert_eq!(folded(&html(&egress_gateway())), 8 + 3, "steps, same-rate, claims and trials");
    assert_eq!(folded(&markdown(&egress_gateway())), 1 + 1, "a step and trials");
}

/// As long as a run of the study is: seven arms, nine loads, five blocks, with all that the analysis makes of it.
fn as_long_as_a_real_run() -> Findings {
    let mut findings = crate::analysis::findings(&made_up());
    let same_rate =
        LoadFindings { name: "same-rate".into(), cell: None, ..findings.loads[3].clone() };
    let of_rate: Vec<TrialLine> =
        findings.trials.iter().filter(|t| t.load == "clients-20").cloned().collect();
    findings
        .trials
        .extend(of_rate.into_iter().map(|t| TrialLine { load: "same-rate".into(), ..t }));
    findings.trials[9].invalid =
        Some("send-lag: p50 1 us, p99 7373 us, 0 of 371 requests waited for a connection".into());
    findings.loads.insert(0, LoadFindings { view: View::EqualRate, ..same_rate });
    findings.proofs = egress_gateway().proofs;
    let claims = findings.proofs.iter_mut().flat_map(|proof| &mut proof.claims);
    claims.for_each(|claim| (claim.1, claim.2) = (claim.1.repeat(20), claim.2.repeat(20)));
    findings
}

#[test]
fn a_forge_takes_the_markdown_report_of_a_staircase() {
    let findings = as_long_as_a_real_run();
    assert_eq!(findings.trials.len(), 315);
    let report = markdown(&findings);
    assert!(report.chars().count() < 65_536, "{}", report.chars().count());
    assert!(report.contains("314 of 315 trials count."));
    assert!(report.contains("no: send-lag: p50 1 us"), "why a trial does not count");
    assert!(html(&findings).contains("As hey sums up all valid trials"));
}

#[test]
fn claims_of_the_same_cases_stand_together_and_what_fails_stands_first() {
    let mut findings = egress_gateway();
    let sni = findings.proofs.last_mut().unwrap();
    let last = sni.claims.iter_mut().find(|c| c.0.starts_with("customers sidecar, inb")).unwrap();
    last.3 = false;
    let report = markdown(&findings);
    let rows: Vec<&str> =
        report.lines().skip_while(|line| !line.contains("trials proven")).collect();
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
    let said = answers_of(&findings);
    assert!(said[0].contains(" over 1 to 60 clients of clients, staircase 1,"), "{said:?}");
    assert!(said[5].contains(" over 1 to 60 clients of clients, staircase 2,"), "{said:?}");
    assert!(terminal(&findings, 80, false).contains("What each case costs: clients, staircase 2"));
}

#[test]
fn a_study_without_a_staircase_has_none_of_this() {
    for report in [html(&customer_360()), markdown(&ambient_replicas())] {
        for absent in ["What ran", "What each case costs", "against clients", "the case before"] {
            assert!(!report.contains(absent), "{absent}");
        }
    }
}
