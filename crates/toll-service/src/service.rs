//! Turns a request into its answer: burn CPU time, call the neighbours, answer; or report the path.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use crate::arrivals::Arrivals;
use crate::calls::{CallError, Calls};
use crate::config::Config;
use crate::path_report::{PROBE_HEADER, PathReport, as_text};
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
    status: StatusCode,
    reply: Bytes,
    gate: Gate,
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
            calls: Calls::new(config.calls),
            status: config.status,
            reply: filler(config.reply_bytes),
            gate: config.stall.map_or_else(|| Ok(Gate::always_open()), Gate::shut_by)?,
            arrivals: Arrivals::default(),
        })
    }

    /// Answers a request from `peer`. A call that fails makes it an answer of 502 with the reason.
    pub(crate) async fn answer(&self, headers: &HeaderMap, peer: SocketAddr) -> Answer {
        let probe = headers.contains_key(PROBE_HEADER);
        if !probe {
            self.arrivals.count(headers);
        }
        self.gate.pass().await;
        let answer =
            if probe { self.report(headers, peer).await } else { self.serve(headers).await };
        // A request that was at work when the stall began waits too: nothing leaves a service that hangs.
        self.gate.pass().await;
        answer.unwrap_or_else(|error| bad_gateway(&error))
    }

    async fn serve(&self, headers: &HeaderMap) -> Result<Answer, CallError> {
        if !self.work.is_zero() {
            leave_the_sockets_to_another_worker().await;
            work::burn(self.work);
        }
        self.calls.make(headers).await?;
        let mut answer = Response::new(Full::new(self.reply.clone()));
        *answer.status_mut() = self.status;
        Ok(answer)
    }

    async fn report(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Answer, CallError> {
        let report = PathReport {
            service: self.name.clone(),
            peer,
            headers: as_text(headers),
            requests: self.arrivals.requests(),
            marked: self.arrivals.marked(),
            calls: self.calls.trace(headers).await?,
        };
        let body = serde_json::to_vec(&report).expect("texts and addresses always make JSON");
        let mut answer = Response::new(Full::from(body));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(answer)
    }
}

/// Five bytes of it are `hello`.
fn filler(bytes: usize) -> Bytes {
    b"hello ".iter().copied().cycle().take(bytes).collect()
}

fn bad_gateway(error: &CallError) -> Answer {
    let mut answer = Response::new(Full::from(error.to_string()));
    *answer.status_mut() = StatusCode::BAD_GATEWAY;
    answer
}

/// Lets another worker watch the sockets before this one computes.
///
/// The worker that a socket wakes is the one that watches all sockets. While it computes nobody would, and a
/// second request would wait beside an idle CPU. A task that wakes itself goes to the queue's end, and tokio
/// then wakes a sleeping worker to help; whichever of the two does not get the task watches the sockets.
/// `yield_now` wakes nobody, and tokio's own cure, `enable_eager_driver_handoff`, is unstable.
async fn leave_the_sockets_to_another_worker() {
    let mut queued = false;
    poll_fn(|context| {
        if queued {
            return Poll::Ready(());
        }
        queued = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
