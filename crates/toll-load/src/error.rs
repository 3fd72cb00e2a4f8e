//! Why a load could not be run at all. A request that fails is no error here: it is counted in the report.

use std::io;
use std::net::SocketAddr;

use nix::errno::Errno;

/// What kept the engine from running a plan.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Standard input could not be read.
    #[error("cannot read the load plan")]
    PlanUnreadable(#[source] io::Error),
    /// What came in on standard input is not a plan.
    #[error("the load plan is not valid: {0}")]
    PlanInvalid(#[source] serde_json::Error),
    /// The target's URL cannot be used.
    #[error("cannot use the url `{url}`: {problem}")]
    BadUrl {
        /// As written in the plan.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The method is not a token of HTTP.
    #[error("cannot use `{method}` as a method: it must consist of letters")]
    BadMethod {
        /// As written in the plan.
        method: String,
    },
    /// A header cannot be sent.
    #[error("cannot send the header `{name}`: {problem}")]
    BadHeader {
        /// The header's name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The arrival rate is out of range.
    #[error("an arrival rate of {rate_per_s} per second is out of range")]
    BadRate {
        /// As written in the plan.
        rate_per_s: f64,
    },
    /// A duration is out of range.
    #[error("{field} of {seconds} s is out of range")]
    BadDuration {
        /// The plan's field.
        field: &'static str,
        /// As written in the plan, seconds.
        seconds: f64,
    },
    /// The shortest warm-up is longer than the longest.
    #[error("warm_up.min_s of {min_s} s is more than warm_up.max_s of {max_s} s")]
    WarmUpBounds {
        /// As written in the plan, seconds.
        min_s: f64,
        /// As written in the plan, seconds.
        max_s: f64,
    },
    /// A number that must be at least one is zero.
    #[error("{field} is zero")]
    Zero {
        /// The plan's field.
        field: &'static str,
    },
    /// The host's name has no address.
    #[error("cannot find an address of `{host}`")]
    Resolve {
        /// The host as written in the URL.
        host: String,
        /// What the resolver said; nothing when it gave an empty answer.
        source: Option<io::Error>,
    },
    /// Not one connection could be made.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The last address tried.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The process may not open as many sockets as the plan asks for.
    #[error("cannot open {needed} files: the limit is {limit}")]
    OpenFileLimit {
        /// Files that the plan needs, sockets and the engine's own.
        needed: u64,
        /// The hard limit of this process.
        limit: u64,
    },
    /// The kernel refused something that the engine cannot do without.
    #[error("{call} failed: {errno}")]
    Kernel {
        /// The system call.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// The caller, or whoever read the events, wanted no more.
    #[error("the load was stopped before its end")]
    Stopped,
}

impl LoadError {
    /// What the user can do about it, when there is something to say.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            LoadError::PlanUnreadable(_) | LoadError::PlanInvalid(_) => {
                "write one JSON load plan to standard input and close it".into()
            }
            LoadError::BadUrl { .. } => "write it as http://host:port/path".into(),
            LoadError::BadMethod { .. } => "use GET, HEAD, POST, PUT, PATCH or DELETE".into(),
            LoadError::BadHeader { .. } => "leave the header out or correct it".into(),
            LoadError::BadRate { .. } => {
                "choose a rate between 0.000001 and 10000000 per second".into()
            }
            LoadError::BadDuration { .. } => {
                "choose a duration between 0 and 604800 seconds".into()
            }
            LoadError::WarmUpBounds { .. } => "make warm_up.max_s the larger one".into(),
            LoadError::Zero { field } => format!("set {field} to 1 or more"),
            LoadError::Resolve { host, .. } => {
                format!("check the spelling of `{host}`, or use an IP address")
            }
            LoadError::Connect { address, .. } => format!(
                "check that the service runs and listens on {address}, and that this process may reach it"
            ),
            LoadError::OpenFileLimit { needed, .. } => {
                format!("use fewer connections, or raise the limit: ulimit -n {needed}")
            }
            LoadError::Kernel { .. } | LoadError::Stopped => return None,
        })
    }
}

/// Names the system call in an error of the kernel.
pub(crate) fn kernel(call: &'static str) -> impl Fn(Errno) -> LoadError {
    move |errno| LoadError::Kernel { call, errno }
}
