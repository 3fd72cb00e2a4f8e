//! The adapter for the OpenTelemetry Java agent:
//! <https://opentelemetry.io/docs/zero-code/java/agent/configuration/>.
//!
//! Settings come from system properties, else from the environment, else from its file.

use std::net::SocketAddr;

use super::Manner;

/// Milliseconds after which spans are sent at the latest: a trial's spans are to arrive soon after it. The agent's
/// own choice is 5000.
const BATCH_DELAY: &str = "500";

/// How it is told who it is and where the collector is.
pub(super) fn manner(service: &str, collector: SocketAddr) -> Manner {
    Manner {
        file_property: "otel.javaagent.configuration-file",
        fixed: vec![
            ("otel.service.name", service.to_owned()),
            ("otel.exporter.otlp.endpoint", format!("http://{collector}")),
        ],
        defaults: vec![
            ("otel.exporter.otlp.protocol", "http/protobuf".to_owned()),
            ("otel.bsp.schedule.delay", BATCH_DELAY.to_owned()),
        ],
        variables: &["OTEL_"],
    }
}
