//! Runs the service program's `query` over a database's socket and reads its rows.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::LabError;
use crate::host::spawn::SpawnContext;
use crate::programs::running::Running;

/// The columns of one row as texts; none for NULL.
pub(super) type Row = Vec<Option<String>>;

#[derive(Debug, Deserialize)]
struct Answer {
    rows: Vec<Row>,
}

/// The rows that `sql`, run as this user in this database, gives. The server has its socket in this folder, and
/// listens on this port.
///
/// # Errors
/// When the user wants to leave, or what the program or the server says.
pub(super) fn query(
    running: &Running<'_>,
    (socket, port): (&Path, u16),
    [user, database]: [&str; 2],
    sql: &str,
    limit: Duration,
) -> Result<Vec<Row>, LabError> {
    let mut command = running.prober.command();
    command.arg("query").arg("--socket").arg(socket);
    command.args(["--port", &port.to_string(), "--user", user, "--database", database]);
    // A seed may begin with a comment.
    command.arg("--").arg(sql);
    let printed = running.ask(command, &SpawnContext::default(), limit)?;
    let answer: Answer = serde_json::from_slice(&printed).map_err(|e| LabError::Database {
        pod: running.site.pod.pod.clone(),
        message: e.to_string(),
    })?;
    Ok(answer.rows)
}
