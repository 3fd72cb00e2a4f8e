//! Starts the program and talks to it.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use serde_json::Value as Json;
use tempfile::TempDir;

/// No answer takes as long, on however busy a machine.
const HANG: Duration = Duration::from_secs(60);

/// A collector that runs until this is dropped.
pub struct Running {
    pub process: Child,
    pub address: SocketAddr,
    pub socket: PathBuf,
    _folder: TempDir,
}

impl Running {
    /// Starts it and waits until it says that it listens.
    pub fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let socket = folder.path().join("admin.sock");
        let mut command = program("127.0.0.1:0", &socket);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("it can be started");
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("readable text");
        let said: Json = serde_json::from_str(&line).expect("one line of JSON");
        assert_eq!(said["admin"], socket.to_str().expect("UTF-8"));
        let address = said["listening"].as_str().and_then(|text| text.parse().ok());
        Self { process, address: address.expect("an address"), socket, _folder: folder }
    }

    /// One with an open window.
    pub fn with_window() -> Self {
        let running = Self::start();
        assert_eq!(running.admin("POST", "/window").status, 204);
        running
    }

    /// Posts over HTTP/1.1, with more `headers` (lines that end with `\r\n`).
    pub fn post(&self, path: &str, headers: &str, body: &[u8]) -> Reply {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(HANG)).expect("a time limit");
        exchange(stream, "POST", path, headers, body)
    }

    /// Asks over the Unix socket.
    pub fn admin(&self, method: &str, path: &str) -> Reply {
        let stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.set_read_timeout(Some(HANG)).expect("a time limit");
        exchange(stream, method, path, "", b"")
    }

    pub fn window(&self) -> Json {
        self.admin("GET", "/window").json()
    }

    pub fn counts(&self) -> Json {
        self.admin("GET", "/counts").json()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then seen.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program, about to start.
pub fn program(listen: &str, socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toll-collector"));
    command.args(["--listen", listen, "--admin"]).arg(socket);
    command
}

/// An answer over HTTP/1.1.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> Reply {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: collector\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Reply { status, head, body: answer[end + 4..].to_vec() }
}

pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory suffices");
    encoder.finish().expect("memory suffices")
}

/// An export of `service`: spans as (id, parent), 0 being none, all of trace 1.
pub fn export(service: &str, spans: &[(u64, u64)]) -> Vec<u8> {
    let name = AnyValue { value: Some(Value::StringValue(service.into())) };
    let name = KeyValue { key: "service.name".into(), value: Some(name), ..KeyValue::default() };
    let resource = Some(Resource { attributes: vec![name], ..Resource::default() });
    let spans = spans.iter().map(|(id, parent)| span(*id, *parent)).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn span(id: u64, parent: u64) -> Span {
    let parent_span_id = if parent == 0 { vec![] } else { parent.to_be_bytes().into() };
    Span {
        trace_id: 1_u128.to_be_bytes().into(),
        span_id: id.to_be_bytes().into(),
        parent_span_id,
        name: "GET /vets".into(),
        ..Span::default()
    }
}
