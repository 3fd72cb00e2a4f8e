use super::*;
use crate::fixture::graphs::with_replicas;
use crate::fixture::{chain, in_mesh};

/// All objects as one text.
fn rendered(deployment: &Deployment) -> String {
    let files = render(deployment, "toll:test").unwrap();
    files.into_iter().map(|file| format!("# {}\n{}\n", file.name, file.text)).collect()
}

#[test]
fn a_bare_chain_is_two_workloads_with_a_service_each() {
    insta::assert_snapshot!(rendered(&chain()));
}

#[test]
fn a_sidecar_of_tolls_is_a_second_container_that_alone_is_reached() {
    insta::assert_snapshot!(rendered(&in_mesh(chain())));
}

fn status(name: &str) -> PodStatus {
    PodStatus {
        name: name.into(),
        ip: None,
        node: "n".into(),
        ready: true,
        containers: vec![],
        state: String::new(),
    }
}

#[test]
fn pods_are_known_by_the_names_of_the_deployment() {
    let deployment = with_replicas(chain(), "server", 2);
    let statuses = ["client-0", "server-0", "server-1"].map(status);
    let by_pod = by_pod(&deployment, &statuses);
    let names: Vec<(&str, &str)> =
        by_pod.iter().map(|(pod, status)| (pod.as_str(), status.name.as_str())).collect();
    assert_eq!(names, [("client", "client-0"), ("server-1", "server-0"), ("server-2", "server-1")]);
}

#[test]
fn what_cannot_be_in_a_cluster_yet_is_refused_with_its_name() {
    let mut deployment = chain();
    deployment.services[1].program = crate::Program::Command(crate::UserProgram::of(["./mine"]));
    let error = render(&deployment, "toll:test").unwrap_err().to_string();
    assert_eq!(error, "the service `server` (a program of your own) cannot run on Kubernetes yet");
}
