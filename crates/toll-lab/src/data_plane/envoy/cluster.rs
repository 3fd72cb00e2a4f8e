//! Where a proxy sends requests: Envoy clusters, put together from parts.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde_json::{Value, json};

use super::socket_address;

const SOL_SOCKET: u32 = 1;
const SO_MARK: u32 = 36;

/// A cluster under construction.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    fields: Value,
}

impl Cluster {
    /// Sends to these addresses in turn (`ROUND_ROBIN` is Envoy's default policy).
    pub(super) fn to(name: &str, addresses: &[SocketAddrV4]) -> Self {
        let endpoint = |address| json!({"endpoint": {"address": socket_address(address)}});
        let endpoints: Vec<Value> = addresses.iter().copied().map(endpoint).collect();
        let mut cluster = Self::named(name, "STATIC");
        cluster.fields["load_assignment"] =
            json!({"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]});
        cluster
    }

    /// Sends to where the client meant to connect before it was redirected.
    pub(super) fn to_original_destination(name: &str) -> Self {
        let mut cluster = Self::named(name, "ORIGINAL_DST");
        cluster.fields["lb_policy"] = json!("CLUSTER_PROVIDED");
        cluster
    }

    fn named(name: &str, kind: &str) -> Self {
        let fields = json!({
            "name": name,
            "type": kind,
            "connect_timeout": "10s",
            "circuit_breakers": {"thresholds": [no_limits()]},
        });
        Self { fields }
    }

    /// Connects over TLS.
    pub(super) fn over(mut self, transport_socket: Value) -> Self {
        self.fields["transport_socket"] = transport_socket;
        self
    }

    /// Connects from this address.
    pub(super) fn from(mut self, source: Ipv4Addr) -> Self {
        self.fields["upstream_bind_config"]["source_address"] =
            json!({"address": source.to_string(), "port_value": 0});
        self
    }

    /// Marks its connections, so that the redirect lets them through.
    pub(super) fn marked(mut self, mark: Option<u32>) -> Self {
        if let Some(mark) = mark {
            self.fields["upstream_bind_config"]["socket_options"] = json!([{
                "description": "the redirect lets this mark through",
                "level": SOL_SOCKET,
                "name": SO_MARK,
                "int_value": mark,
                "state": "STATE_PREBIND",
            }]);
        }
        self
    }

    /// The cluster as Envoy reads it.
    pub(super) fn build(self) -> Value {
        self.fields
    }
}

/// Envoy's own limit of 1024 connections and requests would shape the load; Istio lifts it as well.
fn no_limits() -> Value {
    json!({
        "max_connections": u32::MAX,
        "max_pending_requests": u32::MAX,
        "max_requests": u32::MAX,
        "max_retries": u32::MAX,
    })
}
