//! Servers of few connections, one after the other, each in a thread that ends with them.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::LONG;
use crate::Identity;

/// What a server has seen of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub peer: IpAddr,
    /// What went wrong, with the handshake or later.
    pub failure: Option<String>,
    pub server_name: Option<String>,
    pub alpn: Option<String>,
    pub resumed: Option<bool>,
    pub has_client_certificate: bool,
    /// Whether the client has said that it ends (TLS) before it ended.
    pub goodbye: bool,
}

pub(super) struct Server {
    pub port: u16,
    seen: Receiver<Seen>,
}

impl Server {
    /// Lets `serve` have one connection after another.
    pub fn start(connections: usize, serve: impl Fn(TcpStream) -> Seen + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, seen) = channel();
        thread::spawn(move || {
            for _ in 0..connections {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(LONG)).unwrap();
                stream.set_write_timeout(Some(LONG)).unwrap();
                // A test that does not ask has no receiver any more.
                let _ = tell.send(serve(stream));
            }
        });
        Server { port, seen }
    }

    /// Echoes in the clear.
    pub fn plain(connections: usize) -> Server {
        Server::start(connections, |mut stream| {
            let seen = saw(&stream.peer_addr().unwrap());
            Seen { failure: failure(echo(&mut stream)), ..seen }
        })
    }

    /// Echoes over TLS.
    pub fn tls(connections: usize, config: ServerConfig) -> Server {
        let config = Arc::new(config);
        Server::start(connections, move |stream| serve_tls(stream, config.clone()))
    }

    /// What it has seen of the next connection that has ended.
    pub fn seen(&self) -> Seen {
        self.seen.recv_timeout(LONG).unwrap()
    }
}

pub(super) fn saw(peer: &SocketAddr) -> Seen {
    Seen {
        peer: peer.ip(),
        failure: None,
        server_name: None,
        alpn: None,
        resumed: None,
        has_client_certificate: false,
        goodbye: false,
    }
}

fn serve_tls(stream: TcpStream, config: Arc<ServerConfig>) -> Seen {
    let peer = stream.peer_addr().unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let result = echo(&mut stream);
    let session = &stream.conn;
    Seen {
        goodbye: result.is_ok(),
        failure: failure(result),
        server_name: session.server_name().map(String::from),
        alpn: session.alpn_protocol().map(|name| String::from_utf8(name.into()).unwrap()),
        resumed: session.handshake_kind().map(|kind| kind == HandshakeKind::Resumed),
        has_client_certificate: session.peer_certificates().is_some(),
        ..saw(&peer)
    }
}

fn failure(result: io::Result<()>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

fn echo(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut buffer = vec![0; 20_000];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            bytes => stream.write_all(&buffer[..bytes])?,
        }
        stream.flush()?;
    }
}

/// A server's configuration; with `clients_ca` it requires a certificate that this CA has signed.
pub(super) fn config(identity: &Identity, alpn: &[&str], clients_ca: Option<&str>) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let chain = CertificateDer::pem_slice_iter(identity.chain_pem.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).unwrap();
    let mut config =
        builder.with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}
