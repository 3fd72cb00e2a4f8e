//! The claims about ninety pods of nginx, bare and behind sidecars: few, and each still tells which pod fails.

use super::*;
use crate::deployment::Nginx;
use crate::fixture::graphs::{customer, in_pods, with_replicas};

/// What ninety pods behind a gateway show when all is well.
struct Ninety {
    deployment: Deployment,
    topology: Topology,
    before: PathSnapshot,
    after: PathSnapshot,
    plaintext: BTreeMap<String, Plaintext>,
}

impl Ninety {
    fn bare() -> Self {
        Self::of(behind_gateway())
    }

    fn strict() -> Self {
        Self::of(in_mesh(behind_gateway()))
    }

    fn of(deployment: Deployment) -> Self {
        let pods = deployment.pods().into_iter().filter(|(_, service)| service.name == "nginx");
        Self {
            plaintext: pods.map(|(pod, _)| (pod, Plaintext::Closed)).collect(),
            topology: in_pods(&deployment, Capture::Transparent(Bypass::Uid(1337))),
            before: snapshot_of(&deployment, 0),
            after: snapshot_of(&deployment, 20),
            deployment,
        }
    }

    fn proof(&self) -> Proof {
        let Self { deployment, before, after, .. } = self;
        let traffic = Traffic { requests: 90 * 20, ..Traffic::default() };
        let window = Window {
            deployment,
            traffic: &traffic,
            before,
            after,
            spans: None,
            issued: None,
            spread: Spread::InTurn,
        };
        match deployment.data_plane {
            DataPlane::Bare => prove_none(&window, &self.topology),
            _ => prove_sidecars(&window, &self.topology, &plaintext_to(&self.plaintext)),
        }
    }

    fn first_failed(&self) -> Claim {
        self.proof().claims.into_iter().find(|claim| !claim.holds).expect("a claim fails")
    }
}

fn behind_gateway() -> Deployment {
    let mut deployment = customer();
    deployment.services.truncate(2);
    deployment.services[1].name = "nginx".into();
    deployment.services[1].program = Program::Nginx(Nginx { bytes: 615 });
    deployment.services[1].calls.clear();
    deployment.services[0].calls = vec!["nginx".into()];
    with_replicas(deployment, "nginx", 90)
}

/// Each pod of nginx at `each` requests.
fn snapshot_of(deployment: &Deployment, each: u64) -> PathSnapshot {
    let meshed = deployment.data_plane != DataPlane::Bare;
    let handshakes = if meshed { 90 } else { 0 };
    let call =
        CallCounters { requests: 90 * each, connections: 90, handshakes, ..Default::default() };
    let gateway = ProxyCounters {
        inbound_plaintext: 90 * each,
        calls: BTreeMap::from([("nginx".into(), call)]),
        ..Default::default()
    };
    let pods: Vec<String> = deployment.pods().into_iter().map(|(pod, _)| pod).collect();
    let nginx = || pods.iter().skip(1).cloned();
    let sidecar = ProxyCounters { inbound_mtls: each, ..Default::default() };
    let sidecars = nginx().filter(|_| meshed).map(|pod| (pod, sidecar.clone()));
    let counters = sidecars.chain([("ingress".to_owned(), gateway)]).collect();
    let alone = || Occupants { own: true, foreign: vec![] };
    let bare = || pods.iter().filter(|_| !meshed).cloned();
    PathSnapshot {
        answered: nginx().map(|pod| (pod, each)).collect(),
        wire: Reading::Value(vec![Wire {
            node: "node-1".into(),
            hbone_packets: 0,
            other_packets: 4 * each,
        }]),
        rules: bare().map(|pod| (pod, String::new())).collect(),
        occupants: bare().map(|pod| (pod, alone())).collect(),
        ..snapshot(Walk { server: None, report: None }, counters)
    }
}

