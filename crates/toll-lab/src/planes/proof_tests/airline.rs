//! The claims about traffic that leaves the mesh, in all six cases, each of them broken.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::claim::{Asked, Direction, Topic, Traversal};
use crate::deployment::{Egress, EgressGateway};
use crate::fixture::graphs::{airline, in_pods, leaving, on_postgres, ways_out, with_replicas};

/// Flights are found, seats booked, bookings listed and customers shown so often.
const ASKED: [(&str, &str, u64); 4] = [
    ("GET", "/flights?from=A{{random.0.4}}&to=A{{random.5.9}}", 500),
    ("POST", "/bookings", 200),
    ("GET", "/bookings?customer={{random.0.99}}", 200),
    ("GET", "/customers/{{random.0.99}}", 100),
];

/// Requests that each service gets of them, and operations of the database.
const ARRIVALS: [(&str, u64); 5] =
    [("web", 1000), ("flights", 700), ("bookings", 400), ("customers", 300), ("airline-db", 1400)];

/// Connections of each caller's pool.
const POOL: u64 = 16;

/// Bytes of each operation.
const BYTES: u64 = 300;

const CALLERS: [&str; 3] = ["flights", "bookings", "customers"];

/// What the airline shows when all is well.
struct Flown {
    deployment: Deployment,
    topology: Topology,
    traffic: Traffic,
    before: PathSnapshot,
    after: PathSnapshot,
    outsider: Outsider,
    issued: Fingerprints,
}

impl Flown {
    fn bare() -> Self {
        Self::of(airline())
    }

    /// By its name in the study.
    fn case(name: &str) -> Self {
        let way = ways_out().into_iter().find(|(case, _)| *case == name);
        Self::of(leaving(airline(), way.expect("the case is there").1))
    }

    /// All six.
    fn cases() -> Vec<(&'static str, Self)> {
        let meshed = ways_out().into_iter().map(|(case, _)| (case, Self::case(case)));
        std::iter::once(("none", Self::bare())).chain(meshed).collect()
    }

    fn of(deployment: Deployment) -> Self {
        let topology = in_pods(&deployment, Capture::Transparent(Bypass::Uid(1337)));
        let plaintext = ["flights", "bookings", "customers"];
        let mtls = deployment.data_plane.egress_gateway().is_some_and(|gateway| gateway.mtls);
        Self {
            before: snapshot_of(&deployment, &topology, 0),
            after: snapshot_of(&deployment, &topology, 1),
            traffic: traffic(),
            outsider: Outsider {
                plaintext: plaintext.map(|pod| (pod.into(), Plaintext::Closed)).into(),
                egress: mtls.then_some(Plaintext::Closed),
                ..Outsider::default()
            },
            issued: Fingerprints {
                servers: BTreeMap::from([("airline-db".into(), print("airline-db"))]),
                clients: [&CALLERS[..], &["toll"]]
                    .concat()
                    .into_iter()
                    .map(|name| (name.to_owned(), print(name)))
                    .collect(),
            },
            topology,
            deployment,
        }
    }

    /// The proxy of `pod` after the window, as `change` leaves it.
    fn after(mut self, pod: &str, change: impl FnOnce(&mut ProxyCounters)) -> Self {
        change(self.after.counters.get_mut(pod).unwrap());
        self
    }

    fn call_after(self, pod: &str, callee: &str, change: impl FnOnce(&mut CallCounters)) -> Self {
        self.after(pod, |c| change(c.calls.entry(callee.into()).or_default()))
    }

    /// The database after the window, as `change` leaves it.
    fn database(mut self, change: impl FnOnce(&mut DatabaseSnapshot)) -> Self {
        change(self.after.databases.get_mut("airline-db").unwrap());
        self
    }

    /// What the database told of its clients after the window, as `change` leaves it.
    fn clients(self, change: impl FnOnce(&mut BTreeMap<String, u64>)) -> Self {
        self.database(|snapshot| match &mut snapshot.clients {
            Some(Reading::Value(clients)) => change(clients),
            other => panic!("{other:?}"),
        })
    }

    /// How TLS from `pod` ended after the window.
    fn handshake(mut self, pod: &str, handshake: Handshake) -> Self {
        self.after
            .handshakes
            .insert(pod.into(), BTreeMap::from([("airline-db".into(), handshake)]));
        self
    }

    fn proof(&self) -> Proof {
        let Self { deployment, topology, traffic, before, after, outsider, issued } = self;
        let issued = Some(issued);
        let window = Window {
            deployment,
            traffic,
            before,
            after,
            spans: None,
            issued,
            spread: Spread::InTurn,
        };
        match deployment.data_plane {
            DataPlane::Bare => prove_none(&window, topology),
            _ => prove_sidecars(&window, topology, outsider),
        }
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }

