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

/// A played reporter's list, after the form in which EaseAgent was seen to send: trace ids of 64 bits, the server's
/// half of a call with the id of the client's and `shared`, and eight queries below it.
fn of_played_easeagent(trace: u64) -> [String; 2] {
    let span = |id: &str, parent: &str, kind: &str, service: &str, more: &str| {
        format!(
            r#"{{"traceId":"{trace:016x}","id":"{id}"{parent},"kind":"{kind}","name":"get","localEndpoint":{{"serviceName":"{service}"}}{more},"type":"log-tracing","service":"{service}","system":"toll"}}"#
        )
    };
    let below = |id: &str| format!(r#","parentId":"{id}""#);
    let gateway = [
        span("00000000000000a1", "", "SERVER", "gateway", ""),
        span("00000000000000a2", &below("00000000000000a1"), "CLIENT", "gateway", ""),
    ];
    let server =
        span("00000000000000a2", &below("00000000000000a1"), "SERVER", "vets", r#","shared":true"#);
    let query = |n: u64| {
        span(&format!("{:016x}", 0xb0 + n), &below("00000000000000a2"), "CLIENT", "vets", "")
    };
    let vets: Vec<String> = [server].into_iter().chain((0..8).map(query)).collect();
    [gateway.join(","), vets.join(",")]
}

#[test]
fn a_played_easeagent_leaves_eleven_spans_a_request_in_traces_that_are_whole() {
    let collector = Running::with_window();
    let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\nb3: 0\r\n";
    let (mut gateway, mut vets) = (Vec::new(), Vec::new());
    for trace in 1..=20 {
        let [of_gateway, of_vets] = of_played_easeagent(trace);
        gateway.push(of_gateway);
        vets.push(of_vets);
    }
    for list in [vets, gateway] {
        let body = gzipped(format!("[{}]", list.join(",")).as_bytes());
        assert_eq!(collector.post("/application-tracing-log", headers, &body).status, 202);
    }
    let links = json!([
        { "parent": null, "service": "gateway", "count": 1 },
        { "parent": "gateway", "service": "gateway", "count": 1 },
        { "parent": "gateway", "service": "vets", "count": 1 },
        { "parent": "vets", "service": "vets", "count": 8 },
    ]);
    assert_eq!(collector.window()["traces"], json!([{ "links": links, "traces": 20 }]));
}

#[test]
fn what_is_no_list_of_spans_is_refused_and_counted_as_refused() {
    let collector = Running::with_window();
    let reply = collector.post("/api/v2/spans", "", b"{}");
    assert_eq!(reply.status, 400);
    assert!(reply.text().starts_with("the body cannot be understood: "), "{reply:?}");
    assert_eq!(collector.window()["refused"], 1);
}
