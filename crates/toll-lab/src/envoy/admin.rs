//! Reads a running Envoy over its admin socket, and turns its statistics into neutral counters.
//!
//! Statistics: <https://www.envoyproxy.io/docs/envoy/v1.40.0/operations/admin>.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::bootstrap::{
    EGRESS, INBOUND_EDGE, INBOUND_MTLS, INBOUND_PLAINTEXT, PASSTHROUGH, callee_of, socket_address,
};
use super::cluster::Cluster;
use super::hbone;
use super::listener::{self, Direction};
use crate::error::DataPlaneError;
use crate::evidence::{CallCounters, HboneCounters, ProxyCounters};
use crate::http::{HttpError, ask};

/// Only what [`translate`] reads: the whole list would cost the proxy several times as much.
pub(crate) const STATS: &str = "/stats?format=json&usedonly&type=Counters\
    &filter=^(http\\.inbound_.*\\.downstream_rq_total\
    |http\\.hbone.*\\.downstream_cx_upgrades_total\
    |listener\\.(hbone.*|egress)\\.ssl\\.(handshake|fail_verify_.*|connection_error)\
    |tcp\\.(plaintext.*|inbound_.*|egress)\\.downstream_cx_(total|rx_bytes_total)\
    |cluster\\.(outbound|hbone|PassthroughCluster).*\\.(upstream_rq_total|upstream_rq_retry|upstream_cx_total\
    |upstream_cx_connect_fail|upstream_cx_destroy|upstream_cx_tx_bytes_total|ssl\\.handshake))$";

/// Whether the Envoy is live. A socket that is not there yet means no.
///
/// # Errors
/// When the admin interface answers something that is not HTTP, or not at all for 5 s.
pub(crate) fn ready(socket: &Path) -> Result<bool, DataPlaneError> {
    match ask(socket, "GET", "/ready") {
        Ok(answer) => Ok(answer.status == 200),
        Err(HttpError::Io(error)) if not_there_yet(&error) => Ok(false),
        Err(source) => Err(failed(socket, "/ready", source)),
    }
}

/// The counters that a proof needs. Costs the Envoy up to 1 ms of CPU time: read before and after a window, not in it.
///
/// # Errors
/// When the admin interface cannot be reached or read.
pub(crate) fn counters(socket: &Path) -> Result<ProxyCounters, DataPlaneError> {
    let stats: Stats = ask_json(socket, STATS, "/stats")?;
    Ok(translate(&stats))
}

/// The same of an Envoy in a cluster, by its answer to [`STATS`].
///
/// # Errors
/// When that is no list of statistics.
pub(crate) fn counters_in(answer: &str) -> Result<ProxyCounters, serde_json::Error> {
    Ok(translate(&serde_json::from_str(answer)?))
}

/// The configuration of an Envoy whose admin interface is asked by another pod: it stays on the pod's own loopback, and
/// a listener of its own passes on questions for statistics and for readiness alone, as Istio's does.
///
/// # Errors
/// When it cannot be written as YAML.
pub(crate) fn asked_from_outside(bootstrap: &Value) -> Result<String, DataPlaneError> {
    let mut config = bootstrap.clone();
    let admin = SocketAddrV4::new(Ipv4Addr::LOCALHOST, ADMIN_PORT);
    config["admin"] = json!({"address": socket_address(admin)});
    let route =
        |prefix: &str| json!({"match": {"prefix": prefix}, "route": {"cluster": ADMIN_CLUSTER}});
    let host = json!({
        "name": ADMIN_CLUSTER, "domains": ["*"], "routes": [route("/stats"), route("/ready")],
    });
    let manager = listener::http_connection_manager(Direction::Edge, ADMIN_CLUSTER, vec![host]);
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, STATS_PORT);
    let chains = vec![listener::open_chain(manager)];
    let listener = listener::listener(ADMIN_CLUSTER, Direction::Edge, address, chains);
    let resources = &mut config["static_resources"];
    push(&mut resources["listeners"], listener);
    push(&mut resources["clusters"], Cluster::to(ADMIN_CLUSTER, &[admin]).build());
    serde_saphyr::to_string(&config).map_err(DataPlaneError::Unwritable)
}

fn push(list: &mut Value, item: Value) {
    list.as_array_mut().expect("a configuration has lists of listeners and clusters").push(item);
}

