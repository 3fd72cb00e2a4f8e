//! Proof that the traffic of an arm took the path that its variant claims (METHOD.md rule 7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All claims about the path of one arm in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Each with what was expected and what was seen.
    pub claims: Vec<Claim>,
    /// What could not be claimed, and why.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// How often requests, or the queries that they led to, crossed each sidecar; empty without sidecars.
    #[serde(default)]
    pub traversals: Vec<Traversal>,
    /// Spans that the collector got in the window; absent where no agent runs or the load does not say of every
    /// request how many it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
}

/// Spans that the requests of the window left at the collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spans {
    /// One a service, in the order of the deployment.
    pub services: Vec<ServiceSpans>,
    /// Requests that were sent, each of which should leave one trace.
    pub requests: u64,
    /// Traces that arrived with all their spans, each below its right parent.
    pub whole: u64,
}

/// Spans of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSpans {
    /// Name of the service.
    pub service: String,
    /// What the requests should leave.
    pub expected: u64,
    /// What arrived.
    pub arrived: u64,
}

/// One way through one sidecar, and how often it was taken in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traversal {
    /// Name of the sidecar's pod.
    pub pod: String,
    /// Seen from the pod.
    pub direction: Direction,
    /// The called service; absent inbound.
    pub callee: Option<String>,
    /// As counted by the sidecar, or for a database by the server behind it.
    pub counted: u64,
}

/// Which way traffic goes, seen from the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Towards the pod's own program.
    Inbound,
    /// Away from it.
    Outbound,
}

/// What all loads sent to the entry between the opening and the closing of a proof.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// All requests.
    pub requests: u64,
    /// Those among them that were to write.
    pub writes: u64,
    /// Writes that were answered with a status of success.
    pub acknowledged: u64,
    /// The same requests by what they asked for.
    pub asked: Vec<Asked>,
}

impl Traffic {
    /// Spans that all requests leave where they are traced, by service; none when that is not known of some.
    pub(crate) fn spans(&self) -> Option<BTreeMap<&str, u64>> {
        let mut spans = BTreeMap::new();
        for asked in self.asked.iter().filter(|asked| asked.requests > 0) {
            for (service, each) in &asked.spans {
                *spans.entry(service.as_str()).or_default() += each * asked.requests;
            }
            if asked.spans.is_empty() {
                return None;
            }
        }
        (!spans.is_empty()).then_some(spans)
    }
}

/// Requests that asked for the same thing, guards and warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// HTTP method.
    pub method: String,
    /// Path and query, placeholders included.
    pub path: String,
    /// Requests sent.
    pub requests: u64,
    /// Those of them that were answered with a status of success.
    pub acknowledged: u64,
    /// Spans that one of them leaves where it is traced, by service; empty when that is not known.
    pub spans: BTreeMap<String, u64>,
}

impl Proof {
    /// Whether every claim holds. A proof without claims proves nothing.
    pub fn holds(&self) -> bool {
        !self.claims.is_empty() && self.claims.iter().all(|c| c.holds)
    }
}

/// One claim about the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// For instance `client sidecar, inbound: every request was counted`.
    pub claim: String,
    /// What a true claim would show.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// Whether the two agree.
    pub holds: bool,
}
