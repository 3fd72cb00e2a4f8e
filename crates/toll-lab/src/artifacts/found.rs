//! What was found, how, and its hash.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ArtifactError;

/// An artifact that is there and, if it is a program, runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where it is.
    pub path: PathBuf,
    /// The version that it gives for itself.
    pub version: String,
    /// SHA-256 of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// How it was found.
    pub source: Source,
}

/// How an artifact was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An environment variable names it.
    Environment,
    /// It is on `PATH`.
    Path,
    /// The system's packages brought it.
    System,
    /// It was built here, out of toll's sources.
    Built,
    /// An earlier run of toll fetched it.
    Cache,
    /// It was fetched just now.
    Fetched,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "its variable",
            Self::Path => "PATH",
            Self::System => "the system",
            Self::Built => "built here",
            Self::Cache => "the cache",
            Self::Fetched => "the package index",
        })
    }
}

/// Whether what is not there may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Yes, into the user's cache.
    Allowed,
    /// No: it is missing.
    Forbidden,
}

impl Found {
    /// One that is known to be there and to run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn new(
        path: PathBuf,
        version: String,
        source: Source,
    ) -> Result<Self, ArtifactError> {
        let unreadable = |source| ArtifactError::Unreadable { path: path.clone(), source };
        let sha256 = sha256(&path).map_err(unreadable)?;
        Ok(Self { path, version, sha256, source })
    }
}

/// SHA-256 of a file, as 64 hexadecimal digits.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
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
