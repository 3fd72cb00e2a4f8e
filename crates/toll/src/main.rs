//! toll measures what a service mesh, a gateway or a tracing agent charges an application.
//!
//! The flow, a module a stage; a stage never imports a later one (`tests/stages.rs`):
//! `study -> plan -> store -> run -> analysis -> report`, started by `cli`. `calibrate` tries all of it on
//! itself, `load` is the engine on its own.
#![deny(missing_docs)]

mod analysis;
mod calibrate;
mod cli;
mod event;
mod load;
mod plan;
mod report;
mod run;
mod store;
mod study;

fn main() -> std::process::ExitCode {
    cli::main()
}
