//! Asks from inside of pods: runs the service program there, and reads what its probes bring back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::LabError;
use crate::evidence::{PathReport, Plaintext, Walk};
use crate::host::process::{Launcher, Patience};
use crate::host::spawn::{SpawnContext, Start};

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
pub(crate) enum Speech<'a> {
    /// A request.
    Request,
    /// A request for this path.
    Get(&'a str),
    /// A request to an HTTP proxy for this host, with its port.
    ThroughProxy(&'a str),
    /// A request that asks for a path report.
    PathReport,
    /// The first message of a PostgreSQL client: whether TLS may be spoken.
    Postgres,
    /// TLS without a certificate.
    Tls,
}

impl Answer {
    /// What the entry's answer says of the way to it.
    pub(crate) fn walk(self) -> Walk {
        Walk {
            server: self.headers.get("server").cloned(),
            report: serde_json::from_str::<PathReport>(&self.body).ok(),
        }
    }

    /// What became of plaintext.
    pub(crate) fn plaintext(&self) -> Plaintext {
        match (self.outcome, self.status) {
            // A database's answer has no status, and neither has TLS.
            (Outcome::Answered | Outcome::Established, status) => {
                Plaintext::Answered(status.unwrap_or(0))
            }
            (Outcome::Reset | Outcome::Closed, _) => Plaintext::Closed,
            (Outcome::Refused, _) => Plaintext::Refused,
            (outcome, _) => Plaintext::Unclear(format!("{outcome:?}").to_lowercase()),
        }
    }
}

impl<'a> Speech<'a> {
    /// What the service program is told.
    fn arguments(self) -> Vec<&'a str> {
        match self {
            Self::Request => vec![],
            Self::Get(path) => vec!["--path", path],
            Self::ThroughProxy(host) => vec!["--through-proxy", "--host", host],
            Self::PathReport => vec!["--header", "x-toll-probe: 1"],
            Self::Postgres => vec!["--speak", "postgres"],
            Self::Tls => vec!["--speak", "tls"],
        }
    }
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
    fn add_to(&self, command: &mut Command) {
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

/// Starts the service program for what it does beside serving: probes, and questions to databases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prober<'a> {
    pub(crate) launcher: &'a Launcher,
    /// The service program and its first arguments.
    pub(crate) service: &'a [OsString],
    /// Whether the user wants to leave.
    pub(crate) interrupt: &'a AtomicBool,
}

impl Prober<'_> {
    /// The service program, for further arguments.
    pub(crate) fn command(&self) -> Command {
        Start::of_words(self.service).command
    }

    /// Tries a TLS handshake with `target`, up to where the server has taken what it was shown.
    ///
    /// # Errors
    /// As [`Self::probe_all`].
    pub(crate) fn greet(
        &self,
        from: &SpawnContext,
        target: SocketAddrV4,
        with: &Acquaintance<'_>,
    ) -> Result<Answer, LabError> {
        let mut command = self.probe_command(&[target]);
        with.add_to(&mut command);
        Ok(only(self.run_probes(command, from, &[target])?))
    }

    /// Sends one message to `target`.
    ///
    /// # Errors
    /// As [`Self::probe_all`].
    pub(crate) fn probe(
        &self,
        from: &SpawnContext,
        target: SocketAddrV4,
        speech: Speech,
    ) -> Result<Answer, LabError> {
        Ok(only(self.probe_all(from, &[target], speech)?))
    }

    /// Sends one message to each target, to all at the same time; answers come in their order.
    ///
    /// # Errors
    /// When the program cannot be run or gives no result; a request that is refused is a result.
    pub(crate) fn probe_all(
        &self,
        from: &SpawnContext,
        targets: &[SocketAddrV4],
        speech: Speech,
    ) -> Result<Vec<Answer>, LabError> {
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = self.probe_command(targets);
        command.args(speech.arguments());
        self.run_probes(command, from, targets)
    }

    /// What `command` prints, which asks the database of `pod`.
    ///
    /// # Errors
    /// When the user wants to leave, it takes longer than `limit`, or it fails, with what it says.
    pub(crate) fn ask_database(
        &self,
        pod: &str,
        mut command: Command,
        from: &SpawnContext,
        limit: Duration,
    ) -> Result<Vec<u8>, LabError> {
        let patience = Patience { limit, interrupt: self.interrupt };
        let ran = from
            .apply(&mut command)
            .and_then(|()| self.launcher.run_within(command, &patience))
            .map_err(|e| e.to_string())
            .and_then(|output| match output.status.success() {
                true => Ok(output.stdout),
                false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            });
        ran.map_err(|message| match self.interrupt.load(Ordering::Relaxed) {
            true => LabError::Interrupted,
            false => LabError::Database { pod: pod.to_owned(), message },
        })
    }

    fn probe_command(&self, targets: &[SocketAddrV4]) -> Command {
        let mut command = self.command();
        command.args(first_arguments(targets));
        command
    }

    fn run_probes(
        &self,
        mut command: Command,
        from: &SpawnContext,
        targets: &[SocketAddrV4],
    ) -> Result<Vec<Answer>, LabError> {
        let failed = |message| LabError::Probe { target: targets[0].to_string(), message };
        let output = from.apply(&mut command).and_then(|()| self.launcher.run(command, ""));
        let output = output.map_err(|e| failed(e.to_string()))?;
        read(&output.stdout, targets.len())
            .map_err(|e| failed(format!("{e}; {}", String::from_utf8_lossy(&output.stderr).trim())))
    }
}

/// What the service program is told for probes of these targets, before what they say.
fn first_arguments(targets: &[SocketAddrV4]) -> Vec<String> {
    let first = ["probe", "--timeout-ms", "5000"].map(str::to_owned).into_iter();
    let connect = |target: &SocketAddrV4| ["--connect".to_owned(), target.to_string()];
    first.chain(targets.iter().flat_map(connect)).collect()
}

/// What the service program is told to send one message to each target.
pub(crate) fn arguments(targets: &[SocketAddrV4], speech: Speech<'_>) -> Vec<String> {
    let speech = speech.arguments().into_iter().map(str::to_owned);
    first_arguments(targets).into_iter().chain(speech).collect()
}

fn only(answers: Vec<Answer>) -> Answer {
    answers.into_iter().next().expect("there are as many answers as targets")
}

/// One line for each target.
pub(crate) fn read(stdout: &[u8], targets: usize) -> Result<Vec<Answer>, String> {
    let answers = serde_json::Deserializer::from_slice(stdout).into_iter::<Answer>();
    let answers = answers.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    match answers.len() {
        found if found == targets => Ok(answers),
        found => Err(format!("{found} answers for {targets} addresses")),
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
        let line = br#"{"outcome":"established","server":"ab12","protocol":"TLSv1.3"}"#;
        let answer = read(line, 1).unwrap().remove(0);
        assert_eq!(
            (answer.outcome, answer.server.as_deref()),
            (Outcome::Established, Some("ab12"))
        );
        assert_eq!(read(lines, 3).unwrap_err(), "2 answers for 3 addresses");
    }

    #[test]
    fn only_a_connection_that_was_made_and_then_closed_counts_as_closed() {
        let outcome = |outcome| {
            Answer {
                outcome,
                status: None,
                headers: BTreeMap::new(),
                body: String::new(),
                server: None,
                message: None,
            }
            .plaintext()
        };
        assert_eq!(outcome(Outcome::Reset), Plaintext::Closed);
        assert_eq!(outcome(Outcome::Refused), Plaintext::Refused);
        assert_eq!(outcome(Outcome::Timeout), Plaintext::Unclear("timeout".into()));
    }
}
