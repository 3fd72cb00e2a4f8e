//! What a sidecar has counted, in words that fit any proxy; the adapter of each proxy translates.

use std::collections::BTreeMap;

/// Counters of one sidecar since it started. None ever decreases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyCounters {
    /// Requests that came in over mTLS.
    pub inbound_mtls: u64,
    /// Requests that came in as plaintext.
    pub inbound_plaintext: u64,
    /// By the name of the called service.
    pub calls: BTreeMap<String, CallCounters>,
}

impl ProxyCounters {
    /// Counters of the calls to `service`; all zero when there were none.
    pub(crate) fn call(&self, service: &str) -> CallCounters {
        self.calls.get(service).copied().unwrap_or_default()
    }
}

/// Counters of one sidecar's calls to one service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallCounters {
    /// Requests sent, those sent again included.
    pub requests: u64,
    /// Requests that the sidecar sent again of its own accord.
    pub retries: u64,
    /// Connections tried.
    pub connections: u64,
    /// Connections that did not come about.
    pub failed_connections: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
}
