//! A played Mesher beside each service, at each isolation level: the path is proven, and each way of breaking it breaks
//! the proof. The program is `examples/played_mesher.rs`, no real Mesher.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{
    TestLab, are_proven_side_by_side, ask_once, chain, free_ports, is_possible, service_program,
    skip, target_folder,
};
use toll_lab::{
    DataPlane, Deployment, Isolation, Program, Proof, Reading, Role, Traffic, UserProgram,
};

const REQUESTS: u64 = 5;

/// Without it no test here says anything, so that is a failure and no skip.
fn played_mesher() -> PathBuf {
    let program = target_folder().unwrap().join("examples/played_mesher");
    assert!(
        program.is_file(),
        "`cargo test` builds the example `played_mesher`; with `--test` run `cargo build --examples` first"
    );
    program
}

fn with_mesher(binary: PathBuf) -> Deployment {
    let data_plane = DataPlane::Mesher { binary };
    let chain = chain(free_ports(), Duration::from_micros(100));
    Deployment { name: "mesher".into(), data_plane, ..chain }
}

/// The played Mesher with a fault: toll starts a real one with its own variables only.
fn faulty(lab: &TestLab, mesher: &Path, fault: &str) -> PathBuf {
    let script = lab.folder.path().join("mesher.sh");
    let text = format!("#!/bin/sh\nPLAYED_FAULT={fault} exec {} \"$@\"\n", mesher.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

fn prove(lab: &TestLab, deployment: &Deployment) -> Proof {
    let mut environment = lab.up(deployment);
    let mut engine = environment.start_engine().unwrap();
    environment.open_proof().unwrap();
    (0..REQUESTS).for_each(|_| ask_once(&environment, &mut engine));
    let sample = environment.sample();
    let sidecars = sample.components.iter().filter(|c| c.component.role == Role::Sidecar);
    let counted = sidecars.filter(|c| {
        matches!((&c.cpu_ns, &c.memory.anonymous), (Reading::Value(1..), Reading::Value(1..)))
    });
    assert_eq!(counted.count(), 2, "{sample:#?}");
    let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
    let proof = environment.close_proof(traffic).unwrap();
    engine.end().unwrap();
    environment.down().unwrap();
    proof
}

fn broken(proof: &Proof) -> Vec<&str> {
    let broken = proof.claims.iter().filter(|claim| !claim.holds);
    broken.map(|claim| claim.claim.as_str()).collect()
}

macro_rules! parts_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        (TestLab::asking($level, &service, |_| ()), played_mesher())
    }};
}

macro_rules! the_path_is_proven {
    ($($name:ident: $level:expr;)+) => {$(
        #[test]
        fn $name() {
            let (lab, mesher) = parts_at!($level);
            let proof = prove(&lab, &with_mesher(mesher));
            assert!(proof.holds(), "{proof:#?}");
            let bereft = "client to server: a call fails once the sidecar of server has ended";
            assert!(proof.claims.iter().any(|claim| claim.claim == bereft), "{proof:#?}");
            assert!(proof.traversals.iter().all(|way| way.counted == REQUESTS), "{proof:#?}");
        }
    )+};
}

the_path_is_proven! {
    played_meshers_in_pods_are_proven: Isolation::Pods;
    played_meshers_without_root_are_proven: Isolation::Rootless;
    played_meshers_on_loopback_are_proven: Isolation::Loopback;
}

#[test]
fn two_applications_with_meshers_on_loopback_are_proven_side_by_side() {
    let (lab, mesher) = parts_at!(Isolation::Loopback);
    are_proven_side_by_side(&lab, &with_mesher(mesher));
}

#[test]
fn a_consumer_that_passes_the_provider_by_breaks_the_proof() {
    let (lab, mesher) = parts_at!(Isolation::Pods);
    let proof = prove(&lab, &with_mesher(faulty(&lab, &mesher, "pass_by")));
    let expected = [
        "client to server: the connection's source address is its own sidecar's",
        "client to server: a call fails once the sidecar of server has ended",
    ];
    assert_eq!(broken(&proof), expected, "{proof:#?}");
}

#[test]
fn a_consumer_that_does_not_count_a_request_breaks_the_proof() {
    let (lab, mesher) = parts_at!(Isolation::Pods);
    let proof = prove(&lab, &with_mesher(faulty(&lab, &mesher, "uncounted")));
    let expected = [
        "every call crossed the Mesher of its caller",
        "client sidecar, outbound: every call to server was counted",
    ];
    assert_eq!(broken(&proof), expected, "{proof:#?}");
}

#[test]
fn a_provider_that_adds_no_header_breaks_the_proof() {
    let (lab, mesher) = parts_at!(Isolation::Pods);
    let proof = prove(&lab, &with_mesher(faulty(&lab, &mesher, "unmarked")));
    let expected = ["server: every call to it bore X-Cse-Context and X-Forwarded-Host"];
    assert_eq!(broken(&proof), expected, "{proof:#?}");
}

#[test]
fn a_program_of_the_users_own_is_told_of_its_mesher_as_of_any_http_proxy() {
    let (lab, mesher) = parts_at!(Isolation::Loopback);
    let mut deployment = with_mesher(mesher);
    deployment.services[0].program =
        Program::Command(UserProgram { argv: vec!["./shop".into()], ..UserProgram::default() });
    let files = lab.lab.render(&deployment).unwrap();
    let command = files.iter().find(|file| file.name == "client.command").unwrap();
    assert!(command.text.contains("http_proxy=http://127.0.0.1:"), "{}", command.text);
    assert!(command.text.contains("TOLL_CALL_SERVER=server:"), "{}", command.text);
}
