//! Why the program cannot do what it was asked.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What stopped the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read {}: {}", path.display(), source.kind())]
    ConfigUnreadable { path: PathBuf, source: io::Error },
    #[error("cannot understand {}: {source}", path.display())]
    ConfigInvalid { path: PathBuf, source: serde_json::Error },
    #[error("cannot listen on {address}: {}", source.kind())]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot start the threads of the service: {0}")]
    Threads(#[source] io::Error),
    #[error("cannot connect to {}: {}", socket.display(), root_cause(source))]
    NoDatabase { socket: PathBuf, source: tokio_postgres::Error },
    #[error("SQL number {number} failed: {}", root_cause(source))]
    Sql { number: usize, source: tokio_postgres::Error },
    #[error("cannot use {service}: {reason}")]
    NoStore { service: String, reason: String },
    #[error(transparent)]
    Store(Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot understand the targets on the first line: {0}")]
    TargetsInvalid(#[source] serde_json::Error),
    #[error("cannot read certificates or a key in {}: {source}", path.display())]
    PemUnreadable { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("cannot use these certificates and this key for TLS: {0}")]
    PemsUnusable(#[source] rustls::Error),
}

impl Error {
    /// What to do about it.
    pub(crate) fn help(&self) -> Option<String> {
        match self {
            Self::ConfigUnreadable { .. } => Some(
                "give a readable file with --config FILE; `toll-service --help` shows one".into(),
            ),
            Self::ConfigInvalid { .. } => Some("`toll-service --help` shows a valid one".into()),
            Self::Listen { address, source } => help_to_listen(*address, source.kind()),
            Self::Threads(_) => {
                Some("allow more processes: see `ulimit -u` and the cgroup's pids.max".into())
            }
            Self::NoDatabase { .. } => Some(
                "give the server's folder with --socket, its port, and a role that it lets in"
                    .into(),
            ),
            Self::PemUnreadable { .. } => Some("give a readable PEM file".into()),
            Self::PemsUnusable(_) => {
                Some("give a certificate and the key that belongs to it".into())
            }
            Self::NoStore { .. } => Some(
                "give readable PEM files: `authority`, `certificate` and `key`, or `identity`"
                    .into(),
            ),
            Self::Sql { .. } | Self::Store(_) => None,
            Self::TargetsInvalid(_) => Some("`toll-service scrape --help` shows valid ones".into()),
        }
    }
}

/// The innermost reason; the outer ones only say that there is one.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(source) => root_cause(source),
        None => error.to_string(),
    }
}

fn help_to_listen(address: SocketAddr, kind: io::ErrorKind) -> Option<String> {
    let port = address.port();
    match kind {
        io::ErrorKind::AddrInUse => {
            Some(format!("`ss -ltnp 'sport = :{port}'` names the program that holds the port"))
        }
        io::ErrorKind::AddrNotAvailable => Some(format!(
            "no interface here has {}; `ip address` lists those there are",
            address.ip()
        )),
        io::ErrorKind::PermissionDenied => Some("listen on a port from 1024 up".into()),
        _ => None,
    }
}
