//! The programs that play services: a module each, and for each thing that a lab must know of a program one function
//! that asks them all. What a program is by nature, its role for instance, is [`Program`]'s own.

pub(crate) mod airline;
mod built_in;
pub(crate) mod collector;
mod command;
mod config;
pub(crate) mod databases;
pub(crate) mod gateway;
pub(crate) mod handshake;
mod jvm;
pub(crate) mod nginx;
mod petclinic;
pub(crate) mod postgres;
mod rows;
pub(crate) mod running;

use std::path::{Path, PathBuf};

use nginx::status::AnswerCounter;
use postgres::template::Template;
use running::Running;

use crate::LabError;
use crate::artifacts::{Artifact, Artifacts, Need};
use crate::claim::{Asked, Claim, LeftOut};
use crate::deployment::{BuiltIn, Database, DatabaseServer, Deployment, Program, Runtime, Service};
use crate::envoy::plan::ProxyPlan;
use crate::error::{DataPlaneError, KubernetesError};
use crate::evidence::DatabaseSnapshot;
use crate::host::files;
use crate::host::isolation::Isolation;
use crate::host::ports;
use crate::host::spawn::Start;
use crate::image;
use crate::options::LocalOptions;
use crate::output::Rendered;
use crate::proof::expected::{Expected, KnownCalls};
use crate::proof::window::Window;
use crate::topology::Site;

/// What `program` needs of the artifacts.
pub(crate) fn needs(program: &Program) -> Vec<Need> {
    let artifacts = match program {
        Program::BuiltIn(_) | Program::Petclinic(_) => {
            jar(program).map_or(Vec::new(), |(jar, _)| vec![Artifact::Java, jar])
        }
        Program::Gateway => vec![Artifact::Envoy],
        Program::Nginx(_) => vec![Artifact::Nginx],
        Program::Postgres(_) => vec![Artifact::Postgres],
        Program::AirlineDatabase(database) => return vec![airline::database::need(*database)],
        Program::Command(_) | Program::Airline(_) | Program::Collector => Vec::new(),
    };
    artifacts.into_iter().map(Need::Artifact).collect()
}

/// Whether what there is can play `service`.
///
/// # Errors
/// Why it cannot.
pub(crate) fn check(service: &Service, artifacts: &Artifacts) -> Result<(), LabError> {
    match service.program.database() {
        Some(Database::Airline(airline)) => airline::database::check(service, airline, artifacts),
        Some(Database::Seeded(_)) | None => Ok(()),
    }
}

/// The jar that plays it and the size of its JVM; none where that is no JVM of toll's.
fn jar(program: &Program) -> Option<(Artifact, jvm::Size)> {
    match program {
        Program::BuiltIn(built_in) => built_in::jar(built_in),
        Program::Petclinic(petclinic) => Some(petclinic::jar(petclinic)),
        Program::Command(_)
        | Program::Gateway
        | Program::Postgres(_)
        | Program::Nginx(_)
        | Program::Airline(_)
        | Program::AirlineDatabase(_)
        | Program::Collector => None,
    }
}

/// The files of a program of the user's own, which may be others at the next start.
pub(crate) fn files_of_user(program: &Program) -> Vec<PathBuf> {
    match program {
        Program::Command(program) => command::files(program),
        Program::BuiltIn(_)
        | Program::Gateway
        | Program::Postgres(_)
        | Program::Petclinic(_)
        | Program::Nginx(_)
        | Program::Airline(_)
        | Program::AirlineDatabase(_)
        | Program::Collector => Vec::new(),
    }
}

/// What the report's manifest says about how `service` will be played, the same in all variants.
pub(crate) fn fact(service: &Service) -> Option<(String, String)> {
    let (_, size) = jar(&service.program)?;
    Some((format!("JVM flags of {}", service.name), jvm::flags(size).join(" ")))
}

/// The file that tells the program at `site` what to do: its path, and its text. None where it has none, or what it has
/// is another's.
///
/// # Errors
/// When it calls a service that is not there.
fn configuration(site: &Site<'_>) -> Result<Option<(PathBuf, String)>, LabError> {
    let json = |text| (site.file("service.json"), text);
    Ok(match &site.service.program {
        Program::BuiltIn(built_in) => Some(json(built_in::config(site, built_in)?)),
        Program::Petclinic(_) => Some(json(petclinic::config(site)?)),
        Program::Airline(airline) => Some(json(airline::config(site, airline)?)),
        Program::Nginx(_) => Some(nginx::configuration(site)),
        Program::Command(_)
        | Program::Gateway
        | Program::Postgres(_)
        | Program::AirlineDatabase(_)
        | Program::Collector => None,
    })
}

