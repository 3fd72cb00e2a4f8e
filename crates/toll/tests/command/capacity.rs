//! `toll plan-capacity` on a stored run whose costs are known: made up here, read by the real command.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toll_lab::{
    Component, ComponentSample, DataPlane, Deployment, Egress, HostSample, MemorySample, Mtls,
    Nginx, Program, Reading, Role, Sample, Service, SidecarProxy,
};
use toll_load::{LoadReport, PhaseReport};

use crate::process::Ended;
use crate::workplace::Workplace;

const ROUNDS: usize = 3;
const SIZES: [usize; 3] = [1, 10, 50];
const RATES: [u64; 2] = [20, 50];
const VARIANTS: [&str; 2] = ["bare", "sidecar"];
const MIB: f64 = 1024.0 * 1024.0;

/// What an arm shows: memory (MiB), CPU (thousandths of a core), latency (microseconds).
fn shown(variant: &str, pods: f64, rate: f64, round: f64) -> [f64; 3] {
    // A scatter that shares no pattern with the cells.
    let scatter = 1.0 + 0.004 * ((round * 7.0 + pods * 3.0 + rate * 0.7) % 5.0 - 2.0);
    match variant {
        "bare" => [30.0 + 2.0 * pods, 3.0 + 0.1 * pods + 0.2 * rate, 700.0],
        _ => [70.0 + 20.0 * pods, 5.0 + pods + 0.5 * rate, 1_100.0 + 2.0 * pods],
    }
    .map(|value| value * scatter)
}

fn plan(swept: bool) -> Value {
    let loads = SIZES.iter().flat_map(|pods| RATES.map(|rate| load(*pods, rate, swept)));
    let plane = DataPlane::Sidecar {
        egress: Egress::Sidecar,
        proxy: SidecarProxy::Envoy,
        mtls: Mtls::Strict,
    };
    json!({
        "version": 3, "study": "made-up", "question": "?", "baseline": "bare", "seed": 1,
        "profile": "default", "headline": ["memory"], "bound": 0.05, "idle_s": 0.0, "cycles": 1,
        "extent": {"rounds": ROUNDS, "for_s": null, "width": null, "least_rounds": 8},
        "guard_s": 0.1, "side_by_side": true,
        "settle": {"slice_s": 0.1, "max_s": 1.0, "connections": 1},
        "variants": [variant("bare", DataPlane::Bare), variant("sidecar", plane)],
        "arms": VARIANTS.map(|variant| json!({"variant": variant, "again": false})),
        "loads": loads.collect::<Vec<_>>(),
        "reference": null, "warnings": []
    })
}

fn variant(name: &str, data_plane: DataPlane) -> Value {
    let service = |name: &str, program, calls: &[&str]| Service {
        external: None,
        name: name.into(),
        group: name.into(),
        replicas: 1,
        port: 8080,
        program,
        calls: calls.iter().map(|callee| (*callee).into()).collect(),
        observed_calls: vec![],
        metrics: None,
        tls: false,
        node: None,
    };
    let services = vec![
        service("gateway", Program::Gateway, &["nginx"]),
        service("nginx", Program::Nginx(Nginx { bytes: 615 }), &[]),
    ];
    let (nodes, entry) = (1, "gateway".into());
    let envoy = Box::default();
    let deployment = Deployment { nodes, name: name.into(), entry, services, data_plane, envoy };
    json!({"name": name, "describes": name, "state": {"ready": deployment}})
}

fn load(pods: usize, rate: u64, swept: bool) -> Value {
    let replicas = swept.then(|| json!(["nginx", pods]));
    json!({
        "name": load_name(pods, rate),
        "cell": {"load": "get", "rate_per_s": rate as f64, "replicas": replicas, "nodes": null},
        "release": {"open": {"rate": {"per_second": rate as f64}, "poisson": false, "max_connections": 10}},
        "slice": {"seconds": 3.0}
    })
}

fn load_name(pods: usize, rate: u64) -> String {
    format!("get-{rate}x{pods}")
}

/// The directory of a run as `toll run` leaves it; without a sweep its loads only differ in their rates.
fn store(dir: &Path, swept: bool) {
    let write = |path: &Path, value: &Value| fs::write(path, value.to_string()).unwrap();
    fs::create_dir_all(dir).unwrap();
    write(&dir.join("plan.json"), &plan(swept));
    let host =
        json!({"facts": [], "lacks": [], "isolation": null, "realtime": false, "changes": []});
    write(&dir.join("host.json"), &host);
    for round in 1..=ROUNDS {
        let folder = dir.join("rounds").join(format!("{round:02}"));
        for variant in VARIANTS {
            // Without a sweep all loads are of one size.
            let sizes = if swept {
                SIZES.iter().map(|pods| vec![*pods]).collect()
            } else {
                vec![SIZES.to_vec()]
            };
            for (size, pods) in sizes.into_iter().enumerate() {
                let of_size = if size == 0 {
                    folder.clone()
                } else {
                    folder.join(format!("size-{}", size + 1))
                };
                let arm = of_size.join(variant);
                fs::create_dir_all(&arm).unwrap();
                write(
                    &arm.join("arm.json"),
                    &json!({"invalid": [], "settled": null, "idle": null}),
                );
                let slices = pods
                    .iter()
                    .flat_map(|pods| RATES.map(|rate| slice(round, variant, *pods, rate)));
                fs::write(arm.join("slices.jsonl"), slices.collect::<String>()).unwrap();
            }
        }
        write(&folder.join("round.json"), &json!({"version": 3, "wall_s": 1.0}));
    }
}

