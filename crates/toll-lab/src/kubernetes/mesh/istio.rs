//! Istio: labels, policies, and the standard metrics of its proxies
//! (<https://istio.io/latest/docs/reference/config/metrics/>).

use serde_json::{Value, json};

use super::super::objects::Place;
use super::Counted;
use crate::exposition::{Sample, samples};

/// The namespace of istiod and of the ztunnels.
pub(super) const CONTROL_PLANE: &str = "istio-system";

/// The container of the proxy beside a program.
pub(super) const CONTAINER: &str = "istio-proxy";

/// Where the agent beside a sidecar's Envoy has both their metrics, which no policy keeps anybody from.
pub(super) const OF_SIDECAR: (u16, &str) = (15_020, "/stats/prometheus");

/// Where a ztunnel has its metrics.
pub(super) const OF_ZTUNNEL: (u16, &str) = (15_020, "/metrics");

/// mTLS alone, but for the pods of this selector.
pub(super) fn strict_but(at: Place<'_>, entry: &Value) -> Vec<Value> {
    let policy = |name: &str, spec: Value| {
        json!({
            "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
            "metadata": {"name": name, "namespace": at.namespace, "labels": at.run.labels()},
            "spec": spec,
        })
    };
    vec![
        policy("default", json!({"mtls": {"mode": "STRICT"}})),
        policy("entry", json!({"selector": entry, "mtls": {"mode": "PERMISSIVE"}})),
    ]
}

/// Requests, by what the sidecars at both ends report.
pub(super) fn requests(text: &str, namespace: &str) -> Counted {
    counted(text, "istio_requests_total", namespace)
}

/// Connections, by what the ztunnels at both ends report.
pub(super) fn connections(text: &str, namespace: &str) -> Counted {
    counted(text, "istio_tcp_connections_opened_total", namespace)
}

fn counted(text: &str, metric: &str, namespace: &str) -> Counted {
    let mut counted = Counted::default();
    for sample in samples(text, metric) {
        let Some(callee) = destination(&sample, namespace) else { continue };
        let caller = service_of(sample.label("source_principal"), namespace);
        let is_mtls = sample.label("connection_security_policy") == "mutual_tls";
        match (sample.label("reporter"), is_mtls) {
            ("destination", true) => counted.note_inbound(callee, caller, sample.value),
            ("destination", false) => {
                *counted.plaintext.entry(callee).or_default() += sample.value;
            }
            ("source", _) => {
                let own = sample.label("source_workload").to_owned();
                *counted.sent.entry((own, callee)).or_default() += sample.value;
            }
            _ => {}
        }
    }
    counted
}

/// The service of the arm that was called; none of what went elsewhere.
fn destination(sample: &Sample, namespace: &str) -> Option<String> {
    if sample.label("destination_workload_namespace") != namespace
        && sample.label("destination_service_namespace") != namespace
    {
        return None;
    }
    let name = match sample.label("destination_service_name") {
        // Where nothing but the pod is known.
        "" | "unknown" | "InboundPassthroughCluster" => sample.label("destination_workload"),
        name => name,
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// The service whose account this SPIFFE ID is of, whatever the trust domain.
pub(super) fn service_of(principal: &str, namespace: &str) -> Option<String> {
    let (_, rest) = principal.split_once("/ns/")?;
    let (its_namespace, service) = rest.split_once("/sa/")?;
    (its_namespace == namespace).then(|| service.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of Istio 1.29's sidecars, with what matters here of their labels.
    const OF_SERVER: &str = r#"
# TYPE istio_requests_total counter
istio_requests_total{reporter="destination",source_workload="client",source_principal="spiffe://cluster.local/ns/toll-1-2-istio/sa/client",destination_workload="server",destination_workload_namespace="toll-1-2-istio",destination_principal="spiffe://cluster.local/ns/toll-1-2-istio/sa/server",destination_service="server.toll-1-2-istio.svc.cluster.local",destination_service_name="server",destination_service_namespace="toll-1-2-istio",request_protocol="http",response_code="200",response_flags="-",connection_security_policy="mutual_tls"} 42
istio_requests_total{reporter="destination",source_workload="unknown",source_principal="unknown",destination_workload="server",destination_workload_namespace="toll-1-2-istio",destination_service_name="server",destination_service_namespace="toll-1-2-istio",response_code="200",connection_security_policy="none"} 3
istio_requests_total{reporter="destination",source_workload="other",source_principal="spiffe://cluster.local/ns/shop/sa/other",destination_workload="server",destination_workload_namespace="toll-1-2-istio",destination_service_name="server",destination_service_namespace="toll-1-2-istio",response_code="200",connection_security_policy="mutual_tls"} 5
istio_requests_total{reporter="source",source_workload="client",source_principal="unknown",destination_workload="server",destination_workload_namespace="toll-1-2-istio",destination_service_name="server",destination_service_namespace="toll-1-2-istio",response_code="200",connection_security_policy="unknown"} 42
istio_requests_total{reporter="source",source_workload="client",destination_workload="web",destination_workload_namespace="shop",destination_service_name="web",destination_service_namespace="shop",connection_security_policy="unknown"} 9
"#;

    #[test]
    fn requests_are_told_apart_by_who_sent_them_and_other_namespaces_are_left_out() {
        let counted = requests(OF_SERVER, "toll-1-2-istio");
        let server = || "server".to_owned();
        assert_eq!(counted.over_mtls, [((server(), "client".to_owned()), 42)].into());
        assert_eq!(counted.plaintext, [(server(), 3)].into());
        assert_eq!(counted.from_others, [(server(), 5)].into());
        assert_eq!(counted.sent, [(("client".to_owned(), server()), 42)].into());
    }

    #[test]
    fn a_principal_of_another_namespace_is_no_service_of_the_arm() {
        let own = service_of("spiffe://mesh.example/ns/arm/sa/client", "arm");
        assert_eq!(own.as_deref(), Some("client"));
        assert_eq!(service_of("spiffe://mesh.example/ns/arm-2/sa/client", "arm"), None);
        assert_eq!(service_of("unknown", "arm"), None);
    }
}