/// Where an Envoy in a cluster has its admin interface; Istio's port.
const ADMIN_PORT: u16 = 15_000;

/// Where it answers for it; Istio's port.
pub(crate) const STATS_PORT: u16 = 15_090;

/// Its own name for that.
pub(crate) const ADMIN_CLUSTER: &str = "admin";

#[derive(Debug, Deserialize)]
struct Stats {
    stats: Vec<Stat>,
}

#[derive(Debug, Deserialize)]
struct Stat {
    name: String,
    value: u64,
}

/// How to get at one counter.
type Field<T> = fn(&mut T) -> &mut u64;

/// By what comes in: the name under `http.`, `tcp.` or `listener.`. What has one field adds up.
const INBOUND: [(&str, &str, &str, Field<ProxyCounters>); 14] = [
    ("http.", INBOUND_MTLS, ".downstream_rq_total", |c| &mut c.inbound_mtls),
    ("http.", INBOUND_PLAINTEXT, ".downstream_rq_total", |c| &mut c.inbound_plaintext),
    // A gateway has either, and both come from outside of the mesh.
    ("http.", INBOUND_EDGE, ".downstream_rq_total", |c| &mut c.inbound_plaintext),
    ("tcp.", INBOUND_MTLS, ".downstream_cx_total", |c| &mut c.tcp_mtls.connections),
    ("tcp.", INBOUND_MTLS, ".downstream_cx_rx_bytes_total", |c| &mut c.tcp_mtls.received_bytes),
    ("tcp.", INBOUND_PLAINTEXT, ".downstream_cx_total", |c| &mut c.tcp_plaintext.connections),
    ("tcp.", INBOUND_PLAINTEXT, ".downstream_cx_rx_bytes_total", |c| {
        &mut c.tcp_plaintext.received_bytes
    }),
    ("tcp.", EGRESS, ".downstream_cx_total", |c| &mut c.egress.connections),
    ("tcp.", EGRESS, ".downstream_cx_rx_bytes_total", |c| &mut c.egress.received_bytes),
    ("listener.", EGRESS, ".ssl.handshake", |c| &mut c.egress.handshakes),
    ("listener.", EGRESS, ".ssl.fail_verify_san", |c| &mut c.egress.wrong_identity),
    // Signed by somebody else.
    ("listener.", EGRESS, ".ssl.fail_verify_error", |c| &mut c.egress.wrong_identity),
    ("listener.", EGRESS, ".ssl.fail_verify_no_cert", |c| &mut c.egress.no_certificate),
    ("listener.", EGRESS, ".ssl.connection_error", |c| &mut c.egress.broken),
];

/// By the end of a cluster's counter.
const CALLS: [(&str, Field<CallCounters>); 7] = [
    (".upstream_rq_total", |call| &mut call.requests),
    (".upstream_rq_retry", |call| &mut call.retries),
    (".upstream_cx_total", |call| &mut call.connections),
    (".upstream_cx_connect_fail", |call| &mut call.failed_connections),
    (".upstream_cx_destroy", |call| &mut call.closed_connections),
    (".upstream_cx_tx_bytes_total", |call| &mut call.sent_bytes),
    (".ssl.handshake", |call| &mut call.handshakes),
];

/// By the end of the counter: what came in past HBONE.
const PLAINTEXT: [(&str, Field<HboneCounters>); 2] = [
    (".downstream_cx_total", |hbone| &mut hbone.plaintext),
    (".downstream_cx_rx_bytes_total", |hbone| &mut hbone.plaintext_bytes),
];

/// By layer, and by the end of the counter: what came in over HBONE.
const STREAMS: [(&str, &str, Field<HboneCounters>); 6] = [
    ("http.", ".downstream_cx_upgrades_total", |hbone| &mut hbone.streams),
    ("listener.", ".ssl.handshake", |hbone| &mut hbone.handshakes),
    ("listener.", ".ssl.fail_verify_san", |hbone| &mut hbone.wrong_identity),
    // Signed by somebody else.
    ("listener.", ".ssl.fail_verify_error", |hbone| &mut hbone.wrong_identity),
    ("listener.", ".ssl.fail_verify_no_cert", |hbone| &mut hbone.no_certificate),
    ("listener.", ".ssl.connection_error", |hbone| &mut hbone.no_certificate),
];