/// That file, as a reader sees it; of a program of the user's own its command line and environment.
///
/// # Errors
/// When it calls a service that is not there.
pub(crate) fn rendered(site: &Site<'_>) -> Result<Option<Rendered>, LabError> {
    if let Program::Command(program) = &site.service.program {
        return command::rendered(site, program).map(Some);
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = configuration(site)?;
    Ok(file.map(|(path, text)| Rendered { name: name(&path), text }))
}

/// The Envoy that plays the service at `site`; none where another program does.
pub(crate) fn proxy(site: Site<'_>) -> Option<Result<ProxyPlan, DataPlaneError>> {
    (site.service.program == Program::Gateway).then(|| gateway::plan(site))
}

/// What programs are started from beside their site.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Supplies<'a> {
    pub(crate) options: &'a LocalOptions,
    pub(crate) isolation: Isolation,
    /// What databases are copies of.
    pub(crate) template: Option<&'a Template>,
}

/// Writes what the program at `site` needs, and tells how it is started; none where a proxy plays the service.
///
/// # Errors
/// When something of it is not there, or cannot be written.
pub(crate) fn start(site: &Site<'_>, supplies: Supplies<'_>) -> Result<Option<Start>, LabError> {
    let Supplies { options, isolation, template } = supplies;
    let artifacts = &options.artifacts;
    Ok(Some(match &site.service.program {
        Program::BuiltIn(_) | Program::Petclinic(_) | Program::Airline(_) => {
            configured(site, options)?
        }
        Program::Command(program) => command::start(site, program)?,
        Program::Nginx(page) => nginx::start(site, *page, artifacts)?,
        Program::Postgres(_) => postgres::start(site, template, isolation)?,
        Program::AirlineDatabase(database) => {
            airline::database::start(site, *database, artifacts, (template, isolation))?
        }
        Program::Collector => collector::start(site, options),
        Program::Gateway => return Ok(None),
    }))
}

/// How a program runs in a container of toll's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contained {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Its files and their texts.
    pub(crate) files: Vec<(PathBuf, String)>,
}

/// The program at `site` in a container; none where a proxy plays the service.
///
/// # Errors
/// When it calls a service that is not there, or cannot be in a container yet.
pub(crate) fn contained(site: &Site<'_>) -> Result<Option<Contained>, LabError> {
    let not_yet = |what: &str| {
        let what = format!("the service `{}` ({what})", site.service.name);
        Err(KubernetesError::NotYet { what }.into())
    };
    if site.service.external.is_some() {
        return not_yet("outside of the mesh");
    }
    match &site.service.program {
        Program::BuiltIn(BuiltIn { runtime: Runtime::Spring, .. }) | Program::Petclinic(_) => {
            not_yet("on a JVM")
        }
        Program::BuiltIn(_) | Program::Airline(_) => {
            let file = configuration(site)?.expect("toll's own programs have a configuration");
            let words = [image::TOLL, "service", "--config"].map(str::to_owned);
            let command = words.into_iter().chain([file.0.display().to_string()]).collect();
            Ok(Some(Contained { command, files: vec![file] }))
        }
        Program::Nginx(page) => Ok(Some(nginx::contained(site, *page))),
        Program::Gateway => Ok(None),
        Program::Command(_) => not_yet("a program of your own"),
        Program::Postgres(_) | Program::AirlineDatabase(_) => not_yet("a database"),
        Program::Collector => not_yet("a collector of spans"),
    }
}

/// One of toll's own programs, which takes its configuration by its first option.
fn configured(site: &Site<'_>, options: &LocalOptions) -> Result<Start, LabError> {
    let mut start = match jar(&site.service.program) {
        None => Start::of_words(&options.service),
        Some((jar, size)) => {
            let jvm = jvm::Jvm {
                jar: options.artifacts.path(jar)?,
                size,
                archive: site.deployment.collector().is_none(),
            };
            jvm.start(options.artifacts.path(Artifact::Java)?, site.dir)
        }
    };
    if let Some((path, text)) = configuration(site)? {
        files::write(&path, text)?;
        start.command.arg("--config").arg(path);
    }
    Ok(start)
}

/// What a server of `program` leaves behind when it is killed, if anything.
pub(crate) fn data_directory(site: &Site<'_>) -> Option<PathBuf> {
    is_postgres(&site.service.program).then(|| postgres::data_directory(site))
}

/// Whether databases of this deployment are copies of a template.
pub(crate) fn needs_template(deployment: &Deployment) -> bool {
    deployment.services.iter().any(|service| is_postgres(&service.program))
}

fn is_postgres(program: &Program) -> bool {
    program.database().is_some_and(|database| database.server() == DatabaseServer::Postgres)
}

