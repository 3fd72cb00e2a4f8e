//! What the fuzz targets under `fuzz/` need of this crate: its parsers, as functions of bytes. Not an interface.

use crate::ErrorKind;
use crate::http::{Answer, Fault, ResponseParser};
use crate::http2::hpack::encode_header;
use crate::http2::{Completion, Http2};

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
    /// Not HTTP/1.x, or framed against the rules.
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
    let mut answer: Option<Answer> = None;
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        match (&mut answer, parser.feed(piece, 1)) {
            // The engine closes a connection on which more comes than was asked for.
            (Some(answer), _) => answer.keep_alive = false,
            (None, Ok(fed)) => answer = fed,
            (None, Err(fault)) => return Outcome::from(Err(fault)),
        }
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

/// Lanes of an HTTP/2 connection, each with a request.
pub const LANES: u32 = 4;

/// What the requests on an HTTP/2 connection are.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    /// Whether an answer must have a gRPC status.
    pub is_grpc: bool,
    /// Whether one request is HEAD.
    pub has_head: bool,
    /// Whether there are bodies, some longer than the peer's first windows.
    pub has_bodies: bool,
}

/// What came of one request on an HTTP/2 connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its lane, below [`LANES`].
    pub lane: u32,
    /// Status, bytes of the body and gRPC status.
    pub outcome: Result<(u16, u64, Option<u16>), ErrorKind>,
    /// Whether the peer may have done something about it.
    pub processed: bool,
}

/// Reads what a peer says after its SETTINGS, which comes in these pieces and then ends; gives what came of the
/// requests on all lanes, in order.
pub fn read_http2<'a>(
    requests: Requests,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Ended> {
    let mut http2 = Http2::new(LANES, requests.is_grpc);
    let (mut out, mut completions) = (Vec::new(), Vec::new());
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    http2.preface(&mut out);
    http2.feed(&settings, 1, &mut out, &mut completions).expect("empty settings are right");
    let mut head = Vec::new();
    encode_header(&mut head, b":method", b"POST");
    for lane in 0..LANES {
        let body = vec![0; if requests.has_bodies { 30_000 * lane as usize } else { 0 }];
        let is_head = requests.has_head && lane == 0;
        assert!(http2.start(lane, &head, &body, is_head, &mut out), "the peer sets no limit");
    }
    let mut pieces = pieces.into_iter();
    let fed = pieces.try_for_each(|piece| http2.feed(piece, 1, &mut out, &mut completions));
    http2.fail_open_lanes(fed.err().unwrap_or(ErrorKind::Closed), &mut completions);
    completions.into_iter().map(Ended::from).collect()
}

impl From<Completion> for Ended {
    fn from(completion: Completion) -> Ended {
        let Completion { lane, outcome, processed } = completion;
        let outcome = outcome.map(|a| (a.status, a.body_bytes, a.grpc_status));
        Ended { lane, outcome, processed }
    }
}
