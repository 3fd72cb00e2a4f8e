//! Has processes end with the one that started them.

use std::io;

use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Has the calling process be killed when the thread that started it ends. Safe between fork and exec.
///
/// # Errors
/// When `parent` died before: then nobody would send the signal.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}
