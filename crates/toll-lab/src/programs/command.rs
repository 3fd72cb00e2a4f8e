//! A program of the user's own: its command line and its environment, with everything filled in.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::running::Running;
use crate::LabError;
use crate::deployment::{ReadySign, UserProgram};
use crate::host::ports;
use crate::host::spawn::Start;
use crate::host::tools;
use crate::output::Rendered;
use crate::probe::Speech;
use crate::topology::Site;

/// How it is started.
///
/// # Errors
/// When the study names no program, or it calls a service that is not there.
pub(super) fn start(site: &Site<'_>, program: &UserProgram) -> Result<Start, LabError> {
    let Line { path, arguments, variables, .. } = Line::of(site, program)?;
    let mut command = Command::new(&path);
    command.args(arguments).envs(variables);
    if !program.directory.as_os_str().is_empty() {
        command.current_dir(&program.directory);
    }
    Ok(Start { is_verbose: true, ..Start::new(path, command) })
}

/// What a reader of the plan sees: the folder, the variables that toll sets, and the command line, as a shell takes them.
///
/// # Errors
/// As [`start`].
pub(super) fn rendered(site: &Site<'_>, program: &UserProgram) -> Result<Rendered, LabError> {
    let line = Line::of(site, program)?;
    let folder = Some(&program.directory).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map(|folder| format!("cd {}", quoted(&folder.to_string_lossy())));
    let variables = line.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let words = [&line.name].into_iter().chain(&line.arguments).map(|word| quoted(word));
    let command = words.collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = folder.into_iter().chain(variables).chain([command]).collect();
    Ok(Rendered { name: format!("{}.command", site.pod.pod), text: lines.join("\n") + "\n" })
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| format!("{word:?}"), Into::into)
}

/// A command line and the variables of its environment.
struct Line {
    /// The program as the study has it.
    name: String,
    /// What is started.
    path: PathBuf,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Line {
    fn of(site: &Site<'_>, program: &UserProgram) -> Result<Self, LabError> {
        let places = Places::of(site)?;
        let mut words = program.argv.iter().map(|word| places.filled_in(word));
        let name = words.next().ok_or_else(|| LabError::Start {
            component: site.pod.pod.clone(),
            program: PathBuf::new(),
            source: io::ErrorKind::InvalidInput.into(),
        })?;
        let arguments = words.collect();
        let of_study = program.env.iter();
        let of_study = of_study.map(|(name, value)| (name.clone(), places.filled_in(value)));
        let variables = places.variables().chain(of_study).collect();
        Ok(Self { path: path_of(&name, &program.directory), name, arguments, variables })
    }
}

/// A program with a slash in its name is a file, whose path follows the study's; one without is looked for in `PATH`.
fn path_of(name: &str, directory: &Path) -> PathBuf {
    if name.contains('/') { directory.join(name) } else { name.into() }
}

/// Where a program listens, and where it finds what it calls.
struct Places {
    host: String,
    port: u16,
    /// Of each service that it calls, by name: those of all its pods.
    callees: Vec<(String, Vec<String>)>,
    /// Which it asks for them by their names.
    http_proxy: Option<SocketAddrV4>,
}

impl Places {
    fn of(site: &Site<'_>) -> Result<Self, LabError> {
        let by_name = site.http_proxy().is_some();
        let addresses = |callee: &String| {
            if by_name {
                let port = site.topology.pods_of(callee)?[0].app_port;
                return Ok((callee.clone(), vec![format!("{callee}:{port}")]));
            }
            let of = site.addresses_of(callee)?;
            Ok((callee.clone(), of.iter().map(ToString::to_string).collect()))
        };
        let callees = site.service.calls.iter().map(addresses);
        let callees = callees.collect::<Result<_, LabError>>()?;
        let listens_at = site.listens_at();
        let http_proxy = site.http_proxy();
        Ok(Self { host: listens_at.ip().to_string(), port: listens_at.port(), callees, http_proxy })
    }

    /// There are no names in a pod's network, so addresses are told.
    fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let callees = self.callees.iter();
        let callees = callees.map(|(name, of)| (call_variable(name), of.join(",")));
        let proxy = self.http_proxy.map(|at| ("http_proxy".to_owned(), format!("http://{at}")));
        [("PORT".to_owned(), self.port.to_string())].into_iter().chain(callees).chain(proxy)
    }

