//! Runs the probe program in the load's pod or another and reads its answers.

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
    /// A request for this path.
    Get(&'static str),
    /// A request that asks for a path report.
    PathReport,
    /// The first message of a PostgreSQL client: whether TLS may be spoken.
    Postgres,
    /// TLS without a certificate.
    Tls,
}

/// Sends one message to `target` from `place`.
///
/// # Errors
/// As [`probe_all`].
pub(crate) fn probe(
    launcher: &Launcher,
    service: &[OsString],
    place: &Place,
    target: SocketAddrV4,
    speech: Speech,
) -> Result<Answer, LabError> {
    let answers = probe_all(launcher, service, place, &[target], speech)?;
    Ok(answers.into_iter().next().expect("there are as many answers as targets"))
}

/// Sends one message to each target from `place`, to all at the same time; answers come in their order.
///
/// # Errors
/// When the program cannot be run or gives no result; a request that is refused is a result.
pub(crate) fn probe_all(
    launcher: &Launcher,
    service: &[OsString],
    place: &Place,
    targets: &[SocketAddrV4],
    speech: Speech,
) -> Result<Vec<Answer>, LabError> {
    let Some(first) = targets.first() else { return Ok(Vec::new()) };
    let failed = |message| LabError::Probe { target: first.to_string(), message };
    let mut command = command(service, targets, speech);
    let run = || -> io::Result<Output> {
        place.apply(&mut command)?;
        launcher.run(command, "")
    };
    let output = run().map_err(|e| failed(e.to_string()))?;
    read(&output.stdout, targets.len())
        .map_err(|e| failed(format!("{e}; {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn command(service: &[OsString], targets: &[SocketAddrV4], speech: Speech) -> Command {
    let mut command = Command::new(&service[0]);
    command.args(&service[1..]).arg("probe").args(["--timeout-ms", "5000"]);
    for target in targets {
        command.args(["--connect", &target.to_string()]);
    }
    match speech {
        Speech::Request => &mut command,
        Speech::Get(path) => command.args(["--path", path]),
        Speech::PathReport => command.args(["--header", "x-toll-probe: 1"]),
        Speech::Postgres => command.args(["--speak", "postgres"]),
        Speech::Tls => command.args(["--speak", "tls"]),
    };
    command
}

/// One line for each target.
fn read(stdout: &[u8], targets: usize) -> Result<Vec<Answer>, String> {
    let answers = serde_json::Deserializer::from_slice(stdout).into_iter::<Answer>();
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    match answers.len() {
        told if told == targets => Ok(answers),
        told => Err(format!("{told} answers for {targets} addresses")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_the_answer_of_one_address() {
        let lines = b"{\"outcome\":\"refused\",\"message\":\"\"}\n{\"outcome\":\"closed\"}\n";
        let outcomes = read(lines, 2).unwrap().into_iter().map(|answer| answer.outcome);
        assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Refused, Outcome::Closed]);
        assert_eq!(read(lines, 3).unwrap_err(), "2 answers for 3 addresses");
    }
}
