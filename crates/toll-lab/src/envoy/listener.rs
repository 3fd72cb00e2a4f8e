//! Where a proxy takes connections: Envoy listeners, their filter chains, and the HTTP connection manager.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::bootstrap::{ANY_ADDRESS, path_text, socket_address, typed};
use super::istio::SIDECAR_SERVER;

/// Which way a listener's traffic goes, seen from the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Inbound,
    Outbound,
    /// Into a gateway, from outside of the mesh.
    Edge,
}

/// A listener without any special way to get at connections; callers add such fields.
pub(crate) fn listener(
    name: &str,
    direction: Direction,
    address: SocketAddrV4,
    filter_chains: Vec<Value>,
) -> Value {
    json!({
        "name": name,
        "traffic_direction": match direction {
            Direction::Inbound => "INBOUND",
            // Istio calls a gateway's listeners outbound, too.
            Direction::Outbound | Direction::Edge => "OUTBOUND",
        },
        "address": socket_address(address),
        "filter_chains": filter_chains,
    })
}

/// One listener with a socket at `port` in each of these networks. `name` is also that of its counters, which
/// Envoy would otherwise name by the address alone.
pub(crate) fn listener_in_networks(
    name: &str,
    direction: Direction,
    (port, networks): (u16, &[PathBuf]),
    filter_chains: Vec<Value>,
) -> Value {
    let address = SocketAddrV4::new(ANY_ADDRESS, port);
    let mut sockets = networks.iter().map(|network| {
        let mut socket = socket_address(address);
        socket["socket_address"]["network_namespace_filepath"] = json!(path_text(network));
        socket
    });
    let mut listener = listener(name, direction, address, filter_chains);
    listener["stat_prefix"] = json!(name);
    if let Some(first) = sockets.next() {
        listener["address"] = first;
    }
    let others: Vec<Value> = sockets.map(|address| json!({"address": address})).collect();
    if !others.is_empty() {
        listener["additional_addresses"] = json!(others);
    }
    listener
}

/// A listener that only clusters of the same Envoy reach, by its name.
pub(crate) fn internal_listener(name: &str, filter_chains: Vec<Value>) -> Value {
    json!({"name": name, "internal_listener": {}, "filter_chains": filter_chains})
}

/// A filter chain for connections that were meant for one of these addresses, at `port`.
pub(crate) fn destined_chain(addresses: &[Ipv4Addr], port: u16, filters: &[Value]) -> Value {
    let prefix = |ip: &Ipv4Addr| json!({"address_prefix": ip.to_string(), "prefix_len": 32});
    let ranges: Vec<Value> = addresses.iter().map(prefix).collect();
    json!({
        "filter_chain_match": {"prefix_ranges": ranges, "destination_port": port},
        "filters": filters,
    })
}

/// Has what leaves for this connection leave from the network that it came in by.
///
/// Only a string that is hashed tells the pools of upstream connections apart: with a plain one, pods would share
/// a connection, and with it an address.
pub(crate) fn remember_network() -> Value {
    let network = "%FILTER_STATE(envoy.network.network_namespace:PLAIN)%";
    let kind = "envoy.extensions.filters.network.set_filter_state.v3.Config";
    json!({
        "name": "envoy.filters.network.set_filter_state",
        "typed_config": typed(kind, json!({"on_new_connection": [{
            "object_key": "envoy.network.upstream_bind_override.network_namespace",
            "factory_key": "envoy.hashable_string",
            "format_string": {"text_format_source": {"inline_string": network}},
            "shared_with_upstream": "ONCE",
        }]})),
    })
}

/// Which connections a filter chain takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepts<'a> {
    /// TLS with one of these protocols offered in ALPN.
    Tls(&'a [&'a str]),
    /// Connections that do not begin with a TLS hello.
    Plaintext,
}

/// A filter chain that takes only what `accepts` says, and only for `port` when given.
pub(crate) fn matched_chain(
    name: &str,
    accepts: Accepts<'_>,
    port: Option<u16>,
    filter: Value,
) -> Value {
    let mut condition = match accepts {
        Accepts::Tls(alpn) => json!({"transport_protocol": "tls", "application_protocols": alpn}),
        Accepts::Plaintext => json!({"transport_protocol": "raw_buffer"}),
    };
    if let Some(port) = port {
        condition["destination_port"] = json!(port);
    }
    json!({"name": name, "filter_chain_match": condition, "filters": [filter]})
}

