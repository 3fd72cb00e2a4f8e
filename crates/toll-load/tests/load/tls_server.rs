//! Certificates and TLS for the servers of the tests.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::{Reply, Request, Server, Wire};

/// Signs certificates.
pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// The configuration of a server on 127.0.0.1; it may require that this authority has signed its clients.
    pub fn config(&self, alpn: &str, requires_clients: bool) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if requires_clients {
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![alpn.into()];
        config
    }
}

/// What a TLS server does to the connection with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// It shakes hands.
    Good,
    /// It hangs up instead.
    HangUp,
    /// It says nothing.
    Silence,
}

/// A server over TLS, and how often sessions were resumed.
pub struct TlsServer {
    pub plain: Server,
    resumed: Arc<AtomicU64>,
}

type Session = StreamOwned<ServerConnection, TcpStream>;

impl Wire for Session {
    fn reset(&self) {
        self.sock.reset();
    }
}

impl TlsServer {
    pub fn start(
        config: ServerConfig,
        handshake: impl Fn(u64) -> Handshake + Send + Sync + 'static,
        reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> TlsServer {
        let resumed = Arc::new(AtomicU64::new(0));
        let (config, counter) = (Arc::new(config), Arc::clone(&resumed));
        let wrap = move |number, stream| match handshake(number) {
            Handshake::Good => shake_hands(stream, &config, &counter),
            Handshake::HangUp => None,
            Handshake::Silence => {
                std::thread::sleep(std::time::Duration::from_secs(30));
                drop(stream);
                None
            }
        };
        TlsServer { plain: Server::wrapped(wrap, reply), resumed }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.plain.address)
    }

    pub fn resumed(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }
}

fn shake_hands(
    mut stream: TcpStream,
    config: &Arc<ServerConfig>,
    resumed: &AtomicU64,
) -> Option<Session> {
    let mut session = ServerConnection::new(Arc::clone(config)).unwrap();
    while session.is_handshaking() {
        if let Err(_refusal) = session.complete_io(&mut stream) {
            // The client is to read the reason, which a reset would overtake.
            stream.shutdown(std::net::Shutdown::Write).ok()?;
            std::thread::sleep(std::time::Duration::from_millis(50));
            return None;
        }
    }
    let was_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
    resumed.fetch_add(was_resumed.into(), Ordering::Relaxed);
    Some(StreamOwned::new(session, stream))
}
