//! Configurations of gateways, of databases' sidecars and for replicas.

use super::*;
use crate::Role;
use crate::certificates::edge::issue_edge;
use crate::deployment::Program;
use crate::fixture::graphs::{behind_tls, customer, in_pods, on_loopback, with_replicas};

fn transparent(deployment: &Deployment) -> Topology {
    in_pods(deployment, Capture::Transparent(Bypass::Uid(1337)))
}

fn explicit(deployment: &Deployment) -> Topology {
    on_loopback(deployment, Ipv4Addr::LOCALHOST, 14_006)
}

fn permissive(deployment: Deployment) -> Deployment {
    let data_plane = DataPlane::Sidecar {
        egress: Egress::Sidecar,
        proxy: SidecarProxy::Envoy,
        mtls: Mtls::Permissive,
    };
    Deployment { data_plane, ..deployment }
}

fn plans(deployment: &Deployment, topology: &Topology) -> Vec<ProxyPlan> {
    proxy_plans(deployment, topology, Path::new("/run/toll/x")).unwrap()
}

fn plan(deployment: &Deployment, topology: &Topology, pod: &str) -> ProxyPlan {
    plans(deployment, topology).into_iter().find(|plan| plan.pod == pod).unwrap()
}

fn refused(deployment: &Deployment) -> String {
    let topology = transparent(deployment);
    proxy_plans(deployment, &topology, Path::new("/run/toll/x")).unwrap_err().to_string()
}

#[test]
fn a_bare_deployment_has_its_gateways_only() {
    let deployment = customer();
    let plans = plans(&deployment, &transparent(&deployment));
    let what: Vec<(&str, Role)> = plans.iter().map(|p| (p.pod.as_str(), p.role)).collect();
    assert_eq!(what, [("ingress", Role::Gateway)]);
    assert_eq!(plans[0].redirect, None);
}

#[test]
fn a_mesh_has_the_gateway_and_a_sidecar_for_every_other_pod_in_the_order_of_the_pods() {
    let deployment = with_replicas(in_mesh(customer()), "person", 2);
    let plans = plans(&deployment, &transparent(&deployment));
    let names: Vec<&str> = plans.iter().map(|plan| plan.pod.as_str()).collect();
    assert_eq!(names, ["ingress", "customer", "person-1", "person-2", "name", "postgres"]);
    let redirected: Vec<bool> = plans.iter().map(|plan| plan.redirect.is_some()).collect();
    assert_eq!(redirected, [false, true, true, true, true, true]);
}

#[test]
fn a_bare_gateway_speaks_plaintext_to_what_it_calls() {
    let deployment = customer();
    let plan = plan(&deployment, &transparent(&deployment), "ingress");
    insta::assert_snapshot!("gateway_bare", plan.config);
}

#[test]
fn a_gateway_in_a_mesh_speaks_mtls_in_its_own_name() {
    let deployment = in_mesh(customer());
    let plan = plan(&deployment, &transparent(&deployment), "ingress");
    insta::assert_snapshot!("gateway_mesh", plan.config);
}

#[test]
fn a_gateway_whose_clients_speak_tls_takes_probes_from_inside_of_its_pod() {
    let deployment = behind_tls(customer());
    let plan = plan(&deployment, &transparent(&deployment), "ingress");
    insta::assert_snapshot!("gateway_tls", plan.config);
}

/// The lines of the gateway's configuration, those of its cluster's transport socket apart.
fn gateway(deployment: &Deployment, topology: &Topology) -> (Vec<String>, Vec<String>) {
    let mut inside = false;
    plan(deployment, topology, "ingress").config.lines().map(str::to_owned).partition(|line| {
        let indent = line.len() - line.trim_start().len();
        inside = line.trim_start() == "transport_socket:" || inside && indent > 4;
        !inside
    })
}

#[test]
fn the_variants_of_a_gateway_differ_in_the_transport_socket_only() {
    let (bare, mesh) = (customer(), in_mesh(customer()));
    let (bare, plain) = gateway(&bare, &transparent(&bare));
    let (mesh, tls) = gateway(&mesh, &transparent(&mesh));
    assert_eq!(bare, mesh);
    assert_eq!((plain.len(), tls[0].trim()), (0, "transport_socket:"));
}

#[test]
fn with_explicit_capture_the_variants_of_a_gateway_differ_in_the_port_as_well() {
    let (bare, mesh) = (customer(), in_mesh(customer()));
    let (bare, _) = gateway(&bare, &explicit(&bare));
    let (mesh, _) = gateway(&mesh, &explicit(&mesh));
    let differ: Vec<(&str, &str)> = bare
        .iter()
        .zip(&mesh)
        .filter(|(one, other)| one != other)
        .map(|(one, other)| (one.trim(), other.trim()))
        .collect();
    assert_eq!(bare.len(), mesh.len());
    assert_eq!(differ, [("port_value: 8081", "port_value: 14007")]);
}

