//! What deployments need of the artifacts: more than that one is there.

use std::path::PathBuf;

use super::artifact::{Artifact, Artifacts, Lacking};
use super::error::ArtifactError;
use super::found::{Fetch, Found};
use super::surroundings::Surroundings;
use super::{agent, built, envoy, java, mongod, nginx, postgres, ztunnel};

/// What a deployment needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// MongoDB's server, else the one that stands in its place and a Java runtime for that.
    MongoDb,
    /// The ztunnel at this path, which a plan was made for.
    Ztunnel(PathBuf),
    /// Any that there is.
    Artifact(Artifact),
    /// A PostgreSQL that speaks TLS from the first byte on: version 17 or later.
    PostgresWithTls,
    /// An nginx that passes connections on and reads the names in TLS.
    SniProxy,
    /// The jar of an agent that a study names.
    JavaAgent(PathBuf),
}

impl Need {
    /// What it takes, each with where it was found.
    ///
    /// # Errors
    /// When something of it cannot be had, or is not what is needed.
    pub fn find(&self, fetch: Fetch) -> Result<Vec<(Artifact, Found)>, ArtifactError> {
        let around = Surroundings::of_this_process();
        let (artifact, found) = match self {
            Self::MongoDb => match mongod::find(&around) {
                Err(ArtifactError::Missing(_)) => {
                    let stand_in = (Artifact::MongoStandIn, built::STAND_IN.find(&around)?);
                    return Ok(vec![stand_in, (Artifact::Java, java::find(&around)?)]);
                }
                found => (Artifact::Mongod, found),
            },
            Self::Ztunnel(path) => (Artifact::Ztunnel, ztunnel::at(path)),
            Self::Artifact(artifact) => (*artifact, find(*artifact, &around, fetch)),
            Self::PostgresWithTls => (Artifact::Postgres, postgres::find_external(&around, fetch)),
            Self::SniProxy => (Artifact::Nginx, nginx::find_sni_proxy(&around)),
            Self::JavaAgent(jar) => (Artifact::EaseAgent, agent::named(jar)),
        };
        Ok(vec![(artifact, found?)])
    }

    /// Whether a study goes on without the variants that need it, when it cannot be had.
    pub fn is_of_one_variant(&self) -> bool {
        let opentelemetry = Self::Artifact(Artifact::OpenTelemetry);
        matches!(self, Self::SniProxy | Self::JavaAgent(_)) || *self == opentelemetry
    }

    /// Whether these artifacts have it; a deployment itself leads to what its study names.
    ///
    /// # Errors
    /// What they lack.
    pub(crate) fn check(&self, artifacts: &Artifacts) -> Result<(), Lacking> {
        let has = |artifact| artifacts.path(artifact).map(drop);
        match self {
            Self::MongoDb if has(Artifact::Mongod).is_ok() => Ok(()),
            Self::MongoDb => has(Artifact::MongoStandIn).and_then(|()| has(Artifact::Java)),
            Self::Artifact(artifact) => has(*artifact),
            Self::PostgresWithTls => has(Artifact::Postgres),
            Self::SniProxy => has(Artifact::Nginx),
            Self::Ztunnel(_) | Self::JavaAgent(_) => Ok(()),
        }
    }
}

impl Artifact {
    /// Finds one: named by its variable, on `PATH`, in the user's cache, among the system's packages, or fetched.
    ///
    /// # Errors
    /// When there is none and none can be brought, or the one that there is does not run or will not do.
    pub fn find(self, fetch: Fetch) -> Result<Found, ArtifactError> {
        find(self, &Surroundings::of_this_process(), fetch)
    }
}

fn find(artifact: Artifact, around: &Surroundings, fetch: Fetch) -> Result<Found, ArtifactError> {
    match artifact {
        Artifact::Envoy => envoy::find(around, fetch),
        Artifact::Ztunnel => ztunnel::find(around),
        Artifact::Postgres => postgres::find(around, fetch),
        Artifact::Nginx => nginx::find(around),
        Artifact::Mongod => mongod::find(around),
        Artifact::MongoStandIn => built::STAND_IN.find(around),
        Artifact::Java => java::find(around),
        Artifact::Spring => built::NODE.find(around),
        Artifact::PetclinicGateway => built::GATEWAY.find(around),
        Artifact::PetclinicVets => built::VETS.find(around),
        Artifact::OpenTelemetry => agent::opentelemetry(around, fetch),
        Artifact::EaseAgent => Err(ArtifactError::Missing(artifact)),
    }
}

/// One line of `toll doctor`.
#[derive(Debug)]
pub struct ArtifactStatus {
    /// Its name.
    pub name: &'static str,
    /// The version that toll is made for.
    pub wanted: &'static str,
    /// What is there, or why nothing is; the error's help says how to bring it.
    pub found: Result<Found, ArtifactError>,
}

/// What is there of all artifacts. Fetches nothing.
pub fn statuses() -> Vec<ArtifactStatus> {
    let around = Surroundings::of_this_process();
    let status = |name, wanted, found| ArtifactStatus { name, wanted, found };
    let of =
        |name, wanted, artifact| status(name, wanted, find(artifact, &around, Fetch::Forbidden));
    vec![
        of("envoy", envoy::VERSION, Artifact::Envoy),
        of("ztunnel", ztunnel::WANTED, Artifact::Ztunnel),
        of("postgres", postgres::VERSION, Artifact::Postgres),
        of("nginx", nginx::WANTED, Artifact::Nginx),
        status("sni-proxy", "nginx with `stream`", nginx::find_sni_proxy(&around)),
        of("mongod", mongod::WANTED, Artifact::Mongod),
        of("toll-mongo", "of these sources", Artifact::MongoStandIn),
        of("java", "17 or later", Artifact::Java),
        of("spring", "of these sources", Artifact::Spring),
        of("gateway", "of these sources", Artifact::PetclinicGateway),
        of("vets", "of these sources", Artifact::PetclinicVets),
        of("otel-agent", agent::VERSION, Artifact::OpenTelemetry),
    ]
}
