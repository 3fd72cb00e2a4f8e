//! What the fuzz targets under `fuzz/` need of this crate: its parsers, as functions of bytes. Not an interface.

use crate::http::{Answer, Fault, ResponseParser};

/// What the bytes of a connection come to that carried one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// One complete answer.
    Answer {
        /// Its status code.
        status: u16,
        /// Whether the connection may carry another request.
        keep_alive: bool,
    },
    /// Not HTTP/1.x, framed against the rules, or more than one answer.
    Garbage,
    /// Head or body beyond the limit.
    Oversize,
    /// The bytes ended before the answer did.
    Truncated,
}

/// Reads the answer in a connection's bytes, which come in these pieces and then end.
pub fn read_http1<'a>(
    to_head_request: bool,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut parser = ResponseParser::new();
    parser.expect(to_head_request);
    let mut answer = None;
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        if answer.is_some() {
            return Outcome::Garbage;
        }
        answer = match parser.feed(piece, 1) {
            Ok(answer) => answer,
            Err(fault) => return Outcome::from(Err(fault)),
        };
    }
    Outcome::from(answer.map_or_else(|| parser.end_of_stream(), Ok))
}

impl From<Result<Answer, Fault>> for Outcome {
    fn from(result: Result<Answer, Fault>) -> Outcome {
        match result {
            Ok(Answer { status, keep_alive, .. }) => Outcome::Answer { status, keep_alive },
            Err(Fault::Garbage) => Outcome::Garbage,
            Err(Fault::Oversize) => Outcome::Oversize,
            Err(Fault::Truncated) => Outcome::Truncated,
        }
    }
}
