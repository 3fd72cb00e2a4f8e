//! Runs are made up: every client of a scenario has the same numbers, but for those that a test is about.

use super::*;
use crate::arrivals::Exactness;
use crate::figures::fixture;
use crate::machine::Disturbance;
use crate::reading::SendLag;
use crate::runner::Outcome;
use crate::scenario::{Contender, Effort};

fn results(scenario: Scenario, trial: impl Fn(&Contender, usize) -> Trial) -> Results {
    let row = |contender: Contender| {
        let trials = (0..5).map(|round| Ok(trial(&contender, round))).collect();
        Row { contender, version: "1.0".into(), outcome: Outcome::Trials(trials) }
    };
    let rows = scenario.contenders(&Effort::new(5, 4)).into_iter().map(row).collect();
    let disturbance = Disturbance { load_average: [0.0; 2], steal: [0.0; 2] };
    Results { scenario, rows, disturbance }
}

fn plain(requests: f64) -> Trial {
    fixture::trial(requests, 1.0).unwrap()
}

fn exact(p99_us: f64, rate_per_s: f64) -> Trial {
    Trial { exactness: Some(Exactness { rate_per_s, p50_us: 4.0, p99_us }), ..plain(1.0) }
}

fn bar_of(run: &[Results], what: &str) -> Bar {
    let found: Vec<Bar> = bars(run).into_iter().filter(|bar| bar.what.contains(what)).collect();
    assert_eq!(found.len(), 1, "{what}");
    found.into_iter().next().unwrap()
}

fn assert_measured(run: &[Results], what: &str, expected: f64, verdict: &str) {
    let bar = bar_of(run, what);
    let measured = bar.measured.unwrap();
    assert!((measured - expected).abs() < 1e-6, "{what}: {measured}");
    assert_eq!(bar.verdict(), verdict, "{what}");
}

#[test]
fn a_run_without_tables_measures_no_bar() {
    let all = bars(&[]);
    assert_eq!(all.len(), 27);
    assert!(all.iter().all(|bar| bar.verdict() == "not measured"));
}

#[test]
fn a_bar_whose_peer_did_not_run_is_not_measured_and_its_neighbour_is() {
    let mut run = results(Scenario::Closed, |_, _| plain(100.0));
    run.rows.retain(|row| matches!(row.contender.client, Client::Toll | Client::Wrk));
    let run = [run];
    assert_measured(
        &run,
        "fast responder: requests per client CPU second, toll idle=block / wrk",
        1.0,
        "**not met**",
    );
    assert_eq!(
        bar_of(&run, "fast responder: requests per client CPU second, toll idle=block / oha")
            .verdict(),
        "not measured"
    );
    assert_eq!(bar_of(&run, "requests/s, toll idle=spin / wrk").verdict(), "not measured");
}

#[test]
fn a_bar_whose_rounds_all_failed_is_not_measured() {
    let mut run = results(Scenario::Tls, |_, _| plain(100.0));
    run.rows[0].outcome = Outcome::Trials(vec![Err("crash".into()); 5]);
    assert_eq!(bar_of(&[run], "HTTP/1.1 over TLS").verdict(), "not measured");
}

#[test]
fn cpu_bars_take_the_blocking_toll_and_medians_of_ratios() {
    let per_round = [270.0, 135.0, 139.0, 100.0, 136.0];
    let run = [results(Scenario::Closed, |by, round| match by.client {
        Client::Toll => plain(per_round[round]),
        Client::TollSpin => plain(1e6),
        _ => plain(100.0),
    })];
    let what =
        |peer| format!("fast responder: requests per client CPU second, toll idle=block / {peer}");
    assert_measured(&run, &what("wrk"), 1.36, "met");
    assert_measured(&run, &what("h2load"), 1.36, "**not met**");
}

#[test]
fn at_nginx_cpu_time_is_claimed_for_one_configuration_and_throughput_for_the_other() {
    let run = [results(Scenario::Nginx, |by, round| match by.client {
        Client::Toll if round == 3 => plain(99.0),
        Client::Toll => Trial { cpu_s: 0.5, ..plain(90.0) },
        Client::TollSpin => Trial { cpu_s: 9.0, ..plain(98.5) },
        _ => plain(100.0),
    })];
    let cpu = "nginx: requests per client CPU second, toll idle=block / wrk";
    let cpu_bars: Vec<Bar> =
        bars(&run).into_iter().filter(|bar| bar.what.starts_with(cpu)).collect();
    let judged = cpu_bars.iter().map(|bar| (bar.measured.unwrap(), bar.verdict()));
    assert_eq!(judged.collect::<Vec<_>>(), [(1.8, "met"), (0.99, "**not met**")]);
    assert_measured(&run, "nginx: requests/s, toll idle=spin / wrk", 0.985, "met");
}

