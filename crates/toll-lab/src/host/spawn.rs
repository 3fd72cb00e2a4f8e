//! Puts a process where it belongs between fork and exec: cgroups, cores, namespaces, names of hosts, user.
//!
//! Everything that allocates is done before the fork. The order matters: what needs the caller's privilege
//! comes before the user namespace and the change of uid, and the death signal, which both of those clear,
//! comes last (prctl(2), PR_SET_PDEATHSIG).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Pid, Uid, getpid, setgroups, setresgid, setresuid, setsid};

use super::lifetime::die_with;
use super::namespace::{IdMaps, Namespace};

/// Open files that a proxy may need: two for each connection.
const OPEN_FILES: u64 = 65_536;

/// The priority of the lab's processes when they run as real-time processes.
const REALTIME_PRIORITY: i32 = 5;

/// Where and as whom a process runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpawnContext {
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
    /// A file that stands in the place of `/etc/hosts`, for this process and those that it starts; needs a
    /// namespace, or root.
    pub(crate) hosts: Option<PathBuf>,
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

impl User {
    /// The user with this id; the caller when none.
    pub(crate) fn or_caller(id: Option<u32>) -> Self {
        id.map_or(Self::Caller, Self::Other)
    }

    /// Whose files its programs must be given; none when they are the caller's.
    pub(crate) fn owner(&self) -> Option<u32> {
        match self {
            Self::Other(id) => Some(*id),
            Self::Caller | Self::Mapped(_) => None,
        }
    }
}

/// A program to start, in the network of its pod.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) command: Command,
    /// For errors.
    pub(crate) path: PathBuf,
    pub(crate) user: User,
    /// Descriptors that it inherits under the same numbers: other pods' networks, for a node's proxy.
    pub(crate) inherited: Vec<Arc<OwnedFd>>,
    /// Whether it may write more than a disk holds: of its log the begin and the end are kept.
    pub(crate) is_verbose: bool,
}

impl Start {
    /// Of a program that runs as the caller.
    pub(crate) fn new(path: PathBuf, command: Command) -> Self {
        Self { command, path, user: User::Caller, inherited: Vec::new(), is_verbose: false }
    }

    /// One of toll's own programs, with its first arguments.
    pub(crate) fn of_words(words: &[OsString]) -> Self {
        let (program, arguments) = words.split_first().expect("toll names its own programs");
        let mut command = Command::new(program);
        command.args(arguments);
        Self::new(program.into(), command)
    }
}

impl SpawnContext {
    /// In this network, with the caller's privilege.
    pub(crate) fn inside(network: &Namespace) -> Self {
        Self { namespace: Some(network.clone()), ..Self::default() }
    }

    /// Has `command` start in this context, as the leader of its own session, and die with the thread that
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
        let (context, parent) = (self.clone(), getpid());
        // SAFETY: the closure makes system calls only; all it needs was made above.
        unsafe { command.pre_exec(move || context.enter(&groups, maps.as_ref(), parent)) };
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
        // While the process is root in the user namespace that its mounts will belong to.
        if let Some(hosts) = &self.hosts {
            stand_in_for_hosts(hosts)?;
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

/// Where names are looked up before any server is asked: hosts(5).
const HOSTS: &str = "/etc/hosts";

/// Puts `file` over [`HOSTS`] in a mount namespace of the calling process's own. Safe between fork and exec.
fn stand_in_for_hosts(file: &Path) -> io::Result<()> {
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Else the mount below would appear in the namespace that this one is a copy of: mount_namespaces(7).
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)?;
    Ok(mount(Some(file), HOSTS, NONE, MsFlags::MS_BIND, NONE)?)
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
pub(crate) fn raise_open_files() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process reads in `/etc/hosts`, and what another then reads who was given nothing.
    fn reads(context: &SpawnContext) -> [String; 2] {
        let read = |context: &SpawnContext| {
            let mut command = Command::new("cat");
            command.arg(HOSTS);
            context.apply(&mut command).unwrap();
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        [read(context), read(&SpawnContext::default())]
    }

    fn a_name_is_for_one_process(namespace: Namespace, user: User) {
        let hosts = tempfile::NamedTempFile::with_suffix_in(".hosts", "/tmp").unwrap();
        std::fs::write(hosts.path(), "10.77.0.6 db.airline.example\n").unwrap();
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(hosts.path(), readable).unwrap();
        let before = std::fs::read_to_string(HOSTS).unwrap();
        let (namespace, hosts) = (Some(namespace), Some(hosts.path().to_owned()));
        let seen = reads(&SpawnContext { namespace, user, hosts, ..SpawnContext::default() });
        assert_eq!(seen, ["10.77.0.6 db.airline.example\n", &before]);
    }

    #[test]
    fn a_process_of_a_pod_has_names_of_its_own_and_nobody_else_sees_them() {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("SKIP a_process_of_a_pod_has_names_of_its_own: not root");
            return;
        }
        for user in [User::Caller, User::Other(1338)] {
            a_name_is_for_one_process(Namespace::privileged(1).unwrap().remove(0), user);
        }
    }

    #[test]
    fn a_process_of_a_rootless_pod_has_names_of_its_own_and_nobody_else_sees_them() {
        let Ok(mut made) = Namespace::rootless(1) else {
            eprintln!("SKIP a_process_of_a_rootless_pod_has_names_of_its_own: no user namespaces");
            return;
        };
        a_name_is_for_one_process(made.remove(0), User::Caller);
    }
}
