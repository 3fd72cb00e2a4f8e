//! What the gateways must have counted, the same in every variant; only in a mesh do they speak TLS.

use super::claims::count_claim;
use super::expected::{Bounds, Expected};
use super::sidecar::handshake_claim;
use super::{Window, distinct, proxies_of};
use crate::deployment::{DataPlane, Service};
use crate::proof::Claim;

pub(super) fn claims(seen: &Window<'_>, expected: &Expected<'_>, gateway: &Service) -> Vec<Claim> {
    let (name, proxies) = (&gateway.name, proxies_of(gateway));
    let claim = format!("{proxies}: every request came from the load");
    let counted = seen.growth(name, |c| c.inbound_plaintext);
    let mut claims = vec![count_claim(claim, expected.arrivals(name), counted)];
    for callee in distinct(gateway.calls.iter().map(String::as_str)) {
        let claim = format!("{proxies}: every request was handed to {callee}");
        let counted = seen.growth(name, |c| c.call(callee).requests);
        claims.push(count_claim(claim, expected.calls(gateway, callee), counted));
        match seen.deployment.data_plane {
            DataPlane::Bare | DataPlane::Agent(_) => {
                claims.push(no_handshake(seen, name, callee));
            }
            DataPlane::Sidecar { .. } => claims.push(handshake_claim(seen, name, callee)),
            // Judged with all that is sent over HBONE.
            DataPlane::Ambient(_) => {}
        }
    }
    claims
}

fn no_handshake(seen: &Window<'_>, gateway: &str, callee: &str) -> Claim {
    let claim = format!("{gateway} to {callee}: no connection is TLS");
    let made = seen.total(gateway, |c| c.call(callee).handshakes);
    count_claim(claim, Bounds::exactly(0), Some(made))
}
