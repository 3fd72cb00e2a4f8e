//! Asks the collector of spans over its admin socket: opens its window, and reads what came in it. Judges nothing.

use std::path::Path;

use serde::Deserialize;

use crate::error::DataPlaneError;
use crate::evidence::SpanWindow;
use crate::http::ask;

/// The collector's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct SpanCounts {
    /// Spans that arrived since it began, before the window, too.
    pub arrived_ever: u64,
    /// Spans in the window; none while no window is open.
    pub kept: Option<u64>,
}

/// Has the collector forget all spans and keep those that begin from now on.
///
/// # Errors
/// When it cannot be asked.
pub(crate) fn open_window(socket: &Path) -> Result<(), DataPlaneError> {
    answer(socket, "POST", "/window").map(|_| ())
}

/// What came in the window. Costs the collector CPU time: after the window, not in it.
///
/// # Errors
/// When it cannot be asked, or no window is open.
pub(crate) fn window(socket: &Path) -> Result<SpanWindow, DataPlaneError> {
    read(socket, "/window")
}

/// Has the collector forget its window and keep no spans any more.
///
/// # Errors
/// When it cannot be asked.
pub(crate) fn close_window(socket: &Path) -> Result<(), DataPlaneError> {
    answer(socket, "DELETE", "/window").map(|_| ())
}

/// The counters alone.
///
/// # Errors
/// When it cannot be asked.
pub(crate) fn counts(socket: &Path) -> Result<SpanCounts, DataPlaneError> {
    read(socket, "/counts")
}

fn read<T: for<'a> Deserialize<'a>>(socket: &Path, path: &str) -> Result<T, DataPlaneError> {
    let body = answer(socket, "GET", path)?;
    serde_json::from_slice(&body)
        .map_err(|source| DataPlaneError::CollectorForm { socket: socket.to_owned(), source })
}

fn answer(socket: &Path, method: &str, path: &str) -> Result<Vec<u8>, DataPlaneError> {
    let answer = ask(socket, method, path)
        .map_err(|source| DataPlaneError::Collector { socket: socket.to_owned(), source })?;
    match answer.status {
        200..=299 => Ok(answer.body),
        status => Err(DataPlaneError::CollectorStatus { socket: socket.to_owned(), status }),
    }
}
