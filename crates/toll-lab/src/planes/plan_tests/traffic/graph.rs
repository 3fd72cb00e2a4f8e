//! Real Envoys on loopback addresses: a gateway, the sidecars of one or two pods of a service, and that of a
//! database. The service is a thread of this test, and so is the database: a fake that answers fixed messages
//! and counts them, since a proxy that does not read bytes cannot tell it from a PostgreSQL.

use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::*;
use crate::evidence::DatabaseSnapshot;
use crate::fixture::graphs::{customer, on_loopback, with_replicas};
use crate::planes::agent::claims::prove_none;

const REQUESTS: u64 = 25;

/// Every message to the fake database, and every answer, has this length.
const MESSAGE: usize = 32;

const QUERY: &str = "query";

/// Asks for the address that the client has.
const WHO: &str = "who am I";

/// `ingress` hands to `name`, which asks `postgres`.
fn short() -> Deployment {
    let mut deployment = customer();
    deployment.services.retain(|s| !["customer", "person"].contains(&s.name.as_str()));
    deployment.services[0].calls = vec!["name".into()];
    deployment
}

fn meshed(deployment: Deployment, mtls: Mtls) -> Deployment {
    let data_plane =
        DataPlane::Sidecar { egress: Egress::Sidecar, proxy: SidecarProxy::Envoy, mtls };
    Deployment { data_plane, ..deployment }
}

/// Which way the service takes to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As it is told.
    Told,
    /// Past all sidecars.
    Direct,
}

/// A deployment that runs.
struct Graph {
    deployment: Deployment,
    topology: Topology,
    database: Arc<FakeDatabase>,
    proxies: Proxies,
    _dir: TempDir,
}

impl Graph {
    fn up(envoy: &Found, mut deployment: Deployment, way: Way) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (name, postgres) = (listen(), listen());
        let programs = [("name", port(&name)), ("postgres", port(&postgres))];
        for (service, port) in programs {
            let found = deployment.services.iter_mut().find(|s| s.name == service);
            found.unwrap().port = port;
        }
        let topology = addresses(&deployment);
        issue_identities(&deployment, &topology, dir.path()).unwrap();
        let plans = proxy_plans(&deployment, &topology, dir.path()).unwrap();
        let proxies = Proxies::start(envoy, plans, dir.path());
        let direct = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port(&postgres));
        let meshed = deployment.data_plane != DataPlane::Bare;
        let told =
            if meshed && way == Way::Told { topology.pods[1].calls["postgres"] } else { direct };
        let database = Arc::new(FakeDatabase::default());
        let listening = Arc::clone(&database);
        std::thread::spawn(move || listening.listen(&postgres));
        std::thread::spawn(move || serve_name(&name, told));
        Self { deployment, topology, database, proxies, _dir: dir }
    }

    fn prove(&self) -> Proof {
        let before = self.snapshot(self.walk(), self.proxies.counters());
        for _ in 0..REQUESTS {
            get(self.gateway(), "").expect("the gateway answers");
        }
        let counters = self.proxies.counters();
        let after = self.snapshot(self.walk(), counters);
        let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
        let deployment = &self.deployment;
        let window = Window {
            deployment,
            traffic: &traffic,
            before: &before,
            after: &after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        match deployment.data_plane {
            DataPlane::Bare | DataPlane::Agent(_) => prove_none(&window, &as_seen(&self.topology)),
            DataPlane::Sidecar { .. } | DataPlane::Mesher { .. } | DataPlane::Ambient(_) => {
                let plaintext = self.plaintext();
                prove_sidecars(
                    &window,
                    &self.topology,
                    &Outsider { plaintext, ..Outsider::default() },
                )
            }
        }
    }

    fn gateway(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.topology.pods[0].ip, self.topology.pods[0].app_port)
    }

    fn walk(&self) -> Walk {
        let (server, body) = get(self.gateway(), PROBE).expect("the gateway answers");
        Walk { server, report: serde_json::from_str(&body).ok() }
    }

    fn snapshot(&self, walk: Walk, counters: Counters) -> PathSnapshot {
        let databases = BTreeMap::from([("postgres".to_owned(), self.database.snapshot())]);
        PathSnapshot { databases, ..snapshot(walk, counters) }
    }

    fn plaintext(&self) -> BTreeMap<String, Plaintext> {
        let outcome = |pod: &PodAddresses| {
            let front = SocketAddrV4::new(pod.ip, pod.inbound_port);
            let answered = match pod.service.as_str() {
                "postgres" => ask(&mut TcpStream::connect(front).unwrap(), WHO).is_some(),
                _ => get(front, "").is_some(),
            };
            if answered { Plaintext::Answered(0) } else { Plaintext::Closed }
        };
        let behind = self.topology.pods.iter().skip(1);
        behind.map(|pod| (pod.pod.clone(), outcome(pod))).collect()
    }
}

/// Proxies get an address of their own; programs are at 127.0.0.1, where their sidecars, or callers, look.
fn addresses(deployment: &Deployment) -> Topology {
    let mut topology = on_loopback(deployment, address_of_its_own(), 14_006);
    if deployment.data_plane == DataPlane::Bare {
        topology.pods[1..].iter_mut().for_each(|pod| pod.ip = Ipv4Addr::LOCALHOST);
    }
    topology
}

