//! Proves that the traffic of an arm went through the proxies of a mesh that is installed in the cluster, by what those
//! say of it, by what reached the programs, and by what became of probes from outside.

use super::{Counted, Mesh, istio, linkerd};
use crate::claim::{Claim, Proof, Topic};
use crate::deployment::{DataPlane, Mtls, Service};
use crate::evidence::Outsider;
use crate::evidence::Plaintext;
use crate::programs::expected;
use crate::proof::bounds::Bounds;
use crate::proof::claims::{at_least_claim, count_claim, distinct};
use crate::proof::expected::{Expected, calls_seen};
use crate::proof::outsider::{AN_ANSWER, CLOSED, does, outsider_claim};
use crate::proof::own_counts::{self, Mark};
use crate::proof::trace::{Hop, Traces};
use crate::proof::window::Window;

/// What the proxies said at both ends of a window.
#[derive(Debug, Clone, Copy)]
pub(in crate::kubernetes) struct Evidence<'a> {
    pub(in crate::kubernetes) mesh: Mesh,
    /// Of the arm.
    pub(in crate::kubernetes) namespace: &'a str,
    pub(in crate::kubernetes) before: &'a Counted,
    pub(in crate::kubernetes) after: &'a Counted,
}

/// The claims of an arm that is in this mesh.
pub(in crate::kubernetes) fn prove(
    seen: &Window<'_>,
    evidence: &Evidence<'_>,
    outsider: &Outsider,
) -> Proof {
    let expected = expected(seen);
    let traces = Traces::judge(seen, |hop| identity_claim(hop, evidence).into_iter().collect());
    let mut claims = Vec::new();
    for service in seen.deployment.services.iter().filter(|service| service.takes_sidecar()) {
        claims.extend(inbound_claims(seen, &expected, evidence, service));
        claims.extend(outbound_claims(&expected, evidence, service));
    }
    let mark = match evidence.mesh {
        Mesh::Istio => Mark::Sidecar,
        // It puts no header on requests that Istio's proxies do.
        Mesh::Linkerd | Mesh::IstioAmbient => Mark::Nobody,
    };
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, mark);
    claims.extend(own);
    claims.extend(traces.claims);
    claims.extend(plaintext_claims(seen, outsider));
    let left_out = [traces.left_out, not_asked].concat();
    Proof { claims, left_out, traversals: Vec::new(), calls: calls_seen(seen), spans: None }
}

fn inbound_claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    evidence: &Evidence<'_>,
    service: &Service,
) -> Vec<Claim> {
    let name = &service.name;
    let is_entry = *name == seen.deployment.entry;
    let callers: Vec<&str> =
        seen.deployment.callers_of(name).map(|caller| caller.name.as_str()).collect();
    let of_callers = |counted: &Counted| {
        let own = |(callee, caller): &(String, String)| {
            callee == name && callers.contains(&caller.as_str())
        };
        counted.over_mtls.iter().filter(|(way, _)| own(way)).map(|(_, count)| count).sum::<u64>()
    };
    let others = |counted: &Counted| counted.from_others.get(name).copied().unwrap_or(0);
    let plaintext = |counted: &Counted| counted.plaintext.get(name).copied().unwrap_or(0);
    let grew = |of: &dyn Fn(&Counted) -> u64| of(evidence.after).checked_sub(of(evidence.before));
    let none = Bounds::exactly(0);
    let mut claims = Vec::new();
    match evidence.mesh {
        Mesh::Istio | Mesh::Linkerd => {
            let called = expected.called(name);
            let what = format!("{name}: every call came over mTLS from a service that may call it");
            claims.push(count_claim(what, called, grew(&of_callers)));
            let from_load = if is_entry { Bounds::exactly(seen.traffic.requests) } else { none };
            let what = match is_entry {
                true => format!("{name}: every request of the load came as plaintext"),
                false => format!("{name}: no request came as plaintext"),
            };
            claims.push(count_claim(what, from_load, grew(&plaintext)));
        }
        // It counts connections, which live longer than a window.
        Mesh::IstioAmbient => {
            if !callers.is_empty() {
                let what =
                    format!("{name}: connections came over mTLS from a service that may call it");
                claims.push(at_least_claim(what, 1, Some(of_callers(evidence.after))));
            }
            if !is_entry {
                let what = format!("{name}: no connection came as plaintext");
                claims.push(count_claim(what, none, grew(&plaintext)));
            }
        }
    }
    let what = format!("{name}: nothing came from another identity");
    claims.push(count_claim(what, none, grew(&others)));
    claims
}

fn outbound_claims(
    expected: &Expected<'_>,
    evidence: &Evidence<'_>,
    service: &Service,
) -> Vec<Claim> {
    if evidence.mesh == Mesh::IstioAmbient {
        return Vec::new();
    }
    let claim = |callee: &str| {
        let way = (service.name.clone(), callee.to_owned());
        let count = |counted: &Counted| counted.sent.get(&way).copied().unwrap_or(0);
        let grew = count(evidence.after).checked_sub(count(evidence.before));
        let what = format!("{}'s proxy: every call to {callee} was counted", service.name);
        count_claim(what, expected.calls(service, callee), grew)
    };
    distinct(service.calls.iter().map(String::as_str)).into_iter().map(claim).collect()
}

/// Who called, as the program was told by the proxy in front of it; nothing where a mesh tells nothing.
fn identity_claim(hop: &Hop<'_>, evidence: &Evidence<'_>) -> Option<Claim> {
    let caller = hop.caller?;
    let header = |name: &str| hop.report.headers.get(name).map_or("", String::as_str);
    let seen = match evidence.mesh {
        Mesh::Istio => {
            let uri = header("x-forwarded-client-cert").split(';');
            let uri = uri.filter_map(|part| part.strip_prefix("URI=")).next_back()?;
            istio::service_of(uri, evidence.namespace)
        }
        Mesh::Linkerd => linkerd::service_of(header("l5d-client-id"), evidence.namespace),
        Mesh::IstioAmbient => return None,
    };
    Some(Claim {
        topic: Topic::Identity,
        claim: format!("{}: the program is told who called", hop.name()),
        expected: caller.to_owned(),
        holds: seen.as_deref() == Some(caller),
        seen: seen.unwrap_or_else(|| "nobody of this arm".to_owned()),
    })
}

fn plaintext_claims(seen: &Window<'_>, outsider: &Outsider) -> Vec<Claim> {
    let mtls = match &seen.deployment.data_plane {
        DataPlane::Sidecar { mtls, .. } => *mtls,
        DataPlane::Ambient(ambient) => ambient.mtls,
        DataPlane::Bare | DataPlane::Agent(_) | DataPlane::Mesher { .. } => return Vec::new(),
    };
    let behind =
        |service: &&Service| service.takes_sidecar() && service.name != seen.deployment.entry;
    let claim = |service: &Service| {
        let claim = format!("{}'s proxies {}", service.name, does(service, mtls));
        let (expected, holds): (_, fn(&Plaintext) -> bool) = match mtls {
            // A proxy may also answer that it is forbidden.
            Mtls::Strict => {
                (CLOSED, |outcome| matches!(outcome, Plaintext::Closed | Plaintext::Answered(403)))
            }
            Mtls::Permissive => (AN_ANSWER, |outcome| matches!(outcome, Plaintext::Answered(_))),
        };
        outsider_claim(seen.deployment, service, claim, expected, &outsider.plaintext, holds)
    };
    seen.deployment.services.iter().filter(behind).map(claim).collect()
}
