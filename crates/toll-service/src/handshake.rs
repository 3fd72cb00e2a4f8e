//! Turns a TCP connection into how a whole TLS handshake over it ends, by one who knows whom it wants: it names the
//! server, verifies it unless it has no authority to verify it with, and may show a certificate of its own. Sends nothing over
//! the session, and resumes none.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{CertificateError, ClientConfig, Error as TlsError, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::command_line::Probe;
use crate::error::Error;
use crate::unverified::Anyone;

/// How long a server may be silent after the farewell before it counts as one that answers none.
const LONGEST_FAREWELL: Duration = Duration::from_secs(5);

/// How TLS is to be spoken to whom.
#[derive(Debug, Clone)]
pub(crate) struct Acquaintance {
    server: ServerName<'static>,
    config: Arc<ClientConfig>,
}

/// A handshake that both ends agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Established {
    /// SHA-256 of the server's own certificate, 64 hexadecimal digits.
    pub server: String,
    /// `TLSv1.3` or `TLSv1.2`.
    pub protocol: &'static str,
}

impl Acquaintance {
    /// What a probe's options say; none without a server's name.
    ///
    /// # Errors
    /// [`Error::PemUnreadable`], [`Error::PemsUnusable`].
    pub(crate) fn of(probe: &Probe) -> Result<Option<Self>, Error> {
        let Some(server) = &probe.server_name else { return Ok(None) };
        let own = probe.certificate.as_deref().zip(probe.key.as_deref());
        let mut config = config(probe.authority.as_deref(), own)?;
        config.alpn_protocols = probe.alpn.iter().map(|name| name.clone().into_bytes()).collect();
        Ok(Some(Self { server: server.clone(), config: Arc::new(config) }))
    }

    /// Speaks TLS over `stream` until the server has taken or refused what it was shown.
    ///
    /// # Errors
    /// What breaks the stream, alerts, and what is wrong with the server's certificate; [`distrust`] tells the
    /// last one apart.
    pub(crate) async fn make(&self, stream: TcpStream) -> io::Result<Established> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let mut stream = connector.connect(self.server.clone(), stream).await?;
        consent(&mut stream).await?;
        Ok(established(&stream))
    }
}

/// Says farewell and waits for what comes first: in TLS 1.3 the client is done before the server has seen its
/// certificate (RFC 8446, section 4.4), and a server that refuses it says so before it reads any further.
///
/// The TCP connection stays open meanwhile: a proxy that closes both ways at the end of one would swallow the refusal.
async fn consent(stream: &mut TlsStream<TcpStream>) -> io::Result<()> {
    if stream.get_ref().1.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
        return Ok(());
    }
    stream.get_mut().1.send_close_notify();
    stream.flush().await?;
    match timeout(LONGEST_FAREWELL, stream.read(&mut [0])).await {
        // Not every server answers a farewell before it hangs up; one that refuses sends an alert.
        Ok(Err(end)) if end.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Ok(Err(refusal)) => Err(refusal),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

fn established(stream: &TlsStream<TcpStream>) -> Established {
    let session = stream.get_ref().1;
    let chain = session.peer_certificates().expect("a handshake without resumption shows one");
    Established {
        server: fingerprint(&chain[0]),
        protocol: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        },
    }
}

/// SHA-256 of a certificate's DER form, as 64 hexadecimal digits.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the client has against the server's certificate, if that is what ended the handshake.
pub(crate) fn distrust(error: &TlsError) -> Option<String> {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    let TlsError::InvalidCertificate(why) = error else { return None };
    Some(match why {
        Expired | ExpiredContext { .. } => "certificate expired".into(),
        NotValidYet | NotValidYetContext { .. } => "certificate not valid yet".into(),
        NotValidForName | NotValidForNameContext { .. } => "certificate of another name".into(),
        UnknownIssuer => "unknown issuer".into(),
        why => format!("certificate refused: {why}"),
    })
}

/// Without an authority anybody is taken for the server.
fn config(authority: Option<&Path>, own: Option<(&Path, &Path)>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has what TLS 1.2 and 1.3 need");
    let builder = match authority {
        Some(authority) => builder.with_root_certificates(roots(authority)?),
        None => {
            let anyone = Arc::new(Anyone::new(provider));
            builder.dangerous().with_custom_certificate_verifier(anyone)
        }
    };
    let Some((certificate, key)) = own else { return Ok(builder.with_no_client_auth()) };
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    builder.with_client_auth_cert(certificates(certificate)?, key).map_err(Error::PemsUnusable)
}

fn roots(authority: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(Error::PemsUnusable)?;
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain = CertificateDer::pem_file_iter(path).map_err(unreadable(path))?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(unreadable(path))?;
    if chain.is_empty() {
        return Err(unreadable(path)(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn unreadable(path: &Path) -> impl Fn(rustls::pki_types::pem::Error) -> Error {
    let path = PathBuf::from(path);
    move |source| Error::PemUnreadable { path: path.clone(), source }
}
