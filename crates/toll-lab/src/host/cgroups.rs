//! Makes and removes the cgroups that count what each component uses. Sets no limits.
//!
//! One directory for the environment, one below it for each component, in each hierarchy that counts
//! something. The `cpu` controller stays off: in a child `cpu` group the kernel refuses real-time tasks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hierarchy::Hierarchies;

/// How long the kernel may take to let go of an ended process.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// The directories of one environment or of one component: one in each hierarchy in use.
pub(crate) fn directories(groups: &Hierarchies) -> impl Iterator<Item = &PathBuf> {
    [&groups.unified, &groups.cpuacct, &groups.memory].into_iter().flatten()
}

/// Paths of the environment's directories; makes nothing.
pub(crate) fn environment(mounts: &Hierarchies, id: &str) -> Hierarchies {
    below(mounts, &format!("toll-{id}"))
}

/// Makes the environment's directories and keeps those hierarchies that allow it. v1 is used only for what
/// v2 does not count here.
pub(crate) fn make_environment(planned: &Hierarchies) -> Hierarchies {
    let made = |dir: &Option<PathBuf>| dir.clone().filter(|dir| fs::create_dir(dir).is_ok());
    let unified = made(&planned.unified);
    if let Some(dir) = &unified {
        // Refused where v1 holds the controller; then memory is counted there.
        let _ = fs::write(dir.join("cgroup.subtree_control"), "+memory");
    }
    let counts = |file: &str| unified.as_ref().is_some_and(|dir| dir.join(file).exists());
    let (v2_cpu, v2_memory) = (counts("cpu.stat"), counts("memory.current"));
    Hierarchies {
        cpuacct: if v2_cpu { None } else { made(&planned.cpuacct) },
        memory: if v2_memory { None } else { made(&planned.memory) },
        unified,
    }
}

/// Makes a component's directories.
///
/// # Errors
/// When the kernel refuses one.
pub(crate) fn make_component(environment: &Hierarchies, name: &str) -> io::Result<Hierarchies> {
    let component = below(environment, name);
    directories(&component).try_for_each(fs::create_dir)?;
    Ok(component)
}

fn below(groups: &Hierarchies, name: &str) -> Hierarchies {
    let join = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.join(name));
    Hierarchies {
        unified: join(&groups.unified),
        cpuacct: join(&groups.cpuacct),
        memory: join(&groups.memory),
    }
}

/// Kills what still runs in an environment's directory and removes it; one that is not there is fine.
///
/// # Errors
/// When the kernel does not let go of it within 5 s.
pub(crate) fn remove(environment: &Path) -> io::Result<()> {
    let deadline = Instant::now() + LONGEST_EXIT;
    while let Err(e) = try_remove(environment) {
        if Instant::now() > deadline {
            return Err(e);
        }
        // The kernel tells nobody when a v1 group gets empty.
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn try_remove(group: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for child in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        try_remove(&child.path())?;
    }
    for pid in members(group) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    fs::remove_dir(group)
}

fn members(group: &Path) -> Vec<Pid> {
    let pids = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.lines().filter_map(|pid| Some(Pid::from_raw(pid.parse().ok()?))).collect()
}
