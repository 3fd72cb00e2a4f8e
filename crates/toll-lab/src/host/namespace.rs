//! Makes anonymous network namespaces and keeps them by an open descriptor.
//!
//! Nothing is named in the host: the kernel frees a namespace with its links and firewall rules when its last
//! process and its last descriptor are gone, so that nothing outlives a killed toll. See namespaces(7).

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::fstat;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getegid, geteuid, getpid, pause, setsid};

use super::lifetime::die_with;

/// A network namespace, with the user namespace that owns it when that is not the caller's own.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    user: Option<Arc<OwnedFd>>,
    net: Arc<OwnedFd>,
}

impl Namespace {
    /// Network namespaces of the caller's own user namespace; needs root.
    ///
    /// # Errors
    /// What the kernel says to unshare(2).
    pub(crate) fn privileged(count: usize) -> io::Result<Vec<Self>> {
        let (holder, networks) = Holder::fork(count, unshare_networks)?;
        networks.into_iter().map(|fd| holder.namespace(None, fd)).collect()
    }

    /// Network namespaces of one new user namespace, in which the caller is root; needs no privilege.
    ///
    /// # Errors
    /// What the kernel says to unshare(2) or to the mapping of the caller's ids.
    pub(crate) fn rootless(count: usize) -> io::Result<Vec<Self>> {
        let maps = IdMaps::root_is(geteuid(), getegid());
        let (holder, networks) = Holder::fork(count, |networks| {
            maps.enter_new()?;
            unshare_networks(networks)
        })?;
        let user = Arc::new(holder.open("ns/user")?);
        networks.into_iter().map(|fd| holder.namespace(Some(&user), fd)).collect()
    }

    /// Has one child enter each of these namespaces, of one owner, in turn and `act` there by its index; gives an
    /// outcome for each.
    ///
    /// `act` runs in the child and must not allocate: another thread may hold the allocator's lock.
    ///
    /// # Errors
    /// When the child cannot be made.
    pub(crate) fn in_each(
        namespaces: &[&Self],
        act: impl Fn(usize) -> io::Result<()>,
    ) -> io::Result<Vec<io::Result<()>>> {
        let (_, outcomes) = Holder::fork(namespaces.len(), |outcomes| {
            namespaces.first().map_or(Ok(()), |first| first.enter_user())?;
            for (index, outcome) in outcomes.iter_mut().enumerate() {
                let entered = setns(namespaces[index].net.as_fd(), CloneFlags::CLONE_NEWNET);
                *outcome = errno(entered.map_err(io::Error::from).and_then(|()| act(index)));
            }
            Ok(())
        })?;
        Ok(outcomes.into_iter().map(of_errno).collect())
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
        let file = fstat(&self.net)?;
        Ok((file.st_dev, file.st_ino))
    }

    /// The network namespace, to be inherited by a process that opens it as `/proc/self/fd/N`.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.net)
    }

    /// Lets any user of the namespace listen on any port.
    ///
    /// # Errors
    /// What the kernel says to setns(2) or to the write.
    pub(crate) fn open_low_ports(&self) -> io::Result<()> {
        const FIRST: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
        // Only root's namespaces need it: in those of others the caller is root.
        if self.user.is_some() {
            return Ok(());
        }
        // Such files are those of the network of the thread that opens them.
        let write = || {
            setns(self.net.as_fd(), CloneFlags::CLONE_NEWNET)?;
            write_once(FIRST, b"0")
        };
        let thread = thread::scope(|scope| scope.spawn(write).join());
        thread.expect("a thread that makes system calls only does not panic")
    }

    fn enter_user(&self) -> io::Result<()> {
        match &self.user {
            Some(user) => Ok(setns(user.as_fd(), CloneFlags::CLONE_NEWUSER)?),
            None => Ok(()),
        }
    }
}

/// The id mappings of a user namespace, written out before the fork: the child must not allocate.
#[derive(Debug, Clone)]
pub(crate) struct IdMaps {
    users: String,
    groups: String,
}

impl IdMaps {
    fn root_is(user: Uid, group: Gid) -> Self {
        Self { users: format!("0 {user} 1"), groups: format!("0 {group} 1") }
    }

    /// `id` stands for the caller, who is root in `namespace` if that has a user namespace.
    pub(crate) fn id_is_caller(id: u32, namespace: Option<&Namespace>) -> Self {
        if namespace.is_some_and(|namespace| namespace.user.is_some()) {
            return Self { users: format!("{id} 0 1"), groups: format!("{id} 0 1") };
        }
        Self { users: format!("{id} {} 1", geteuid()), groups: format!("{id} {} 1", getegid()) }
    }

