//! Turns a tracing agent into what a JVM is given at its start: one environment variable and one file of settings.
//!
//! It starts nothing and writes nothing. The variable is `JAVA_TOOL_OPTIONS`, which every JVM reads, so that a
//! program of the user's own that runs one gets the agent, too:
//! <https://docs.oracle.com/en/java/javase/17/docs/specs/jvmti.html#tooloptions>. Each agent is one module that
//! says where it looks for its file and what the lab writes into it; all else is the study's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::DataPlaneError;
use crate::deployment::{AgentKind, JavaAgent};

mod easeagent;
mod opentelemetry;
mod properties;
#[cfg(test)]
mod tests;

/// The variable that every JVM takes options from.
const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// Milliseconds after which an agent sends its spans at the latest, unless a study says otherwise: the spans of a
/// round are to arrive soon after it.
const BATCH_DELAY_MS: u64 = 200;

/// What the JVMs of one service are started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Variables, by name.
    pub environment: Vec<(String, OsString)>,
    /// Files that must be there before they start, and their texts.
    pub files: Vec<(PathBuf, String)>,
    /// How variables begin that they must not inherit: an agent reads them, and they would outdo its file.
    pub withheld: &'static [&'static str],
}

/// How an agent wants to be told things.
struct Manner {
    /// The system property that names its file.
    file_property: &'static str,
    /// Settings that a study cannot change: who the service is, and where the collector is.
    fixed: Vec<(&'static str, String)>,
    /// Settings that a study may change.
    defaults: Vec<(&'static str, String)>,
    /// As [`Launch::withheld`].
    variables: &'static [&'static str],
}

/// What the JVMs of `service` are started with; `folder` is the run's, and `opentelemetry` the jar of that agent.
///
/// # Errors
/// When there is no jar, its path cannot be written as an option, or the study sets what the lab must.
pub(crate) fn launch(
    agent: &JavaAgent,
    opentelemetry: Option<&Path>,
    service: &str,
    collector: SocketAddr,
    folder: &Path,
) -> Result<Launch, DataPlaneError> {
    let manner = match agent.kind {
        AgentKind::OpenTelemetry => opentelemetry::manner(service, collector),
        AgentKind::EaseAgent { .. } => easeagent::manner(service, collector),
    };
    let file = folder.join(format!("{service}.agent.properties"));
    let options = [
        option(&["-javaagent:".as_ref(), jar(agent, opentelemetry)?.as_os_str()])?,
        option(&["-D".as_ref(), manner.file_property.as_ref(), "=".as_ref(), file.as_os_str()])?,
    ];
    let settings = manner.settings(&agent.settings)?;
    Ok(Launch {
        environment: vec![(OPTIONS.to_owned(), options.join(" ").into())],
        files: vec![(file, properties::text(&settings))],
        withheld: manner.variables,
    })
}

/// The agent's jar.
///
/// # Errors
/// When the lab was given none.
pub(crate) fn jar<'a>(
    agent: &'a JavaAgent,
    opentelemetry: Option<&'a Path>,
) -> Result<&'a Path, DataPlaneError> {
    match &agent.kind {
        AgentKind::OpenTelemetry => opentelemetry.ok_or(DataPlaneError::AgentJarMissing),
        AgentKind::EaseAgent { jar } => Ok(jar),
    }
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
}

impl Launch {
    /// Gives `command` the agent; `inherited` is the environment that it would have otherwise.
    ///
    /// Options for JVMs in that environment stay: the variants without an agent have them, too.
    pub(crate) fn equip(
        &self,
        command: &mut Command,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) {
        let mut before = None;
        for (name, value) in inherited {
            if self.withheld.iter().any(|start| begins(&name, start)) {
                command.env_remove(&name);
            }
            before = if name == OPTIONS { Some(value) } else { before };
        }
        for (name, value) in &self.environment {
            let before = before.as_ref().filter(|_| name == OPTIONS);
            let parts: Vec<&OsStr> = before.into_iter().chain([value]).map(AsRef::as_ref).collect();
            command.env(name, parts.join(OsStr::new(" ")));
        }
    }
}

fn begins(name: &OsStr, start: &str) -> bool {
    name.as_encoded_bytes().starts_with(start.as_bytes())
}

impl Manner {
    /// All settings, those of the study over the defaults.
    fn settings(
        &self,
        study: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, DataPlaneError> {
        if let Some((name, _)) = self.fixed.iter().find(|(name, _)| study.contains_key(*name)) {
            return Err(DataPlaneError::AgentSettingFixed { name });
        }
        let own = self.defaults.iter().chain(&self.fixed);
        let mut settings: BTreeMap<String, String> =
            own.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        settings.extend(study.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(settings)
    }
}

/// One option, as a JVM splits the variable: at blanks that are not in quotes, and without an escape.
fn option(parts: &[&OsStr]) -> Result<String, DataPlaneError> {
    let text = parts.join(OsStr::new(""));
    let path = || DataPlaneError::AgentPath { path: text.clone().into() };
    let text = text.to_str().ok_or_else(path)?;
    // Whatever follows a second `=` would be the agent's argument.
    let holds_argument = text.starts_with("-javaagent:") && text.contains('=');
    match (text.contains('\''), text.contains('"')) {
        _ if holds_argument => Err(path()),
        (true, true) => Err(path()),
        (true, false) => Ok(format!("\"{text}\"")),
        (false, _) if text.contains(|c: char| c.is_whitespace() || c == '"') => {
            Ok(format!("'{text}'"))
        }
        (false, _) => Ok(text.to_owned()),
    }
}