#[test]
fn a_gateway_has_a_worker_for_each_core() {
    let deployment = customer();
    let args = plan(&deployment, &transparent(&deployment), "ingress").args;
    let args = args.join(" ".as_ref()).into_string().unwrap();
    assert_eq!(args, "--disable-hot-restart -l warning -c /run/toll/x/ingress.envoy.yaml");
}

#[test]
fn a_databases_sidecar_passes_bytes_on_and_takes_mtls_and_plaintext_apart() {
    let deployment = permissive(customer());
    let plan = plan(&deployment, &transparent(&deployment), "postgres");
    insta::assert_snapshot!("database_permissive", plan.config);
}

#[test]
fn a_strict_database_has_no_chain_for_plaintext() {
    let deployment = in_mesh(customer());
    let config = plan(&deployment, &transparent(&deployment), "postgres").config;
    assert!(!config.contains("raw_buffer") && config.contains("istio-peer-exchange"));
}

#[test]
fn queries_leave_through_a_listener_of_the_databases_port() {
    let deployment = in_mesh(customer());
    let plan = plan(&deployment, &transparent(&deployment), "name");
    insta::assert_snapshot!("name_strict", plan.config);
}

#[test]
fn on_loopback_queries_leave_through_a_listener_that_the_service_is_told() {
    let deployment = in_mesh(customer());
    let topology = explicit(&deployment);
    let config = plan(&deployment, &topology, "name").config;
    let name = topology.pods.iter().find(|pod| pod.pod == "name").unwrap();
    let told = name.calls["postgres"].port();
    assert!(config.contains(&format!("port_value: {told}")));
    assert!(config.contains("stat_prefix: outbound|5432||postgres"));
}

#[test]
fn callers_know_every_pod_of_a_service() {
    let deployment = with_replicas(in_mesh(customer()), "person", 3);
    let plan = plan(&deployment, &transparent(&deployment), "customer");
    insta::assert_snapshot!("customer_of_three_pods", plan.config);
}

#[test]
fn pods_of_one_service_have_one_identity() {
    let deployment = with_replicas(in_mesh(customer()), "person", 2);
    let config = plan(&deployment, &transparent(&deployment), "person-2").config;
    assert!(config.contains("identity/person.crt") && !config.contains("identity/person-2"));
}

#[test]
fn a_database_shares_its_port_with_nobody_that_the_same_service_calls() {
    let mut deployment = in_mesh(customer());
    deployment.services[3].calls.push("other".into());
    let other = Service { name: "other".into(), port: 5432, ..deployment.services[2].clone() };
    deployment.services.push(Service { calls: Vec::new(), ..other });
    assert_eq!(
        refused(&deployment),
        "`name` calls `postgres`, `other` on port 5432, where only HTTP services can share a listener"
    );
}

#[test]
fn a_gateway_needs_exactly_one_service_that_speaks_http() {
    for calls in [vec![], vec!["postgres"], vec!["customer", "person"]] {
        let mut deployment = customer();
        deployment.services[0].calls = calls.iter().map(|name| (*name).into()).collect();
        assert_eq!(
            refused(&deployment),
            "the gateway `ingress` does not hand requests to exactly one service that speaks HTTP",
            "{calls:?}"
        );
    }
}

#[test]
fn nobody_calls_a_gateway() {
    let mut deployment = in_mesh(customer());
    deployment.services[1].calls.push("other".into());
    let other = Service { name: "other".into(), ..deployment.services[0].clone() };
    deployment.services.push(Service { program: Program::Gateway, ..other });
    assert_eq!(
        refused(&deployment),
        "`customer` calls the gateway `other`, which takes requests of the load only"
    );
}

#[test]
fn envoy_accepts_gateways_databases_and_replicas() {
    let Some(envoy) = envoy() else { return };
    let tls = in_mesh(behind_tls(customer()));
    for deployment in [customer(), in_mesh(customer()), permissive(customer()), tls] {
        let deployment = with_replicas(deployment, "person", 2);
        let topologies = [
            transparent(&deployment),
            in_pods(&deployment, Capture::Transparent(Bypass::Mark(0x539))),
            explicit(&deployment),
        ];
        let dir = tempfile::tempdir().unwrap();
        issue_identities(&deployment, &topologies[2], dir.path()).unwrap();
        issue_edge(&deployment, &topologies[2], dir.path()).unwrap();
        for topology in &topologies {
            for plan in proxy_plans(&deployment, topology, dir.path()).unwrap() {
                fs::write(dir.path().join(&plan.config_name), &plan.config).unwrap();
                validate(&envoy, &plan);
            }
        }
    }
}
