//! Tells which tracing agents are in the JVMs of a pod: those that their options name, and those whose jars they
//! hold open, as every JVM does with the jar of an agent that is in it. Whether a jar that nobody names is an agent
//! cannot be told from the jar: ordinary libraries can be agents, too. So an agent of a file of options, of a jar's
//! manifest, or that was put into a running JVM is found by its name only if the lab knows it.
//!
//! But each Java agent, whichever way it came, has its JVM load the library of `java.lang.instrument`, which a JVM
//! without one does not (seen with OpenJDK 17). A native agent that no option names is not found.
//!
//! A process that cannot be looked at counts as no JVM, so that it proves nothing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::evidence::Jvm;
use crate::host::occupants::Processes;

/// Part of the path of the library that makes a process a JVM.
const JVM_LIBRARY: &[u8] = b"/libjvm.so";

/// Part of the path of the library that all Java agents use.
const AGENTS_LIBRARY: &[u8] = b"/libinstrument.so";

/// The variables that a JVM takes options from.
const OPTIONS: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// How an option begins that puts an agent into a JVM; debuggers, which come by name, are none.
const AGENTS: [&[u8]; 2] = [b"-javaagent:", b"-agentpath:"];

/// The JVMs among the processes of `own`, the program of a pod; `known` is the agent that the lab has.
pub(crate) fn jvms(processes: &Processes, own: Pid, known: Option<&Path>) -> Vec<Jvm> {
    let known = known.map(resolved);
    let look = |pid: Pid| look(Path::new(&format!("/proc/{pid}")), known.as_deref()).ok()?;
    processes.of(own).filter_map(look).collect()
}

/// `process` is its folder in `/proc`.
fn look(process: &Path, known: Option<&Path>) -> io::Result<Option<Jvm>> {
    let maps = fs::read(process.join("maps"))?;
    if !maps_name(&maps, JVM_LIBRARY) {
        return Ok(None);
    }
    let folder = fs::read_link(process.join("cwd"))?;
    let command = fs::read(process.join("cmdline"))?;
    let environment = fs::read(process.join("environ"))?;
    let options = [command_line_options(&command), environment_options(&environment)].concat();
    let named = options.iter().filter_map(|option| agent(option));
    let named: Vec<PathBuf> = named.map(|jar| resolved(&folder.join(jar))).collect();
    let mut open = open_files(&process.join("fd"))?;
    open.retain(|file| named.contains(file) || Some(file.as_path()) == known);
    Ok(Some(Jvm { named, open, instruments: maps_name(&maps, AGENTS_LIBRARY) }))
}

/// Whether a file whose path has `part` is mapped.
fn maps_name(maps: &[u8], part: &[u8]) -> bool {
    maps.windows(part.len()).any(|bytes| bytes == part)
}

/// What stands before the application's own arguments.
fn command_line_options(command_line: &[u8]) -> Vec<OsString> {
    let words = command_line.split(|byte| *byte == 0).take_while(|word| *word != b"-jar");
    words.map(|word| OsString::from_vec(word.to_owned())).collect()
}

fn environment_options(environment: &[u8]) -> Vec<OsString> {
    let variables = environment.split(|byte| *byte == 0).filter_map(|variable| {
        let (name, value) = variable.split_at(variable.iter().position(|byte| *byte == b'=')?);
        OPTIONS.iter().any(|known| name == known.as_bytes()).then_some(&value[1..])
    });
    variables.flat_map(words).collect()
}

/// Words as a JVM splits them: at blanks that are not in quotes, and without an escape.
fn words(text: &[u8]) -> Vec<OsString> {
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    for &byte in text {
        match (byte, quote) {
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(end)) if byte == end => quote = None,
            (blank, None) if blank.is_ascii_whitespace() => words.push(std::mem::take(&mut word)),
            (byte, _) => word.push(byte),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).map(OsString::from_vec).collect()
}

/// The file of an option that puts an agent into a JVM, without the agent's own argument.
fn agent(option: &OsStr) -> Option<&Path> {
    let rest = AGENTS.iter().find_map(|start| option.as_bytes().strip_prefix(*start))?;
    let file = rest.split(|byte| *byte == b'=').next()?;
    Some(Path::new(OsStr::from_bytes(file)))
}

/// The open files of a process, each once.
fn open_files(descriptors: &Path) -> io::Result<Vec<PathBuf>> {
    let links = fs::read_dir(descriptors)?.flatten();
    let mut files: Vec<PathBuf> =
        links.filter_map(|link| fs::read_link(link.path()).ok()).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The file itself, if it is there.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(options: Vec<OsString>) -> Vec<PathBuf> {
        options.iter().filter_map(|option| agent(option)).map(Path::to_owned).collect()
    }

    #[test]
    fn agents_are_named_before_the_applications_own_arguments() {
        let line =
            b"java\0-javaagent:/a.jar=x=y\0-agentlib:jdwp\0-jar\0app.jar\0-javaagent:/no.jar\0";
        assert_eq!(named(command_line_options(line)), [Path::new("/a.jar")]);
    }

    #[test]
    fn agents_are_named_by_the_variables_that_a_jvm_reads_quotes_included() {
        let environment = b"HOME=/\0JAVA_TOOL_OPTIONS=-Xlog '-javaagent:/a b.jar'  -Dx=y\0\
            MY_JAVA_TOOL_OPTIONS=-javaagent:/no.jar\0_JAVA_OPTIONS=\"-agentpath:/lib'.so=1\"\0";
        let expected = [Path::new("/a b.jar"), Path::new("/lib'.so")];
        assert_eq!(named(environment_options(environment)), expected);
    }

    /// What `/proc` would show of a JVM that maps these libraries.
    fn process(libraries: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let line =
            |library: &&str| format!("7f00-7f01 r--p 00000000 fe:00 42  /jdk/lib/{library}\n");
        fs::write(folder.path().join("maps"), libraries.iter().map(line).collect::<String>())
            .unwrap();
        fs::write(folder.path().join("cmdline"), b"java\0@hidden.args\0").unwrap();
        fs::write(folder.path().join("environ"), b"HOME=/\0").unwrap();
        fs::create_dir(folder.path().join("fd")).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("cwd")).unwrap();
        folder
    }

    #[test]
    fn an_agent_that_no_option_names_is_seen_by_the_library_that_all_java_agents_use() {
        let seen = |libraries: &[&str]| look(process(libraries).path(), None).unwrap();
        let jvm = |instruments| Some(Jvm { named: vec![], open: vec![], instruments });
        assert_eq!(seen(&["server/libjvm.so", "libnet.so"]), jvm(false));
        assert_eq!(seen(&["server/libjvm.so", "libinstrument.so"]), jvm(true));
        assert_eq!(seen(&["libinstrument.so"]), None);
    }

    #[test]
    fn a_process_that_is_no_jvm_is_left_out() {
        assert_eq!(look(Path::new("/proc/self"), None).unwrap(), None);
    }
}
