//! The two TLS contexts of a mesh, what a proxy shows and demands as a server and as a client; and that of a
//! gateway's own clients.

use serde_json::{Value, json};

use super::bootstrap::{path_text, typed};
use crate::certificates::edge::EdgeFiles;
use crate::certificates::mesh::{IdentityFiles, TRUST_DOMAIN, spiffe_id};
use crate::deployment::Service;

/// What proxies take a service's traffic for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    /// Bytes that no proxy reads.
    Tcp,
}

impl Protocol {
    pub(crate) fn of(service: &Service) -> Self {
        if service.program.is_database() { Self::Tcp } else { Self::Http }
    }

    /// What Istio's proxies offer in ALPN, by which an inbound sidecar knows them from other TLS clients.
    pub(crate) fn callers_alpn(self) -> &'static [&'static str] {
        match self {
            Self::Http => {
                &["istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"]
            }
            Self::Tcp => &["istio-peer-exchange", "istio"],
        }
    }

    /// What a calling proxy offers.
    ///
    /// For HTTP the offer holds no HTTP/2: Istio keeps the application's HTTP/1.1 between sidecars by default.
    fn offered_alpn(self) -> &'static [&'static str] {
        match self {
            Self::Http => &["istio-http/1.1", "istio", "http/1.1"],
            Self::Tcp => self.callers_alpn(),
        }
    }

    /// What an inbound sidecar agrees to.
    fn accepted_alpn(self) -> &'static [&'static str] {
        match self {
            Self::Http => &["h2", "http/1.1"],
            Self::Tcp => &["istio-peer-exchange", "h2", "http/1.1"],
        }
    }
}

/// Accepts any service of the trust domain, and nobody without a certificate.
pub(crate) fn downstream(files: &IdentityFiles, service: &str, protocol: Protocol) -> Value {
    let anyone = json!({"prefix": format!("spiffe://{TRUST_DOMAIN}/")});
    server(common(files, service, protocol.accepted_alpn(), &[anyone]))
}

/// Shows the gateway's own certificate to anybody.
pub(crate) fn edge(files: &EdgeFiles, gateway: &str) -> Value {
    let common = json!({
        "alpn_protocols": ["http/1.1"],
        "tls_params": tls_params(),
        "tls_certificates": [{
            "certificate_chain": {"filename": path_text(&files.certificate(gateway))},
            "private_key": {"filename": path_text(&files.key(gateway))},
        }],
    });
    transport_socket("DownstreamTlsContext", json!({"common_tls_context": common}))
}

/// Connects as `caller` to exactly the called service.
pub(crate) fn upstream(
    files: &IdentityFiles,
    caller: &str,
    callee: &str,
    (port, protocol): (u16, Protocol),
) -> Value {
    client(files, caller, callee, (&outbound_sni(port, callee), protocol))
}

/// Connects as `caller` to exactly the egress gateway and asks it for `sni`.
pub(crate) fn to_egress(files: &IdentityFiles, caller: &str, gateway: &str, sni: &str) -> Value {
    client(files, caller, gateway, (sni, Protocol::Tcp))
}

/// What a proxy asks for on the way to a service, as Istio makes it.
pub(crate) fn outbound_sni(port: u16, name: &str) -> String {
    format!("outbound_.{port}_._.{name}")
}

fn client(
    files: &IdentityFiles,
    caller: &str,
    taker: &str,
    (sni, protocol): (&str, Protocol),
) -> Value {
    let common = common(files, caller, protocol.offered_alpn(), &[exactly(taker)]);
    transport_socket("UpstreamTlsContext", json!({"sni": sni, "common_tls_context": common}))
}

/// Takes connections of exactly these services, as ztunnel does: HTTP/2 over TLS 1.3.
pub(crate) fn hbone_server(files: &IdentityFiles, service: &str, callers: &[&str]) -> Value {
    let callers: Vec<Value> = callers.iter().map(|caller| exactly(caller)).collect();
    server(latest(common(files, service, &["h2"], &callers)))
}

/// Connects as `caller` to exactly this service or waypoint.
pub(crate) fn hbone_client(files: &IdentityFiles, caller: &str, taker: &str) -> Value {
    let common = latest(common(files, caller, &["h2"], &[exactly(taker)]));
    transport_socket("UpstreamTlsContext", json!({"common_tls_context": common}))
}

fn exactly(service: &str) -> Value {
    json!({"exact": spiffe_id(service)})
}

fn latest(mut common: Value) -> Value {
    common["tls_params"]["tls_minimum_protocol_version"] = json!("TLSv1_3");
    common
}

fn server(common: Value) -> Value {
    let fields = json!({"require_client_certificate": true, "common_tls_context": common});
    transport_socket("DownstreamTlsContext", fields)
}

fn common(files: &IdentityFiles, service: &str, alpn: &[&str], peers: &[Value]) -> Value {
    let peer = |matcher: &Value| json!({"san_type": "URI", "matcher": matcher});
    let peers: Vec<Value> = peers.iter().map(peer).collect();
    json!({
        "alpn_protocols": alpn,
        "tls_params": tls_params(),
        "tls_certificates": [{
            "certificate_chain": {"filename": path_text(&files.chain(service))},
            "private_key": {"filename": path_text(&files.key(service))},
        }],
        "validation_context": {
            "trusted_ca": {"filename": path_text(&files.authority())},
            "match_typed_subject_alt_names": peers,
        },
    })
}

/// As a client, Envoy stops at TLS 1.2 unless told.
fn tls_params() -> Value {
    json!({
        "tls_minimum_protocol_version": "TLSv1_2",
        "tls_maximum_protocol_version": "TLSv1_3",
    })
}

fn transport_socket(context: &str, fields: Value) -> Value {
    let kind = format!("envoy.extensions.transport_sockets.tls.v3.{context}");
    json!({"name": "envoy.transport_sockets.tls", "typed_config": typed(&kind, fields)})
}
