//! The programs and jars that toll drives and does not contain, where each is, and what is said of one that is not
//! there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Artifact {
    /// The proxy.
    Envoy,
    /// Istio's node proxy.
    Ztunnel,
    /// The database server: its program, beside which are the others.
    Postgres,
    /// The web server.
    Nginx,
    /// MongoDB's server.
    Mongod,
    /// The jar of the server that stands in MongoDB's place.
    MongoStandIn,
    /// The Java runtime.
    Java,
    /// The jar of the built-in service's Spring form.
    Spring,
    /// The jar of the Petclinic's gateway.
    PetclinicGateway,
    /// The jar of the Petclinic's vets.
    PetclinicVets,
    /// The jar of the OpenTelemetry Java agent.
    OpenTelemetry,
    /// The jar of EaseAgent, which studies name.
    EaseAgent,
}

impl Artifact {
    /// Those that a variable can name.
    pub(super) const NAMED: [Self; 11] = [
        Self::Envoy,
        Self::Ztunnel,
        Self::Postgres,
        Self::Nginx,
        Self::Mongod,
        Self::MongoStandIn,
        Self::Java,
        Self::Spring,
        Self::PetclinicGateway,
        Self::PetclinicVets,
        Self::OpenTelemetry,
    ];

    /// What reports call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Envoy => "Envoy",
            Self::Ztunnel => "ztunnel",
            Self::Postgres => "PostgreSQL",
            Self::Nginx => "nginx",
            Self::Mongod => "MongoDB",
            Self::MongoStandIn => "mongo-java-server (in MongoDB's place)",
            Self::Java => "Java",
            Self::Spring => "Spring Boot",
            Self::PetclinicGateway => "Spring Boot of the gateway",
            Self::PetclinicVets => "Spring Boot of vets",
            Self::OpenTelemetry => "OpenTelemetry Java agent",
            Self::EaseAgent => "EaseAgent",
        }
    }

    /// The environment variable that names one; of a Java runtime its home, of PostgreSQL the folder of its programs.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Envoy => "ENVOY",
            Self::Ztunnel => "ZTUNNEL",
            Self::Postgres => "POSTGRES",
            Self::Nginx => "NGINX",
            Self::Mongod => "MONGOD",
            Self::MongoStandIn => "TOLL_MONGO",
            Self::Java => "JAVA_HOME",
            Self::Spring => "TOLL_SPRING",
            Self::PetclinicGateway => "TOLL_PETCLINIC_GATEWAY",
            Self::PetclinicVets => "TOLL_PETCLINIC_VETS",
            Self::OpenTelemetry => "OPENTELEMETRY_JAVAAGENT",
            Self::EaseAgent => "none",
        }
    }

    /// Where it was looked for in vain.
    pub(super) fn where_it_is_not(self) -> &'static str {
        match self {
            Self::Envoy => "envoy is neither named by a variable, nor on PATH, nor in the cache",
            Self::Ztunnel => "ztunnel is neither named by a variable nor on PATH",
            Self::Postgres => {
                "PostgreSQL is neither named by a variable, nor in the cache, nor among the system's packages"
            }
            Self::Nginx => {
                "nginx is neither named by a variable, nor on PATH, nor among the system's programs"
            }
            Self::Java => "java is neither below JAVA_HOME nor on PATH",
            Self::Spring => "the Spring service is neither named by a variable nor built",
            Self::PetclinicGateway => {
                "the Petclinic's gateway is neither named by a variable nor built"
            }
            Self::PetclinicVets => "the Petclinic's vets is neither named by a variable nor built",
            Self::OpenTelemetry => {
                "the OpenTelemetry Java agent is neither named by a variable nor in the cache"
            }
            Self::EaseAgent => "EaseAgent is not named by a study",
            Self::Mongod => "mongod is neither named by a variable nor on PATH",
            Self::MongoStandIn => {
                "the server in MongoDB's place is neither named by a variable nor built"
            }
        }
    }

    /// How to get it.
    pub(super) fn how_to_get_it(self) -> String {
        let text = match self {
            Self::Envoy => {
                "`toll doctor --fetch` brings it; or set ENVOY to a binary that you have"
            }
            Self::Ztunnel => {
                "set ZTUNNEL to a ztunnel as released; without one Envoy stands in its place"
            }
            Self::Postgres => {
                "`toll doctor --fetch` brings it; or set POSTGRES to the folder of a server's programs"
            }
            Self::Nginx => "apt-get install nginx-light, or set NGINX to a binary that you have",
            Self::Java => "apt-get install openjdk-17-jre-headless, or set JAVA_HOME",
            Self::OpenTelemetry => {
                "`toll doctor --fetch` brings it; or set OPENTELEMETRY_JAVAAGENT to a jar that you have"
            }
            Self::EaseAgent => "name its jar in the study",
            Self::Mongod => {
                "set MONGOD to a binary that you have; without one toll's own server stands in its place"
            }
            Self::Spring | Self::PetclinicGateway | Self::PetclinicVets => {
                return self.built_in("spring");
            }
            Self::MongoStandIn => return self.built_in("mongo"),
        };
        text.to_owned()
    }

    fn built_in(self, project: &str) -> String {
        let variable = self.variable();
        format!(
            "in toll's sources: mvn -q -B -f services/{project}/pom.xml package; or set {variable} to the jar"
        )
    }
}

