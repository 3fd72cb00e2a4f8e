//! Turns a request into its answer: burn CPU time, call the neighbours, ask the database, answer; or report the path.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::arrivals::Arrivals;
use crate::calls::{CallError, Calls};
use crate::config::Config;
use crate::database::{Database, QueryError};
use crate::path_report::{PROBE_HEADER, PathReport, Seen};
use crate::planted::Plant;
use crate::request::{LARGEST_BODY, WholeRequest};
use crate::stall::Gate;
use crate::work;

/// An answer, complete.
pub(crate) type Answer = Response<Full<Bytes>>;

/// A node of the application graph.
#[derive(Debug)]
pub(crate) struct Service {
    name: String,
    work: Duration,
    calls: Calls,
    database: Option<Database>,
    relay: bool,
    status: StatusCode,
    reply: Bytes,
    gate: Gate,
    plant: Plant,
    /// Without probes.
    arrivals: Arrivals,
}

impl Service {
    /// The service as configured; its stalls are counted from now on.
    ///
    /// # Errors
    /// When the thread that times the stalls cannot be started.
    pub(crate) fn new(config: Config) -> io::Result<Self> {
        Ok(Self {
            name: config.name,
            work: Duration::from_micros(config.work_us),
            calls: Calls::new(config.calls, config.http_proxy),
            database: config.database.map(Database::new),
            relay: config.relay,
            status: config.status,
            reply: filler(config.reply_bytes),
            plant: Plant::new(config.planted),
            gate: config.stall.map_or_else(|| Ok(Gate::always_open()), Gate::shut_by)?,
            arrivals: Arrivals::default(),
        })
    }

    /// Answers a request from `peer`. A call that fails makes it an answer of 502 with the reason, a query one of 503.
    pub(crate) async fn answer(&self, request: &WholeRequest, peer: SocketAddr) -> Answer {
        let probe = request.headers().contains_key(PROBE_HEADER);
        if !probe {
            self.arrivals.count(request.headers());
        }
        self.gate.pass().await;
        let answer =
            if probe { self.report(request, peer).await } else { self.serve(request).await };
        // A request that was at work when the stall began waits too: nothing leaves a service that hangs.
        self.gate.pass().await;
        answer.unwrap_or_else(|failure| with_status(failure.status(), failure.to_string().into()))
    }

    async fn serve(&self, request: &WholeRequest) -> Result<Answer, Failure> {
        work::burn_aside(self.work).await;
        self.plant.bear().await;
        let last = self.calls.make(request).await?;
        if let Some(answer) = self.query(request).await? {
            return Ok(answer);
        }
        Ok(match last {
            Some(reply) if self.relay => relayed(reply),
            _ => with_status(self.status, self.reply.clone()),
        })
    }

    /// The answer of the database, when there is one and the method asks it anything.
    async fn query(&self, request: &WholeRequest) -> Result<Option<Answer>, QueryError> {
        let Some(database) = &self.database else { return Ok(None) };
        Ok(match *request.method() {
            Method::GET | Method::HEAD => Some(json(StatusCode::OK, database.read().await?)),
            Method::POST => {
                database.write(request.body()).await?;
                Some(json(StatusCode::CREATED, "{}"))
            }
            _ => None,
        })
    }

    async fn report(&self, request: &WholeRequest, peer: SocketAddr) -> Result<Answer, Failure> {
        let calls = self.calls.trace(request).await?;
        let database_peer = match &self.database {
            Some(database) => database.own_address().await?,
            None => None,
        };
        let seen = Seen { request, peer, arrivals: &self.arrivals };
        let report = PathReport::new(&self.name, seen, calls, database_peer);
        Ok(json(StatusCode::OK, report.to_json()))
    }
}

/// Why a request cannot be answered as configured.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Call(_) => StatusCode::BAD_GATEWAY,
            Self::Query(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The answer to a request whose body is not read.
pub(crate) fn too_large() -> Answer {
    let why = format!("a body of more than {LARGEST_BODY} bytes is not taken");
    with_status(StatusCode::PAYLOAD_TOO_LARGE, why.into())
}

/// Status, content type and body of `reply`: its other headers belong to the connection that it came over.
pub(crate) fn relayed(reply: Response<Bytes>) -> Answer {
    let (mut head, body) = reply.into_parts();
    let mut answer = with_status(head.status, body);
    if let Some(content_type) = head.headers.remove(CONTENT_TYPE) {
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    answer
}

pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = with_status(status, body.into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn with_status(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
}

/// Five bytes of it are `hello`.
fn filler(bytes: usize) -> Bytes {
    b"hello ".iter().copied().cycle().take(bytes).collect()
}
