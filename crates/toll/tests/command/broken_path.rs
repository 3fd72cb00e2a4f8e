//! A sidecar that crashes and a redirect that is lost: the arm does not count in its round, says why, and the run goes on.

use std::process::Command;

use toll_lab::Isolation;

use crate::left_behind::Footprint;
use crate::process::{Ended, Toll, kill_hard};
use crate::run_dir::{as_text, measured, now, report};
use crate::skip;
use crate::study_text::meshed;
use crate::workplace::{Workplace, envoy, is_possible};

/// Brings a run up to where the load goes round the arms.
fn measuring(place: &Workplace) -> Toll {
    // Long enough that the load still runs when something is done to an arm.
    let mut toll = place.start_run(&meshed().lasting("1s"));
    toll.wait_for(&place.run_dir(), |events| now(events) == "slices");
    toll
}

/// Both rounds are measured.
fn finish(toll: Toll, place: &Workplace) -> Ended {
    let ended = toll.finish();
    assert_eq!(measured(&place.run_dir()).len(), 2, "{ended:#?}");
    ended
}

/// Why the arm with sidecars does not count in the first round, by its file; the report says the same.
fn reasons(place: &Workplace) -> String {
    let run = place.run_dir();
    let reasons = measured(&run)["01"].invalid("istio").join("; ");
    let lines = report(&run)["rounds"].as_array().unwrap().clone();
    let line = lines.iter().find(|line| line["arm"] == "istio" && line["round"] == 1).unwrap();
    let told: Vec<String> = line["invalid"].as_array().unwrap().iter().map(as_text).collect();
    for reason in measured(&run)["01"].invalid("istio") {
        assert!(told.contains(reason), "{reason} is not in {told:?}");
    }
    for other in ["original", "original-again"] {
        assert_eq!(measured(&run)["01"].invalid(other), [""; 0], "{other}");
    }
    reasons
}

#[test]
fn a_sidecar_that_crashes_before_the_load_is_named_and_not_what_failed_after_it() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    let place = Workplace::new();
    let mut toll = place.start_run(&meshed().rest("rounds: 2\ncycles: 1\nidle: 1s"));
    toll.wait_for(&place.run_dir(), |events| now(events) == "idle");
    kill_hard(toll.descendant("client.envoy.yaml"));
    finish(toll, &place);
    let reasons = reasons(&place);
    assert!(reasons.starts_with("client sidecar ended by itself with signal SIGKILL"), "{reasons}");
}

#[test]
fn a_sidecar_that_crashes_under_load_costs_its_arm_the_round_and_the_run_goes_on() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    let place = Workplace::new();
    let toll = measuring(&place);
    let footprint = Footprint::of(toll.pid());
    kill_hard(toll.descendant("client.envoy.yaml"));
    let ended = finish(toll, &place);
    let crash = "client sidecar ended by itself with signal SIGKILL";
    ended.assert_says(&format!("istio does not count: {crash}"));
    assert!(reasons(&place).starts_with(crash), "{}", reasons(&place));
    footprint.assert_gone();
}

#[test]
fn a_redirect_that_is_lost_under_load_costs_the_arm_its_round_because_of_its_path() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    if !is_possible(Isolation::Pods) {
        skip!("isolation level pods is not possible here");
    }
    let place = Workplace::new();
    let toll = measuring(&place);
    flush_firewall_of(toll.descendant("client.envoy.yaml"));
    finish(toll, &place).assert_says("does not count");
    let reasons = reasons(&place);
    let lost = r#"{"claim":{"claim":"client sidecar, inbound: every request came from the load"#;
    assert!(reasons.contains(lost), "{reasons}");
    let proofs = report(&place.run_dir())["proofs"].as_array().unwrap().clone();
    let istio = proofs.iter().find(|proof| proof["variant"] == "istio").unwrap();
    assert_eq!((&istio["arms"], &istio["proven"]), (&2.into(), &1.into()));
}

/// From outside, in the network namespace of the process.
fn flush_firewall_of(pid: i32) {
    let mut flush = Command::new("nsenter");
    flush.args(["--target", &pid.to_string(), "--net", "nft", "flush", "ruleset"]);
    assert!(flush.status().unwrap().success());
}
