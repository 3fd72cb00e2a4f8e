//! Two real Envoys on the loopback address, with explicit capture, between two tiny applications.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::*;

mod egress;
mod graph;

use crate::Reading;
use crate::claim::{Proof, Traffic};
use crate::envoy::admin::{counters, ready};
use crate::evidence::{Outsider, PathSnapshot, Plaintext, ProxyCounters, Walk};
use crate::planes::sidecar::proof::prove as prove_sidecars;
use crate::proof::window::{Spread, Window};

type Counters = BTreeMap<String, ProxyCounters>;

/// The header that asks for a report, as a line.
const PROBE: &str = "x-toll-probe: 1\r\n";

/// What is wrong with a mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The client calls the server itself instead of its sidecar's listener.
    Bypass,
    /// The server's sidecar shows the certificate of another service of the mesh.
    Impostor,
}

/// Proxies that run. They end with it.
struct Proxies {
    plans: Vec<ProxyPlan>,
    children: Vec<Child>,
}

impl Proxies {
    fn start(envoy: &Found, plans: Vec<ProxyPlan>, dir: &Path) -> Self {
        let children = plans.iter().map(|plan| start(envoy, plan, dir)).collect();
        let proxies = Self { plans, children };
        proxies.wait_until_ready();
        proxies
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.plans.iter().all(|plan| ready(&plan.admin_socket).unwrap()) {
            assert!(Instant::now() < deadline, "the proxies are not ready after 20 s");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn counters(&self) -> Counters {
        let read = |plan: &ProxyPlan| (plan.pod.clone(), counters(&plan.admin_socket).unwrap());
        self.plans.iter().map(read).collect()
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The sidecars of `chain()`, and its two applications as threads of this test.
struct Mesh {
    deployment: Deployment,
    topology: Topology,
    sidecars: Proxies,
    _dir: TempDir,
}

impl Mesh {
    fn up(envoy: &Found, mtls: Mtls, fault: Fault) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let deployment = with_mtls(mtls);
        let apps = [listen(), listen()];
        let topology = loopback(address_of_its_own(), apps.each_ref().map(port));
        issue_identities(&deployment, &topology, dir.path()).unwrap();
        if fault == Fault::Impostor {
            give_the_server_the_clients_identity(dir.path());
        }
        let plans = proxy_plans(&deployment, &topology, dir.path()).unwrap();
        let sidecars = Proxies::start(envoy, plans, dir.path());
        let [client, server] = apps;
        let callee = match fault {
            Fault::Bypass => SocketAddrV4::new(Ipv4Addr::LOCALHOST, port(&server)),
            Fault::None | Fault::Impostor => topology.pods[0].calls["server"],
        };
        std::thread::spawn(move || serve(&server, "server", None));
        std::thread::spawn(move || serve(&client, "client", Some(callee)));
        Self { deployment, topology, sidecars, _dir: dir }
    }

    fn front(&self, pod: usize) -> SocketAddrV4 {
        SocketAddrV4::new(self.topology.pods[pod].ip, self.topology.pods[pod].inbound_port)
    }

    fn prove(&self, requests: u64) -> Proof {
        let walk = self.walk();
        let before = snapshot(walk, self.sidecars.counters());
        for _ in 0..requests {
            get(self.front(0), "").expect("the entry answers");
        }
        let counters = self.sidecars.counters();
        let after = snapshot(self.walk(), counters);
        let plaintext =
            get(self.front(1), "").map_or(Plaintext::Closed, |_| Plaintext::Answered(200));
        let deployment = &self.deployment;
        let traffic = Traffic { requests, ..Traffic::default() };
        let window = Window {
            deployment,
            traffic: &traffic,
            before: &before,
            after: &after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        let plaintext = BTreeMap::from([("server".to_owned(), plaintext)]);
        prove_sidecars(&window, &self.topology, &Outsider { plaintext, ..Outsider::default() })
    }

    fn walk(&self) -> Walk {
        let (server, body) = get(self.front(0), PROBE).expect("the entry answers");
        Walk { server, report: serde_json::from_str(&body).ok() }
    }
}

fn snapshot(walk: Walk, counters: Counters) -> PathSnapshot {
    PathSnapshot {
        handshakes: BTreeMap::new(),
        sni_accepted: None,
        walk,
        counters,
        rules: BTreeMap::new(),
        occupants: BTreeMap::new(),
        databases: BTreeMap::new(),
        replicas: BTreeMap::new(),
        jvms: BTreeMap::new(),
        answered: BTreeMap::new(),
        wire: Reading::Value(Vec::new()),
    }
}

fn give_the_server_the_clients_identity(dir: &Path) {
    for extension in ["crt", "key"] {
        let of = |service: &str| dir.join("identity").join(format!("{service}.{extension}"));
        fs::rename(of("client"), of("server")).unwrap();
        fs::copy(of("server"), of("client")).unwrap();
    }
}

fn start(envoy: &Found, plan: &ProxyPlan, dir: &Path) -> Child {
    fs::write(dir.join(&plan.config_name), &plan.config).unwrap();
    Command::new(&envoy.path).args(&plan.args).stderr(Stdio::null()).spawn().unwrap()
}

fn listen() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

/// Another loopback address for each mesh of each test process: their ports cannot clash.
fn address_of_its_own() -> Ipv4Addr {
    static MESHES: AtomicU32 = AtomicU32::new(1);
    let mesh = MESHES.fetch_add(1, Ordering::Relaxed);
    assert!(mesh < 256, "eight bits are left beside those of the process id");
    Ipv4Addr::from_bits((127 << 24) | (mesh << 16) | (std::process::id() % (1 << 16)))
}

/// Answers every request with a path report, one request a connection.
fn serve(listener: &TcpListener, name: &str, callee: Option<SocketAddrV4>) {
    let (mut requests, mut marked, mut certified) = (0, 0, 0);
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let peer = stream.peer_addr().unwrap();
        let headers = headers(&mut BufReader::new(&stream));
        let probe = headers.contains_key("x-toll-probe");
        requests += u64::from(!probe);
        marked += u64::from(!probe && headers.contains_key("x-forwarded-proto"));
        certified += u64::from(!probe && headers.contains_key("x-forwarded-client-cert"));
        let answers = callee.into_iter().filter_map(|to| get(to, if probe { PROBE } else { "" }));
        let calls: Vec<serde_json::Value> =
            answers.map(|(_, body)| serde_json::from_str(&body).unwrap_or_default()).collect();
        let report = json!({
            "service": name, "peer": peer, "headers": headers,
            "requests": requests, "marked": marked, "certified": certified, "calls": calls,
        });
        answer(&mut stream, &report);
    }
}

fn answer(stream: &mut TcpStream, report: &serde_json::Value) {
    let report = report.to_string();
    let length = report.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n");
    let _ = write!(stream, "{head}\r\n{report}");
}

fn headers(request: &mut impl BufRead) -> BTreeMap<String, String> {
    let lines = request.lines().map(Result::unwrap).skip(1).take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.split_once(": ").map(|(n, v)| (n.to_owned(), v.to_owned())))
        .collect()
}

/// The `server` header and the body; none when the connection is closed without an answer.
fn get(address: SocketAddrV4, headers: &str) -> Option<(Option<String>, String)> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // In one piece: a sidecar that refuses plaintext resets the connection after the first.
    let request = format!("GET / HTTP/1.1\r\nhost: app\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let server = head.lines().find_map(|line| line.strip_prefix("server: "));
    Some((server.map(str::to_owned), body.to_owned()))
}

fn failed(proof: &Proof) -> Vec<&str> {
    proof.claims.iter().filter(|c| !c.holds).map(|c| c.claim.as_str()).collect()
}

#[test]
fn requests_through_two_strict_envoys_prove_their_path() {
    let Some(envoy) = envoy() else { return };
    let proof = Mesh::up(&envoy, Mtls::Strict, Fault::None).prove(25);
    assert!(proof.holds(), "{proof:#?}");
}

#[test]
fn requests_through_two_permissive_envoys_prove_their_path() {
    let Some(envoy) = envoy() else { return };
    let proof = Mesh::up(&envoy, Mtls::Permissive, Fault::None).prove(25);
    assert!(proof.holds(), "{proof:#?}");
}

#[test]
fn a_call_past_the_sidecars_fails_the_proof() {
    let Some(envoy) = envoy() else { return };
    let proof = Mesh::up(&envoy, Mtls::Strict, Fault::Bypass).prove(25);
    assert_eq!(
        failed(&proof),
        [
            "every request crossed 3 sidecars",
            "client sidecar, outbound: every call to server was counted",
            "client to server: every connection between the sidecars is TLS",
            "server sidecar, inbound: every request came over mTLS",
            "server: every request bore its caller's certificate",
            "client to server: the connection's source address is its own sidecar's",
            "client to server: the sidecars know each other by their SPIFFE IDs",
        ]
    );
}

#[test]
fn a_sidecar_calls_nobody_who_shows_another_identity() {
    let Some(envoy) = envoy() else { return };
    let proof = Mesh::up(&envoy, Mtls::Strict, Fault::Impostor).prove(3);
    let tls = "client to server: every connection between the sidecars is TLS";
    let all = "server sidecar, inbound: every request came over mTLS";
    assert!(failed(&proof).contains(&tls) && failed(&proof).contains(&all), "{proof:#?}");
}
