//! Runs the probe program in the load's pod and reads its answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddrV4;
use std::process::{Command, Output};

use serde::Deserialize;

use super::place::Place;
use super::process::Launcher;
use crate::LabError;

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Answer {
    /// How it went.
    pub(crate) outcome: Outcome,
    /// Status code; none without an answer.
    pub(crate) status: Option<u16>,
    /// Names in lower case.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Empty without an answer.
    #[serde(default)]
    pub(crate) body: String,
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Answered,
    Refused,
    Reset,
    Closed,
    Timeout,
    Unreachable,
    Garbled,
}

/// What a probe says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    /// A request.
    Request,
    /// A request that asks for a path report.
    PathReport,
    /// The first message of a PostgreSQL client: whether TLS may be spoken.
    Postgres,
}

/// Sends one message to `target` from `place`.
///
/// # Errors
/// When the program cannot be run or gives no result; a request that is refused is a result.
pub(crate) fn probe(
    launcher: &Launcher,
    service: &[OsString],
    place: &Place,
    target: SocketAddrV4,
    speech: Speech,
) -> Result<Answer, LabError> {
    let mut command = Command::new(&service[0]);
    command.args(&service[1..]).arg("probe").args(["--timeout-ms", "5000"]);
    command.args(["--connect", &target.to_string()]);
    match speech {
        Speech::Request => &mut command,
        Speech::PathReport => command.args(["--header", "x-toll-probe: 1"]),
        Speech::Postgres => command.args(["--speak", "postgres"]),
    };
    let run = || -> io::Result<Output> {
        place.apply(&mut command)?;
        launcher.run(command, "")
    };
    let failed = |message| LabError::Probe { target: target.to_string(), message };
    let output = run().map_err(|e| failed(e.to_string()))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| failed(format!("{e}; {}", String::from_utf8_lossy(&output.stderr).trim())))
}
