//! Configurations of the ways out of the mesh: sidecars of callers, and the egress gateway.

use super::*;
use crate::Role;
use crate::deployment::{Ambient, EgressGateway, External, NodeProxy};
use crate::fixture::graphs::{airline, in_pods, leaving, on_loopback, on_postgres, ways_out};

/// The airline whose traffic leaves as in this case of the study.
fn case(name: &str) -> Deployment {
    let (_, egress) = ways_out().into_iter().find(|(case, _)| *case == name).unwrap();
    leaving(airline(), egress)
}

fn transparent(deployment: &Deployment) -> Topology {
    in_pods(deployment, Capture::Transparent(Bypass::Uid(1337)))
}

fn plans(deployment: &Deployment, topology: &Topology) -> Vec<ProxyPlan> {
    proxy_plans(deployment, topology, Path::new("/run/toll/x")).unwrap()
}

fn plan(deployment: &Deployment, pod: &str) -> ProxyPlan {
    let plans = plans(deployment, &transparent(deployment));
    plans.into_iter().find(|plan| plan.pod == pod).unwrap()
}

/// Lines of the second configuration that the first has not, and the other way round, in order.
fn differences(one: &str, other: &str) -> (Vec<String>, Vec<String>) {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.lines().collect(), other.lines().collect());
    let front = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let most = one.len().min(other.len()) - front;
    let ends = one.iter().rev().zip(other.iter().rev());
    let back = ends.take(most).take_while(|(a, b)| a == b).count();
    let middle = |lines: &[&str]| {
        lines[front..lines.len() - back].iter().map(|line| line.trim().to_owned()).collect()
    };
    (middle(&one), middle(&other))
}

fn between(one: &str, other: &str, pod: &str) -> (Vec<String>, Vec<String>) {
    differences(&plan(&case(one), pod).config, &plan(&case(other), pod).config)
}

#[test]
fn a_sidecar_passes_tls_for_the_external_host_on_by_its_name() {
    insta::assert_snapshot!("flights_sidecar", plan(&case("sidecar"), "flights").config);
}

#[test]
fn a_sidecar_wraps_what_it_sends_to_the_gateway_in_the_meshs_mtls() {
    insta::assert_snapshot!("flights_gateway_mtls", plan(&case("gateway-mtls"), "flights").config);
}

#[test]
fn a_gateway_finds_the_host_by_the_applications_own_sni() {
    insta::assert_snapshot!("egress_gateway", plan(&case("gateway"), "egress").config);
}

#[test]
fn a_gateway_with_mtls_demands_the_callers_certificate() {
    insta::assert_snapshot!("egress_gateway_mtls", plan(&case("gateway-mtls"), "egress").config);
}

#[test]
fn a_gateway_with_an_sni_proxy_hands_everything_to_it() {
    insta::assert_snapshot!("egress_gateway_sni", plan(&case("gateway-sni"), "egress").config);
}

#[test]
fn on_loopback_a_caller_is_given_a_listener_for_the_external_service() {
    let deployment = case("gateway-mtls");
    let topology = on_loopback(&deployment, Ipv4Addr::LOCALHOST, 14_006);
    let plans = plans(&deployment, &topology);
    let of = |pod: &str| plans.iter().find(|plan| plan.pod == pod).unwrap().config.clone();
    insta::assert_snapshot!("flights_loopback", of("flights"));
    assert!(of("egress").contains("outbound_.27017_._.localhost"));
}

#[test]
fn the_gateway_comes_behind_the_sidecars_and_what_is_outside_has_none() {
    let deployment = case("gateway");
    let plans = plans(&deployment, &transparent(&deployment));
    let what: Vec<(&str, Role)> = plans.iter().map(|p| (p.pod.as_str(), p.role)).collect();
    let sidecars = ["web", "flights", "bookings", "customers"].map(|pod| (pod, Role::Sidecar));
    assert_eq!(what, [&sidecars[..], &[("egress", Role::EgressGateway)]].concat());
    assert_eq!(plans[4].redirect, None);
    let args = plans[4].args.join(" ".as_ref()).into_string().unwrap();
    assert_eq!(args, "--disable-hot-restart -l warning -c /run/toll/x/egress.envoy.yaml");
}

#[test]
fn a_bypassed_sidecar_knows_nothing_of_the_external_service_and_its_redirect_lets_it_through() {
    let bypass = plan(&case("bypass"), "flights");
    assert!(!bypass.config.contains("27017") && !bypass.config.contains("10.77.0.6"));
    let (without, excluded) = differences(
        &plan(&case("sidecar"), "flights").redirect.unwrap(),
        &bypass.redirect.unwrap(),
    );
    assert_eq!((without, excluded), (vec![], vec!["ip daddr 10.77.0.6 return".to_owned()]));
}

#[test]
fn in_all_cases_a_service_that_calls_nothing_outside_has_the_same_sidecar_and_redirect() {
    let web = |name| {
        let plan = plan(&case(name), "web");
        (plan.config, plan.redirect)
    };
    let bypass = web("bypass");
    for (name, _) in ways_out() {
        assert_eq!(web(name), bypass, "{name}");
    }
}

#[test]
fn in_all_cases_but_the_bypass_redirects_are_the_same() {
    let redirect = |name| plan(&case(name), "flights").redirect;
    for name in ["gateway", "gateway-mtls", "gateway-sni"] {
        assert_eq!(redirect(name), redirect("sidecar"), "{name}");
    }
}

#[test]
fn to_the_gateway_instead_of_to_the_database_only_the_sidecars_endpoint_differs() {
    let (sidecar, gateway) = between("sidecar", "gateway", "flights");
    assert_eq!(sidecar, ["address: \"10.77.0.6\"", "port_value: 27017"]);
    assert_eq!(gateway, ["address: \"10.77.0.9\"", "port_value: 15443"]);
}

