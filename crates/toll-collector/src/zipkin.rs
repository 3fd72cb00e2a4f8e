//! Turns Zipkin v2 JSON into batches of spans. Knows nothing of HTTP.
//!
//! Source: <https://zipkin.io/zipkin-api/>. EaseAgent posts the same list with fields of its own, which are skipped.

use std::borrow::Cow;

use serde::Deserialize;

use crate::span::{Batch, Span, SpanId, TraceId, UNNAMED};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSpan<'a> {
    #[serde(borrow)]
    trace_id: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    local_endpoint: Option<Endpoint<'a>>,
    shared: Option<bool>,
    /// When it began, microseconds since 1970.
    timestamp: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(borrow)]
    service_name: Option<Cow<'a, str>>,
}

/// The spans of one list, in batches of neighbours of the same service.
///
/// # Errors
/// What in `body` is not a list of spans.
pub(crate) fn batches(body: &[u8]) -> Result<Vec<Batch>, serde_json::Error> {
    let spans: Vec<WireSpan> = serde_json::from_slice(body)?;
    let batches = spans.chunk_by(|one, next| one.service() == next.service());
    Ok(batches.map(batch).collect())
}

fn batch(spans: &[WireSpan]) -> Batch {
    let mut batch = Batch::of(spans[0].service());
    for span in spans {
        batch.add(span.known());
    }
    batch
}

impl WireSpan<'_> {
    fn service(&self) -> &str {
        let name = self.local_endpoint.as_ref().and_then(|local| local.service_name.as_deref());
        name.filter(|name| !name.is_empty()).unwrap_or(UNNAMED)
    }

    /// None without a valid trace id, span id or parent's id.
    fn known(&self) -> Option<Span> {
        let parent = match self.parent_id.as_deref() {
            None => None,
            Some(id) => SpanId::new(number(id)?),
        };
        let trace = TraceId::new(hexadecimal(&self.trace_id, 32)?)?;
        let id = SpanId::new(number(&self.id)?)?;
        let began = self.timestamp.map(|micros| micros.saturating_mul(1000));
        Some(Span { trace, id, parent, shared: self.shared.unwrap_or(false), began })
    }
}

fn number(id: &str) -> Option<u64> {
    u64::try_from(hexadecimal(id, 16)?).ok()
}

/// The number that 1 to `longest` hexadecimal digits make.
fn hexadecimal(digits: &str, longest: usize) -> Option<u128> {
    // The parser would also take a sign.
    let valid = digits.len() <= longest && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    valid.then(|| u128::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests;
