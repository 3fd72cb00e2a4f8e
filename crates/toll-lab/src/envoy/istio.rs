//! The marks that Istio's Envoys leave: headers, addresses and certificates by which a path is known.

use std::net::Ipv4Addr;

use crate::certificates::mesh::spiffe_id;
use crate::evidence::PathReport;

/// Where a sidecar's own connections to its application come from.
pub(crate) const SIDECAR_SOURCE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// The `server` header that a sidecar puts on answers.
pub(crate) const SIDECAR_SERVER: &str = "istio-envoy";

/// Request headers that only proxies add: whole names, or families that end with a hyphen.
pub(crate) const PROXY_HEADERS: [&str; 5] =
    ["forwarded", "via", "x-envoy-", "x-forwarded-", "x-request-id"];

/// Those that a gateway adds as well; never a client's certificate.
pub(crate) const GATEWAY_HEADERS: [&str; 5] =
    ["x-envoy-", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-request-id"];

/// Those that services hand on, so that they tell nothing of the hop that they came over.
pub(crate) const HANDED_ON: [&str; 1] = ["x-request-id"];

/// Where Envoy writes who it is (`By`) and the URI of the peer's certificate.
const PEER_HEADER: &str = "x-forwarded-client-cert";

/// Who took a request over mTLS and from whom, held against the names of the services.
#[derive(Debug)]
pub(crate) struct Identities {
    /// What the header should say.
    pub(crate) expected: String,
    /// What it says.
    pub(crate) seen: String,
    /// Whether both are as they should be.
    pub(crate) hold: bool,
}

impl Identities {
    /// Of a request of `caller`, as it arrived.
    pub(crate) fn of_arrival(report: &PathReport, caller: &str) -> Self {
        let (taker, caller) = (spiffe_id(&report.service), spiffe_id(caller));
        let header = report.headers.get(PEER_HEADER);
        let names = |key: &str| {
            header.and_then(|text| text.split(';').find_map(|part| part.strip_prefix(key)))
        };
        Self {
            hold: names("By=") == Some(&taker) && names("URI=") == Some(&caller),
            expected: format!("By={taker} and URI={caller}"),
            seen: header.map_or(format!("no {PEER_HEADER}"), String::clone),
        }
    }
}
