use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;

use super::proxy_plans;
use crate::artifacts::{Artifact, ArtifactError, Fetch, Found, Need};
use crate::certificates::mesh::issue_identities;
use crate::deployment::{DataPlane, Deployment, Egress, Mtls, Service, SidecarProxy};
use crate::envoy::plan::ProxyPlan;
use crate::error::DataPlaneError;
use crate::fixture::{chain, in_mesh};
use crate::topology::{Bypass, Capture, PodAddresses, Topology};

mod ambient;
mod egress;
mod graph;
mod traffic;

/// The Envoy to test with, or a visible skip when there is none. One that does not work is no reason to skip.
fn envoy() -> Option<Found> {
    match Need::Artifact(Artifact::Envoy).find(Fetch::Forbidden) {
        Err(error @ (ArtifactError::Missing(_) | ArtifactError::NoCacheFolder)) => {
            eprintln!("SKIP {}: {error}", std::thread::current().name().unwrap_or("?"));
            None
        }
        found => Some(found.unwrap().remove(0).1),
    }
}

fn with_mtls(mtls: Mtls) -> Deployment {
    let data_plane =
        DataPlane::Sidecar { egress: Egress::Sidecar, proxy: SidecarProxy::Envoy, mtls };
    Deployment { data_plane, ..chain() }
}

fn pods(bypass: Bypass) -> Topology {
    let pod = |service: &str, last: u8, app_port| PodAddresses {
        mesher: None,
        node: 0,
        probe_port: None,
        pod: service.into(),
        service: service.into(),
        ip: Ipv4Addr::new(10, 77, 0, last),
        app_port,
        outbound_port: 15001,
        inbound_port: 15006,
        calls: BTreeMap::new(),
    };
    Topology {
        egress: None,
        nodes: Vec::new(),
        waypoint: None,
        pods: vec![pod("client", 2, 9000), pod("server", 3, 9999)],
        load_ip: Ipv4Addr::new(10, 77, 0, 1),
        capture: Capture::Transparent(bypass),
    }
}

/// Sidecars at `ip`, applications at these ports of 127.0.0.1.
fn loopback(ip: Ipv4Addr, app_ports: [u16; 2]) -> Topology {
    let pod = |service: &str, app_port, inbound_port| PodAddresses {
        mesher: None,
        node: 0,
        probe_port: None,
        pod: service.into(),
        service: service.into(),
        ip,
        app_port,
        outbound_port: 15001,
        inbound_port,
        calls: BTreeMap::new(),
    };
    let mut client = pod("client", app_ports[0], 14006);
    client.calls.insert("server".into(), SocketAddrV4::new(ip, 14001));
    Topology {
        egress: None,
        nodes: Vec::new(),
        waypoint: None,
        pods: vec![client, pod("server", app_ports[1], 24006)],
        load_ip: Ipv4Addr::LOCALHOST,
        capture: Capture::Explicit,
    }
}

fn some_loopback() -> Topology {
    loopback(Ipv4Addr::LOCALHOST, [9000, 9999])
}

fn plan_of(service: &str, mtls: Mtls, topology: &Topology) -> ProxyPlan {
    let plans = proxy_plans(&with_mtls(mtls), topology, Path::new("/run/toll/x")).unwrap();
    plans.into_iter().find(|plan| plan.pod == service).unwrap()
}

#[test]
fn a_strict_caller_routes_by_host_and_accepts_plaintext_from_the_load_only_as_the_entry() {
    let plan = plan_of("client", Mtls::Strict, &pods(Bypass::Uid(1337)));
    insta::assert_snapshot!("client_strict", plan.config);
}

#[test]
fn a_strict_server_has_no_chain_for_plaintext() {
    let plan = plan_of("server", Mtls::Strict, &pods(Bypass::Uid(1337)));
    assert!(!plan.config.contains("raw_buffer"));
    insta::assert_snapshot!("server_strict", plan.config);
}

