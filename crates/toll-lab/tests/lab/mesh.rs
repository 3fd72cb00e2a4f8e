//! The real Envoy beside each service, at each isolation level: it comes up, the proof of the path holds, and
//! a broken path breaks the proof.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::{
    TestLab, are_proven_side_by_side, carry_out, chain, free_ports, in_mesh, in_network_of,
    is_possible, pid_by_argument, service_program, skip,
};
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{Deployment, Environment, Isolation, Mtls, Proof, Reading, Role, Traffic};

/// Requests of one proof.
const REQUESTS: u64 = 20;

fn envoy() -> Option<PathBuf> {
    Artifact::Envoy.find(Fetch::Forbidden).ok().map(|part| part.path)
}

/// A lab whose load sends [`REQUESTS`] to the address in its plan, each over a new connection.
fn lab(isolation: Isolation, service: &Path, envoy: PathBuf) -> TestLab {
    TestLab::with(isolation, service, |options| {
        let probe = format!("{} probe --connect \"$at\"", service.display());
        let load =
            format!("read -r at; i=0; while [ $i -lt {REQUESTS} ]; do {probe}; i=$((i + 1)); done");
        options.load = vec!["sh".into(), "-c".into(), load.into()];
        options.artifacts.put(Artifact::Envoy, envoy);
    })
}

/// The proof of an environment in which `tamper` does something between coming up and the load.
fn prove(lab: &TestLab, deployment: &Deployment, tamper: impl FnOnce(&TestLab)) -> Proof {
    let mut environment = lab.up(deployment);
    tamper(lab);
    environment.open_proof().unwrap();
    send_requests(&mut environment);
    let proof =
        environment.close_proof(Traffic { requests: REQUESTS, ..Traffic::default() }).unwrap();
    assert_every_component_is_counted(&mut environment, deployment);
    environment.down().unwrap();
    proof
}

fn send_requests(environment: &mut Environment) {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let (lines, outcome) = carry_out(environment, at);
    outcome.unwrap();
    let answered = lines.iter().filter(|line| line.contains("\"status\":200")).count();
    assert_eq!(answered as u64, REQUESTS, "{lines:#?}");
}

fn assert_every_component_is_counted(environment: &mut Environment, deployment: &Deployment) {
    let sample = environment.sample();
    for service in &deployment.services {
        for role in [Role::Application, Role::Sidecar] {
            let of = |c: &&toll_lab::ComponentSample| {
                c.component.role == role && c.component.pod == service.name
            };
            let read = sample.components.iter().find(of).unwrap();
            assert!(matches!(read.cpu_ns, Reading::Value(1..)), "{read:#?}");
            assert!(matches!(read.memory.anonymous, Reading::Value(1..)), "{read:#?}");
        }
    }
}

fn mesh(mtls: Mtls) -> Deployment {
    in_mesh(chain(free_ports(), Duration::from_micros(100)), mtls)
}

macro_rules! with_envoy_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        let Some(envoy) = envoy() else { skip!("there is no Envoy") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        lab($level, &service, envoy)
    }};
}

macro_rules! the_path_is_proven {
    ($($name:ident: $level:expr, $mtls:expr;)+) => {$(
        #[test]
        fn $name() {
            let lab = with_envoy_at!($level);
            let proof = prove(&lab, &mesh($mtls), |_| ());
            assert!(proof.holds(), "{proof:#?}");
        }
    )+};
}

the_path_is_proven! {
    strict_sidecars_in_pods_are_proven: Isolation::Pods, Mtls::Strict;
    strict_sidecars_without_root_are_proven: Isolation::Rootless, Mtls::Strict;
    strict_sidecars_on_loopback_are_proven: Isolation::Loopback, Mtls::Strict;
    permissive_sidecars_in_pods_are_proven: Isolation::Pods, Mtls::Permissive;
}

#[test]
fn two_meshes_on_loopback_are_proven_side_by_side() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let Some(envoy) = envoy() else { skip!("there is no Envoy") };
    let lab =
        TestLab::asking(Isolation::Loopback, &service, |o| o.artifacts.put(Artifact::Envoy, envoy));
    are_proven_side_by_side(&lab, &mesh(Mtls::Strict));
}

#[test]
fn a_redirect_that_is_gone_breaks_the_proof() {
    let lab = with_envoy_at!(Isolation::Pods);
    // Permissive: all requests are answered, so that nothing but the proof can tell.
    let proof = prove(&lab, &mesh(Mtls::Permissive), |lab| {
        flush_firewall_of(pid_by_argument(&lab.folder.path().join("lab"), "client.service.json"));
    });
    let broken = proof.claims.iter().filter(|claim| !claim.holds);
    let broken: Vec<&str> = broken.map(|claim| claim.claim.as_str()).collect();
    assert!(broken.iter().any(|claim| claim.starts_with("client sidecar, inbound")), "{broken:?}");
    assert!(broken.contains(&"client: every request bore the mark of a sidecar"), "{broken:?}");
}

fn flush_firewall_of(pid: u32) {
    let mut flush = Command::new("nft");
    flush.args(["flush", "ruleset"]);
    assert!(in_network_of(pid, move || flush.status().unwrap()).success());
}

#[test]
fn a_lab_without_envoy_says_so_before_anything_starts() {
    let lab = TestLab::at(Isolation::Loopback, Path::new("true"));
    let error = lab.lab.up(&mesh(Mtls::Strict), &lab.logs()).unwrap_err();
    assert_eq!(error.to_string(), "there is no Envoy binary");
    assert!(error.help().unwrap().contains("toll doctor"));
}