    /// Moves the calling process into a user namespace of its own with these ids. Safe between fork and exec.
    ///
    /// # Errors
    /// What the kernel says to unshare(2) or to the mapping.
    pub(crate) fn enter_new(&self) -> io::Result<()> {
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

/// Enters a new network namespace for each element of `networks`, and keeps all of them open. Does not allocate.
fn unshare_networks(networks: &mut [RawFd]) -> io::Result<()> {
    for network in networks {
        unshare(CloneFlags::CLONE_NEWNET)?;
        *network = File::open("/proc/self/ns/net")?.into_raw_fd();
    }
    Ok(())
}

/// A child that holds new namespaces until they have been opened: one fork makes them all.
struct Holder(Pid);

impl Holder {
    /// `make` runs in the child, fills in its `count` numbers, and must not allocate: another thread may hold the
    /// allocator's lock.
    fn fork(
        count: usize,
        make: impl FnOnce(&mut [RawFd]) -> io::Result<()>,
    ) -> io::Result<(Self, Vec<RawFd>)> {
        let (mut reader, writer) = io::pipe()?;
        let (parent, mut made) = (getpid(), vec![-1; count]);
        // SAFETY: the child makes system calls only and never returns.
        match unsafe { fork() }? {
            ForkResult::Child => hold(make, &mut made, writer, parent),
            ForkResult::Parent { child } => {
                drop(writer);
                let holder = Self(child);
                of_errno(read_number(&mut reader)?)?;
                for number in &mut made {
                    *number = read_number(&mut reader)?;
                }
                Ok((holder, made))
            }
        }
    }

    fn namespace(&self, user: Option<&Arc<OwnedFd>>, network: RawFd) -> io::Result<Namespace> {
        let net = Arc::new(self.open(&format!("fd/{network}"))?);
        Ok(Namespace { user: user.cloned(), net })
    }

    fn open(&self, file: &str) -> io::Result<OwnedFd> {
        File::open(format!("/proc/{}/{file}", self.0)).map(OwnedFd::from)
    }
}

fn read_number(reader: &mut PipeReader) -> io::Result<i32> {
    let mut number = [0; 4];
    reader.read_exact(&mut number)?;
    Ok(i32::from_ne_bytes(number))
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

fn errno(outcome: io::Result<()>) -> i32 {
    outcome.map_or_else(|e| e.raw_os_error().unwrap_or(nix::libc::EIO), |()| 0)
}

fn of_errno(errno: i32) -> io::Result<()> {
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// The child: tells the outcome as an errno, then its numbers, and waits to be killed.
fn hold(
    make: impl FnOnce(&mut [RawFd]) -> io::Result<()>,
    made: &mut [RawFd],
    mut writer: PipeWriter,
    parent: Pid,
) -> ! {
    // The death signal comes after `make`: a new user namespace clears it. A parent that died before is seen
    // by its pid; the pipe does not tell, since its reading end is open here, too.
    // Of its own session: Ctrl-C is toll's to hear.
    let steps = setsid().map_err(io::Error::from).and_then(|_| make(made));
    let errno = errno(steps.and_then(|()| die_with(parent)));
    let mut tell = |number: i32| writer.write_all(&number.to_ne_bytes()).is_ok();
    if tell(errno) && errno == 0 && made.iter().all(|fd| tell(*fd)) {
        loop {
            pause();
        }
    }
    // SAFETY: ends the child without running the parent's exit handlers.
    unsafe { nix::libc::_exit(1) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_refused_step_in_the_child_comes_back_as_its_error() {
        let refused = |_: &mut [RawFd]| Err(io::Error::from_raw_os_error(nix::libc::EPERM));
        let error = Holder::fork(1, refused).map(|_| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EPERM));
    }

    #[test]
    fn a_hundred_namespaces_of_one_fork_are_all_distinct() {
        let Ok(made) = Namespace::rootless(100) else {
            eprintln!("SKIP a_hundred_namespaces_of_one_fork_are_all_distinct: no user namespaces");
            return;
        };
        let distinct: BTreeSet<_> = made.iter().map(|one| one.identity().unwrap()).collect();
        assert_eq!(distinct.len(), 100);
    }
}
