//! Finds ztunnel, Istio's node proxy, and checks that what was found is one. Fetches nothing: no package index has it.

use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Found, Source};
use super::surroundings::{Surroundings, runnable, said_by};

/// As `toll doctor` says it.
pub(super) const WANTED: &str = "as released";

/// Looks at the variable, then on `PATH`.
///
/// # Errors
/// When there is none, or the one that is named does not run.
pub(super) fn find(around: &Surroundings) -> Result<Found, ArtifactError> {
    if let Some(path) = around.named_program(Artifact::Ztunnel)? {
        return inspect(path, Source::Environment);
    }
    let path = around.on_path("ztunnel").ok_or(ArtifactError::Missing(Artifact::Ztunnel))?;
    inspect(path, Source::Path)
}

/// The one that a plan was made for.
pub(super) fn at(path: &Path) -> Result<Found, ArtifactError> {
    inspect(runnable(Artifact::Ztunnel.variable(), path)?, Source::Path)
}

/// Its command line has words, not flags. A debug build costs several times as much, so it is refused.
fn inspect(path: PathBuf, source: Source) -> Result<Found, ArtifactError> {
    let said = said_by(&path, "version")?;
    let Some(version) = version_in(&said) else {
        return Err(ArtifactError::NotTheProgram { path, what: "a ztunnel" });
    };
    if said.contains("BuildProfile:\"debug\"") {
        return Err(ArtifactError::DebugBuild { path });
    }
    Found::new(path, version, source)
}

/// The version in `version.BuildInfo{Version:"1.27.1", GitRevision:"...", ...}`.
fn version_in(said: &str) -> Option<String> {
    let (_, fields) = said.split_once("version.BuildInfo{")?;
    let (_, quoted) = fields.split_once("Version:\"")?;
    quoted.split('"').next().map(str::to_owned)
}
