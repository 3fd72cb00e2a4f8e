//! The lab with a program that plays ztunnel, in pods and without root: no ztunnel could be had.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;

use super::played_ztunnel::Fault;
use super::*;
use crate::Traffic;
use crate::artifacts::{Fetch, Need};
use crate::deployment::{Ambient, DataPlane, Deployment, Mtls, NodeProxy};
use crate::fixture::chain;
use crate::fixture::graphs::behind_gateway;
use crate::host::isolation::{Isolation, survey};
use crate::local::{LocalEnvironment, LocalLab};
use crate::options::LocalOptions;
use crate::planes::needs;

/// Requests of one proof.
const REQUESTS: u64 = 10;

/// Starts this very test program as the one ignored test below.
const WRAPPER: &str = "#!/bin/sh
export -p > \"$INPOD_UDS.variables\"
test \"$*\" = 'proxy ztunnel' || exit 2
export TOLL_FAULT='WHICH'
exec 'PROGRAM' --exact local::proxies::tests::this_is_the_played_ztunnel --ignored --nocapture
";

#[test]
#[ignore = "it is the program of the played ztunnel, which other tests start"]
fn this_is_the_played_ztunnel() {
    if env::var_os("INPOD_UDS").is_some() {
        played_ztunnel::play();
    }
}

/// A deployment whose proxies have been started, and the folder of all its files.
struct Up {
    environment: LocalEnvironment,
    _folder: TempDir,
}

impl Up {
    /// `client` calls `server` on one node, whose ztunnel is played and has this fault.
    fn new(isolation: Isolation, fault: Fault) -> Option<Self> {
        let mut up = Self::still(isolation, fault)?;
        up.environment.make_pods().unwrap();
        up.environment.make_proxies().unwrap();
        up.environment.start_proxies().unwrap();
        Some(up)
    }

    /// Nothing of it runs.
    fn still(isolation: Isolation, fault: Fault) -> Option<Self> {
        Self::of(isolation, fault, (chain(), false))
    }

    /// Of any application, and with a waypoint or without.
    fn of(
        isolation: Isolation,
        fault: Fault,
        (application, waypoint): (Deployment, bool),
    ) -> Option<Self> {
        let exe = env::current_exe().unwrap();
        let Ok(service) = exe.with_file_name("../toll-service").canonicalize() else {
            return skip("toll-service is not built");
        };
        if !survey().iter().any(|(level, possible)| *level == isolation && possible.is_ok()) {
            return skip("the isolation level is not possible here");
        }
        let mode = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(mode.clone()).tempdir_in("/tmp").unwrap();
        let binary = folder.path().join("played-ztunnel");
        let script = WRAPPER.replace("PROGRAM", exe.to_str().unwrap());
        fs::write(&binary, script.replace("WHICH", &format!("{fault:?}"))).unwrap();
        fs::set_permissions(&binary, mode).unwrap();
        let proxy = NodeProxy::Ztunnel { binary };
        let ambient = Ambient { proxy, mtls: Mtls::Strict, waypoint };
        let deployment = Deployment { data_plane: DataPlane::Ambient(ambient), ..application };
        let mut options = options(isolation, folder.path(), service);
        for need in needs(&deployment) {
            let Need::Artifact(artifact) = need else { continue };
            let Ok(found) = artifact.find(Fetch::Forbidden) else {
                return skip("there is no Envoy, or no nginx");
            };
            options.artifacts.put(artifact, found.path);
        }
        let lab = LocalLab::new(options).unwrap();
        let logs = folder.path().join("logs");
        let environment = LocalEnvironment::new(&lab, &deployment, &logs).unwrap();
        Some(Self { environment, _folder: folder })
    }

    fn counters(&self) -> Result<BTreeMap<String, ProxyCounters>, LabError> {
        let Up { environment: up, .. } = self;
        let observer = up.observer();
        let ask = |pod: &str, at, speech: Speech<'_>| observer.ask_in(pod, at, speech);
        up.proxies.counters(&up.setup, &ask)
    }

