//! A sidecar that crashes and a redirect that is lost: the trial does not count, says why, and the run goes on.

use std::process::Command;

use toll_lab::Isolation;

use crate::left_behind::Footprint;
use crate::process::{Ended, Toll, kill_hard};
use crate::run_dir::{ended, measured, now, report};
use crate::skip;
use crate::study_text::meshed;
use crate::workplace::{Workplace, envoy, is_possible};

/// Brings a run up to the middle of a trial with sidecars.
fn measuring_istio(place: &Workplace) -> Toll {
    // Long enough that the load still runs when something is done to it.
    let mut toll = place.start_run(&meshed().lasting("2s"));
    toll.wait_for(&place.run_dir(), |events| now(events) == ("istio", "measure"));
    toll
}

/// Lets the trial under way and the next one end, then ends the run: it need not be waited for.
fn end_after_the_next_trial(mut toll: Toll, place: &Workplace) -> Ended {
    let before = measured(&place.run_dir()).len();
    toll.wait_for(&place.run_dir(), |events| ended(events) >= before + 2);
    toll.press_ctrl_c();
    let interrupted = toll.finish();
    interrupted.assert_status(130);
    interrupted
}

/// Why the trials with sidecars do not count, by their verdicts; the report says the same.
fn reasons(place: &Workplace) -> String {
    let run = place.run_dir();
    let trials = measured(&run);
    let istio = trials.iter().find(|(name, _)| name.contains("istio")).unwrap().1;
    let reasons = istio.invalid().join("; ");
    let lines = report(&run)["trials"].as_array().unwrap().clone();
    let line = lines.iter().find(|line| line["variant"] == "istio").unwrap();
    assert_eq!(line["invalid"], reasons);
    reasons
}

#[test]
fn a_sidecar_that_crashes_before_the_load_is_named_and_not_what_failed_after_it() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    let place = Workplace::new();
    let mut toll = place.start_run(&meshed().rest("blocks: 2\nidle: 1s"));
    toll.wait_for(&place.run_dir(), |events| now(events) == ("istio", "idle"));
    kill_hard(toll.descendant("client.envoy.yaml"));
    end_after_the_next_trial(toll, &place);
    let reasons = reasons(&place);
    assert!(reasons.starts_with("client sidecar ended by itself with signal SIGKILL"), "{reasons}");
}

#[test]
fn a_sidecar_that_crashes_under_load_makes_its_trial_invalid_and_the_run_goes_on() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    let place = Workplace::new();
    let toll = measuring_istio(&place);
    let footprint = Footprint::of(toll.pid());
    kill_hard(toll.descendant("client.envoy.yaml"));
    let ended = end_after_the_next_trial(toll, &place);
    let crash = "client sidecar ended by itself with signal SIGKILL";
    ended.assert_says(&format!("does not count: {crash}"));
    assert!(reasons(&place).starts_with(crash), "{}", reasons(&place));
    footprint.assert_gone();
}

#[test]
fn a_redirect_that_is_lost_under_load_makes_the_trial_invalid_because_of_its_path() {
    if envoy().is_none() {
        skip!("there is no Envoy");
    }
    if !is_possible(Isolation::Pods) {
        skip!("isolation level pods is not possible here");
    }
    let place = Workplace::new();
    let toll = measuring_istio(&place);
    flush_firewall_of(toll.descendant("client.service.json"));
    end_after_the_next_trial(toll, &place).assert_says("does not count");
    let reasons = reasons(&place);
    let lost = "path not proven: client sidecar, inbound: every request came from the load";
    assert!(reasons.contains(lost), "{reasons}");
    let plaintext = "path not proven: server sidecar, inbound: no request came as plaintext";
    assert!(reasons.contains(plaintext), "{reasons}");
    let proofs = report(&place.run_dir())["proofs"].as_array().unwrap().clone();
    let istio = proofs.iter().find(|proof| proof["variant"] == "istio").unwrap();
    assert_eq!((&istio["trials"], &istio["proven"]), (&1.into(), &0.into()));
}

/// From outside, in the network namespace of the process.
fn flush_firewall_of(pid: i32) {
    let mut flush = Command::new("nsenter");
    flush.args(["--target", &pid.to_string(), "--net", "nft", "flush", "ruleset"]);
    assert!(flush.status().unwrap().success());
}
