//! The driver: relays what the command asks of other pods, measures how their clocks stand, and removes the run when
//! nothing was heard of the command for a while.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::exchange::{Question, Reply};
use super::protocol::{Clock, Namespaces, Offset};

/// How long a pod may take to answer what is relayed to it; questions for lines wait up to 20 s.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);

/// How long it may take to connect to a pod.
const LONGEST_CONNECT: Duration = Duration::from_secs(5);

/// Exchanges of which the shortest says how a clock stands.
const EXCHANGES: usize = 8;

/// How often it is looked whether the command is still heard.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The variable that says for how many seconds the command may be silent.
pub(crate) const SILENCE_VARIABLE: &str = "TOLL_LONGEST_SILENCE_S";

/// The variable that names the run's own namespace, in which the driver is.
pub(crate) const NAMESPACE_VARIABLE: &str = "TOLL_NAMESPACE";

/// The driver's state.
#[derive(Debug)]
pub(super) struct Driver {
    token: String,
    longest_silence: Duration,
    namespace: String,
    heard: Mutex<Instant>,
    namespaces: Mutex<Vec<String>>,
}

impl Clock {
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.expect("clocks stand after 1970");
        Self { unix_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
    }
}

impl Driver {
    pub(super) fn from_environment(token: String) -> Result<Self, String> {
        let variable = |name: &str| env::var(name).map_err(|_| format!("{name} is not set"));
        let seconds = variable(SILENCE_VARIABLE)?;
        let seconds = seconds.parse().map_err(|_| format!("{SILENCE_VARIABLE}: no number"))?;
        Ok(Self {
            token,
            longest_silence: Duration::from_secs(seconds),
            namespace: variable(NAMESPACE_VARIABLE)?,
            heard: Mutex::new(Instant::now()),
            namespaces: Mutex::default(),
        })
    }

    pub(super) async fn reply(&self, question: Question) -> Reply {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let segments: Vec<String> = question.segments().into_iter().map(str::to_owned).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match (&question.method, segments.as_slice()) {
            (_, ["to", address, ..]) => self.relay(address, &question).await,
            (&Method::GET, ["offset", address]) => match self.offset(address).await {
                Ok(offset) => Reply::json(&offset),
                Err(reason) => Reply::refused(StatusCode::BAD_GATEWAY, &reason),
            },
            (&Method::PUT, ["namespaces"]) => match question.read::<Namespaces>() {
                Ok(told) => {
                    *self.namespaces.lock().unwrap_or_else(PoisonError::into_inner) = told.names;
                    Reply::done()
                }
                Err(refused) => refused,
            },
            _ => Reply::unknown(),
        }
    }

    /// `/to/ADDRESS:PORT/...` is asked there as `/...`.
    async fn relay(&self, address: &str, question: &Question) -> Reply {
        let rest = question.path.strip_prefix("/to/").and_then(|path| path.strip_prefix(address));
        let path = rest.filter(|rest| !rest.is_empty()).unwrap_or("/");
        let asked = self.ask(address, question.method.clone(), path, question.body.clone());
        match timeout(LONGEST_ANSWER, asked).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(reason)) => Reply::refused(StatusCode::BAD_GATEWAY, &reason),
            Err(_) => Reply::refused(StatusCode::GATEWAY_TIMEOUT, "no answer in time"),
        }
    }

    async fn ask(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Reply, String> {
        let words = |error: &dyn std::error::Error| format!("{address}: {error}");
        let stream = timeout(LONGEST_CONNECT, TcpStream::connect(address))
            .await
            .map_err(|_| format!("{address}: no connection in time"))?
            .map_err(|error| words(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| words(&error))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, address)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::new(body))
            .map_err(|error| words(&error))?;
        let response = sender.send_request(request).await.map_err(|error| words(&error))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| words(&error))?;
        Ok(Reply { status, body: body.to_bytes() })
    }

    /// Cristian's method: the pod's clock is read halfway through the exchange, within half of its length. F. Cristian,
    /// "Probabilistic clock synchronization", Distributed Computing 3 (1989).
    async fn offset(&self, address: &str) -> Result<Offset, String> {
        let mut best: Option<Offset> = None;
        for _ in 0..EXCHANGES {
            let (sent, began) = (Clock::now(), Instant::now());
            let reply = self.ask(address, Method::GET, "/clock", Bytes::new()).await?;
            let round_trip_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let there: Clock =
                serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
            let here = sent.unix_ns + round_trip_ns / 2;
            let offset_ns = there.unix_ns.cast_signed() - here.cast_signed();
            if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
                best = Some(Offset { offset_ns, round_trip_ns });
            }
        }
        best.ok_or_else(|| "no exchange".to_owned())
    }

    /// Removes the run once the command was silent for too long: the arms' namespaces, then its own, which ends it.
    pub(super) async fn watch_heartbeat(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.elapsed() > self.longest_silence
                && let Err(error) = self.remove_run().await
            {
                super::complain(&format!("the run could not be removed: {error}"));
            }
        }
    }

    async fn remove_run(&self) -> Result<(), kube::Error> {
        let client = Client::try_default().await?;
        let namespaces: Api<Namespace> = Api::all(client);
        let names = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for name in names.iter().chain([&self.namespace]) {
            match namespaces.delete(name, &DeleteParams::background()).await {
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
                deleted => drop(deleted?),
            }
        }
        Ok(())
    }
}
