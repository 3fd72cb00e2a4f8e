//! The command against an API server without a node: `cluster/light`, where its programs are in the cache. They are not
//! built here, which takes minutes: `make cluster` does.

use std::process::{Command, Output};

use super::skip;
use super::workplace::TOLL;

const LIGHT: &str = "../../cluster/light";

/// Whether the API server need not be built first.
fn is_built() -> bool {
    let check = Command::new("../../cluster/build").arg("check").output();
    check.is_ok_and(|output| output.status.success())
}

/// Runs a script with an API server of its own.
fn with_api_server(script: &str) -> Output {
    Command::new(LIGHT).args(["bash", "-ec", script]).env("TOLL", TOLL).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_api_server_takes_all_objects_of_a_study_and_pods_are_of_the_restricted_level() {
    if !is_built() {
        skip!("the API server is not in the cache: make cluster builds it");
    }
    // Who breaks the level is warned when the server is given a workload, and refused when it is given its pods.
    let output = with_api_server(
        "cd \"$(dirname \"$KUBECONFIG\")\"
         \"$TOLL\" manifests mesher >all.yaml
         kubectl apply -f all.yaml
         kubectl label namespaces --all pod-security.kubernetes.io/warn=restricted
         kubectl replace --dry-run=server -f all.yaml",
    );
    let (said, warned) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{warned}");
    assert!(said.contains("statefulset.apps/client created"), "{said}");
    // A namespace for each variant that can run.
    assert_eq!(said.matches("namespace/toll-00000000-").count(), 2 * 3, "{said}");
    assert!(!warned.contains("PodSecurity"), "{warned}");
}

#[test]
fn the_printed_role_is_all_that_doctor_asks_for() {
    if !is_built() {
        skip!("the API server is not in the cache: make cluster builds it");
    }
    let output = with_api_server(
        "kubectl config use-context guest
         \"$TOLL\" doctor --on kubernetes | sed 's/^/before: /'
         \"$TOLL\" manifests --rbac | kubectl apply --context=admin -f -
         kubectl create clusterrolebinding toll --clusterrole=toll --user=guest --context=admin
         \"$TOLL\" doctor --on kubernetes | sed 's/^/after: /'",
    );
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(!said.contains("before:   may do all that it needs"), "{said}");
    assert!(said.contains("after:   may do all that it needs"), "{said}");
}
