//! What probes from outside of a mesh must show.

use std::collections::BTreeMap;

use super::claims::{PodVerdict, pods_claim};
use crate::claim::Claim;
use crate::deployment::{Deployment, Mtls, Service};
use crate::evidence::Plaintext;

/// What the proxies of a service do to plaintext.
pub(crate) fn does(service: &Service, mtls: Mtls) -> &'static str {
    match (mtls, service.replicas > 1) {
        (Mtls::Strict, false) => "refuses plaintext from outside of the mesh",
        (Mtls::Strict, true) => "refuse plaintext from outside of the mesh",
        (Mtls::Permissive, false) => "answers plaintext from outside of the mesh",
        (Mtls::Permissive, true) => "answer plaintext from outside of the mesh",
    }
}

/// What became of probes from outside of the mesh, to all pods of a service.
pub(crate) fn outsider_claim(
    deployment: &Deployment,
    service: &Service,
    claim: String,
    expected: &str,
    outcomes: &BTreeMap<String, Plaintext>,
    holds: fn(&Plaintext) -> bool,
) -> Claim {
    let of_pod = |pod: String| {
        let outcome = outcomes.get(&pod);
        PodVerdict { pod, seen: outcome_text(outcome), holds: outcome.is_some_and(holds) }
    };
    let pods = deployment.pods().into_iter().filter(|(_, of)| of.name == service.name);
    let pods: Vec<PodVerdict> = pods.map(|(pod, _)| of_pod(pod)).collect();
    pods_claim(claim, expected.to_owned(), &pods)
}

/// What a sidecar leaves of a connection that it refuses.
pub(crate) const CLOSED: &str = "connection closed without an answer";

/// What a permissive proxy lets through.
pub(crate) const AN_ANSWER: &str = "an answer";

pub(crate) fn outcome_text(outcome: Option<&Plaintext>) -> String {
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
