//! The whole instrument against arithmetic: a service that stalls for S in every T answers a request x late
//! or later with probability P(latency > x) = (S - x) / T. A tool that waits for answers before it sends
//! (coordinated omission) finds some 0.2 % of requests delayed here instead of 10 %, and a p99 near the median.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use toll_load::{Check, LoadReport};

/// S = 100 ms, T = 1000 ms: p99 = S - 0.01 T, p99.9 = S - 0.001 T.
const P99_MS: f64 = 90.0;
const P999_MS: f64 = 99.0;
/// A quiet machine stays within 2 %. A busy one answers later, never earlier, so the quietest slice is judged.
const TOLERANCE: f64 = 0.05;

/// A slice lasts five periods. Arrivals are 1.999 ms apart and move on by a fifth of that from stall to stall,
/// so that the latencies of all stalls together lie 0.4 ms apart.
const STUDY: &str = "
study: stall
question: Does a stall show as arithmetic says?
app:
  entry: server
  services:
    server: {port: 9000, program: {built_in: {work: {cpu: 0us}, stall: {every: 1s, for: 100ms}}}}
variants:
  a: {}
  b: {}
baseline: a
loads:
  steady: {open: {rate: 500.2/s}, slice: 5s}
rounds: 1
cycles: 1
settle: {slice: 100ms, max: 600ms, connections: 1, rest: 0s}
idle: 0s
";

#[test]
fn a_stall_shows_in_the_percentiles_of_a_whole_run_as_arithmetic_says() {
    let dir = tempfile::tempdir().unwrap();
    let loads = measured_loads(dir.path());
    assert_eq!(loads.len(), 6);
    for (quantile, expected_ms) in [(0.99, P99_MS), (0.999, P999_MS)] {
        let quantiles = loads.iter().map(|load| load.measure.latency.quantile_us(quantile) / 1e3);
        let seen_ms: Vec<f64> = quantiles.collect();
        println!("p{} {seen_ms:.2?} ms, by arithmetic {expected_ms} ms", quantile * 100.0);
        let quietest_ms = seen_ms.into_iter().fold(f64::INFINITY, f64::min);
        assert!((quietest_ms / expected_ms - 1.0).abs() < TOLERANCE, "{quietest_ms} ms");
    }
    // A service that stalls is not the load generator's fault.
    let mut checks = loads.iter().flat_map(|load| &load.checks);
    let failed = checks.find(|check| !check.holds && !judges_the_machine(check));
    assert_eq!(failed, None);
}

/// Checks that a busy machine may fail, whatever the service does.
fn judges_the_machine(check: &Check) -> bool {
    ["send-lag", "own-cpu"].contains(&check.name.as_str())
}

/// The reports of all slices of a real run at the best isolation level of this machine.
fn measured_loads(dir: &Path) -> Vec<LoadReport> {
    let (study, run) = (dir.join("stall.yaml"), dir.join("run"));
    fs::write(&study, STUDY).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toll"))
        .args(["run", "--seed", "1", "--out"])
        .args([&run, &study])
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(run.join("report.json").exists(), "{talk}");
    ["a", "b", "a-again"].iter().flat_map(|arm| slices(&run.join("rounds/01").join(arm))).collect()
}

fn slices(arm: &Path) -> Vec<LoadReport> {
    let text = fs::read_to_string(arm.join("slices.jsonl")).unwrap();
    let report = |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["report"].take();
    text.lines().map(|line| serde_json::from_value(report(line)).unwrap()).collect()
}
