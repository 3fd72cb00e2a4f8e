//! Turns a plan into the parts that its deployments need: found, or fetched and said so.

use std::path::{Path, PathBuf};

use toll_lab::parts::{self, Fetch, Part, PartError, Source};
use toll_lab::{
    AgentKind, DataPlane, DatabaseServer, Deployment, MongoServer, NodeProxy, PetclinicPart,
    Program, Runtime,
};

use super::talk::{CliError, say, with_causes};
use crate::plan::Plan;

/// The parts of a run; those that no deployment needs are left out.
#[derive(Default)]
pub struct Parts {
    envoy: Option<Part>,
    ztunnel: Option<Part>,
    postgres: Option<Part>,
    nginx: Option<Part>,
    mongod: Option<Part>,
    mongo_stand_in: Option<Part>,
    java: Option<Part>,
    spring: Option<Part>,
    petclinic_gateway: Option<Part>,
    petclinic_vets: Option<Part>,
    opentelemetry: Option<Part>,
    easeagent: Option<Part>,
    /// Variants of which something that others do without cannot be had: their agent, or their SNI proxy.
    lacking: Vec<(String, PartError)>,
}

impl Parts {
    /// Finds what the plan needs, and fetches what is nowhere. A variant's agent or SNI proxy may be missing; what
    /// all variants need may not.
    ///
    /// # Errors
    /// The first part that cannot be had.
    pub fn of(plan: &Plan) -> Result<Self, CliError> {
        let needs = |need: fn(&Deployment) -> bool| plan.ready().any(|(_, d)| need(d));
        let found = |needed: bool, find: &dyn Fn() -> Result<Part, PartError>| {
            needed.then(find).transpose()
        };
        let (gateway, vets) = (needs(has_petclinic_gateway), needs(has_petclinic_vets));
        let petclinic = gateway || vets;
        let spring = needs(has_spring);
        let (mongod, mongo_stand_in) =
            if needs(has_mongo) { mongo_server()? } else { (None, None) };
        let skipped = if petclinic { CliError::PetclinicSkipped } else { CliError::RuntimeSkipped };
        let ztunnel = plan.ready().find_map(|(_, deployment)| ztunnel_of(deployment));
        let mut parts = Self {
            ztunnel: ztunnel.map(parts::ztunnel_at).transpose()?,
            envoy: found(needs(has_proxies), &|| fetched(ENVOY, parts::envoy))?,
            postgres: found(needs(has_postgres), &|| {
                fetched(POSTGRES, postgres_for(needs(has_external_postgres)))
            })?,
            nginx: found(needs(has_nginx), &parts::nginx)?,
            java: match mongo_stand_in {
                Some(_) => Some(parts::java()?),
                None => found(spring || petclinic, &parts::java).map_err(skipped)?,
            },
            mongod,
            mongo_stand_in,
            spring: found(spring, &parts::spring).map_err(CliError::RuntimeSkipped)?,
            petclinic_gateway: found(gateway, &parts::petclinic_gateway)
                .map_err(CliError::PetclinicSkipped)?,
            petclinic_vets: found(vets, &parts::petclinic_vets)
                .map_err(CliError::PetclinicSkipped)?,
            ..Self::default()
        };
        for (variant, deployment) in plan.ready() {
            parts.find_agent(variant, deployment);
            parts.find_sni_proxy(variant, deployment);
        }
        Ok(parts)
    }

    fn find_agent(&mut self, variant: &str, deployment: &Deployment) {
        let DataPlane::Agent(agent) = &deployment.data_plane else { return };
        let (slot, found) = match &agent.kind {
            AgentKind::OpenTelemetry => {
                (&mut self.opentelemetry, fetched(OPENTELEMETRY, parts::opentelemetry))
            }
            AgentKind::EaseAgent { jar } => (&mut self.easeagent, parts::java_agent(jar)),
        };
        match found {
            Ok(part) => *slot = Some(part),
            Err(error) => self.lacking.push((variant.to_owned(), error)),
        }
    }

    fn find_sni_proxy(&mut self, variant: &str, deployment: &Deployment) {
        if !deployment.data_plane.egress_gateway().is_some_and(|gateway| gateway.sni_proxy) {
            return;
        }
        match parts::sni_proxy() {
            Ok(part) => self.nginx = Some(part),
            Err(error) => self.lacking.push((variant.to_owned(), error)),
        }
    }

    /// The variants that cannot run here, each with the reason and what to do about it.
    pub fn unavailable(&self) -> Vec<(String, String)> {
        let reason = |error: &PartError| match error.help() {
            Some(help) => format!("{}; {help}", with_causes(error)),
            None => with_causes(error),
        };
        self.lacking.iter().map(|(variant, error)| (variant.clone(), reason(error))).collect()
    }

    /// These parts, if no variant lacks anything.
    ///
    /// # Errors
    /// Why the last variant's part cannot be had.
    pub fn complete(mut self) -> Result<Self, CliError> {
        match self.lacking.pop() {
            Some((_, error)) => Err(error.into()),
            None => Ok(self),
        }
    }