    fn seen_by(&self, claim: &str) -> String {
        let proof = self.proof();
        let found = proof.claims.iter().find(|c| c.claim == claim);
        found.unwrap_or_else(|| panic!("no such claim:\n{}", listing(&proof))).seen.clone()
    }
}

fn print(name: &str) -> String {
    name.bytes().cycle().take(32).map(|byte| format!("{byte:02x}")).collect()
}

fn traffic() -> Traffic {
    let asked = ASKED.map(|(method, path, requests)| Asked {
        method: method.into(),
        path: path.into(),
        requests,
        acknowledged: requests,
        ..Asked::default()
    });
    Traffic { requests: 1000, writes: 200, acknowledged: 200, asked: asked.into() }
}

/// What `service` got after so many windows like the one.
fn got(service: &str, windows: u64) -> u64 {
    let (_, each) = ARRIVALS.into_iter().find(|(name, _)| *name == service).unwrap();
    windows * each
}

fn called(caller: &str, callee: &str, windows: u64) -> u64 {
    let each = match (caller, callee) {
        ("web", "flights") => 500,
        ("web", "bookings") => 400,
        ("web", "customers") => 100,
        ("bookings", "flights" | "customers") => 200,
        (caller, "airline-db") => got(caller, 1),
        other => panic!("{other:?}"),
    };
    windows * each
}

fn snapshot_of(deployment: &Deployment, topology: &Topology, windows: u64) -> PathSnapshot {
    let meshed = deployment.data_plane.has_sidecars();
    let walk = Walk {
        server: meshed.then(|| SIDECAR_SERVER.into()),
        report: serde_json::from_value(report(meshed, topology, windows)).unwrap(),
    };
    let proxied = deployment.services.iter().filter(|s| meshed && s.takes_sidecar());
    let mut counters: BTreeMap<String, ProxyCounters> =
        proxied.map(|s| (s.name.clone(), sidecar(deployment, s, windows))).collect();
    let gateway = deployment.data_plane.egress_gateway();
    counters.extend(gateway.map(|gateway| ("egress".to_owned(), egress(gateway, windows))));
    let mut seen = snapshot(walk, counters);
    seen.sni_accepted =
        gateway.filter(|gateway| gateway.sni_proxy).map(|_| POOL * CALLERS.len() as u64);
    seen.databases.insert("airline-db".into(), database(deployment, topology, windows));
    let established = Handshake::Established { server: print("airline-db") };
    let met = BTreeMap::from([("airline-db".to_owned(), established)]);
    seen.handshakes = CALLERS.map(|pod| (pod.to_owned(), met.clone())).into();
    if !meshed {
        let alone = Occupants { own: true, foreign: Vec::new() };
        let pods = || deployment.services.iter().map(|s| s.name.clone());
        seen.occupants = pods().map(|pod| (pod, alone.clone())).collect();
        seen.rules = pods().map(|pod| (pod, String::new())).collect();
    }
    seen
}

fn sidecar(deployment: &Deployment, service: &Service, windows: u64) -> ProxyCounters {
    let bypass = deployment.passes_by("airline-db");
    let mtls = deployment.data_plane.egress_gateway().is_some_and(|gateway| gateway.mtls);
    let call = |callee: &String| {
        let requests = called(&service.name, callee, windows);
        let outside = callee == "airline-db";
        let handshakes = if outside && !mtls { 0 } else { POOL };
        let sent_bytes = BYTES * requests;
        let requests = if outside { POOL } else { requests };
        let counters = CallCounters {
            requests,
            connections: POOL,
            handshakes,
            sent_bytes,
            ..Default::default()
        };
        (callee.clone(), counters)
    };
    let calls = service.calls.iter().filter(|callee| !(bypass && *callee == "airline-db"));
    let mut counters = ProxyCounters { calls: calls.map(call).collect(), ..Default::default() };
    match service.name == deployment.entry {
        true => counters.inbound_plaintext = got(&service.name, windows),
        false => counters.inbound_mtls = got(&service.name, windows),
    }
    counters
}

/// Its one refused connection is the outsider's.
fn egress(gateway: &EgressGateway, windows: u64) -> ProxyCounters {
    let bytes = BYTES * got("airline-db", windows);
    let connections = POOL * CALLERS.len() as u64;
    let call = CallCounters { connections, sent_bytes: bytes, ..Default::default() };
    let refused = u64::from(gateway.mtls);
    let mut counters = ProxyCounters {
        calls: BTreeMap::from([("airline-db".into(), call)]),
        ..Default::default()
    };
    counters.egress.connections = connections + refused;
    counters.egress.received_bytes = bytes;
    if gateway.mtls {
        counters.egress.handshakes = connections;
        counters.egress.no_certificate = refused;
    }
    counters
}

