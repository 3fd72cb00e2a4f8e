//! Serves Istio's certificate API, by which ztunnel gets the certificates of its pods: gRPC over TLS, with a bearer
//! token. Source: `src/identity/` of ztunnel, `security/v1alpha1/ca.proto` of Istio's API.
//!
//! A thread of toll's answers. Its sockets are inside of the nodes' networks, so that asking crosses no wire, and no
//! measured process spends CPU on answers.

mod grpc;
pub(crate) mod messages;

#[cfg(test)]
pub(crate) mod tests;

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::ring::rand::{SecureRandom, SystemRandom};
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use super::Identity;
use super::mesh::{MeshAuthority, Refusal};
use grpc::{Answer, Code};
use messages::{CertificateRequest, CertificateResponse};

/// Where it is, on the loopback of each node: Istio's own port for it.
pub(crate) const PORT: u16 = 15012;

/// How long certificates last: ztunnel asks for the next one at half of it, later than any round ends.
pub(crate) const LIFETIME: Duration = Duration::from_secs(24 * 3600);

const METHOD: &str = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

/// A token that nobody can guess.
///
/// # Errors
/// When the machine gives no random bytes.
pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the machine gives no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What has become of the requests of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Certificates that it was given.
    pub(crate) issued: u64,
    /// Why it was last given none.
    pub(crate) refused: Option<String>,
}

/// The thread that answers.
#[derive(Debug)]
pub(crate) struct CertificateApi {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    served: Vec<Arc<Mutex<Served>>>,
}

impl CertificateApi {
    /// Answers those who connect to these listeners, one for each node, and know the token.
    ///
    /// # Errors
    /// When its own certificate or the thread cannot be made.
    pub(crate) fn serve(
        authority: MeshAuthority,
        token: &str,
        listeners: Vec<TcpListener>,
    ) -> io::Result<Self> {
        let acceptor = acceptor(&authority)?;
        let office = Arc::new(Office { authority, bearer: format!("Bearer {token}") });
        let desks: Vec<_> = listeners.iter().map(|_| Desk::new(&office, &acceptor)).collect();
        let served = desks.iter().map(|desk| Arc::clone(&desk.served)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                for (listener, desk) in listeners.into_iter().zip(desks) {
                    tokio::spawn(desk.open(listener));
                }
                let _ = stopped.await;
            });
        };
        let thread = thread::Builder::new().name("toll-certificates".into()).spawn(serve)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), served })
    }

    /// What has become of the requests to the listener at this index.
    pub(crate) fn served(&self, index: usize) -> Served {
        let served = self.served.get(index).map(|served| lock(served).clone());
        served.unwrap_or_default()
    }
}

impl Drop for CertificateApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(served: &Mutex<Served>) -> std::sync::MutexGuard<'_, Served> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Its own certificate is of the mesh's authority, too.
fn acceptor(authority: &MeshAuthority) -> io::Result<TlsAcceptor> {
    let Identity { key, certificate } = authority.server().map_err(io::Error::other)?;
    let key = key.serialize_der().try_into().map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config.with_no_client_auth().with_single_cert(vec![certificate.into()], key)
        })
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config).into())
}

/// Who may ask, and who signs.
#[derive(Debug)]
struct Office {
    authority: MeshAuthority,
    /// What a request must bear.
    bearer: String,
}

/// Where one node is served.
#[derive(Clone)]
struct Desk {
    office: Arc<Office>,
    acceptor: TlsAcceptor,
    served: Arc<Mutex<Served>>,
}

impl Desk {
    fn new(office: &Arc<Office>, acceptor: &TlsAcceptor) -> Self {
        let (office, acceptor) = (Arc::clone(office), acceptor.clone());
        Self { office, acceptor, served: Arc::default() }
    }

    async fn open(self, listener: TcpListener) {
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| tokio::net::TcpListener::from_std(listener));
        let Ok(listener) = listener else {
            return self.refuse("its port cannot be listened at".to_owned());
        };
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(self.clone().serve(stream));
        }
    }

    async fn serve(self, stream: TcpStream) {
        let stream = match self.acceptor.accept(stream).await {
            Ok(stream) => TokioIo::new(stream),
            Err(error) => return self.refuse(format!("TLS: {error}")),
        };
        let desk = self;
        let answer = service_fn(move |request| {
            let desk = desk.clone();
            async move { Ok::<_, Infallible>(desk.answer(request).await) }
        });
        // The connection's end is the peer's to choose.
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, answer).await;
    }

    fn refuse(&self, reason: String) {
        lock(&self.served).refused = Some(reason);
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        match self.office.answer(request).await {
            Ok(certificate) => {
                lock(&self.served).issued += 1;
                grpc::success(&certificate)
            }
            Err((code, reason)) => {
                let answer = grpc::failure(code, &reason);
                self.refuse(reason);
                answer
            }
        }
    }
}

impl Office {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<CertificateResponse, (Code, String)> {
        let path = request.uri().path();
        if (request.method(), path) != (&Method::POST, METHOD) {
            return Err((Code::Unimplemented, format!("nothing is known of {path}")));
        }
        let bearer = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
        if bearer != Some(self.bearer.as_bytes()) {
            let found = if bearer.is_some() { "with another token" } else { "without a token" };
            return Err((Code::Unauthenticated, format!("it came {found}")));
        }
        let request = grpc::message::<CertificateRequest>(request).await;
        let request = request.ok_or((Code::InvalidArgument, "it is garbled".to_owned()))?;
        self.sign(&request)
    }

    fn sign(&self, request: &CertificateRequest) -> Result<CertificateResponse, (Code, String)> {
        let nobody = || (Code::InvalidArgument, "it does not say for whom".to_owned());
        let identity = request.identity().ok_or_else(nobody)?;
        let wanted = u64::try_from(request.validity_duration).ok().filter(|wanted| *wanted > 0);
        let lifetime = wanted.map_or(LIFETIME, |wanted| Duration::from_secs(wanted).min(LIFETIME));
        let cert_chain = self
            .authority
            .sign(identity, &request.csr, lifetime)
            .map_err(|refusal| (code(&refusal), refusal.to_string()))?;
        Ok(CertificateResponse { cert_chain: cert_chain.into() })
    }
}

fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Stranger(_) => Code::PermissionDenied,
        Refusal::NotARequest(_) => Code::InvalidArgument,
        Refusal::Unsigned(_) => Code::Internal,
    }
}
