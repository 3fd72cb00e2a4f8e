//! Turns arguments into where to listen.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

const EXAMPLES: &str = r#"Example:
  toll-collector --listen 0.0.0.0:4318 --admin /run/collector.sock

Takes spans at one port, in HTTP/1.1 or HTTP/2 without TLS, gzip or not:
  OTLP/HTTP  POST /v1/traces, application/x-protobuf
  OTLP/gRPC  opentelemetry.proto.collector.trace.v1.TraceService/Export
  Zipkin     POST /api/v2/spans or /application-tracing-log, JSON of version 2
Metrics and logs are answered and dropped.

Over the Unix socket:
  curl --unix-socket /run/collector.sock -X POST   http://toll/window   forget everything, keep spans that begin from now on
  curl --unix-socket /run/collector.sock           http://toll/window   what the window holds
  curl --unix-socket /run/collector.sock -X DELETE http://toll/window   forget everything, go on counting
  curl --unix-socket /run/collector.sock           http://toll/counts   the counters alone, at no cost

Prints one line when it listens:
  {"listening":"0.0.0.0:4318","admin":"/run/collector.sock"}"#;

/// Counts the spans that tracing agents send, and whose children they are
#[derive(Debug, Parser)]
#[command(name = "toll-collector", version, after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    /// Where to take spans
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: SocketAddr,
    /// Unix socket to be asked over
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: PathBuf,
}
