//! toll in a real cluster. Needs one: `make test-cluster` brings it up, loads toll's image into it, and runs these.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const TOLL: &str = env!("CARGO_BIN_EXE_toll");

fn toll(arguments: &[&str]) -> Output {
    Command::new(TOLL).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kubectl(arguments: &[&str]) -> String {
    let output = Command::new("kubectl").args(arguments).output().unwrap();
    assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The namespaces of all runs.
fn left() -> String {
    kubectl(&["get", "namespaces", "-l", "toll/run", "-o", "name"])
}

/// Runs a study with these options and gives its report.
fn report(study: &str, options: &[&str], dir: &Path) -> Value {
    let dir = dir.to_str().unwrap();
    let first = ["run", study, "--on", "kubernetes", "--exact-cpu", "--out", dir];
    let output = toll(&[&first, options].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = std::fs::read(Path::new(dir).join("report.json")).unwrap();
    serde_json::from_slice(&json).unwrap()
}

fn run(options: &[&str]) -> Child {
    let mut command = Command::new(TOLL);
    command.args(["run", "mesher", "--on", "kubernetes", "--exact-cpu"]).args(options);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn until(what: &str, longest: Duration, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + longest;
    while !is() {
        assert!(Instant::now() < deadline, "not within {longest:?}: {what}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
#[ignore = "needs a cluster: make test-cluster"]
fn mesher_is_measured_and_proven_with_two_load_pods_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let study = std::fs::read_to_string("../../studies/mesher.yaml").unwrap();
    let study = study.replace("rounds: 10\n", "rounds: 2\nload: {pods: 2}\n");
    let path = dir.path().join("mesher.yaml");
    std::fs::write(&path, study).unwrap();
    let report = report(path.to_str().unwrap(), &["--rounds", "2"], &dir.path().join("run"));
    let text = report.to_string();
    assert!(!text.contains("path not proven"), "{text}");
    assert_eq!(left(), "");
}

#[test]
#[ignore = "needs a cluster: make test-cluster"]
fn a_command_that_is_killed_is_cleaned_up_after_by_its_driver() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = run(&["--out", dir.path().join("run").to_str().unwrap()]);
    until("an arm is up", Duration::from_secs(60), || left().lines().count() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    until("all is gone", Duration::from_secs(180), || left().is_empty());
}

#[test]
#[ignore = "needs a cluster: make test-cluster"]
fn what_a_killed_driver_leaves_is_removed_by_clean() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = run(&["--out", dir.path().join("run").to_str().unwrap()]);
    until("an arm is up", Duration::from_secs(60), || left().lines().count() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let own = left().lines().min_by_key(|name| name.len()).unwrap().to_owned();
    let namespace = own.trim_start_matches("namespace/");
    kubectl(&["delete", "pod", "driver", "-n", namespace, "--force", "--grace-period=0"]);
    let cleaned = toll(&["clean", "--on", "kubernetes"]);
    assert!(text(&cleaned.stdout).contains(&format!("removed {namespace}")), "{cleaned:?}");
    assert_eq!(left(), "");
}

#[test]
#[ignore = "needs a cluster: make test-cluster"]
fn the_image_runs_as_a_pod_of_the_restricted_level() {
    let image = concat!("toll:", env!("CARGO_PKG_VERSION"));
    let pod = serde_json::json!({"spec": {"containers": [{
        "name": "version", "image": image, "imagePullPolicy": "Never", "args": ["--version"],
        "securityContext": {
            "allowPrivilegeEscalation": false, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    }]}});
    kubectl(&["create", "namespace", "image-test"]);
    let level = "pod-security.kubernetes.io/enforce=restricted";
    kubectl(&["label", "namespace", "image-test", level]);
    let overrides = format!("--overrides={pod}");
    let name = format!("--image={image}");
    kubectl(&["run", "version", "-n", "image-test", "--restart=Never", &name, &overrides]);
    let logs = || {
        text(
            &Command::new("kubectl")
                .args(["logs", "version", "-n", "image-test"])
                .output()
                .unwrap()
                .stdout,
        )
    };
    until("the image says its version", Duration::from_secs(60), || {
        logs().contains(env!("CARGO_PKG_VERSION"))
    });
    kubectl(&["delete", "namespace", "image-test"]);
}
