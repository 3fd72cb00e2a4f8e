//! The adapter for the OpenTelemetry Java agent:
//! <https://opentelemetry.io/docs/zero-code/java/agent/configuration/>.
//!
//! Settings come from system properties, else from the environment, else from its file.

use std::net::SocketAddr;

use super::manner::{BATCH_DELAY_MS, Manner};

/// Milliseconds after which spans are sent at the latest; the agent's own choice is 5000.
pub(super) const BATCH_DELAY: &str = "otel.bsp.schedule.delay";

/// What to do when it is loaded and sends nothing.
pub(super) const WHEN_SILENT: &str = "what the agent says is in the log of each service; look there for the JDK that it does not know, and in its `settings` for what switches tracing off";

/// How it gets its name and the address of the collector.
pub(super) fn manner(service: &str, collector: SocketAddr) -> Manner {
    Manner {
        file_property: "otel.javaagent.configuration-file",
        fixed: vec![
            ("otel.service.name", service.to_owned()),
            ("otel.exporter.otlp.endpoint", format!("http://{collector}")),
        ],
        defaults: vec![
            ("otel.exporter.otlp.protocol", "http/protobuf".to_owned()),
            (BATCH_DELAY, BATCH_DELAY_MS.to_string()),
        ],
        of_the_jvm: &[],
        leaves_folders: false,
        variables: &["OTEL_"],
    }
}
