//! Turns the parts of a request into its form on the wire, as far as that is the same in every request, and
//! that into the bytes of one request.

use crate::{ConnectionPlan, LoadError, Protocol};

use super::parts::Parts;
use super::template::{Template, Values};
use super::url::Url;
use super::{Message, http1, http2};

/// An HTTP/1.1 body from this size on is written apart from its head, instead of being copied behind it.
pub(super) const BODY_APART: usize = 16 * 1024;
/// A byte that says "not compressed" and four for the length (gRPC over HTTP/2, "Length-Prefixed-Message").
const GRPC_PREFIX: usize = 5;

/// How a target is sent.
#[derive(Debug)]
pub(super) enum Form {
    /// The same in every request.
    Constant { head: Vec<u8>, body: Vec<u8>, body_bytes: u64 },
    /// With gaps.
    Varying(Wire),
}

/// A target in the form of its protocol.
#[derive(Debug)]
pub(super) struct Wire {
    head: Head,
    body: Payload,
}

#[derive(Debug)]
enum Head {
    Http1(Template),
    Http2(http2::Block),
}

#[derive(Debug)]
enum Payload {
    Constant(Vec<u8>),
    Varying { template: Template, prefix: usize },
}

/// Where the requests that vary are written, one over the other.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    head: Vec<u8>,
    body: Vec<u8>,
    value: Vec<u8>,
}

impl Wire {
    /// The form of a request on such connections.
    ///
    /// # Errors
    /// When a gRPC call names no method.
    pub fn new(parts: &Parts, connection: &ConnectionPlan) -> Result<Wire, LoadError> {
        let (head, prefix) = match connection.protocol {
            Protocol::Http1 => (Head::Http1(http1::head(parts, connection.reuse)), 0),
            Protocol::Http2 { .. } => (Head::Http2(http2::Block::new(http2::request(parts))), 0),
            Protocol::Grpc { .. } => {
                check_method_path(parts)?;
                (Head::Http2(http2::Block::new(http2::call(parts))), GRPC_PREFIX)
            }
        };
        Ok(Wire { head, body: Payload::new(&parts.body, prefix) })
    }

    /// Renders it at once if it never varies.
    pub fn prepared(self, values: &mut Values) -> Form {
        let head_is_constant = match &self.head {
            Head::Http1(head) => head.constant().is_some(),
            Head::Http2(block) => block.is_constant(),
        };
        if !head_is_constant || matches!(self.body, Payload::Varying { .. }) {
            return Form::Varying(self);
        }
        let mut buffers = Buffers::default();
        let Message { head, body, body_bytes, .. } = self.write(values, &mut buffers);
        Form::Constant { head: head.into(), body: body.into(), body_bytes }
    }

    /// The bytes of one request.
    pub fn write<'a>(&'a self, values: &mut Values, buffers: &'a mut Buffers) -> Message<'a> {
        let Buffers { head, body, value } = buffers;
        // The body comes first, because the head says how long it is.
        let mut body = self.body.render(values, body);
        let body_bytes = body.len() as u64;
        values.body_bytes = body.len();
        head.clear();
        match &self.head {
            Head::Http1(template) => {
                template.render(values, head);
                if body.len() < BODY_APART {
                    head.extend_from_slice(body);
                    body = &[];
                }
            }
            Head::Http2(block) => block.render(values, value, head),
        }
        Message { head, body, is_head: false, body_bytes }
    }
}

impl Payload {
    fn new(body: &Template, prefix: usize) -> Payload {
        match body.constant() {
            Some(bytes) => {
                let mut payload = [&[0; GRPC_PREFIX][..prefix], bytes].concat();
                fill_prefix(&mut payload, prefix);
                Payload::Constant(payload)
            }
            None => Payload::Varying { template: body.clone(), prefix },
        }
    }

    fn render<'a>(&'a self, values: &mut Values, out: &'a mut Vec<u8>) -> &'a [u8] {
        match self {
            Payload::Constant(bytes) => bytes,
            Payload::Varying { template, prefix } => {
                out.clear();
                out.resize(*prefix, 0);
                template.render(values, out);
                fill_prefix(out, *prefix);
                out
            }
        }
    }
}

/// Writes the length of the message into the space left for it, if any.
fn fill_prefix(payload: &mut [u8], prefix: usize) {
    if prefix == GRPC_PREFIX {
        let length = u32::try_from(payload.len() - prefix).expect("a plan is smaller than 4 GiB");
        payload[1..prefix].copy_from_slice(&length.to_be_bytes());
    }
}

/// A call without a service or a method would only be counted as failed, again and again.
fn check_method_path(parts: &Parts) -> Result<(), LoadError> {
    let Url { scheme, authority, path, .. } = &parts.url;
    let named = path.split('/').filter(|segment| !segment.is_empty()).count();
    if named >= 2 || parts.path.constant().is_none() {
        return Ok(());
    }
    let url = format!("{}://{authority}{path}", scheme.as_str());
    Err(LoadError::BadUrl { url, problem: "a gRPC call needs /package.Service/Method as its path" })
}
