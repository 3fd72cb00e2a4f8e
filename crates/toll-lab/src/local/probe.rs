//! Runs the probe program in the load's pod or another and reads its answers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;
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
    /// Of TLS that was established: SHA-256 of the server's certificate.
    #[serde(default)]
    pub(crate) server: Option<String>,
    /// Why there was no answer.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Answered,
    /// TLS, whose certificates both ends took.
    Established,
    /// The probe does not take the server's certificate.
    Untrusted,
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

/// How TLS is spoken by one who knows whom it wants.
#[derive(Debug, Clone)]
pub(crate) struct Acquaintance<'a> {
    /// The server's name, sent as SNI.
    pub(crate) server_name: &'a str,
    /// Who vouches for the server; anybody will do when none.
    pub(crate) authority: Option<PathBuf>,
    /// The certificate to show, and its key.
    pub(crate) certificate: Option<[PathBuf; 2]>,
    /// The protocol inside.
    pub(crate) protocol: Option<&'a str>,
}

impl Acquaintance<'_> {
    fn tell(&self, command: &mut Command) {
        command.args(["--speak", "tls", "--server-name", self.server_name]);
        if let Some(authority) = &self.authority {
            command.arg("--authority").arg(authority);
        }
        if let Some([certificate, key]) = &self.certificate {
            command.arg("--certificate").arg(certificate).arg("--key").arg(key);
        }
        command.args(self.protocol.into_iter().flat_map(|protocol| ["--alpn", protocol]));
    }
}

/// Tries a TLS handshake with `target` from `place`, up to where the server has taken what it was shown.
///
/// # Errors
/// As [`probe_all`].
pub(crate) fn greet(
    launcher: &Launcher,
    service: &[OsString],
    place: &Place,
    target: SocketAddrV4,
    with: &Acquaintance<'_>,
) -> Result<Answer, LabError> {
    let mut command = to(service, &[target]);
    with.tell(&mut command);
    let answers = run(launcher, command, place, &[target])?;
    Ok(answers.into_iter().next().expect("there are as many answers as targets"))
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
    match targets {
        [] => Ok(Vec::new()),
        targets => run(launcher, command(service, targets, speech), place, targets),
    }
}

fn run(
    launcher: &Launcher,
    mut command: Command,
    place: &Place,
    targets: &[SocketAddrV4],
) -> Result<Vec<Answer>, LabError> {
    let failed = |message| LabError::Probe { target: targets[0].to_string(), message };
    let run = || -> io::Result<Output> {
        place.apply(&mut command)?;
        launcher.run(command, "")
    };
    let output = run().map_err(|e| failed(e.to_string()))?;
    read(&output.stdout, targets.len())
        .map_err(|e| failed(format!("{e}; {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn command(service: &[OsString], targets: &[SocketAddrV4], speech: Speech) -> Command {
    let mut command = to(service, targets);
    match speech {
        Speech::Request => &mut command,
        Speech::Get(path) => command.args(["--path", path]),
        Speech::PathReport => command.args(["--header", "x-toll-probe: 1"]),
        Speech::Postgres => command.args(["--speak", "postgres"]),
        Speech::Tls => command.args(["--speak", "tls"]),
    };
    command
}

fn to(service: &[OsString], targets: &[SocketAddrV4]) -> Command {
    let mut command = Command::new(&service[0]);
    command.args(&service[1..]).arg("probe").args(["--timeout-ms", "5000"]);
    for target in targets {
        command.args(["--connect", &target.to_string()]);
    }
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
        let told = br#"{"outcome":"established","server":"ab12","protocol":"TLSv1.3"}"#;
        let answer = read(told, 1).unwrap().remove(0);
        assert_eq!(
            (answer.outcome, answer.server.as_deref()),
            (Outcome::Established, Some("ab12"))
        );
        assert_eq!(read(lines, 3).unwrap_err(), "2 answers for 3 addresses");
    }
}
