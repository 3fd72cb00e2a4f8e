//! The one stream from the command to the driver: HTTP over a port that the API server forwards. It is made again when
//! it breaks; what may be asked twice is.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::cluster::Cluster;
use crate::error::KubernetesError;
use crate::in_cluster::protocol::PORT;

/// How long the stream may be broken.
const LONGEST_BREAK: Duration = Duration::from_secs(60);

/// The pause before it is made again.
const PAUSE: Duration = Duration::from_millis(500);

/// How long an answer may take: the driver waits for pods itself, at most a minute.
const LONGEST_ANSWER: Duration = Duration::from_secs(70);

/// A stream to the driver.
#[derive(Debug)]
pub(super) struct Link {
    cluster: Cluster,
    namespace: String,
    pod: String,
    token: String,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// What is asked for.
struct Ask<'a> {
    method: Method,
    path: &'a str,
    body: Bytes,
}

impl Link {
    /// To the driver in this pod; nothing is sent yet.
    pub(super) fn new(cluster: Cluster, namespace: &str, pod: &str, token: &str) -> Self {
        Self {
            cluster,
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            token: token.to_owned(),
            sender: Mutex::default(),
        }
    }

    /// What the driver, or a pod by way of it, answers.
    ///
    /// # Errors
    /// When the stream stays broken, or the pod refuses.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, KubernetesError> {
        let bytes = self.ask(&Ask { method: Method::GET, path, body: Bytes::new() })?;
        self.understood(path, &bytes)
    }

    /// The same, as text.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn text(&self, path: &str) -> Result<String, KubernetesError> {
        let bytes = self.ask(&Ask { method: Method::GET, path, body: Bytes::new() })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Says something that may be said twice.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn put(&self, path: &str, what: &impl Serialize) -> Result<(), KubernetesError> {
        let body = serde_json::to_vec(what).expect("plain fields always have a JSON form");
        self.put_bytes(path, body)
    }

    /// The same with bytes that are what they are.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn put_bytes(&self, path: &str, body: Vec<u8>) -> Result<(), KubernetesError> {
        self.ask(&Ask { method: Method::PUT, path, body: body.into() }).map(drop)
    }

    /// Removes what may be removed twice.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(super) fn delete(&self, path: &str) -> Result<(), KubernetesError> {
        self.ask(&Ask { method: Method::DELETE, path, body: Bytes::new() }).map(drop)
    }

    /// Asks for something that may be done only once.
    ///
    /// # Errors
    /// When the stream breaks meanwhile, or the pod refuses.
    pub(super) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &impl Serialize,
    ) -> Result<T, KubernetesError> {
        let body = serde_json::to_vec(what).expect("plain fields always have a JSON form");
        let bytes = self.ask(&Ask { method: Method::POST, path, body: body.into() })?;
        self.understood(path, &bytes)
    }

    fn understood<T: DeserializeOwned>(
        &self,
        path: &str,
        bytes: &[u8],
    ) -> Result<T, KubernetesError> {
        serde_json::from_slice(bytes).map_err(|error| KubernetesError::Pod {
            pod: format!("{path} of {}", self.namespace),
            message: format!("an answer that toll cannot read: {error}"),
        })
    }

    fn ask(&self, what: &Ask<'_>) -> Result<Bytes, KubernetesError> {
        let deadline = Instant::now() + LONGEST_BREAK;
        let twice = what.method != Method::POST;
        loop {
            match self.once(what) {
                Ok((status, bytes)) if status < 300 => return Ok(bytes),
                Ok((_, bytes)) => {
                    return Err(KubernetesError::Pod {
                        pod: format!("{}{}", self.namespace, what.path),
                        message: String::from_utf8_lossy(&bytes).into_owned(),
                    });
                }
                Err(message) if twice && Instant::now() < deadline => {
                    tracing::debug!("the stream to the driver broke: {message}");
                    thread::sleep(PAUSE);
                }
                Err(message) => return Err(KubernetesError::Driver { message }),
            }
        }
    }

    /// On the stream that there is, or on a new one.
    fn once(&self, what: &Ask<'_>) -> Result<(u16, Bytes), String> {
        let mut slot = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sender = match slot.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.connect()?,
        };
        let request = Request::builder()
            .method(what.method.clone())
            .uri(what.path)
            .header(HOST, "driver")
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::new(what.body.clone()))
            .map_err(|error| error.to_string())?;
        let answer = async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let in_time = async { tokio::time::timeout(LONGEST_ANSWER, answer).await };
        let answer = self.cluster.wait(in_time);
        let answer = answer.map_err(|_| "no answer in time".to_owned())?;
        let answer = answer.map_err(|error| error.to_string())?;
        *slot = Some(sender);
        Ok(answer)
    }

    fn connect(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = self.cluster.forward(&self.namespace, &self.pod, PORT);
        let stream = stream.map_err(|error| error.to_string())?;
        let made = self.cluster.wait(http1::handshake(TokioIo::new(stream)));
        let (sender, connection) = made.map_err(|error| error.to_string())?;
        self.cluster.beside(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}
