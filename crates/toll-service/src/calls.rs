//! Turns a request into the calls of the neighbours that it needs, over connections that are kept.
//!
//! A neighbour of several addresses is called at one after the other, request by request: where no proxy stands
//! between, the caller spreads the load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;

use crate::config::Call;
use crate::error::root_cause;
use crate::path_report::{PROBE_HEADER, PathReport};
use crate::proxied::Connector;
use crate::request::WholeRequest;

/// Headers that tell what the body is or tie the calls of one request together, besides those of the Zipkin family.
const PASSED_ON: [&str; 6] =
    [PROBE_HEADER, "content-type", "x-request-id", "traceparent", "tracestate", "b3"];

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
    #[error("{service} answered {status}: {reason}")]
    Refused { service: String, status: StatusCode, reason: String },
    #[error("{service} answered what cannot be understood: {source}")]
    NotUnderstood { service: String, source: serde_json::Error },
    #[error("{service} answered a probe without a report: {source}")]
    NoReport { service: String, source: serde_json::Error },
}

/// What to ask a neighbour, on behalf of a request.
#[derive(Debug)]
pub(crate) struct Errand<'a> {
    pub(crate) method: Method,
    pub(crate) path: Option<PathAndQuery>,
    /// Those of the request; what ties requests together is passed on.
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
}

impl<'a> From<&'a WholeRequest> for Errand<'a> {
    fn from(asked: &'a WholeRequest) -> Self {
        Self {
            method: asked.method().clone(),
            path: asked.uri().path_and_query().cloned(),
            headers: asked.headers(),
            body: asked.body().clone(),
        }
    }
}

/// The neighbours and the connections to them.
#[derive(Debug)]
pub(crate) struct Calls {
    client: Client<Connector, Full<Bytes>>,
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    service: String,
    /// At least one.
    addresses: Vec<Authority>,
    /// Calls so far; it may wrap around.
    turn: AtomicUsize,
    host: HeaderValue,
}

impl Calls {
    /// Through `http_proxy`, where there is one.
    pub(crate) fn new(calls: Vec<Call>, http_proxy: Option<SocketAddr>) -> Self {
        let targets = calls.into_iter().map(Target::from).collect();
        Self { client: keeping_client(http_proxy), targets }
    }

    /// Calls every neighbour once, in order, as `request` asks, and brings the answer of the last.
    ///
    /// # Errors
    /// The first call that fails, an answer of 4xx or 5xx among them; those after it are not made.
    pub(crate) async fn make(
        &self,
        request: &WholeRequest,
    ) -> Result<Option<Response<Bytes>>, CallError> {
        let mut last = None;
        for target in &self.targets {
            last = Some(self.call(target, request.into()).await?);
        }
        Ok(last)
    }

    /// As [`Calls::make`], and brings the report of each neighbour.
    ///
    /// # Errors
    /// As [`Calls::make`], or when an answer is no report.
    pub(crate) async fn trace(&self, request: &WholeRequest) -> Result<Vec<PathReport>, CallError> {
        let mut reports = Vec::new();
        for target in &self.targets {
            let answer = self.call(target, request.into()).await?;
            let no_report =
                |source| CallError::NoReport { service: target.service.clone(), source };
            reports.push(serde_json::from_slice(answer.body()).map_err(no_report)?);
        }
        Ok(reports)
    }

    /// Calls the neighbour at that index of the configuration, and brings its answer of up to 4xx.
    ///
    /// # Errors
    /// When there is no answer, or one of 5xx, which then is the reason.
    pub(crate) async fn ask(
        &self,
        index: usize,
        errand: Errand<'_>,
    ) -> Result<Response<Bytes>, CallError> {
        let target = &self.targets[index];
        let answer = self.answer(target, errand).await?;
        if !answer.status().is_server_error() {
            return Ok(answer);
        }
        Err(CallError::Refused {
            service: target.service.clone(),
            status: answer.status(),
            reason: String::from_utf8_lossy(answer.body()).into_owned(),
        })
    }

