//! Notes what a toll has made in the system while it runs, and tells later what of that is still there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;
use toll_lab::Isolation;

use crate::process::{all, descendants, is_alive, wait_until};
use crate::workplace::is_possible;

/// All that one toll has made outside of its files.
#[derive(Debug)]
pub struct Footprint {
    toll: i32,
    processes: Vec<Identity>,
    /// As `/proc` names them: `net:[4026532246]`.
    namespaces: BTreeSet<String>,
}

/// A process id and the start time that goes with it, because ids are used again.
type Identity = (i32, Option<String>);

impl Footprint {
    /// Of a toll whose environment is up.
    #[track_caller]
    pub fn of(toll: i32) -> Self {
        let processes: Vec<Identity> =
            descendants(toll).into_iter().map(|pid| (pid, start_time(pid))).collect();
        let own = namespace(std::process::id().try_into().unwrap());
        let pids = processes.iter().map(|(pid, _)| *pid).chain([toll]);
        let mut namespaces: BTreeSet<String> = pids.flat_map(namespaces_held_by).collect();
        own.map(|own| namespaces.remove(&own));
        let footprint = Self { toll, processes, namespaces };
        footprint.assert_covers_what_the_lab_makes();
        footprint
    }

    /// A footprint that sees nothing would find nothing left.
    #[track_caller]
    fn assert_covers_what_the_lab_makes(&self) {
        assert!(self.processes.len() >= 3, "client, server and load run: {self:?}");
        if is_possible(Isolation::Pods) {
            assert!(self.namespaces.len() >= 3, "two pods and the load's have their own: {self:?}");
            assert!(!cgroups_of(self.toll).is_empty(), "each component has its cgroup");
        }
    }

    /// Waits until no process, namespace, cgroup or firewall rule of that toll is left.
    #[track_caller]
    pub fn assert_gone(&self) {
        wait_until(|| self.left().is_empty(), || self.left().join(", "));
    }

    /// Waits for the end of its processes and their namespaces only: what the kernel does by itself.
    #[track_caller]
    pub fn assert_processes_gone(&self) {
        wait_until(|| self.processes_left().is_empty(), || self.processes_left().join(", "));
    }

    fn left(&self) -> Vec<String> {
        let groups = cgroups_of(self.toll).into_iter().map(|group| group.display().to_string());
        self.processes_left().into_iter().chain(groups).chain(rules_in_the_host()).collect()
    }

    fn processes_left(&self) -> Vec<String> {
        let runs = |(pid, started): &&Identity| is_alive(*pid) && start_time(*pid) == *started;
        let processes = self.processes.iter().filter(runs).map(|(pid, _)| format!("process {pid}"));
        let held: BTreeSet<String> = all().into_iter().flat_map(namespaces_held_by).collect();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let exists = |name: &&String| held.contains(*name) || mounts.contains(name.as_str());
        processes.chain(self.namespaces.iter().filter(exists).cloned()).collect()
    }
}

/// The network namespace that a process is in, and those that it holds open.
fn namespaces_held_by(pid: i32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let held = descriptors.filter_map(|descriptor| link(&descriptor.path()));
    held.filter(|name| name.starts_with("net:[")).chain(namespace(pid)).collect()
}

/// None for a process that has ended or belongs to another user.
fn namespace(pid: i32) -> Option<String> {
    link(Path::new(&format!("/proc/{pid}/ns/net")))
}

fn link(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.to_str()?.to_owned())
}

/// Field 22 of `/proc/PID/stat`; the name before it may hold blanks.
fn start_time(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// The directories of the toll's environments in all hierarchies.
fn cgroups_of(toll: i32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let points = mounts.filter_map(|line| line.split(' ').nth(4));
    let groups = points.filter_map(|point| fs::read_dir(point).ok()).flatten().flatten();
    let start = format!("toll-{toll}-");
    groups
        .filter(|group| group.file_name().to_string_lossy().starts_with(&start))
        .map(|group| group.path())
        .collect()
}

/// The lab's rules belong into the pods' namespaces and go with them; none may be in the host's.
fn rules_in_the_host() -> Vec<String> {
    if !geteuid().is_root() {
        return Vec::new();
    }
    let Ok(listed) = Command::new("nft").args(["list", "ruleset"]).output() else {
        return Vec::new();
    };
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().filter(|line| line.contains("toll")).map(str::to_owned).collect()
}
