//! What the configurations of sidecars and gateways share: their frame, and the names by which their counters
//! are found again.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde_json::{Value, json};

/// Name of the counters for what comes in over mTLS.
pub(crate) const INBOUND_MTLS: &str = "inbound_mtls";

/// Name of the counters for what comes in as plaintext.
pub(crate) const INBOUND_PLAINTEXT: &str = "inbound_plaintext";

/// Name of a gateway's counters for what comes in over its own TLS, which no workload speaks.
pub(crate) const INBOUND_EDGE: &str = "inbound_edge";

/// Name of an egress gateway's counters for what comes in, and of its listener.
pub(crate) const EGRESS: &str = "egress";

/// Name of the counters for the lab's own probes, which are not read.
pub(crate) const PROBE: &str = "probe";

/// Name of a sidecar's cluster for traffic to addresses that the mesh does not know, which goes on as it is.
pub(crate) const PASSTHROUGH: &str = "PassthroughCluster";

pub(crate) const ANY_ADDRESS: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

/// Name of the cluster for the calls to a service, as Istio writes it.
pub(crate) fn call_cluster(port: u16, callee: &str) -> String {
    format!("outbound|{port}||{callee}")
}

/// The service that such a cluster is for; none for other clusters.
pub(crate) fn callee_of(cluster: &str) -> Option<&str> {
    cluster.strip_prefix("outbound|")?.split_once("||").map(|(_, callee)| callee)
}

/// A whole configuration.
///
/// The admin interface is on a socket that only its owner and root may use: it takes no port, and no redirect
/// meets it.
pub(crate) fn bootstrap(admin_socket: &Path, listeners: Vec<Value>, clusters: Vec<Value>) -> Value {
    let is_internal = |listener: &Value| listener.get("internal_listener").is_some();
    let extensions = listeners.iter().any(is_internal).then(internal_listeners);
    let mut bootstrap = json!({
        "admin": {"address": {"pipe": {"path": path_text(admin_socket), "mode": 0o600}}},
        "static_resources": {"listeners": listeners, "clusters": clusters},
    });
    if let Some(extension) = extensions {
        bootstrap["bootstrap_extensions"] = json!([extension]);
    }
    bootstrap
}

/// Lets clusters send to listeners of the same Envoy.
fn internal_listeners() -> Value {
    let kind = "envoy.extensions.bootstrap.internal_listener.v3.InternalListener";
    json!({"name": "envoy.bootstrap.internal_listener", "typed_config": typed(kind, json!({}))})
}

/// A path as Envoy's configuration holds it.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Wraps a message's fields as Envoy's `Any`.
pub(crate) fn typed(kind: &str, fields: Value) -> Value {
    let mut message = json!({"@type": format!("type.googleapis.com/{kind}")});
    if let (Value::Object(message), Value::Object(fields)) = (&mut message, fields) {
        message.extend(fields);
    }
    message
}

/// An address as Envoy's configuration holds it.
pub(crate) fn socket_address(address: SocketAddrV4) -> Value {
    let (ip, port) = (address.ip().to_string(), address.port());
    json!({"socket_address": {"address": ip, "port_value": port}})
}