/// It begins with 400 bookings, which have taken seats.
fn database(deployment: &Deployment, topology: &Topology, windows: u64) -> DatabaseSnapshot {
    let peers: BTreeMap<IpAddr, u64> = match deployment.data_plane.egress_gateway() {
        Some(_) => BTreeMap::from([(egress_ip(topology), POOL * CALLERS.len() as u64)]),
        None => CALLERS.map(|pod| (ip(topology, pod), POOL)).into(),
    };
    let clients = [&CALLERS[..], &["toll"]].concat().into_iter().map(|name| (print(name), POOL));
    DatabaseSnapshot {
        statements: got("airline-db", windows),
        looked: 0,
        peers,
        written: Some((200 * windows, 200 * windows)),
        seats_taken: Some(400 + 200 * windows),
        clients: Some(Reading::Value(clients.collect())),
    }
}

fn ip(topology: &Topology, pod: &str) -> IpAddr {
    IpAddr::V4(topology.pods.iter().find(|addresses| addresses.service == pod).unwrap().ip)
}

fn egress_ip(topology: &Topology) -> IpAddr {
    IpAddr::V4(topology.egress.as_ref().unwrap().ip)
}

/// The whole walk: web -> flights, bookings -> (customers, flights), customers.
fn report(meshed: bool, topology: &Topology, windows: u64) -> Value {
    let hop = |service: &str, caller: &str, calls: Value| {
        let requests = got(service, windows);
        let id = |name: &str| format!("spiffe://cluster.local/ns/default/sa/{name}");
        let certificate = format!("By={};Hash=00;Subject=\"\";URI={}", id(service), id(caller));
        let (peer, headers, marked, certified) = match (meshed, caller) {
            (true, "load") => ("127.0.0.6:1".to_owned(), json!({"x-request-id": "1"}), requests, 0),
            (true, _) => {
                let headers = json!({"x-forwarded-client-cert": certificate});
                ("127.0.0.6:1".to_owned(), headers, requests, requests)
            }
            (false, "load") => ("10.77.0.1:1".to_owned(), json!({}), 0, 0),
            (false, _) => (format!("{}:1", ip(topology, caller)), json!({}), 0, 0),
        };
        json!({
            "service": service, "peer": peer, "headers": headers, "requests": requests,
            "marked": marked, "certified": certified, "calls": calls,
        })
    };
    let of_bookings =
        json!([hop("customers", "bookings", json!([])), hop("flights", "bookings", json!([]))]);
    let of_web = json!([
        hop("flights", "web", json!([])),
        hop("bookings", "web", of_bookings),
        hop("customers", "web", json!([]))
    ]);
    hop("web", "load", of_web)
}

const CROSSED: &str = "every request crossed the sidecars on its way";
const OPERATIONS: &str = "airline-db: the server ran exactly the operations of the requests";
const MET: &str = "airline-db: TLS is end to end: its callers meet its own certificate";
const SHOWN: &str = "airline-db: TLS is end to end: it saw its callers' own certificates";
const THERE: &str = "airline-db: every acknowledged booking is there, and none that was not sent";
const SEATS: &str = "airline-db: one seat is taken for each booking, none was lost or doubled";
const TWICE: &str = "airline-db: no booking was made twice";
const PAST: &str = "airline-db: its bytes went past every sidecar";
const UNKNOWN: &str = "airline-db: its callers' sidecars sent nothing to unknown addresses";
const FROM_GATEWAY: &str =
    "airline-db: every open connection's source address is the egress gateway's";
const FROM_CALLERS: &str = "airline-db: every open connection's source address is a caller's own";
const REFUSES: &str = "egress gateway: it refuses a client without an identity of the mesh";
const IDENTITY: &str = "egress gateway, inbound: every connection showed an identity of the mesh";

#[test]
fn all_six_cases_prove_their_path_on_either_database() {
    for (case, flown) in Flown::cases() {
        assert_eq!(flown.failed(), [""; 0], "{case}");
        let flown = Flown::of(on_postgres(flown.deployment));
        assert_eq!(flown.failed(), [""; 0], "{case} on PostgreSQL");
    }
}

#[test]
fn the_claims_of_the_longest_way_and_of_no_mesh_read_well() {
    insta::assert_snapshot!("airline_gateway_sni", listing(&Flown::case("gateway-sni").proof()));
    insta::assert_snapshot!("airline_bare", listing(&Flown::bare().proof()));
    insta::assert_snapshot!("airline_bypass", listing(&Flown::case("bypass").proof()));
}

