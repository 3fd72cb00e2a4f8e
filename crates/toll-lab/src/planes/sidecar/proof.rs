//! Proves that traffic went through sidecars.

use super::claims::{handshake_claim, hop_claims, plaintext_claims, server_header, service_claims};
use super::{crossing, databases};
use crate::Role;
use crate::claim::{Claim, LeftOut, Proof};
use crate::deployment::Service;
use crate::evidence::Outsider;
use crate::planes::egress;
use crate::programs::databases::Databases;
use crate::programs::{expected, gateway};
use crate::proof::claims::{at_both_ends, either};
use crate::proof::expected::Expected;
use crate::proof::network::own_network_claims;
use crate::proof::own_counts::{self, Mark};
use crate::proof::trace::Traces;
use crate::proof::window::Window;
use crate::proof::wire;
use crate::topology::{Capture, Topology};

/// Proves that every request went through the sidecars of all services in its path, over mTLS between them.
///
/// `outsider` tells what became of probes from outside of the mesh to the pods behind the entry, and to the egress
/// gateway.
pub(crate) fn prove(seen: &Window<'_>, topology: &Topology, outsider: &Outsider) -> Proof {
    let expected = expected(seen);
    let traces = Traces::judge(seen, hop_claims);
    let databases = Databases::judge(seen, |service| match service.external {
        Some(_) => egress::claims::judge(seen, &expected, topology, Some(outsider), service),
        None => databases::judge(seen, &expected, service),
    });
    let traversals = crossing::traversals(seen, &databases);
    let (crossed, uncrossed) = either(crossing::every_request(seen, &expected, &traversals));
    // First, as reports show the first claims.
    let mut claims = databases.external_claims();
    claims.extend(crossed);
    for service in &seen.deployment.services {
        claims.extend(proxy_claims(seen, &expected, service));
    }
    let (own, not_asked) = own_counts::judge(seen, &expected, &traces.reporting, Mark::Sidecar);
    claims.extend(own);
    if !seen.is_behind_gateway() {
        claims.extend(at_both_ends(seen, |snapshot| vec![server_header(&snapshot.walk)]));
    }
    claims.extend(traces.claims);
    // Of the pods outside of the mesh: nobody looked into the others.
    claims.extend(at_both_ends(seen, |snapshot| own_network_claims(seen, snapshot)));
    claims.extend(databases.claims());
    let (carried, unread) = wire::no_hbone(seen);
    claims.extend(carried);
    claims.extend(plaintext_claims(seen.deployment, &outsider.plaintext));
    let mut left_out =
        [traces.left_out, not_asked, databases.left_out(), uncrossed, unread].concat();
    let leaves = seen.deployment.services.iter().any(|service| service.external.is_some());
    if leaves && topology.capture == Capture::Explicit {
        left_out.push(LeftOut::SharedAddress);
    }
    Proof { claims, left_out, traversals, calls: vec![], spans: None }
}

/// What the proxies of one service must have counted.
fn proxy_claims(seen: &Window<'_>, expected: &Expected<'_>, service: &Service) -> Vec<Claim> {
    match service.program.role() {
        Role::Gateway => gateway::claims::claims(seen, expected, service, |callee| {
            Some(handshake_claim(seen, &service.name, callee))
        }),
        Role::Application => service_claims(seen, expected, service),
        // What its sidecar counts is judged with the database.
        _ => Vec::new(),
    }
}
