//! `toll-load`: the load engine as a process. A [`toll_load::LoadPlan`] comes in on standard input as JSON,
//! events go out on standard output, one JSON object a line. It takes no arguments.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll_load::serve(std::io::stdin(), std::io::stdout())
}
