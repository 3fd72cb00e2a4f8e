//! Real node proxies and waypoints around built-in services, in pods and without root: what comes over HBONE, what is
//! refused, and what is counted of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Role;
use crate::artifacts::{Artifact, Fetch, Need};
use crate::deployment::{Ambient, DataPlane, Deployment, Mtls, NodeProxy, Program, Service};
use crate::evidence::{CallCounters, HboneCounters, ProxyCounters};
use crate::fixture::chain;
use crate::host::isolation::{Isolation, survey};
use crate::host::spawn::SpawnContext;
use crate::host::tools::{self, Tool};
use crate::local::{LocalEnvironment, LocalLab};
use crate::options::LocalOptions;
use crate::probe::{Outcome, Speech};

const REQUESTS: u64 = 6;

/// Returns from the test with a line that the test run counts.
macro_rules! skip {
    ($reason:expr) => {{
        eprintln!("SKIP {}: {}", std::thread::current().name().unwrap_or("?"), $reason);
        return None;
    }};
}

/// `ingress`, a gateway, hands to `client`, two pods that call `server`.
fn deployment(mtls: Mtls, nodes: usize, waypoint: bool) -> Deployment {
    let mut deployment = chain();
    deployment.services[0].replicas = 2;
    let ingress = Service {
        name: "ingress".into(),
        port: 8080,
        calls: vec!["client".into()],
        program: Program::Gateway,
        replicas: 1,
        ..deployment.services[0].clone()
    };
    deployment.services.insert(0, ingress);
    let data_plane = DataPlane::Ambient(Ambient { proxy: NodeProxy::Envoy, mtls, waypoint });
    Deployment { name: "ambient".into(), entry: "ingress".into(), nodes, data_plane, ..deployment }
}

/// A deployment that runs, and the folder of all its files.
struct Up {
    environment: LocalEnvironment,
    _folder: TempDir,
}

impl Up {
    fn new(isolation: Isolation, deployment: &Deployment) -> Option<Self> {
        let up = Self::tampered(isolation, deployment, |_| ())?;
        up.environment.await_entry().unwrap();
        Some(up)
    }

    /// `tamper` gets the folder before the proxies start.
    fn tampered(
        isolation: Isolation,
        deployment: &Deployment,
        tamper: impl FnOnce(&Path),
    ) -> Option<Self> {
        let program = std::env::current_exe().unwrap().with_file_name("../toll-service");
        let Ok(envoy) = Need::Artifact(Artifact::Envoy).find(Fetch::Forbidden) else {
            skip!("there is no Envoy")
        };
        let Ok(service) = program.canonicalize() else { skip!("toll-service is not built") };
        if !survey().iter().any(|(level, possible)| *level == isolation && possible.is_ok()) {
            skip!(format!("isolation level {isolation} is not possible here"));
        }
        let mode = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new().permissions(mode).tempdir_in("/tmp").unwrap();
        let options = options(isolation, folder.path(), service, &envoy[0].1.path);
        let lab = LocalLab::new(options).unwrap();
        let mut up = LocalEnvironment::new(&lab, deployment, &folder.path().join("logs")).unwrap();
        up.make_pods().unwrap();
        up.make_proxies().unwrap();
        tamper(&up.setup.folder);
        up.start_proxies().unwrap();
        up.await_ready().unwrap();
        up.start_programs(Role::Application, None).unwrap();
        up.await_ready().unwrap();
        Some(Self { environment: up, _folder: folder })
    }

    /// From the load's pod, which stands outside of the mesh.
    fn ask(&self, to: SocketAddrV4) -> (Outcome, Option<u16>) {
        let Up { environment: up, .. } = self;
        let context = up.pods.load(&up.setup.machine);
        let prober = up.processes.prober(&up.setup.machine.options);
        let answer = prober.probe(&context, to, Speech::Request).unwrap();
        (answer.outcome, answer.status)
    }

    fn ask_entry(&self) -> (Outcome, Option<u16>) {
        self.ask(self.environment.setup.entry())
    }

