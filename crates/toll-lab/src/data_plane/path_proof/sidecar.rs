//! What the sidecars of services that speak HTTP must have counted, and what probes of a mesh must show.

use std::collections::BTreeMap;

use super::claims::{OfPod, count_claim, pods_claim};
use super::expected::{Bounds, Expected};
use super::trace::{Hop, peer_claim, server_claim};
use super::{SIDECAR_SERVER, SIDECAR_SOURCE, Window, distinct, proxies_of};
use crate::data_plane::identity::spiffe_id;
use crate::data_plane::probe::{Plaintext, Walk};
use crate::data_plane::{CallCounters, ProxyCounters};
use crate::deployment::{DataPlane, Deployment, Mtls, Service};
use crate::proof::Claim;

/// What comes in and, but for queries, what goes out.
pub(super) fn claims(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> Vec<Claim> {
    let mut claims: Vec<Claim> = inbound_claims(seen, expected, service).into();
    for callee in distinct(service.calls.iter().map(String::as_str)) {
        let database = seen.deployment.service(callee).is_some_and(|s| s.program.is_database());
        if !database {
            claims.extend(call_claims(seen, expected, service, callee));
        }
    }
    claims
}

/// The load has no identity and comes in as plaintext; every other caller has one and must use mTLS.
fn inbound_claims(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> [Claim; 2] {
    let counted = |pick: fn(&ProxyCounters) -> u64| seen.growth(&service.name, pick);
    let mtls = counted(|c| c.inbound_mtls);
    let plaintext = counted(|c| c.inbound_plaintext);
    let (own, other, way, not) = if service.name == seen.deployment.entry {
        (plaintext, mtls, "from the load", "from inside the mesh")
    } else {
        (mtls, plaintext, "over mTLS", "as plaintext")
    };
    let claim = |what: String| format!("{}, inbound: {what}", proxies_of(service));
    let every = claim(format!("every request came {way}"));
    let none = claim(format!("no request came {not}"));
    [
        count_claim(every, expected.arrivals(&service.name), own),
        count_claim(none, Bounds::exactly(0), other),
    ]
}

fn call_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    caller: &Service,
    callee: &str,
) -> Vec<Claim> {
    let calls = expected.calls(caller, callee);
    let counted = seen.growth(&caller.name, |c| c.call(callee).requests);
    let claim = format!("{}, outbound: every call to {callee} was counted", proxies_of(caller));
    let mut claims = vec![count_claim(claim, calls, counted)];
    if calls.least > 0 {
        claims.push(handshake_claim(seen, &caller.name, callee));
    }
    claims
}

pub(super) fn handshake_claim(seen: &Window<'_>, caller: &str, callee: &str) -> Claim {
    let by_gateway = seen.deployment.service(caller).is_some_and(|s| !s.takes_sidecar());
    let whose = if by_gateway { "from the gateway to the sidecar" } else { "between the sidecars" };
    let claim = format!("{caller} to {callee}: every connection {whose} is TLS");
    tls_claim(seen, &seen.pods_of(caller), claim, |c| c.call(callee))
}

/// Judged since the proxies' start: connections that a window uses may be older than it.
pub(super) fn tls_claim(
    seen: &Window<'_>,
    pods: &[String],
    claim: String,
    pick: impl Fn(&ProxyCounters) -> CallCounters,
) -> Claim {
    let total = |field: fn(CallCounters) -> u64| seen.total_in(pods, |c| field(pick(c)));
    let made = total(|call| call.connections).saturating_sub(total(|call| call.failed_connections));
    let handshakes = total(|call| call.handshakes);
    Claim {
        claim,
        expected: "at least one handshake, and no connection without one".to_owned(),
        seen: format!("{handshakes} handshakes on {made} connections"),
        holds: handshakes >= 1 && handshakes >= made,
    }
}

/// What one arrival of the probe at a service shows.
pub(super) fn hop_claims(hop: &Hop<'_>) -> Vec<Claim> {
    let mut claims = vec![peer_claim(hop, &[SIDECAR_SOURCE], "its own sidecar's")];
    claims.extend(hop.caller.map(|caller| identity_claim(hop, caller)));
    claims
}

/// Envoy writes who it is (`By`) and the URI of the peer's certificate into `x-forwarded-client-cert`.
fn identity_claim(hop: &Hop<'_>, caller: &str) -> Claim {
    let expected = format!("By={} and URI={}", spiffe_id(&hop.report.service), spiffe_id(caller));
    let header = hop.report.headers.get("x-forwarded-client-cert");
    let names =
        |key: &str| header.and_then(|text| text.split(';').find_map(|part| part.strip_prefix(key)));
    Claim {
        claim: format!("{}: the sidecars know each other by their SPIFFE IDs", hop.name()),
        holds: names("By=") == Some(&spiffe_id(&hop.report.service))
            && names("URI=") == Some(&spiffe_id(caller)),
        expected,
        seen: header.map_or("no x-forwarded-client-cert".to_owned(), String::clone),
    }
}

/// Says nothing behind a gateway, which puts the same header on answers in all variants.
pub(super) fn server_header(walk: &Walk) -> Claim {
    server_claim(walk, SIDECAR_SERVER, |is| is == Some(SIDECAR_SERVER))
}

pub(super) fn plaintext_claims(
    deployment: &Deployment,
    outcomes: &BTreeMap<String, Plaintext>,
) -> Vec<Claim> {
    let DataPlane::Sidecar { mtls, .. } = deployment.data_plane else {
        return Vec::new();
    };
    let behind = |service: &&Service| service.takes_sidecar() && service.name != deployment.entry;
    let claim = |service: &Service| {
        let claim = format!("{} {}", proxies_of(service), does(service, mtls));
        let (expected, holds): (_, fn(&Plaintext) -> bool) = match mtls {
            Mtls::Strict => (CLOSED, |outcome| *outcome == Plaintext::Closed),
            Mtls::Permissive => (AN_ANSWER, |outcome| matches!(outcome, Plaintext::Answered(_))),
        };
        outsider_claim(deployment, service, claim, expected, outcomes, holds)
    };
    deployment.services.iter().filter(behind).map(claim).collect()
}

/// What the proxies of a service do to plaintext.
pub(super) fn does(service: &Service, mtls: Mtls) -> &'static str {
    match (mtls, service.replicas > 1) {
        (Mtls::Strict, false) => "refuses plaintext from outside of the mesh",
        (Mtls::Strict, true) => "refuse plaintext from outside of the mesh",
        (Mtls::Permissive, false) => "answers plaintext from outside of the mesh",
        (Mtls::Permissive, true) => "answer plaintext from outside of the mesh",
    }
}

