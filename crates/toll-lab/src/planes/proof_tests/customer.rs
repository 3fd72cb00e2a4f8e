//! The claims about gateways, databases, writes, replicas and crossings, each of them broken.

use serde_json::{Value, json};

use super::*;
use crate::claim::{Direction, Traversal};
use crate::envoy::istio::SIDECAR_SOURCE;
use crate::fixture::graphs::{customer, in_pods, with_replicas};

/// Pool connections of `name`.
const POOL: u64 = 16;

const WRITING: Traffic =
    Traffic { asked: vec![], requests: REQUESTS, writes: 400, acknowledged: 399 };

/// What `customer()` shows when all is well.
struct Graph {
    deployment: Deployment,
    topology: Topology,
    traffic: Traffic,
    before: PathSnapshot,
    after: PathSnapshot,
    plaintext: BTreeMap<String, Plaintext>,
}

impl Graph {
    fn bare() -> Self {
        Self::of(customer())
    }

    fn strict() -> Self {
        Self::of(in_mesh(customer()))
    }

    fn permissive() -> Self {
        let mut seen = Self::strict();
        if let DataPlane::Sidecar { mtls, .. } = &mut seen.deployment.data_plane {
            *mtls = Mtls::Permissive;
        }
        seen.plaintext.values_mut().for_each(|outcome| *outcome = Plaintext::Answered(200));
        seen
    }

    fn of(deployment: Deployment) -> Self {
        let topology = in_pods(&deployment, Capture::Transparent(Bypass::Uid(1337)));
        let behind = deployment.services.iter().skip(1).map(|s| s.name.clone());
        Self {
            before: snapshot_of(&deployment, &topology, 40),
            after: snapshot_of(&deployment, &topology, 40 + REQUESTS),
            plaintext: behind.map(|name| (name, Plaintext::Closed)).collect(),
            traffic: TRAFFIC,
            topology,
            deployment,
        }
    }

    fn writing(mut self) -> Self {
        self.traffic = WRITING;
        self.database(|snapshot| snapshot.written = Some((50 + 400, 50 + 400)))
    }

    fn after(mut self, pod: &str, change: impl FnOnce(&mut ProxyCounters)) -> Self {
        change(self.after.counters.get_mut(pod).unwrap());
        self
    }

    fn call_after(self, pod: &str, callee: &str, change: impl FnOnce(&mut CallCounters)) -> Self {
        self.after(pod, |c| change(c.calls.get_mut(callee).unwrap()))
    }

    /// The database after the window, as `change` leaves it.
    fn database(mut self, change: impl FnOnce(&mut DatabaseSnapshot)) -> Self {
        change(self.after.databases.get_mut("postgres").unwrap());
        self
    }

    /// The last report of `service`, as `change` leaves it.
    fn reported(mut self, service: &str, change: impl FnOnce(&mut PathReport)) -> Self {
        let mut report = self.after.walk.report.as_mut().unwrap();
        while report.service != service {
            report = report.calls[0].as_mut().unwrap();
        }
        change(report);
        self
    }

