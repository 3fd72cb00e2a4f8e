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

/// How it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    OtlpHttp,
    OtlpGrpc,
    Zipkin,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Spans,
    /// Metrics and logs, which agents send unless they are told not to.
    Other,
}

/// The paths at which something is taken.
fn route(path: &str) -> Option<(Protocol, Signal)> {
    Some(match path {
        "/v1/traces" => (Protocol::OtlpHttp, Signal::Spans),
        "/v1/metrics" | "/v1/logs" => (Protocol::OtlpHttp, Signal::Other),
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => {
            (Protocol::OtlpGrpc, Signal::Spans)
        }
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
        | "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => {
            (Protocol::OtlpGrpc, Signal::Other)
        }
        // The second is EaseAgent's, as are those below.
        "/api/v2/spans" | "/application-tracing-log" => (Protocol::Zipkin, Signal::Spans),
        "/application-metrics"
        | "/platform-metrics"
        | "/application-log"
        | "/application-access-log" => (Protocol::Zipkin, Signal::Other),
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
    let (protocol, signal) = route.ok_or_else(|| Refusal::NoSuchPath(path.into()))?;
    let body = body?;
    let rejected = match signal {
        Signal::Spans => tally.take(&batches(protocol, body, &head.headers)?),
        Signal::Other => {
            tally.pass_over();
            0
        }
    };
    Ok(accepted(protocol, rejected))
}

fn batches(protocol: Protocol, body: Bytes, headers: &HeaderMap) -> Result<Vec<Batch>, Refusal> {
    let encoding = header(headers, CONTENT_ENCODING);
    match protocol {
        Protocol::OtlpHttp => {
            only_protobuf(headers)?;
            otlp::batches(unpacked(body, encoding)?).map_err(malformed)
        }
        Protocol::OtlpGrpc => {
            let message = grpc::message(body, header(headers, grpc::ENCODING))?;
            otlp::batches(message).map_err(malformed)
        }
        Protocol::Zipkin => zipkin::batches(&unpacked(body, encoding)?).map_err(malformed),
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

fn accepted(protocol: Protocol, rejected: u64) -> Answer {
    match protocol {
        Protocol::OtlpHttp => {
            let mut answer = with_status(StatusCode::OK, otlp::response(rejected));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
            answer
        }
        Protocol::OtlpGrpc => grpc::answer(&otlp::response(rejected)),
        Protocol::Zipkin => with_status(StatusCode::ACCEPTED, Bytes::new()),
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
