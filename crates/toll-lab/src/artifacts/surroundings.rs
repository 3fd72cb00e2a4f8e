//! Where artifacts are looked for, and what programs say of themselves.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use super::artifact::Artifact;
use super::error::ArtifactError;

/// Where artifacts are looked for.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    /// What variables name.
    pub(super) named: BTreeMap<Artifact, PathBuf>,
    /// The variable `PATH`.
    pub(super) path: OsString,
    /// toll's folder in the user's cache; none when the user has no home.
    pub(super) cache: Option<PathBuf>,
    /// Where the system's packages put each version of PostgreSQL.
    pub(super) system_postgres: PathBuf,
    /// Where the system's packages put servers, which only root has on `PATH`.
    pub(super) system_programs: PathBuf,
    /// Folders below which toll's own builds may be, the nearest first.
    pub(super) builds: Vec<PathBuf>,
}

impl Surroundings {
    pub(super) fn of_this_process() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let named = |artifact: Artifact| Some((artifact, variable(artifact.variable())?.into()));
        Self {
            named: Artifact::NAMED.into_iter().filter_map(named).collect(),
            path: variable("PATH").unwrap_or_default(),
            cache: Xdg::new().ok().map(|folders| folders.cache_dir().join("toll")),
            system_postgres: "/usr/lib/postgresql".into(),
            system_programs: "/usr/sbin".into(),
            builds: folders_of_builds(),
        }
    }

    /// toll's folder in the user's cache.
    ///
    /// # Errors
    /// When the user has no home.
    pub(super) fn cache(&self) -> Result<&Path, ArtifactError> {
        self.cache.as_deref().ok_or(ArtifactError::NoCacheFolder)
    }

    /// The program that the artifact's variable names, if it is set.
    ///
    /// # Errors
    /// When it names nothing that can be run.
    pub(super) fn named_program(
        &self,
        artifact: Artifact,
    ) -> Result<Option<PathBuf>, ArtifactError> {
        let named = self.named.get(&artifact);
        named.map(|path| runnable(artifact.variable(), path)).transpose()
    }

    /// The file that the artifact's variable names, if it is set.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn named_file(&self, artifact: Artifact) -> Result<Option<PathBuf>, ArtifactError> {
        let there = |path: &PathBuf| match path.metadata() {
            Ok(_) => Ok(path.clone()),
            Err(source) => {
                let (variable, path) = (artifact.variable(), path.clone());
                Err(ArtifactError::NamedButAbsent { variable, path, source })
            }
        };
        self.named.get(&artifact).map(there).transpose()
    }

    /// The first executable file of this name on `PATH`.
    pub(super) fn on_path(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path).map(|dir| dir.join(name)).find(|path| is_executable(path))
    }
}

/// The current folder, then all folders above toll's own program.
fn folders_of_builds() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    let above = program.ancestors().skip(1).map(Path::to_owned);
    std::env::current_dir().into_iter().chain(above).collect()
}

/// The program that `variable` leads to.
///
/// # Errors
/// When there is none, or it cannot be run.
pub(super) fn runnable(variable: &'static str, path: &Path) -> Result<PathBuf, ArtifactError> {
    match path.metadata() {
        Err(source) => {
            Err(ArtifactError::NamedButAbsent { variable, path: path.to_owned(), source })
        }
        Ok(_) if is_executable(path) => Ok(path.to_owned()),
        Ok(_) => Err(ArtifactError::NotExecutable { variable, path: path.to_owned() }),
    }
}

/// What `program` prints with `argument`, on stdout and stderr together.
pub(super) fn said_by(program: &Path, argument: &str) -> Result<String, ArtifactError> {
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| ArtifactError::DoesNotRun { path: program.to_owned(), source })?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The number before the first point of a version.
pub(super) fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
