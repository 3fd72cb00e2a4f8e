//! Turns one plain HTTP/1.1 GET, the first message of another client, or a whole TLS handshake into how it ended, at
//! each of several addresses at the same time. Judges nothing: a refusal can be the right outcome.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::command_line::{Probe, Speak};
use crate::error::Error;
use crate::handshake::{self, Acquaintance, Established};
use crate::path_report::as_text;
use crate::unverified;

/// `SSLRequest`: its own length and the number 80877103 (PostgreSQL 17, section 53.7 "Message Formats").
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The preface and an empty SETTINGS frame (RFC 9113, sections 3.4 and 6.5).
const HTTP2_BEGINS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// How a probe ended.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// With a complete answer, whatever it says.
    Answered {
        #[serde(flatten)]
        head: Option<Head>,
        body: String,
    },
    /// TLS, with certificates that both ends took.
    Established { server: String, protocol: &'static str },
    /// The server's certificate is not one that the probe takes.
    Untrusted { message: String },
    /// Nobody listens.
    Refused { message: String },
    /// The other end broke the connection.
    Reset { message: String },
    /// The other end closed the connection before its answer was complete.
    Closed { message: String },
    /// No complete answer in time.
    Timeout { message: String },
    /// No way to the address, or no such name.
    Unreachable { message: String },
    /// The answer is not of the protocol that was spoken.
    Garbled { message: String },
}

/// What an answer over HTTP has before its body.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    status: u16,
    headers: BTreeMap<String, String>,
}

/// Sends the request to each address and waits for the answers, which come in the order of the addresses.
///
/// # Errors
/// [`Error::Threads`]; all that the other end does is an outcome.
pub(crate) fn ask(probe: Probe) -> Result<Vec<Outcome>, Error> {
    let question = Arc::new(Question { acquaintance: Acquaintance::of(&probe)?, probe });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(Error::Threads)?.block_on(outcomes(question)))
}

/// What is to be asked of each address.
struct Question {
    probe: Probe,
    acquaintance: Option<Acquaintance>,
}

async fn outcomes(question: Arc<Question>) -> Vec<Outcome> {
    let ask = |to: &Authority| tokio::spawn(outcome(Arc::clone(&question), to.clone()));
    let asked: Vec<_> = question.probe.connect.iter().map(ask).collect();
    let mut outcomes = Vec::new();
    for answer in asked {
        outcomes.push(answer.await.expect("a probe neither panics nor is cancelled"));
    }
    outcomes
}

async fn outcome(question: Arc<Question>, to: Authority) -> Outcome {
    let limit = question.probe.timeout_ms;
    match timeout(limit, answer(&question, &to)).await {
        Ok(Ok(answered)) => answered,
        Ok(Err(failure)) => failure.into(),
        Err(_) => {
            Outcome::Timeout { message: format!("no answer within {} ms", limit.as_millis()) }
        }
    }
}

async fn answer(question: &Question, to: &Authority) -> Result<Outcome, Failure> {
    let stream = TcpStream::connect(to.as_str()).await?;
    match (question.probe.speak, &question.acquaintance) {
        (Speak::Http, _) => over_http(stream, &question.probe, to).await,
        (Speak::Postgres, _) => over_postgres(stream).await,
        (Speak::Tls, Some(acquaintance)) => over_mutual_tls(stream, acquaintance).await,
        (Speak::Tls, None) => over_tls(stream).await,
    }
}

/// A server answers `N` or `S`, without or with TLS; it logs nothing and gives the connection no backend yet.
async fn over_postgres(mut stream: TcpStream) -> Result<Outcome, Failure> {
    stream.write_all(&SSL_REQUEST).await?;
    let byte = stream.read_u8().await?;
    Ok(Outcome::Answered { head: None, body: char::from(byte).into() })
}

/// A server that takes nobody without a certificate breaks off, in TLS 1.3 only once it is spoken to.
async fn over_tls(stream: TcpStream) -> Result<Outcome, Failure> {
    let mut stream = unverified::handshake(stream).await?;
    stream.write_all(HTTP2_BEGINS).await?;
    stream.read_u8().await?;
    Ok(Outcome::Answered { head: None, body: String::new() })
}

async fn over_mutual_tls(stream: TcpStream, with: &Acquaintance) -> Result<Outcome, Failure> {
    let Established { server, protocol } = with.make(stream).await?;
    Ok(Outcome::Established { server, protocol })
}

async fn over_http(stream: TcpStream, probe: &Probe, to: &Authority) -> Result<Outcome, Failure> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its error is the request's error too.
    drop(tokio::spawn(connection));
    let answer = sender.send_request(request(probe, to)).await?;
    let (head, body) = answer.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Outcome::Answered {
        head: Some(Head { status: head.status.as_u16(), headers: as_text(&head.headers) }),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn request(probe: &Probe, to: &Authority) -> Request<Empty<Bytes>> {
    let host = probe.host.clone().unwrap_or_else(|| {
        HeaderValue::from_str(to.as_str()).expect("an authority is a valid header")
    });
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = match probe.through_proxy {
        true => absolute(&host, &probe.path),
        false => probe.path.clone().into(),
    };
    request.headers_mut().insert(HOST, host);
    request.headers_mut().extend(probe.headers.iter().cloned());
    request
}

/// The absolute form, in which a proxy is asked. A host that makes no URI is asked for as it stands in the header.
fn absolute(host: &HeaderValue, path: &PathAndQuery) -> Uri {
    let uri = Uri::builder().scheme(Scheme::HTTP).authority(host.as_bytes());
    uri.path_and_query(path.clone()).build().unwrap_or_else(|_| path.clone().into())
}

/// Why there is no complete answer.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Connect(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match &failure {
            Failure::Connect(error) => from_io(error),
            Failure::Http(error) => io_cause(error).map_or_else(|| from_http(error), from_io),
        }
    }
}

fn from_io(error: &io::Error) -> Outcome {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof};
    if let Some(message) = unverified::cause(error).and_then(handshake::distrust) {
        return Outcome::Untrusted { message };
    }
    let message = error.to_string();
    match error.kind() {
        // An alert of TLS ends a connection in due form.
        _ if unverified::is_alert(error) => Outcome::Closed { message },
        _ if unverified::is_tls(error) => Outcome::Garbled { message },
        ConnectionRefused => Outcome::Refused { message },
        ConnectionReset | BrokenPipe => Outcome::Reset { message },
        UnexpectedEof => Outcome::Closed { message },
        TimedOut => Outcome::Timeout { message },
        _ => Outcome::Unreachable { message },
    }
}

fn from_http(error: &hyper::Error) -> Outcome {
    let message = error.to_string();
    if error.is_parse() { Outcome::Garbled { message } } else { Outcome::Closed { message } }
}

/// The error of the socket behind an error of the protocol.
fn io_cause(error: &hyper::Error) -> Option<&io::Error> {
    let mut cause = StdError::source(error)?;
    loop {
        match cause.downcast_ref() {
            Some(io) => return Some(io),
            None => cause = cause.source()?,
        }
    }
}
