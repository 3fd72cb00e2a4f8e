//! What the machine can refuse.

use std::io;
use std::path::PathBuf;

/// What the machine refused.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file or directory cannot be made.
    #[error("cannot write {path}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The namespaces of the pods.
    #[error("cannot make the pods' namespaces")]
    Namespaces(#[source] io::Error),
    /// The links inside of a pod.
    #[error("cannot bring up the network of {pod}")]
    Link {
        /// Its name.
        pod: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// A system program refused what the lab needs.
    #[error("`{program}` cannot set up {pod}: {message}")]
    Tool {
        /// `ip` or `nft`.
        program: &'static str,
        /// Whose network.
        pod: String,
        /// What it says.
        message: String,
    },
}

impl HostError {
    /// What the user can do about it, with the command or key to type.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Write { .. } => "check that the disk is not full and the folder is writable",
            Self::Namespaces(_) | Self::Link { .. } | Self::Tool { .. } => {
                "run `toll doctor`, or choose `--isolation loopback`"
            }
        }
    }
}