/// What became of probes from outside of the mesh, to all pods of a service.
pub(super) fn outsider_claim(
    deployment: &Deployment,
    service: &Service,
    claim: String,
    expected: &str,
    outcomes: &BTreeMap<String, Plaintext>,
    holds: fn(&Plaintext) -> bool,
) -> Claim {
    let of_pod = |pod: String| {
        let outcome = outcomes.get(&pod);
        OfPod { pod, seen: outcome_text(outcome), holds: outcome.is_some_and(holds) }
    };
    let pods = deployment.pods().into_iter().filter(|(_, of)| of.name == service.name);
    let pods: Vec<OfPod> = pods.map(|(pod, _)| of_pod(pod)).collect();
    pods_claim(claim, expected.to_owned(), &pods)
}

/// What a sidecar leaves of a connection that it refuses.
pub(super) const CLOSED: &str = "connection closed without an answer";

/// What a permissive proxy lets through.
pub(super) const AN_ANSWER: &str = "an answer";

pub(super) fn outcome_text(outcome: Option<&Plaintext>) -> String {
    match outcome {
        // A database answers with a byte, which is no status.
        Some(Plaintext::Answered(0..100)) => AN_ANSWER.to_owned(),
        Some(Plaintext::Answered(status)) => format!("an answer with status {status}"),
        Some(Plaintext::Closed) => CLOSED.to_owned(),
        Some(Plaintext::Refused) => "connection refused".to_owned(),
        Some(Plaintext::Unclear(why)) => format!("unclear: {why}"),
        None => "not tried".to_owned(),
    }
}
