//! What shows that every call crossed two Meshers: what the caller's counted, the headers of both on each request, who
//! dials the service, and that a call fails where the called service's own is gone.

use crate::claim::{Claim, Direction, Proof, Topic, Traversal};
use crate::deployment::Service;
use crate::programs::expected;
use crate::proof::bounds::Bounds;
use crate::proof::claims::{count_claim, distinct};
use crate::proof::expected::Expected;
use crate::proof::own_counts;
use crate::proof::trace::{Hop, Traces, peer_claim};
use crate::proof::window::Window;

use std::net::Ipv4Addr;

/// What became of a call whose called service's Meshers had been ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bereft {
    pub caller: String,
    pub callee: String,
    /// The status of the answer, or how the call ended without one.
    pub seen: String,
}

/// What the caller's Mesher answers for one that is gone.
const GONE: &str = "502";

/// Proves that every call went through the Mesher of the caller and that of the called service.
pub(crate) fn prove(seen: &Window<'_>, bereft: &[Bereft]) -> Proof {
    let expected = expected(seen);
    let traces = Traces::judge(seen, hop_claims);
    let mut claims = vec![every_call(seen, &expected)];
    claims.extend(consumer_claims(seen, &expected));
    claims.extend(own_claims(seen, &expected, &traces.reporting));
    claims.extend(traces.claims);
    claims.extend(bereft.iter().map(bereft_claim));
    Proof {
        claims,
        left_out: traces.left_out,
        traversals: traversals(seen),
        calls: vec![],
        spans: None,
    }
}

/// Callers and what they call.
pub(crate) fn calls(services: &[Service]) -> impl Iterator<Item = (&Service, &str)> {
    services.iter().flat_map(|caller| {
        let callees = distinct(caller.calls.iter().map(String::as_str)).into_iter();
        callees.map(move |callee| (caller, callee))
    })
}

fn every_call(seen: &Window<'_>, expected: &Expected<'_>) -> Claim {
    let all = calls(&seen.deployment.services);
    let made: Bounds = all.map(|(caller, callee)| expected.calls(caller, callee)).sum();
    let counted =
        calls(&seen.deployment.services).map(|(caller, callee)| count(seen, caller, callee));
    let claim = "every call crossed the Mesher of its caller".to_owned();
    count_claim(claim, made, counted.sum()).about(Topic::Crossings)
}

fn consumer_claims(seen: &Window<'_>, expected: &Expected<'_>) -> Vec<Claim> {
    let claim = |(caller, callee): (&Service, &str)| {
        let claim =
            format!("{} sidecar, outbound: every call to {callee} was counted", caller.name);
        count_claim(claim, expected.calls(caller, callee), count(seen, caller, callee))
    };
    calls(&seen.deployment.services).map(claim).collect()
}

/// A Mesher that has not called a service yet has no counter for it.
fn count(seen: &Window<'_>, caller: &Service, callee: &str) -> Option<u64> {
    seen.growth(&caller.name, |counters| counters.call(callee).requests)
}

/// What the services that report counted themselves.
fn own_claims(seen: &Window<'_>, expected: &Expected<'_>, reporting: &[&str]) -> Vec<Claim> {
    let services = reporting.iter().filter_map(|name| seen.deployment.service(name));
    let asked = services.filter(|service| own_counts::can_be_asked(seen, &service.name));
    let of = |service: &Service| {
        let name = &service.name;
        let got = format!("{name}: the application got exactly the requests that were sent");
        let bore = format!("{name}: every call to it bore X-Cse-Context and X-Forwarded-Host");
        [
            count_claim(got, expected.arrivals(name), seen.reported(service, |r| r.requests)),
            count_claim(bore, expected.called(name), seen.reported(service, |r| r.by_mesher)),
        ]
    };
    asked.flat_map(of).collect()
}

/// The load dials the entry itself.
fn hop_claims(hop: &Hop<'_>) -> Vec<Claim> {
    if hop.caller.is_none() {
        return Vec::new();
    }
    vec![peer_claim(hop, &[Ipv4Addr::LOCALHOST], "its own sidecar's")]
}

fn bereft_claim(bereft: &Bereft) -> Claim {
    let Bereft { caller, callee, seen } = bereft;
    Claim {
        topic: Topic::Other,
        claim: format!("{caller} to {callee}: a call fails once the sidecar of {callee} has ended"),
        expected: GONE.to_owned(),
        seen: seen.clone(),
        holds: seen == GONE,
    }
}

/// Out of each caller, as its Mesher counts; into each called service, as that counts what bore both headers.
fn traversals(seen: &Window<'_>) -> Vec<Traversal> {
    let mut ways = Vec::new();
    for (pod, service) in seen.deployment.pods() {
        let into = seen.reported_by(service, &pod, |report| report.by_mesher);
        if seen.deployment.callers_of(&service.name).next().is_some() {
            let (direction, counted) = (Direction::Inbound, into.unwrap_or(0));
            ways.push(Traversal { pod: pod.clone(), direction, callee: None, counted });
        }
        for callee in distinct(service.calls.iter().map(String::as_str)) {
            let counted = seen.pod_growth(&pod, |c| c.call(callee).requests).unwrap_or(0);
            let (pod, direction) = (pod.clone(), Direction::Outbound);
            ways.push(Traversal { pod, direction, callee: Some(callee.to_owned()), counted });
        }
    }
    ways
}
