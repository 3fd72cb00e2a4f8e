//! `toll-load`: the load engine as a process. [`toll_load::LoadPlan`]s come in on standard input as JSON, events go
//! out on standard output, one JSON object a line, until the input ends. It takes no arguments.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll_load::serve(std::io::stdin(), std::io::stdout())
}
