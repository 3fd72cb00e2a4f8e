//! Zipkin v2 JSON over HTTP/1.1.

use serde_json::json;

use crate::running::{Running, gzipped};

/// A call as Brave reports it: the server's half has the id of the client's.
const GATEWAY: &str = r#"[
  {"traceId":"a","id":"1","kind":"SERVER","localEndpoint":{"serviceName":"gateway"}},
  {"traceId":"a","parentId":"1","id":"2","kind":"CLIENT","localEndpoint":{"serviceName":"gateway"}}
]"#;
const VETS: &str = r#"[
  {"traceId":"a","parentId":"1","id":"2","kind":"SERVER","shared":true,"localEndpoint":{"serviceName":"vets"}},
  {"traceId":"a","parentId":"2","id":"3","kind":"CLIENT","localEndpoint":{"serviceName":"vets"}}
]"#;

#[test]
fn the_halves_of_a_call_make_a_link_between_services() {
    let collector = Running::with_window();
    for body in [VETS, GATEWAY] {
        assert_eq!(collector.post("/api/v2/spans", "", body.as_bytes()).status, 202);
    }
    let window = collector.window();
    let links = json!([
        { "parent": null, "service": "gateway", "count": 1 },
        { "parent": "gateway", "service": "gateway", "count": 1 },
        { "parent": "gateway", "service": "vets", "count": 1 },
        { "parent": "vets", "service": "vets", "count": 1 },
    ]);
    assert_eq!(window["traces"], json!([{ "links": links, "traces": 1 }]));
    assert_eq!(window["repeated"], 0);
}

#[test]
fn easeagents_sender_is_taken_with_its_packed_body() {
    let collector = Running::with_window();
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\nb3: 0\r\n";
    let reply = collector.post("/application-tracing-log", headers, &gzipped(GATEWAY.as_bytes()));
    assert_eq!(reply.status, 202);
    assert_eq!(collector.window()["spans"], json!({ "gateway": 2 }));
}

#[test]
fn what_is_no_list_of_spans_is_refused_and_counted_as_refused() {
    let collector = Running::with_window();
    let reply = collector.post("/api/v2/spans", "", b"{}");
    assert_eq!(reply.status, 400);
    assert!(reply.text().starts_with("the body cannot be understood: "), "{reply:?}");
    assert_eq!(collector.window()["refused"], 1);
}
