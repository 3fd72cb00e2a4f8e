//! Compares `toll load` with other load generators on this machine: one table a scenario, Markdown on standard
//! output, progress on standard error. What it can say and what not stands in README.md beside this crate.

mod arrivals;
mod bars;
mod error;
mod figures;
mod install;
mod load;
mod machine;
mod measure;
mod nginx;
mod peers;
mod reading;
mod responder;
mod runner;
mod scenario;
mod sections;
mod table;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum as _};

use crate::error::BenchError;
use crate::install::Programs;
use crate::machine::Pins;
use crate::peers::Client;
use crate::runner::Runner;
use crate::scenario::{Effort, Scenario};

/// Compares `toll load` with other load generators.
#[derive(Debug, Parser)]
struct Options {
    /// Which tables; all of them when none is named.
    scenarios: Vec<Scenario>,
    /// Rounds, each with every client once [default: 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Length of one client's run, but for stall and steady [default: 4, with --quick 2]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Only these clients, e.g. toll,wrk
    #[arg(long, value_name = "CLIENTS", value_delimiter = ',', value_parser = client)]
    only: Vec<Client>,
    /// Short runs, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Install the peers, say which are there, and end
    #[arg(long)]
    install_only: bool,
    /// The command that is compared
    #[arg(long, value_name = "PATH", default_value = "target/release/toll")]
    toll: PathBuf,
    /// Keep the tables in this file, too, between marks
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Options {
    fn scenarios(&self) -> Vec<Scenario> {
        match self.scenarios.as_slice() {
            [] => Scenario::value_variants().to_vec(),
            named => named.to_vec(),
        }
    }

    fn clients(&self) -> Vec<Client> {
        match self.only.as_slice() {
            [] => Client::ALL.to_vec(),
            named => named.to_vec(),
        }
    }

    fn effort(&self) -> Effort {
        let base = if self.quick { Effort::quick() } else { Effort::new(5, 4) };
        Effort {
            rounds: self.rounds.unwrap_or(base.rounds),
            seconds: self.seconds.unwrap_or(base.seconds),
            ..base
        }
    }
}

fn client(name: &str) -> Result<Client, String> {
    Client::ALL.into_iter().find(|client| client.name() == name).ok_or_else(|| {
        let names = Client::ALL.map(Client::name).join(", ");
        format!("the clients are {names}")
    })
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), BenchError> {
    let programs = Programs::gather(&options.clients(), &options.toll);
    if options.install_only {
        return list(&programs);
    }
    let scratch = tempfile::Builder::new().prefix("toll-bench").tempdir()?;
    peers::lay_out(scratch.path())?;
    let pins = Pins::choose()?;
    if let Some(pins) = pins {
        machine::pin_to(pins.server)?;
    }
    let runner =
        Runner { programs: &programs, pins, scratch: scratch.path(), effort: options.effort() };
    say(&plan_line(runner.planned_seconds(&options.scenarios())));
    keep(options, "machine", &machine_line(pins))?;
    let mut tables = Vec::new();
    for scenario in options.scenarios() {
        let results = runner.run(scenario)?;
        keep(options, scenario.name(), &table::markdown(&results))?;
        tables.push(results);
    }
    keep(options, "bars", &bars::markdown(&tables))
}

fn machine_line(pins: Option<Pins>) -> String {
    let pinned = match pins {
        Some(Pins { server, client }) => {
            format!("server on core {server}, client on core {client}")
        }
        None => "server and client on the same core".into(),
    };
    format!("{}; {pinned}.\n", machine::describe())
}

fn plan_line(seconds: u32) -> String {
    let minutes = f64::from(seconds) / 60.0;
    format!("planned: {seconds} s under load, {minutes:.0} minutes, and the starts of programs")
}

/// Each table as soon as it exists.
fn keep(options: &Options, name: &str, text: &str) -> Result<(), BenchError> {
    writeln!(io::stdout(), "{text}")?;
    let Some(path) = &options.write else { return Ok(()) };
    let before = read_or_empty(path)?;
    Ok(fs::write(path, sections::replaced(&before, name, text))?)
}

fn read_or_empty(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

fn list(programs: &Programs) -> Result<(), BenchError> {
    let clients = programs.clients.iter().map(|(client, found)| (client.name(), found));
    for (name, found) in clients.chain([("nginx", &programs.nginx)]) {
        match found {
            Ok(program) => writeln!(io::stdout(), "{name} {}", program.version)?,
            Err(reason) => writeln!(io::stdout(), "{name} not installed: {reason}")?,
        }
    }
    Ok(())
}

/// Progress. A standard error that is closed is no reason to stop.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn options(line: &str) -> Options {
        Options::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn naming_nothing_means_everything() {
        let all = options("toll-bench");
        assert_eq!((all.scenarios().len(), all.clients().len()), (8, 9));
        let some = options("toll-bench closed stall --only wrk,toll");
        assert_eq!(some.scenarios(), [Scenario::Closed, Scenario::Stall]);
        assert_eq!(some.clients(), [Client::Wrk, Client::Toll]);
    }

    #[test]
    fn the_time_that_a_run_takes_is_said_in_seconds_and_minutes() {
        let said = "planned: 1305 s under load, 22 minutes, and the starts of programs";
        assert_eq!(plan_line(1305), said);
    }

    #[test]
    fn numbers_that_are_given_go_before_those_of_quick() {
        let effort = options("toll-bench --quick --seconds 7").effort();
        assert_eq!((effort.rounds, effort.seconds), (3, 7));
    }
}
