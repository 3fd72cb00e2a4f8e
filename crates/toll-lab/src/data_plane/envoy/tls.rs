//! The two TLS contexts of a mesh: what a sidecar shows and demands as a server and as a client.

use serde_json::{Value, json};

use super::{bootstrap::path_text, typed};
use crate::data_plane::identity::{IdentityFiles, TRUST_DOMAIN, spiffe_id};

/// What Istio's sidecars offer in ALPN, by which an inbound sidecar knows them from other TLS clients.
pub(super) const MESH_ALPN: [&str; 5] =
    ["istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"];

/// Accepts any service of the trust domain, and nobody without a certificate.
pub(super) fn downstream(files: &IdentityFiles, service: &str) -> Value {
    let anyone = json!({"prefix": format!("spiffe://{TRUST_DOMAIN}/")});
    transport_socket(
        "DownstreamTlsContext",
        json!({
            "require_client_certificate": true,
            "common_tls_context": common(files, service, &["h2", "http/1.1"], anyone),
        }),
    )
}

/// Connects as `service` to exactly `peer`.
///
/// The offer in ALPN holds no HTTP/2: Istio keeps the application's HTTP/1.1 between sidecars by default.
pub(super) fn upstream(files: &IdentityFiles, service: &str, peer: &str, port: u16) -> Value {
    let exactly = json!({"exact": spiffe_id(peer)});
    let offer = ["istio-http/1.1", "istio", "http/1.1"];
    transport_socket(
        "UpstreamTlsContext",
        json!({
            "sni": format!("outbound_.{port}_._.{peer}"),
            "common_tls_context": common(files, service, &offer, exactly),
        }),
    )
}

fn common(files: &IdentityFiles, service: &str, alpn: &[&str], peer: Value) -> Value {
    json!({
        "alpn_protocols": alpn,
        // As a client, Envoy stops at TLS 1.2 unless told.
        "tls_params": {
            "tls_minimum_protocol_version": "TLSv1_2",
            "tls_maximum_protocol_version": "TLSv1_3",
        },
        "tls_certificates": [{
            "certificate_chain": {"filename": path_text(&files.chain(service))},
            "private_key": {"filename": path_text(&files.key(service))},
        }],
        "validation_context": {
            "trusted_ca": {"filename": path_text(&files.authority())},
            "match_typed_subject_alt_names": [{"san_type": "URI", "matcher": peer}],
        },
    })
}

fn transport_socket(context: &str, fields: Value) -> Value {
    let kind = format!("envoy.extensions.transport_sockets.tls.v3.{context}");
    json!({"name": "envoy.transport_sockets.tls", "typed_config": typed(&kind, fields)})
}
