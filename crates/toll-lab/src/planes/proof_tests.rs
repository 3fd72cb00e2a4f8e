use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::agent::claims::prove_none;
use super::redirect;
use super::sidecar::proof::prove as prove_sidecars;
use crate::Reading;
use crate::claim::{Claim, LeftOut, Proof, Traffic};
use crate::deployment::{DataPlane, Deployment, Mtls, Program, Service, UserProgram};
use crate::envoy::istio::SIDECAR_SERVER;
use crate::evidence::{
    CallCounters, DatabaseSnapshot, Fingerprints, Handshake, Jvm, Occupants, Outsider, PathReport,
    PathSnapshot, Plaintext, ProxyCounters, SpanWindow, Walk, Wire,
};
use crate::fixture::{chain, in_mesh};
use crate::proof::bounds::Bounds;
use crate::proof::expected::Expected;
use crate::proof::window::{Spread, Window};
use crate::topology::{Bypass, Capture, PodAddresses, Topology};

mod agent;
mod airline;
mod ambient;
mod customer;
mod replicas;

const REQUESTS: u64 = 1000;

const TRAFFIC: Traffic = Traffic { asked: vec![], requests: REQUESTS, writes: 0, acknowledged: 0 };

/// A snapshot of nothing but a probe and the sidecars' counters.
fn snapshot(walk: Walk, counters: BTreeMap<String, ProxyCounters>) -> PathSnapshot {
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

/// The wires of a snapshot in which they were read.
fn wires(snapshot: &mut PathSnapshot) -> &mut Vec<Wire> {
    match &mut snapshot.wire {
        Reading::Value(wires) => wires,
        Reading::Missing(why) => panic!("{why}"),
    }
}

/// The report of `service` at any depth of a walk.
fn report_of<'a>(snapshot: &'a mut PathSnapshot, service: &str) -> &'a mut PathReport {
    let entry = snapshot.walk.report.as_mut().unwrap();
    if entry.service == service { entry } else { entry.calls[0].as_mut().unwrap() }
}

/// What a strict mesh of `chain()` shows when all is well.
struct Sidecars {
    deployment: Deployment,
    before: PathSnapshot,
    after: PathSnapshot,
    plaintext: BTreeMap<String, Plaintext>,
}

impl Sidecars {
    fn strict() -> Self {
        Self {
            deployment: in_mesh(chain()),
            before: snapshot(sidecar_walk(30), counted(40)),
            after: snapshot(sidecar_walk(30 + REQUESTS), counted(40 + REQUESTS)),
            plaintext: BTreeMap::from([("server".into(), Plaintext::Closed)]),
        }
    }

    fn permissive() -> Self {
        let mut seen = Self::strict();
        if let DataPlane::Sidecar { mtls, .. } = &mut seen.deployment.data_plane {
            *mtls = Mtls::Permissive;
        }
        seen.plaintext.insert("server".into(), Plaintext::Answered(200));
        seen
    }

    /// After the window, as `change` leaves it.
    fn after(mut self, service: &str, change: impl FnOnce(&mut ProxyCounters)) -> Self {
        change(self.after.counters.get_mut(service).unwrap());
        self
    }

    fn call_after(self, change: impl FnOnce(&mut CallCounters)) -> Self {
        self.after("client", |c| change(c.calls.get_mut("server").unwrap()))
    }

    /// The last report of `service`, as `change` leaves it.
    fn reported(mut self, service: &str, change: impl FnOnce(&mut PathReport)) -> Self {
        change(report_of(&mut self.after, service));
        self
    }

