//! A lane holds one request at a time: what came of its answer, and what its body still waits to send.

use super::hpack::Fields;
use crate::ErrorKind;
use crate::http::Answer;

/// A body longer than this is refused, bytes.
const MAX_BODY: u64 = 256 * 1024 * 1024;

/// A lane; free when it has no stream.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Identifier of the stream, 0 when there is none.
    pub stream: u32,
    /// Bytes of body that the peer takes on this stream; below zero after it took some back.
    pub window: i64,
    /// Bytes received since the last update of our window for this stream.
    pub received: u32,
    is_head: bool,
    /// 0 until the head that counts.
    status: u16,
    grpc_status: Option<u16>,
    first_byte_ns: Option<u64>,
    body_bytes: u64,
    /// The body as far as it could not be sent at once, and how much of it has been sent since.
    unsent: Vec<u8>,
    unsent_from: usize,
}

impl Lane {
    /// Begins a request.
    pub fn begin(&mut self, stream: u32, is_head: bool, window: i64) {
        let unsent = std::mem::take(&mut self.unsent);
        *self = Lane { stream, is_head, window, unsent, ..Lane::default() };
        self.unsent.clear();
    }

    /// Keeps what could not be sent of a body until the windows open.
    pub fn keep(&mut self, body: &[u8], sent: usize) {
        self.window -= sent as i64;
        self.unsent.extend_from_slice(&body[sent..]);
    }

    /// What of the body is still to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent[self.unsent_from..]
    }

    /// Whether part of the body is still to be sent.
    pub fn is_waiting(&self) -> bool {
        self.unsent_from < self.unsent.len()
    }

    /// Counts bytes of what was kept as sent.
    pub fn advance(&mut self, sent: usize) {
        self.window -= sent as i64;
        self.unsent_from += sent;
    }

    /// Ends the request, whatever came of it.
    pub fn release(&mut self) {
        self.stream = 0;
        self.unsent.clear();
        self.unsent_from = 0;
    }

    /// An answer has begun.
    pub fn stamp(&mut self, now_ns: u64) {
        self.first_byte_ns.get_or_insert(now_ns);
    }

    /// Takes a head, an interim head (RFC 9110 section 15.2) or trailers.
    ///
    /// # Errors
    /// When an answer cannot go on like this; nothing but this request is affected.
    pub fn take_fields(&mut self, fields: &Fields, is_last: bool) -> Result<(), ErrorKind> {
        let is_right = match (self.status, fields.status) {
            (0, None | Some(101)) => false,
            (0, Some(100..200)) => !is_last,
            (0, Some(status)) => {
                self.status = status;
                true
            }
            (_, status) => status.is_none() && is_last,
        };
        if is_last {
            self.grpc_status = fields.grpc_status;
        }
        if is_right && !fields.malformed { Ok(()) } else { Err(ErrorKind::Garbage) }
    }

    /// Takes bytes of the body.
    ///
    /// # Errors
    /// When there may be no body here, or not such a long one.
    pub fn take_body(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        let is_bodiless = self.is_head || matches!(self.status, 204 | 304);
        if self.status == 0 || (is_bodiless && bytes > 0) {
            return Err(ErrorKind::Garbage);
        }
        self.body_bytes += bytes as u64;
        if self.body_bytes > MAX_BODY { Err(ErrorKind::Oversize) } else { Ok(()) }
    }

    /// The answer, now that it is complete.
    ///
    /// # Errors
    /// When it is none: no gRPC status where one is due.
    pub fn answer(&self, is_grpc: bool, keep_alive: bool) -> Result<Answer, ErrorKind> {
        let grpc_status = self.grpc_status.filter(|_| is_grpc);
        if is_grpc && self.status == 200 && grpc_status.is_none() {
            return Err(ErrorKind::Garbage);
        }
        Ok(Answer {
            status: self.status,
            keep_alive,
            first_byte_ns: self.first_byte_ns.unwrap_or(0),
            body_bytes: self.body_bytes,
            grpc_status,
        })
    }
}