#[test]
fn a_permissive_server_has_a_second_chain_with_counters_of_its_own() {
    let plan = plan_of("server", Mtls::Permissive, &pods(Bypass::Uid(1337)));
    insta::assert_snapshot!("server_permissive", plan.config);
}

#[test]
fn on_loopback_callers_are_given_a_listener_for_each_call() {
    let plan = plan_of("client", Mtls::Strict, &some_loopback());
    assert_eq!(plan.redirect, None);
    insta::assert_snapshot!("client_loopback", plan.config);
}

#[test]
fn a_sidecar_known_by_its_mark_marks_every_cluster() {
    let plan = plan_of("client", Mtls::Strict, &pods(Bypass::Mark(0x539)));
    let clusters = plan.config.matches("connect_timeout").count();
    assert_eq!(plan.config.matches("int_value: 1337").count(), clusters);
    insta::assert_snapshot!("client_mark", plan.config);
}

#[test]
fn the_command_line_names_the_configuration_that_the_plan_names() {
    let plan = plan_of("client", Mtls::Strict, &some_loopback());
    let args = plan.args.join(" ".as_ref()).into_string().unwrap();
    assert_eq!(
        args,
        "--concurrency 2 --disable-hot-restart -l warning -c /run/toll/x/client.envoy.yaml"
    );
}

#[test]
fn two_services_on_one_port_share_a_listener_and_are_told_apart_by_host() {
    let mut deployment = with_mtls(Mtls::Strict);
    deployment.services[0].calls.push("other".into());
    let mut other = deployment.services[1].clone();
    other.name = "other".into();
    deployment.services.push(other);
    let mut topology = pods(Bypass::Uid(1337));
    let mut pod = topology.pods[1].clone();
    (pod.pod, pod.service) = ("other".into(), "other".into());
    pod.ip = Ipv4Addr::new(10, 77, 0, 4);
    topology.pods.push(pod);

    let config = &proxy_plans(&deployment, &topology, Path::new("/run/x")).unwrap()[0].config;

    assert_eq!(config.matches("name: \"0.0.0.0_9999\"").count(), 1);
    assert!(config.contains("10.77.0.3:9999") && config.contains("10.77.0.4:9999"));
}

#[test]
fn a_bare_deployment_has_no_sidecars() {
    assert_eq!(proxy_plans(&chain(), &some_loopback(), Path::new("/run/x")).unwrap(), []);
}

#[test]
fn a_socket_path_that_the_kernel_would_cut_is_refused() {
    let long = "x".repeat(100);
    let error = proxy_plans(&in_mesh(chain()), &some_loopback(), Path::new(&long)).unwrap_err();
    assert!(matches!(error, DataPlaneError::SocketPathTooLong { length: 118, .. }));
}

#[test]
fn a_call_without_a_listener_is_refused() {
    let mut topology = some_loopback();
    topology.pods[0].calls.clear();
    let error = proxy_plans(&in_mesh(chain()), &topology, Path::new("/run/x")).unwrap_err();
    assert_eq!(error.to_string(), "no listener for the calls of `client` to `server`");
}

#[test]
fn envoy_accepts_every_configuration() {
    let Some(envoy) = envoy() else { return };
    let topologies = [pods(Bypass::Uid(1337)), pods(Bypass::Mark(0x539)), some_loopback()];
    for mtls in [Mtls::Strict, Mtls::Permissive] {
        let dir = tempfile::tempdir().unwrap();
        let deployment = with_mtls(mtls);
        issue_identities(&deployment, &some_loopback(), dir.path()).unwrap();
        for topology in &topologies {
            for plan in proxy_plans(&deployment, topology, dir.path()).unwrap() {
                fs::write(dir.path().join(&plan.config_name), &plan.config).unwrap();
                validate(&envoy, &plan);
            }
        }
    }
}

fn validate(envoy: &Found, plan: &ProxyPlan) {
    let output =
        Command::new(&envoy.path).args(["--mode", "validate"]).args(&plan.args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}\n{}", plan.config_name, plan.config);
}
