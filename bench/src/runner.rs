//! Runs a scenario: each round every contender once, in turn, each against a fresh server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::arrivals::Exactness;
use crate::error::BenchError;
use crate::install::{Found, Programs};
use crate::load::{Load, Protocol};
use crate::machine::{self, CpuTicks, Disturbance, Pins};
use crate::measure::{Run, Stopwatch};
use crate::nginx::Nginx;
use crate::peers::{self, H2LOAD_LOG};
use crate::reading::{self, Reading};
use crate::responder::{Conduct, Responder, Served};
use crate::scenario::{Contender, Effort, Scenario, Server};

/// What one run of one contender gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Trial {
    pub(crate) reading: Reading,
    pub(crate) cpu_s: f64,
    pub(crate) peak_rss_mb: f64,
    /// Requests that the responder answered.
    pub(crate) served: Option<f64>,
    /// Only where arrivals are stamped.
    pub(crate) exactness: Option<Exactness>,
    /// What the client reported of a server without stalls just before, milliseconds. Only in the stall test.
    pub(crate) unstalled_p50_ms: Option<f64>,
}

/// One contender's trials, by round.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) version: String,
    pub(crate) outcome: Outcome,
}

/// Why a row has numbers or has not.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The client cannot make such a load.
    Unsupported,
    /// There is no such program here, and why.
    NotInstalled(String),
    /// One for each round; a failed one with its reason.
    Trials(Vec<Result<Trial, String>>),
}

/// A scenario's rows and the circumstances.
#[derive(Debug, Clone)]
pub(crate) struct Results {
    pub(crate) scenario: Scenario,
    pub(crate) rows: Vec<Row>,
    pub(crate) disturbance: Disturbance,
}

/// Everything that stays the same between scenarios.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) pins: Option<Pins>,
    pub(crate) scratch: &'a Path,
    pub(crate) effort: Effort,
}

impl Runner<'_> {
    /// # Errors
    /// When a server cannot be started. A client that fails is a failed trial.
    pub(crate) fn run(&self, scenario: Scenario) -> Result<Results, BenchError> {
        let began_at = machine::load_average();
        let mut rows = self.rows(scenario);
        let mut steal = Vec::new();
        for round in 1..=self.effort.rounds {
            let ticks = CpuTicks::now();
            self.round(scenario, round, &mut rows)?;
            steal.push(CpuTicks::now().stolen_since(ticks));
        }
        let [first, last] = [steal.first(), steal.last()].map(|steal| steal.copied());
        let disturbance = Disturbance {
            load_average: [began_at, machine::load_average()],
            steal: [first, last].map(|steal| steal.expect("there is at least one round")),
        };
        Ok(Results { scenario, rows, disturbance })
    }

    /// Seconds under load that these scenarios will take here.
    pub(crate) fn planned_seconds(&self, scenarios: &[Scenario]) -> u32 {
        let runs = scenarios
            .iter()
            .flat_map(|scenario| self.rows(*scenario).into_iter().map(move |row| (*scenario, row)));
        let runs = runs.filter(|(_, row)| matches!(row.outcome, Outcome::Trials(_)));
        runs.map(|(scenario, row)| scenario.planned_seconds(&row.contender, &self.effort)).sum()
    }

    fn round(&self, scenario: Scenario, round: u32, rows: &mut [Row]) -> Result<(), BenchError> {
        for row in rows {
            let Outcome::Trials(trials) = &mut row.outcome else { continue };
            let Contender { client, note, .. } = row.contender;
            let rounds = self.effort.rounds;
            crate::say(&format!("{} {round}/{rounds}: {client} {note}", scenario.name()));
            let unstalled_p50_ms = self.unstalled_p50_ms(scenario, &row.contender)?;
            let trial = self.trial(scenario.server(), &row.contender)?;
            trials.push(trial.map(|trial| Trial { unstalled_p50_ms, ..trial }));
        }
        Ok(())
    }

    /// The same client under the same rate, for a short while and against a server that never stands still.
    fn unstalled_p50_ms(
        &self,
        scenario: Scenario,
        by: &Contender,
    ) -> Result<Option<f64>, BenchError> {
        let Some(seconds) = scenario.unstalled_seconds(&self.effort) else { return Ok(None) };
        let by = Contender { load: Load { seconds, ..by.load }, ..*by };
        let trial = self.trial(Server::Responder(Conduct::Prompt), &by)?;
        Ok(trial.ok().and_then(|trial| trial.reading.latency.p50_ms))
    }

    fn rows(&self, scenario: Scenario) -> Vec<Row> {
        let chosen = |contender: &Contender| self.programs.clients.get(&contender.client);
        let contenders = scenario.contenders(&self.effort).into_iter();
        contenders.filter_map(|contender| Some(row(contender, chosen(&contender)?))).collect()
    }

    fn trial(&self, server: Server, by: &Contender) -> Result<Result<Trial, String>, BenchError> {
        match server {
            Server::Nginx => self.against_nginx(by),
            Server::Responder(conduct) => {
                let responder = Responder::start(conduct)?;
                let run = self.client(by, &responder.url())?;
                Ok(trial(by, &run, &self.log(), Some(responder.stop()?)))
            }
        }
    }

    fn against_nginx(&self, by: &Contender) -> Result<Result<Trial, String>, BenchError> {
        let program = match &self.programs.nginx {
            Ok(program) => program,
            Err(reason) => return Ok(Err(format!("nginx is not installed: {reason}"))),
        };
        let nginx = Nginx::start(&program.path, self.scratch)?;
        let url = match by.load.protocol {
            Protocol::Http1 => nginx.url(),
            Protocol::Http1Tls | Protocol::Http2Tls { .. } => nginx.tls_url(),
        };
        let run = self.client(by, &url)?;
        Ok(trial(by, &run, &self.log(), None))
    }

    fn client(&self, by: &Contender, url: &str) -> Result<Run, BenchError> {
        let program = self.programs.clients[&by.client].as_ref();
        let program = program.expect("only installed clients have trials");
        let arguments = by.client.arguments(&by.load, url);
        let arguments = arguments.expect("only clients that can make the load have trials");
        let limit = Duration::from_secs(u64::from(2 * by.load.seconds + 20));
        peers::lay_out_run(self.scratch, url)?;
        let stopwatch = Stopwatch { pins: self.pins, scratch: self.scratch };
        let mut run = stopwatch.run(&program.path, &arguments, limit)?;
        if let Some(arguments) = by.client.report_arguments() {
            run.stdout = stopwatch.run(&program.path, &arguments, limit)?.stdout;
        }
        Ok(run)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.join(H2LOAD_LOG)).unwrap_or_default()
    }
}