#[test]
fn the_first_claims_are_what_the_study_is_about() {
    for (case, flown) in Flown::cases() {
        let claims = flown.proof().claims;
        assert_eq!([&claims[0].claim, &claims[1].claim], [MET, SHOWN], "{case}");
    }
}

#[test]
fn a_proxy_that_terminates_tls_shows_another_certificate() {
    for (case, flown) in Flown::cases() {
        let other = Handshake::Established { server: print("interceptor") };
        let flown = flown.handshake("bookings", other);
        assert_eq!(flown.failed(), [MET], "{case}");
        assert!(flown.seen_by(MET).contains("bookings: SHA-256 696e7465"), "{case}");
    }
}

#[test]
fn a_proxy_that_terminates_tls_has_no_clients_certificate_to_show() {
    let unknown = Flown::case("sidecar").clients(|clients| {
        let sessions = clients.remove(&print("flights")).unwrap();
        clients.insert(print("interceptor"), sessions);
    });
    assert_eq!(unknown.failed(), [SHOWN]);
    let seen = unknown.seen_by(SHOWN);
    assert!(seen.contains("unknown SHA-256 696e74657263"), "{seen}");
    let missing = Flown::case("gateway").clients(|clients| {
        clients.remove(&print("flights"));
    });
    assert_eq!(missing.failed(), [SHOWN]);
    let further = Flown::bare().clients(|clients| {
        clients.insert(print("guest"), 1);
    });
    assert_eq!(further.failed(), [SHOWN]);
}

#[test]
fn the_labs_own_certificate_may_be_seen_and_need_not_be() {
    let unseen = Flown::case("gateway-mtls").clients(|clients| {
        clients.remove(&print("toll"));
    });
    assert_eq!(unseen.failed(), [""; 0]);
}

#[test]
fn a_database_that_does_not_tell_its_clients_is_left_out_and_one_that_was_not_asked_fails() {
    let silent = Flown::bare().database(|snapshot| {
        snapshot.clients = Some(Reading::Missing("mongod does not tell".into()))
    });
    let proof = silent.proof();
    assert_eq!(failed(&proof), [""; 0]);
    let (service, why) = ("airline-db".into(), "mongod does not tell".into());
    let left_out = LeftOut::ClientCertificates { service, why };
    assert!(proof.left_out.contains(&left_out), "{:?}", proof.left_out);
    assert_eq!(Flown::bare().database(|snapshot| snapshot.clients = None).failed(), [SHOWN]);
}

#[test]
fn an_expired_certificate_and_an_unknown_name_are_told_as_such() {
    for why in ["certificate expired", "closed: no chain for this name"] {
        let flown = Flown::case("gateway-sni").handshake("flights", Handshake::Failed(why.into()));
        assert_eq!(flown.failed(), [MET]);
        let seen = flown.seen_by(MET);
        assert!(seen.contains(&format!("flights: no TLS: {why}")), "{seen}");
    }
}

#[test]
fn a_handshake_that_was_not_tried_or_a_certificate_that_was_not_issued_fails() {
    let mut untried = Flown::case("sidecar");
    untried.after.handshakes.remove("customers");
    assert_eq!(untried.failed(), [MET]);
    let mut unissued = Flown::case("sidecar");
    unissued.issued = Fingerprints::default();
    assert_eq!(unissued.failed(), [MET, SHOWN]);
}

#[test]
fn a_bypass_through_the_passthrough_cluster_or_a_registered_one_fails() {
    let passthrough = Flown::case("bypass").after("bookings", |c| c.passthrough.sent_bytes += 1);
    assert_eq!(passthrough.failed(), [PAST]);
    assert!(passthrough.seen_by(PAST).starts_with("bookings: 0 connections, 1 bytes"));
    let opened = Flown::case("bypass").after("bookings", |c| c.passthrough.connections += 1);
    assert_eq!(opened.failed(), [PAST]);
    let registered =
        Flown::case("bypass").call_after("flights", "airline-db", |call| call.connections = 1);
    assert_eq!(registered.failed(), [PAST]);
    let mut unread = Flown::case("bypass");
    unread.before.counters.remove("flights");
    assert!(unread.failed().contains(&PAST.to_owned()));
}

