//! TLS as a client outside of a mesh speaks it: it shows no certificate and verifies none. Only probes are sent over
//! such a connection.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS over `stream`, for HTTP/2.
///
/// # Errors
/// What breaks the stream, and alerts; [`is_alert`] and [`is_tls`] tell them apart.
pub(crate) async fn handshake(stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    let address = stream.peer_addr()?.ip().into();
    let connector = TlsConnector::from(Arc::new(config()));
    connector.connect(ServerName::IpAddress(address), stream).await
}

/// Whether the other end gave a reason of its own for breaking off.
pub(crate) fn is_alert(error: &io::Error) -> bool {
    matches!(cause(error), Some(Error::AlertReceived(_)))
}

/// Whether what came was not TLS, or not as it should be.
pub(crate) fn is_tls(error: &io::Error) -> bool {
    cause(error).is_some()
}

/// What TLS has against the stream.
pub(crate) fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn config() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has what TLS 1.2 and 1.3 need");
    let verifier = Arc::new(Anyone(provider));
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// Accepts any server: outside of the mesh nobody knows whom it trusts.
#[derive(Debug)]
pub(crate) struct Anyone(Arc<CryptoProvider>);

impl Anyone {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self(provider)
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
