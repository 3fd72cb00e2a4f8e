//! What ztunnels are told, and what is read from them. No ztunnel could be had: texts are made after its sources.

use super::*;
use crate::deployment::{DataPlane, Mtls};
use crate::evidence::{CallCounters, HboneCounters, ProxyCounters};
use crate::fixture::graphs::{customer, in_pods, with_replicas};
use crate::planes::ambient::captured_redirects;
use crate::planes::proxy_plans;
use crate::topology::{Bypass, Waypoint};

/// `ingress`, a gateway, `customer`, two `person`, `name` and `postgres`, in turn on two nodes.
fn deployment(mtls: Mtls, waypoint: bool) -> Deployment {
    let proxy = NodeProxy::Ztunnel { binary: "/opt/ztunnel".into() };
    let data_plane = DataPlane::Ambient(Ambient { proxy, mtls, waypoint });
    Deployment { data_plane, nodes: 2, ..with_replicas(customer(), "person", 2) }
}

fn topology(deployment: &Deployment) -> Topology {
    let mut topology = in_pods(deployment, Capture::Transparent(Bypass::Uid(1337)));
    for (index, pod) in topology.pods.iter_mut().enumerate() {
        pod.node = index % 2;
    }
    let node =
        |place: u8| NodeAddresses { name: format!("node-{place}"), ip: [10, 77, 1, place].into() };
    topology.nodes = vec![node(1), node(2)];
    let has_waypoint = deployment.data_plane.ambient().is_some_and(|ambient| ambient.waypoint);
    let waypoint = || Waypoint { pod: "waypoint".into(), ip: [10, 77, 1, 9].into(), node: 0 };
    topology.waypoint = has_waypoint.then(waypoint);
    topology
}

fn plans_of(deployment: &Deployment) -> Vec<Plan> {
    plans(deployment, &topology(deployment), Path::new("/run/toll/x")).unwrap()
}

#[test]
fn a_strict_ztunnel_lets_exactly_the_callers_of_a_service_in() {
    let [first, second] = &plans_of(&deployment(Mtls::Strict, false))[..] else { panic!() };
    assert_eq!(first.config, second.config);
    insta::assert_snapshot!("strict", first.config);
}

#[test]
fn a_permissive_ztunnel_has_no_policies() {
    let config = &plans_of(&deployment(Mtls::Permissive, false))[0].config;
    assert!(config.contains("policies: []"), "{config}");
    assert!(!config.contains("callers-of"), "{config}");
}

#[test]
fn a_service_that_nobody_calls_lets_nobody_in() {
    let mut deployment = deployment(Mtls::Strict, false);
    deployment.services.retain(|service| service.name != "customer");
    let config = &plans_of(&deployment)[0].config;
    let (_, policy) = config.split_once("- name: callers-of-person\n").unwrap();
    assert!(policy.split("dryRun").next().unwrap().contains("rules: []"), "{config}");
}

#[test]
fn each_ztunnel_is_given_the_pods_of_its_node_and_the_gateways_too() {
    let plans = plans_of(&deployment(Mtls::Strict, false));
    let pods = |plan: &Plan| plan.workloads.iter().map(|w| w.pod.clone()).collect::<Vec<_>>();
    assert_eq!(pods(&plans[0]), ["ingress", "person-1", "name"]);
    assert_eq!(pods(&plans[1]), ["customer", "person-2", "postgres"]);
    assert_eq!(plans[1].workloads[1].service_account, "person");
}

