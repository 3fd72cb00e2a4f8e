//! Asks a component over its Unix socket: Envoy's admin interface, or the collector.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::http::{self, Answer, HttpError};

/// Whoever is asked has this long for each read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one request without a body.
///
/// # Errors
/// When nobody listens, the stream fails or is silent for 5 s, or the answer is not HTTP.
pub(super) fn ask(socket: &Path, method: &str, path: &str) -> Result<Answer, HttpError> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    http::ask(stream, method, "admin", path)
}