#[test]
fn a_connection_that_slips_past_its_sidecar_fails_though_its_source_address_is_right() {
    const THROUGH: &str =
        "flights sidecar, outbound: as many connections as airline-db had open went through";
    let more = |mut flown: Flown, connections: u64| {
        let peer = ip(&flown.topology, "flights");
        let open = &mut flown.before.databases.get_mut("airline-db").unwrap().peers;
        *open.get_mut(&peer).unwrap() += connections;
        flown
    };
    let slipped = more(Flown::case("sidecar"), 1);
    assert_eq!(slipped.failed(), [THROUGH, CROSSED]);
    assert_eq!(slipped.seen_by(THROUGH), POOL.to_string());
    let opened_since =
        more(Flown::case("sidecar"), 1)
            .call_after("flights", "airline-db", |call| call.connections += 1);
    assert_eq!(opened_since.failed(), [""; 0]);
    let mut closed_before =
        Flown::case("sidecar").call_after("flights", "airline-db", |call| call.connections += 5);
    let sidecar = closed_before.before.counters.get_mut("flights").unwrap();
    let call = sidecar.calls.get_mut("airline-db").unwrap();
    call.closed_connections = 5;
    call.connections += 5;
    assert_eq!(more(closed_before, 1).failed(), [THROUGH, CROSSED]);
    let mut unread = Flown::case("sidecar");
    unread.before.databases.clear();
    assert!(unread.failed().contains(&THROUGH.to_owned()));
}

#[test]
fn what_a_sidecar_sends_to_unknown_addresses_fails_where_it_knows_the_database() {
    for case in ["sidecar", "gateway", "gateway-mtls", "gateway-sni"] {
        let flown = Flown::case(case).after("customers", |c| c.passthrough.sent_bytes += 1);
        assert_eq!(flown.failed(), [UNKNOWN, CROSSED], "{case}");
    }
}

#[test]
fn too_few_bytes_through_any_hop_fail_that_hop_and_the_crossings() {
    let least = |operations: u64| operations * 71;
    let few = least(got("flights", 1)) - 1;
    let sidecar = "flights sidecar, outbound: enough bytes for every operation of airline-db";
    for case in ["sidecar", "gateway", "gateway-mtls", "gateway-sni"] {
        let flown =
            Flown::case(case).call_after("flights", "airline-db", |call| call.sent_bytes = few);
        assert_eq!(flown.failed(), [sidecar, CROSSED], "{case}");
    }
    let few = least(got("airline-db", 1)) - 1;
    for case in ["gateway", "gateway-mtls", "gateway-sni"] {
        let came = Flown::case(case).after("egress", |c| {
            c.egress.received_bytes = few;
        });
        let claim = "egress gateway, inbound: enough bytes for every operation of airline-db";
        assert_eq!(came.failed(), [claim, CROSSED], "{case}");
        let went =
            Flown::case(case).call_after("egress", "airline-db", |call| call.sent_bytes = few);
        let claim = "egress gateway, outbound: enough bytes for every operation of airline-db";
        assert_eq!(went.failed(), [claim, CROSSED], "{case}");
    }
}

#[test]
fn a_gateway_that_is_passed_by_shows_in_its_peers() {
    let flown = Flown::case("gateway");
    let own = ip(&flown.topology, "flights");
    let flown = flown.database(|snapshot| *snapshot.peers.entry(own).or_default() += 1);
    assert_eq!(flown.failed(), [FROM_GATEWAY, CROSSED]);
    let seen = flown.seen_by(FROM_GATEWAY);
    assert!(seen.contains("10.77.0.3 (1)"), "{seen}");
}

#[test]
fn a_stranger_among_the_peers_fails_without_a_gateway() {
    let stranger = |snapshot: &mut DatabaseSnapshot| {
        snapshot.peers.insert("10.77.0.99".parse().unwrap(), 1);
    };
    assert_eq!(Flown::bare().database(stranger).failed(), [FROM_CALLERS]);
    assert_eq!(Flown::case("bypass").database(stranger).failed(), [FROM_CALLERS]);
    assert_eq!(Flown::case("sidecar").database(stranger).failed(), [FROM_CALLERS, CROSSED]);
}

#[test]
fn an_sni_proxy_that_took_too_few_connections_fails() {
    let claim = "SNI proxy: it took every connection of the egress gateway for airline-db";
    let mut flown = Flown::case("gateway-sni");
    flown.after.sni_accepted = Some(47);
    assert_eq!(flown.failed(), [claim, CROSSED]);
    flown.after.sni_accepted = None;
    assert_eq!(flown.failed(), [claim, CROSSED]);
}

#[test]
fn what_a_server_counts_of_the_look_before_is_no_operation_of_the_services() {
    let mut flown = Flown::case("sidecar");
    flown.before.databases.get_mut("airline-db").unwrap().looked = 3;
    assert_eq!(flown.failed(), [OPERATIONS, CROSSED]);
    let flown = flown.database(|snapshot| snapshot.statements += 3);
    assert_eq!(flown.failed(), [] as [&str; 0]);
}

