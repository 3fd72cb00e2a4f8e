//! Turns a request that comes in into one whose body has been read.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Request, http::request::Parts};

use crate::refusal::LARGEST_BODY;

/// Why a request's body was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is longer than [`LARGEST_BODY`].
    TooLarge,
    /// It broke off.
    BrokenOff(hyper::Error),
}

/// Reads the body of `request`, if it has one.
pub(crate) async fn read_whole(request: Request<Incoming>) -> (Parts, Result<Bytes, Unread>) {
    let (head, body) = request.into_parts();
    let body = if body.is_end_stream() { Ok(Bytes::new()) } else { read(body).await };
    (head, body)
}

/// The value of a header, when it is text.
pub(crate) fn header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn read(body: Incoming) -> Result<Bytes, Unread> {
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return Err(Unread::TooLarge);
    }
    let body = Limited::new(body, LARGEST_BODY).collect().await;
    body.map(|body| body.to_bytes()).map_err(|error| match error.downcast() {
        Ok(broken_off) => Unread::BrokenOff(*broken_off),
        Err(_) => Unread::TooLarge,
    })
}
