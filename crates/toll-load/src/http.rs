//! HTTP/1.1 as a load generator needs it: one request made once, answers read in pieces (RFC 9112).

mod request;
mod response;

pub(crate) use request::Request;
pub(crate) use response::{Answer, Fault, ResponseParser};