    /// Each with what the report calls it.
    pub fn labelled(&self) -> Vec<(&'static str, Part)> {
        let labelled = [
            ("Envoy", &self.envoy),
            ("ztunnel", &self.ztunnel),
            ("PostgreSQL", &self.postgres),
            ("nginx", &self.nginx),
            ("MongoDB", &self.mongod),
            ("mongo-java-server (in MongoDB's place)", &self.mongo_stand_in),
            ("Java", &self.java),
            ("Spring Boot", &self.spring),
            ("Spring Boot of the gateway", &self.petclinic_gateway),
            ("Spring Boot of vets", &self.petclinic_vets),
            ("OpenTelemetry Java agent", &self.opentelemetry),
            ("EaseAgent", &self.easeagent),
        ];
        labelled.into_iter().filter_map(|(l, part)| Some((l, part.clone()?))).collect()
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
    pub fn nginx(&self) -> Option<PathBuf> {
        path(&self.nginx)
    }

    /// The one that was found.
    pub fn mongo(&self) -> Option<MongoServer> {
        let mongod = path(&self.mongod).map(MongoServer::Mongod);
        mongod.or_else(|| path(&self.mongo_stand_in).map(MongoServer::StandIn))
    }

    /// Its program.
    pub fn java(&self) -> Option<PathBuf> {
        path(&self.java)
    }

    /// Its jar.
    pub fn spring(&self) -> Option<PathBuf> {
        path(&self.spring)
    }

    /// Its jar.
    pub fn petclinic_gateway(&self) -> Option<PathBuf> {
        path(&self.petclinic_gateway)
    }

    /// Its jar.
    pub fn petclinic_vets(&self) -> Option<PathBuf> {
        path(&self.petclinic_vets)
    }

    /// Its jar.
    pub fn opentelemetry(&self) -> Option<PathBuf> {
        path(&self.opentelemetry)
    }
}

const ENVOY: &str = "fetching Envoy into the user's cache (once, about 30 MB)";
const POSTGRES: &str = "fetching PostgreSQL into the user's cache (once, about 15 MB)";
const OPENTELEMETRY: &str =
    "fetching the OpenTelemetry Java agent into the user's cache (once, about 25 MB)";

/// MongoDB's own server where there is one, else the one that stands in its place.
fn mongo_server() -> Result<(Option<Part>, Option<Part>), PartError> {
    match parts::mongod() {
        Ok(mongod) => Ok((Some(mongod), None)),
        Err(PartError::Missing { .. }) => Ok((None, Some(parts::mongo_stand_in()?))),
        Err(error) => Err(error),
    }
}

fn postgres_for(external: bool) -> fn(Fetch) -> Result<Part, PartError> {
    if external { parts::external_postgres } else { parts::postgres }
}

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
    let data_plane = match &deployment.data_plane {
        DataPlane::Sidecar { .. } => true,
        DataPlane::Ambient(ambient) => ambient.proxy == NodeProxy::Envoy || ambient.waypoint,
        DataPlane::Bare | DataPlane::Agent(_) => false,
    };
    data_plane || has(deployment, is_gateway)
}

/// The ztunnel that the plan was made for.
fn ztunnel_of(deployment: &Deployment) -> Option<&Path> {
    match &deployment.data_plane.ambient()?.proxy {
        NodeProxy::Ztunnel { binary } => Some(binary),
        NodeProxy::Envoy => None,
    }
}

fn has_postgres(deployment: &Deployment) -> bool {
    let inside = has(deployment, |program| matches!(program, Program::Postgres(_)));
    inside || has_external_postgres(deployment)
}

fn has_external_postgres(deployment: &Deployment) -> bool {
    has(deployment, |program| asks(program, DatabaseServer::Postgres))
}

fn has_mongo(deployment: &Deployment) -> bool {
    has(deployment, |program| asks(program, DatabaseServer::MongoDb))
}

fn asks(program: &Program, server: DatabaseServer) -> bool {
    matches!(program, Program::AirlineDatabase(database) if database.server == server)
}

fn has_nginx(deployment: &Deployment) -> bool {
    has(deployment, |program| matches!(program, Program::Nginx(_)))
}

fn has_spring(deployment: &Deployment) -> bool {
    has(
        deployment,
        |program| matches!(program, Program::BuiltIn(built_in) if built_in.runtime == Runtime::Spring),
    )
}

fn has_petclinic_gateway(deployment: &Deployment) -> bool {
    has(deployment, |program| plays(program, PetclinicPart::Gateway))
}

fn has_petclinic_vets(deployment: &Deployment) -> bool {
    has(deployment, |program| plays(program, PetclinicPart::Vets))
}

fn plays(program: &Program, part: PetclinicPart) -> bool {
    matches!(program, Program::Petclinic(petclinic) if petclinic.part == part)
}

fn has(deployment: &Deployment, which: impl Fn(&Program) -> bool) -> bool {
    deployment.services.iter().any(|service| which(&service.program))
}
