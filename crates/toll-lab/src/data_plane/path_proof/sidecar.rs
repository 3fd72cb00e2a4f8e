//! What the sidecars of services that speak HTTP must have counted, and what probes of a mesh must show.

use std::collections::BTreeMap;

use super::claims::count_claim;
use super::expected::{Bounds, Expected};
use super::trace::{Hop, peer_claim, server_claim};
use super::{SIDECAR_SERVER, SIDECAR_SOURCE, Window, distinct, proxies_of};
use crate::data_plane::ProxyCounters;
use crate::data_plane::identity::spiffe_id;
use crate::data_plane::probe::{Plaintext, Walk};
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

/// Judged since the proxy's start: connections that a window uses may be older than it.
pub(super) fn handshake_claim(seen: &Window<'_>, caller: &str, callee: &str) -> Claim {
    let total = |pick: fn(&ProxyCounters, &str) -> u64| seen.total(caller, |c| pick(c, callee));
    let tried = total(|c, callee| c.call(callee).connections);
    let made = tried.saturating_sub(total(|c, callee| c.call(callee).failed_connections));
    let handshakes = total(|c, callee| c.call(callee).handshakes);
    let by_gateway = seen.deployment.service(caller).is_some_and(|s| !s.program.takes_sidecar());
    let whose = if by_gateway { "from the gateway to the sidecar" } else { "between the sidecars" };
    Claim {
        claim: format!("{caller} to {callee}: every connection {whose} is TLS"),
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
    let behind =
        |service: &Service| service.program.takes_sidecar() && service.name != deployment.entry;
    let pods = deployment.pods().into_iter().filter(|(_, service)| behind(service));
    pods.map(|(pod, _)| plaintext_claim(mtls, &pod, outcomes.get(&pod))).collect()
}

fn plaintext_claim(mtls: Mtls, pod: &str, outcome: Option<&Plaintext>) -> Claim {
    let (does, holds) = match mtls {
        Mtls::Strict => ("refuses", matches!(outcome, Some(Plaintext::Closed))),
        Mtls::Permissive => ("answers", matches!(outcome, Some(Plaintext::Answered(_)))),
    };
    Claim {
        claim: format!("{pod} sidecar {does} plaintext from outside of the mesh"),
        expected: match mtls {
            Mtls::Strict => "connection closed without an answer".to_owned(),
            Mtls::Permissive => "an answer".to_owned(),
        },
        seen: match outcome {
            // A database answers with a byte, which is no status.
            Some(Plaintext::Answered(0..100)) => "an answer".to_owned(),
            Some(Plaintext::Answered(status)) => format!("an answer with status {status}"),
            Some(Plaintext::Closed) => "connection closed without an answer".to_owned(),
            Some(Plaintext::Unclear(why)) => format!("unclear: {why}"),
            None => "not tried".to_owned(),
        },
        holds,
    }
}
