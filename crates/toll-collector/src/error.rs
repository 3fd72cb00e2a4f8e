//! Why the program cannot do what it was asked.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What stopped the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot listen on {address}: {}", source.kind())]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot listen on {}: {}", socket.display(), source.kind())]
    Admin { socket: PathBuf, source: io::Error },
    #[error("cannot start the thread that waits for SIGTERM: {0}")]
    Threads(#[source] io::Error),
}

impl Error {
    /// What to do about it.
    pub(crate) fn help(&self) -> Option<String> {
        match self {
            Self::Listen { address, source } => help_to_listen(*address, source.kind()),
            Self::Admin { source, .. } => help_with_socket(source.kind()).map(Into::into),
            Self::Threads(_) => {
                Some("allow more processes: see `ulimit -u` and the cgroup's pids.max".into())
            }
        }
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

fn help_with_socket(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::AddrInUse => {
            Some("another collector has it, or one was killed: then remove the file")
        }
        io::ErrorKind::NotFound => Some("create its folder first"),
        io::ErrorKind::InvalidInput => Some("a socket's path has at most 107 bytes"),
        _ => None,
    }
}