    fn proof(&self) -> Proof {
        let (deployment, before, after) = (&self.deployment, &self.before, &self.after);
        let window = Window {
            deployment,
            traffic: &TRAFFIC,
            before,
            after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        prove_sidecars(&window, &pods(), &plaintext_to(&self.plaintext))
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }
}

fn counted(requests: u64) -> BTreeMap<String, ProxyCounters> {
    let call = CallCounters { requests, connections: 9, handshakes: 9, ..Default::default() };
    let client = ProxyCounters {
        inbound_plaintext: requests,
        calls: BTreeMap::from([("server".into(), call)]),
        ..Default::default()
    };
    let server = ProxyCounters { inbound_mtls: requests, ..Default::default() };
    BTreeMap::from([("client".into(), client), ("server".into(), server)])
}

fn sidecar_walk(requests: u64) -> Walk {
    let certificate = "By=spiffe://cluster.local/ns/default/sa/server;Hash=00;Subject=\"\";\
                       URI=spiffe://cluster.local/ns/default/sa/client";
    let report = json!({
        "service": "client", "peer": "127.0.0.6:40000", "headers": {"x-request-id": "1"},
        "requests": requests, "marked": requests,
        "calls": [{
            "service": "server", "peer": "127.0.0.6:40001",
            "headers": {"x-forwarded-client-cert": certificate}, "calls": [],
            "requests": requests, "marked": requests, "certified": requests,
        }],
    });
    Walk { server: Some("istio-envoy".into()), report: serde_json::from_value(report).unwrap() }
}

/// Probes from outside of the mesh that spoke plaintext only.
fn plaintext_to(pods: &BTreeMap<String, Plaintext>) -> Outsider {
    Outsider { plaintext: pods.clone(), ..Outsider::default() }
}

fn failed(proof: &Proof) -> Vec<String> {
    let failed = proof.claims.iter().filter(|claim| !claim.holds);
    failed.map(|claim| claim.claim.clone()).collect()
}

/// Prints as a report would: one line a claim.
fn listing(proof: &Proof) -> String {
    let line = |c: &Claim| {
        let verdict = if c.holds { "holds" } else { "FAILS" };
        format!("{verdict}: {}\n       expected {}; seen {}\n", c.claim, c.expected, c.seen)
    };
    proof.claims.iter().map(line).collect()
}

#[test]
fn a_strict_mesh_proves_its_path() {
    let proof = Sidecars::strict().proof();
    assert!(proof.holds());
    insta::assert_snapshot!("strict", listing(&proof));
}

#[test]
fn a_permissive_mesh_proves_its_path() {
    assert_eq!(Sidecars::permissive().failed(), [""; 0]);
}

#[test]
fn one_request_too_few_at_the_entry_fails() {
    let seen = Sidecars::strict().after("client", |c| c.inbound_plaintext -= 1);
    assert_eq!(
        seen.failed(),
        [
            "every request crossed 3 sidecars",
            "client sidecar, inbound: every request came from the load"
        ]
    );
}

#[test]
fn one_request_too_many_behind_the_entry_fails() {
    let seen = Sidecars::strict().after("server", |c| c.inbound_mtls += 1);
    assert_eq!(
        seen.failed(),
        [
            "every request crossed 3 sidecars",
            "server sidecar, inbound: every request came over mTLS"
        ]
    );
}

#[test]
fn one_call_too_few_fails() {
    let seen = Sidecars::strict().call_after(|call| call.requests -= 1);
    assert_eq!(
        seen.failed(),
        [
            "every request crossed 3 sidecars",
            "client sidecar, outbound: every call to server was counted"
        ]
    );
}

#[test]
fn a_request_that_the_sidecar_sent_again_may_be_counted_twice() {
    let seen = Sidecars::strict()
        .call_after(|call| (call.requests, call.retries) = (call.requests + 1, 1))
        .after("server", |c| c.inbound_mtls += 1)
        .reported("server", |r| (r.requests, r.certified) = (r.requests + 1, r.certified + 1));
    assert_eq!(seen.failed(), [""; 0]);
}

/// A client that may keep answers: the proxies count a call for every other request.
fn half_of_the_calls() -> Sidecars {
    let mut seen = Sidecars::strict().call_after(|call| call.requests -= REQUESTS / 2);
    let (server, half) = ("server", REQUESTS / 2);
    seen.deployment.services[0].observed_calls = vec![server.into()];
    seen.after(server, |c| c.inbound_mtls -= half).reported(server, |report| {
        (report.requests, report.certified) = (report.requests - half, report.certified - half);
    })
}

#[test]
fn calls_whose_number_nobody_knows_before_are_as_the_caller_made_them() {
    let seen = half_of_the_calls();
    assert_eq!(seen.failed(), [""; 0]);
    let exact = Sidecars { deployment: in_mesh(chain()), ..half_of_the_calls() };
    assert!(!exact.proof().holds());
}

#[test]
fn observed_calls_that_did_not_come_through_both_sidecars_fail() {
    let seen = half_of_the_calls().after("server", |c| c.inbound_mtls -= 1);
    assert_eq!(
        seen.failed(),
        [
            "every request crossed the sidecars on its way",
            "server sidecar, inbound: every request came over mTLS"
        ]
    );
    let seen = half_of_the_calls().reported("server", |report| report.requests += 1);
    assert!(!seen.proof().holds());
}

#[test]
fn a_call_that_is_never_made_fails() {
    let mut seen = half_of_the_calls();
    seen.after.counters = seen.before.counters.clone();
    let failed = seen.failed();
    let outbound = "client sidecar, outbound: every call to server was counted";
    assert!(failed.iter().any(|claim| claim == outbound), "{failed:?}");
}

#[test]
fn requests_before_the_window_do_not_count() {
    let mut seen = Sidecars::strict();
    seen.before.counters = counted(0);
    assert!(!seen.proof().holds());
}

#[test]
fn a_sidecar_that_was_restarted_in_the_window_has_no_counters() {
    let seen = Sidecars::strict().after("server", |c| c.inbound_mtls = 3);
    let proof = seen.proof();
    let claim = proof.claims.iter().rfind(|claim| !claim.holds).unwrap();
    assert_eq!(claim.seen, "no counters");
}

#[test]
fn a_bypassed_mesh_counts_nothing_and_fails() {
    let mut seen = Sidecars::strict();
    seen.after.counters = seen.before.counters.clone();
    assert_eq!(
        seen.failed(),
        [
            "every request crossed 3 sidecars",
            "client sidecar, inbound: every request came from the load",
            "client sidecar, outbound: every call to server was counted",
            "server sidecar, inbound: every request came over mTLS"
        ]
    );
}

#[test]
fn plaintext_between_sidecars_fails() {
    let seen = Sidecars::strict().after("server", |c| c.inbound_plaintext += 1);
    assert_eq!(
        seen.failed(),
        [
            "every request crossed 3 sidecars",
            "server sidecar, inbound: no request came as plaintext"
        ]
    );
}

#[test]
fn a_connection_without_a_handshake_fails() {
    let seen = Sidecars::strict().call_after(|call| call.connections += 1);
    let tls = "client to server: every connection between the sidecars is TLS";
    assert_eq!(seen.failed(), [tls]);
}

#[test]
fn a_connection_that_did_not_come_about_needs_no_handshake() {
    let seen =
        Sidecars::strict().call_after(|call| (call.connections, call.failed_connections) = (10, 1));
    assert_eq!(seen.failed(), [""; 0]);
}

#[test]
fn another_spiffe_id_fails() {
    let seen = Sidecars::strict().reported("server", |report| {
        let header = report.headers.get_mut("x-forwarded-client-cert").unwrap();
        *header = header.replace("sa/client", "sa/clientele");
    });
    assert_eq!(
        seen.failed(),
        ["client to server: the sidecars know each other by their SPIFFE IDs"]
    );
}

#[test]
fn a_peer_that_is_not_the_own_sidecar_fails() {
    let seen = Sidecars::strict()
        .reported("server", |report| report.peer = "10.77.0.2:1".parse().unwrap());
    assert_eq!(
        seen.failed(),
        ["client to server: the connection's source address is its own sidecar's"]
    );
}

#[test]
fn plaintext_that_is_answered_under_strict_fails() {
    let mut seen = Sidecars::strict();
    seen.plaintext.insert("server".into(), Plaintext::Answered(200));
    assert_eq!(seen.failed(), ["server sidecar refuses plaintext from outside of the mesh"]);
}

#[test]
fn plaintext_that_found_nobody_proves_no_refusal() {
    let mut seen = Sidecars::strict();
    seen.plaintext.insert("server".into(), Plaintext::Unclear("connection refused".into()));
    assert!(!seen.proof().holds());
}

#[test]
fn a_plaintext_probe_that_was_not_made_fails() {
    let mut seen = Sidecars::strict();
    seen.plaintext.clear();
    assert!(!seen.proof().holds());
}

#[test]
fn plaintext_that_is_refused_under_permissive_fails() {
    let mut seen = Sidecars::permissive();
    seen.plaintext.insert("server".into(), Plaintext::Closed);
    assert_eq!(seen.failed(), ["server sidecar answers plaintext from outside of the mesh"]);
}

#[test]
fn a_built_in_service_that_does_not_report_fails() {
    let mut seen = Sidecars::strict();
    seen.before.walk.report = None;
    seen.after.walk.report = None;
    assert_eq!(seen.failed(), ["load to client: the service reports the probe"]);
}

#[test]
fn a_service_that_reports_only_before_the_load_fails() {
    let mut seen = Sidecars::strict();
    report_of(&mut seen.after, "client").calls.clear();
    assert_eq!(
        seen.failed(),
        [
            "server: the application got exactly the requests that were sent",
            "server: every request bore its caller's certificate",
            "client to server: the service reports the probe",
        ]
    );
}

#[test]
fn requests_that_reach_an_application_past_its_sidecar_fail() {
    let unmarked = Sidecars::strict().reported("client", |r| r.marked -= 1);
    assert_eq!(unmarked.failed(), ["client: every request bore the mark of a sidecar"]);
    for (change, count) in [("too few", u64::MAX), ("too many", 1)] {
        let seen = Sidecars::strict().reported("server", |r| {
            r.requests = r.requests.wrapping_add(count);
            r.certified = r.certified.wrapping_add(count);
        });
        let exactly = "server: the application got exactly the requests that were sent";
        assert_eq!(seen.failed(), [exactly], "one {change}");
    }
}

#[test]
fn a_program_of_the_users_own_is_judged_by_counters_and_said_to_be() {
    let mut seen = Sidecars::strict();
    seen.deployment.services[1].program = Program::Command(UserProgram::of(["./api"]));
    seen.before.walk.report = None;
    seen.after.walk.report = None;
    let proof = seen.proof();
    assert!(proof.holds());
    assert_eq!(proof.left_out, [LeftOut::Arrival { caller: None, service: "client".into() }]);
}

#[test]
fn a_service_that_is_called_by_two_is_expected_to_get_both_calls() {
    let mut deployment = in_mesh(chain());
    let mut middle = deployment.services[0].clone();
    middle.name = "middle".into();
    deployment.services.push(middle);
    deployment.services[0].calls.push("middle".into());
    let expected = Expected::of_requests(&deployment, 10);
    assert_eq!(expected.arrivals("server"), Bounds::exactly(20));
    assert_eq!(expected.calls(&deployment.services[0], "middle"), Bounds::exactly(10));
}

/// What a bare `chain()` in pods shows when all is well.
struct Alone {
    deployment: Deployment,
    topology: Topology,
    before: PathSnapshot,
    after: PathSnapshot,
}

impl Alone {
    fn in_pods() -> Self {
        Self {
            deployment: chain(),
            topology: pods(),
            before: bare_snapshot(1),
            after: bare_snapshot(1 + REQUESTS),
        }
    }

