//! Where a component of a pod is asked over a Unix socket, and how it is asked.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::DataPlaneError;
use super::http::{self, Answer, HttpError};

/// Longest path of a Unix socket: `sun_path` of `sockaddr_un` without its final zero.
const LONGEST_PATH: usize = 107;

/// Whoever is asked has this long for each read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the component of `pod` listens; `folder` is the run's.
///
/// # Errors
/// When the path is too long.
pub(crate) fn admin_socket(folder: &Path, pod: &str) -> Result<PathBuf, DataPlaneError> {
    let path = folder.join(format!("{pod}.admin.sock"));
    let length = path.as_os_str().as_bytes().len();
    if length > LONGEST_PATH {
        let limit = LONGEST_PATH;
        return Err(DataPlaneError::AdminSocketPathTooLong { path, length, limit });
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
