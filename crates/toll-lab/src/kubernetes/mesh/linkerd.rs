//! Linkerd: annotations, and the metrics of its proxies
//! (<https://linkerd.io/2/reference/proxy-metrics/>).

use super::Counted;
use crate::deployment::Mtls;
use crate::exposition::samples;

/// The namespace of its control plane.
pub(super) const CONTROL_PLANE: &str = "linkerd";

/// The container of the proxy beside a program.
pub(super) const CONTAINER: &str = "linkerd-proxy";

/// Where a proxy has its metrics.
pub(super) const STATISTICS: (u16, &str) = (4191, "/metrics");

/// Who may call the pods of a service: the load has no identity, and comes to the entry alone.
pub(super) fn annotations(is_entry: bool, mtls: Mtls) -> Vec<(&'static str, &'static str)> {
    let policy = match (mtls, is_entry) {
        (Mtls::Strict, false) => "all-authenticated",
        (Mtls::Strict, true) | (Mtls::Permissive, _) => "all-unauthenticated",
    };
    vec![("config.linkerd.io/default-inbound-policy", policy)]
}

/// Requests, by what the proxy in a pod of the service `pod` reports. A proxy names who called it, and not itself.
pub(super) fn requests(text: &str, namespace: &str, pod: &str) -> Counted {
    let mut counted = Counted::default();
    for sample in samples(text, "request_total") {
        match (sample.label("direction"), sample.label("tls")) {
            ("inbound", "true") => {
                let caller = service_of(sample.label("client_id"), namespace);
                counted.note_inbound(pod.to_owned(), caller, sample.value);
            }
            ("inbound", _) => {
                *counted.plaintext.entry(pod.to_owned()).or_default() += sample.value;
            }
            ("outbound", _) if sample.label("dst_namespace") == namespace => {
                let way = (pod.to_owned(), sample.label("dst_service").to_owned());
                *counted.sent.entry(way).or_default() += sample.value;
            }
            _ => {}
        }
    }
    counted
}

/// The service whose account this identity is of: `client.NAMESPACE.serviceaccount.identity.linkerd.cluster.local`.
pub(super) fn service_of(identity: &str, namespace: &str) -> Option<String> {
    let (service, rest) = identity.split_once('.')?;
    let rest = rest.strip_prefix(namespace)?;
    rest.starts_with(".serviceaccount.identity.").then(|| service.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of an edge release of 2026, with what matters here of its labels.
    const OF_SERVER: &str = r#"
# TYPE request_total counter
request_total{direction="inbound",target_addr="10.244.0.9:9999",target_ip="10.244.0.9",target_port="9999",tls="true",client_id="client.toll-1-2-linkerd.serviceaccount.identity.linkerd.cluster.local",srv_kind="default",srv_name="all-authenticated"} 42
request_total{direction="inbound",target_addr="10.244.0.9:9999",tls="no_identity",no_tls_reason="no_tls_from_remote",srv_kind="default",srv_name="all-unauthenticated"} 3
request_total{direction="outbound",authority="db.toll-1-2-linkerd.svc.cluster.local:80",target_addr="10.244.0.10:80",tls="true",server_id="db.toll-1-2-linkerd.serviceaccount.identity.linkerd.cluster.local",dst_namespace="toll-1-2-linkerd",dst_service="db"} 7
request_total{direction="outbound",dst_namespace="linkerd",dst_service="linkerd-policy",tls="true"} 5
"#;

    #[test]
    fn requests_are_told_apart_by_who_sent_them_and_other_namespaces_are_left_out() {
        let counted = requests(OF_SERVER, "toll-1-2-linkerd", "server");
        let server = || "server".to_owned();
        assert_eq!(counted.over_mtls, [((server(), "client".to_owned()), 42)].into());
        assert_eq!(counted.plaintext, [(server(), 3)].into());
        assert_eq!(counted.sent, [((server(), "db".to_owned()), 7)].into());
    }

    #[test]
    fn an_identity_of_another_namespace_is_no_service_of_the_arm() {
        let identity = "client.arm-2.serviceaccount.identity.linkerd.cluster.local";
        assert_eq!(service_of(identity, "arm-2").as_deref(), Some("client"));
        assert_eq!(service_of(identity, "arm"), None);
    }
}
