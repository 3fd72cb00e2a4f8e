//! The whole instrument against arithmetic: a service that stalls for S in every T answers a request x late
//! or later with probability P(latency > x) = (S - x) / T. A tool that waits for answers before it sends
//! (coordinated omission) finds some 0.2 % of requests delayed here instead of 10 %, and a p99 near the median.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use toll_load::{Check, LoadReport};

/// S = 100 ms, T = 1000 ms: p99 = S - 0.01 T, p99.9 = S - 0.001 T.
const P99_MS: f64 = 90.0;
const P999_MS: f64 = 99.0;
/// A quiet machine stays within 2 %. A busy one answers later, never earlier, so the quietest trial is judged.
const TOLERANCE: f64 = 0.05;

/// The phase lasts five periods. Arrivals are 1.999 ms apart and move on by a fifth of that from stall to stall,
/// so that the latencies of all stalls together lie 0.4 ms apart.
const STUDY: &str = "
study: stall
question: Does a stall show as arithmetic says?
app:
  entry: server
  services:
    server: {port: 9000, work: {cpu: 0us}, stall: {every: 1s, for: 100ms}}
variants:
  a: {}
  b: {}
baseline: a
loads:
  steady: {open: {rate: 500.2/s}, duration: 5s}
blocks: 2
warm_up: {min: 500ms, max: 500ms}
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

/// The reports of all trials of a real run at the best isolation level of this machine.
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
    trials(&run).iter().map(|trial| load(trial)).collect()
}

fn trials(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("trials")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn load(trial: &Path) -> LoadReport {
    serde_json::from_reader(File::open(trial.join("load.json")).unwrap()).unwrap()
}
