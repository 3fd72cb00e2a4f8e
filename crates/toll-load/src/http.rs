//! HTTP/1.1 answers, and what is kept of an answer whatever carried it.

mod response;

pub(crate) use response::{Fault, ResponseParser};

/// What is kept of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Status code, 100..=999.
    pub status: u16,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// When its first byte had come, nanoseconds.
    pub first_byte_ns: u64,
    /// Length of its body.
    pub body_bytes: u64,
    /// The outcome of a gRPC call.
    pub grpc_status: Option<u16>,
}
