//! How a node's proxy finds the networks of its pods.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::host::error::HostError;

/// Where a node's proxy looks for the network of a pod: a link to the descriptor that it inherits, so that its
/// configuration is the same whatever number that has.
pub(super) fn network_link(dir: &Path, pod: &str) -> PathBuf {
    dir.join("networks").join(pod)
}

/// Has a node's proxy find the network of a pod at this descriptor, which it inherits.
///
/// # Errors
/// When the link cannot be made.
pub(crate) fn link_network(dir: &Path, pod: &str, network: &OwnedFd) -> Result<(), HostError> {
    let path = network_link(dir, pod);
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    let target = format!("/proc/self/fd/{}", network.as_raw_fd());
    made.and_then(|()| symlink(target, &path)).map_err(|source| HostError::Write { path, source })
}