    fn filled_in(&self, text: &str) -> String {
        let text = text.replace("{port}", &self.port.to_string()).replace("{host}", &self.host);
        self.callees.iter().fold(text, |text, (name, addresses)| {
            let urls: Vec<String> = addresses.iter().map(|at| format!("http://{at}")).collect();
            let text = text.replace(&format!("{{address.{name}}}"), &addresses.join(","));
            text.replace(&format!("{{url.{name}}}"), &urls.join(","))
        })
    }
}

/// Whether the sign is there that it is ready.
///
/// # Errors
/// When a probe gives no result.
pub(super) fn is_ready(running: &Running<'_>, program: &UserProgram) -> Result<bool, LabError> {
    let (pid, port) = (running.pid, running.site.service.port);
    match program.ready.as_ref().map(|ready| &ready.sign) {
        None | Some(ReadySign::Listens) => Ok(ports::listens(pid, port)),
        Some(ReadySign::ListensOn(other)) => Ok(ports::listens(pid, *other)),
        Some(ReadySign::Answers { .. }) if !ports::listens(pid, port) => Ok(false),
        Some(ReadySign::Answers { path, status }) => {
            let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            let answer = running.prober.probe(&running.inside, at, Speech::Get(path))?;
            Ok(answer.status == Some(*status))
        }
    }
}

/// The files that decide what it does: the program, and each file that a word of its arguments names, such as the script
/// that an interpreter runs.
pub(super) fn files(program: &UserProgram) -> Vec<PathBuf> {
    let Some((name, arguments)) = program.argv.split_first() else { return Vec::new() };
    let path = match name.contains('/') {
        true => Some(path_of(name, &program.directory)),
        false => tools::find(name),
    };
    let words = arguments.iter().flat_map(|argument| argument.split_ascii_whitespace());
    let named = words.map(|word| program.directory.join(word)).filter(|path| path.is_file());
    path.into_iter().chain(named).collect()
}

/// `TOLL_CALL_` and the service's name in capitals.
fn call_variable(callee: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOLL_CALL_{}", callee.chars().map(capital).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::{Deployment, Program};
    use crate::fixture;
    use crate::host::isolation::Isolation;
    use crate::topology;

    #[test]
    fn a_called_service_is_named_by_a_variable_that_a_shell_can_read() {
        assert_eq!(call_variable("name-db.v2"), "TOLL_CALL_NAME_DB_V2");
    }

    #[test]
    fn a_script_counts_among_the_files_of_a_program_also_where_a_shell_starts_it() {
        let script = tempfile::NamedTempFile::new().unwrap();
        let (folder, path) = (script.path().parent().unwrap(), script.path().to_str().unwrap());
        let name = script.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(files(&UserProgram::of(["sh", path]))[1..], [script.path()]);
        let line = format!("exec {path} 1");
        assert_eq!(files(&UserProgram::of(["sh", "-c", &line]))[1..], [script.path()]);
        let program = UserProgram::of(["./shop", "--port", "80"]);
        assert_eq!(files(&program), [PathBuf::from("./shop")]);
        let directory = folder.to_owned();
        let relative = UserProgram { directory, ..UserProgram::of(["sh", name]) };
        assert_eq!(files(&relative)[1..], [script.path()]);
    }

    /// The first of two services of a chain, as this program.
    fn chain_of(program: UserProgram) -> Deployment {
        let mut deployment = fixture::chain();
        deployment.services[0].program = Program::Command(program);
        deployment
    }

    #[test]
    fn placeholders_are_filled_in_and_other_braces_stay() {
        let program = UserProgram {
            argv: ["./bin/shop", "--listen={host}:{port}", "{\"a\": {}}"].map(str::to_owned).into(),
            env: [("UPSTREAM".to_owned(), "{url.server}/v1 {address.server}".to_owned())].into(),
            directory: "/home/me/shop".into(),
            ready: None,
        };
        let deployment = chain_of(program.clone());
        let topology = topology::plan(&deployment, Isolation::Pods, []);
        let site = Site::of_pod(&deployment, &topology, Path::new("/run/toll/lab"), "client");
        let site = site.unwrap();
        insta::assert_snapshot!(rendered(&site, &program).unwrap().text, @r#"
        cd /home/me/shop
        PORT=9000
        TOLL_CALL_SERVER=10.77.0.3:9999
        UPSTREAM='http://10.77.0.3:9999/v1 10.77.0.3:9999'
        ./bin/shop '--listen=0.0.0.0:9000' '{"a": {}}'
        "#);
        let start = start(&site, &program).unwrap();
        assert_eq!(start.path, Path::new("/home/me/shop/./bin/shop"));
        assert_eq!(start.command.get_current_dir(), Some(Path::new("/home/me/shop")));
    }
}
