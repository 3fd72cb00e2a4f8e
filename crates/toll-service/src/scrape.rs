//! Turns each line that comes in into one look at all Prometheus endpoints: a line of JSON with the wanted series
//! of each. Connections are kept. What an endpoint does wrong is its own reading's matter and no error.
//!
//! Each request says that its trace is not sampled, in the words of W3C Trace Context
//! (<https://www.w3.org/TR/trace-context/#sampled-flag>) and of B3: a tracing agent in the service that follows its
//! caller, as most do unless told otherwise, makes no spans of it. They would count as the load's.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Write};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::header::{ACCEPT, HeaderValue};
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::config::from_text;
use crate::error::{Error, root_cause};
use crate::exposition::{NotASample, select};

/// How long an endpoint has for its answer, connection included.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest answer that is read, bytes.
const LONGEST_ANSWER: usize = 4 << 20;

/// The text format rather than OpenMetrics or protobuf.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain;version=0.0.4");

/// The first line: whom to ask for what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Targets {
    targets: Vec<Target>,
}

/// One endpoint.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    /// What the answer is listed under.
    pod: String,
    /// Where to connect to.
    #[serde(deserialize_with = "from_text")]
    address: Authority,
    /// What to ask for.
    #[serde(deserialize_with = "from_text")]
    path: PathAndQuery,
    /// Names of series, each of which selects all its label sets.
    series: Vec<String>,
}

/// What one endpoint brought.
#[derive(Debug, Serialize)]
struct PodMetrics {
    pod: String,
    /// `CLOCK_MONOTONIC` when it was asked, nanoseconds.
    at_ns: u64,
    series: Reading,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reading {
    Value(BTreeMap<String, f64>),
    Missing(String),
}

/// Reads the targets from the first line of `input`, and answers each further line into `output`, until one of the
/// two ends.
///
/// # Errors
/// [`Error::Threads`], [`Error::TargetsInvalid`].
pub(crate) fn run(input: impl BufRead, mut output: impl Write) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Threads)?;
    let mut lines = input.lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return Ok(()) };
    let targets: Targets = serde_json::from_str(&first).map_err(Error::TargetsInvalid)?;
    let client = keeping_client();
    for _ in lines {
        let answer = look(&runtime, &client, &targets.targets);
        // Whoever no longer reads has ended, and so has the work.
        if write_line(&mut output, &answer).is_err() {
            break;
        }
    }
    Ok(())
}

fn look(runtime: &Runtime, client: &KeepingClient, targets: &[Target]) -> String {
    let answers = runtime.block_on(ask_all(client, targets));
    serde_json::to_string(&answers).expect("texts and finite numbers always make JSON")
}

fn write_line(output: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(output, "{line}")?;
    output.flush()
}

type KeepingClient = Client<HttpConnector, Empty<Bytes>>;

/// Without a timer it keeps idle connections for good.
fn keeping_client() -> KeepingClient {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).pool_idle_timeout(None).build(connector)
}

/// At once, so that one that hangs holds none of the others up.
async fn ask_all(client: &KeepingClient, targets: &[Target]) -> Vec<PodMetrics> {
    let ask = |target: &Target| tokio::spawn(metrics(client.clone(), target.clone()));
    let asked: Vec<_> = targets.iter().map(ask).collect();
    let mut answers = Vec::new();
    for one in asked {
        answers.push(one.await.expect("asking does not panic and is not cancelled"));
    }
    answers
}

async fn metrics(client: KeepingClient, target: Target) -> PodMetrics {
    let at_ns = monotonic_ns();
    let answer = timeout(PATIENCE, answer(&client, &target)).await;
    let series = answer.unwrap_or(Err(Failure::Late)).and_then(|text| wanted(&text, &target));
    let series = match series {
        Ok(series) => Reading::Value(series),
        Err(failure) => Reading::Missing(failure.to_string()),
    };
    PodMetrics { pod: target.pod.clone(), at_ns, series }
}

fn wanted(text: &Bytes, target: &Target) -> Result<BTreeMap<String, f64>, Failure> {
    let series = select(&String::from_utf8_lossy(text), &target.series)?;
    if series.is_empty() { Err(Failure::NoneOf(target.series.join(", "))) } else { Ok(series) }
}

/// A kept connection may have been closed since it was last used: then the next attempt makes a new one.
async fn answer(client: &KeepingClient, target: &Target) -> Result<Bytes, Failure> {
    match attempt(client, target).await {
        Err(failure) if failure.is_of_the_connection() => attempt(client, target).await,
        answered => answered,
    }
}

async fn attempt(client: &KeepingClient, target: &Target) -> Result<Bytes, Failure> {
    let (head, body) = client.request(target.request()).await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(Failure::Refused(head.status));
    }
    let body = Limited::new(body, LONGEST_ANSWER).collect().await;
    body.map(|body| body.to_bytes()).map_err(|error| {
        if error.is::<LengthLimitError>() { Failure::TooLong } else { Failure::BrokenOff(error) }
    })
}

impl Target {
    fn request(&self) -> Request<Empty<Bytes>> {
        let mut uri = Parts::default();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Some(self.address.clone());
        uri.path_and_query = Some(self.path.clone());
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from_parts(uri).expect("scheme, authority and path make a URI");
        let headers = request.headers_mut();
        headers.insert(ACCEPT, TEXT);
        headers.insert("traceparent", unsampled());
        headers.insert("b3", HeaderValue::from_static("0"));
        request
    }
}

/// A new trace that nobody records. Neither of its ids may be zero.
fn unsampled() -> HeaderValue {
    // The standard library's only source of random numbers; each has its own key.
    let random = || RandomState::new().hash_one(()).max(1);
    let text = format!("00-{:016x}{:016x}-{:016x}-00", random(), random(), random());
    HeaderValue::try_from(text).expect("digits and hyphens are a header")
}

/// Why an endpoint brought no series.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it cannot be asked: {}", root_cause(.0))]
    Unanswered(#[from] legacy::Error),
    #[error("it broke off its answer: {}", root_cause(&**.0))]
    BrokenOff(Box<dyn std::error::Error + Send + Sync>),
    #[error("it did not answer within {} ms", PATIENCE.as_millis())]
    Late,
    #[error("it answered {0}")]
    Refused(StatusCode),
    #[error("its answer is longer than {} MiB", LONGEST_ANSWER >> 20)]
    TooLong,
    #[error(transparent)]
    Unreadable(#[from] NotASample),
    #[error("its answer has no value of {0}")]
    NoneOf(String),
}

impl Failure {
    /// Whether a new connection may do better.
    fn is_of_the_connection(&self) -> bool {
        match self {
            Self::Unanswered(error) => !error.is_connect(),
            Self::BrokenOff(_) => true,
            _ => false,
        }
    }
}

/// The clock by which all samples go.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX)
}
