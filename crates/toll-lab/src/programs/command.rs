//! A program of the user's own.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::LabError;
use crate::host::spawn::Start;
use crate::host::tools;
use crate::topology::Site;

/// The addresses of the called services are in the environment: there are no names in a pod's network.
///
/// # Errors
/// When the study names no program, or it calls a service that is not there.
pub(super) fn start(site: &Site<'_>, argv: &[String]) -> Result<Start, LabError> {
    let (program, arguments) = argv.split_first().ok_or_else(|| LabError::Start {
        component: site.pod.pod.clone(),
        program: PathBuf::new(),
        source: io::ErrorKind::InvalidInput.into(),
    })?;
    let mut command = Command::new(program);
    command.args(arguments);
    for callee in &site.service.calls {
        let addresses: Vec<_> =
            site.addresses_of(callee)?.iter().map(ToString::to_string).collect();
        command.env(call_variable(callee), addresses.join(","));
    }
    Ok(Start { is_verbose: true, ..Start::new(program.into(), command) })
}

/// The files that decide what it does: the program, and each file that a word of its arguments names, such as the script
/// that an interpreter runs.
pub(super) fn files(argv: &[String]) -> Vec<PathBuf> {
    let Some((program, arguments)) = argv.split_first() else { return Vec::new() };
    let program = if program.contains('/') { Some(program.into()) } else { tools::find(program) };
    let words = arguments.iter().flat_map(|argument| argument.split_ascii_whitespace());
    let named = words.map(PathBuf::from).filter(|path| path.is_file());
    program.into_iter().chain(named).collect()
}

/// `TOLL_CALL_` and the service's name in capitals.
fn call_variable(callee: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOLL_CALL_{}", callee.chars().map(capital).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_called_service_is_named_by_a_variable_that_a_shell_can_read() {
        assert_eq!(call_variable("name-db.v2"), "TOLL_CALL_NAME_DB_V2");
    }

    #[test]
    fn a_script_counts_among_the_files_of_a_program_also_where_a_shell_starts_it() {
        let script = tempfile::NamedTempFile::new().unwrap();
        let path = script.path().to_str().unwrap();
        assert_eq!(files(&["sh".into(), path.into()])[1..], [script.path()]);
        assert_eq!(
            files(&["sh".into(), "-c".into(), format!("exec {path} 1")])[1..],
            [script.path()]
        );
        assert_eq!(
            files(&["./shop".into(), "--port".into(), "80".into()]),
            [PathBuf::from("./shop")]
        );
    }
}
