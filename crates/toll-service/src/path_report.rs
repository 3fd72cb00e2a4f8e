//! The path of a request as the applications saw it: who connected, with which headers, at every service; and
//! how many requests came before it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hyper::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::request::WholeRequest;

/// The header that asks for a report instead of an answer.
pub(crate) const PROBE_HEADER: &str = "x-toll-probe";

/// What one service saw of a request, and the services that it called.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PathReport {
    /// The service that reports.
    pub(crate) service: String,
    /// The other end of the connection as this service sees it.
    pub(crate) peer: SocketAddr,
    /// All headers of the request.
    pub(crate) headers: BTreeMap<String, String>,
    /// Requests that this service got so far, probes apart.
    pub(crate) requests: u64,
    /// Those of them that bore a header of a proxy.
    pub(crate) marked: u64,
    /// Those of them whose last proxy forwarded the certificate that the one before it had shown.
    pub(crate) certified: u64,
    /// Those of them that bore the headers of both sides of Mesher.
    #[serde(default)]
    pub(crate) by_mesher: u64,
    /// The reports of the called services, in order.
    pub(crate) calls: Vec<PathReport>,
    /// Where a connection of this service comes from, as its database sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) database_peer: Option<String>,
}

/// A request as the service that reports saw it.
pub(crate) struct Seen<'a> {
    pub(crate) request: &'a WholeRequest,
    pub(crate) peer: SocketAddr,
    /// The requests before it.
    pub(crate) arrivals: &'a Arrivals,
}

impl PathReport {
    /// The report of `service`, with those of the services that it called.
    pub(crate) fn new(
        service: &str,
        seen: Seen,
        calls: Vec<Self>,
        database_peer: Option<String>,
    ) -> Self {
        let Seen { request, peer, arrivals } = seen;
        Self {
            service: service.into(),
            peer,
            headers: as_text(request.headers()),
            requests: arrivals.requests(),
            marked: arrivals.marked(),
            certified: arrivals.certified(),
            by_mesher: arrivals.by_mesher(),
            calls,
            database_peer,
        }
    }

    /// The body of the answer to a probe.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and addresses always make JSON")
    }
}

/// Headers by lower-case name; values of the same name are joined by commas (RFC 9110, 5.3).
pub(crate) fn as_text(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        texts
            .entry(name.to_string())
            .and_modify(|text| *text = format!("{text}, {value}"))
            .or_insert_with(|| value.to_string());
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_same_header_are_joined() {
        let mut headers = HeaderMap::new();
        headers.append("via", "a".parse().unwrap());
        headers.append("via", "b".parse().unwrap());
        assert_eq!(as_text(&headers)["via"], "a, b");
    }
}
