//! Finds a Java runtime, and checks that it is new enough for the Spring service. Fetches nothing: a JDK is
//! the user's choice, and the system's packages bring one.

use std::path::PathBuf;

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Found, Source};
use super::surroundings::{Surroundings, major, runnable, said_by};

/// What Spring Boot asks for.
const OLDEST: u32 = 17;

/// Looks below `JAVA_HOME`, then on `PATH`.
///
/// # Errors
/// When there is none, or it is too old.
pub(super) fn find(around: &Surroundings) -> Result<Found, ArtifactError> {
    if let Some(home) = around.named.get(&Artifact::Java) {
        return inspect(runnable("JAVA_HOME", &home.join("bin/java"))?, Source::Environment);
    }
    let path = around.on_path("java").ok_or(ArtifactError::Missing(Artifact::Java))?;
    inspect(path, Source::Path)
}

fn inspect(path: PathBuf, source: Source) -> Result<Found, ArtifactError> {
    let said = said_by(&path, "-version")?;
    let Some(version) = version_in(&said) else {
        return Err(ArtifactError::NotTheProgram { path, what: "a Java runtime" });
    };
    if major(&version).is_none_or(|major| major < OLDEST) {
        return Err(ArtifactError::TooOld { path, version, oldest: OLDEST.to_string() });
    }
    Found::new(path, version, source)
}

/// The version in `openjdk version "17.0.15" 2025-04-15`; what `JAVA_TOOL_OPTIONS` sets may stand before it.
fn version_in(said: &str) -> Option<String> {
    let (_, quoted) = said.split_once(" version \"")?;
    quoted.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_after_what_the_runtime_says_of_its_options() {
        let said =
            "Picked up JAVA_TOOL_OPTIONS: -Dx=\"1\"\nopenjdk version \"21.0.4\" 2024-07-16\n";
        assert_eq!(version_in(said).as_deref(), Some("21.0.4"));
    }

    #[test]
    fn a_version_of_the_old_numbering_is_below_every_new_one() {
        assert_eq!(version_in("java version \"1.8.0_402\"").as_deref().and_then(major), Some(1));
    }
}