    /// The last report of `service`, as `change` leaves it.
    fn reported(mut self, service: &str, change: impl FnOnce(&mut PathReport)) -> Self {
        change(report_of(&mut self.after, service));
        self
    }

    fn proof(&self) -> Proof {
        let (deployment, before, after) = (&self.deployment, &self.before, &self.after);
        let window = Window {
            deployment,
            traffic: &TRAFFIC,
            before,
            after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        prove_none(&window, &self.topology)
    }

    fn failed(&self) -> Vec<String> {
        failed(&self.proof())
    }

    /// What fails when `change` is true before the load only, and what when it is true after it only.
    fn failed_at_one_end(change: impl Fn(&mut PathSnapshot)) -> [Vec<String>; 2] {
        let [mut early, mut late] = [(); 2].map(|()| Self::in_pods());
        change(&mut early.before);
        change(&mut late.after);
        [early.failed(), late.failed()]
    }
}

fn bare_snapshot(requests: u64) -> PathSnapshot {
    let report = json!({
        "service": "client", "peer": "10.77.0.1:40000", "headers": {"host": "client"},
        "requests": requests, "marked": 0,
        "calls": [{
            "service": "server", "peer": "10.77.0.2:40001", "headers": {}, "calls": [],
            "requests": requests, "marked": 0,
        }],
    });
    let alone = Occupants { own: true, foreign: Vec::new() };
    PathSnapshot {
        handshakes: BTreeMap::new(),
        sni_accepted: None,
        walk: Walk { server: None, report: serde_json::from_value(report).unwrap() },
        counters: BTreeMap::new(),
        rules: BTreeMap::from([("client".into(), String::new())]),
        occupants: BTreeMap::from([("client".into(), alone)]),
        databases: BTreeMap::new(),
        replicas: BTreeMap::new(),
        jvms: BTreeMap::new(),
        answered: BTreeMap::new(),
        wire: Reading::Value(Vec::new()),
    }
}

fn pods() -> Topology {
    let pod = |service: &str, last, app_port| PodAddresses {
        mesher: None,
        node: 0,
        probe_port: None,
        pod: service.into(),
        service: service.into(),
        ip: Ipv4Addr::new(10, 77, 0, last),
        app_port,
        outbound_port: 15001,
        inbound_port: 15006,
        calls: BTreeMap::new(),
    };
    Topology {
        egress: None,
        nodes: Vec::new(),
        waypoint: None,
        pods: vec![pod("client", 2, 9000), pod("server", 3, 9999)],
        load_ip: Ipv4Addr::new(10, 77, 0, 1),
        capture: Capture::Transparent(Bypass::Uid(1337)),
    }
}

#[test]
fn a_bare_path_proves_that_no_proxy_saw_a_request() {
    let proof = Alone::in_pods().proof();
    assert!(proof.holds());
    insta::assert_snapshot!("bare", listing(&proof));
}

#[test]
fn a_header_that_a_proxy_adds_fails_the_bare_path() {
    for header in ["x-forwarded-client-cert", "x-request-id", "x-envoy-attempt-count", "via"] {
        let failed = Alone::failed_at_one_end(|snapshot| {
            report_of(snapshot, "server").headers.insert(header.into(), "1".into());
        });
        let claim = "client to server: the request has no header that a proxy adds";
        assert_eq!(failed, [[claim], [claim]], "{header}");
    }
}

#[test]
fn one_request_of_the_load_that_a_proxy_marked_fails_the_bare_path() {
    for service in ["client", "server"] {
        let seen = Alone::in_pods().reported(service, |report| report.marked += 1);
        let marked = format!("{service}: no request bore the mark of a proxy");
        assert_eq!(seen.failed(), ["no request crossed a sidecar", &marked]);
    }
}

#[test]
fn one_request_more_or_less_than_was_sent_fails_the_bare_path() {
    for service in ["client", "server"] {
        let claim = format!("{service}: the application got exactly the requests that were sent");
        let less = Alone::in_pods().reported(service, |report| report.requests -= 1);
        let more = Alone::in_pods().reported(service, |report| report.requests += 1);
        assert_eq!([less.failed(), more.failed()], [[claim.clone()], [claim]]);
    }
}

#[test]
fn a_service_that_was_restarted_in_the_window_fails_the_bare_path() {
    let seen = Alone::in_pods().reported("server", |report| report.requests = 0);
    let proof = seen.proof();
    let claim = proof.claims.iter().find(|claim| !claim.holds).unwrap();
    assert_eq!(claim.seen, "no counters");
}

#[test]
fn an_answer_from_a_sidecar_fails_the_bare_path() {
    let failed =
        Alone::failed_at_one_end(|snapshot| snapshot.walk.server = Some("istio-envoy".into()));
    assert!(failed.iter().all(|claims| claims.len() == 1), "{failed:?}");
}

#[test]
fn a_peer_that_is_not_the_caller_fails_the_bare_path() {
    let failed = Alone::failed_at_one_end(|snapshot| {
        report_of(snapshot, "server").peer = "127.0.0.6:1".parse().unwrap();
    });
    let claim = "client to server: the connection's source address is the caller's own";
    assert_eq!(failed, [[claim], [claim]]);
}

#[test]
fn a_foreign_program_in_a_pod_fails_the_bare_path_and_is_named() {
    let envoy = || Occupants { own: true, foreign: vec!["envoy (pid 42)".into()] };
    let claim = "client pod: no program but its own runs in its network";
    let failed = Alone::failed_at_one_end(|snapshot| {
        snapshot.occupants.insert("client".into(), envoy());
    });
    assert_eq!(failed, [[claim], [claim]]);
    let mut seen = Alone::in_pods();
    seen.after.occupants.insert("client".into(), envoy());
    let proof = seen.proof();
    let seen = &proof.claims.iter().find(|claim| !claim.holds).unwrap().seen;
    assert_eq!(seen, "only its own before the load, envoy (pid 42) after it");
}

#[test]
fn a_look_at_a_pod_that_misses_its_own_program_proves_nothing() {
    let failed = Alone::failed_at_one_end(|snapshot| {
        snapshot.occupants.get_mut("client").unwrap().own = false;
    });
    let claim = "client pod: no program but its own runs in its network";
    assert_eq!(failed, [[claim], [claim]]);
}

#[test]
fn a_redirect_rule_fails_the_bare_path() {
    let script = redirect::script(Bypass::Uid(1337), None);
    let failed = Alone::failed_at_one_end(|snapshot| {
        snapshot.rules.insert("client".into(), script.clone());
    });
    let claim = "client pod: no firewall rule redirects its traffic";
    assert_eq!(failed, [[claim], [claim]]);
}

#[test]
fn where_pods_share_the_machines_network_the_proof_says_what_it_leaves_out() {
    let mut seen = Alone::in_pods();
    assert_eq!(seen.proof().left_out, []);
    seen.topology.capture = Capture::Explicit;
    assert_eq!(seen.proof().left_out, [LeftOut::SharedNetwork]);
}
