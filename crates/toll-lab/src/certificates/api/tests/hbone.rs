//! TLS of HBONE with certificates of the API, as ztunnel configures it: each end takes the other by its identity.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, ServerConnection, SignatureScheme,
};
use tokio_rustls::rustls::crypto::ring;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::{Taken, roots};

/// The URI in a certificate; empty without one.
pub(crate) fn identity(certificate: &CertificateDer<'_>) -> String {
    let (_, leaf) = X509Certificate::from_der(certificate).unwrap();
    let names = leaf.subject_alternative_name().unwrap().unwrap();
    let [GeneralName::URI(uri)] = &names.value.general_names[..] else { return String::new() };
    (*uri).to_owned()
}

/// Who has come.
pub(crate) fn peer(connection: &ServerConnection) -> String {
    connection.peer_certificates().and_then(<[_]>::first).map(identity).unwrap_or_default()
}

/// Takes whom this root vouches for.
pub(crate) fn callers(root: &CertificateDer<'static>) -> Arc<dyn ClientCertVerifier> {
    let (roots, provider) = (Arc::new(roots([root.clone()])), Arc::new(ring::default_provider()));
    WebPkiClientVerifier::builder_with_provider(roots, provider).build().unwrap()
}

fn key(of: &Taken) -> PrivateKeyDer<'static> {
    of.key.serialize_der().try_into().unwrap()
}

pub(crate) fn server(own: &Taken) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(callers(&own.root))
        .with_single_cert(vec![own.leaf.clone()], key(own))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// Speaks to whoever has this identity.
pub(crate) fn client(own: &Taken, peer: String) -> ClientConfig {
    let verifier = Arc::new(Exactly { peer, callers: callers(&own.root) });
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(vec![own.leaf.clone()], key(own))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// A certificate of a mesh serves both ends, so what verifies callers verifies the called.
#[derive(Debug)]
struct Exactly {
    peer: String,
    callers: Arc<dyn ClientCertVerifier>,
}

impl ServerCertVerifier for Exactly {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.callers.verify_client_cert(leaf, chain, now)?;
        match identity(leaf) {
            found if found == self.peer => Ok(ServerCertVerified::assertion()),
            found => Err(Error::General(format!("expected {}, got {found}", self.peer))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.callers.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.callers.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.callers.supported_verify_schemes()
    }
}
