//! Tells which processes run in a pod's network, and which of them are not the pod's own.
//!
//! A pod's own are those of its program's session and all that descend from it. Of other users' processes
//! the kernel tells nothing to a user without privilege; then only root could have put them there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::unistd::Pid;

use super::namespace::Namespace;
use crate::evidence::Occupants;

/// A network namespace, by device and inode of its file.
type Network = (u64, u64);

/// A process of this machine that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    name: String,
    parent: i32,
    session: i32,
    network: Network,
}

/// The processes of this machine at one instant, by id.
#[derive(Debug)]
pub(crate) struct Processes(BTreeMap<i32, Process>);

impl Processes {
    /// Looks at all of them. Those that end meanwhile are left out.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub(crate) fn now() -> io::Result<Self> {
        let pids = fs::read_dir("/proc")?.flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Ok(Self(pids.filter_map(|pid| Some((pid, look(pid)?))).collect()))
    }

    /// Who is in the network of `pod`, whose program is `own`.
    ///
    /// # Errors
    /// When the namespace's descriptor cannot be read.
    pub(crate) fn inside(&self, pod: &Namespace, own: Pid) -> io::Result<Occupants> {
        Ok(self.occupants(pod.identity()?, own.as_raw()))
    }

    /// The processes of a pod whose program is `own`.
    pub(crate) fn of(&self, own: Pid) -> impl Iterator<Item = Pid> {
        let pids = self.0.keys().filter(move |pid| self.belongs_to(own.as_raw(), **pid));
        pids.map(|pid| Pid::from_raw(*pid))
    }

    fn occupants(&self, network: Network, own: i32) -> Occupants {
        let inside = || self.0.iter().filter(|(_, process)| process.network == network);
        let foreign = inside().filter(|(pid, _)| !self.belongs_to(own, **pid));
        Occupants {
            own: inside().any(|(pid, _)| *pid == own),
            foreign: foreign.map(|(pid, p)| format!("{} (pid {pid})", p.name)).collect(),
        }
    }

    fn belongs_to(&self, own: i32, pid: i32) -> bool {
        let mut seen = BTreeSet::new();
        let mut next = Some(pid);
        while let Some(pid) = next.filter(|pid| seen.insert(*pid)) {
            let process = self.0.get(&pid);
            if pid == own || process.is_some_and(|process| process.session == own) {
                return true;
            }
            next = process.map(|process| process.parent);
        }
        false
    }
}

fn look(pid: i32) -> Option<Process> {
    let file = fs::metadata(format!("/proc/{pid}/ns/net")).ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, parent, session) = parse(&stat)?;
    let network = (file.dev(), file.ino());
    Some(Process { name: name.to_owned(), parent, session, network })
}

/// Name, parent and session of proc_pid_stat(5). The name may hold blanks and parentheses.
fn parse(stat: &str) -> Option<(&str, i32, i32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let field = |index| after.split_whitespace().nth(index)?.parse().ok();
    Some((name, field(1)?, field(3)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: Network = (4, 100);
    const ELSEWHERE: Network = (4, 1);

    fn occupants(processes: &[(i32, &str, i32, i32, Network)]) -> Occupants {
        let processes = processes.iter().map(|&(pid, name, parent, session, network)| {
            (pid, Process { name: name.into(), parent, session, network })
        });
        Processes(processes.collect()).occupants(POD, 10)
    }

    /// toll outside of the pod, the service in it.
    const OWN: [(i32, &str, i32, i32, Network); 2] =
        [(5, "toll", 1, 5, ELSEWHERE), (10, "api", 5, 10, POD)];

    #[test]
    fn a_service_alone_in_its_pod_has_no_company() {
        assert_eq!(occupants(&OWN), Occupants { own: true, foreign: vec![] });
    }

    #[test]
    fn what_a_service_starts_is_its_own_also_in_a_session_of_its_own_or_as_an_orphan() {
        let more =
            [(11, "worker", 10, 10, POD), (12, "daemon", 11, 12, POD), (13, "left", 1, 10, POD)];
        assert_eq!(occupants(&[&OWN[..], &more].concat()).foreign, [""; 0]);
    }

    #[test]
    fn a_program_that_toll_or_another_put_into_the_pod_is_foreign() {
        let more =
            [(20, "envoy", 5, 20, POD), (21, "nginx", 1, 21, POD), (22, "sh", 1, 22, ELSEWHERE)];
        let seen = occupants(&[&OWN[..], &more].concat());
        assert_eq!(seen.foreign, ["envoy (pid 20)", "nginx (pid 21)"]);
    }

    #[test]
    fn a_look_that_misses_the_service_itself_says_so() {
        assert!(!occupants(&OWN[..1]).own);
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_is_read_whole() {
        assert_eq!(parse("42 (a ) b) S 7 42 41 0 -1"), Some(("a ) b", 7, 41)));
    }

    #[test]
    fn this_process_is_found_in_its_own_network() {
        let processes = Processes::now().unwrap();
        let this = nix::unistd::getpid().as_raw();
        assert!(processes.occupants(processes.0[&this].network, this).own);
    }
}
