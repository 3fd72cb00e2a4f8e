//! What sidecars must have counted, and what probes of a mesh of them must show.

use std::collections::BTreeMap;

use crate::claim::{Claim, Topic};
use crate::deployment::{DataPlane, Deployment, Mtls, Service};
use crate::envoy::istio::{Identities, SIDECAR_SERVER, SIDECAR_SOURCE};
use crate::evidence::{Plaintext, ProxyCounters, Walk};
use crate::proof::bounds::Bounds;
use crate::proof::claims::{count_claim, distinct, proxies_of, tls_claim};
use crate::proof::expected::Expected;
use crate::proof::outsider::{AN_ANSWER, CLOSED, does, outsider_claim};
use crate::proof::trace::{Hop, peer_claim, server_claim};
use crate::proof::window::Window;

/// What comes in and, but for queries, what goes out.
pub(super) fn service_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    service: &Service,
) -> Vec<Claim> {
    let mut claims: Vec<Claim> = inbound_claims(seen, expected, service).into();
    for callee in distinct(service.calls.iter().map(String::as_str)) {
        if !seen.deployment.is_database(callee) {
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

/// What one arrival of the probe at a service shows.
pub(super) fn hop_claims(hop: &Hop<'_>) -> Vec<Claim> {
    let mut claims = vec![peer_claim(hop, &[SIDECAR_SOURCE], "its own sidecar's")];
    claims.extend(hop.caller.map(|caller| identity_claim(hop, caller)));
    claims
}

fn identity_claim(hop: &Hop<'_>, caller: &str) -> Claim {
    let Identities { expected, seen, hold } = Identities::of_arrival(hop.report, caller);
    let claim = format!("{}: the sidecars know each other by their SPIFFE IDs", hop.name());
    Claim { topic: Topic::Other, claim, expected, seen, holds: hold }
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
