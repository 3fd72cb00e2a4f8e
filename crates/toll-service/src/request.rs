//! Turns a request that comes in into one whose body has been read: to be passed on more than once, and because an
//! unread body ends its connection. A request without a body is not waited for.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::Request;
use hyper::body::{Body as _, Incoming};

/// The largest body that is read, bytes.
pub(crate) const LARGEST_BODY: usize = 1 << 20;

/// A request with its body; empty when it came without one.
pub(crate) type WholeRequest = Request<Bytes>;

/// Why a request's body was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is longer than [`LARGEST_BODY`].
    TooLarge,
    /// It broke off.
    BrokenOff(hyper::Error),
}

/// Reads the body of `request`, if it has one.
///
/// # Errors
/// [`Unread`]
pub(crate) async fn read_whole(request: Request<Incoming>) -> Result<WholeRequest, Unread> {
    let (head, body) = request.into_parts();
    let body = if body.is_end_stream() { Bytes::new() } else { read(body).await? };
    Ok(Request::from_parts(head, body))
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
