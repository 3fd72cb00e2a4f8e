//! An HTTP/2 server that we did not write: hyper, on a thread of its own.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// How it answers.
#[derive(Clone)]
pub struct Behaviour {
    /// Streams allowed at a time on a connection.
    pub max_streams: u32,
    /// Says goodbye on a connection after so many requests.
    pub goodbye_after: u64,
    /// Time that an answer takes.
    pub delay: Duration,
    /// The `grpc-status` of a request by its number.
    pub grpc_status: Option<fn(u64) -> u16>,
    /// Over TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            max_streams: 200,
            goodbye_after: u64::MAX,
            delay: Duration::from_millis(2),
            grpc_status: None,
            tls: None,
        }
    }
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    most_streams: AtomicU64,
}

#[derive(Debug, Default)]
struct OfConnection {
    requests: AtomicU64,
    in_flight: AtomicU64,
    goodbye: Notify,
}

pub struct Http2Server {
    address: SocketAddr,
    is_tls: bool,
    seen: Arc<Seen>,
}

impl Http2Server {
    pub fn start(behaviour: Behaviour) -> Http2Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (shared, is_tls) = (Arc::clone(&seen), behaviour.tls.is_some());
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(listen(listener, behaviour, shared));
        });
        Http2Server { address, is_tls, seen }
    }

    pub fn url(&self) -> String {
        format!("{}://{}/", if self.is_tls { "https" } else { "http" }, self.address)
    }

    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    /// Most requests at a time on one connection.
    pub fn most_streams(&self) -> u64 {
        self.seen.most_streams.load(Ordering::Relaxed)
    }
}

async fn listen(listener: std::net::TcpListener, behaviour: Behaviour, seen: Arc<Seen>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        seen.connections.fetch_add(1, Ordering::Relaxed);
        let (behaviour, seen) = (behaviour.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            match behaviour.tls.clone() {
                None => serve(stream, behaviour, seen).await,
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                        serve(stream, behaviour, seen).await;
                    }
                }
            }
        });
    }
}

async fn serve<S>(stream: S, behaviour: Behaviour, seen: Arc<Seen>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let here = Arc::new(OfConnection::default());
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_concurrent_streams(behaviour.max_streams);
    let of_connection = Arc::clone(&here);
    let service = service_fn(move |request| {
        answer(request, behaviour.clone(), Arc::clone(&seen), Arc::clone(&of_connection))
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut goodbye = pin!(here.goodbye.notified());
    let mut said = false;
    // The client closes without a farewell, which is an error to some servers.
    let _ = poll_fn(|context| {
        if !said && goodbye.as_mut().poll(context).is_ready() {
            said = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(context)
    })
    .await;
}

async fn answer(
    request: Request<Incoming>,
    behaviour: Behaviour,
    seen: Arc<Seen>,
    here: Arc<OfConnection>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let number = seen.requests.fetch_add(1, Ordering::Relaxed);
    let in_flight = 1 + here.in_flight.fetch_add(1, Ordering::Relaxed);
    seen.most_streams.fetch_max(in_flight, Ordering::Relaxed);
    if 1 + here.requests.fetch_add(1, Ordering::Relaxed) == behaviour.goodbye_after {
        here.goodbye.notify_one();
    }
    request.into_body().collect().await?;
    tokio::time::sleep(behaviour.delay).await;
    here.in_flight.fetch_sub(1, Ordering::Relaxed);
    let body = Full::new(Bytes::from_static(b"\0\0\0\0\0"));
    Ok(Response::new(match behaviour.grpc_status {
        None => body.boxed(),
        Some(status) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status(number).into());
            body.with_trailers(async { Some(Ok(trailers)) }).boxed()
        }
    }))
}