#[test]
fn ninety_pods_make_a_dozen_claims() {
    for seen in [Ninety::bare(), Ninety::strict()] {
        let proof = seen.proof();
        assert_eq!(failed(&proof), [""; 0]);
        assert!(proof.claims.len() <= 12, "{}", listing(&proof));
    }
    insta::assert_snapshot!("ninety_bare", listing(&Ninety::bare().proof()));
    insta::assert_snapshot!("ninety_strict", listing(&Ninety::strict().proof()));
}

#[test]
fn of_ninety_pods_those_that_fail_are_named_and_the_rest_counted() {
    let mut seen = Ninety::strict();
    for pod in ["nginx-7", "nginx-8", "nginx-9", "nginx-10", "nginx-90"] {
        seen.plaintext.insert(pod.into(), Plaintext::Answered(200));
    }
    let claim = seen.first_failed();
    assert_eq!(claim.claim, "nginx sidecars (90) refuse plaintext from outside of the mesh");
    let each = "an answer with status 200";
    let named = format!("nginx-7: {each}; nginx-8: {each}; nginx-9: {each}");
    assert_eq!(claim.seen, format!("{named}; 2 more that fail; 85 as expected"));
}

#[test]
fn one_pod_of_ninety_with_a_foreign_program_or_a_redirect_fails() {
    let mut seen = Ninety::bare();
    let envoy = Occupants { own: true, foreign: vec!["envoy (pid 42)".into()] };
    seen.after.occupants.insert("nginx-17".into(), envoy);
    let named = "only its own before the load, nginx-17: envoy (pid 42); 89 as expected after it";
    assert_eq!(seen.first_failed().seen, named);
    let mut seen = Ninety::bare();
    let script = redirect::script(Bypass::Uid(1337), None);
    seen.before.rules.insert("nginx-90".into(), script);
    assert!(seen.first_failed().seen.starts_with("nginx-90: 2 such rules; 89 as expected"));
}

#[test]
fn one_pod_of_ninety_that_was_not_looked_at_fails() {
    let mut seen = Ninety::bare();
    seen.before.occupants.remove("nginx-17");
    assert!(seen.first_failed().seen.starts_with("nginx-17: not looked at; 89 as expected"));
}

#[test]
fn a_request_that_nginx_did_not_answer_fails_in_any_variant() {
    for mut seen in [Ninety::bare(), Ninety::strict()] {
        *seen.after.answered.get_mut("nginx-90").unwrap() -= 1;
        let claim = seen.first_failed();
        assert_eq!(claim.claim, "nginx: its pods answered exactly the requests that were sent");
        assert_eq!(claim.seen, "1799");
    }
}

#[test]
fn a_pod_of_ninety_that_got_nothing_is_named() {
    let mut seen = Ninety::bare();
    *seen.after.answered.get_mut("nginx-90").unwrap() -= 20;
    *seen.after.answered.get_mut("nginx-1").unwrap() += 20;
    let claim = seen.first_failed();
    assert_eq!(claim.claim, "nginx: each of its 90 pods got requests");
    assert_eq!(claim.seen, "nginx-90: 0; 89 as expected");
}

#[test]
fn hbone_on_the_wire_of_another_variant_fails() {
    for mut seen in [Ninety::bare(), Ninety::strict()] {
        wires(&mut seen.after)[0].hbone_packets = 2;
        let claim = seen.first_failed();
        assert_eq!(claim.claim, "no HBONE crossed a node's wire");
        assert_eq!(claim.seen, "node-1 2");
    }
}

#[test]
fn wires_that_could_not_be_read_are_left_out_where_there_is_no_hbone() {
    for mut seen in [Ninety::bare(), Ninety::strict()] {
        seen.after.wire = Reading::Missing("no bridges here".into());
        let proof = seen.proof();
        assert_eq!(failed(&proof), [""; 0]);
        let left_out = LeftOut::NoHbone { why: "no bridges here".into() };
        assert!(proof.left_out.contains(&left_out), "{:?}", proof.left_out);
    }
}
