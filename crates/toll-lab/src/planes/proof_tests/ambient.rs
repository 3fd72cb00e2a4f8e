//! The claims about node proxies, waypoints and wires, each of them broken.

use super::*;
use crate::deployment::{Ambient, NodeProxy};
use crate::evidence::HboneCounters;
use crate::fixture::graphs::{behind_gateway, in_pods};
use crate::planes::ambient::claims::prove as prove_ambient;
use crate::topology::{NodeAddresses, Waypoint};

/// What an ambient data plane on two nodes shows when all is well.
struct Seen {
    deployment: Deployment,
    topology: Topology,
    before: PathSnapshot,
    after: PathSnapshot,
    outsider: Outsider,
}

impl Seen {
    fn strict() -> Self {
        Self::of(behind_gateway(), Mtls::Strict, false)
    }

    fn permissive() -> Self {
        Self::of(behind_gateway(), Mtls::Permissive, false)
    }

    fn with_waypoint() -> Self {
        Self::of(behind_gateway(), Mtls::Strict, true)
    }

    /// `client` calls `server`, both captured.
    fn chain() -> Self {
        Self::of(chain(), Mtls::Strict, false)
    }

    fn of(deployment: Deployment, mtls: Mtls, waypoint: bool) -> Self {
        let ambient = Ambient { proxy: NodeProxy::Envoy, mtls, waypoint };
        let data_plane = DataPlane::Ambient(ambient);
        let deployment = Deployment { data_plane, nodes: 2, ..deployment };
        let topology = on_two_nodes(&deployment, waypoint);
        let captured = |outcome: Plaintext| {
            let pods = deployment.pods().into_iter().filter(|(_, of)| of.program.is_captured());
            pods.map(|(pod, _)| (pod, outcome.clone())).collect::<BTreeMap<_, _>>()
        };
        let outcome = match mtls {
            Mtls::Strict => Plaintext::Refused,
            Mtls::Permissive => Plaintext::Answered(200),
        };
        Self {
            outsider: Outsider {
                egress: None,
                plaintext: captured(outcome),
                uncertified: captured(Plaintext::Closed),
            },
            before: snapshot_of(&deployment, &topology, 40),
            after: snapshot_of(&deployment, &topology, 40 + REQUESTS),
            topology,
            deployment,
        }
    }

    /// A proxy's counters after the window, as `change` leaves them.
    fn after(mut self, pod: &str, change: impl FnOnce(&mut ProxyCounters)) -> Self {
        change(self.after.counters.get_mut(pod).unwrap());
        self
    }

    /// What a node's proxy took for `service`, as `change` leaves it.
    fn into(self, pod: &str, service: &str, change: impl FnOnce(&mut HboneCounters)) -> Self {
        self.after(pod, |c| change(c.hbone.entry(service.into()).or_default()))
    }

    /// The wires after the window, as `change` leaves them.
    fn wire(mut self, change: impl FnOnce(&mut Vec<Wire>)) -> Self {
        change(wires(&mut self.after));
        self
    }

