//! Turns the body of an OTLP export into batches of spans, and an answer into bytes. Knows nothing of HTTP.
//!
//! The messages name only the fields that are read; prost skips all others unread, which is most of a span.
//! Source: <https://opentelemetry.io/docs/specs/otlp/>, opentelemetry/proto/trace/v1/trace.proto.

use bytes::Bytes;
use prost::{DecodeError, Message, Oneof};

use crate::span::{Batch, Span, SpanId, TraceId, UNNAMED};

const SERVICE_NAME: &str = "service.name";

#[derive(Message)]
struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1")]
    value: Option<Value>,
}

#[derive(Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    StringValue(String),
}

#[derive(Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<WireSpan>,
}

// `Bytes` share the body's memory: three ids a span would be three allocations otherwise.
#[derive(Message)]
struct WireSpan {
    #[prost(bytes = "bytes", tag = "1")]
    trace_id: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    span_id: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    parent_span_id: Bytes,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
}

#[derive(Message)]
struct ExportTraceServiceResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<ExportTracePartialSuccess>,
}

#[derive(Message)]
struct ExportTracePartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The spans of one export, a batch for each resource.
///
/// # Errors
/// What in `body` is not an `ExportTraceServiceRequest`.
pub(crate) fn batches(body: Bytes) -> Result<Vec<Batch>, DecodeError> {
    let export = ExportTraceServiceRequest::decode(body)?;
    Ok(export.resource_spans.iter().map(batch).collect())
}

/// The answer to an export of which `rejected` spans were not taken.
pub(crate) fn response(rejected: u64) -> Bytes {
    let partial_success = (rejected > 0).then(|| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(rejected).unwrap_or(i64::MAX),
        error_message: "the window is full, or these spans have no valid ids".into(),
    });
    ExportTraceServiceResponse { partial_success }.encode_to_vec().into()
}

fn batch(of_resource: &ResourceSpans) -> Batch {
    let mut batch = Batch::of(service_name(of_resource.resource.as_ref()));
    for span in of_resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
        batch.add(span.known());
    }
    batch
}

fn service_name(resource: Option<&Resource>) -> &str {
    let attributes = resource.into_iter().flat_map(|resource| &resource.attributes);
    let named = attributes.filter(|attribute| attribute.key == SERVICE_NAME);
    named.filter_map(KeyValue::text).next().unwrap_or(UNNAMED)
}

impl KeyValue {
    fn text(&self) -> Option<&str> {
        match self.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) if !text.is_empty() => Some(text),
            Value::StringValue(_) => None,
        }
    }
}

impl WireSpan {
    /// None without a valid trace id, span id or parent's id.
    fn known(&self) -> Option<Span> {
        let trace = u128::from_be_bytes(self.trace_id.as_ref().try_into().ok()?);
        let parent = match self.parent_span_id.as_ref() {
            [] => None,
            id => span_id(id)?,
        };
        let id = span_id(&self.span_id)??;
        let began = Some(self.start_time_unix_nano).filter(|began| *began > 0);
        Some(Span { trace: TraceId::new(trace)?, id, parent, shared: false, began })
    }
}

/// None when it has not eight bytes, `Some(None)` when all of them are zero.
fn span_id(bytes: &[u8]) -> Option<Option<SpanId>> {
    let bytes = <[u8; 8]>::try_from(bytes).ok()?;
    Some(SpanId::new(u64::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests;
