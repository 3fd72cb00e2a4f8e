//! Turns the parts of a request into the fields of an HTTP/2 request (RFC 9113, 8.3) or of a gRPC call, and
//! those into a header block. Frames nothing; compression is the business of [`hpack`].

use crate::http2::hpack;

use super::parts::Parts;
use super::template::{Template, Values};

/// Fields that speak of the connection, which HTTP/2 has no place for (RFC 9113, 8.2.2); `host` becomes
/// `:authority`.
const NOT_SENT: [&str; 5] = ["connection", "host", "keep-alive", "proxy-connection", "upgrade"];

/// A field before it is encoded.
pub(super) type Field = (String, Template);

/// The fields of a plain request.
pub(super) fn request(parts: &Parts) -> Vec<Field> {
    let mut fields = pseudo(parts, &parts.method);
    fields.extend(given(parts).filter(|(name, value)| {
        name != "te" || value.constant().is_some_and(|te| te.eq_ignore_ascii_case(b"trailers"))
    }));
    fields.extend(parts.content_length().map(|length| ("content-length".into(), length)));
    fields
}

/// The fields of a unary gRPC call (gRPC over HTTP/2, "Requests").
pub(super) fn call(parts: &Parts) -> Vec<Field> {
    let mut fields = pseudo(parts, "POST");
    fields.push(("te".into(), Template::literal("trailers")));
    if parts.header("content-type").is_none() {
        fields.push(("content-type".into(), Template::literal("application/grpc+proto")));
    }
    fields.extend(given(parts).filter(|(name, _)| name != "te"));
    fields
}

fn pseudo(parts: &Parts, method: &str) -> Vec<Field> {
    let as_in_url = || Template::literal(&*parts.url.authority);
    vec![
        (":method".into(), Template::literal(method)),
        (":scheme".into(), Template::literal(parts.url.scheme.as_str())),
        (":authority".into(), parts.header("host").cloned().unwrap_or_else(as_in_url)),
        (":path".into(), parts.path.clone()),
    ]
}

fn given(parts: &Parts) -> impl Iterator<Item = Field> {
    let lower = |(name, value): &Field| (name.to_ascii_lowercase(), value.clone());
    parts.headers.iter().map(lower).filter(|(name, _)| !NOT_SENT.contains(&name.as_str()))
}

/// A header block, encoded as far as it is the same in every request.
#[derive(Debug)]
pub(super) struct Block {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    Encoded(Vec<u8>),
    Field(Field),
}

impl Block {
    /// Encodes the fields that are constant.
    pub fn new(fields: Vec<Field>) -> Block {
        let mut block = Block { pieces: Vec::new() };
        for (name, value) in fields {
            match value.constant() {
                Some(value) => encode(block.end(), &name, value),
                None => block.pieces.push(Piece::Field((name, value))),
            }
        }
        block
    }

    /// Whether it is the same in every request.
    pub fn is_constant(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Encoded(_)))
    }

    /// Appends the block of one request to `out`; `scratch` holds one value at a time.
    pub fn render(&self, values: &mut Values, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Encoded(bytes) => out.extend_from_slice(bytes),
                Piece::Field((name, value)) => {
                    scratch.clear();
                    value.render(values, scratch);
                    encode(out, name, scratch);
                }
            }
        }
    }

    fn end(&mut self) -> &mut Vec<u8> {
        if !matches!(self.pieces.last(), Some(Piece::Encoded(_))) {
            self.pieces.push(Piece::Encoded(Vec::new()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Encoded(bytes)) => bytes,
            _ => unreachable!("such a piece was pushed if the last was none"),
        }
    }
}

/// Blanks around a value would make the request malformed (RFC 9113, 8.2.1); HTTP/1.1 ignores them.
fn encode(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    hpack::encode_header(out, name.as_bytes(), value.trim_ascii());
}
