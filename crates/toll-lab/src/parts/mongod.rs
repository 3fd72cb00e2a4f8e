//! Finds MongoDB's server. Fetches nothing: it is neither in a package index nor among most systems' packages, and
//! toll has a server of its own to put in its place.

use std::path::PathBuf;

use super::error::MissingPart;
use super::nginx::numbers;
use super::{Part, PartError, Source, Surroundings, named, part, said_by};

/// As `toll doctor` says it.
pub(super) const WANTED: &str = "4.4 or later";

/// The oldest that current drivers speak to (wire version 9).
const OLDEST: [u32; 2] = [4, 4];

/// Looks for the variable's, then on `PATH`.
///
/// # Errors
/// See [`super::mongod`].
pub(super) fn find(around: &Surroundings) -> Result<Part, PartError> {
    if let Some(path) = &around.mongod {
        return inspect(named("MONGOD", path)?, Source::Environment);
    }
    let path = around.on_path("mongod").ok_or(PartError::Missing { part: MissingPart::Mongod })?;
    inspect(path, Source::Path)
}

fn inspect(path: PathBuf, source: Source) -> Result<Part, PartError> {
    let said = said_by(&path, "--version")?;
    let Some(version) = version_in(&said) else {
        return Err(PartError::NotThePart { path, part: "mongod" });
    };
    if numbers(&version) < OLDEST.to_vec() {
        let oldest = OLDEST.map(|number| number.to_string()).join(".");
        return Err(PartError::TooOld { path, version, oldest });
    }
    part(path, version, source)
}

/// The version in `db version v7.0.14`.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.split_once("db version v")?;
    version.split_whitespace().next().map(str::to_owned)
}
