//! Messages as the published schema makes them, not as this crate's own short one does.

use opentelemetry_proto::tonic::collector::trace::v1 as published;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as PublishedSpan, Status, span::Event,
};
use prost::Message as _;

use super::*;

const TRACE: [u8; 16] =
    [0x5b, 0x8e, 0xff, 0xf7, 0x98, 3, 0x81, 3, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c];
const SPAN: [u8; 8] = [0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74];
const PARENT: [u8; 8] = [0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x73];

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn text(value: &str) -> any_value::Value {
    any_value::Value::StringValue(value.into())
}

/// A span with something in every field that agents fill.
fn span(id: &[u8], parent: &[u8]) -> PublishedSpan {
    PublishedSpan {
        trace_id: TRACE.into(),
        span_id: id.into(),
        parent_span_id: parent.into(),
        trace_state: "vendor=1".into(),
        name: "SELECT petclinic.vets".into(),
        kind: 3,
        start_time_unix_nano: 1_544_712_660_000_000_000,
        end_time_unix_nano: 1_544_712_661_000_000_000,
        attributes: vec![
            attribute("db.query.text", text("select * from vets")),
            attribute("thread.id", any_value::Value::IntValue(41)),
        ],
        events: vec![Event { name: "exception".into(), ..Event::default() }],
        status: Some(Status { message: "no".into(), code: 2 }),
        flags: 0x101,
        ..PublishedSpan::default()
    }
}

fn resource_spans(resource: Option<Resource>, spans: Vec<PublishedSpan>) -> ResourceSpans {
    let scope =
        Some(InstrumentationScope { name: "io.opentelemetry.jdbc".into(), ..Default::default() });
    let scope_spans = vec![ScopeSpans { scope, spans, schema_url: "https://schema".into() }];
    ResourceSpans { resource, scope_spans, schema_url: String::new() }
}

fn resource(attributes: Vec<KeyValue>) -> Option<Resource> {
    Some(Resource { attributes, ..Resource::default() })
}

fn of_service(name: &str, spans: Vec<PublishedSpan>) -> ResourceSpans {
    let attributes = vec![
        attribute("process.pid", any_value::Value::IntValue(1)),
        attribute("service.name", text(name)),
        attribute("telemetry.sdk.language", text("java")),
    ];
    resource_spans(resource(attributes), spans)
}

fn decoded(resource_spans: Vec<ResourceSpans>) -> Vec<Batch> {
    let export = published::ExportTraceServiceRequest { resource_spans };
    batches(export.encode_to_vec().into()).unwrap()
}

fn only_span(span: PublishedSpan) -> Option<Span> {
    let batches = decoded(vec![of_service("vets", vec![span])]);
    batches[0].spans.first().copied()
}

#[test]
fn a_span_is_read_with_its_trace_its_id_and_its_parent() {
    let expected = Span {
        trace: TraceId::new(0x5b8e_fff7_9803_8103_d269_b633_813f_c60c).unwrap(),
        id: SpanId::new(0xeee1_9b7e_c3c1_b174).unwrap(),
        parent: SpanId::new(0xeee1_9b7e_c3c1_b173),
        shared: false,
        began: Some(1_544_712_660_000_000_000),
    };
    assert_eq!(only_span(span(&SPAN, &PARENT)), Some(expected));
}

#[test]
fn a_span_without_a_parents_id_is_a_root() {
    assert_eq!(only_span(span(&SPAN, &[])).unwrap().parent, None);
    assert_eq!(only_span(span(&SPAN, &[0; 8])).unwrap().parent, None);
}

#[test]
fn the_service_is_what_the_resource_says() {
    let batches = decoded(vec![
        of_service("gateway", vec![span(&PARENT, &[])]),
        of_service("vets", vec![span(&SPAN, &PARENT), span(&SPAN, &PARENT)]),
    ]);
    let seen: Vec<_> = batches.iter().map(|b| (b.service.as_str(), b.spans.len())).collect();
    assert_eq!(seen, [("gateway", 1), ("vets", 2)]);
}

#[test]
fn a_service_that_does_not_say_its_name_is_unknown() {
    let numbered = attribute("service.name", any_value::Value::IntValue(7));
    for resource in [None, resource(vec![]), resource(vec![numbered])] {
        let batches = decoded(vec![resource_spans(resource, vec![span(&SPAN, &[])])]);
        assert_eq!(batches[0].service, "unknown_service");
    }
}

#[test]
fn spans_of_all_instrumentations_of_a_service_count() {
    let mut of_service = of_service("vets", vec![span(&SPAN, &PARENT)]);
    of_service.scope_spans.push(of_service.scope_spans[0].clone());
    assert_eq!(decoded(vec![of_service])[0].spans.len(), 2);
}

#[test]
fn a_span_without_valid_ids_is_counted_as_invalid() {
    let no_trace = PublishedSpan { trace_id: vec![0; 16], ..span(&SPAN, &[]) };
    let short_trace = PublishedSpan { trace_id: vec![1; 8], ..span(&SPAN, &[]) };
    let wrong =
        [no_trace, short_trace, span(&[0; 8], &[]), span(&[1; 7], &[]), span(&SPAN, &[1; 9])];
    for span in wrong {
        let batches = decoded(vec![of_service("vets", vec![span.clone()])]);
        assert_eq!((batches[0].spans.len(), batches[0].invalid), (0, 1), "{span:?}");
    }
}

#[test]
fn an_export_without_spans_is_empty() {
    assert_eq!(decoded(vec![]), []);
}

#[test]
fn what_is_no_export_is_not_understood() {
    assert!(batches(Bytes::from_static(b"{\"resourceSpans\":[]}")).is_err());
    let whole = published::ExportTraceServiceRequest {
        resource_spans: vec![of_service("vets", vec![span(&SPAN, &PARENT)])],
    };
    let whole = Bytes::from(whole.encode_to_vec());
    assert!(batches(whole.slice(..whole.len() - 1)).is_err());
}

#[test]
fn an_answer_without_rejections_is_an_empty_message() {
    let answer = published::ExportTraceServiceResponse::decode(response(0)).unwrap();
    assert_eq!(answer.partial_success, None);
}

#[test]
fn an_answer_says_how_many_spans_were_rejected() {
    let answer = published::ExportTraceServiceResponse::decode(response(12)).unwrap();
    assert_eq!(answer.partial_success.unwrap().rejected_spans, 12);
}
