//! The command: what was typed, resolved once into what will happen. stdout is data, stderr is talk.

mod arguments;
mod artifacts;
#[cfg(test)]
mod book_tests;
mod calibrate;
mod capacity;
mod commands;
mod image;
mod init;
mod progress;
mod spelling;
mod talk;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Command;

/// Exit statuses, as docs/exit-status.md has them.
pub mod exit {
    /// All was measured, or the answer was given.
    pub const DONE: u8 = 0;
    /// It could not be done.
    pub const FAILED: u8 = 1;
    /// The command line or the study file is wrong. clap uses the same status.
    pub const USAGE: u8 = 2;
    /// The run ended, but a variant has no round that counts under some load.
    pub const UNPROVEN: u8 = 3;
    /// A load ended, but requests of its schedule were never sent.
    pub const UNKEPT: u8 = 4;
    /// A condition of `--fail-if` was met; k6 uses the same status.
    pub const CROSSED: u8 = 99;
    /// Interrupted; what was measured is kept.
    pub const INTERRUPTED: u8 = 130;
}

/// Runs the command that was typed.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let arguments = spelling::parsed(&typed).unwrap_or_else(|error| error.exit());
    let outcome = match arguments.command {
        Command::Init(arguments) => init::init(&arguments),
        Command::Run(arguments) => commands::run(&arguments),
        Command::Load(arguments) => commands::load(&arguments),
        Command::Merge(arguments) => commands::merge(&arguments),
        Command::Plan(arguments) => commands::plan(&arguments),
        Command::Studies => commands::studies(),
        Command::Study(arguments) => commands::study(&arguments),
        Command::Report(arguments) => commands::report(&arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::PlanCapacity(arguments) => capacity::plan_capacity(&arguments),
        Command::Doctor(arguments) => commands::doctor(&arguments),
        Command::Clean(arguments) => commands::clean(&arguments),
        Command::Image(arguments) => image::image(&arguments),
        Command::Manifests(arguments) => commands::manifests(&arguments),
        Command::InCluster { arguments } => return toll_lab::serve_in_cluster(&arguments),
        Command::Engine => return toll_load::serve(std::io::stdin(), std::io::stdout()),
        Command::Service { arguments } => {
            // Its own name comes first, as for any program.
            return toll_service::main_with(
                std::iter::once("toll service".into()).chain(arguments),
            );
        }
        Command::Collector { arguments } => {
            return toll_collector::main_with(
                std::iter::once("toll collector".into()).chain(arguments),
            );
        }
    };
    match outcome {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            talk::say_error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}
