//! A program that plays ztunnel, in pods and without root: no ztunnel could be had. It takes its pods and answers what
//! it is asked, but carries nothing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;

use super::*;
use crate::deployment::{Ambient, DataPlane, Deployment, Mtls, NodeProxy};
use crate::fixture::chain;
use crate::host::isolation::{Isolation, survey};
use crate::local::{LocalEnvironment, LocalLab};
use crate::options::LocalOptions;
use crate::planes::ambient::ztunnel::messages::Payload;
use crate::planes::ambient::ztunnel::zds::tests::FakeZtunnel;

/// Starts this very test program as the one ignored test below.
const WRAPPER: &str = "#!/bin/sh
export -p > \"$INPOD_UDS.variables\"
test \"$*\" = 'proxy ztunnel' || exit 2
exec 'PROGRAM' --exact local::proxies::tests::this_is_the_fake_ztunnel --ignored --nocapture
";

#[test]
#[ignore = "it is the program of the fake ztunnel, which other tests start"]
fn this_is_the_fake_ztunnel() {
    let Some(socket) = env::var_os("INPOD_UDS") else { return };
    let client = FakeZtunnel::hello(Path::new(&socket));
    let mut pods = 0;
    while let (Some(Payload::Add(_)), networks) = client.receive() {
        pods += networks.len();
        client.answer("");
    }
    client.answer("");
    let metrics = format!(
        "istio_tcp_connections_opened_total{{reporter=\"destination\",\
         source_principal=\"spiffe://cluster.local/ns/default/sa/client\",\
         destination_principal=\"spiffe://cluster.local/ns/default/sa/server\",\
         connection_security_policy=\"mutual_tls\"}} {pods}\n"
    );
    // Before it is ready its metrics can be asked for.
    let listener = listen(METRICS);
    thread::spawn(move || answer(&listener, METRICS, &metrics));
    answer(&listen(READINESS), READINESS, "ready\n");
}

fn listen((port, _): (u16, &str)) -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap()
}

/// Gives everybody who asks the same.
fn answer(listener: &TcpListener, (_, path): (u16, &str), body: &str) {
    for mut stream in listener.incoming().map(Result::unwrap) {
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).unwrap();
        let known = request[..length].starts_with(format!("GET {path} ").as_bytes());
        let status = if known { "200 OK" } else { "404 Not Found" };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    }
}

/// A deployment whose proxies have been started, and the folder of all its files.
struct Up {
    environment: LocalEnvironment,
    _folder: TempDir,
}

impl Up {
    /// `client` calls `server` on one node, whose ztunnel is this script.
    fn new(isolation: Isolation, script: &str) -> Option<Self> {
        let exe = env::current_exe().unwrap();
        let Ok(service) = exe.with_file_name("../toll-service").canonicalize() else {
            return skip("toll-service is not built");
        };
        if !survey().iter().any(|(level, possible)| *level == isolation && possible.is_ok()) {
            return skip("the isolation level is not possible here");
        }
        let mode = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(mode.clone()).tempdir_in("/tmp").unwrap();
        let binary = folder.path().join("fake-ztunnel");
        fs::write(&binary, script.replace("PROGRAM", exe.to_str().unwrap())).unwrap();
        fs::set_permissions(&binary, mode).unwrap();
        let proxy = NodeProxy::Ztunnel { binary };
        let ambient = Ambient { proxy, mtls: Mtls::Strict, waypoint: false };
        let deployment = Deployment { data_plane: DataPlane::Ambient(ambient), ..chain() };
        let lab = LocalLab::new(options(isolation, folder.path(), service)).unwrap();
        let logs = folder.path().join("logs");
        let mut environment = LocalEnvironment::new(&lab, &deployment, &logs).unwrap();
        environment.make_pods().unwrap();
        environment.make_proxies().unwrap();
        environment.start_proxies().unwrap();
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

fn a_fake_ztunnel_is_told_all_and_asked_from_inside(isolation: Isolation) {
    let Some(mut up) = Up::new(isolation, WRAPPER) else { return };
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
    // It was given two networks, and says so as two streams.
    let counters = up.counters().unwrap();
    assert_eq!(counters["node-1"].hbone_into("server").streams, 2);
    up.environment.down().unwrap();
}

#[test]
fn a_fake_ztunnel_is_told_all_and_asked_from_inside_in_pods() {
    a_fake_ztunnel_is_told_all_and_asked_from_inside(Isolation::Pods);
}

#[test]
fn a_fake_ztunnel_is_told_all_and_asked_from_inside_without_root() {
    a_fake_ztunnel_is_told_all_and_asked_from_inside(Isolation::Rootless);
}

#[test]
fn the_end_of_a_fake_ztunnel_is_noticed() {
    let Some(mut up) = Up::new(Isolation::Rootless, WRAPPER) else { return };
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

#[test]
fn the_last_words_of_a_fake_ztunnel_that_has_no_authority_are_shown() {
    let words = "not implemented: fake_ca requires --features testing";
    let script = format!("#!/bin/sh\necho '{words}' >&2\nexit 101\n");
    let Some(mut up) = Up::new(Isolation::Rootless, &script) else { return };
    let crash = up.environment.await_ready().unwrap_err();
    let LabError::Crashed { component, log, .. } = &crash else { panic!("{crash}") };
    assert!(component.contains("node-1"), "{component}");
    assert_eq!(log, &[words]);
}
