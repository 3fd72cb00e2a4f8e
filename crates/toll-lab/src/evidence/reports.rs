//! What probes of a deployed application bring back: how one request looked to every built-in service on its
//! way, and what became of plaintext. Sends nothing and judges nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

/// How a request looked to one built-in service, and to those that it called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PathReport {
    /// The service that reports.
    pub service: String,
    /// Where its connection came from.
    pub peer: SocketAddr,
    /// Request headers; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Requests that the service got before, probes apart.
    pub requests: u64,
    /// Those of them that bore a header of a proxy.
    pub marked: u64,
    /// Those of them that bore the client certificate of a caller, which only a sidecar over mTLS adds.
    #[serde(default)]
    pub certified: u64,
    /// Those of them that bore the headers of both sides of Mesher.
    #[serde(default)]
    pub by_mesher: u64,
    /// What the called services answered, in order; none for a service that does not report.
    pub calls: Vec<Option<PathReport>>,
    /// Where its connection to the database comes from, as the database sees it; none without a database.
    #[serde(default)]
    pub database_peer: Option<IpAddr>,
}

impl PathReport {
    /// The report of `service`, this one or one below it.
    pub(crate) fn find(&self, service: &str) -> Option<&Self> {
        if self.service == service {
            return Some(self);
        }
        self.calls.iter().flatten().find_map(|call| call.find(service))
    }
}

/// What a probe of the whole path brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The `server` header of the entry's answer.
    pub server: Option<String>,
    /// None when the answer is not a report.
    pub report: Option<PathReport>,
}

/// What became of a plaintext request from outside of the mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plaintext {
    /// It was answered with this status code.
    Answered(u16),
    /// The connection was accepted, then closed without an answer.
    Closed,
    /// Nobody listens there.
    Refused,
    /// No connection, or no answer in time; proves nothing.
    Unclear(String),
}
