//! OTLP over HTTP/1.1.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use serde_json::json;

use crate::running::{Running, export, gzipped};

const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";

#[test]
fn an_export_is_answered_in_protobuf_and_counted() {
    let collector = Running::with_window();
    let reply = collector.post("/v1/traces", PROTOBUF, &export("vets", &[(10, 0), (11, 10)]));
    assert_eq!(reply.status, 200);
    assert!(reply.head.contains("content-type: application/x-protobuf"), "{reply:?}");
    let response = ExportTraceServiceResponse::decode(&reply.body[..]).unwrap();
    assert_eq!(response.partial_success, None);
    assert_eq!(collector.window()["spans"], json!({ "vets": 2 }));
}

#[test]
fn a_packed_export_is_unpacked() {
    let collector = Running::with_window();
    let headers = format!("{PROTOBUF}content-encoding: gzip\r\n");
    let reply = collector.post("/v1/traces", &headers, &gzipped(&export("vets", &[(10, 0)])));
    assert_eq!(reply.status, 200);
    assert_eq!(collector.window()["spans"], json!({ "vets": 1 }));
}

#[test]
fn a_body_that_is_no_export_is_refused_and_counted_as_refused() {
    let collector = Running::with_window();
    let reply = collector.post("/v1/traces", PROTOBUF, b"no protobuf");
    assert_eq!(reply.status, 400);
    assert!(reply.text().starts_with("the body cannot be understood: "), "{reply:?}");
    let headers = format!("{PROTOBUF}content-encoding: gzip\r\n");
    assert_eq!(collector.post("/v1/traces", &headers, b"no gzip").status, 400);
    assert_eq!(collector.window()["refused"], 2);
}

#[test]
fn a_span_without_valid_ids_is_rejected_in_the_answer() {
    let collector = Running::with_window();
    let reply = collector.post("/v1/traces", PROTOBUF, &export("vets", &[(0, 0), (11, 0)]));
    let response = ExportTraceServiceResponse::decode(&reply.body[..]).unwrap();
    assert_eq!(response.partial_success.unwrap().rejected_spans, 1);
    let window = collector.window();
    assert_eq!((&window["spans"], &window["refused"]), (&json!({ "vets": 1 }), &json!(1)));
}

#[test]
fn metrics_and_logs_are_answered_and_counted_as_no_spans() {
    let collector = Running::with_window();
    for path in ["/v1/metrics", "/v1/logs"] {
        let reply = collector.post(path, PROTOBUF, b"metrics and logs are not looked into");
        assert_eq!((reply.status, reply.body.len()), (200, 0), "{path}");
    }
    let window = collector.window();
    assert_eq!((&window["not_spans"], &window["refused"]), (&json!(2), &json!(0)));
}

#[test]
fn an_unknown_path_is_named() {
    let reply = Running::start().post("/v1/trace", PROTOBUF, b"");
    assert_eq!(reply.status, 404);
    assert!(reply.text().starts_with("nothing is taken at /v1/trace: "), "{reply:?}");
}

#[test]
fn a_body_of_more_than_sixteen_mebibytes_is_not_waited_for() {
    let collector = Running::start();
    let mut stream = TcpStream::connect(collector.address).unwrap();
    let head = "POST /v1/traces HTTP/1.1\r\nhost: collector\r\ncontent-length: 16777217\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

#[test]
fn a_connection_brings_one_export_after_another() {
    let collector = Running::with_window();
    let mut stream = TcpStream::connect(collector.address).unwrap();
    for id in 1..=3 {
        let body = export("vets", &[(id, 0)]);
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: collector\r\n{PROTOBUF}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        let mut rest = Vec::new();
        while !rest.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            rest.extend(byte);
        }
    }
    assert_eq!(collector.window()["spans"], json!({ "vets": 3 }));
}