#[test]
fn a_ztunnel_is_told_all_by_variables() {
    let plan = &plans_of(&deployment(Mtls::Strict, false))[1];
    let lines = plan.environment.iter().map(|(name, value)| format!("{name}={}", value.display()));
    insta::assert_snapshot!("variables", lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(plan.args.join(" "), "proxy ztunnel");
}

#[test]
fn the_redirect_knows_a_ztunnel_by_the_mark_that_it_is_told_to_bear() {
    let deployment = deployment(Mtls::Strict, false);
    let plan = &plans_of(&deployment)[0];
    let mark = plan.environment.iter().find(|(name, _)| *name == "PACKET_MARK").unwrap();
    let mark: u32 = mark.1.to_str().unwrap().parse().unwrap();
    let redirects = captured_redirects(&deployment);
    assert_eq!(redirects.len(), 6);
    assert!(redirects.iter().all(|r| r.script.contains(&format!("meta mark {mark:#x} return"))));
}

#[test]
fn behind_a_ztunnel_a_gateway_is_configured_as_with_no_data_plane() {
    let dir = Path::new("/run/toll/x");
    let config = |deployment: &Deployment| {
        let plans = proxy_plans(deployment, &topology(deployment), dir).unwrap();
        let [gateway] = &plans[..] else { panic!("{} plans", plans.len()) };
        gateway.config.clone()
    };
    let deployment = deployment(Mtls::Strict, false);
    let bare = Deployment { data_plane: DataPlane::Bare, ..deployment.clone() };
    assert_eq!(config(&deployment), config(&bare));
}

#[test]
fn what_is_called_is_sent_to_the_waypoint_and_taken_of_nobody_else() {
    let config = &plans_of(&deployment(Mtls::Strict, true))[0].config;
    let of = |name: &str| config.split(&format!("  name: {name}\n")).nth(1).unwrap();
    let workload = |name| of(name).split("- uid:").next().unwrap();
    let to_waypoint = "waypoint:\n    destination: /10.77.1.9\n    hboneMtlsPort: 15008\n";
    assert!(workload("customer").contains(to_waypoint), "{config}");
    assert!(!workload("ingress").contains("destination:"), "{config}");
    assert!(workload("waypoint").contains("serviceAccount: waypoint\n"), "{config}");
    let (_, policy) = config.split_once("- name: callers-of-person\n").unwrap();
    let accounts = policy.split("dryRun").next().unwrap().matches("serviceAccount: ");
    assert_eq!(accounts.count(), 1, "{config}");
    assert!(policy.contains("serviceAccount: waypoint\n"), "{config}");
}

#[test]
fn the_waypoint_behind_ztunnels_is_an_envoy_and_its_streams_are_those_of_a_caller() {
    let deployment = deployment(Mtls::Strict, true);
    let topology = topology(&deployment);
    let plans = proxy_plans(&deployment, &topology, Path::new("/run/toll/x")).unwrap();
    let pods: Vec<_> = plans.iter().map(|plan| plan.pod.as_str()).collect();
    assert_eq!(pods, ["ingress", "waypoint"]);
    let lines = [
        line("opened", "destination", ("waypoint", "customer"), "mutual_tls", 3),
        line("opened", "destination", ("ingress", "customer"), "mutual_tls", 2),
        line("opened", "source", ("ingress", "waypoint"), "mutual_tls", 4),
    ];
    let counters = counters(&lines.concat(), &deployment, &topology);
    let taken =
        HboneCounters { streams: 5, handshakes: 3, wrong_identity: 2, ..Default::default() };
    assert_eq!(counters.hbone_into("customer"), taken);
    assert_eq!(counters.tunnel("waypoint").handshakes, 4);
}

/// One line of its metrics; labels that nobody reads are left out but for one.
fn line(metric: &str, reporter: &str, (from, to): (&str, &str), policy: &str, n: u64) -> String {
    let id = |name: &str| match name {
        "unknown" => name.to_owned(),
        name => format!("spiffe://cluster.local/ns/default/sa/{name}"),
    };
    let flags = if metric.contains("DENY") { "DENY" } else { "-" };
    let metric = match metric.trim_end_matches(" DENY") {
        "received" => "received_bytes".to_owned(),
        metric => format!("connections_{metric}"),
    };
    format!(
        "istio_tcp_{metric}_total{{reporter=\"{reporter}\",source_workload=\"a \\\"b\\\"}}\",\
         source_principal=\"{}\",destination_principal=\"{}\",request_protocol=\"tcp\",\
         response_flags=\"{flags}\",connection_security_policy=\"{policy}\"}} {n}\n",
        id(from),
        id(to)
    )
}

fn read(lines: &[String]) -> ProxyCounters {
    let text = lines.concat();
    let head =
        "# TYPE istio_tcp_connections_opened counter\nistio_build{component=\"ztunnel\"} 1\n";
    let deployment = deployment(Mtls::Strict, false);
    counters(&format!("{head}{text}# EOF\n"), &deployment, &topology(&deployment))
}

#[test]
fn connections_over_mtls_are_streams_and_handshakes_of_the_callers() {
    let counters = read(&[
        line("opened", "source", ("ingress", "customer"), "mutual_tls", 4),
        line("opened", "destination", ("ingress", "customer"), "mutual_tls", 3),
        line("closed", "destination", ("ingress", "customer"), "mutual_tls", 2),
    ]);
    let sent = CallCounters { requests: 4, connections: 4, handshakes: 4, ..Default::default() };
    assert_eq!(counters.tunnel("customer"), sent);
    let taken = HboneCounters { streams: 3, handshakes: 3, ..Default::default() };
    assert_eq!(counters.hbone_into("customer"), taken);
}

#[test]
fn a_principal_that_is_no_callers_is_a_wrong_identity() {
    let counters = read(&[
        line("opened", "destination", ("ingress", "customer"), "mutual_tls", 3),
        line("opened", "destination", ("name", "customer"), "mutual_tls", 2),
    ]);
    let taken =
        HboneCounters { streams: 5, handshakes: 3, wrong_identity: 2, ..Default::default() };
    assert_eq!(counters.hbone_into("customer"), taken);
}

#[test]
fn plaintext_that_was_sent_has_no_handshake_and_what_a_policy_denied_was_not_passed_on() {
    let counters = read(&[
        line("opened", "source", ("ingress", "customer"), "unknown", 1),
        line("opened", "destination", ("unknown", "customer"), "unknown", 5),
        line("closed", "destination", ("unknown", "customer"), "unknown", 1),
        line("closed DENY", "destination", ("unknown", "customer"), "unknown", 3),
        line("opened", "source", ("ingress", "unknown"), "unknown", 9),
        line("received", "source", ("ingress", "customer"), "unknown", 4096),
        line("received", "destination", ("ingress", "customer"), "mutual_tls", 2048),
        line("received", "destination", ("unknown", "customer"), "unknown", 512),
    ]);
    let sent = CallCounters { connections: 1, ..Default::default() };
    assert_eq!(counters.tunnel("customer"), sent);
    let taken = counters.hbone_into("customer");
    assert_eq!((taken.plaintext, taken.plaintext_bytes), (2, 512));
    assert_eq!(counters.tunnels.len(), 1, "{counters:?}");
}
