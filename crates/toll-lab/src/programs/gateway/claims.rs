//! What a gateway must have counted, the same in every variant.

use crate::claim::Claim;
use crate::deployment::Service;
use crate::proof::claims::{count_claim, distinct, proxies_of};
use crate::proof::expected::Expected;
use crate::proof::window::Window;

/// `encryption` says of each service that it calls what must be true of the connections there.
pub(crate) fn claims(
    seen: &Window<'_>,
    expected: &Expected<'_>,
    gateway: &Service,
    encryption: impl Fn(&str) -> Option<Claim>,
) -> Vec<Claim> {
    let (name, proxies) = (&gateway.name, proxies_of(gateway));
    let claim = format!("{proxies}: every request came from the load");
    let counted = seen.growth(name, |c| c.inbound_plaintext);
    let mut claims = vec![count_claim(claim, expected.arrivals(name), counted)];
    for callee in distinct(gateway.calls.iter().map(String::as_str)) {
        let claim = format!("{proxies}: every request was handed to {callee}");
        let counted = seen.growth(name, |c| c.call(callee).requests);
        claims.push(count_claim(claim, expected.calls(gateway, callee), counted));
        claims.extend(encryption(callee));
    }
    claims
}