#[test]
fn an_operation_too_few_or_too_many_fails_in_all_cases() {
    for change in [u64::MAX, 1] {
        for (case, flown) in Flown::cases() {
            let crosses = !matches!(case, "none" | "bypass");
            let flown = flown.database(|snapshot| {
                snapshot.statements = snapshot.statements.wrapping_add(change)
            });
            let expected = if crosses { vec![OPERATIONS, CROSSED] } else { vec![OPERATIONS] };
            assert_eq!(flown.failed(), expected, "{case} {change}");
        }
    }
}

#[test]
fn a_seat_that_is_lost_or_doubled_fails() {
    for seats in [400 + 199, 400 + 201] {
        for (case, flown) in Flown::cases() {
            let flown = flown.database(|snapshot| snapshot.seats_taken = Some(seats));
            assert_eq!(flown.failed(), [SEATS], "{case}");
        }
    }
    let unread = Flown::bare().database(|snapshot| snapshot.seats_taken = None);
    assert_eq!(unread.seen_by(SEATS), "no seats read");
    assert_eq!(unread.failed(), [SEATS]);
}

#[test]
fn a_booking_that_is_doubled_or_lost_fails() {
    let doubled =
        Flown::case("gateway-mtls").database(|snapshot| snapshot.written = Some((200, 199)));
    assert_eq!(doubled.failed(), [TWICE]);
    let twice = Flown::case("gateway-mtls").database(|snapshot| {
        (snapshot.written, snapshot.seats_taken) = (Some((201, 200)), Some(601))
    });
    assert_eq!(twice.failed(), [THERE, TWICE]);
    let lost = Flown::case("bypass").database(|snapshot| snapshot.written = Some((199, 199)));
    assert_eq!(lost.failed(), [THERE, SEATS]);
    let unread = Flown::bare().database(|snapshot| snapshot.written = None);
    assert_eq!(unread.failed(), [THERE, TWICE, SEATS]);
}

#[test]
fn a_booking_that_was_not_acknowledged_may_be_there_or_not() {
    let failing = |bookings: u64, operations: u64| {
        let mut flown = Flown::bare();
        flown.traffic.asked[1].acknowledged = 199;
        flown.database(|snapshot| {
            snapshot.statements = operations;
            snapshot.written = Some((bookings, bookings));
            snapshot.seats_taken = Some(400 + bookings);
        })
    };
    // Nothing was done, the seat was taken and given back, the answer was lost.
    for (bookings, operations) in [(199, 1397), (199, 1401), (200, 1400)] {
        let failed = failing(bookings, operations).failed();
        assert_eq!(failed, [""; 0], "{bookings} {operations}");
    }
    assert_eq!(failing(198, 1400).failed(), [THERE]);
    assert_eq!(failing(199, 1396).failed(), [OPERATIONS]);
    assert_eq!(failing(199, 1402).failed(), [OPERATIONS]);
    // The seat was not given back.
    let kept = failing(199, 1400).database(|snapshot| snapshot.seats_taken = Some(600));
    assert_eq!(kept.failed(), [SEATS]);
}

/// `gateway` where the sidecar of web sent so many requests to bookings twice, which took both.
fn sent_again(requests: u64) -> Flown {
    Flown::case("gateway")
        .call_after("web", "bookings", |call| {
            (call.requests, call.retries) = (400 + requests, requests)
        })
        .after("bookings", |c| c.inbound_mtls += requests)
        .call_after("bookings", "flights", |call| call.requests += requests)
        .after("flights", |c| c.inbound_mtls += requests)
        .database(|snapshot| snapshot.statements += 2 * requests)
}

#[test]
fn a_request_that_a_sidecar_sent_again_may_count_twice_on_its_whole_way() {
    let mut flown = sent_again(1);
    for service in ["bookings", "flights"] {
        for report in reports_of(&mut flown.after, service) {
            (report.requests, report.certified) = (report.requests + 1, report.certified + 1);
        }
    }
    assert_eq!(flown.failed(), [""; 0]);
    // Customers got none of it, and web is asked by the load alone.
    let customers = flown.after("customers", |c| c.inbound_mtls += 2);
    let claim = "customers sidecar, inbound: every request came over mTLS";
    assert!(customers.failed().contains(&claim.to_owned()), "{:?}", customers.failed());
}

#[test]
fn what_was_sent_again_once_cannot_have_led_to_more_than_one_of_each_operation() {
    let flown = sent_again(1).database(|snapshot| snapshot.statements = 1400 + 4);
    assert!(flown.failed().contains(&OPERATIONS.to_owned()));
    let flown = sent_again(1).database(|snapshot| snapshot.statements = 1400 + 3);
    assert!(!flown.failed().contains(&OPERATIONS.to_owned()));
}

#[test]
fn a_booking_that_was_sent_again_and_made_twice_fails_all_the_same() {
    let flown = sent_again(1).database(|snapshot| {
        (snapshot.written, snapshot.seats_taken) = (Some((201, 200)), Some(601))
    });
    assert!([THERE, TWICE].iter().all(|claim| flown.failed().contains(&(*claim).to_owned())));
}

