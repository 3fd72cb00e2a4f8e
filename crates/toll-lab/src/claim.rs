//! Proof that the traffic of an arm took the path that its variant claims (docs/method.md rule 7).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All claims about the path of one arm in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Each with what was expected and what was seen.
    pub claims: Vec<Claim>,
    /// What could not be claimed, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// How often requests, or the queries that they led to, crossed each sidecar; empty without sidecars.
    #[serde(default)]
    pub traversals: Vec<Traversal>,
    /// Calls whose number is observed; none where all are known before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallsSeen>,
    /// Spans that the collector got in the window; absent where no agent runs or the load does not say of every
    /// request how many it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
}

/// How often a program of the user's made a call in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsSeen {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// As a proxy or the callee counted them; absent where nobody does.
    pub calls: Option<u64>,
    /// Requests that the entry got.
    pub requests: u64,
}

/// Spans that the requests of the window left at the collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spans {
    /// One a service, in the order of the deployment.
    pub services: Vec<ServiceSpans>,
    /// Requests that were sent, each of which should leave one trace.
    pub requests: u64,
    /// Traces that arrived with all their spans, each below its right parent.
    pub whole: u64,
}

/// Spans of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What it is about.
    pub topic: Topic,
    /// For instance `client sidecar, inbound: every request was counted`.
    pub claim: String,
    /// What a true claim would show.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// Whether the two agree.
    pub holds: bool,
}

impl Claim {
    pub(crate) fn about(self, topic: Topic) -> Self {
        Self { topic, ..self }
    }
}

/// What a claim is about: those that sum the others up, in the order in which a report names them first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Connections that the SNI proxy took.
    SniProxy,
    /// That a client without an identity of the mesh is refused.
    Identity,
    /// That connections to an external service come from the egress gateway's address.
    EgressAddress,
    /// That traffic went past every sidecar.
    Bypass,
    /// Whose TLS it is.
    EndToEnd,
    /// How often requests crossed proxies, and what crossed the wires between nodes.
    Crossings,
    /// Writes that were acknowledged.
    Acknowledged,
    /// Writes that were made twice.
    Doubled,
    /// Spans that the collector got.
    Spans,
    /// Anything else.
    Other,
}

/// What a proof could not claim, with what a sentence about it needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "most fields say it by their names")]
pub enum LeftOut {
    /// How a request reaches a program of the user's own, which does not report it.
    Arrival {
        /// None for the load.
        caller: Option<String>,
        service: String,
    },
    /// What each pod of a service has counted: they were not asked one by one.
    EachPod { service: String },
    /// That each pod of a service got requests: a cluster spreads connections over them, not requests.
    Shares { service: String },
    /// How many sidecars each request crossed: a program of the user's own asks the database as often as it likes.
    Crossings { database: String },
    /// That no request crossed a sidecar: no service reports its requests.
    NoCrossing,
    /// How many queries a database got: those of a program of the user's own are not known.
    Queries {
        database: String,
        /// The program that asks it.
        program: String,
    },
    /// How many queries the sidecars on the way to a database passed on: they do not read them.
    QueriesBySidecars { database: String },
    /// How many operations the proxies on the way to an external service passed on: they do not read its TLS.
    OperationsByProxies { service: String },
    /// The rows that were written to a database: the study does not say how to count them.
    Rows { database: String },
    /// Which certificates an external service saw its callers show.
    ClientCertificates {
        service: String,
        /// Why it does not say.
        why: String,
    },
    /// That HBONE crossed a node's wire: no service calls another.
    Hbone,
    /// That no HBONE crossed a node's wire.
    NoHbone {
        /// Why the wires could not be read.
        why: String,
    },
    /// Why spans are missing.
    MissingSpans {
        /// How many are.
        missing: u64,
        /// Things that the collector could not take.
        refused: u64,
    },
    /// How many spans each request leaves, and whose children they are: the load does not say how many there should be.
    SpanCounts,
    /// Whose children the spans of a service are: its caller leaves none.
    SpanParents { service: String, caller: String },
    /// That no agent but the measured one is in the JVMs: the measured one hides it.
    FurtherAgents,
    /// That an agent is in a pod: it runs no JVM.
    NoJvm { pod: String },
    /// Which programs and firewall rules belong to a pod: all pods share the machine's network.
    SharedNetwork,
    /// Whose connection it is by its address: all pods share the machine's network.
    SharedAddress,
}
