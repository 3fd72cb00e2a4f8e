//! The collector: one program that tracing agents send their spans to, over OTLP (HTTP and gRPC) or as Zipkin v2 JSON.
//!
//! Turns what arrives into counts: how many spans each service sent, and whose child each span is. It keeps
//! nothing else of a span, no name, no time, no attribute, and it keeps these only while a window is open. Over a
//! Unix socket a window is opened, read and closed. It judges nothing: what the counts should have been is
//! its reader's to know.
#![deny(missing_docs)]

mod admin;
mod command_line;
mod error;
mod grpc;
mod intake;
mod otlp;
mod packing;
mod refusal;
mod request;
mod server;
mod shape;
mod span;
mod tally;
mod window;
mod zipkin;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::command_line::CommandLine;
use crate::error::Error;
use crate::server::Listening;

/// Runs the program with its arguments, the first being its own name, until it is told to end.
///
/// Exit status: 0 when ended by SIGTERM, 1 when it cannot listen, 2 for arguments that it does not understand.
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match CommandLine::try_parse_from(arguments) {
        Ok(line) => match collect(&line) {
            Err(error) => complain(&error),
        },
        Err(usage) => explain(&usage),
    }
}

fn collect(line: &CommandLine) -> Result<Infallible, Error> {
    server::run(line, announce)
}

/// Prints help to stdout or a usage error to stderr, as clap decides.
fn explain(usage: &clap::Error) -> ExitCode {
    // Nobody is left to tell when the terminal is gone.
    let _ = usage.print();
    ExitCode::from(if usage.use_stderr() { 2 } else { 0 })
}

/// One line of JSON: whoever started the program waits for it.
fn announce(listening: &Listening) {
    let line = serde_json::to_string(listening).expect("texts always make JSON");
    // A reader that has gone does not need the line.
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[expect(
    clippy::print_stderr,
    reason = "the program's own voice: it has no caller to return a value to"
)]
fn complain(error: &Error) -> ExitCode {
    eprintln!("{error}");
    if let Some(help) = error.help() {
        eprintln!("help: {help}");
    }
    ExitCode::FAILURE
}