/// Connections to 127.0.0.1 come from there, whatever other loopback address a program listens at.
fn as_seen(topology: &Topology) -> Topology {
    let mut seen = topology.clone();
    seen.pods.iter_mut().for_each(|pod| pod.ip = Ipv4Addr::LOCALHOST);
    seen
}

/// Answers fixed messages. Not a PostgreSQL.
#[derive(Debug, Default)]
struct FakeDatabase {
    queries: AtomicU64,
    /// Of the connections that are open.
    peers: Mutex<Vec<IpAddr>>,
}

impl FakeDatabase {
    fn listen(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let this = Arc::clone(&self);
            std::thread::spawn(move || this.serve(stream.unwrap()));
        }
    }

    fn serve(&self, mut stream: TcpStream) {
        let peer = stream.peer_addr().unwrap().ip();
        self.peers.lock().unwrap().push(peer);
        let mut message = [0; MESSAGE];
        while stream.read_exact(&mut message).is_ok() {
            self.queries.fetch_add(u64::from(text(&message) == QUERY), Ordering::Relaxed);
            stream.write_all(&padded(&peer.to_string())).unwrap();
        }
        let mut peers = self.peers.lock().unwrap();
        let own = peers.iter().position(|other| *other == peer).unwrap();
        peers.remove(own);
    }

    fn snapshot(&self) -> DatabaseSnapshot {
        let mut peers = BTreeMap::new();
        for peer in self.peers.lock().unwrap().iter() {
            *peers.entry(*peer).or_default() += 1;
        }
        let statements = self.queries.load(Ordering::Relaxed);
        DatabaseSnapshot { statements, peers, written: Some((0, 0)), ..DatabaseSnapshot::default() }
    }
}

fn padded(text: &str) -> [u8; MESSAGE] {
    let mut message = [b' '; MESSAGE];
    message[..text.len()].copy_from_slice(text.as_bytes());
    message
}

fn text(message: &[u8]) -> &str {
    std::str::from_utf8(message).unwrap().trim_end()
}

/// The fake database's answer; none when the connection is closed instead.
fn ask(stream: &mut TcpStream, message: &str) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&padded(message)).ok()?;
    let mut answer = [0; MESSAGE];
    stream.read_exact(&mut answer).ok()?;
    Some(text(&answer).to_owned())
}

/// The service `name`: a query for each request, all over one connection; a probe asks the address only.
fn serve_name(listener: &TcpListener, database: SocketAddrV4) {
    let mut pooled = None;
    let (mut requests, mut certified) = (0, 0);
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let peer = stream.peer_addr().unwrap();
        let headers = headers(&mut BufReader::new(&stream));
        let probe = headers.contains_key("x-toll-probe");
        requests += u64::from(!probe);
        certified += u64::from(!probe && headers.contains_key("x-forwarded-client-cert"));
        let connection = pooled.get_or_insert_with(|| TcpStream::connect(database).unwrap());
        let from = ask(connection, if probe { WHO } else { QUERY });
        let report = json!({
            "service": "name", "peer": peer, "headers": headers, "requests": requests,
            "marked": requests, "certified": certified, "calls": [], "database_peer": from,
        });
        answer(&mut stream, &report);
    }
}

#[test]
fn requests_through_a_strict_gateway_and_to_a_database_prove_their_path() {
    let Some(envoy) = envoy() else { return };
    let proof = Graph::up(&envoy, meshed(short(), Mtls::Strict), Way::Told).prove();
    assert!(proof.holds(), "{proof:#?}");
    let counted: Vec<u64> = proof.traversals.iter().map(|way| way.counted).collect();
    assert_eq!(counted, [REQUESTS; 3]);
}

#[test]
fn requests_through_a_permissive_gateway_and_to_a_database_prove_their_path() {
    let Some(envoy) = envoy() else { return };
    let proof = Graph::up(&envoy, meshed(short(), Mtls::Permissive), Way::Told).prove();
    assert!(proof.holds(), "{proof:#?}");
}

#[test]
fn requests_through_a_bare_gateway_prove_their_path() {
    let Some(envoy) = envoy() else { return };
    let proof = Graph::up(&envoy, short(), Way::Told).prove();
    assert!(proof.holds(), "{proof:#?}");
}

#[test]
fn queries_past_the_sidecars_fail_the_proof() {
    let Some(envoy) = envoy() else { return };
    let proof = Graph::up(&envoy, meshed(short(), Mtls::Strict), Way::Direct).prove();
    assert_eq!(
        failed(&proof),
        [
            "every request crossed 3 sidecars",
            "postgres: every open connection's source address is its own sidecar's",
            "name to postgres: the connection's source address is its own sidecar's",
            "postgres sidecar, inbound: every open connection came over mTLS",
            "postgres sidecar, inbound: enough bytes for every query",
            "name to postgres: every connection between the sidecars is TLS",
            "name sidecar, outbound: enough bytes for every query of postgres",
        ]
    );
}

#[test]
fn a_gateway_takes_the_pods_of_a_service_in_turn() {
    let Some(envoy) = envoy() else { return };
    let deployment = with_replicas(meshed(short(), Mtls::Strict), "name", 2);
    // Both sidecars stand before the one program that plays `name`.
    let proof = Graph::up(&envoy, deployment, Way::Told).prove();
    assert!(proof.holds(), "{proof:#?}");
    let each = proof.claims.iter().find(|c| c.claim == "name: each of its 2 pods got requests");
    assert!(each.is_some(), "{proof:#?}");
}
