//! Turns a request at the port into counts and an answer: by path, then by what the body holds.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use crate::packing::unpacked;
use crate::refusal::Refusal;
use crate::request::{Unread, header, read_whole};
use crate::span::Batch;
use crate::tally::Tally;
use crate::{grpc, otlp, zipkin};

/// An answer, complete.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

const PROTOBUF: &str = "application/x-protobuf";

/// What a sender speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speech {
    OtlpHttp,
    Grpc,
    Zipkin,
}

/// What a sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Spans,
    /// Metrics and logs, which agents send unless they are told not to.
    Other,
}

/// The paths at which something is taken.
fn route(path: &str) -> Option<(Speech, Load)> {
    Some(match path {
        "/v1/traces" => (Speech::OtlpHttp, Load::Spans),
        "/v1/metrics" | "/v1/logs" => (Speech::OtlpHttp, Load::Other),
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => {
            (Speech::Grpc, Load::Spans)
        }
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
        | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => {
            (Speech::Grpc, Load::Other)
        }
        // The second is EaseAgent's, as are those below.
        "/api/v2/spans" | "/application-tracing-log" => (Speech::Zipkin, Load::Spans),
        "/application-metrics"
        | "/platform-metrics"
        | "/application-log"
        | "/application-access-log" => (Speech::Zipkin, Load::Other),
        _ => return None,
    })
}

/// Answers a request; what it brought is counted in `tally`.
///
/// # Errors
/// When its body breaks off: nobody is left to answer.
pub(crate) async fn answer(
    request: Request<Incoming>,
    tally: &Mutex<Tally>,
) -> Result<Answer, hyper::Error> {
    let (head, body) = read_whole(request).await;
    let body = match body {
        Ok(body) => Ok(body),
        Err(Unread::TooLarge) => Err(Refusal::TooLarge),
        Err(Unread::BrokenOff(error)) => return Err(error),
    };
    // Nothing panics while it holds the lock, and counters are whole at any time.
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(taken(&head, body, &mut tally).unwrap_or_else(|refusal| {
        tally.refuse_body();
        refused(&head.headers, &refusal)
    }))
}

fn taken(head: &Parts, body: Result<Bytes, Refusal>, tally: &mut Tally) -> Result<Answer, Refusal> {
    let path = head.uri.path();
    let route = route(path).filter(|_| head.method == Method::POST);
    let (speech, load) = route.ok_or_else(|| Refusal::NoSuchPath(path.into()))?;
    let body = body?;
    let rejected = match load {
        Load::Spans => tally.take(&batches(speech, body, &head.headers)?),
        Load::Other => {
            tally.pass_over();
            0
        }
    };
    Ok(accepted(speech, rejected))
}

fn batches(speech: Speech, body: Bytes, headers: &HeaderMap) -> Result<Vec<Batch>, Refusal> {
    let encoding = header(headers, CONTENT_ENCODING);
    match speech {
        Speech::OtlpHttp => {
            only_protobuf(headers)?;
            otlp::batches(unpacked(body, encoding)?).map_err(malformed)
        }
        Speech::Grpc => {
            let message = grpc::message(body, header(headers, grpc::ENCODING))?;
            otlp::batches(message).map_err(malformed)
        }
        Speech::Zipkin => zipkin::batches(&unpacked(body, encoding)?).map_err(malformed),
    }
}

fn malformed(why: impl std::error::Error) -> Refusal {
    Refusal::Malformed(why.to_string())
}

/// OTLP/HTTP also has a form in JSON, which an agent speaks only when it is told to.
fn only_protobuf(headers: &HeaderMap) -> Result<(), Refusal> {
    match header(headers, CONTENT_TYPE) {
        Some(PROTOBUF) => Ok(()),
        other => Err(Refusal::ContentType(other.unwrap_or_default().into())),
    }
}

fn accepted(speech: Speech, rejected: u64) -> Answer {
    match speech {
        Speech::OtlpHttp => {
            let mut answer = with_status(StatusCode::OK, otlp::response(rejected));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
            answer
        }
        Speech::Grpc => grpc::answer(&otlp::response(rejected)),
        Speech::Zipkin => with_status(StatusCode::ACCEPTED, Bytes::new()),
    }
}

fn refused(headers: &HeaderMap, refusal: &Refusal) -> Answer {
    let media_type = header(headers, CONTENT_TYPE).unwrap_or_default();
    if media_type.starts_with(grpc::MEDIA_TYPE) {
        return grpc::refused(refusal);
    }
    with_status(refusal.status(), format!("{refusal}\n").into())
}

fn with_status(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body).boxed());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests;
