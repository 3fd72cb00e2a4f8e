//! A tracing agent inside of each JVM. Each agent is one module that says where it looks for its file and what the lab
//! writes into it; all else is the study's.

pub(super) mod claims;
mod easeagent;
pub(crate) mod jvms;
pub(crate) mod launch;
mod manner;
mod opentelemetry;
mod properties;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, absolute};
use std::time::Duration;

use launch::Launch;
use manner::BATCH_DELAY_MS;

use crate::LabError;
use crate::artifacts::{Artifact, Artifacts, Lacking};
use crate::deployment::{AgentKind, DataPlane, Deployment, JavaAgent, Service};
use crate::programs::collector;
use crate::topology::Topology;

/// The agent's jar.
///
/// # Errors
/// When the lab was given none.
pub(crate) fn jar<'a>(agent: &'a JavaAgent, artifacts: &'a Artifacts) -> Result<&'a Path, Lacking> {
    match &agent.kind {
        AgentKind::OpenTelemetry => artifacts.path(Artifact::OpenTelemetry),
        AgentKind::EaseAgent { jar } => Ok(jar),
    }
}

/// The same, with a path of the agent's jar that holds in every folder.
pub(crate) fn with_absolute_jar(mut deployment: Deployment) -> Deployment {
    if let DataPlane::Agent(agent) = &mut deployment.data_plane
        && let AgentKind::EaseAgent { jar } = &mut agent.kind
        && let Ok(path) = absolute(&*jar)
    {
        *jar = path;
    }
    deployment
}

/// What the agent in `jar` adds to the JVMs of a deployment, by pod; `folder` is the run's.
///
/// # Errors
/// When there is no collector for its spans, a path cannot be written as an option, or the study sets what the lab must.
pub(crate) fn launches(
    deployment: &Deployment,
    agent: &JavaAgent,
    topology: &Topology,
    jar: &Path,
    folder: &Path,
) -> Result<Vec<(String, Launch)>, LabError> {
    let collector = SocketAddr::V4(collector::address(deployment, topology)?);
    let launch = |(pod, service): (String, &Service)| {
        let name = &service.name;
        let manner = match agent.kind {
            AgentKind::OpenTelemetry => opentelemetry::manner(name, collector),
            AgentKind::EaseAgent { .. } => easeagent::manner(name, collector),
        };
        Ok((pod, Launch::new(agent, &manner, jar, name, folder)?))
    };
    let pods = deployment.pods().into_iter().filter(|(_, s)| s.program.takes_agent());
    pods.map(launch).collect()
}

impl JavaAgent {
    /// How long the agent keeps a span at most before it sends it.
    pub fn batch_delay(&self) -> Duration {
        let setting = match self.kind {
            AgentKind::OpenTelemetry => opentelemetry::BATCH_DELAY,
            AgentKind::EaseAgent { .. } => easeagent::BATCH_DELAY,
        };
        let asked = self.settings.get(setting).and_then(|value| value.trim().parse().ok());
        Duration::from_millis(asked.unwrap_or(BATCH_DELAY_MS))
    }

    /// What to do when it is loaded and sends nothing.
    pub fn when_silent(&self) -> &'static str {
        match self.kind {
            AgentKind::OpenTelemetry => opentelemetry::WHEN_SILENT,
            AgentKind::EaseAgent { .. } => easeagent::WHEN_SILENT,
        }
    }
}