#[test]
fn mtls_to_the_gateway_adds_a_transport_socket_to_the_sidecars_cluster_only() {
    let (without, with) = between("gateway", "gateway-mtls", "flights");
    assert_eq!(without, [""; 0]);
    assert_eq!(with[0], "transport_socket:");
    let has = |line: &str| with.iter().any(|with| with.contains(line));
    assert!(has("exact: spiffe://cluster.local/ns/default/sa/egress"), "{with:#?}");
    assert!(has("sni: outbound_.27017_._.db.airline.example"), "{with:#?}");
    assert_eq!(with.iter().filter(|line| line.starts_with("- name")).count(), 0);
}

#[test]
fn mtls_changes_the_gateways_chain_only() {
    let (without, with) = between("gateway", "gateway-mtls", "egress");
    let clusters = |lines: &[String]| lines.iter().any(|line| line.contains("load_assignment"));
    assert!(!clusters(&without) && !clusters(&with));
    assert_eq!(without[0], "- db.airline.example");
    assert_eq!(with[0], "- outbound_.27017_._.db.airline.example");
    assert!(with.contains(&"require_client_certificate: true".to_owned()), "{with:#?}");
}

#[test]
fn with_the_sni_proxy_the_sidecars_stay_as_they_are_and_the_gateways_endpoint_differs() {
    assert_eq!(between("gateway-mtls", "gateway-sni", "flights"), (vec![], vec![]));
    let (database, proxy) = between("gateway-mtls", "gateway-sni", "egress");
    assert_eq!(database, ["address: \"10.77.0.6\"", "port_value: 27017"]);
    assert_eq!(proxy, ["address: \"127.0.0.1\"", "port_value: 18443"]);
}

#[test]
fn the_ways_out_know_no_database_but_by_its_port() {
    for (name, egress) in ways_out() {
        let mongo = leaving(airline(), egress.clone());
        let postgres = leaving(on_postgres(airline()), egress);
        for pod in ["flights", "web"] {
            let mongo = plan(&mongo, pod).config.replace("27017", "5432");
            assert_eq!(mongo, plan(&postgres, pod).config, "{name} {pod}");
        }
    }
}

#[test]
fn a_gateway_that_lets_only_others_out_has_a_chain_that_leads_nowhere() {
    let hosts = vec!["*.other.example".to_owned()];
    let gateway = EgressGateway { mtls: false, sni_proxy: false, hosts };
    let config = plan(&leaving(airline(), Egress::Gateway(gateway)), "egress").config;
    assert!(config.contains("*.other.example") && config.contains("BlackHoleCluster"));
    assert!(!config.contains("10.77.0.6"));
}

#[test]
fn external_services_of_one_name_are_refused_where_only_the_name_tells_them_apart() {
    let mut deployment = case("gateway");
    let mut archive = deployment.services[4].clone();
    archive.name = "archive".into();
    deployment.services.push(archive);
    let refused = |deployment: &Deployment, topology: &Topology| {
        proxy_plans(deployment, topology, Path::new("/run/x")).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&deployment, &transparent(&deployment)),
        "the egress gateway cannot tell `airline-db` and `archive` apart: both are known as `db.airline.example`"
    );
    deployment.services[5].external = Some(External { host: "archive.airline.example".into() });
    plans(&deployment, &transparent(&deployment));
    let loopback = on_loopback(&deployment, Ipv4Addr::LOCALHOST, 14_006);
    assert!(refused(&deployment, &loopback).ends_with("both are known as `localhost`"));
}

#[test]
fn an_external_service_shares_its_port_with_none_of_the_mesh() {
    let mut deployment = case("sidecar");
    deployment.services[1].calls.push("customers".into());
    deployment.services[3].port = 27017;
    let topology = transparent(&deployment);
    let error = proxy_plans(&deployment, &topology, Path::new("/run/x")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`flights` calls `customers`, `airline-db` on port 27017, where only HTTP services can share a listener"
    );
}

#[test]
fn no_ambient_data_plane_is_asked_for_what_is_outside_of_it() {
    let ambient = Ambient { proxy: NodeProxy::Envoy, mtls: Mtls::Strict, waypoint: false };
    let deployment = Deployment { data_plane: DataPlane::Ambient(ambient), ..airline() };
    let topology = transparent(&deployment);
    let error = proxy_plans(&deployment, &topology, Path::new("/run/x")).unwrap_err();
    assert!(matches!(error, DataPlaneError::ExternalInAmbient { .. }), "{error}");
}

#[test]
fn envoy_accepts_all_ways_out() {
    let Some(envoy) = envoy() else { return };
    let nobody = EgressGateway {
        mtls: true,
        hosts: vec!["*.other.example".into()],
        ..EgressGateway::default()
    };
    let ways = ways_out().map(|(_, egress)| egress).into_iter().chain([Egress::Gateway(nobody)]);
    for egress in ways {
        let deployment = leaving(airline(), egress);
        let topologies =
            [transparent(&deployment), on_loopback(&deployment, Ipv4Addr::LOCALHOST, 14_006)];
        let dir = tempfile::tempdir().unwrap();
        issue_identities(&deployment, &topologies[1], dir.path()).unwrap();
        for topology in &topologies {
            for plan in proxy_plans(&deployment, topology, dir.path()).unwrap() {
                if ["flights", "egress"].contains(&plan.pod.as_str()) {
                    fs::write(dir.path().join(&plan.config_name), &plan.config).unwrap();
                    validate(&envoy, &plan);
                }
            }
        }
    }
}