    /// What `openssl s_client` says of a handshake with the HBONE port of a pod.
    fn greet(&self, pod: Ipv4Addr, identity: Option<&str>) -> String {
        let folder = self.environment.setup.folder.join("identity");
        let mut command = Command::new("openssl");
        command.args(["s_client", "-ign_eof", "-alpn", "h2", "-connect", &format!("{pod}:15008")]);
        if let Some(name) = identity {
            command.arg("-cert").arg(folder.join(format!("{name}.crt")));
            command.arg("-key").arg(folder.join(format!("{name}.key")));
        }
        let Up { environment: up, .. } = self;
        up.pods.load(&up.setup.machine).apply(&mut command).unwrap();
        // No HTTP/2: whoever is let in is closed at that.
        let output = up.processes.launcher().run(command, &"\0".repeat(64)).unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Who has a connection with the HBONE port of a pod.
    fn hbone_peers(&self, pod: &str) -> BTreeSet<String> {
        let context = SpawnContext::inside(self.environment.pods.network(pod).unwrap());
        let args = ["-H", "-t", "-n", "state", "established", "sport = :15008"];
        let ss =
            Tool { launcher: self.environment.processes.launcher(), program: "ss", args: &args };
        let table = ss.run(pod, &context, "").unwrap();
        let peers = table.lines().filter_map(|line| line.split_whitespace().nth(3));
        peers.filter_map(|peer| Some(peer.rsplit_once(':')?.0.to_owned())).collect()
    }

    fn counters(&self) -> BTreeMap<String, ProxyCounters> {
        let Up { environment: up, .. } = self;
        let observer = up.observer();
        let ask = |pod: &str, at, speech: Speech<'_>| observer.ask_in(pod, at, speech);
        up.proxies.counters(&up.setup, &ask).unwrap()
    }

    /// What came over HBONE for `service`, at all nodes.
    fn hbone_into(&self, service: &str) -> HboneCounters {
        let all = self.counters();
        let nodes = all.iter().filter(|(pod, _)| pod.starts_with("node-"));
        nodes.fold(HboneCounters::default(), |sum, (_, node)| {
            let of_node = node.hbone_into(service);
            HboneCounters {
                streams: sum.streams + of_node.streams,
                handshakes: sum.handshakes + of_node.handshakes,
                wrong_identity: sum.wrong_identity + of_node.wrong_identity,
                no_certificate: sum.no_certificate + of_node.no_certificate,
                plaintext: sum.plaintext + of_node.plaintext,
                plaintext_bytes: sum.plaintext_bytes + of_node.plaintext_bytes,
            }
        })
    }

    fn pod(&self, name: &str) -> SocketAddrV4 {
        let pods = &self.environment.setup.topology.pods;
        let pod = pods.iter().find(|pod| pod.pod == name).unwrap();
        SocketAddrV4::new(pod.ip, pod.app_port)
    }
}

fn options(isolation: Isolation, folder: &Path, service: PathBuf, envoy: &Path) -> LocalOptions {
    let load = vec!["true".into()];
    let mut options = LocalOptions::new(vec![service.into()], load, folder.join("lab"));
    options.isolation = Some(isolation);
    options.artifacts.put(Artifact::Envoy, envoy);
    options
}

const ANSWERED: (Outcome, Option<u16>) = (Outcome::Answered, Some(200));

/// Every connection between the three, and nothing else, is a stream that both of its ends count.
fn all_traffic_is_hbone(isolation: Isolation, nodes: usize) -> Option<()> {
    let up = Up::new(isolation, &deployment(Mtls::Strict, nodes, false))?;
    let before = up.counters()["ingress"].call("client").requests;
    for _ in 0..REQUESTS {
        assert_eq!(up.ask_entry(), ANSWERED);
    }
    let all = up.counters();
    let gateway = &all["ingress"];
    assert_eq!(gateway.call("client").requests - before, REQUESTS);
    assert_eq!((gateway.call("client").handshakes, gateway.inbound_mtls), (0, 0));
    let (into_client, into_server) = (up.hbone_into("client"), up.hbone_into("server"));
    assert_eq!(into_client.streams, gateway.call("client").connections);
    assert_eq!(into_client.handshakes, gateway.tunnel("client").handshakes);
    assert!(gateway.tunnel("client").connections >= 1);
    let of_clients = all.values().filter(|c| !c.hbone.is_empty()).map(|c| c.tunnel("server"));
    let (streams, handshakes) =
        of_clients.fold((0, 0), |sum, of| (sum.0 + of.requests, sum.1 + of.handshakes));
    assert_eq!((into_server.streams, into_server.handshakes), (streams, handshakes));
    assert!(streams >= 1, "{all:#?}");
    for refused in [into_client, into_server] {
        let none = (refused.wrong_identity, refused.no_certificate, refused.plaintext);
        assert_eq!(none, (0, 0, 0));
    }
    up.environment.down().unwrap();
    Some(())
}

#[test]
fn requests_from_the_gateway_and_from_captured_pods_are_streams() {
    all_traffic_is_hbone(Isolation::Pods, 1);
}

#[test]
fn requests_between_two_nodes_are_streams() {
    all_traffic_is_hbone(Isolation::Pods, 2);
}

#[test]
fn without_root_requests_are_streams_too() {
    all_traffic_is_hbone(Isolation::Rootless, 2);
}

#[test]
fn a_stream_comes_from_the_address_of_the_pod_that_calls() {
    let mut deployment = deployment(Mtls::Strict, 1, false);
    // More than the node's proxy has threads: none of those share connections in any case.
    deployment.services[1].replicas = 4;
    let Some(up) = Up::new(Isolation::Pods, &deployment) else { return };
    // Each thread of the gateway takes the pods in turn.
    for _ in 0..10 * REQUESTS {
        assert_eq!(up.ask_entry(), ANSWERED);
    }
    // Pods of one service share a cluster at their node, but no connection.
    let clients = ["client-1", "client-2", "client-3", "client-4"];
    let clients = clients.map(|pod| up.pod(pod).ip().to_string());
    assert_eq!(up.hbone_peers("server"), BTreeSet::from(clients));
    assert_eq!(up.hbone_peers("client-1"), BTreeSet::from([up.pod("ingress").ip().to_string()]));
}

#[test]
fn each_node_takes_the_streams_of_its_own_pods_only() {
    let deployment = deployment(Mtls::Strict, 2, false);
    let Some(up) = Up::new(Isolation::Pods, &deployment) else { return };
    for _ in 0..REQUESTS {
        assert_eq!(up.ask_entry(), ANSWERED);
    }
    let all = up.counters();
    // `client-1` and `server` are on the second node.
    let served = |node: &str| all[node].hbone.iter().filter(|(_, c)| c.streams > 0);
    let served = |node: &str| served(node).map(|(service, _)| service.as_str()).collect::<Vec<_>>();
    assert_eq!(served("node-1"), ["client"]);
    assert_eq!(served("node-2"), ["client", "server"]);
}

#[test]
fn a_waypoint_reads_every_request_of_every_call() {
    let deployment = deployment(Mtls::Strict, 1, true);
    let Some(up) = Up::new(Isolation::Pods, &deployment) else { return };
    let before = up.counters();
    for _ in 0..REQUESTS {
        assert_eq!(up.ask_entry(), ANSWERED);
    }
    let after = up.counters();
    let growth =
        |pick: fn(&ProxyCounters) -> u64| pick(&after["waypoint"]) - pick(&before["waypoint"]);
    assert_eq!(growth(|waypoint| waypoint.inbound_mtls), 2 * REQUESTS);
    assert_eq!(growth(|waypoint| waypoint.call("client").requests), REQUESTS);
    assert_eq!(growth(|waypoint| waypoint.call("server").requests), REQUESTS);
    let waypoint = &after["waypoint"];
    let callers = ["ingress", "node-1"].map(|pod| after[pod].tunnel("waypoint").requests);
    assert_eq!(waypoint.hbone_into("waypoint").streams, callers.iter().sum::<u64>());
    assert_eq!(up.hbone_into("client").streams, waypoint.tunnel("client").requests);
    assert_eq!(up.hbone_into("server").streams, waypoint.tunnel("server").requests);
    // Nobody comes past it.
    assert_eq!(after["ingress"].tunnel("client"), CallCounters::default());
    assert_eq!(after["node-1"].tunnel("server"), CallCounters::default());
}

#[test]
fn without_root_there_can_be_a_waypoint() {
    let deployment = deployment(Mtls::Permissive, 2, true);
    let Some(up) = Up::new(Isolation::Rootless, &deployment) else { return };
    assert_eq!(up.ask_entry(), ANSWERED);
    assert!(up.counters()["waypoint"].inbound_mtls >= 2);
}

#[test]
fn a_plan_shows_what_each_node_each_captured_pod_and_the_waypoint_get() {
    let options = options(Isolation::Pods, Path::new("/tmp/x"), "true".into(), Path::new("true"));
    let Ok(lab) = LocalLab::new(options) else { return skip_without_pods() };
    let files = lab.render(&deployment(Mtls::Strict, 2, true)).unwrap();
    let names: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let expected = [
        "ingress.envoy.yaml",
        "node-1.envoy.yaml",
        "node-2.envoy.yaml",
        "waypoint.envoy.yaml",
        "client-1.nft",
        "client-2.nft",
        "server.nft",
    ];
    assert!(names.is_superset(&expected.into()), "{names:?}");
    assert!(!names.contains("ingress.nft"));
}

fn skip_without_pods() {
    eprintln!("SKIP {}: no pods here", std::thread::current().name().unwrap_or("?"));
}

#[test]
fn a_strict_pod_refuses_plaintext() {
    let Some(up) = Up::new(Isolation::Pods, &deployment(Mtls::Strict, 1, false)) else { return };
    for pod in ["client-1", "client-2", "server"] {
        assert_eq!(up.ask(up.pod(pod)), (Outcome::Refused, None), "{pod}");
    }
}

#[test]
fn a_permissive_pod_answers_plaintext_and_counts_it_apart() {
    let deployment = deployment(Mtls::Permissive, 1, false);
    let Some(up) = Up::new(Isolation::Pods, &deployment) else { return };
    let before = up.hbone_into("server");
    assert_eq!(up.ask(up.pod("server")), ANSWERED);
    let after = up.hbone_into("server");
    let HboneCounters { plaintext_bytes, .. } = after;
    assert!(plaintext_bytes > before.plaintext_bytes + 9, "{after:?}");
    assert_eq!(after, HboneCounters { plaintext: before.plaintext + 1, plaintext_bytes, ..before });
}

#[test]
fn a_peer_without_a_certificate_is_refused_and_so_is_one_with_anothers() {
    if tools::find("openssl").is_none() {
        eprintln!("SKIP a_peer_without_a_certificate_is_refused...: no openssl");
        return;
    }
    let Some(up) = Up::new(Isolation::Pods, &deployment(Mtls::Strict, 1, false)) else { return };
    let pod = *up.pod("server").ip();
    let before = up.hbone_into("server");
    assert!(!up.greet(pod, Some("client")).contains("alert"));
    let nobody = up.greet(pod, None);
    assert!(nobody.contains("alert certificate required"), "{nobody}");
    // Of the mesh, but not a caller of this service.
    let other = up.greet(pod, Some("ingress"));
    assert!(other.contains("alert certificate unknown"), "{other}");
    let after = up.hbone_into("server");
    assert_eq!(after.handshakes - before.handshakes, 1);
    assert_eq!(after.no_certificate - before.no_certificate, 1);
    assert_eq!(after.wrong_identity - before.wrong_identity, 1);
}

#[test]
fn a_caller_opens_no_stream_to_who_shows_anothers_identity() {
    let deployment = deployment(Mtls::Strict, 1, false);
    let impostor = |folder: &Path| give_identity(folder, "client", "server");
    let Some(up) = Up::tampered(Isolation::Pods, &deployment, impostor) else { return };
    assert_eq!(up.ask_entry(), (Outcome::Answered, Some(503)));
    assert_eq!(up.hbone_into("client").streams, 0);
}

#[test]
fn a_pod_takes_no_stream_from_a_service_that_does_not_call_it() {
    let deployment = deployment(Mtls::Strict, 1, false);
    let stranger = |folder: &Path| give_identity(folder, "ingress", "server");
    let Some(up) = Up::tampered(Isolation::Pods, &deployment, stranger) else { return };
    assert_eq!(up.ask_entry(), (Outcome::Answered, Some(503)));
    let into_client = up.hbone_into("client");
    assert_eq!((into_client.streams, into_client.handshakes), (0, 0));
    assert!(into_client.wrong_identity >= 1, "{into_client:?}");
}

/// Has `of` show the identity of `another`.
fn give_identity(folder: &Path, of: &str, another: &str) {
    for end in ["crt", "key"] {
        let path = |name: &str| folder.join(format!("identity/{name}.{end}"));
        let text = fs::read(path(another)).unwrap();
        // In place: the file stays its owner's.
        fs::write(path(of), text).unwrap();
    }
}
