use hyper::http::request::Builder;
use proptest::prelude::*;

use super::*;

fn head(path: &str, header: impl FnOnce(Builder) -> Builder) -> Parts {
    let request = header(Request::post(path)).body(()).unwrap();
    request.into_parts().0
}

fn take(path: &str, body: &[u8], header: impl FnOnce(Builder) -> Builder) -> Result<u64, Refusal> {
    let mut tally = Tally::default();
    taken(&head(path, header), Ok(Bytes::copy_from_slice(body)), &mut tally)?;
    Ok(tally.counters().arrived_ever + tally.counters().not_spans)
}

const ZIPKIN_SPAN: &[u8] = br#"[{"traceId":"a","id":"b"}]"#;

#[test]
fn easeagents_path_takes_what_zipkins_takes() {
    for path in ["/api/v2/spans", "/application-tracing-log"] {
        assert_eq!(take(path, ZIPKIN_SPAN, |request| request), Ok(1), "{path}");
    }
}

#[test]
fn metrics_and_logs_are_passed_over_whatever_they_hold() {
    let paths = [
        "/v1/metrics",
        "/v1/logs",
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        "/application-metrics",
        "/platform-metrics",
        "/application-log",
        "/application-access-log",
    ];
    for path in paths {
        assert_eq!(take(path, b"anything", |request| request), Ok(1), "{path}");
    }
}

#[test]
fn otlp_in_json_is_refused_with_what_to_send() {
    let json = |request: Builder| request.header("content-type", "application/json");
    let refusal = take("/v1/traces", b"{}", json).unwrap_err();
    assert_eq!(refusal.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(refusal.to_string().contains("send application/x-protobuf"), "{refusal}");
}

#[test]
fn nothing_is_taken_elsewhere() {
    let refusal = take("/v1/trace", b"", |request| request).unwrap_err();
    assert_eq!(refusal, Refusal::NoSuchPath("/v1/trace".into()));
}

#[test]
fn only_a_post_brings_spans() {
    let mut get = head("/api/v2/spans", |request| request);
    get.method = Method::GET;
    let refusal = taken(&get, Ok(Bytes::from_static(ZIPKIN_SPAN)), &mut Tally::default());
    assert!(matches!(refusal, Err(Refusal::NoSuchPath(_))));
}

#[test]
fn a_body_that_was_too_long_is_refused() {
    let head = head("/v1/metrics", |request| request);
    let refusal = taken(&head, Err(Refusal::TooLarge), &mut Tally::default());
    assert_eq!(refusal.map(|_| ()), Err(Refusal::TooLarge));
}

proptest! {
    #[test]
    fn no_body_whatever_brings_it_down(
        body in prop::collection::vec(any::<u8>(), 0..200),
        path in prop::sample::select(vec![
            "/v1/traces",
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            "/api/v2/spans",
        ]),
        gzip in any::<bool>(),
    ) {
        let encoded = |mut request: Builder| {
            if gzip {
                request = request.header("content-encoding", "gzip").header("grpc-encoding", "gzip");
            }
            request.header("content-type", PROTOBUF)
        };
        // Taken or refused: anything but a panic.
        let _ = take(path, &body, encoded);
    }
}
