//! Finds MongoDB's server. Fetches nothing: it is neither in a package index nor among most systems' packages, and
//! toll has a server of its own to put in its place.

use std::path::PathBuf;

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Found, Source};
use super::nginx::numbers;
use super::surroundings::{Surroundings, said_by};

/// As `toll doctor` says it.
pub(super) const WANTED: &str = "4.4 or later";

/// The oldest that current drivers speak to (wire version 9).
const OLDEST: [u32; 2] = [4, 4];

/// Looks for the variable's, then on `PATH`.
///
/// # Errors
/// When there is none, or it is too old.
pub(super) fn find(around: &Surroundings) -> Result<Found, ArtifactError> {
    if let Some(path) = around.named_program(Artifact::Mongod)? {
        return inspect(path, Source::Environment);
    }
    let path = around.on_path("mongod").ok_or(ArtifactError::Missing(Artifact::Mongod))?;
    inspect(path, Source::Path)
}

fn inspect(path: PathBuf, source: Source) -> Result<Found, ArtifactError> {
    let said = said_by(&path, "--version")?;
    let Some(version) = version_in(&said) else {
        return Err(ArtifactError::NotTheProgram { path, what: "mongod" });
    };
    if numbers(&version) < OLDEST.to_vec() {
        let oldest = OLDEST.map(|number| number.to_string()).join(".");
        return Err(ArtifactError::TooOld { path, version, oldest });
    }
    Found::new(path, version, source)
}

/// The version in `db version v7.0.14`.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.split_once("db version v")?;
    version.split_whitespace().next().map(str::to_owned)
}