fn row(contender: Contender, found: &Found) -> Row {
    let (version, outcome) = match found {
        Err(reason) => (String::new(), Outcome::NotInstalled(reason.clone())),
        Ok(program) => {
            let can = contender.client.arguments(&contender.load, "").is_some();
            let outcome = if can { Outcome::Trials(Vec::new()) } else { Outcome::Unsupported };
            (program.version.clone(), outcome)
        }
    };
    Row { contender, version, outcome }
}

/// A client whose output can be read has run, whatever its exit status: some end with one that judges.
fn trial(by: &Contender, run: &Run, log: &str, served: Option<Served>) -> Result<Trial, String> {
    let reading =
        reading::read(by.client, &run.stdout, log).filter(|reading| reading.requests > 0.0);
    let reading = reading.ok_or_else(|| complaint(run))?;
    Ok(Trial {
        reading,
        cpu_s: run.cpu_s,
        peak_rss_mb: run.peak_rss_mb,
        served: served.as_ref().map(|served| served.requests as f64),
        exactness: served.and_then(|served| Exactness::of(&served.arrivals_ns)),
        unstalled_p50_ms: None,
    })
}

fn complaint(run: &Run) -> String {
    let said = [&run.stderr, &run.stdout].into_iter().find_map(|text| text.trim().lines().last());
    let said: String = said.unwrap_or("no output").chars().take(120).collect();
    format!("{}: {said}", run.status)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;
    use crate::install::Program;
    use crate::peers::Client;

    fn contender(client: Client) -> Contender {
        let contenders = Scenario::Open.contenders(&Effort::quick());
        contenders.into_iter().find(|contender| contender.client == client).unwrap()
    }

    #[test]
    fn a_client_that_is_not_there_is_a_row_with_its_reason() {
        let row = row(contender(Client::K6), &Err("no go".into()));
        assert!(matches!(row.outcome, Outcome::NotInstalled(reason) if reason == "no go"));
    }

    #[test]
    fn a_client_that_cannot_is_a_row_without_trials() {
        let found = Ok(Program { path: "/bin/wrk".into(), version: "4".into() });
        assert!(matches!(row(contender(Client::Wrk), &found).outcome, Outcome::Unsupported));
    }

    #[test]
    fn only_clients_that_will_run_are_planned_for() {
        let there = || Ok(Program { path: "/bin/true".into(), version: "4".into() });
        let clients =
            [(Client::Toll, there()), (Client::Wrk, there()), (Client::K6, Err("no go".into()))];
        let programs = Programs { clients: clients.into(), nginx: Err("none".into()) };
        let effort = Effort::new(5, 4);
        let runner = Runner { programs: &programs, pins: None, scratch: Path::new(""), effort };
        assert_eq!(runner.planned_seconds(&[Scenario::Closed, Scenario::Open]), 5 * (8 + 4));
    }

    #[test]
    fn a_client_that_failed_says_its_last_line() {
        let run = Run {
            status: ExitStatus::from_raw(256),
            stdout: String::new(),
            stderr: "usage\nunknown flag: --rate\n".into(),
            cpu_s: 0.0,
            peak_rss_mb: 0.0,
        };
        let failure = trial(&contender(Client::Toll), &run, "", None).unwrap_err();
        assert_eq!(failure, "exit status: 1: unknown flag: --rate");
    }

    #[test]
    fn peers_files_are_where_their_command_lines_look() {
        let scratch = tempfile::tempdir().unwrap();
        peers::lay_out(scratch.path()).unwrap();
        let arguments = Client::K6.arguments(&contender(Client::K6).load, "URL").unwrap();
        assert!(scratch.path().join(arguments.last().unwrap()).is_file());
    }
}
