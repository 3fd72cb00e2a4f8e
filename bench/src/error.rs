//! What keeps the suite from running at all. A client that fails is a row of its table instead.

use std::io;

/// Why the suite ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// A file, a process or a socket could not be had.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// No certificate for nginx.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// nginx did not listen in time.
    #[error("nginx did not start: {log}")]
    NginxDown {
        /// Its error log.
        log: String,
    },
}
