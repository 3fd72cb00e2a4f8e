//! TLS over a non-blocking socket, by rustls: certificates of a plan into a configuration, plaintext into records
//! and back. [`TlsFault`] says what is wrong with a handshake.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    ClientConfig, ClientConnection, ConfigBuilder, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::TlsFault;
use super::socket::Socket;
use crate::{Identity, LoadError, Protocol, Tls};

/// The name of HTTP/2 in ALPN (RFC 9113, section 3.2).
const H2: &[u8] = b"h2";
/// The name of HTTP/1.1 in ALPN (RFC 7301, section 6).
const HTTP_1_1: &[u8] = b"http/1.1";
/// Sessions kept for resumption.
const SESSIONS: usize = 1024;

/// What the sessions of one origin have in common.
#[derive(Debug, Clone)]
pub(super) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    requires_h2: bool,
    /// Whether it has a certificate of its own.
    pub has_identity: bool,
}

impl TlsClient {
    /// Reads the plan's certificates, or the system's.
    ///
    /// # Errors
    /// When one of them cannot be used, or when the name cannot stand on a certificate.
    pub fn new(tls: &Tls, protocol: Protocol, host: &str) -> Result<TlsClient, LoadError> {
        let asked = tls.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(asked.to_owned())
            .map_err(|_| LoadError::BadServerName { name: asked.into() })?;
        let mut config = match &tls.identity {
            None => verifying(tls)?.with_no_client_auth(),
            Some(identity) => with_identity(verifying(tls)?, identity)?,
        };
        let requires_h2 = matches!(protocol, Protocol::Http2 { .. } | Protocol::Grpc { .. });
        let alpn = if requires_h2 { H2 } else { HTTP_1_1 };
        config.alpn_protocols = vec![alpn.into()];
        config.resumption = if tls.resumption {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        let has_identity = tls.identity.is_some();
        Ok(TlsClient { config: Arc::new(config), name, requires_h2, has_identity })
    }

    /// A session that is still to be agreed on.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn begin(&self) -> io::Result<TlsSession> {
        let session = ClientConnection::new(self.config.clone(), self.name.clone());
        let session = session.map_err(io::Error::other)?;
        Ok(TlsSession { session, requires_h2: self.requires_h2, failure: None })
    }

    /// The name asked for and verified.
    pub fn name(&self) -> String {
        self.name.to_str().into_owned()
    }

    /// The protocol asked for.
    pub fn alpn(&self) -> &'static str {
        if self.requires_h2 { "HTTP/2" } else { "HTTP/1.1" }
    }
}

/// A configuration that verifies as the plan says.
fn verifying(tls: &Tls) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, LoadError> {
    let provider: Arc<CryptoProvider> = ring::default_provider().into();
    let schemes = provider.signature_verification_algorithms.supported_schemes();
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has cipher suites of TLS 1.2 and 1.3");
    if tls.insecure {
        let verifier = AcceptAnyCertificate { schemes };
        return Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)));
    }
    let roots = tls.ca_pem.as_deref().map_or_else(system_roots, given_roots)?;
    Ok(builder.with_root_certificates(roots))
}

fn system_roots() -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    // Some systems carry a certificate that cannot be read; the others are as good without it.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(LoadError::NoSystemRoots) } else { Ok(roots) }
}

fn given_roots(text: &str) -> Result<RootCertStore, LoadError> {
    const FIELD: &str = "connection.tls.ca_pem";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(FIELD, text)? {
        roots
            .add(certificate)
            .map_err(|source| LoadError::BadCertificate { field: FIELD, source })?;
    }
    Ok(roots)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: &Identity,
) -> Result<ClientConfig, LoadError> {
    const FIELD: &str = "connection.tls.identity.key_pem";
    let chain = certificates("connection.tls.identity.chain_pem", &identity.chain_pem)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())
        .map_err(|source| LoadError::BadPem { field: FIELD, source })?;
    let unusable = |source| LoadError::BadCertificate { field: "connection.tls.identity", source };
    builder.with_client_auth_cert(chain, key).map_err(unusable)
}

/// At least one certificate.
fn certificates(
    field: &'static str,
    text: &str,
) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let bad = |source| LoadError::BadPem { field, source };
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let read = read.map_err(bad)?;
    if read.is_empty() { Err(bad(pem::Error::NoItemsFound)) } else { Ok(read) }
}

