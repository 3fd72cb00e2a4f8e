//! Tells which isolation levels this machine allows, by trying what each needs.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::namespace::Namespace;
use super::process::Launcher;
use super::spawn::SpawnContext;
use super::tools;

/// How far apart the pods are. The best comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// A pod is a network namespace and cgroups; needs root.
    Pods,
    /// The same inside a user namespace, without cgroups.
    Rootless,
    /// No namespaces: explicit proxy ports on 127.0.0.1.
    Loopback,
}

impl Isolation {
    /// All levels, the best first.
    pub const ALL: [Self; 3] = [Self::Pods, Self::Rootless, Self::Loopback];

    /// What a report from this level cannot show whatever its counters are, one sentence each.
    pub(crate) fn lacks(self) -> Vec<String> {
        const NO_CAPTURE: &str =
            "no transparent capture: callers are given the sidecars' addresses";
        const NO_VETH: &str = "no network between pods: all traffic stays on the loopback device";
        let sentences: &[&str] = match self {
            Self::Pods | Self::Rootless => &[],
            Self::Loopback => &[NO_CAPTURE, NO_VETH],
        };
        sentences.iter().map(|s| (*s).to_owned()).collect()
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pods => "pods",
            Self::Rootless => "rootless",
            Self::Loopback => "loopback",
        })
    }
}

/// Why a level is not possible here.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// Pods need root.
    #[error("only root can make them")]
    NotRoot,
    /// A system program is not installed.
    #[error("the program `{0}` is not installed")]
    ProgramMissing(&'static str),
    /// The kernel refuses the namespaces.
    #[error("the kernel refuses the namespaces: {0}")]
    NamespaceRefused(#[source] io::Error),
    /// A system program cannot do its work inside the namespaces.
    #[error("`{program}` cannot work inside the namespaces: {message}")]
    ToolRefused {
        /// Which.
        program: &'static str,
        /// What it says.
        message: String,
    },
}

impl Reason {
    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::NotRoot => "run under sudo, or choose `--isolation rootless`",
            Self::ProgramMissing("ip") => "install it: apt-get install iproute2",
            Self::ProgramMissing(_) => "install it: apt-get install nftables",
            Self::NamespaceRefused(_) => {
                "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or \
                 kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu), or choose \
                 `--isolation loopback`, which needs none"
            }
            Self::ToolRefused { .. } => {
                "choose `--isolation loopback`: this kernel lacks bridges, veth pairs or nftables"
            }
        };
        Some(text.to_owned())
    }
}

/// Every level, the best first, and why it is not possible.
pub fn survey() -> Vec<(Isolation, Result<(), Reason>)> {
    Isolation::ALL.into_iter().map(|level| (level, attempt(level))).collect()
}

/// Whether `level` is possible here.
///
/// # Errors
/// Why not.
pub(crate) fn attempt(level: Isolation) -> Result<(), Reason> {
    match level {
        Isolation::Pods if !geteuid().is_root() => Err(Reason::NotRoot),
        Isolation::Pods => try_tools(Namespace::privileged),
        Isolation::Rootless => try_tools(Namespace::rootless),
        Isolation::Loopback => Ok(()),
    }
}

/// Makes one bridge, one veth pair and one redirect in a namespace that is thrown away.
fn try_tools(make: fn(usize) -> io::Result<Vec<Namespace>>) -> Result<(), Reason> {
    let ip = tools::find("ip").ok_or(Reason::ProgramMissing("ip"))?;
    let nft = tools::find("nft").ok_or(Reason::ProgramMissing("nft"))?;
    let made = make(1).map_err(Reason::NamespaceRefused)?;
    let inside = &made[0];
    let links = "link add br0 type bridge\nlink add v0 type veth peer name v1\n";
    let redirect = "table ip t { chain c { type nat hook output priority -100; \
                    meta l4proto tcp redirect to :15001; }; }\n";
    try_tool("ip", ip, &["-batch", "-"], links, inside)?;
    try_tool("nft", nft, &["-f", "-"], redirect, inside)
}

fn try_tool(
    program: &'static str,
    path: PathBuf,
    args: &[&str],
    script: &str,
    inside: &Namespace,
) -> Result<(), Reason> {
    let refused = |message: String| Reason::ToolRefused { program, message };
    let run = || {
        let mut command = Command::new(path);
        command.args(args);
        let context = SpawnContext::inside(inside);
        context.apply(&mut command)?;
        Launcher::start()?.run(command, script)
    };
    let output = run().map_err(|e| refused(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_always_possible_and_comes_last() {
        let survey = survey();
        assert!(matches!(survey.last(), Some((Isolation::Loopback, Ok(())))));
    }

    #[test]
    fn every_reason_says_what_to_do() {
        let reasons = [
            Reason::NotRoot,
            Reason::ProgramMissing("nft"),
            Reason::NamespaceRefused(io::ErrorKind::PermissionDenied.into()),
        ];
        assert!(reasons.iter().all(|r| r.help().is_some()));
    }
}
