//! How a PostgreSQL ends that was killed: what it leaves, and how that goes.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long the processes of a killed server may take to end.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// Ends what is left of the server on this data directory: its processes, each of which leads a session of its
/// own, and the segment of System V shared memory by which it keeps a second server out. Tells whether it ran.
///
/// # Errors
/// When a process does not end.
pub(crate) fn end_server(data: &Path) -> io::Result<bool> {
    let deadline = Instant::now() + LONGEST_EXIT;
    let mut ran = false;
    loop {
        let processes = processes_of(data);
        if processes.is_empty() {
            return remove_segment(data).map(|()| ran);
        }
        ran = true;
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for process in processes {
            let _ = kill(process, Signal::SIGKILL);
        }
        // Not our children, so there is nothing to wait on.
        thread::sleep(Duration::from_millis(2));
    }
}

/// The processes of the server: all work in its data directory.
fn processes_of(data: &Path) -> Vec<Pid> {
    let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let is_its_own = |pid: &i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm == "postgres\n" && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == data)
    };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_its_own).map(Pid::from_raw).collect()
}

/// The kernel keeps a segment until somebody removes it; a server that is killed cannot.
fn remove_segment(data: &Path) -> io::Result<()> {
    match line_of_pid_file(data, 7).as_deref().and_then(segment_in) {
        Some(segment) if segment.is_still_there() => segment.remove(),
        _ => Ok(()),
    }
}

/// A segment of System V shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// As the server chose it.
    key: u32,
    /// As the kernel did.
    id: i32,
}

impl Segment {
    /// Ids are used again: the key must be the same, and nobody may use it.
    fn is_still_there(self) -> bool {
        let mut found = MaybeUninit::<libc::shmid_ds>::uninit();
        // SAFETY: the kernel fills the structure when it returns 0, and only then is it read.
        let found = unsafe {
            match libc::shmctl(self.id, libc::IPC_STAT, found.as_mut_ptr()) {
                0 => found.assume_init(),
                _ => return false,
            }
        };
        #[expect(clippy::cast_sign_loss, reason = "a key is a bit pattern")]
        let key = found.shm_perm.__key as u32;
        key == self.key && found.shm_nattch == 0
    }

    fn remove(self) -> io::Result<()> {
        // SAFETY: nothing is read or written through the pointer.
        match unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Key and id, with blanks before each.
fn segment_in(line: &str) -> Option<Segment> {
    let mut numbers = line.split_whitespace();
    Some(Segment { key: numbers.next()?.parse().ok()?, id: numbers.next()?.parse().ok()? })
}

/// A line of `postmaster.pid`; the first is 1.
pub(super) fn line_of_pid_file(data: &Path, number: usize) -> Option<String> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    text.lines().nth(number - 1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_known_by_its_key_and_id() {
        assert_eq!(segment_in(" 10176775         5"), Some(Segment { key: 10_176_775, id: 5 }));
        assert_eq!(segment_in("  "), None);
    }

    /// The segment is this test's own.
    #[test]
    fn a_segment_is_removed_only_when_its_key_is_that_of_the_file_and_nobody_uses_it() {
        // SAFETY: makes a segment and touches no memory.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        let of_another = Segment { key: 1, id };
        assert!(!of_another.is_still_there());
        let file = format!("1\n/a\n1\n1\n/a\n\n {} {id}\n", libc::IPC_PRIVATE);
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("postmaster.pid"), file).unwrap();
        let segment = Segment { key: 0, id };
        assert!(segment.is_still_there());
        assert!(!end_server(data.path()).unwrap());
        assert!(!segment.is_still_there());
    }
}
