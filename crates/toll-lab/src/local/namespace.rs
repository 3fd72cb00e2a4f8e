//! Makes anonymous network namespaces and keeps them by an open descriptor.
//!
//! Nothing is named in the host: the kernel frees a namespace with its links and firewall rules when its last
//! process and its last descriptor are gone, so that nothing outlives a killed toll. See namespaces(7).

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getegid, geteuid, getpid, pause, setsid};

use super::place::die_with;

/// A network namespace, with the user namespace that owns it when that is not the caller's own.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    user: Option<Arc<File>>,
    net: Arc<File>,
}

impl Namespace {
    /// A network namespace of the caller's own user namespace; needs root.
    ///
    /// # Errors
    /// What the kernel says to unshare(2).
    pub(crate) fn privileged() -> io::Result<Self> {
        let holder = Holder::fork(|| Ok(unshare(CloneFlags::CLONE_NEWNET)?))?;
        Ok(Self { user: None, net: Arc::new(holder.open("net")?) })
    }

    /// A network namespace in a new user namespace, in which the caller is root; needs no privilege.
    ///
    /// # Errors
    /// What the kernel says to unshare(2) or to the mapping of the caller's ids.
    pub(crate) fn rootless() -> io::Result<Self> {
        let maps = IdMaps::root_is(geteuid(), getegid());
        let holder = Holder::fork(|| {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
            maps.write()
        })?;
        Ok(Self { user: Some(Arc::new(holder.open("user")?)), net: Arc::new(holder.open("net")?) })
    }

    /// A further network namespace with the same owner.
    ///
    /// # Errors
    /// What the kernel says to setns(2) or unshare(2).
    pub(crate) fn sibling(&self) -> io::Result<Self> {
        let holder = Holder::fork(|| {
            self.enter_user()?;
            Ok(unshare(CloneFlags::CLONE_NEWNET)?)
        })?;
        Ok(Self { user: self.user.clone(), net: Arc::new(holder.open("net")?) })
    }

    /// Moves the calling process into the namespace. Safe between fork and exec; fails in a process of more
    /// than one thread when there is a user namespace.
    ///
    /// # Errors
    /// What the kernel says to setns(2).
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.enter_user()?;
        Ok(setns(self.net.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// Device and inode of the network namespace: the same in `/proc/PID/ns/net` of all who are in it.
    ///
    /// # Errors
    /// What the kernel says to fstat(2).
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let file = self.net.metadata()?;
        Ok((file.dev(), file.ino()))
    }

    fn enter_user(&self) -> io::Result<()> {
        match &self.user {
            Some(user) => Ok(setns(user.as_fd(), CloneFlags::CLONE_NEWUSER)?),
            None => Ok(()),
        }
    }
}

impl AsFd for Namespace {
    /// The network namespace.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.net.as_fd()
    }
}

/// The id mappings of a user namespace, written out before the fork: the child must not allocate.
#[derive(Debug, Clone)]
pub(super) struct IdMaps {
    users: String,
    groups: String,
}

impl IdMaps {
    fn root_is(user: Uid, group: Gid) -> Self {
        Self { users: format!("0 {user} 1"), groups: format!("0 {group} 1") }
    }

    /// `id` stands for the caller, who is root in `namespace` if that has a user namespace.
    pub(super) fn id_is_caller(id: u32, namespace: Option<&Namespace>) -> Self {
        if namespace.is_some_and(|namespace| namespace.user.is_some()) {
            return Self { users: format!("{id} 0 1"), groups: format!("{id} 0 1") };
        }
        Self { users: format!("{id} {} 1", geteuid()), groups: format!("{id} {} 1", getegid()) }
    }

    /// Moves the calling process into a user namespace of its own with these ids. Safe between fork and exec.
    ///
    /// # Errors
    /// What the kernel says to unshare(2) or to the mapping.
    pub(super) fn enter_new(&self) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        self.write()
    }

    /// Without privilege the group map is refused until `setgroups` is denied: user_namespaces(7).
    fn write(&self) -> io::Result<()> {
        write_once("/proc/self/setgroups", b"deny")?;
        write_once("/proc/self/uid_map", self.users.as_bytes())?;
        write_once("/proc/self/gid_map", self.groups.as_bytes())
    }
}

fn write_once(path: &str, text: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text)
}

/// A child that sits in new namespaces until they have been opened.
struct Holder(Pid);

impl Holder {
    /// `enter` runs in the child and must not allocate: another thread may hold the allocator's lock.
    fn fork(enter: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (mut reader, writer) = io::pipe()?;
        let parent = getpid();
        // SAFETY: the child makes system calls only and never returns.
        match unsafe { fork() }? {
            ForkResult::Child => hold(enter, writer, parent),
            ForkResult::Parent { child } => {
                drop(writer);
                let holder = Self(child);
                holder.outcome(&mut reader).map(|()| holder)
            }
        }
    }

    fn outcome(&self, reader: &mut PipeReader) -> io::Result<()> {
        let mut errno = [0; 4];
        reader.read_exact(&mut errno)?;
        match i32::from_ne_bytes(errno) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn open(&self, namespace: &str) -> io::Result<File> {
        File::open(format!("/proc/{}/ns/{namespace}", self.0))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// The child: tells the outcome as an errno, then waits to be killed.
fn hold(enter: impl FnOnce() -> io::Result<()>, mut writer: PipeWriter, parent: Pid) -> ! {
    // The death signal comes after `enter`: a new user namespace clears it. A parent that died before is seen
    // by its pid; the pipe does not tell, since its reading end is open here, too.
    // Of its own session: Ctrl-C is toll's to hear.
    let steps = setsid().map_err(io::Error::from).and_then(|_| enter());
    let errno = match steps.and_then(|()| die_with(parent)) {
        Ok(()) => 0,
        Err(e) => e.raw_os_error().unwrap_or(nix::libc::EIO),
    };
    if writer.write_all(&errno.to_ne_bytes()).is_ok() && errno == 0 {
        loop {
            pause();
        }
    }
    // SAFETY: ends the child without running the parent's exit handlers.
    unsafe { nix::libc::_exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_step_in_the_child_comes_back_as_its_error() {
        let refused = || Err(io::Error::from_raw_os_error(nix::libc::EPERM));
        let error = Holder::fork(refused).map(|_| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EPERM));
    }

    #[test]
    fn siblings_are_distinct_network_namespaces() {
        let Ok(first) = Namespace::rootless() else {
            eprintln!("SKIP siblings_are_distinct_network_namespaces: no user namespaces here");
            return;
        };
        let second = first.sibling().unwrap();
        assert_ne!(first.identity().unwrap(), second.identity().unwrap());
    }
}
