//! Turns a request into the calls of the neighbours that it needs, over connections that are kept.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::config::Call;
use crate::path_report::{PROBE_HEADER, PathReport};

/// Headers that tie the calls of one request together, besides those of the Zipkin family.
const PASSED_ON: [&str; 5] = [PROBE_HEADER, "x-request-id", "traceparent", "tracestate", "b3"];

/// The Zipkin family: `x-b3-traceid`, `x-b3-sampled` and so on.
const PASSED_ON_FAMILY: &str = "x-b3-";

/// Why a call did not bring an answer that counts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("cannot call {service}: {}", root_cause(source))]
    NotAnswered { service: String, source: hyper_util::client::legacy::Error },
    #[error("{service} broke off its answer: {}", root_cause(source))]
    BrokenOff { service: String, source: hyper::Error },
    #[error("{service} answered {status}")]
    Failed { service: String, status: StatusCode },
    #[error("{service} answered a probe without a report: {source}")]
    NoReport { service: String, source: serde_json::Error },
}

/// The neighbours and the connections to them.
#[derive(Debug)]
pub(crate) struct Calls {
    client: Client<HttpConnector, Empty<Bytes>>,
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    service: String,
    uri: Uri,
    host: HeaderValue,
}

impl Calls {
    pub(crate) fn new(calls: Vec<Call>) -> Self {
        Self { client: keeping_client(), targets: calls.into_iter().map(Target::from).collect() }
    }

    /// Calls every neighbour once, in order, for a request with `headers`.
    ///
    /// # Errors
    /// The first call that fails; those after it are not made.
    pub(crate) async fn make(&self, headers: &HeaderMap) -> Result<(), CallError> {
        for target in &self.targets {
            self.call(target, headers).await?;
        }
        Ok(())
    }

    /// As [`Calls::make`], and brings the report of each neighbour.
    ///
    /// # Errors
    /// As [`Calls::make`], or when an answer is no report.
    pub(crate) async fn trace(&self, headers: &HeaderMap) -> Result<Vec<PathReport>, CallError> {
        let mut reports = Vec::new();
        for target in &self.targets {
            let body = self.call(target, headers).await?;
            let no_report =
                |source| CallError::NoReport { service: target.service.clone(), source };
            reports.push(serde_json::from_slice(&body).map_err(no_report)?);
        }
        Ok(reports)
    }

    /// The body must be read to its end, or its connection cannot be used again.
    async fn call(&self, target: &Target, headers: &HeaderMap) -> Result<Bytes, CallError> {
        let service = || target.service.clone();
        let request = target.request(headers);
        let answer = self.client.request(request).await;
        let answer =
            answer.map_err(|source| CallError::NotAnswered { service: service(), source })?;
        let status = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|source| CallError::BrokenOff { service: service(), source })?;
        if status.is_client_error() || status.is_server_error() {
            return Err(CallError::Failed { service: service(), status });
        }
        Ok(body.to_bytes())
    }
}

/// By default the client keeps any number of idle connections; without a timer it keeps them for good.
fn keeping_client() -> Client<HttpConnector, Empty<Bytes>> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).pool_idle_timeout(None).build(connector)
}

impl From<Call> for Target {
    fn from(Call { service, address, host }: Call) -> Self {
        Self { service, uri: root_of(address), host }
    }
}

impl Target {
    fn request(&self, headers: &HeaderMap) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = passed_on(headers);
        request.headers_mut().insert(HOST, self.host.clone());
        request
    }
}

fn root_of(address: Authority) -> Uri {
    Uri::builder()
        .scheme("http")
        .authority(address)
        .path_and_query("/")
        .build()
        .expect("scheme, authority and path make a URI")
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let ties = |name: &HeaderName| {
        PASSED_ON.contains(&name.as_str()) || name.as_str().starts_with(PASSED_ON_FAMILY)
    };
    let tying = headers.iter().filter(|(name, _)| ties(name));
    tying.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The innermost reason; the outer ones only say that there is one.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(source) => root_cause(source),
        None => error.to_string(),
    }
}
