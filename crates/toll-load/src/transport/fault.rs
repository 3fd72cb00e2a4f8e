//! Why there is no TLS connection, and what a user is told about it.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::Origin;
use crate::LoadError;

/// What kept a handshake from its end.
#[derive(Debug)]
pub(crate) enum TlsFault {
    /// The server's certificate does not verify.
    Certificate(CertificateError),
    /// The server does not speak what was asked for by ALPN.
    Alpn,
    /// The server has refused.
    Alert(AlertDescription),
    /// What came is not TLS.
    NotTls,
    /// What came breaks the rules of TLS.
    Violation(Error),
    /// The server has closed the connection.
    Closed,
    /// The server did not answer within the timeout.
    Silent,
    /// The connection broke.
    Io(io::Error),
}

impl TlsFault {
    /// The fault behind an error of [`super::Stream::read`]: a server may refuse a client's certificate after the
    /// client's handshake is done.
    pub fn of(error: &io::Error) -> Option<TlsFault> {
        let error: &Error = error.get_ref()?.downcast_ref()?;
        Some(error.clone().into())
    }

    /// What to say to a user.
    pub fn into_load_error(self, origin: &Origin) -> LoadError {
        let host = origin.host.clone();
        let tls = origin.tls.as_ref().expect("only TLS has such faults");
        match self {
            TlsFault::Certificate(reason) => refused(host, tls.name(), reason),
            TlsFault::Alpn => LoadError::Alpn { host, protocol: tls.alpn() },
            TlsFault::Alert(alert) if !is_about_certificates(alert) => {
                LoadError::TlsRefused { host, alert: alert_name(alert) }
            }
            TlsFault::Alert(_) if !tls.has_identity => {
                LoadError::ClientCertificateRequired { host }
            }
            TlsFault::Alert(alert) => {
                LoadError::ClientCertificateRefused { host, alert: alert_name(alert) }
            }
            TlsFault::NotTls => LoadError::NotTls { host, port: origin.port },
            TlsFault::Violation(source) => LoadError::TlsBroken { host, source },
            TlsFault::Closed => LoadError::TlsClosed { host, port: origin.port },
            TlsFault::Silent => LoadError::TlsSilent { host, port: origin.port },
            TlsFault::Io(source) => origin.connect_error(source),
        }
    }
}

impl From<Error> for TlsFault {
    fn from(error: Error) -> TlsFault {
        match error {
            Error::InvalidCertificate(reason) => TlsFault::Certificate(reason),
            Error::AlertReceived(AlertDescription::NoApplicationProtocol) => TlsFault::Alpn,
            Error::AlertReceived(alert) => TlsFault::Alert(alert),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => TlsFault::NotTls,
            error => TlsFault::Violation(error),
        }
    }
}

fn refused(host: String, name: String, reason: CertificateError) -> LoadError {
    use CertificateError as Reason;
    match reason {
        Reason::UnknownIssuer => LoadError::CertificateUnknownIssuer { host },
        Reason::Expired | Reason::ExpiredContext { .. } => LoadError::CertificateExpired { host },
        Reason::NotValidForName | Reason::NotValidForNameContext { .. } => {
            LoadError::CertificateWrongName { host, name }
        }
        reason => LoadError::CertificateUnusable { host, reason },
    }
}

/// Whether a server says so about a client's certificate, or its absence (RFC 8446, section 6.2).
fn is_about_certificates(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::DecryptError
    )
}

/// `HandshakeFailure` as it is written in the RFC: `handshake_failure`.
fn alert_name(alert: AlertDescription) -> String {
    let mut name = String::new();
    let mut after_small = false;
    for letter in format!("{alert:?}").chars() {
        if letter.is_ascii_uppercase() && after_small {
            name.push('_');
        }
        after_small = letter.is_ascii_lowercase();
        name.push(letter.to_ascii_lowercase());
    }
    name
}
