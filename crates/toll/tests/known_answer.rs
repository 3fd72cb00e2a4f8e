//! The whole instrument against arithmetic: a service that stalls for S in every T answers a request x late
//! or later with probability P(latency > x) = (S - x) / T. A tool that waits for answers before it sends
//! (coordinated omission) finds some 0.2 % of requests delayed here instead of 10 %, and a p99 near the median.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
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

/// Slices are half a second, answers up to more than twice that.
const SLOW: &str = "
study: slow
app:
  entry: server
  services:
    server: {port: 9000, program: {built_in: {work: {cpu: 0us}, stall: {every: 1200ms, for: 1100ms}}}}
variants:
  a: {}
  b: {}
baseline: a
loads:
  steady: {open: {rate: 50/s}, slice: 500ms}
rounds: 1
cycles: 2
settle: {slice: 100ms, max: 600ms, connections: 1, rest: 0s}
idle: 0s
";

#[test]
fn a_stall_shows_in_the_percentiles_of_a_whole_run_as_arithmetic_says() {
    let dir = tempfile::tempdir().unwrap();
    let loads: Vec<LoadReport> = slices_of(STUDY, dir.path()).iter().map(load_of).collect();
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

#[test]
fn slices_of_two_arms_never_overlap_however_slow_the_answers_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut slices: Vec<Slice> = slices_of(SLOW, dir.path()).iter().map(Slice::of).collect();
    assert_eq!(slices.len(), 3 * 2 * 2);
    slices.sort_by_key(|slice| slice.begin_ns);
    let slowest_us =
        slices.iter().map(|slice| slice.load.measure.latency.max_us()).fold(0.0, f64::max);
    assert!(slowest_us > 7e5, "no answer took longer than its slice: {slowest_us} us");
    for pair in slices.windows(2) {
        assert!(pair[0].end_ns <= pair[1].begin_ns, "they overlap: {pair:#?}");
    }
    for Slice { begin_ns, end_ns, load } in slices {
        let sent_ns = load.warm_up.begin_ns;
        assert!(begin_ns <= sent_ns, "sent at {sent_ns}, before the counters of {begin_ns}");
        for phase in [&load.warm_up, &load.measure] {
            assert_eq!((phase.sent, phase.unanswered), (phase.done, 0), "{load:#?}");
        }
        assert!(load.measure.end_ns <= end_ns, "{} is after {end_ns}", load.measure.end_ns);
    }
}

/// A request that is answered after its slice's end is paid for all the same, once and by its own slice.
#[test]
fn a_request_costs_the_same_cpu_whether_it_is_answered_at_once_or_after_twice_the_length_of_a_slice()
 {
    let dir = tempfile::tempdir().unwrap();
    let slow = SLOW.replace("cpu: 0us", "cpu: 500us");
    let at_once = slow.replace(", stall: {every: 1200ms, for: 1100ms}", "");
    assert_ne!(slow, at_once);
    let [slow_us, at_once_us] = [("slow", slow), ("at-once", at_once)].map(|(name, text)| {
        let dir = dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        slices_of(&text, &dir);
        server_us(&dir.join("run"))
    });
    println!("{slow_us} us of CPU a request, {at_once_us} us answered at once");
    assert!((500.0..2000.0).contains(&at_once_us), "{at_once_us} us");
    assert!((0.6..1.6).contains(&(slow_us / at_once_us)), "{slow_us} us, not {at_once_us} us");
}

/// CPU of the service per request as the report has it, microseconds.
fn server_us(run: &Path) -> f64 {
    let report: Value =
        serde_json::from_slice(&fs::read(run.join("report.json")).unwrap()).unwrap();
    let costs = report["loads"][0]["variants"][0]["cpu_per_request"].as_array().unwrap().clone();
    let server = costs.iter().find(|cost| cost.to_string().contains("server"));
    let server = server.unwrap_or_else(|| panic!("{costs:#?}"));
    server["cost"]["value"].as_f64().unwrap_or_else(|| panic!("{server:#?}"))
}

/// What a slice's counters enclose, and its load.
#[derive(Debug)]
struct Slice {
    begin_ns: u64,
    end_ns: u64,
    load: LoadReport,
}

impl Slice {
    fn of(line: &Value) -> Self {
        let samples = line["samples"].as_array().unwrap();
        let at = |sample: &Value| sample["at_ns"].as_u64().unwrap();
        Self {
            begin_ns: at(samples.first().unwrap()),
            end_ns: at(samples.last().unwrap()),
            load: load_of(line),
        }
    }
}

/// Checks that a busy machine may fail, whatever the service does.
fn judges_the_machine(check: &Check) -> bool {
    ["send-lag", "own-cpu"].contains(&check.name.as_str())
}

/// The lines of all slices of a real run at the best isolation level of this machine.
fn slices_of(text: &str, dir: &Path) -> Vec<Value> {
    let (study, run) = (dir.join("study.yaml"), dir.join("run"));
    fs::write(&study, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_toll"))
        .args(["run", "--seed", "1", "--out"])
        .args([&run, &study])
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(run.join("report.json").exists(), "{talk}");
    ["a", "b", "a-again"].iter().flat_map(|arm| lines(&run.join("rounds/01").join(arm))).collect()
}

fn lines(arm: &Path) -> Vec<Value> {
    let text = fs::read_to_string(arm.join("slices.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn load_of(line: &Value) -> LoadReport {
    serde_json::from_value(line["report"].clone()).unwrap()
}