/// The reports of a service at any place of the last walk.
fn reports_of<'a>(snapshot: &'a mut PathSnapshot, service: &str) -> Vec<&'a mut PathReport> {
    fn below<'a>(report: &'a mut PathReport, service: &str) -> Vec<&'a mut PathReport> {
        if report.service == service {
            return vec![report];
        }
        report.calls.iter_mut().flatten().flat_map(|call| below(call, service)).collect()
    }
    below(snapshot.walk.report.as_mut().unwrap(), service)
}

#[test]
fn every_way_of_the_walk_is_judged_that_of_bookings_as_that_of_web() {
    let claims = Flown::case("sidecar").proof().claims;
    for hop in
        ["web to flights", "web to customers", "bookings to flights", "bookings to customers"]
    {
        let claim = format!("{hop}: the sidecars know each other by their SPIFFE IDs");
        assert!(claims.iter().any(|c| c.claim == claim), "{hop}");
    }
    let mut forged = Flown::case("sidecar");
    let header = "x-forwarded-client-cert";
    let way = reports_of(&mut forged.after, "flights").pop().unwrap();
    let id = way.headers.get_mut(header).unwrap();
    *id = id.replace("sa/bookings", "sa/web");
    let claim = "bookings to flights: the sidecars know each other by their SPIFFE IDs";
    assert_eq!(forged.failed(), [claim]);
}

#[test]
fn a_call_of_a_part_too_few_fails() {
    let flown = Flown::case("bypass").call_after("bookings", "flights", |call| call.requests -= 1);
    assert_eq!(
        flown.failed(),
        [CROSSED, "bookings sidecar, outbound: every call to flights was counted"]
    );
}

#[test]
fn a_load_that_does_not_tell_what_it_asked_for_proves_nothing() {
    let mut flown = Flown::bare();
    flown.traffic.asked.pop();
    let failed = flown.failed();
    assert!(
        failed.contains(&"the load tells what each request asked for".to_owned()),
        "{failed:?}"
    );
}

#[test]
fn a_gateway_that_does_not_refuse_or_for_another_reason_fails() {
    for case in ["gateway-mtls", "gateway-sni"] {
        for outcome in [None, Some(Plaintext::Answered(0)), Some(Plaintext::Refused)] {
            let mut flown = Flown::case(case);
            flown.outsider.egress = outcome;
            assert_eq!(flown.failed(), [REFUSES], "{case}");
        }
        // Closed before it was asked for one.
        let flown = Flown::case(case)
            .after("egress", |c| (c.egress.no_certificate, c.egress.connections) = (0, 48));
        assert_eq!(flown.failed(), [REFUSES], "{case}");
        // Closed for another reason.
        let flown = Flown::case(case)
            .after("egress", |c| (c.egress.no_certificate, c.egress.broken) = (0, 1));
        assert_eq!(flown.failed(), [REFUSES], "{case}");
    }
}

#[test]
fn connections_without_mtls_to_the_gateway_fail_at_either_end() {
    let flown = Flown::case("gateway-mtls")
        .call_after("flights", "airline-db", |call| call.handshakes = 15);
    assert_eq!(flown.failed(), ["flights to the egress gateway: every connection is mTLS"]);
    let flown = Flown::case("gateway-mtls").after("egress", |c| c.egress.handshakes -= 1);
    assert_eq!(flown.failed(), [IDENTITY]);
    assert_eq!(flown.seen_by(IDENTITY), "47 handshakes on 49 connections, 1 refused");
}

#[test]
fn a_proxy_that_speaks_tls_of_its_own_to_the_database_fails() {
    for case in ["sidecar", "gateway"] {
        let flown =
            Flown::case(case).call_after("flights", "airline-db", |call| call.handshakes = 1);
        assert_eq!(flown.failed(), ["flights sidecar, outbound: no TLS of its own to airline-db"]);
    }
    for case in ["gateway", "gateway-mtls", "gateway-sni"] {
        let flown =
            Flown::case(case).call_after("egress", "airline-db", |call| call.handshakes = 1);
        assert_eq!(flown.failed(), ["egress gateway, outbound: no TLS of its own to airline-db"]);
    }
}

