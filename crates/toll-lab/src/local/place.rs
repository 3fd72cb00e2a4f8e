//! Puts a process where it belongs between fork and exec: cgroups, cores, namespaces, user.
//!
//! Everything that allocates is done before the fork. The order matters: what needs the caller's privilege
//! comes before the user namespace and the change of uid, and the death signal, which both of those clear,
//! comes last (prctl(2), PR_SET_PDEATHSIG).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid, getpid, getppid, setgroups, setresgid, setresuid, setsid};

use super::namespace::{IdMaps, Namespace};

/// Open files that a proxy may need: two for each connection.
const OPEN_FILES: u64 = 65_536;

/// The priority of the lab's processes when they run as real-time processes.
const REALTIME_PRIORITY: i32 = 5;

/// Where and as whom a process runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The caller's own when none.
    pub(crate) namespace: Option<Namespace>,
    /// Directories of the cgroups to join, one for each hierarchy.
    pub(crate) cgroups: Vec<PathBuf>,
    /// Whom it runs as.
    pub(crate) user: User,
    /// All that the caller may use when none.
    pub(crate) cores: Option<CpuSet>,
    /// Whether it runs as `SCHED_RR`.
    pub(crate) realtime: bool,
    /// Descriptors that the program inherits under the same numbers.
    pub(crate) inherited: Vec<Arc<OwnedFd>>,
}

/// Whom a process runs as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum User {
    /// As the caller.
    #[default]
    Caller,
    /// As the user with this id; needs root.
    Other(u32),
    /// As the caller, who has this id in a user namespace of the process's own: for programs that refuse root.
    Mapped(u32),
}

impl Place {
    /// Has `command` start in this place, as the leader of its own session, and die with the thread that
    /// starts it.
    ///
    /// # Errors
    /// When a cgroup is not there; what fails in the child is the error of its start.
    pub(crate) fn apply(&self, command: &mut Command) -> io::Result<()> {
        let join = |dir: &PathBuf| OpenOptions::new().write(true).open(dir.join("cgroup.procs"));
        let groups = self.cgroups.iter().map(join).collect::<io::Result<Vec<File>>>()?;
        let maps = match self.user {
            User::Mapped(id) => Some(IdMaps::id_is_caller(id, self.namespace.as_ref())),
            User::Caller | User::Other(_) => None,
        };
        let (place, parent) = (self.clone(), getpid());
        // SAFETY: the closure makes system calls only; all it needs was made above.
        unsafe { command.pre_exec(move || place.enter(&groups, maps.as_ref(), parent)) };
        Ok(())
    }

    fn enter(&self, groups: &[File], maps: Option<&IdMaps>, parent: Pid) -> io::Result<()> {
        for mut group in groups {
            group.write_all(b"0")?;
        }
        self.schedule()?;
        raise_open_files();
        for descriptor in &self.inherited {
            fcntl(descriptor.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        if let Some(namespace) = &self.namespace {
            namespace.enter()?;
        }
        setsid()?;
        if let User::Other(uid) = self.user {
            become_user(uid)?;
        }
        if let Some(maps) = maps {
            maps.enter_new()?;
        }
        die_with(parent)
    }

    fn schedule(&self) -> io::Result<()> {
        if let Some(cores) = &self.cores {
            sched_setaffinity(Pid::from_raw(0), cores)?;
        }
        if self.realtime { set_realtime() } else { Ok(()) }
    }
}

/// Makes the calling thread, and what it starts, a `SCHED_RR` task.
///
/// # Errors
/// `EPERM` without CAP_SYS_NICE, or in a child `cpu` cgroup where RT_GROUP_SCHED gives it no real-time budget.
pub(crate) fn set_realtime() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: REALTIME_PRIORITY };
    // SAFETY: the pointer is to a live value that the call only reads.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As many as may be had: the hard limit can be raised by root only.
pub(super) fn raise_open_files() {
    let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if setrlimit(Resource::RLIMIT_NOFILE, hard.max(OPEN_FILES), hard.max(OPEN_FILES)).is_err() {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn become_user(id: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    Ok(setresuid(uid, uid, uid)?)
}

/// The parent may have died before the signal was asked for; then nobody would send it.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}
