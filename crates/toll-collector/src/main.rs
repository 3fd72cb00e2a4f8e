//! The collector as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll_collector::main_with(std::env::args_os())
}