    fn proof(&self) -> Proof {
        let Self { deployment, traffic, before, after, .. } = self;
        let window = Window {
            deployment,
            traffic,
            before,
            after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        match deployment.data_plane {
            DataPlane::Bare | DataPlane::Agent(_) => prove_none(&window, &self.topology),
            DataPlane::Sidecar { .. } | DataPlane::Mesher { .. } | DataPlane::Ambient(_) => {
                prove_sidecars(&window, &self.topology, &plaintext_to(&self.plaintext))
            }
        }
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }

    fn seen_by(&self, claim: &str) -> String {
        let proof = self.proof();
        proof.claims.iter().find(|c| c.claim == claim).expect("the claim is made").seen.clone()
    }
}

/// All counters at `requests`, the database's too; pods of a service share them evenly.
fn snapshot_of(deployment: &Deployment, topology: &Topology, requests: u64) -> PathSnapshot {
    let meshed = deployment.data_plane != DataPlane::Bare;
    let proxied = deployment.pods().into_iter().filter(|(_, service)| {
        meshed && service.program.takes_sidecar() || service.program == Program::Gateway
    });
    let database = DatabaseSnapshot {
        clients: None,
        seats_taken: None,
        statements: requests,
        looked: 0,
        peers: BTreeMap::from([(asks_from(meshed, topology), POOL)]),
        written: Some((50, 50)),
    };
    let mut seen = snapshot(
        Walk {
            server: Some(SIDECAR_SERVER.into()),
            report: serde_json::from_value(report(meshed, topology, requests)).unwrap(),
        },
        proxied.map(|(pod, of)| (pod, counters(deployment, of, requests))).collect(),
    );
    seen.databases.insert("postgres".into(), database);
    seen
}

fn counters(deployment: &Deployment, service: &Service, requests: u64) -> ProxyCounters {
    let requests = requests / service.replicas as u64;
    let meshed = deployment.data_plane != DataPlane::Bare;
    let handshakes = if meshed { POOL } else { 0 };
    let call = CallCounters {
        requests,
        connections: POOL,
        handshakes,
        sent_bytes: 100 * requests,
        ..Default::default()
    };
    let calls = service.calls.iter().map(|callee| (callee.clone(), call)).collect();
    let mut counters = ProxyCounters { calls, ..Default::default() };
    match service.program {
        Program::Gateway => counters.inbound_plaintext = requests,
        Program::Postgres(_) => {
            counters.tcp_mtls.connections = POOL;
            counters.tcp_mtls.received_bytes = 100 * requests;
        }
        _ => counters.inbound_mtls = requests,
    }
    counters
}

/// Where the database sees its first client.
fn asks_from(meshed: bool, topology: &Topology) -> IpAddr {
    let own = topology.pods.iter().find(|pod| pod.service == "name").unwrap().ip;
    IpAddr::V4(if meshed { SIDECAR_SOURCE } else { own })
}

/// The report of `customer` that calls `person` that calls `name`.
fn report(meshed: bool, topology: &Topology, requests: u64) -> Value {
    let hop = |service: &str, caller: &str, calls: Value| {
        let id = |name: &str| format!("spiffe://cluster.local/ns/default/sa/{name}");
        let certificate = format!("By={};Hash=00;Subject=\"\";URI={}", id(service), id(caller));
        let own = topology.pods.iter().find(|pod| pod.service == caller).unwrap().ip;
        let (peer, headers, certified) = if meshed {
            ("127.0.0.6:1".to_owned(), json!({"x-forwarded-client-cert": certificate}), requests)
        } else {
            let mut headers = json!({"x-request-id": "1"});
            if caller == "ingress" {
                headers["x-forwarded-proto"] = json!("http");
            }
            (format!("{own}:1"), headers, 0)
        };
        let marked = if meshed || caller == "ingress" { requests } else { 0 };
        json!({
            "service": service, "peer": peer, "headers": headers, "requests": requests,
            "marked": marked, "certified": certified, "calls": calls,
        })
    };
    let mut name = hop("name", "person", json!([]));
    name["database_peer"] = json!(asks_from(meshed, topology));
    hop("customer", "ingress", json!([hop("person", "customer", json!([name]))]))
}

#[test]
fn a_strict_mesh_behind_a_gateway_proves_seven_crossings() {
    let proof = Graph::strict().proof();
    assert_eq!(failed(&proof), [""; 0]);
    insta::assert_snapshot!("customer_strict", listing(&proof));
}

#[test]
fn a_bare_path_behind_a_gateway_proves_that_no_sidecar_was_crossed() {
    let proof = Graph::bare().proof();
    assert_eq!(failed(&proof), [""; 0]);
    assert_eq!((proof.traversals, proof.left_out), (vec![], vec![]));
    insta::assert_snapshot!("customer_bare", listing(&Graph::bare().proof()));
}

#[test]
fn a_permissive_mesh_behind_a_gateway_proves_its_path() {
    assert_eq!(Graph::permissive().failed(), [""; 0]);
}

#[test]
fn each_way_through_each_sidecar_is_a_traversal() {
    let proof = Graph::strict().proof();
    let way = |way: &Traversal| (way.pod.clone(), way.callee.clone().unwrap_or_default());
    let ways: Vec<(String, String)> = proof.traversals.iter().map(way).collect();
    let expected = [
        ("customer", ""),
        ("customer", "person"),
        ("person", ""),
        ("person", "name"),
        ("name", ""),
        ("name", "postgres"),
        ("postgres", ""),
    ];
    assert_eq!(ways, expected.map(|(pod, callee)| (pod.to_owned(), callee.to_owned())));
    assert!(proof.traversals.iter().all(|way| way.counted == REQUESTS), "{proof:#?}");
}

#[test]
fn the_proof_says_that_queries_are_not_counted_by_proxies() {
    let left_out = Graph::strict().proof().left_out;
    assert_eq!(left_out[0], LeftOut::QueriesBySidecars { database: "postgres".into() });
}

#[test]
fn a_gateway_that_saw_less_or_handed_less_on_fails_in_both_variants() {
    for graph in [Graph::bare, Graph::strict] {
        let came = graph().after("ingress", |c| c.inbound_plaintext -= 1);
        assert_eq!(came.failed(), ["ingress gateway: every request came from the load"]);
        let went = graph().call_after("ingress", "customer", |call| call.requests -= 1);
        assert_eq!(went.failed(), ["ingress gateway: every request was handed to customer"]);
    }
}

#[test]
fn a_gateway_speaks_tls_in_a_mesh_and_nowhere_else() {
    let plain = Graph::strict().call_after("ingress", "customer", |call| call.handshakes = 0);
    let tls = "ingress to customer: every connection from the gateway to the sidecar is TLS";
    assert_eq!(plain.failed(), [tls]);
    let tls = Graph::bare().call_after("ingress", "customer", |call| call.handshakes = 1);
    assert_eq!(tls.failed(), ["ingress to customer: no connection is TLS"]);
}

#[test]
fn behind_a_gateway_its_address_and_identity_are_what_the_first_service_sees() {
    let address = Graph::bare().reported("customer", |r| r.peer = "10.77.0.1:1".parse().unwrap());
    let claim = "ingress to customer: the connection's source address is the caller's own";
    assert_eq!(address.failed(), [claim]);
    let identity = Graph::strict().reported("customer", |r| {
        let header = r.headers.get_mut("x-forwarded-client-cert").unwrap();
        *header = header.replace("sa/ingress", "sa/person");
    });
    let claim = "ingress to customer: the sidecars know each other by their SPIFFE IDs";
    assert_eq!(identity.failed(), [claim]);
}

#[test]
fn only_on_the_gateways_own_hop_does_it_take_a_certificate_to_give_a_sidecar_away() {
    for (service, hop, whose) in [
        ("customer", "ingress to customer", "a sidecar"),
        ("person", "customer to person", "a proxy"),
    ] {
        let header = Graph::bare().reported(service, |report| {
            report.headers.insert("x-forwarded-client-cert".into(), "By=x".into());
        });
        let claim = format!("{hop}: the request has no header that {whose} adds");
        assert_eq!(header.failed(), [claim]);
    }
    let crossed = "no request crossed a sidecar";
    let counted = Graph::bare().reported("customer", |report| report.certified = 1);
    assert_eq!(counted.failed(), [crossed, "customer: no request bore a caller's certificate"]);
    let marked = Graph::bare().reported("person", |report| report.marked = 1);
    assert_eq!(marked.failed(), [crossed, "person: no request bore the mark of a proxy"]);
}

#[test]
fn the_headers_of_a_gateway_on_a_hop_behind_its_own_are_a_sidecars() {
    let seen = Graph::bare().reported("name", |report| {
        report.headers.insert("x-forwarded-proto".into(), "http".into());
    });
    assert_eq!(seen.failed(), ["person to name: the request has no header that a proxy adds"]);
}

#[test]
fn one_request_without_its_callers_certificate_fails_the_mesh() {
    for service in ["customer", "person", "name"] {
        let seen = Graph::strict().reported(service, |report| report.certified -= 1);
        assert_eq!(
            seen.failed(),
            [format!("{service}: every request bore its caller's certificate")]
        );
    }
}

#[test]
fn a_sidecar_that_was_passed_by_once_leaves_the_crossings_one_short() {
    let seen = Graph::strict().after("person", |c| c.inbound_mtls -= 1);
    let claim = "every request crossed 7 sidecars";
    assert_eq!(seen.failed(), [claim, "person sidecar, inbound: every request came over mTLS"]);
    assert_eq!(seen.seen_by(claim), "6999");
}

#[test]
fn a_query_too_few_or_too_many_fails_in_both_variants() {
    let claim = "postgres: the server ran exactly the queries of the requests";
    for change in [u64::MAX, 1] {
        let ran = |snapshot: &mut DatabaseSnapshot| {
            snapshot.statements = snapshot.statements.wrapping_add(change);
        };
        assert_eq!(Graph::bare().database(ran).failed(), [claim]);
        let crossed = "every request crossed 7 sidecars";
        assert_eq!(Graph::strict().database(ran).failed(), [crossed, claim]);
    }
}

#[test]
fn a_database_that_began_anew_in_the_window_has_no_count() {
    let seen = Graph::bare().database(|snapshot| snapshot.statements = 3);
    let claim = "postgres: the server ran exactly the queries of the requests";
    assert_eq!(seen.seen_by(claim), "no counters");
    assert_eq!(seen.failed(), [claim]);
}

#[test]
fn a_database_that_was_not_asked_fails() {
    let mut seen = Graph::bare();
    seen.after.databases.clear();
    assert_eq!(
        seen.failed(),
        [
            "postgres: the server ran exactly the queries of the requests",
            "postgres: every acknowledged write is there, and nothing that was not sent",
            "postgres: no row was written twice",
            "postgres: every open connection's source address is a caller's own",
        ]
    );
}

#[test]
fn one_connection_past_the_sidecar_costs_the_database_its_crossings() {
    let stranger = |snapshot: &mut DatabaseSnapshot| {
        snapshot.peers.insert("10.77.0.1".parse().unwrap(), 1);
    };
    let own = "postgres: every open connection's source address is a caller's own";
    assert_eq!(Graph::bare().database(stranger).failed(), [own]);
    let seen = Graph::strict().database(stranger);
    let sidecars = "postgres: every open connection's source address is its own sidecar's";
    let crossed = "every request crossed 7 sidecars";
    assert_eq!(seen.failed(), [crossed, sidecars]);
    assert_eq!(seen.seen_by(crossed), "5000");
    assert_eq!(
        seen.seen_by(sidecars),
        "127.0.0.6 (16) before the load, 10.77.0.1 (1), 127.0.0.6 (16) after it"
    );
}

#[test]
fn a_database_without_a_connection_after_the_load_fails_and_before_it_does_not() {
    let claim = "postgres: every open connection's source address is a caller's own";
    assert_eq!(Graph::bare().database(|snapshot| snapshot.peers.clear()).failed(), [claim]);
    let mut early = Graph::bare();
    early.before.databases.get_mut("postgres").unwrap().peers.clear();
    assert_eq!(early.failed(), [""; 0]);
}

#[test]
fn a_service_whose_own_connection_is_another_fails() {
    let seen = Graph::bare()
        .reported("name", |report| report.database_peer = Some("127.0.0.6".parse().unwrap()));
    let claim = "name to postgres: the connection's source address is a caller's own";
    assert_eq!(seen.failed(), [claim]);
    let silent = Graph::bare().reported("name", |report| report.database_peer = None);
    assert_eq!(silent.failed(), [claim]);
}

/// That `claim` fails, and that it takes the crossings of the database with it.
fn assert_fails_the_database(seen: &Graph, claim: &str) {
    let crossed = "every request crossed 7 sidecars";
    assert_eq!(seen.failed(), [crossed, claim]);
    assert_eq!(seen.seen_by(crossed), "5000");
}

#[test]
fn a_plaintext_connection_to_the_database_fails() {
    let seen = Graph::strict().after("postgres", |c| c.tcp_plaintext.connections += 1);
    let claim = "postgres sidecar, inbound: no connection came as plaintext";
    assert_fails_the_database(&seen, claim);
}

#[test]
fn plaintext_probes_of_the_database_before_the_window_do_not_count() {
    let mut seen = Graph::permissive();
    for snapshot in [&mut seen.before, &mut seen.after] {
        snapshot.counters.get_mut("postgres").unwrap().tcp_plaintext.connections = 1;
    }
    assert_eq!(seen.failed(), [""; 0]);
}

#[test]
fn more_open_connections_than_came_over_mtls_fail() {
    let seen = Graph::strict().after("postgres", |c| c.tcp_mtls.connections = POOL - 1);
    let claim = "postgres sidecar, inbound: every open connection came over mTLS";
    assert_fails_the_database(&seen, claim);
}

#[test]
fn a_connection_to_the_database_without_a_handshake_fails() {
    let seen = Graph::strict().call_after("name", "postgres", |call| call.connections += 1);
    let claim = "name to postgres: every connection between the sidecars is TLS";
    assert_fails_the_database(&seen, claim);
}

#[test]
fn too_few_bytes_through_either_sidecar_for_the_queries_fail() {
    let before = 100 * 40;
    let seen = Graph::strict().call_after("name", "postgres", |call| call.sent_bytes = before + 99);
    let claim = "name sidecar, outbound: enough bytes for every query of postgres";
    assert_fails_the_database(&seen, claim);
    let seen = Graph::strict().after("postgres", |c| c.tcp_mtls.received_bytes = before + 99);
    let claim = "postgres sidecar, inbound: enough bytes for every query";
    assert_fails_the_database(&seen, claim);
}

#[test]
fn plaintext_that_the_databases_sidecar_answers_under_strict_fails() {
    let mut seen = Graph::strict();
    seen.plaintext.insert("postgres".into(), Plaintext::Answered(0));
    let claim = "postgres sidecar refuses plaintext from outside of the mesh";
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(seen.seen_by(claim), "an answer");
}

#[test]
fn rows_from_all_acknowledged_to_all_sent_hold() {
    for rows in [50 + 399, 50 + 400] {
        let seen =
            Graph::bare().writing().database(|snapshot| snapshot.written = Some((rows, rows)));
        assert_eq!(seen.failed(), [""; 0], "{rows}");
    }
}

#[test]
fn an_acknowledged_write_that_is_lost_or_one_that_nobody_sent_fails() {
    let claim = "postgres: every acknowledged write is there, and nothing that was not sent";
    for rows in [50 + 398, 50 + 401] {
        let seen =
            Graph::strict().writing().database(|snapshot| snapshot.written = Some((rows, rows)));
        assert_eq!(seen.failed(), [claim], "{rows}");
    }
}

#[test]
fn a_row_that_was_written_twice_fails() {
    let seen = Graph::strict().writing().database(|snapshot| snapshot.written = Some((450, 449)));
    assert_eq!(seen.failed(), ["postgres: no row was written twice"]);
}

#[test]
fn reads_write_no_row() {
    let seen = Graph::bare().database(|snapshot| snapshot.written = Some((51, 51)));
    let claim = "postgres: every acknowledged write is there, and nothing that was not sent";
    assert_eq!(seen.failed(), [claim]);
}

#[test]
fn writes_that_the_study_cannot_count_are_left_out() {
    let mut seen = Graph::bare().writing();
    if let Program::Postgres(postgres) = &mut seen.deployment.services[4].program {
        postgres.written = None;
    }
    let proof = seen.proof();
    assert!(proof.holds());
    assert_eq!(proof.left_out, [LeftOut::Rows { database: "postgres".into() }]);
}

#[test]
fn a_request_that_the_gateway_sent_again_may_count_twice_on_its_whole_way() {
    let mut seen = Graph::strict().call_after("ingress", "customer", |call| {
        call.requests += 1;
        call.retries += 1;
    });
    assert_eq!(seen.failed(), [""; 0]);
    seen = seen.after("customer", |c| c.inbound_mtls += 1);
    seen = seen.call_after("customer", "person", |call| call.requests += 1);
    assert_eq!(seen.failed(), [""; 0]);
}

#[test]
fn queries_of_a_program_of_the_users_own_are_left_out() {
    let mut seen = Graph::strict().database(|snapshot| snapshot.statements += 500);
    seen.deployment.services[3].program = Program::Command(UserProgram::of(["./name"]));
    for snapshot in [&mut seen.before, &mut seen.after] {
        snapshot.walk.report = None;
    }
    let proof = seen.proof();
    assert_eq!(failed(&proof), [""; 0]);
    let database = || "postgres".to_owned();
    let queries = LeftOut::Queries { database: database(), program: "name".into() };
    for left_out in [queries, LeftOut::Crossings { database: database() }] {
        assert!(proof.left_out.contains(&left_out), "{proof:#?}");
    }
}

/// `customer()` with three pods of `person`, each asked inside.
fn replicated(deployment: Deployment) -> Graph {
    let mut seen = Graph::of(with_replicas(deployment, "person", 3));
    seen.plaintext.remove("person");
    for (snapshot, requests) in [(&mut seen.before, 30), (&mut seen.after, 30 + REQUESTS)] {
        let report = snapshot.walk.report.as_ref().unwrap().find("person").unwrap().clone();
        for number in 1..=3 {
            // 1000 requests in three parts: 333, 333 and 334.
            let counted = requests / 3 + u64::from(number == 3 && requests > 30);
            let mut report = report.clone();
            report.requests = counted;
            report.certified = if report.certified > 0 { counted } else { 0 };
            snapshot.replicas.insert(format!("person-{number}"), report);
            if let Some(counters) = snapshot.counters.get_mut(&format!("person-{number}")) {
                counters.inbound_mtls = counted;
                counters.calls.get_mut("name").unwrap().requests = counted;
            }
            seen.plaintext.insert(format!("person-{number}"), Plaintext::Closed);
        }
    }
    seen
}

#[test]
fn pods_of_one_service_are_added_up_in_both_variants() {
    for deployment in [customer(), in_mesh(customer())] {
        let seen = replicated(deployment);
        assert_eq!(seen.failed(), [""; 0]);
        let each = "person: each of its 3 pods got requests";
        assert_eq!(seen.seen_by(each), "person-1: 333; person-2: 333; person-3: 334");
        let got = "person: the application got exactly the requests that were sent";
        assert_eq!(seen.seen_by(got), "1000");
    }
}

#[test]
fn one_request_too_few_at_one_of_several_pods_fails() {
    let seen = replicated(in_mesh(customer())).after("person-2", |c| c.inbound_mtls -= 1);
    let inbound = "person sidecars (3), inbound: every request came over mTLS";
    assert_eq!(seen.failed(), ["every request crossed 7 sidecars", inbound]);
}

#[test]
fn a_pod_that_got_no_request_fails() {
    let mut seen = replicated(customer());
    let (before, after) = (&seen.before.replicas, &mut seen.after.replicas);
    let lost = after["person-1"].requests - before["person-1"].requests;
    after.get_mut("person-1").unwrap().requests -= lost;
    after.get_mut("person-2").unwrap().requests += lost;
    assert_eq!(seen.failed(), ["person: each of its 3 pods got requests"]);
}

#[test]
fn a_pod_that_was_restarted_is_not_made_up_for_by_the_others() {
    let mut seen = replicated(customer());
    seen.after.replicas.get_mut("person-1").unwrap().requests = 0;
    seen.after.replicas.get_mut("person-2").unwrap().requests += 343;
    let got = "person: the application got exactly the requests that were sent";
    assert_eq!(seen.seen_by(got), "no counters");
}

#[test]
fn a_few_requests_need_not_reach_every_pod() {
    let mut seen = replicated(customer());
    seen.traffic.requests = 29;
    assert!(seen.proof().claims.iter().all(|claim| !claim.claim.contains("each of its")));
}

#[test]
fn pods_that_were_not_asked_one_by_one_are_left_out() {
    let mut seen = replicated(in_mesh(customer()));
    seen.before.replicas.clear();
    seen.after.replicas.clear();
    let proof = seen.proof();
    assert_eq!(failed(&proof), [""; 0]);
    assert_eq!(proof.left_out[0], LeftOut::EachPod { service: "person".into() });
}

#[test]
fn every_pod_of_a_service_must_refuse_plaintext() {
    let mut seen = replicated(in_mesh(customer()));
    seen.plaintext.insert("person-3".into(), Plaintext::Answered(200));
    let claim = "person sidecars (3) refuse plaintext from outside of the mesh";
    assert_eq!(seen.failed(), [claim]);
    assert_eq!(seen.seen_by(claim), "person-3: an answer with status 200; 2 as expected");
}

#[test]
fn queries_are_shared_out_among_the_pods_that_asked() {
    let mut seen = Graph::of(with_replicas(in_mesh(customer()), "name", 3));
    for (pod, inbound) in [("name-1", 500), ("name-2", 300), ("name-3", 200)] {
        let before = seen.before.counters[pod].inbound_mtls;
        seen = seen.after(pod, |c| c.inbound_mtls = before + inbound);
        seen = seen.call_after(pod, "postgres", |call| call.sent_bytes += 10_000);
        seen.plaintext.insert(pod.into(), Plaintext::Closed);
    }
    let to_database = |way: &&Traversal| way.callee.as_deref() == Some("postgres");
    let proof = seen.proof();
    let shares: Vec<u64> =
        proof.traversals.iter().filter(to_database).map(|way| way.counted).collect();
    assert_eq!(shares, [500, 300, 200]);
    assert!(proof.traversals.iter().any(|way| way.direction == Direction::Inbound));
    assert_eq!(failed(&proof), [""; 0]);
}