    /// Reads what the neighbour at that index answered.
    ///
    /// # Errors
    /// When it is something else.
    pub(crate) fn understand<'a, T: Deserialize<'a>>(
        &self,
        index: usize,
        body: &'a [u8],
    ) -> Result<T, CallError> {
        let service = || self.targets[index].service.clone();
        serde_json::from_slice(body)
            .map_err(|source| CallError::NotUnderstood { service: service(), source })
    }

    async fn call(
        &self,
        target: &Target,
        errand: Errand<'_>,
    ) -> Result<Response<Bytes>, CallError> {
        let answer = self.answer(target, errand).await?;
        let status = answer.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(CallError::Failed { service: target.service.clone(), status });
        }
        Ok(answer)
    }

    /// The body must be read to its end, or its connection cannot be used again.
    async fn answer(
        &self,
        target: &Target,
        errand: Errand<'_>,
    ) -> Result<Response<Bytes>, CallError> {
        let service = || target.service.clone();
        let answer = self.client.request(target.request(errand)).await;
        let answer =
            answer.map_err(|source| CallError::NotAnswered { service: service(), source })?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|source| CallError::BrokenOff { service: service(), source })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

/// By default the client keeps any number of idle connections; without a timer it keeps them for good.
fn keeping_client(http_proxy: Option<SocketAddr>) -> Client<Connector, Full<Bytes>> {
    let authority = |address: SocketAddr| {
        address.to_string().parse().expect("an address with its port is an authority")
    };
    let connector = Connector::new(http_proxy.map(authority));
    Client::builder(TokioExecutor::new()).pool_idle_timeout(None).build(connector)
}

impl From<Call> for Target {
    fn from(Call { service, addresses, host }: Call) -> Self {
        Self { service, addresses, turn: AtomicUsize::new(0), host }
    }
}

impl Target {
    fn request(&self, errand: Errand<'_>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(errand.body));
        *request.method_mut() = errand.method;
        *request.uri_mut() = at(self.next_address().clone(), errand.path);
        *request.headers_mut() = passed_on(errand.headers);
        request.headers_mut().insert(HOST, self.host.clone());
        request
    }

    fn next_address(&self) -> &Authority {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.addresses[turn % self.addresses.len()]
    }
}

fn at(address: Authority, path_and_query: Option<PathAndQuery>) -> Uri {
    let mut parts = Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(address);
    // Only CONNECT asks for no path.
    parts.path_and_query = Some(path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/")));
    Uri::from_parts(parts).expect("scheme, authority and path make a URI")
}

fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let ties = |name: &HeaderName| {
        PASSED_ON.contains(&name.as_str()) || name.as_str().starts_with(PASSED_ON_FAMILY)
    };
    let tying = headers.iter().filter(|(name, _)| ties(name));
    tying.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(addresses: &[&str]) -> Target {
        Target::from(Call {
            service: "person".into(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            host: HeaderValue::from_static("person:8082"),
        })
    }

    #[test]
    fn addresses_are_called_in_turn() {
        let target = target(&["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"]);
        let called = [(); 7].map(|()| target.next_address().host().to_owned());
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
        assert_eq!(called, [a, b, c, a, b, c, a]);
    }

    #[test]
    fn a_turn_outlives_the_largest_number() {
        let target = target(&["10.0.0.1:80"]);
        target.turn.store(usize::MAX, Ordering::Relaxed);
        assert_eq!([(); 2].map(|()| target.next_address().port_u16()), [Some(80); 2]);
    }

    #[test]
    fn a_call_asks_what_was_asked_with_what_ties_it_to_the_request() {
        let asked = Request::post("/api/customer?id=7")
            .header("content-type", "application/json")
            .header("content-length", "7")
            .header("x-b3-traceid", "t1")
            .header("accept", "*/*")
            .body(Bytes::from_static(b"{\"a\":1}"))
            .unwrap();
        let request = target(&["10.0.0.1:80"]).request(Errand::from(&asked));
        assert_eq!(request.method(), "POST");
        assert_eq!(request.uri(), "http://10.0.0.1:80/api/customer?id=7");
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-type", "host", "x-b3-traceid"]);
        assert_eq!(request.headers()[HOST], "person:8082");
    }
}