/// Takes whatever certificate the peer shows, and whatever it signs with it: the plan's `insecure`.
#[derive(Debug)]
struct AcceptAnyCertificate {
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    // Signatures are not looked at, either: certificates too old for the verifier (X.509 v1) are welcome, too.
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// TLS of one connection.
#[derive(Debug)]
pub(super) struct TlsSession {
    session: ClientConnection,
    requires_h2: bool,
    /// Met when plaintext had to be given first; due at the next read.
    failure: Option<io::Error>,
}

impl TlsSession {
    /// See [`super::Stream::handshake`].
    pub fn handshake(&mut self, socket: &mut Socket) -> Result<bool, TlsFault> {
        loop {
            if !self.flush(socket).map_err(TlsFault::Io)? {
                return Ok(false);
            }
            if !self.session.is_handshaking() {
                return self.agreed();
            }
            match self.session.read_tls(socket) {
                Ok(0) => return Err(TlsFault::Closed),
                Ok(_) => self.process(socket)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(TlsFault::Io(error)),
            }
        }
    }

    fn agreed(&self) -> Result<bool, TlsFault> {
        if self.requires_h2 && self.session.alpn_protocol() != Some(H2) {
            return Err(TlsFault::Alpn);
        }
        Ok(true)
    }

    /// See [`super::Stream::read`].
    pub fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut filled = 0;
        match self.fill(socket, buffer, &mut filled) {
            Err(error) if filled > 0 => {
                self.failure = Some(error).filter(|error| error.kind() != ErrorKind::WouldBlock);
                Ok(filled)
            }
            result => result.map(|()| filled),
        }
    }

    /// Fills the buffer until it is full, the stream ends, or the socket has no more.
    fn fill(
        &mut self,
        socket: &mut Socket,
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<()> {
        let mut is_drained = false;
        while *filled < buffer.len() {
            match self.session.reader().read(&mut buffer[*filled..]) {
                Ok(0) => break,
                Ok(bytes) => *filled += bytes,
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                // Without plaintext to give, only the socket itself can say that it is empty: an end of stream
                // may stand behind a record that is not complete.
                Err(_) if is_drained && *filled > 0 => break,
                Err(_) => is_drained = self.receive(socket)?,
            }
        }
        Ok(())
    }

    /// Takes ciphertext from the socket; true when that has emptied it.
    fn receive(&mut self, socket: &mut Socket) -> io::Result<bool> {
        let mut source = Drain { socket, is_drained: false };
        self.session.read_tls(&mut source)?;
        let is_drained = source.is_drained;
        self.process(socket).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        Ok(is_drained)
    }

    /// Decrypts what was read, and answers what asks for an answer: a key update, or a fault.
    fn process(&mut self, socket: &mut Socket) -> Result<(), rustls::Error> {
        let result = self.session.process_new_packets();
        if self.session.wants_write() {
            // What does not go now goes with the next flush; of a broken connection the next read tells.
            let _ = self.session.write_tls(socket);
        }
        result.map(drop)
    }

    /// See [`super::Stream::write`].
    pub fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
        // One write's ciphertext at a time: what is taken here has left before more is taken.
        if !self.flush(socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.session.writer().write(bytes)?;
        self.flush(socket)?;
        Ok(taken)
    }

    /// See [`super::Stream::flush`].
    pub fn flush(&mut self, socket: &mut Socket) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// See [`super::Stream::has_unwritten`].
    pub fn has_unwritten(&self) -> bool {
        self.session.wants_write()
    }

    /// Tells the peer that nothing follows, if the socket takes it now.
    pub fn say_goodbye(&mut self, socket: &mut Socket) {
        if !self.session.is_handshaking() {
            self.session.send_close_notify();
            let _ = self.session.write_tls(socket);
        }
    }

    /// Whether the session was resumed; `None` before that is known.
    #[cfg(test)]
    pub fn is_resumed(&self) -> Option<bool> {
        self.session.handshake_kind().map(|kind| kind == rustls::HandshakeKind::Resumed)
    }
}

/// A socket that notices when a read has emptied it.
struct Drain<'a> {
    socket: &'a mut Socket,
    is_drained: bool,
}

impl Read for Drain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.socket.receive(buffer)?;
        self.is_drained = bytes < buffer.len();
        Ok(bytes)
    }
}
