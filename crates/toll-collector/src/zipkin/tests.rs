use super::*;

/// The span of Zipkin's own documentation of its API.
const EXAMPLE: &str = r#"{
    "id": "352bff9a74ca9ad2",
    "traceId": "5af7183fb1d4cf5f",
    "parentId": "6b221d5bc9e6496c",
    "name": "get /api",
    "timestamp": 1556604172355737,
    "duration": 1431,
    "kind": "SERVER",
    "localEndpoint": { "serviceName": "backend", "ipv4": "192.168.99.1", "port": 3306 },
    "remoteEndpoint": { "ipv4": "172.19.0.2", "port": 58648 },
    "annotations": [{ "timestamp": 1556604172355737, "value": "error" }],
    "tags": { "http.method": "GET", "http.path": "/api" }
}"#;

/// As EaseAgent writes it: without white space, and with fields of its own.
const EASEAGENT: &str = concat!(
    r#"{"traceId":"5af7183fb1d4cf5f","parentId":"6b221d5bc9e6496c","id":"352bff9a74ca9ad2","kind":"SERVER","#,
    r#""name":"get","timestamp":1,"duration":2,"shared":true,"localEndpoint":{"serviceName":"vets"},"#,
    r#""tags":{"sql":"select \"x\""},"type":"log-tracing","service":"vets","system":"demo-system"}"#
);

fn list(spans: &[&str]) -> String {
    format!("[{}]", spans.join(","))
}

fn decoded(spans: &[&str]) -> Vec<Batch> {
    batches(list(spans).as_bytes()).unwrap()
}

fn span(fields: &str) -> String {
    format!(r#"{{"traceId":"a","id":"b"{fields}}}"#)
}

fn of_service(name: &str) -> String {
    span(&format!(r#","localEndpoint":{{"serviceName":"{name}"}}"#))
}

#[test]
fn a_span_is_read_with_its_trace_its_id_its_parent_and_its_service() {
    let expected = Span {
        trace: TraceId::new(0x5af7_183f_b1d4_cf5f).unwrap(),
        id: SpanId::new(0x352b_ff9a_74ca_9ad2).unwrap(),
        parent: SpanId::new(0x6b22_1d5b_c9e6_496c),
        shared: false,
        began: Some(1_556_604_172_355_737_000),
    };
    let batches = decoded(&[EXAMPLE]);
    assert_eq!((batches[0].service.as_str(), &batches[0].spans[..]), ("backend", &[expected][..]));
}

#[test]
fn easeagents_spans_are_zipkins_with_more_fields() {
    let batches = decoded(&[EASEAGENT]);
    assert_eq!((batches[0].service.as_str(), batches[0].spans[0].shared), ("vets", true));
}

#[test]
fn a_trace_id_may_have_128_bits() {
    let long = r#"{"traceId":"5af7183fb1d4cf5f00000000000000ab","id":"b"}"#;
    let trace = decoded(&[long])[0].spans[0].trace;
    assert_eq!(Some(trace), TraceId::new(0x5af7_183f_b1d4_cf5f_0000_0000_0000_00ab));
}

#[test]
fn a_span_without_parent_is_a_root() {
    for fields in ["", r#","parentId":null"#, r#","parentId":"0000000000000000""#] {
        assert_eq!(decoded(&[&span(fields)])[0].spans[0].parent, None, "{fields}");
    }
}

#[test]
fn neighbours_of_one_service_make_one_batch() {
    let [gateway, vets] = ["gateway", "vets"].map(of_service);
    let batches = decoded(&[&gateway, &vets, &vets]);
    let seen: Vec<_> = batches.iter().map(|b| (b.service.as_str(), b.spans.len())).collect();
    assert_eq!(seen, [("gateway", 1), ("vets", 2)]);
}

#[test]
fn a_service_that_does_not_say_its_name_is_unknown() {
    for fields in ["", r#","localEndpoint":null"#, r#","localEndpoint":{"serviceName":""}"#] {
        assert_eq!(decoded(&[&span(fields)])[0].service, "unknown_service", "{fields}");
    }
}

#[test]
fn a_name_with_escapes_is_unescaped() {
    assert_eq!(decoded(&[&of_service(r"v\u0065ts")])[0].service, "vets");
}

#[test]
fn a_span_without_valid_ids_is_counted_as_invalid() {
    let wrong = [
        r#"{"traceId":"0","id":"b"}"#,
        r#"{"traceId":"","id":"b"}"#,
        r#"{"traceId":"+a","id":"b"}"#,
        r#"{"traceId":"5af7183fb1d4cf5f5af7183fb1d4cf5f0","id":"b"}"#,
        r#"{"traceId":"a","id":"0"}"#,
        r#"{"traceId":"a","id":"xyz"}"#,
        r#"{"traceId":"a","id":"5af7183fb1d4cf5f0"}"#,
        r#"{"traceId":"a","id":"b","parentId":"xyz"}"#,
    ];
    for span in wrong {
        let batches = decoded(&[span]);
        assert_eq!((batches[0].spans.len(), batches[0].invalid), (0, 1), "{span}");
    }
}

#[test]
fn what_is_no_list_of_spans_is_not_understood() {
    for body in ["", "[", "{}", "[{}]", r#"[{"traceId":1,"id":"b"}]"#, "[] []"] {
        assert!(batches(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn an_empty_list_is_empty() {
    assert_eq!(decoded(&[]), []);
}
