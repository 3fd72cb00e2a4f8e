//! Finds and runs the system's own programs that the lab needs. Fetches nothing.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::HostError;
use super::process::Launcher;
use super::spawn::SpawnContext;

/// Where system programs are that an ordinary user's `PATH` often leaves out.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// One of these programs, ready to run again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool<'a> {
    /// Starts it.
    pub(crate) launcher: &'a Launcher,
    /// Its name.
    pub(crate) program: &'static str,
    /// Its arguments.
    pub(crate) args: &'a [&'a str],
}

impl Tool<'_> {
    /// What it prints when it runs in `context`, the network of `pod`, with `script` on its stdin.
    ///
    /// # Errors
    /// When it is not there, or fails: then what it says.
    pub(crate) fn run(
        &self,
        pod: &str,
        context: &SpawnContext,
        script: &str,
    ) -> Result<String, HostError> {
        let program = self.program;
        let failed = |message| HostError::Tool { program, pod: pod.to_owned(), message };
        let missing = || failed(format!("the program `{program}` is not installed"));
        let path = find(program).ok_or_else(missing)?;
        let mut command = Command::new(path);
        command.args(self.args);
        context.apply(&mut command).map_err(|e| failed(e.to_string()))?;
        let output = self.launcher.run(command, script).map_err(|e| failed(e.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// The program of this name, from `PATH` first.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    program.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_the_path_is_found_and_a_made_up_one_is_not() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-of-toll"), None);
    }
}