/// A filter chain that takes TLS for one of these names only, `*.example.org` for all below one.
pub(crate) fn named_chain(names: &[&str], filter: Value) -> Value {
    json!({"filter_chain_match": {"server_names": names}, "filters": [filter]})
}

/// A filter chain that takes every connection.
pub(crate) fn open_chain(filter: Value) -> Value {
    json!({"filters": [filter]})
}

/// Passes bytes on without a look at them.
pub(crate) fn tcp_proxy(stat_prefix: &str, cluster: &str) -> Value {
    let kind = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
    json!({
        "name": "envoy.filters.network.tcp_proxy",
        "typed_config": typed(kind, json!({"stat_prefix": stat_prefix, "cluster": cluster})),
    })
}

/// Speaks HTTP. `stat_prefix` names its counters.
///
/// Access log and tracing are off, as in the published studies ("telemetry off").
pub(crate) fn http_connection_manager(
    direction: Direction,
    stat_prefix: &str,
    virtual_hosts: Vec<Value>,
) -> Value {
    let mut fields = json!({
        "stat_prefix": stat_prefix,
        "codec_type": "AUTO",
        "server_name": SIDECAR_SERVER,
        "normalize_path": true,
        // Only at the edge is the address of the connection that of the client.
        "use_remote_address": direction == Direction::Edge,
        "stream_idle_timeout": "0s",
        "route_config": {"name": stat_prefix, "virtual_hosts": virtual_hosts},
        "http_filters": http_filters(),
    });
    if direction == Direction::Inbound {
        // Tells the application who calls; the outbound side removes what an application makes up.
        fields["forward_client_cert_details"] = json!("APPEND_FORWARD");
        fields["set_current_client_cert_details"] =
            json!({"subject": true, "dns": true, "uri": true});
    }
    let kind = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": typed(kind, fields),
    })
}

/// Sends every request for one of `domains` to `cluster`.
pub(crate) fn virtual_host(name: &str, domains: &[String], route: Value) -> Value {
    let every_path = json!({"match": {"prefix": "/"}, "route": route});
    json!({"name": name, "domains": domains, "routes": [every_path]})
}

/// A route without a time limit.
pub(crate) fn route(cluster: &str) -> Value {
    json!({"cluster": cluster, "timeout": "0s"})
}

/// A route that tries again as Istio does: only where the request cannot have had an effect.
pub(crate) fn route_with_retries(cluster: &str) -> Value {
    let mut route = route(cluster);
    route["retry_policy"] = json!({
        "retry_on": "connect-failure,refused-stream,unavailable,cancelled",
        "num_retries": 2,
    });
    route
}

/// The filters that Istio puts into every sidecar and that Envoy itself has.
fn http_filters() -> Vec<Value> {
    vec![http_filter("fault", "HTTPFault"), http_filter("cors", "Cors"), router()]
}

/// Sends requests where their routes say.
pub(crate) fn router() -> Value {
    http_filter("router", "Router")
}

fn http_filter(name: &str, message: &str) -> Value {
    let kind = format!("envoy.extensions.filters.http.{name}.v3.{message}");
    json!({"name": format!("envoy.filters.http.{name}"), "typed_config": typed(&kind, json!({}))})
}

/// Reads the address that a redirected connection was meant for.
pub(crate) fn original_destination() -> Value {
    listener_filter("original_dst", "OriginalDst")
}

/// Looks at the first bytes, to tell TLS from plaintext and to read ALPN.
pub(crate) fn tls_inspector() -> Value {
    listener_filter("tls_inspector", "TlsInspector")
}

fn listener_filter(name: &str, message: &str) -> Value {
    let kind = format!("envoy.extensions.filters.listener.{name}.v3.{message}");
    json!({"name": format!("envoy.filters.listener.{name}"), "typed_config": typed(&kind, json!({}))})
}
