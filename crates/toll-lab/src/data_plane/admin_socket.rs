//! Asks a component over its Unix socket: Envoy's admin interface, or the collector.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::DataPlaneError;
use super::http::{self, Answer, HttpError};

/// Whoever is asked has this long for each read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest path of a Unix socket: `sun_path` of `sockaddr_un` without its final zero.
const LONGEST_PATH: usize = 107;

/// The same path, which a socket can have.
///
/// # Errors
/// When it is too long.
pub(crate) fn short_enough(path: PathBuf) -> Result<PathBuf, DataPlaneError> {
    let length = path.as_os_str().as_bytes().len();
    if length > LONGEST_PATH {
        let limit = LONGEST_PATH;
        return Err(DataPlaneError::SocketPathTooLong { path, length, limit });
    }
    Ok(path)
}

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
