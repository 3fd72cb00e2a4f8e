//! Runs the service program's `query` over a database's socket and reads its rows.

use std::ffi::OsString;
use std::process::Command;

use serde::Deserialize;

use super::place::Place;
use super::postgres::Server;
use super::process::{Launcher, Patience};

/// The columns of one row as texts; none for NULL.
pub(super) type Row = Vec<Option<String>>;

#[derive(Debug, Deserialize)]
struct Answer {
    rows: Vec<Row>,
}

/// The rows that `sql`, run as this user in this database, gives.
///
/// # Errors
/// What the program or the server says.
pub(super) fn query(
    launcher: &Launcher,
    service: &[OsString],
    server: &Server,
    [user, database]: [&str; 2],
    sql: &str,
    patience: &Patience<'_>,
) -> Result<Vec<Row>, String> {
    let mut command = Command::new(&service[0]);
    command.args(&service[1..]).arg("query").arg("--socket").arg(&server.folder);
    command.args(["--port", &server.port.to_string(), "--user", user, "--database", database]);
    // A seed may begin with a comment.
    command.arg("--").arg(sql);
    let place = Place::default();
    place.apply(&mut command).map_err(|e| e.to_string())?;
    let output = launcher.run_within(command, patience).map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let answer: Answer = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    Ok(answer.rows)
}
