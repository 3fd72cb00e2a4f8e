//! Asks an nginx how many requests or connections it got. Knows nothing of who sent them.
//!
//! Form of the answer: <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DataPlaneError;
use crate::http::ask;

/// Counts what an nginx answered to others than the lab.
#[derive(Debug)]
pub(crate) struct AnswerCounter {
    pub(crate) pod: String,
    socket: PathBuf,
    /// How often it was asked: each question is a request, too.
    asked: AtomicU64,
}

impl AnswerCounter {
    pub(super) fn new(pod: String, socket: PathBuf) -> Self {
        Self { pod, socket, asked: AtomicU64::new(0) }
    }

    /// Requests since it started; those of the lab for this number left out, and its other probes not.
    ///
    /// # Errors
    /// When it cannot be asked, or answers something else.
    pub(crate) fn read(&self) -> Result<u64, DataPlaneError> {
        let all = status(&self.socket)?.requests;
        let own = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(all.saturating_sub(own))
    }
}

/// Connections since it started whose bytes it passes on: those that asked this question, each of which is the only
/// request of its connection, are left out.
///
/// # Errors
/// When it cannot be asked, or answers something else.
pub(crate) fn accepted(socket: &Path) -> Result<u64, DataPlaneError> {
    let Status { accepted, requests } = status(socket)?;
    Ok(accepted.saturating_sub(requests))
}

/// What it has counted since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status {
    /// Connections, this one included, whatever is spoken over them.
    accepted: u64,
    /// Of HTTP, this one included.
    requests: u64,
}

fn status(socket: &Path) -> Result<Status, DataPlaneError> {
    let answer = ask(socket, "GET", "/")
        .map_err(|source| DataPlaneError::Status { socket: socket.to_owned(), source })?;
    let text = String::from_utf8_lossy(&answer.body);
    let form = || DataPlaneError::StatusForm { socket: socket.to_owned() };
    status_in(&text).ok_or_else(form)
}

/// Requests since an nginx started, this question included, by what it says of itself.
pub(crate) fn requests_in(text: &str) -> Option<u64> {
    Some(status_in(text)?.requests)
}

/// The first and the third number of the line that has three.
fn status_in(text: &str) -> Option<Status> {
    let (_, numbers) = text.split_once("server accepts handled requests\n")?;
    let mut numbers = numbers.split_whitespace().map(str::parse);
    Some(Status { accepted: numbers.next()?.ok()?, requests: numbers.nth(1)?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_connections() {
        let status = "Active connections: 1 \nserver accepts handled requests\n 16 16 31 \n\
                      Reading: 0 Writing: 1 Waiting: 0 \n";
        assert_eq!(status_in(status), Some(Status { accepted: 16, requests: 31 }));
        assert_eq!(status_in("404 Not Found"), None);
    }
}
