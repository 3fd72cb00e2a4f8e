//! The built-in service: one program that plays any node of an application graph over HTTP/1.1.
//!
//! Turns a configuration into a server that burns a set CPU time for each request, calls its neighbours, asks its
//! PostgreSQL database and answers. It also plays the parts of an airline, which ask each other and a database over
//! TLS, and the registry that Mesher asks for its services. On request it reports the path that a request took as the applications saw it. Two more commands each ask one
//! thing and end: how a request in plain HTTP, a first message to a database or over TLS, or a whole TLS handshake
//! ends, and what a database answers over its own socket. A third looks at Prometheus endpoints
//! as often as it is told to. It counts requests but times none, and all it knows of proxies is the headers by which
//! they show themselves.
#![deny(missing_docs)]

mod airline;
mod arrivals;
mod calls;
mod command_line;
mod config;
mod database;
mod error;
mod exposition;
mod handshake;
mod path_report;
mod planted;
mod probe;
mod proxied;
mod query;
mod registry;
mod request;
mod role;
mod scrape;
mod server;
mod service;
mod stall;
mod unverified;
mod work;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::command_line::{AirlineCommand, Command, CommandLine, Probe, Query};
use crate::error::Error;
use crate::role::Role;

/// Runs the program with its arguments, the first being its own name, until it is told to end.
///
/// Exit status: 0 when ended by SIGTERM or when a probe came to any outcome, 1 when it cannot do what it was
/// asked (a query that the database refuses is that), 2 for arguments that it does not understand.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match CommandLine::try_parse_from(arguments) {
        Ok(line) => execute(line).unwrap_or_else(|error| complain(&error)),
        Err(usage) => explain(&usage),
    }
}

/// Whether this was built with the feature `mongodb`; an airline over MongoDB does not start without it.
pub const SPEAKS_MONGODB: bool = cfg!(feature = "mongodb");

/// CPU time that so many iterations, as its configuration plants them, take on this thread.
pub fn cpu_time_of(iterations: u64) -> Duration {
    work::cpu_time_of(u128::from(iterations))
}

fn execute(line: CommandLine) -> Result<ExitCode, Error> {
    match line.into_command() {
        Command::Serve(serve) => match play(&serve.config)? {},
        Command::Probe(probe) => ask(probe).map(|()| ExitCode::SUCCESS),
        Command::Query(query) => run(&query).map(|()| ExitCode::SUCCESS),
        Command::Airline(command) => stand(&command).map(|()| ExitCode::SUCCESS),
        Command::Scrape => {
            scrape::run(io::stdin().lock(), io::stdout().lock()).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn play(config: &Path) -> Result<Infallible, Error> {
    let role = Role::read(config)?;
    server::run(role, |address| say(&format!("listening on {address}")))
}

fn ask(probe: Probe) -> Result<(), Error> {
    for outcome in probe::ask(probe)? {
        print(&serde_json::to_string(&outcome).expect("texts and numbers always make JSON"));
    }
    Ok(())
}

fn run(query: &Query) -> Result<(), Error> {
    let answer = query::run(query)?;
    print(&serde_json::to_string(&answer).expect("texts always make JSON"));
    Ok(())
}

/// Fills the airline's database, or tells what is in it.
fn stand(command: &AirlineCommand) -> Result<(), Error> {
    match command {
        AirlineCommand::Fill { config } => airline::fill(config),
        AirlineCommand::Look { config } => {
            let look = airline::look(config)?;
            print(&serde_json::to_string(&look).expect("texts and numbers always make JSON"));
            Ok(())
        }
    }
}

/// Prints help to stdout or a usage error to stderr, as clap decides.
fn explain(usage: &clap::Error) -> ExitCode {
    // Nobody is left to tell when the terminal is gone.
    let _ = usage.print();
    ExitCode::from(if usage.use_stderr() { 2 } else { 0 })
}

fn complain(error: &Error) -> ExitCode {
    say(&error.to_string());
    if let Some(help) = error.help() {
        say(&format!("help: {help}"));
    }
    ExitCode::FAILURE
}

#[expect(
    clippy::print_stderr,
    reason = "the program's own voice: it has no caller to return a value to"
)]
fn say(line: &str) {
    eprintln!("{line}");
}

#[expect(clippy::print_stdout, reason = "what a probe or a query brought is this program's data")]
fn print(line: &str) {
    println!("{line}");
}
