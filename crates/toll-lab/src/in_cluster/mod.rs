//! toll's own pods in a cluster: one program in three roles, HTTP in, JSON out.
//!
//! - the *driver* relays what the command asks of the other pods, measures their clocks, and removes the run when the
//!   command is not heard any more;
//! - a *load* pod keeps a load engine for a round, and probes;
//! - a *node* pod reads the counters of its node's containers.
//!
//! Nothing of this stands in a measured path. Results are kept until they have been fetched: a connection that breaks
//! loses none.

pub(crate) mod driver;
mod exchange;
mod load;
pub(crate) mod node;
pub(crate) mod protocol;
mod server;

use std::process::ExitCode;

use server::{Pod, Role};

/// Runs one of toll's own pods until it is told to end. `arguments` are the role and, for a load pod, the program whose
/// load engine and probes it starts.
pub fn serve_in_cluster(arguments: &[String]) -> ExitCode {
    let served = Role::of(arguments).and_then(Pod::new).and_then(server::run);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

/// The pod's log is the only place where this can be said.
#[expect(clippy::print_stderr, reason = "the program's own end, read in the pod's log")]
fn complain(error: &str) -> ExitCode {
    eprintln!("toll in-cluster: {error}");
    ExitCode::FAILURE
}