/// A counter that is not listed was never used, so it is zero.
fn translate(stats: &Stats) -> ProxyCounters {
    let mut counters = ProxyCounters::default();
    for Stat { name, value } in &stats.stats {
        match name.strip_prefix("cluster.") {
            Some(stat) => count_call(&mut counters, stat, *value),
            None => {
                count_inbound(&mut counters, name, *value);
                count_streams(&mut counters.hbone, name, *value);
            }
        }
    }
    counters
}

fn count_inbound(counters: &mut ProxyCounters, stat: &str, value: u64) {
    for (layer, chain, counter, field) in INBOUND {
        let rest = stat.strip_prefix(layer).and_then(|rest| rest.strip_prefix(chain));
        if rest == Some(counter) {
            *field(counters) += value;
        }
    }
}

fn count_streams(hbone: &mut BTreeMap<String, HboneCounters>, stat: &str, value: u64) {
    for (layer, counter, field) in STREAMS {
        let name = stat.strip_prefix(layer).and_then(|rest| rest.strip_suffix(counter));
        if let Some(service) = name.and_then(hbone::inbound_of) {
            *field(hbone.entry(service.to_owned()).or_default()) += value;
        }
    }
    for (counter, field) in PLAINTEXT {
        let name = stat.strip_prefix("tcp.").and_then(|rest| rest.strip_suffix(counter));
        if let Some(service) = name.and_then(hbone::plaintext_of) {
            *field(hbone.entry(service.to_owned()).or_default()) = value;
        }
    }
}

/// `stat` is `<cluster>.<counter>`; neither service names nor Envoy's counters have to be free of dots.
///
/// A node's proxy has a cluster for each caller of a service: they are added up.
fn count_call(counters: &mut ProxyCounters, stat: &str, value: u64) {
    for (suffix, field) in CALLS {
        let Some(cluster) = stat.strip_suffix(suffix) else { continue };
        if let Some(callee) = callee_of(cluster) {
            *field(counters.calls.entry(callee.to_owned()).or_default()) += value;
        }
        if cluster == PASSTHROUGH {
            *field(&mut counters.passthrough) = value;
        }
        if let Some(taker) = hbone::taker_of(cluster) {
            *field(counters.tunnels.entry(taker.to_owned()).or_default()) += value;
        }
    }
}

fn ask_json<T: for<'a> Deserialize<'a>>(
    socket: &Path,
    query: &str,
    path: &'static str,
) -> Result<T, DataPlaneError> {
    let answer = ask(socket, "GET", query).map_err(|source| failed(socket, path, source))?;
    if answer.status != 200 {
        let (socket, status) = (socket.to_owned(), answer.status);
        return Err(DataPlaneError::AdminStatus { socket, path, status });
    }
    serde_json::from_slice(&answer.body).map_err(|source| DataPlaneError::AdminForm {
        socket: socket.to_owned(),
        path,
        source,
    })
}

