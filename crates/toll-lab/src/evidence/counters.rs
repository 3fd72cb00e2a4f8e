//! What a proxy has counted, in words that fit any proxy; the adapter of each proxy translates.

use std::collections::BTreeMap;

/// Counters of one proxy since it started. None ever decreases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxyCounters {
    /// Requests that came in over mTLS.
    pub inbound_mtls: u64,
    /// Requests that came in as plaintext or, into a gateway, over TLS of the load's: from outside of the mesh.
    pub inbound_plaintext: u64,
    /// Connections of a protocol that the proxy does not read, over mTLS.
    pub tcp_mtls: TcpCounters,
    /// Such connections as plaintext.
    pub tcp_plaintext: TcpCounters,
    /// By the name of the called service.
    pub calls: BTreeMap<String, CallCounters>,
    /// What came over HBONE, by the name of the service that it was for; of a waypoint, by its own name.
    pub hbone: BTreeMap<String, HboneCounters>,
    /// What was sent over HBONE, by the name of the service (or waypoint) that took it: each request is a stream.
    pub tunnels: BTreeMap<String, CallCounters>,
    /// Of a sidecar: connections to addresses that the mesh does not know, which it passes on as they are.
    pub passthrough: CallCounters,
    /// Of an egress gateway: what came to it on its way out of the mesh.
    pub egress: EgressCounters,
    /// Of a ztunnel: certificates that it was given.
    pub certificates: u64,
}

impl ProxyCounters {
    /// Requests that came in.
    pub(crate) fn inbound(&self) -> u64 {
        self.inbound_mtls + self.inbound_plaintext
    }

    /// Counters of the calls to `service`; all zero when there were none.
    pub(crate) fn call(&self, service: &str) -> CallCounters {
        self.calls.get(service).copied().unwrap_or_default()
    }

    /// Counters of what came for `service` over HBONE; all zero when nothing did.
    pub(crate) fn hbone_into(&self, service: &str) -> HboneCounters {
        self.hbone.get(service).copied().unwrap_or_default()
    }

    /// Counters of the HBONE connections to `service`; all zero when there were none.
    pub(crate) fn tunnel(&self, service: &str) -> CallCounters {
        self.tunnels.get(service).copied().unwrap_or_default()
    }
}

/// Counters of what a node proxy or a waypoint took for the pods of one service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HboneCounters {
    /// Streams: connections of applications, each a CONNECT of its own.
    pub streams: u64,
    /// TLS handshakes that succeeded: the peer showed a certificate of one of the identities that may call.
    pub handshakes: u64,
    /// Peers whose certificate was of another identity.
    pub wrong_identity: u64,
    /// Peers that showed no certificate, or broke off.
    pub no_certificate: u64,
    /// Connections that came in as plaintext and were passed on.
    pub plaintext: u64,
    /// Bytes that came over them.
    pub plaintext_bytes: u64,
}

/// Counters of what an egress gateway took, for all external services together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EgressCounters {
    /// Connections that were for a host that it lets out, those included that then showed no certificate.
    pub connections: u64,
    /// Bytes that came over them; of mTLS, what was inside.
    pub received_bytes: u64,
    /// Handshakes of the mesh's mTLS that succeeded; none where it takes plaintext, whose inside may be TLS.
    pub handshakes: u64,
    /// Peers whose certificate was not of the mesh.
    pub wrong_identity: u64,
    /// Peers that showed no certificate.
    pub no_certificate: u64,
    /// Peers with whom the handshake failed for another reason.
    pub broken: u64,
}

/// Counters of connections that came in and whose bytes are passed on unread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TcpCounters {
    /// Connections accepted.
    pub connections: u64,
    /// Bytes that the clients sent.
    pub received_bytes: u64,
}

/// Counters of one proxy's calls to one service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallCounters {
    /// Requests sent, those sent again included; of a protocol that the proxy does not read, connections.
    pub requests: u64,
    /// Requests that the proxy sent again of its own accord.
    pub retries: u64,
    /// Connections tried.
    pub connections: u64,
    /// Connections that did not come about.
    pub failed_connections: u64,
    /// Connections that are open no more.
    pub closed_connections: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Bytes sent to the service.
    pub sent_bytes: u64,
}
