//! The adapter for EaseAgent, which sends Zipkin spans, version 2, as JSON:
//! <https://github.com/megaease/easeagent/blob/master/doc/user-manual.md>.
//!
//! Made after what was seen of version 2.3.0; its jar is not here, so that nothing but the texts below is tested. Its
//! file overrides the one in the jar; the environment overrides both. Of more than 1000 spans that wait to be sent it
//! drops the rest, unless a study sets `reporter.tracing.output.queuedMaxSpans`.

use std::net::SocketAddr;

use super::manner::{BATCH_DELAY_MS, Manner};

/// Where its HTTP sender posts spans, and the collector takes them.
const SPANS_PATH: &str = "/application-tracing-log";

/// Milliseconds after which spans are sent at the latest; its own choice is 1000.
pub(super) const BATCH_DELAY: &str = "reporter.tracing.output.messageTimeout";

/// Without it the library that rewrites its classes does nothing in JVMs later than those that it knows.
const EXPERIMENTAL: &str = "net.bytebuddy.experimental";

/// What to do when it is loaded and sends nothing.
pub(super) const WHEN_SILENT: &str = "EaseAgent knows JDKs up to 18; on later ones it is loaded and does nothing unless its `settings` have `net.bytebuddy.experimental: true`, which becomes `-Dnet.bytebuddy.experimental=true`. What it says is in the log of each service";

/// How it gets its name and the address of the collector.
pub(super) fn manner(service: &str, collector: SocketAddr) -> Manner {
    let text = |(name, value): (&'static str, &str)| (name, value.to_owned());
    Manner {
        file_property: "easeagent.config.path",
        fixed: vec![
            ("name", service.to_owned()),
            ("reporter.outputServer.bootstrapServer", format!("http://{collector}")),
            ("reporter.tracing.sender.url", SPANS_PATH.to_owned()),
        ],
        defaults: [
            ("system", "toll"),
            ("reporter.outputServer.enabled", "true"),
            ("reporter.outputServer.appendType", "http"),
            ("reporter.tracing.sender.enabled", "true"),
            ("reporter.tracing.sender.appendType", "http"),
            (BATCH_DELAY, &BATCH_DELAY_MS.to_string()),
            // The file in the jar samples 100 traces a second; this is all of them.
            ("observability.tracings.sampledType", "counting"),
            ("observability.tracings.sampled", "1"),
            // Without these two it leaves Spring Boot 3 and later alone.
            ("runtime.code.version.points.jdk", "jdk17"),
            ("runtime.code.version.points.spring-boot", "3.x.x"),
            // Its own HTTP server has one port for all, while services may share a network.
            ("easeagent.server.enabled", "false"),
        ]
        .map(text)
        .into(),
        of_the_jvm: &[EXPERIMENTAL],
        leaves_folders: true,
        variables: &["EASEAGENT_", "OTEL_"],
    }
}