#[test]
fn sends_are_compared_with_the_peer_that_was_best_in_each_round() {
    let run = [results(Scenario::Open, |by, round| match (by.client, round) {
        (Client::Toll, _) => exact(50.0, 5_000.0),
        (Client::TollSpin, _) => exact(1.0, 5_000.0),
        (Client::Oha, 0 | 1) | (Client::K6, 2) => exact(450.0, 5_000.0),
        _ => exact(900.0, 5_000.0),
    })];
    assert_measured(&run, "p99 of the best peer / p99", 9.0, "**not met**");
    assert_measured(&run, "send instant at 5,000/s, toll idle=block: p50", 4.0, "met");
}

#[test]
fn each_rate_has_its_own_bar_of_lag() {
    let run = [results(Scenario::Lag, |_, _| {
        let mut trial = plain(1.0);
        trial.reading.send_lag = Some(SendLag { p50_us: 1.0, p99_us: 40.0 });
        trial
    })];
    assert_measured(&run, "lag at 1,000/s, toll idle=block: p99", 40.0, "**not met**");
    assert_measured(&run, "lag at 10,000/s, toll idle=block: p99", 40.0, "met");
    assert_measured(&run, "lag at 10,000/s, toll idle=block: p50", 1.0, "met");
}

#[test]
fn the_stall_test_is_judged_by_ten_connections_and_by_its_worst_round_for_what_was_sent() {
    let run = [results(Scenario::Stall, |by, round| {
        let fixed = by.client == Client::Toll && by.load.most_connections == 10;
        let mut trial = plain(1.0);
        let latency = &mut trial.reading.latency;
        latency.p50_ms = Some(0.125);
        (latency.p99_ms, latency.p999_ms) =
            if fixed { (Some(147.1), Some(197.0)) } else { (Some(1.0), None) };
        let served = if round == 4 { 9_999.0 } else { 10_000.0 };
        Trial { served: Some(served), unstalled_p50_ms: Some(0.1), ..trial }
    })];
    let judged: Vec<(f64, &str)> = bars(&run)
        .into_iter()
        .filter(|bar| bar.what.starts_with("stall test"))
        .map(|bar| ((bar.measured.unwrap() * 1e3).round() / 1e3, bar.verdict()))
        .collect();
    let expected =
        [(147.1, "met"), (197.0, "**not met**"), (25.0, "**not met**"), (99.99, "**not met**")];
    assert_eq!(judged, expected);
}

#[test]
fn a_steady_run_is_judged_by_the_size_of_its_error_and_by_its_growth() {
    let run = [results(Scenario::Steady, |by, _| {
        let long = by.load.seconds > 5;
        let peak_rss_mb = if long { 11.0 } else { 10.0 };
        Trial { peak_rss_mb, ..exact(1.0, if long { 4_999.0 } else { 5_000.0 }) }
    })];
    assert_measured(&run, "rate error, size", 0.02, "**not met**");
    assert_measured(&run, "peak resident memory", 11.0, "met");
    assert_measured(&run, "that of the short run", 1.1, "**not met**");
}

#[test]
fn goals_hold_at_their_own_value_and_on_their_own_side() {
    assert!(Goal::AtLeast(1.35).is_met_by(1.35) && !Goal::AtLeast(1.35).is_met_by(1.349));
    assert!(Goal::AtMost(5.0).is_met_by(5.0) && !Goal::AtMost(5.0).is_met_by(5.001));
    let around = Goal::Within(150.0, 2.0);
    assert!([147.0, 153.0].iter().all(|value| around.is_met_by(*value)));
    assert!(![146.9, 153.1].iter().any(|value| around.is_met_by(*value)));
}

#[test]
fn a_bar_is_one_line_with_goal_number_and_verdict() {
    let run = [results(Scenario::Tls, |_, _| plain(100.0))];
    let text = markdown(&run);
    let line = "| nginx, HTTP/1.1 over TLS: requests per client CPU second, toll idle=block / h2load \
                | >= 1x | 1.000x | met |\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("p99 | 150.0 ms +- 2 % | - | not measured |\n"), "{text}");
    assert!(
        text.ends_with(
            "\n\nFrom the tables of one run, medians of 5 interleaved rounds or more.\n"
        )
    );
}

#[test]
fn fewer_good_rounds_than_the_bars_ask_for_are_said() {
    assert!(
        markdown(&[]).ends_with("medians of 0 interleaved rounds or more; the bars ask for 5.\n")
    );
    let mut run = results(Scenario::Tls, |_, _| plain(100.0));
    let Outcome::Trials(trials) = &mut run.rows[1].outcome else { panic!("made with trials") };
    trials[2] = Err("crash".into());
    let text = markdown(&[run]);
    assert!(
        text.ends_with("medians of 4 interleaved rounds or more; the bars ask for 5.\n"),
        "{text}"
    );
}
