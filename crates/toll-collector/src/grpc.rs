//! Turns the body of a unary gRPC call into its message, and an outcome into an answer with trailers.
//!
//! Only what an exporter needs: one message in, one out, gzip or not; no streams, no deadlines.
//! Source: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::convert::Infallible;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::packing::unpacked;
use crate::refusal::Refusal;

/// Every gRPC request has it, maybe with `+proto` behind.
pub(crate) const MEDIA_TYPE: &str = "application/grpc";
/// How messages are packed that say that they are.
pub(crate) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// A flag and a length come before every message.
const PREFIX: usize = 5;

/// The one message of `body`, unpacked; `encoding` is the value of the header.
///
/// # Errors
/// [`Refusal::Malformed`], [`Refusal::Encoding`], [`Refusal::TooLarge`].
pub(crate) fn message(mut body: Bytes, encoding: Option<&str>) -> Result<Bytes, Refusal> {
    if body.len() < PREFIX {
        return Err(malformed("no message in it"));
    }
    let packed = body.get_u8();
    if u32::try_from(body.len() - 4) != Ok(body.get_u32()) {
        return Err(malformed("its length is not that of one message"));
    }
    match (packed, encoding) {
        (0, _) => Ok(body),
        (1, Some(encoding)) => unpacked(body, Some(encoding)),
        _ => Err(malformed("packed, but not said how")),
    }
}

/// The answer with `message`, status OK.
pub(crate) fn answer(message: &[u8]) -> Response<BoxBody<Bytes, Infallible>> {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("answers are short"));
    frame.put_slice(message);
    let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(frame.freeze()).with_trailers(async { Some(Ok(trailers)) });
    with_media_type(Response::new(body.boxed()))
}

/// The answer to a call that was not taken: headers only, in HTTP status 200 as gRPC demands.
pub(crate) fn refused(refusal: &Refusal) -> Response<BoxBody<Bytes, Infallible>> {
    let mut answer = with_media_type(Response::new(Empty::new().boxed()));
    let headers = answer.headers_mut();
    headers.insert(STATUS, HeaderValue::from_static(refusal.grpc_status()));
    headers.insert(MESSAGE, percent_encoded(&refusal.to_string()));
    answer
}

fn with_media_type<B>(mut answer: Response<B>) -> Response<B> {
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    answer
}

/// `grpc-message` is percent-encoded outside printable ASCII.
fn percent_encoded(text: &str) -> HeaderValue {
    let encoded: String = text.bytes().map(percent_encoded_byte).collect();
    HeaderValue::from_str(&encoded).expect("printable ASCII")
}

fn percent_encoded_byte(byte: u8) -> String {
    match byte {
        b'%' => "%25".into(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

fn malformed(why: &str) -> Refusal {
    Refusal::Malformed(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_follows_its_length() {
        let body = Bytes::from_static(b"\0\0\0\0\x05spans");
        assert_eq!(message(body, None).unwrap(), "spans");
    }

    #[test]
    fn a_call_without_a_message_is_malformed() {
        assert!(matches!(message(Bytes::new(), None), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_message_that_is_cut_off_is_malformed() {
        let body = Bytes::from_static(b"\0\0\0\0\x06spans");
        assert!(matches!(message(body, None), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_second_message_is_malformed() {
        let body = Bytes::from_static(b"\0\0\0\0\x05spans\0\0\0\0\x05spans");
        assert!(matches!(message(body, None), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_packed_message_needs_an_encoding() {
        let body = Bytes::from_static(b"\x01\0\0\0\x05spans");
        assert!(matches!(message(body, None), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn what_is_no_printable_ascii_is_percent_encoded() {
        let answer = refused(&Refusal::Malformed("é, 5 % \n".into()));
        let text = answer.headers()[MESSAGE].to_str().unwrap();
        assert_eq!(text, "the body cannot be understood: %C3%A9, 5 %25 %0A");
    }
}