#[test]
fn operations_are_crossings_of_the_callers_sidecars_unless_they_go_past_them() {
    let to_database = |case: &str| -> Vec<(String, u64)> {
        let ways = Flown::case(case).proof().traversals.into_iter();
        let outside = ways.filter(|way| way.callee.as_deref() == Some("airline-db"));
        outside.map(|way: Traversal| (way.pod, way.counted)).collect()
    };
    assert_eq!(to_database("bypass"), []);
    let each = CALLERS.map(|pod| (pod.to_owned(), got(pod, 1)));
    for case in ["sidecar", "gateway", "gateway-mtls", "gateway-sni"] {
        assert_eq!(to_database(case), each, "{case}");
    }
    let proof = Flown::case("gateway-sni").proof();
    assert!(proof.traversals.iter().all(|way| way.pod != "airline-db" && way.pod != "egress"));
    let inbound = proof.traversals.iter().filter(|way| way.direction == Direction::Inbound);
    assert_eq!(inbound.count(), 4);
}

#[test]
fn crossings_are_those_of_calls_and_of_operations_that_sidecars_carried() {
    // 2400 into the four parts, 1400 calls of theirs, 1400 operations.
    assert_eq!(Flown::case("sidecar").seen_by(CROSSED), "5200");
    assert_eq!(Flown::case("bypass").seen_by(CROSSED), "3800");
}

#[test]
fn a_database_outside_of_the_mesh_has_no_sidecar_that_could_refuse_plaintext() {
    for (case, flown) in Flown::cases() {
        let claims = flown.proof().claims;
        let of_sidecar = |claim: &&Claim| claim.claim.starts_with("airline-db sidecar");
        assert_eq!(claims.iter().find(of_sidecar), None, "{case}");
    }
}

#[test]
fn claims_that_sum_others_up_say_what_they_are_about() {
    let topics = |flown: Flown| -> Vec<Topic> {
        let proof = flown.proof();
        let topics: BTreeSet<Topic> = proof.claims.iter().map(|claim| claim.topic).collect();
        topics.into_iter().filter(|topic| *topic != Topic::Other).collect()
    };
    let shared = [Topic::EndToEnd, Topic::Crossings, Topic::Acknowledged, Topic::Doubled];
    let of_the_way = [Topic::SniProxy, Topic::Identity, Topic::EgressAddress];
    assert_eq!(topics(Flown::bare()), shared);
    assert_eq!(topics(Flown::case("gateway-sni")), [&of_the_way[..], &shared].concat());
    assert_eq!(topics(Flown::case("bypass")), [&[Topic::Bypass][..], &shared].concat());
}

#[test]
fn pods_of_one_caller_each_try_the_handshake() {
    let mut flown = Flown::of(with_replicas(leaving(airline(), Egress::Sidecar), "flights", 2));
    let met = flown.after.handshakes.remove("flights").unwrap();
    flown.after.handshakes.insert("flights-1".into(), met);
    assert!(flown.seen_by(MET).contains("flights-2: not tried"), "{}", flown.seen_by(MET));
}

#[test]
fn where_pods_share_the_machines_network_addresses_are_said_to_tell_nothing() {
    let mut flown = Flown::case("gateway");
    flown.topology.capture = Capture::Explicit;
    let left_out = flown.proof().left_out;
    assert!(left_out.contains(&LeftOut::SharedAddress), "{left_out:?}");
}

#[test]
fn a_gateway_at_the_edge_that_sends_again_widens_what_web_may_get() {
    let mut deployment = airline();
    let edge = Service {
        name: "ingress".into(),
        program: Program::Gateway,
        calls: vec!["web".into()],
        ..deployment.services[0].clone()
    };
    deployment.services.insert(0, edge);
    deployment.entry = "ingress".into();
    let traffic = traffic();
    let counters = |retries| {
        let call = CallCounters { retries, ..Default::default() };
        let calls = BTreeMap::from([("web".to_owned(), call)]);
        BTreeMap::from([("ingress".to_owned(), ProxyCounters { calls, ..Default::default() })])
    };
    let walk = Walk { server: None, report: None };
    let (before, after) = (snapshot(walk.clone(), counters(0)), snapshot(walk, counters(2)));
    let seen = Window {
        deployment: &deployment,
        traffic: &traffic,
        before: &before,
        after: &after,
        spans: None,
        issued: None,
        spread: Spread::InTurn,
    };
    let expected = crate::programs::expected(&seen);
    assert_eq!(expected.arrivals("web"), Bounds { least: 1000, most: 1002 });
    assert_eq!(expected.arrivals("bookings"), Bounds { least: 400, most: 402 });
    assert_eq!(expected.arrivals("flights"), Bounds { least: 700, most: 704 });
}

#[test]
fn a_deployment_without_a_way_out_has_none_of_these_claims() {
    let of_egress = |claim: &&Claim| {
        ["end to end", "egress gateway", "unknown addresses"]
            .iter()
            .any(|w| claim.claim.contains(w))
    };
    let proof = Sidecars::strict().proof();
    assert_eq!(proof.claims.iter().find(of_egress), None);
}