/// Whether it does what it is there for.
///
/// # Errors
/// When a probe gives no result.
pub(crate) fn is_ready(running: &Running<'_>) -> Result<bool, LabError> {
    let service = running.site.service;
    if let Program::Command(program) = &service.program {
        return command::is_ready(running, program);
    }
    match service.program.database() {
        Some(Database::Seeded(_)) => Ok(postgres::is_ready(&running.site)),
        Some(Database::Airline(airline)) => airline::database::is_ready(running, airline),
        None => Ok(ports::listens(running.pid, service.port)),
    }
}

/// Puts into it what it holds at first.
///
/// # Errors
/// When it does not take that.
pub(crate) fn fill(running: &Running<'_>) -> Result<(), LabError> {
    match running.site.service.program.database() {
        Some(Database::Seeded(postgres)) => postgres::seed(running, postgres),
        Some(Database::Airline(_)) => airline::database::fill(running),
        None => Ok(()),
    }
}

/// What a database says of itself; none of what is no database, or does not answer the lab any more.
///
/// # Errors
/// When it does not answer as it should.
pub(crate) fn database_snapshot(
    running: &Running<'_>,
) -> Result<Option<DatabaseSnapshot>, LabError> {
    match running.site.service.program.database() {
        Some(Database::Seeded(postgres)) => postgres::snapshot(running, postgres).map(Some),
        Some(Database::Airline(airline)) => airline::database::snapshot(running, airline),
        None => Ok(None),
    }
}

/// The count of what it answers, where it keeps one.
///
/// # Errors
/// When a socket's path is too long.
pub(crate) fn answer_counter(site: &Site<'_>) -> Result<Option<AnswerCounter>, DataPlaneError> {
    site.service.program.counts_answers().then(|| nginx::counter(site)).transpose()
}

/// What clients offer it in ALPN, over TLS of its own.
pub(crate) fn handshake_protocol(program: &Program) -> Option<&'static str> {
    match program.database()? {
        Database::Airline(airline) => airline::database::handshake_protocol(airline),
        Database::Seeded(_) => None,
    }
}

/// The requests of a window, followed along the calls of its deployment.
pub(crate) fn expected<'a>(seen: &Window<'a>) -> Expected<'a> {
    Expected::new(seen, known_calls(seen.deployment, &seen.traffic.asked))
}

/// Calls of programs that call by what the entry was asked for.
fn known_calls<'a>(deployment: &'a Deployment, asked: &[Asked]) -> KnownCalls<'a> {
    airline::calls::known_calls(deployment, asked)
}

/// What a database is asked for.
fn operations(program: &Program) -> &'static str {
    match program.database() {
        Some(Database::Airline(_)) => "operations",
        Some(Database::Seeded(_)) | None => "queries",
    }
}

/// Bytes without which nothing can be asked of a database; 0 of what is none.
pub(crate) fn least_operation_bytes(program: &Program) -> u64 {
    match program.database() {
        Some(Database::Seeded(_)) => postgres::LEAST_OF_STATEMENT,
        Some(Database::Airline(airline)) => airline::database::least_operation_bytes(airline),
        None => 0,
    }
}

/// Rows made by writes, against what the load sent and got acknowledged; an error says why that is not judged.
fn written_claims(seen: &Window<'_>, database: &Service) -> Result<Vec<Claim>, LeftOut> {
    let name = &database.name;
    match database.program.database() {
        Some(Database::Airline(_)) => Ok(airline::claims::booking_claims(seen, name)),
        Some(Database::Seeded(postgres)) => match (&postgres.written, seen.traffic.writes) {
            (Some(_), _) => Ok(postgres::claims::row_claims(seen, name)),
            (None, 0) => Ok(Vec::new()),
            (None, _) => Err(LeftOut::Rows { database: name.clone() }),
        },
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::deployment::UserProgram;
    use crate::{fixture, topology};

    #[test]
    fn a_program_of_the_users_own_has_flags_of_its_own() {
        let [gateway, ..] = &fixture::petclinic().services[..] else { unreachable!() };
        let (what, flags) = fact(gateway).unwrap();
        assert_eq!(what, "JVM flags of gateway");
        assert!(flags.starts_with("-Xms128m -Xmx128m"), "{flags}");
        let own =
            Service { program: Program::Command(UserProgram::of(["java"])), ..gateway.clone() };
        assert_eq!(fact(&own), None);
    }

    /// The configuration of what is in `pod`, in pods.
    pub(super) fn config_of(deployment: &Deployment, pod: &str) -> String {
        config_at(deployment, Isolation::Pods, pod)
    }

    pub(super) fn config_at(deployment: &Deployment, isolation: Isolation, pod: &str) -> String {
        let topology = topology::plan(deployment, isolation, []);
        let site = Site::of_pod(deployment, &topology, Path::new("/run/toll/lab"), pod);
        rendered(&site.unwrap()).unwrap().unwrap().text
    }
}
