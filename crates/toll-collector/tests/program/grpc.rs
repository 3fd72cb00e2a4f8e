//! OTLP over gRPC: HTTP/2 without TLS, by prior knowledge.

use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper::{HeaderMap, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::runtime;

use crate::running::{Running, export, gzipped};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What a call brought: its message frames and, from headers or trailers, how it ended.
struct Outcome {
    status: String,
    message: String,
    body: Bytes,
}

fn frame(packed: u8, message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(packed);
    frame.put_u32(message.len().try_into().expect("a short message"));
    frame.put_slice(message);
    frame.freeze()
}

fn call(collector: &Running, path: &str, body: Bytes) -> Outcome {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(called(collector, path, body))
}

async fn called(collector: &Running, path: &str, body: Bytes) -> Outcome {
    let stream = TcpStream::connect(collector.address).await.expect("it listens");
    let connection = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, driver) = connection.expect("it speaks HTTP/2");
    tokio::spawn(driver);
    let request = Request::post(format!("http://{}{path}", collector.address))
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
        .header("grpc-encoding", "gzip")
        .body(Full::new(body))
        .expect("valid headers");
    let answer = sender.send_request(request).await.expect("it answers");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/grpc");
    let headers = answer.headers().clone();
    let body = answer.into_body().collect().await.expect("a whole answer");
    let trailers = body.trailers().cloned().unwrap_or(headers);
    Outcome {
        status: text(&trailers, "grpc-status"),
        message: text(&trailers, "grpc-message"),
        body: body.to_bytes(),
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
}

#[test]
fn a_call_is_answered_with_status_zero_and_counted() {
    let collector = Running::with_window();
    let outcome = call(&collector, TRACES, frame(0, &export("vets", &[(10, 0), (11, 10)])));
    assert_eq!((outcome.status.as_str(), outcome.body), ("0", frame(0, b"")));
    assert_eq!(collector.window()["spans"], json!({ "vets": 2 }));
}

#[test]
fn a_packed_message_is_unpacked() {
    let collector = Running::with_window();
    let packed = frame(1, &gzipped(&export("vets", &[(10, 0)])));
    assert_eq!(call(&collector, TRACES, packed).status, "0");
    assert_eq!(collector.window()["spans"], json!({ "vets": 1 }));
}

#[test]
fn what_is_no_message_is_an_invalid_argument() {
    let collector = Running::with_window();
    let bodies = [Bytes::new(), frame(0, b"no protobuf"), frame(1, b"no gzip"), frame(7, b"")];
    for body in bodies {
        let outcome = call(&collector, TRACES, body.clone());
        assert_eq!(outcome.status, "3", "{body:?}");
        assert!(outcome.message.starts_with("the body cannot be understood: "), "{body:?}");
    }
    assert_eq!(collector.window()["refused"], 4);
}

#[test]
fn an_unknown_method_is_unimplemented() {
    let outcome = call(&Running::start(), "/some.Service/Export", frame(0, b""));
    assert_eq!(outcome.status, "12");
}

#[test]
fn metrics_and_logs_are_answered_and_counted_as_no_spans() {
    let collector = Running::with_window();
    for signal in ["metrics.v1.MetricsService", "logs.v1.LogsService"] {
        let path = format!("/opentelemetry.proto.collector.{signal}/Export");
        assert_eq!(call(&collector, &path, frame(0, b"anything")).status, "0", "{signal}");
    }
    assert_eq!(collector.window()["not_spans"], 2);
}
