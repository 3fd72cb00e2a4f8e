//! Where a proxy sends requests: Envoy clusters, put together from parts.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde_json::{Value, json};

use super::bootstrap::{socket_address, typed};

const SOL_SOCKET: u32 = 1;
const SO_MARK: u32 = 36;

/// A cluster under construction.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    fields: Value,
}

impl Cluster {
    /// Sends to these addresses in turn (`ROUND_ROBIN` is Envoy's default policy).
    pub(crate) fn to(name: &str, addresses: &[SocketAddrV4]) -> Self {
        let endpoint = |address| json!({"endpoint": {"address": socket_address(address)}});
        let endpoints: Vec<Value> = addresses.iter().copied().map(endpoint).collect();
        let mut cluster = Self::named(name, "STATIC");
        cluster.fields["load_assignment"] =
            json!({"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]});
        cluster
    }

    /// Sends to where the client meant to connect before it was redirected.
    pub(crate) fn to_original_destination(name: &str) -> Self {
        let mut cluster = Self::named(name, "ORIGINAL_DST");
        cluster.fields["lb_policy"] = json!("CLUSTER_PROVIDED");
        cluster
    }

    /// Sends to an internal listener of the same Envoy, telling it where each connection is meant to go.
    pub(crate) fn to_internal(name: &str, listener: &str, destinations: &[SocketAddrV4]) -> Self {
        let endpoint = |destination: &SocketAddrV4| {
            let local = destination.to_string();
            json!({
                "endpoint": {"address": internal_address(listener, Some(&local))},
                "metadata": {"filter_metadata": {DESTINATION: {"local": local}}},
            })
        };
        let endpoints: Vec<Value> = destinations.iter().map(endpoint).collect();
        Self::internal(name, &endpoints, json!([{"name": DESTINATION, "kind": {"host": {}}}]))
    }

    /// Sends to an internal listener of the same Envoy.
    pub(crate) fn to_internal_listener(name: &str, listener: &str) -> Self {
        let endpoint = json!({"endpoint": {"address": internal_address(listener, None)}});
        Self::internal(name, &[endpoint], json!([]))
    }

    fn internal(name: &str, endpoints: &[Value], passthrough: Value) -> Self {
        let mut cluster = Self::named(name, "STATIC");
        cluster.fields["load_assignment"] =
            json!({"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]});
        cluster.over(internal_transport(passthrough))
    }

    /// Sends to another port there.
    pub(crate) fn at_port(mut self, port: u16) -> Self {
        self.fields["original_dst_lb_config"] = json!({"upstream_port_override": port});
        self
    }

    /// Sends to the address that the authority of a CONNECT names.
    pub(crate) fn by_authority(mut self) -> Self {
        self.fields["original_dst_lb_config"] =
            json!({"use_http_header": true, "http_header_name": ":authority"});
        self
    }

    /// Speaks HTTP/2 that may hold CONNECT.
    pub(crate) fn with_connect(mut self) -> Self {
        let kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
        let options = json!({
            "explicit_http_config": {"http2_protocol_options": {"allow_connect": true}},
        });
        self.fields["typed_extension_protocol_options"] = json!({kind: typed(kind, options)});
        self
    }

    /// Connects inside of the network that [`remember_network`](super::listener::remember_network) remembered.
    pub(crate) fn in_remembered_network(self) -> Self {
        let mut cluster = self.from(Ipv4Addr::UNSPECIFIED);
        let selector = "filter_state_override";
        let kind = format!("envoy.extensions.local_address_selectors.{selector}.v3.Config");
        cluster.fields["upstream_bind_config"]["local_address_selector"] = json!({
            "name": format!("envoy.upstream.local_address_selector.{selector}"),
            "typed_config": typed(&kind, json!({})),
        });
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
    pub(crate) fn over(mut self, transport_socket: Value) -> Self {
        self.fields["transport_socket"] = transport_socket;
        self
    }

    /// Connects from this address.
    pub(crate) fn from(mut self, source: Ipv4Addr) -> Self {
        self.fields["upstream_bind_config"]["source_address"] =
            json!({"address": source.to_string(), "port_value": 0});
        self
    }

    /// Marks its connections, so that the redirect lets them through.
    pub(crate) fn marked(mut self, mark: Option<u32>) -> Self {
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
    pub(crate) fn build(self) -> Value {
        self.fields
    }
}

/// Where the filter [`original_destination`](super::listener::original_destination) of an internal listener finds the
/// address.
const DESTINATION: &str = "envoy.filters.listener.original_dst";

fn internal_address(listener: &str, endpoint: Option<&str>) -> Value {
    let mut address = json!({"server_listener_name": listener});
    // Without an id all endpoints of a cluster would be one.
    if let Some(endpoint) = endpoint {
        address["endpoint_id"] = json!(endpoint);
    }
    json!({"envoy_internal_address": address})
}

fn internal_transport(passthrough: Value) -> Value {
    let kind = "envoy.extensions.transport_sockets.internal_upstream.v3.InternalUpstreamTransport";
    let raw = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer";
    json!({
        "name": "envoy.transport_sockets.internal_upstream",
        "typed_config": typed(kind, json!({
            "passthrough_metadata": passthrough,
            "transport_socket": {
                "name": "envoy.transport_sockets.raw_buffer",
                "typed_config": typed(raw, json!({})),
            },
        })),
    })
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