    fn proof(&self) -> Proof {
        let Self { deployment, before, after, .. } = self;
        let window = Window {
            deployment,
            traffic: &TRAFFIC,
            before,
            after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        let ambient = deployment.data_plane.ambient().unwrap();
        prove_ambient(&window, &self.topology, ambient, &self.outsider)
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }

    fn seen_by(&self, claim: &str) -> String {
        let proof = self.proof();
        proof.claims.iter().find(|c| c.claim == claim).expect("the claim is made").seen.clone()
    }
}

fn on_two_nodes(deployment: &Deployment, waypoint: bool) -> Topology {
    let node =
        |last| NodeAddresses { name: format!("node-{last}"), ip: Ipv4Addr::new(10, 77, 1, last) };
    let ip = Ipv4Addr::new(10, 77, 1, 3);
    Topology {
        nodes: vec![node(1), node(2)],
        waypoint: waypoint.then(|| Waypoint { pod: "waypoint".into(), ip, node: 0 }),
        ..in_pods(deployment, Capture::Transparent(Bypass::Uid(1337)))
    }
}

/// All counters at `requests`.
fn snapshot_of(deployment: &Deployment, topology: &Topology, requests: u64) -> PathSnapshot {
    let packets = |node: &NodeAddresses| Wire {
        node: node.name.clone(),
        hbone_packets: 2 * requests,
        other_packets: 7,
    };
    let walk = match deployment.entry.as_str() {
        "client" => bare_snapshot(requests).walk,
        _ => Walk { server: None, report: None },
    };
    let nginx = deployment.pods().into_iter().filter(|(_, s)| s.name == "nginx");
    let alone = || Occupants { own: true, foreign: vec![] };
    PathSnapshot {
        // 1000 requests in three parts: 334, 333 and 333.
        answered: nginx
            .zip(0..)
            .map(|((pod, _), place)| (pod, (requests + 2 - place) / 3))
            .collect(),
        wire: Reading::Value(topology.nodes.iter().map(packets).collect()),
        occupants: deployment.pods().into_iter().map(|(pod, _)| (pod, alone())).collect(),
        ..snapshot(walk, counters(deployment, topology.waypoint.is_some(), requests))
    }
}

fn counters(
    deployment: &Deployment,
    waypoint: bool,
    requests: u64,
) -> BTreeMap<String, ProxyCounters> {
    let tunnel = CallCounters { requests: 4, connections: 2, handshakes: 2, ..Default::default() };
    let tunnel_to = |name: &str| BTreeMap::from([(name.to_owned(), tunnel)]);
    let call = CallCounters { requests, connections: 4, ..Default::default() };
    let hbone = HboneCounters { streams: 4, handshakes: 2, ..Default::default() };
    let hbone_into = |name: &str| BTreeMap::from([(name.to_owned(), hbone)]);
    let callee = deployment.services[1].name.as_str();
    let hop = if waypoint { "waypoint" } else { callee };
    let gateway = ProxyCounters {
        inbound_plaintext: requests,
        calls: BTreeMap::from([("nginx".to_owned(), call)]),
        tunnels: tunnel_to(hop),
        ..Default::default()
    };
    let mut node = ProxyCounters { hbone: hbone_into(callee), ..Default::default() };
    if callee == "server" {
        node.tunnels = tunnel_to(hop);
        // Over connections that it made before the window.
        let (plaintext, plaintext_bytes) = (4, requests * 40);
        let load = HboneCounters { plaintext, plaintext_bytes, ..Default::default() };
        node.hbone.insert("client".into(), load);
    }
    let mut counters =
        BTreeMap::from([("node-1".to_owned(), node.clone()), ("node-2".to_owned(), node)]);
    if callee == "nginx" {
        counters.insert("ingress".into(), gateway);
    }
    if waypoint {
        let waypoint = ProxyCounters {
            hbone: hbone_into("waypoint"),
            calls: BTreeMap::from([(callee.to_owned(), call)]),
            tunnels: tunnel_to(callee),
            ..Default::default()
        };
        counters.insert("waypoint".into(), waypoint);
    }
    counters
}

const ON_THE_WIRE: &str = "no plaintext left a pod: no TCP but HBONE crossed a node's wire";
const SERVED: &str = "nginx: its pods answered exactly the requests that were sent";
const IDENTITY: &str = "nginx: every peer over HBONE has the identity of a caller";

#[test]
fn a_strict_ambient_mesh_proves_its_path() {
    let proof = Seen::strict().proof();
    assert_eq!((failed(&proof), &proof.left_out), (vec![], &vec![]));
    insta::assert_snapshot!("ambient_strict", listing(&proof));
}

#[test]
fn a_waypoint_proves_that_it_read_every_request() {
    let proof = Seen::with_waypoint().proof();
    assert_eq!(failed(&proof), [""; 0]);
    insta::assert_snapshot!("ambient_waypoint", listing(&proof));
}

#[test]
fn services_that_call_each_other_prove_their_path() {
    let proof = Seen::chain().proof();
    assert_eq!(failed(&proof), [""; 0]);
    insta::assert_snapshot!("ambient_chain", listing(&proof));
}

#[test]
fn a_permissive_ambient_mesh_proves_its_path() {
    assert_eq!(Seen::permissive().failed(), [""; 0]);
}

#[test]
fn one_packet_of_plaintext_between_pods_of_any_node_fails() {
    for node in [0, 1] {
        let seen = Seen::strict().wire(|wire| wire[node].other_packets += 1);
        assert_eq!(seen.failed(), [ON_THE_WIRE]);
    }
}

#[test]
fn packets_before_the_window_do_not_count() {
    let mut seen = Seen::strict();
    for snapshot in [&mut seen.before, &mut seen.after] {
        wires(snapshot)[1].other_packets = 1000;
    }
    assert_eq!(seen.failed(), [""; 0]);
}

#[test]
fn a_wire_that_was_not_read_proves_nothing() {
    let control = "HBONE crossed a node's wire";
    for change in [Vec::clear as fn(&mut Vec<Wire>), |wire| wire[0].node = "node-9".into()] {
        assert_eq!(Seen::strict().wire(change).failed(), [ON_THE_WIRE, control]);
    }
    let mut seen = Seen::strict();
    seen.after.wire = Reading::Missing("no bridges here".into());
    assert_eq!(seen.failed(), [ON_THE_WIRE, control]);
    assert_eq!(seen.seen_by(control), "not read: no bridges here");
}

#[test]
fn a_wire_on_which_nothing_is_counted_proves_nothing() {
    let mut seen = Seen::strict();
    seen.after.wire = seen.before.wire.clone();
    assert_eq!(seen.failed(), ["HBONE crossed a node's wire"]);
}

#[test]
fn an_entry_that_calls_nobody_need_not_send_hbone() {
    let mut seen = Seen::chain();
    seen.deployment.services.truncate(1);
    seen.deployment.services[0].calls.clear();
    seen.after.wire = seen.before.wire.clone();
    assert!(seen.proof().left_out.contains(&LeftOut::Hbone));
    assert!(!seen.failed().contains(&"HBONE crossed a node's wire".to_owned()));
}

#[test]
fn a_node_without_pods_in_the_path_need_not_carry_hbone() {
    let mut seen = Seen::strict();
    wires(&mut seen.after)[1] = wires(&mut seen.before)[1].clone();
    assert_eq!(seen.failed(), [""; 0]);
}

#[test]
fn node_proxies_that_are_bypassed_count_no_stream_and_fail() {
    let mut seen = Seen::strict();
    for snapshot in [&mut seen.before, &mut seen.after] {
        for node in ["node-1", "node-2"] {
            snapshot.counters.get_mut(node).unwrap().hbone.clear();
        }
    }
    assert_eq!(seen.failed(), ["nginx: connections came over HBONE", IDENTITY]);
}

#[test]
fn a_peer_of_a_wrong_identity_fails() {
    let wrong = Seen::strict().into("node-2", "nginx", |hbone| hbone.wrong_identity += 1);
    assert_eq!(wrong.failed(), [IDENTITY]);
    assert_eq!(wrong.seen_by(IDENTITY), "4 handshakes, 1 of others (0 without a certificate)");
}

#[test]
fn a_probe_without_a_certificate_that_is_counted_late_is_told_and_not_judged() {
    let late = Seen::strict().into("node-1", "nginx", |hbone| hbone.no_certificate += 1);
    assert_eq!(late.failed(), [""; 0]);
    assert_eq!(late.seen_by(IDENTITY), "4 handshakes, 0 of others (1 without a certificate)");
}

#[test]
fn plaintext_that_a_node_proxy_passed_on_fails() {
    let seen = Seen::permissive().into("node-1", "nginx", |hbone| hbone.plaintext += 1);
    assert_eq!(seen.failed(), ["nginx: no connection came to its node proxies as plaintext"]);
}

#[test]
fn a_node_proxy_that_was_restarted_in_the_window_has_no_counters() {
    let mut seen = Seen::strict();
    seen.after.counters.remove("node-2");
    assert_eq!(seen.seen_by(IDENTITY), "2 handshakes, no counters (0 without a certificate)");
    assert!(!seen.proof().holds());
}

#[test]
fn a_connection_of_the_gateway_without_a_handshake_fails() {
    let seen =
        Seen::strict().after("ingress", |c| c.tunnels.get_mut("nginx").unwrap().connections += 1);
    assert_eq!(seen.failed(), ["ingress to nginx: every connection is HBONE over mTLS"]);
}

#[test]
fn a_gateway_that_handed_on_past_the_mesh_fails() {
    let seen = Seen::strict().after("ingress", |c| c.tunnels.clear());
    assert_eq!(seen.failed(), ["ingress to nginx: every connection is HBONE over mTLS"]);
    let seen = Seen::strict().after("ingress", |c| c.calls.get_mut("nginx").unwrap().requests -= 1);
    assert_eq!(seen.failed(), ["ingress gateway: every request was handed to nginx"]);
}

#[test]
fn one_request_more_or_less_than_nginx_answered_fails() {
    for change in [1, u64::MAX] {
        let mut seen = Seen::strict();
        let served = seen.after.answered.get_mut("nginx-2").unwrap();
        *served = served.wrapping_add(change);
        assert_eq!(seen.failed(), [SERVED]);
    }
}

#[test]
fn a_pod_of_nginx_that_was_not_read_leaves_no_count() {
    let mut seen = Seen::strict();
    seen.after.answered.remove("nginx-2");
    assert_eq!(seen.seen_by(SERVED), "no counters");
    assert!(seen.failed().contains(&SERVED.to_owned()));
}

#[test]
fn a_captured_pod_without_its_redirect_answers_plaintext_and_fails() {
    let mut seen = Seen::strict();
    seen.outsider.plaintext.insert("nginx-3".into(), Plaintext::Answered(200));
    let claim = "nginx pods (3) refuse plaintext from outside of the mesh";
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(seen.seen_by(claim), "nginx-3: an answer with status 200; 2 as expected");
}

#[test]
fn hbone_without_a_certificate_that_is_not_closed_fails() {
    let claim = "nginx pods (3): no HBONE without a certificate";
    for outcome in [Plaintext::Answered(0), Plaintext::Refused] {
        let mut seen = Seen::strict();
        seen.outsider.uncertified.insert("nginx-1".into(), outcome);
        assert_eq!(seen.failed(), [claim]);
    }
}

#[test]
fn probes_that_were_not_made_fail() {
    let mut seen = Seen::strict();
    seen.outsider = Outsider::default();
    assert_eq!(seen.failed().len(), 2);
}

#[test]
fn a_sidecar_in_a_captured_pod_fails() {
    let mut seen = Seen::strict();
    let envoy = Occupants { own: true, foreign: vec!["envoy (pid 42)".into()] };
    seen.after.occupants.insert("nginx-2".into(), envoy);
    let claim = "nginx pods (3): no program but its own runs in each of their networks";
    assert_eq!(seen.failed(), [claim]);
}

#[test]
fn a_request_past_the_waypoint_fails() {
    let seen = Seen::with_waypoint()
        .after("waypoint", |c| c.calls.get_mut("nginx").unwrap().requests -= 1);
    assert_eq!(seen.failed(), ["waypoint: every request to nginx was counted"]);
}

#[test]
fn a_gateway_that_does_not_go_by_way_of_the_waypoint_fails() {
    let seen = Seen::with_waypoint().after("ingress", |c| {
        let tunnel = c.tunnels.remove("waypoint").unwrap();
        c.tunnels.insert("nginx".into(), tunnel);
    });
    let claim = "ingress to nginx by way of the waypoint: every connection is HBONE over mTLS";
    assert_eq!(seen.failed(), [claim]);
}

#[test]
fn a_captured_entry_that_only_probes_reach_through_its_node_proxy_fails() {
    let mut seen = Seen::chain();
    for node in ["node-1", "node-2"] {
        let probes = seen.before.counters[node].hbone_into("client").plaintext_bytes;
        assert!(probes > 0);
        seen = seen.into(node, "client", |hbone| hbone.plaintext_bytes = probes);
    }
    assert_eq!(seen.failed(), ["client: enough bytes for every request through its node proxy"]);
}

#[test]
fn a_header_of_a_sidecar_on_a_captured_hop_fails() {
    let mut seen = Seen::chain();
    let headers = &mut report_of(&mut seen.after, "server").headers;
    headers.insert("x-forwarded-client-cert".into(), "By=x".into());
    assert_eq!(seen.failed(), ["client to server: the request has no header that a proxy adds"]);
}

/// What the gateway sends is carried by its node's ztunnel, which counts it.
fn behind_ztunnels() -> Seen {
    let mut seen = Seen::strict();
    let proxy = NodeProxy::Ztunnel { binary: "/opt/ztunnel".into() };
    let ambient = Ambient { proxy, mtls: Mtls::Strict, waypoint: false };
    seen.deployment.data_plane = DataPlane::Ambient(ambient);
    for snapshot in [&mut seen.before, &mut seen.after] {
        let sent = std::mem::take(&mut snapshot.counters.get_mut("ingress").unwrap().tunnels);
        snapshot.counters.get_mut("node-1").unwrap().tunnels = sent;
    }
    seen
}

#[test]
fn ztunnels_that_carry_the_gateways_connections_too_prove_the_path() {
    assert_eq!(behind_ztunnels().failed(), [""; 0]);
}

#[test]
fn a_connection_of_the_gateways_that_its_ztunnel_sent_as_plaintext_fails() {
    let seen = behind_ztunnels()
        .after("node-1", |node| node.tunnels.get_mut("nginx").unwrap().connections += 1);
    assert_eq!(seen.failed(), ["node proxies to nginx: every connection is HBONE over mTLS"]);
}
