//! Configurations of node proxies, waypoints, and gateways in an ambient mesh.

use super::*;
use crate::Role;
use crate::deployment::{Ambient, Metrics, NodeProxy};
use crate::fixture::graphs::{customer, in_pods, on_nodes, with_replicas};
use crate::planes::ambient::captured_redirects;
use crate::topology::HBONE_PORT;

const MARK: Capture = Capture::Transparent(Bypass::Mark(0x539));

/// `ingress` hands to `customer`, two pods that call `person`.
fn graph(mtls: Mtls, waypoint: bool) -> Deployment {
    let mut deployment = with_replicas(customer(), "customer", 2);
    deployment.services.truncate(3);
    deployment.services[2].calls.clear();
    let data_plane = DataPlane::Ambient(Ambient { proxy: NodeProxy::Envoy, mtls, waypoint });
    Deployment { data_plane, ..deployment }
}

fn plans(deployment: &Deployment, nodes: u8) -> Vec<ProxyPlan> {
    let topology = on_nodes(in_pods(deployment, MARK), deployment, nodes);
    proxy_plans(deployment, &topology, Path::new("/run/toll/x")).unwrap()
}

fn config(deployment: &Deployment, nodes: u8, pod: &str) -> String {
    plans(deployment, nodes).into_iter().find(|plan| plan.pod == pod).unwrap().config
}

#[test]
fn behind_the_gateways_there_is_a_proxy_for_each_node_and_then_the_waypoint() {
    let plans = plans(&graph(Mtls::Strict, true), 2);
    let what: Vec<(&str, Role)> = plans.iter().map(|p| (p.pod.as_str(), p.role)).collect();
    let expected = [
        ("ingress", Role::Gateway),
        ("node-1", Role::NodeProxy),
        ("node-2", Role::NodeProxy),
        ("waypoint", Role::Waypoint),
    ];
    assert_eq!(what, expected);
    assert!(plans.iter().all(|plan| plan.redirect.is_none()));
}

#[test]
fn the_proxy_of_a_strict_node_has_one_listener_with_sockets_in_all_pods_of_a_service() {
    insta::assert_snapshot!("node_strict", config(&graph(Mtls::Strict, false), 1, "node-1"));
}

#[test]
fn the_proxy_of_a_permissive_node_also_listens_for_plaintext() {
    let strict = config(&graph(Mtls::Strict, false), 2, "node-2");
    let permissive = config(&graph(Mtls::Permissive, false), 2, "node-2");
    assert!(!strict.contains("port_value: 15006"));
    assert!(permissive.contains("port_value: 15006"));
    insta::assert_snapshot!("node_permissive", permissive);
}

#[test]
fn a_node_serves_its_own_pods_and_calls_those_of_all_nodes() {
    let deployment = graph(Mtls::Strict, false);
    let networks = |node: usize| plans(&deployment, 2)[node].networks.clone();
    assert_eq!(networks(1), ["customer-2"]);
    assert_eq!(networks(2), ["customer-1", "person"]);
    let first = config(&deployment, 2, "node-1");
    assert!(first.contains("networks/customer-2") && !first.contains("networks/person"));
    // `person`, on the other node.
    assert!(first.contains("address_prefix: \"10.77.0.5\""));
}

#[test]
fn with_a_waypoint_nodes_send_to_it_and_take_its_streams_only() {
    let node = config(&graph(Mtls::Strict, true), 1, "node-1");
    assert_eq!(node.matches("exact: spiffe://cluster.local/ns/default/sa/waypoint").count(), 3);
    assert_eq!(node.matches("exact:").count(), 3);
    insta::assert_snapshot!("node_waypoint", node);
}

#[test]
fn a_waypoint_takes_streams_of_all_callers_and_opens_its_own() {
    insta::assert_snapshot!("waypoint", config(&graph(Mtls::Strict, true), 1, "waypoint"));
}

#[test]
fn a_gateway_in_an_ambient_mesh_makes_streams_itself() {
    let deployment = graph(Mtls::Strict, false);
    insta::assert_snapshot!("gateway_ambient", config(&deployment, 1, "ingress"));
}

#[test]
fn the_gateway_is_the_same_whatever_pods_take_from_outside_of_the_mesh() {
    let gateway = |mtls| config(&graph(mtls, false), 1, "ingress");
    assert_eq!(gateway(Mtls::Strict), gateway(Mtls::Permissive));
}

#[test]
fn every_cluster_of_a_nodes_proxy_is_marked_and_sends_from_the_pods_network() {
    let config = config(&graph(Mtls::Permissive, false), 1, "node-1");
    let clusters = config.matches("connect_timeout").count();
    assert_eq!(config.matches("int_value: 1337").count(), clusters);
    assert_eq!(config.matches("local_address_selector:").count(), clusters);
}

#[test]
fn a_service_that_nobody_calls_takes_no_streams_and_as_the_entry_plaintext() {
    let mut deployment = graph(Mtls::Strict, false);
    deployment.services.remove(0);
    deployment.entry = "customer".into();
    let config = config(&deployment, 1, "node-1");
    assert!(config.contains("name: plaintext|customer"));
    assert!(!config.contains("name: hbone|customer\n"));
    assert!(config.contains("name: hbone|person\n"));
}

#[test]
fn captured_pods_are_redirected_past_the_port_of_their_metrics() {
    let mut deployment = graph(Mtls::Strict, false);
    let metrics = Metrics { port: 9080, path: "/metrics".into(), series: vec![] };
    deployment.services[2].metrics = Some(metrics);
    let redirects = captured_redirects(&deployment);
    let pods: Vec<&str> = redirects.iter().map(|redirect| redirect.pod.as_str()).collect();
    assert_eq!(pods, ["customer-1", "customer-2", "person"]);
    let passes: Vec<bool> =
        redirects.iter().map(|r| r.script.contains("tcp dport 9080 return")).collect();
    assert_eq!(passes, [false, false, true]);
    assert!(redirects[0].script.contains(&format!("tcp dport {HBONE_PORT} return")));
    assert_eq!(captured_redirects(&in_mesh(customer())), []);
}

#[test]
fn without_networks_of_their_own_pods_cannot_be_captured() {
    let deployment = graph(Mtls::Strict, false);
    let error = proxy_plans(&deployment, &in_pods(&deployment, Capture::Explicit), Path::new("/x"));
    assert!(matches!(error, Err(DataPlaneError::AmbientWithoutNetworks)));
}

#[test]
fn envoy_accepts_ambient_configurations() {
    let Some(envoy) = envoy() else { return };
    for (mtls, waypoint) in [(Mtls::Strict, true), (Mtls::Permissive, false)] {
        // With a database, whose bytes nobody reads.
        let data_plane = graph(mtls, waypoint).data_plane;
        let deployment = Deployment { data_plane, ..customer() };
        let topology = on_nodes(in_pods(&deployment, MARK), &deployment, 1);
        let dir = tempfile::tempdir().unwrap();
        issue_identities(&deployment, &topology, dir.path()).unwrap();
        for plan in proxy_plans(&deployment, &topology, dir.path()).unwrap() {
            fs::write(dir.path().join(&plan.config_name), &plan.config).unwrap();
            validate(&envoy, &plan);
        }
    }
}
