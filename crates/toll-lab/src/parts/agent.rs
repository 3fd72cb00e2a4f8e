//! Finds the jars of tracing agents for JVMs, and checks that what was found is one.

use std::path::{Path, PathBuf};

use super::error::MissingPart;
use super::jar::{self, Jar};
use super::manifest::Manifest;
use super::{Fetch, Part, PartError, Source, Surroundings, part};

/// The version of the OpenTelemetry Java agent that toll fetches.
pub(super) const VERSION: &str = "2.33.1";

/// The variable that names another one.
pub(super) const VARIABLE: &str = "OPENTELEMETRY_JAVAAGENT";

/// The project's own release.
const JAR: Jar = Jar {
    group: "io.opentelemetry.javaagent",
    artifact: "opentelemetry-javaagent",
    version: VERSION,
    sha256: "e43a270df53c6f423e0ab157be9c27ccc01d5dc3232e162fe54777573db2f149",
    variable: VARIABLE,
    or: "set OPENTELEMETRY_JAVAAGENT to the agent's jar",
};

/// The class by which that agent enters a JVM.
const OPENTELEMETRY: &str = "io.opentelemetry.javaagent.OpenTelemetryAgent";

/// Looks for the variable's and the cache's, then fetches.
///
/// # Errors
/// See [`super::opentelemetry`].
pub(super) fn opentelemetry(around: &Surroundings, fetch: Fetch) -> Result<Part, PartError> {
    let is_it = |entry: &str| entry == OPENTELEMETRY;
    let inspect =
        |path: PathBuf, source| inspect(path, source, "the OpenTelemetry Java agent", is_it);
    if let Some(path) = around.jars.get(VARIABLE) {
        if let Err(source) = path.metadata() {
            let path = path.clone();
            return Err(PartError::NamedButAbsent { variable: VARIABLE, path, source });
        }
        return inspect(path.clone(), Source::Environment);
    }
    let cache = around.cache.as_deref().ok_or(PartError::NoCacheFolder)?;
    let cached = cached_at(cache);
    if cached.is_file() {
        return inspect(cached, Source::Cache);
    }
    match fetch {
        Fetch::Forbidden => Err(PartError::Missing { part: MissingPart::OpenTelemetry }),
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
pub(super) fn named(path: &Path) -> Result<Part, PartError> {
    match path.metadata() {
        Err(source) => Err(PartError::Unreadable { path: path.to_owned(), source }),
        Ok(_) => inspect(path.to_owned(), Source::Environment, "a Java agent", |_| true),
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
) -> Result<Part, PartError> {
    let path = std::path::absolute(&path).unwrap_or(path);
    let manifest = Manifest::of(&path);
    let entry = manifest.as_ref().and_then(|manifest| manifest.value("Premain-Class"));
    let Some(manifest) = manifest.filter(|_| entry.is_some_and(|entry| is_it(&entry))) else {
        return Err(PartError::NotTheJar { path, part: what });
    };
    let version = manifest.value("Implementation-Version");
    part(path, version.unwrap_or_else(|| "without a version".to_owned()), source)
}