/// A lab was not given what a deployment needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.absence())]
pub struct Lacking(pub Artifact);

impl Artifact {
    fn absence(self) -> &'static str {
        match self {
            Self::Envoy => "there is no Envoy binary",
            Self::Ztunnel => "there is no ztunnel",
            Self::Postgres => "there is no PostgreSQL",
            Self::Nginx => "there is no nginx",
            Self::Mongod | Self::MongoStandIn => "there is no MongoDB server",
            Self::Java => "there is no Java runtime",
            Self::Spring => "the Spring form of the built-in service has not been built",
            Self::PetclinicGateway => "the Petclinic's gateway has not been built",
            Self::PetclinicVets => "the Petclinic's vets has not been built",
            Self::OpenTelemetry => "there is no OpenTelemetry Java agent",
            Self::EaseAgent => "there is no EaseAgent",
        }
    }
}

impl Lacking {
    /// What the user can do about it.
    pub fn help(self) -> &'static str {
        match self.0 {
            Artifact::Envoy => "run `toll doctor`: it says how to get Envoy",
            Artifact::Postgres => "run `toll doctor --fetch`: it brings PostgreSQL",
            Artifact::Nginx => "apt-get install nginx-light, or set NGINX to a binary",
            Artifact::Mongod | Artifact::MongoStandIn => {
                "set MONGOD to a `mongod`, or run `toll doctor`: it says how to get the stand-in"
            }
            Artifact::Java | Artifact::Spring => {
                "run `toll doctor`: it says how to get it; built-in services do without by `--runtime native`"
            }
            Artifact::OpenTelemetry => "run `toll doctor --fetch`: it brings the agent",
            Artifact::Ztunnel
            | Artifact::PetclinicGateway
            | Artifact::PetclinicVets
            | Artifact::EaseAgent => "run `toll doctor`: it says how to get it",
        }
    }
}

/// Where each artifact of a lab is.
#[derive(Debug, Clone, Default)]
pub struct Artifacts(BTreeMap<Artifact, PathBuf>);

impl Artifacts {
    /// Uses what is at `path`, which is kept as seen from the current folder: programs run in folders of their own.
    pub fn put(&mut self, artifact: Artifact, path: impl Into<PathBuf>) {
        let path = path.into();
        self.0.insert(artifact, std::path::absolute(&path).unwrap_or(path));
    }

    /// Goes without.
    pub fn remove(&mut self, artifact: Artifact) {
        self.0.remove(&artifact);
    }

    /// Where it is.
    pub fn get(&self, artifact: Artifact) -> Option<&Path> {
        self.0.get(&artifact).map(PathBuf::as_path)
    }

    /// Where it is.
    ///
    /// # Errors
    /// When it was not given.
    pub fn path(&self, artifact: Artifact) -> Result<&Path, Lacking> {
        self.get(artifact).ok_or(Lacking(artifact))
    }
}
