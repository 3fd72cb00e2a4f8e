//! Finds the jars of tracing agents for JVMs, and checks that what was found is one.

use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Fetch, Found, Source};
use super::jar::{self, Jar};
use super::manifest::Manifest;
use super::surroundings::Surroundings;

/// The version of the OpenTelemetry Java agent that toll fetches.
pub(super) const VERSION: &str = "2.33.1";

/// The project's own release.
const JAR: Jar = Jar {
    group: "io.opentelemetry.javaagent",
    artifact: "opentelemetry-javaagent",
    version: VERSION,
    sha256: "e43a270df53c6f423e0ab157be9c27ccc01d5dc3232e162fe54777573db2f149",
    variable: "OPENTELEMETRY_JAVAAGENT",
    or: "set OPENTELEMETRY_JAVAAGENT to the agent's jar",
};

/// The class by which that agent enters a JVM.
const OPENTELEMETRY: &str = "io.opentelemetry.javaagent.OpenTelemetryAgent";

/// Looks for the variable's and the cache's, then fetches.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named is another jar.
pub(super) fn opentelemetry(around: &Surroundings, fetch: Fetch) -> Result<Found, ArtifactError> {
    let is_it = |entry: &str| entry == OPENTELEMETRY;
    let inspect =
        |path: PathBuf, source| inspect(path, source, "the OpenTelemetry Java agent", is_it);
    if let Some(path) = around.named_file(Artifact::OpenTelemetry)? {
        return inspect(path, Source::Environment);
    }
    let cached = cached_at(around.cache()?);
    if cached.is_file() {
        return inspect(cached, Source::Cache);
    }
    match fetch {
        Fetch::Forbidden => Err(ArtifactError::Missing(Artifact::OpenTelemetry)),
        Fetch::Allowed => {
            jar::fetch(around, &JAR, &cached)?;
            inspect(cached, Source::Fetched)
        }
    }
}

/// The jar of an agent that the study names, whatever agent that is.
///
/// # Errors
/// When it is not there, or is no agent.
pub(super) fn named(path: &Path) -> Result<Found, ArtifactError> {
    match path.metadata() {
        Err(source) => Err(ArtifactError::Unreadable { path: path.to_owned(), source }),
        Ok(_) => {
            let found = inspect(path.to_owned(), Source::Environment, "a Java agent", |_| true);
            found.map_err(|error| match error {
                ArtifactError::NotTheJar { path, .. } => ArtifactError::NotAnAgent { path },
                error => error,
            })
        }
    }
}

/// Where a fetched agent is kept, in toll's cache folder.
pub(super) fn cached_at(cache: &Path) -> PathBuf {
    cache.join(format!("opentelemetry-javaagent-{VERSION}.jar"))
}

/// An agent's manifest names the class by which it enters a JVM; its version may be missing.
fn inspect(
    path: PathBuf,
    source: Source,
    what: &'static str,
    is_it: impl Fn(&str) -> bool,
) -> Result<Found, ArtifactError> {
    let path = std::path::absolute(&path).unwrap_or(path);
    let manifest = Manifest::of(&path);
    let entry = manifest.as_ref().and_then(|manifest| manifest.value("Premain-Class"));
    let Some(manifest) = manifest.filter(|_| entry.is_some_and(|entry| is_it(&entry))) else {
        return Err(ArtifactError::NotTheJar { path, what });
    };
    let version = manifest.value("Implementation-Version");
    Found::new(path, version.unwrap_or_else(|| "without a version".to_owned()), source)
}
