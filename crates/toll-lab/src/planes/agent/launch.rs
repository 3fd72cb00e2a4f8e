//! What a JVM is given at its start for an agent: one environment variable and one file of settings.
//!
//! The variable is `JAVA_TOOL_OPTIONS`, which every JVM reads, so that a program of the user's own that runs one gets the
//! agent, too: <https://docs.oracle.com/en/java/javase/17/docs/specs/jvmti.html#tooloptions>.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::manner::Manner;
use super::properties;
use crate::deployment::JavaAgent;
use crate::error::DataPlaneError;
use crate::output::Rendered;

/// The variable that every JVM takes options from.
const OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// What the JVMs of one service are started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    /// Variables, by name.
    pub environment: Vec<(String, OsString)>,
    /// Files that must be there before they start, and their texts.
    pub files: Vec<(PathBuf, String)>,
    /// Folders that must be there before they start.
    pub folders: Vec<PathBuf>,
    /// How variables begin that they must not inherit: an agent reads them, and they would outdo its file.
    pub withheld: &'static [&'static str],
}

impl Launch {
    /// Of the JVMs of `service`, with the agent in `jar`; `folder` is the run's.
    ///
    /// # Errors
    /// When a path cannot be written as an option, or the study sets what the lab must.
    pub(super) fn new(
        agent: &JavaAgent,
        manner: &Manner,
        jar: &Path,
        service: &str,
        folder: &Path,
    ) -> Result<Self, DataPlaneError> {
        let file = folder.join(format!("{service}.agent.properties"));
        let property = manner.file_property.as_ref();
        let mut options = vec![
            option(&["-javaagent:".as_ref(), jar.as_os_str()])?,
            option(&["-D".as_ref(), property, "=".as_ref(), file.as_os_str()])?,
        ];
        let folders: Vec<PathBuf> = manner
            .leaves_folders
            .then(|| folder.join(format!("{service}.tmp")))
            .into_iter()
            .collect();
        for folder in &folders {
            options.push(option(&["-Djava.io.tmpdir=".as_ref(), folder.as_os_str()])?);
        }
        let mut settings = manner.settings(&agent.settings)?;
        for name in manner.of_the_jvm {
            if let Some(value) = settings.remove(*name) {
                options.push(option(&[format!("-D{name}={value}").as_ref()])?);
            }
        }
        Ok(Self {
            environment: vec![(OPTIONS.to_owned(), options.join(" ").into())],
            files: vec![(file, properties::text(&settings))],
            folders,
            withheld: manner.variables,
        })
    }

    /// As a reader sees it: the variables, `NAME=value` a line, and the files.
    pub(crate) fn rendered(&self, pod: &str) -> Vec<Rendered> {
        let line =
            |(name, value): &(String, OsString)| format!("{name}={}\n", value.to_string_lossy());
        let text = self.environment.iter().map(line).collect();
        let variables = Rendered { name: format!("{pod}.environment"), text };
        let file = |(path, text): &(PathBuf, String)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Rendered { name, text: text.clone() }
        };
        [variables].into_iter().chain(self.files.iter().map(file)).collect()
    }

    /// Gives `command` the agent; `inherited` is the environment that it would have otherwise.
    ///
    /// Options for JVMs in that environment stay, unless `command` goes without: the variants without an agent have
    /// them, too.
    pub(crate) fn equip(
        &self,
        command: &mut Command,
        inherited: impl IntoIterator<Item = (OsString, OsString)>,
    ) {
        let removed = command.get_envs().filter(|(_, value)| value.is_none());
        let removed: Vec<OsString> = removed.map(|(name, _)| name.to_owned()).collect();
        let mut before = None;
        for (name, value) in inherited.into_iter().filter(|(name, _)| !removed.contains(name)) {
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

/// One option, as a JVM splits the variable: at blanks that are not in quotes, and without an escape.
pub(super) fn option(parts: &[&OsStr]) -> Result<String, DataPlaneError> {
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
