//! One call of gRPC without streams: a message out of a request's body, and a message or a status as a response.
//! <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response};
use prost::Message;

/// A request for a certificate has some hundred bytes.
const LONGEST_REQUEST: usize = 64 * 1024;

/// A byte that tells whether the message is compressed, and its length.
const PREFIX: usize = 5;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Why there is no message for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    Unimplemented = 12,
    Internal = 13,
    Unauthenticated = 16,
}

/// The message of a request; none where the body has none.
pub(super) async fn message<M: Message + Default>(request: Request<Incoming>) -> Option<M> {
    let body = Limited::new(request.into_body(), LONGEST_REQUEST).collect().await.ok()?;
    let bytes = body.to_bytes();
    let (prefix, message) = bytes.split_at_checked(PREFIX)?;
    // Nobody was told that a compressed one would be read.
    let is_whole =
        prefix[0] == 0 && prefix[1..] == u32::try_from(message.len()).ok()?.to_be_bytes();
    is_whole.then(|| M::decode(message).ok()).flatten()
}

/// A message with its prefix.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], &length[..], &message].concat().into()
}

/// The response that carries a message.
pub(super) fn success(message: &impl Message) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(0));
    let body = Full::new(framed(message)).with_trailers(async move { Some(Ok(trailers)) });
    grpc(body.boxed())
}

/// The response that carries a status alone.
pub(super) fn failure(code: Code, reason: &str) -> Answer {
    let mut answer = grpc(Empty::new().boxed());
    answer.headers_mut().insert("grpc-status", HeaderValue::from(code as u16));
    if let Ok(reason) = HeaderValue::from_str(reason) {
        answer.headers_mut().insert("grpc-message", reason);
    }
    answer
}

fn grpc(body: BoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    answer
}
