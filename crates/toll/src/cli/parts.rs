//! Turns a plan into the parts that its deployments need: found, or fetched and said so.

use std::path::{Path, PathBuf};

use toll_lab::parts::{self, Fetch, Part, PartError, Source};
use toll_lab::{DataPlane, Deployment, Program, Runtime};

use super::talk::{CliError, say};
use crate::plan::Plan;

/// The parts of a run; those that no deployment needs are left out.
#[derive(Default)]
pub struct Parts {
    envoy: Option<Part>,
    postgres: Option<Part>,
    java: Option<Part>,
    spring: Option<Part>,
}

impl Parts {
    /// Finds what the plan needs, and fetches what is nowhere.
    ///
    /// # Errors
    /// The first part that cannot be had.
    pub fn of(plan: &Plan) -> Result<Self, CliError> {
        let needs = |need: fn(&Deployment) -> bool| plan.ready().any(|(_, d)| need(d));
        let found = |needed: bool, find: &dyn Fn() -> Result<Part, PartError>| {
            needed.then(find).transpose()
        };
        let spring = needs(has_spring);
        Ok(Self {
            envoy: found(needs(has_proxies), &|| fetched(ENVOY, parts::envoy))?,
            postgres: found(needs(has_databases), &|| fetched(POSTGRES, parts::postgres))?,
            java: found(spring, &parts::java).map_err(CliError::RuntimeSkipped)?,
            spring: found(spring, &parts::spring).map_err(CliError::RuntimeSkipped)?,
        })
    }

    /// Each with what the report calls it.
    pub fn labelled(&self) -> Vec<(&'static str, Part)> {
        let labels = ["Envoy", "PostgreSQL", "Java", "Spring Boot"];
        let parts = [&self.envoy, &self.postgres, &self.java, &self.spring];
        labels.into_iter().zip(parts).filter_map(|(l, part)| Some((l, part.clone()?))).collect()
    }

    /// Its program.
    pub fn envoy(&self) -> Option<PathBuf> {
        path(&self.envoy)
    }

    /// The folder of its programs.
    pub fn postgres(&self) -> Option<PathBuf> {
        path(&self.postgres).as_deref().and_then(Path::parent).map(Path::to_owned)
    }

    /// Its program.
    pub fn java(&self) -> Option<PathBuf> {
        path(&self.java)
    }

    /// Its jar.
    pub fn spring(&self) -> Option<PathBuf> {
        path(&self.spring)
    }
}

const ENVOY: &str = "fetching Envoy into the user's cache (once, about 30 MB)";
const POSTGRES: &str = "fetching PostgreSQL into the user's cache (once, about 15 MB)";

/// A fetch takes seconds, so it is announced.
fn fetched(
    announcement: &str,
    find: fn(Fetch) -> Result<Part, PartError>,
) -> Result<Part, PartError> {
    match find(Fetch::Forbidden) {
        Err(PartError::Missing { .. }) | Ok(Part { source: Source::System, .. }) => {}
        found => return found,
    }
    say(announcement);
    let found = find(Fetch::Allowed)?;
    if found.source == Source::System {
        let (path, version) = (found.path.display(), &found.version);
        say(&format!("it could not be fetched here: going on with {path}, version {version}"));
    }
    Ok(found)
}

fn path(part: &Option<Part>) -> Option<PathBuf> {
    part.as_ref().map(|part| part.path.clone())
}

fn has_proxies(deployment: &Deployment) -> bool {
    let is_gateway = |program: &Program| matches!(program, Program::Gateway);
    matches!(deployment.data_plane, DataPlane::Sidecar { .. }) || has(deployment, is_gateway)
}

fn has_databases(deployment: &Deployment) -> bool {
    has(deployment, Program::is_database)
}

fn has_spring(deployment: &Deployment) -> bool {
    has(
        deployment,
        |program| matches!(program, Program::BuiltIn(built_in) if built_in.runtime == Runtime::Spring),
    )
}

fn has(deployment: &Deployment, which: impl Fn(&Program) -> bool) -> bool {
    deployment.services.iter().any(|service| which(&service.program))
}
