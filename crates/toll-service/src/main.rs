//! The built-in service as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll_service::main_with(std::env::args_os())
}