    fn crash(&self) -> String {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(crash) = self.environment.crashed() {
                return format!("{crash:?}");
            }
            assert!(Instant::now() < deadline, "the end was not noticed");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn skip(reason: &str) -> Option<Up> {
    eprintln!("SKIP {}: {reason}", thread::current().name().unwrap_or("?"));
    None
}

fn options(isolation: Isolation, folder: &Path, service: PathBuf) -> LocalOptions {
    // A ztunnel needs no artifact.
    let load = vec!["true".into()];
    let options = LocalOptions::new(vec![service.into()], load, folder.join("lab"));
    LocalOptions { isolation: Some(isolation), ..options }
}

fn a_played_ztunnel_is_told_all_and_asked_from_inside(isolation: Isolation) {
    let Some(mut up) = Up::new(isolation, Fault::None) else { return };
    up.environment.await_ready().unwrap();
    let plan = &up.environment.proxies.ztunnels[0];
    let written = plan.zds_socket.with_extension("sock.variables");
    let variables = fs::read_to_string(written).unwrap();
    for (name, value) in &plan.environment {
        let value = value.to_str().unwrap();
        let forms = [format!(" {name}='{value}'\n"), format!(" {name}=\"{value}\"\n")];
        assert!(forms.iter().any(|form| variables.contains(form)), "{name}: {variables}");
    }
    assert!(!variables.contains(" PATH=") && !variables.contains(" HOME="), "{variables}");
    let config = up.environment.setup.folder.join(&plan.config_name);
    assert_eq!(fs::read_to_string(config).unwrap(), plan.config);
    assert_eq!(up.counters().unwrap()["node-1"].certificates, 2);
    up.environment.down().unwrap();
}

#[test]
fn a_played_ztunnel_is_told_all_and_asked_from_inside_in_pods() {
    a_played_ztunnel_is_told_all_and_asked_from_inside(Isolation::Pods);
}

#[test]
fn a_played_ztunnel_is_told_all_and_asked_from_inside_without_root() {
    a_played_ztunnel_is_told_all_and_asked_from_inside(Isolation::Rootless);
}

#[test]
fn the_end_of_a_played_ztunnel_is_noticed() {
    let Some(mut up) = Up::new(Isolation::Rootless, Fault::None) else { return };
    up.environment.await_ready().unwrap();
    assert!(up.environment.crashed().is_none());
    let (component, process) = up.environment.processes.components().next().unwrap();
    assert_eq!((component.role, &component.pod[..]), (Role::NodeProxy, "node-1"));
    kill(process.pid, Signal::SIGKILL).unwrap();
    assert!(up.crash().contains("node-1"), "{}", up.crash());
    let silent = up.counters().unwrap_err();
    let LabError::DataPlane(silent) = &silent else { panic!("{silent}") };
    assert_eq!(silent.to_string(), "the ztunnel of `node-1` gave no metrics: refused");
}

impl Up {
    /// How the entry answers requests, one after another.
    fn statuses(&self) -> Vec<Option<u16>> {
        let observer = self.environment.observer();
        (0..REQUESTS).map(|_| observer.ask_entry(Speech::Request).unwrap().status).collect()
    }

    /// The claims that do not hold after some requests.
    fn failed(mut self) -> Vec<String> {
        self.environment.come_up(None).unwrap();
        self.environment.open_proof().unwrap();
        assert_eq!(self.statuses(), [Some(200); REQUESTS as usize]);
        let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
        let proof = self.environment.close_proof(traffic).unwrap();
        assert!(proof.claims.len() > 10, "{proof:?}");
        self.environment.down().unwrap();
        let failed = proof.claims.into_iter().filter(|claim| !claim.holds);
        failed.map(|claim| format!("{}: {}", claim.claim, claim.seen)).collect()
    }
}

#[test]
fn a_played_ztunnel_carries_requests_with_the_certificates_that_it_was_given_in_pods() {
    let Some(up) = Up::still(Isolation::Pods, Fault::None) else { return };
    assert_eq!(up.failed(), [""; 0]);
}

#[test]
fn a_played_ztunnel_carries_requests_with_the_certificates_that_it_was_given_without_root() {
    let Some(up) = Up::still(Isolation::Rootless, Fault::None) else { return };
    assert_eq!(up.failed(), [""; 0]);
}

#[test]
fn a_waypoint_and_a_played_ztunnel_take_each_other_by_certificates_of_one_authority() {
    let application = (chain(), true);
    let Some(up) = Up::of(Isolation::Rootless, Fault::None, application) else { return };
    assert_eq!(up.failed(), [""; 0]);
}

#[test]
fn played_ztunnels_on_two_nodes_carry_the_application_of_ambient_replicas() {
    let application = (Deployment { nodes: 2, ..behind_gateway() }, false);
    let Some(up) = Up::of(Isolation::Rootless, Fault::None, application) else { return };
    assert_eq!(up.failed(), [""; 0]);
}

#[test]
fn a_played_ztunnel_of_a_wrong_identity_breaks_the_proof() {
    let Some(up) = Up::still(Isolation::Rootless, Fault::WrongIdentity) else { return };
    let failed = up.failed();
    let [failed] = &failed[..] else { panic!("{failed:?}") };
    let claim = "server: every peer over HBONE has the identity of a caller";
    assert!(failed.starts_with(claim), "{failed}");
}

#[test]
fn a_certificate_that_was_issued_while_requests_were_measured_breaks_the_proof() {
    let Some(up) = Up::still(Isolation::Rootless, Fault::Rotates) else { return };
    let failed = up.failed();
    let [failed] = &failed[..] else { panic!("{failed:?}") };
    let claim = "node proxies: no certificate was issued between the readings";
    assert!(failed.starts_with(claim), "{failed}");
}

#[test]
fn a_played_ztunnel_without_a_token_gets_no_certificate_and_that_is_said() {
    let Some(mut up) = Up::new(Isolation::Rootless, Fault::NoToken) else { return };
    let refused = up.environment.await_ready().unwrap_err();
    let LabError::DataPlane(refused) = &refused else { panic!("{refused}") };
    assert_eq!(
        refused.to_string(),
        "the ztunnel of `node-1` asked for a certificate that it cannot have: it came without a token"
    );
}

#[test]
fn an_expired_certificate_of_a_played_ztunnel_carries_nothing() {
    let Some(mut up) = Up::new(Isolation::Rootless, Fault::Expired) else { return };
    up.environment.await_ready().unwrap();
    up.environment.start_programs(Role::Application, None).unwrap();
    up.environment.await_ready().unwrap();
    assert_eq!(up.statuses(), [Some(502); REQUESTS as usize]);
    let log = up.environment.setup.logs.join("node-proxy-node-1.log");
    let said = fs::read_to_string(log).unwrap();
    assert!(said.contains("certificate expired"), "{said}");
}