/// A line of `slices.jsonl`.
fn slice(round: usize, variant: &str, pods: usize, rate: u64) -> String {
    let [mib, millicores, us] = shown(variant, pods as f64, rate as f64, round as f64);
    let slice = json!({
        "load": load_name(pods, rate), "cycle": 1, "place": 0, "rate_per_s": rate as f64,
        "report": report(us), "invalid": [],
        "samples": [sample(mib, millicores, 1.0), sample(mib, millicores, 4.0)]
    });
    format!("{slice}\n")
}

fn report(latency_us: f64) -> LoadReport {
    let mut measure =
        PhaseReport { end_ns: 3_000_000_000, done: 100, completed: 100, ..PhaseReport::default() };
    measure.latency.record_n_ns((latency_us * 1e3) as u64, 100);
    LoadReport { version: 2, measure, ..LoadReport::default() }
}

fn sample(mib: f64, millicores: f64, at_s: f64) -> Sample {
    let memory = || Reading::Value((mib * MIB) as u64);
    let component = ComponentSample {
        component: Component { role: Role::Gateway, pod: "gateway".into() },
        cpu_ns: Reading::Value((millicores * at_s * 1e6) as u64),
        memory: MemorySample { current: memory(), anonymous: memory(), peak: memory() },
    };
    Sample {
        at_ns: (at_s * 1e9) as u64,
        took_ns: 1,
        components: vec![component],
        host: HostSample { busy_ns: 0, steal_ns: 0, runnable: 1 },
        metrics: vec![],
    }
}

/// `toll plan-capacity RUN` with these options on a stored run.
fn asked(swept: bool, options: &[&str]) -> Ended {
    let place = Workplace::new();
    store(&place.run_dir(), swept);
    let mut command = place.toll();
    command.arg("plan-capacity").arg(place.run_dir()).args(options);
    place.finish(command)
}

#[test]
fn a_stored_run_tells_what_a_fleet_would_cost() {
    let ended = asked(true, &["--pods", "40", "--rate", "30/s", "--format", "json"]);
    ended.assert_status(0);
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (at, [mib, millicores]) in [[110.0, 13.0], [870.0, 60.0]].into_iter().enumerate() {
        let predictions = &answer["variants"][at]["predictions"];
        for (prediction, truth) in [(&predictions[0], mib), (&predictions[1], millicores)] {
            let value = prediction["predicted"]["value"].as_f64().unwrap();
            assert!((value / truth - 1.0).abs() < 0.03, "{value} is not {truth}");
            assert_eq!(prediction["extrapolated"], false);
            let error = prediction["held_out"][0]["error"].as_f64().unwrap();
            assert!(error.abs() < 0.1, "{error}");
        }
    }
    let added = &answer["variants"][1]["predictions"][2];
    assert_eq!(added["quantity"], "added_p50");
    assert!((added["predicted"]["value"].as_f64().unwrap() / 480.0 - 1.0).abs() < 0.05, "{added}");
}

#[test]
fn the_table_fits_80_columns_and_tells_every_variant() {
    let ended = asked(true, &["--pods", "40", "--rate", "30"]);
    ended.assert_status(0);
    assert!(ended.stdout.starts_with("made-up: 40 pods of nginx at 30 requests/s\n"));
    assert!(ended.stdout.contains("held-out error"), "{}", ended.stdout);
    assert_eq!(ended.stdout.matches("\n  sidecar ").count(), 4, "{}", ended.stdout);
}

#[test]
fn outside_of_what_was_measured_it_refuses_unless_told_to_go_on() {
    let far = ["--pods", "100", "--rate", "30"];
    let refused = asked(true, &far);
    refused.assert_status(1);
    refused.assert_says("error: 100 pods are 2.0 times the largest measured, 50");
    refused.assert_says("--extrapolate");
    assert_eq!(refused.stdout, "");
    let answered = asked(true, &[&far[..], &["--extrapolate"]].concat());
    answered.assert_status(0);
    assert!(answered.stdout.contains("* Outside of what was measured"), "{}", answered.stdout);
}

#[test]
fn a_run_without_a_sweep_is_told_which_study_has_one() {
    let refused = asked(false, &["--pods", "40", "--rate", "30"]);
    refused.assert_status(1);
    refused.assert_says("sweeps no replicas").assert_says("toll run ambient-replicas");
}

#[test]
fn a_fleet_of_no_pods_is_a_wrong_command_line() {
    asked(true, &["--pods", "0", "--rate", "30"]).assert_status(2);
    asked(true, &["--pods", "40", "--rate", "-1"]).assert_status(2);
}
