//! What all ends of HBONE share: the streams that a proxy opens in a caller's name and those that it takes.
//!
//! A stream is an HTTP/2 CONNECT over mTLS to port 15008 whose authority is the address that the application meant;
//! it carries one connection of the application: <https://istio.io/latest/docs/ambient/architecture/hbone/>.

use std::net::SocketAddrV4;

use serde_json::{Value, json};

use super::bootstrap::typed;
use super::call::Call;
use super::cluster::Cluster;
use super::{listener, tls};
use crate::certificates::mesh::IdentityFiles;
use crate::deployment::Deployment;
use crate::topology::{HBONE_PORT, Topology};

/// Who takes the streams of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker<'a> {
    /// The proxy of the node of the pod that is called, in the name of its service.
    Pods(&'a str),
    /// A proxy in between.
    Waypoint(&'a str, SocketAddrV4),
}

impl<'a> Taker<'a> {
    /// Of a call to `callee` that applications and gateways make.
    pub(crate) fn of_call(topology: &'a Topology, callee: &'a str) -> Self {
        match &topology.waypoint {
            Some(waypoint) => {
                Self::Waypoint(&waypoint.pod, SocketAddrV4::new(waypoint.ip, HBONE_PORT))
            }
            None => Self::Pods(callee),
        }
    }

    /// The identity that it must show.
    fn identity(self) -> &'a str {
        match self {
            Self::Pods(service) | Self::Waypoint(service, _) => service,
        }
    }
}

/// Name of the cluster that opens streams as `caller`, and of its counters.
fn tunnel_name(caller: &str, taker: Taker<'_>) -> String {
    format!("{TUNNEL}{caller}||{}", taker.identity())
}

const TUNNEL: &str = "hbone|";

/// The service or waypoint that the streams of such a cluster go to; none for other clusters.
pub(crate) fn taker_of(cluster: &str) -> Option<&str> {
    cluster.strip_prefix(TUNNEL)?.split_once("||").map(|(_, taker)| taker)
}

/// Name of the counters for the streams that are taken for a service, or by a waypoint.
pub(crate) fn inbound_name(service: &str) -> String {
    format!("{TUNNEL}{service}")
}

/// The service or waypoint that such counters are of; none for other counters.
pub(crate) fn inbound_of(stat_prefix: &str) -> Option<&str> {
    stat_prefix.strip_prefix(TUNNEL)
}

/// Name of the counters for what comes in for a service past HBONE.
pub(crate) fn plaintext_name(service: &str) -> String {
    format!("{PLAINTEXT}{service}")
}

const PLAINTEXT: &str = "plaintext|";

/// The service that such counters are of; none for other counters.
pub(crate) fn plaintext_of(stat_prefix: &str) -> Option<&str> {
    stat_prefix.strip_prefix(PLAINTEXT)
}

/// Opens streams in the name of `caller`.
pub(crate) fn cluster(identities: &IdentityFiles, caller: &str, taker: Taker<'_>) -> Cluster {
    let name = tunnel_name(caller, taker);
    let cluster = match taker {
        Taker::Pods(_) => Cluster::to_original_destination(&name).at_port(HBONE_PORT),
        Taker::Waypoint(_, address) => Cluster::to(&name, &[address]),
    };
    cluster.with_connect().over(tls::hbone_client(identities, caller, taker.identity()))
}

/// Hands connections to that cluster, each as a stream to where its client meant to connect.
pub(crate) fn into_tunnel(stat_prefix: &str, caller: &str, taker: Taker<'_>) -> Value {
    let mut filter = listener::tcp_proxy(stat_prefix, &tunnel_name(caller, taker));
    let fields = &mut filter["typed_config"];
    fields["tunneling_config"] = json!({"hostname": "%DOWNSTREAM_LOCAL_ADDRESS%"});
    // A connection may be silent as long as it would be without a proxy.
    fields["idle_timeout"] = json!("0s");
    filter
}

/// Takes connections of `callers` as `service`, and nobody else's.
pub(crate) fn terminating_chain(
    identities: &IdentityFiles,
    service: &str,
    callers: &[&str],
    filters: &[Value],
) -> Value {
    json!({
        "transport_socket": tls::hbone_server(identities, service, callers),
        "filters": filters,
    })
}

/// Where the streams for `authorities` go.
pub(crate) fn stream_host(name: &str, authorities: &[String], cluster: &str) -> Value {
    let upgrade = json!([{"upgrade_type": "CONNECT", "connect_config": {}}]);
    let route = json!({"cluster": cluster, "timeout": "0s", "upgrade_configs": upgrade});
    let streams = json!({"match": {"connect_matcher": {}}, "route": route});
    json!({"name": name, "domains": authorities, "routes": [streams]})
}

/// Reads the streams of a connection. An authority that no host has is answered with 404.
pub(crate) fn stream_manager(service: &str, hosts: Vec<Value>) -> Value {
    let name = inbound_name(service);
    let kind = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let fields = json!({
        "stat_prefix": name,
        "codec_type": "HTTP2",
        "http2_protocol_options": {"allow_connect": true},
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "stream_idle_timeout": "0s",
        "route_config": {"name": name, "virtual_hosts": hosts},
        "http_filters": [listener::router()],
    });
    json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": typed(kind, fields),
    })
}

/// The parts by which a proxy that reads HTTP sends it over HBONE: it picks a pod, and an internal listener makes a
/// stream of the connection.
#[derive(Debug)]
pub(crate) struct Origination {
    pub(crate) listener: Value,
    pub(crate) clusters: [Cluster; 2],
}

impl Origination {
    /// For the calls of `caller`.
    pub(crate) fn new(
        identities: &IdentityFiles,
        caller: &str,
        call: &Call<'_>,
        taker: Taker<'_>,
    ) -> Self {
        let name = format!("originate|{}", call.callee);
        let chain = listener::open_chain(into_tunnel(&name, caller, taker));
        let mut listener = listener::internal_listener(&name, vec![chain]);
        listener["listener_filters"] = json!([listener::original_destination()]);
        Self {
            listener,
            clusters: [call.internal_cluster(&name), cluster(identities, caller, taker)],
        }
    }
}

/// The identities that may open streams to the pods of `service`: its callers', or that of the waypoint that they
/// all go through. Empty where nobody calls it.
pub(crate) fn callers_of<'a>(
    deployment: &'a Deployment,
    topology: &'a Topology,
    service: &str,
) -> Vec<&'a str> {
    let callers = applications_that_call(deployment, service);
    match &topology.waypoint {
        Some(waypoint) if !callers.is_empty() => vec![&waypoint.pod],
        _ => callers,
    }
}

/// The names of the services that call `service`.
pub(crate) fn applications_that_call<'a>(
    deployment: &'a Deployment,
    service: &str,
) -> Vec<&'a str> {
    deployment.callers_of(service).map(|caller| caller.name.as_str()).collect()
}
