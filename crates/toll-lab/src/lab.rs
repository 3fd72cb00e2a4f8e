//! The seam: a place where deployments come up. What is above knows no namespaces, pids or cgroups.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::environment::Environment;
use crate::fake::FakeLab;
use crate::local::{Isolation, LocalLab};
use crate::{Deployment, LabError};

/// What the lab on this machine is made with.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The isolation level; the best possible one when none.
    pub isolation: Option<Isolation>,
    /// The built-in service's program and first arguments; it takes `--config FILE` and `probe ...`.
    pub service: Vec<OsString>,
    /// The load program and its arguments: JSON plans on stdin, a line each, and JSON lines on stdout.
    pub load: Vec<OsString>,
    /// The Envoy binary; needed for deployments with sidecars or gateways.
    pub envoy: Option<PathBuf>,
    /// The folder with PostgreSQL's server programs; needed for deployments with databases.
    pub postgres: Option<PathBuf>,
    /// The nginx binary; needed for services of nginx.
    pub nginx: Option<PathBuf>,
    /// The MongoDB server; needed for an airline on MongoDB.
    pub mongo: Option<MongoServer>,
    /// How long the certificates of external services and their callers hold.
    pub certificate_lifetime: Duration,
    /// The Java runtime; needed for services of the Spring runtime.
    pub java: Option<PathBuf>,
    /// The jar of the built-in service's Spring form; it takes `--config FILE`.
    pub spring: Option<PathBuf>,
    /// The jar of the Petclinic's gateway; it takes `--config FILE`.
    pub petclinic_gateway: Option<PathBuf>,
    /// The jar of the Petclinic's vets; it takes `--config FILE`.
    pub petclinic_vets: Option<PathBuf>,
    /// The jar of the OpenTelemetry Java agent.
    pub opentelemetry: Option<PathBuf>,
    /// The collector's program and first arguments; it takes `--listen ADDRESS --admin SOCKET`.
    pub collector: Vec<OsString>,
    /// Whether all processes of the lab run as `SCHED_RR`, which starves what else the machine does.
    pub realtime: bool,
    /// Holds a folder for each environment. Its path must be short: sockets are below it.
    pub work_dir: PathBuf,
    /// Set when the user wants to leave: whoever waits for a deployment to come up stops waiting.
    pub interrupt: Arc<AtomicBool>,
}

/// A server of MongoDB's wire protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MongoServer {
    /// `mongod` itself.
    Mongod(PathBuf),
    /// The jar of toll's server around mongo-java-server, a stand-in; it needs a Java runtime.
    StandIn(PathBuf),
}

impl LocalOptions {
    /// How long certificates hold unless somebody wants to see them expire.
    pub const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

    /// Programs run in folders of their own, where relative paths would lead elsewhere.
    fn with_absolute_paths(mut self) -> Self {
        let named = [
            &mut self.java,
            &mut self.spring,
            &mut self.petclinic_gateway,
            &mut self.petclinic_vets,
            &mut self.opentelemetry,
        ];
        match &mut self.mongo {
            Some(MongoServer::Mongod(path) | MongoServer::StandIn(path)) => *path = absolute(path),
            None => {}
        }
        for path in named.into_iter().flatten().chain([&mut self.work_dir]) {
            *path = absolute(path);
        }
        self
    }
}

/// The same path from the current folder on, if there is one.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// One file that the lab would write for a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// File name, unique in the deployment.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// A place where deployments come up.
#[derive(Debug)]
pub enum Lab {
    /// This machine.
    Local(Box<LocalLab>),
    /// No processes at all: for tests of what uses a lab.
    Fake(FakeLab),
}

impl Lab {
    /// This machine as a lab; removes what killed runs left on it.
    ///
    /// # Errors
    /// When a forced isolation level or real-time scheduling is not possible, or leftovers cannot be removed.
    pub fn local(options: LocalOptions) -> Result<Self, LabError> {
        LocalLab::new(options.with_absolute_paths()).map(|lab| Self::Local(Box::new(lab)))
    }

    /// How far apart the pods are; `None` where that is not this machine's affair.
    pub fn isolation(&self) -> Option<Isolation> {
        match self {
            Self::Local(lab) => Some(lab.isolation()),
            Self::Fake(_) => None,
        }
    }

    /// Whether no other environment can be up beside one of `deployment`: all pods share the machine's network, and
    /// a program of the user's own has a port there that only its author can change.
    pub fn stands_alone(&self, deployment: &Deployment) -> bool {
        match self {
            Self::Local(lab) => lab.stands_alone(deployment),
            // As on the smallest machine.
            Self::Fake(_) => deployment.has_fixed_ports(),
        }
    }

    /// What the report's manifest says about the lab, in order.
    pub fn facts(&self) -> Vec<(String, String)> {
        match self {
            Self::Local(lab) => lab.facts(),
            Self::Fake(_) => vec![("isolation".to_owned(), "fake".to_owned())],
        }
    }

    /// What the report's manifest says about how this lab starts the programs of `deployment`, in order.
    ///
    /// # Errors
    /// When the deployment asks for what the lab does not have.
    pub fn facts_of(&self, deployment: &Deployment) -> Result<Vec<(String, String)>, LabError> {
        match self {
            Self::Local(lab) => lab.facts_of(deployment),
            Self::Fake(_) => Ok(Vec::new()),
        }
    }

    /// What a report from this lab cannot show, one sentence each.
    pub fn lacks(&self) -> Vec<String> {
        match self {
            Self::Local(lab) => lab.lacks(),
            Self::Fake(_) => vec!["no traffic: all numbers are made up".to_owned()],
        }
    }

    /// The files that `deployment` would come up with. Touches nothing.
    ///
    /// # Errors
    /// When the deployment asks for what the lab does not have.
    pub fn render(&self, deployment: &Deployment) -> Result<Vec<Rendered>, LabError> {
        match self {
            Self::Local(lab) => lab.render(deployment),
            Self::Fake(lab) => Ok(lab.render(deployment)),
        }
    }

    /// Brings `deployment` up and waits, up to a bound, until it answers; each process logs to a file in `logs`.
    ///
    /// # Errors
    /// When a step fails; what was made until then is removed.
    pub fn up(&self, deployment: &Deployment, logs: &Path) -> Result<Environment, LabError> {
        match self {
            Self::Local(lab) => lab.up(deployment, logs).map(Environment::local),
            Self::Fake(lab) => Ok(Environment::fake(lab.up(deployment))),
        }
    }
}