fn not_there_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn failed(socket: &Path, path: &'static str, source: HttpError) -> DataPlaneError {
    DataPlaneError::Admin { socket: socket.to_owned(), path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{EgressCounters, TcpCounters};

    fn translated(stats: &[(&str, u64)]) -> ProxyCounters {
        let stats = stats.iter().map(|(name, value)| Stat { name: (*name).into(), value: *value });
        translate(&Stats { stats: stats.collect() })
    }

    #[test]
    fn the_two_inbound_chains_are_counted_apart() {
        let counters = translated(&[
            ("http.inbound_mtls.downstream_rq_total", 7),
            ("http.inbound_plaintext.downstream_rq_total", 3),
        ]);
        assert_eq!((counters.inbound_mtls, counters.inbound_plaintext), (7, 3));
    }

    #[test]
    fn what_a_gateway_takes_over_tls_came_from_outside_of_the_mesh_and_its_probes_do_not_count() {
        let counters = translated(&[
            ("http.inbound_edge.downstream_rq_total", 5),
            ("http.probe.downstream_rq_total", 2),
        ]);
        assert_eq!((counters.inbound_mtls, counters.inbound_plaintext), (0, 5));
    }

    #[test]
    fn connections_that_nobody_reads_are_counted_apart_from_requests() {
        let counters = translated(&[
            ("tcp.inbound_mtls.downstream_cx_total", 16),
            ("tcp.inbound_mtls.downstream_cx_rx_bytes_total", 4096),
            ("tcp.inbound_plaintext.downstream_cx_total", 1),
        ]);
        assert_eq!(counters.tcp_mtls, TcpCounters { connections: 16, received_bytes: 4096 });
        assert_eq!(counters.tcp_plaintext.connections, 1);
        assert_eq!((counters.inbound_mtls, counters.inbound_plaintext), (0, 0));
    }

    #[test]
    fn calls_go_to_the_service_that_the_cluster_names_dots_included() {
        let counters = translated(&[
            ("cluster.outbound|9999||server.upstream_rq_total", 5),
            ("cluster.outbound|80||db.example.ssl.handshake", 2),
        ]);
        assert_eq!(counters.call("server").requests, 5);
        assert_eq!(counters.call("db.example").handshakes, 2);
    }

    #[test]
    fn what_comes_over_hbone_is_counted_by_service_and_by_why_it_was_refused() {
        let counters = translated(&[
            ("http.hbone|db.example.downstream_cx_upgrades_total", 7),
            ("listener.hbone|db.example.ssl.handshake", 2),
            ("listener.hbone|db.example.ssl.fail_verify_san", 1),
            ("listener.hbone|db.example.ssl.fail_verify_error", 10),
            ("listener.hbone|db.example.ssl.fail_verify_no_cert", 3),
            ("listener.hbone|db.example.ssl.connection_error", 20),
            ("tcp.plaintext|db.example.downstream_cx_total", 4),
            ("tcp.plaintext|db.example.downstream_cx_rx_bytes_total", 512),
            ("http.hbone|nginx.downstream_cx_upgrades_total", 5),
            // The same streams, once more.
            ("listener.hbone|nginx.http.hbone|nginx.downstream_rq_total", 5),
        ]);
        let expected = HboneCounters {
            streams: 7,
            handshakes: 2,
            wrong_identity: 11,
            no_certificate: 23,
            plaintext: 4,
            plaintext_bytes: 512,
        };
        assert_eq!(counters.hbone_into("db.example"), expected);
        let nginx = HboneCounters { streams: 5, ..HboneCounters::default() };
        assert_eq!(counters.hbone_into("nginx"), nginx);
    }

    #[test]
    fn streams_of_all_callers_of_a_node_to_one_service_add_up_and_are_no_calls() {
        let counters = translated(&[
            ("cluster.hbone|a||server.upstream_rq_total", 5),
            ("cluster.hbone|b||server.upstream_rq_total", 2),
            ("cluster.hbone|b||server.ssl.handshake", 1),
        ]);
        let tunnel = counters.tunnel("server");
        assert_eq!((tunnel.requests, tunnel.handshakes), (7, 1));
        assert_eq!(counters.calls, BTreeMap::new());
    }

    #[test]
    fn the_cluster_of_the_application_is_no_call() {
        let counters = translated(&[("cluster.inbound|9999||.upstream_rq_total", 5)]);
        assert_eq!(counters, ProxyCounters::default());
    }

    #[test]
    fn what_an_egress_gateway_takes_is_counted_by_whether_it_showed_an_identity() {
        let counters = translated(&[
            ("tcp.egress.downstream_cx_total", 20),
            ("tcp.egress.downstream_cx_rx_bytes_total", 4096),
            ("listener.egress.ssl.handshake", 16),
            ("listener.egress.ssl.fail_verify_san", 1),
            ("listener.egress.ssl.fail_verify_error", 1),
            ("listener.egress.ssl.fail_verify_no_cert", 1),
            ("listener.egress.ssl.connection_error", 1),
        ]);
        let expected = EgressCounters {
            connections: 20,
            received_bytes: 4096,
            handshakes: 16,
            wrong_identity: 2,
            no_certificate: 1,
            broken: 1,
        };
        assert_eq!(counters.egress, expected);
    }

    #[test]
    fn what_goes_to_addresses_that_the_mesh_does_not_know_is_no_call_but_is_counted() {
        let counters = translated(&[
            ("cluster.PassthroughCluster.upstream_cx_total", 3),
            ("cluster.PassthroughCluster.upstream_cx_tx_bytes_total", 400),
        ]);
        let passed = counters.passthrough;
        assert_eq!((passed.connections, passed.sent_bytes), (3, 400));
        assert_eq!(counters.calls, BTreeMap::new());
    }

    #[test]
    fn a_socket_that_is_not_there_yet_is_not_ready() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!ready(&dir.path().join("none.sock")).unwrap());
    }
}
