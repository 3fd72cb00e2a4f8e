//! Turns a jar into the command line and the environment of its JVM: the flags of all of toll's JVMs. Starts nothing.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use crate::deployment::Compilers;
use crate::host::spawn::Start;

/// What all JVMs are started with.
const FLAGS: [&str; 3] = [
    // What a JVM chooses by itself in a pod of one core; by name, so that every machine runs the same collector.
    "-XX:+UseSerialGC",
    // Else its counters stay behind in /tmp when it is killed.
    "-XX:-UsePerfData",
    // A component that has ended invalidates what it served; one that limps would be measured.
    "-XX:+ExitOnOutOfMemoryError",
];

/// Ends a JVM's compiling with what its first compiler makes.
const FIRST_COMPILER_ONLY: &str = "-XX:TieredStopAtLevel=1";

/// The variables that a JVM takes options from.
const OPTIONS: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// How variables begin from which Spring takes settings of toll's programs, in any case of letters.
const SETTINGS: [&str; 4] = ["spring", "server", "logging", "management"];

/// A JVM that runs one of toll's jars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jvm<'a> {
    pub(super) jar: &'a Path,
    pub(super) size: Size,
    /// Whether it may take its classes from an archive: not where agents are compared, in the variant without one,
    /// too. An agent that rewrites archived classes ends the JVM with a `LinkageError` (seen with OpenJDK 17 and
    /// Netty's).
    pub(super) archive: bool,
}

/// What a JVM may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) heap_mib: u32,
    pub(super) compilers: Compilers,
}

impl Jvm<'_> {
    /// Runs in `folder`: Spring reads settings from files of the folder that it runs in, and the user's may have
    /// some. So all paths must be absolute. What toll's user tells all JVMs is kept from it: it would be in every
    /// variant, and in no plan.
    pub(super) fn start(&self, java: &Path, folder: &Path) -> Start {
        let mut command = Command::new(java);
        command.args(self.arguments(folder)).current_dir(folder);
        shield(&mut command, env::vars_os());
        Start::new(java.to_owned(), command)
    }

    /// Everything up to the jar's own arguments. What it unpacks goes below `folder`.
    fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut scratch = OsString::from("-Djava.io.tmpdir=");
        // Tomcat and agents make folders that stay behind when a JVM is killed; this one is removed.
        scratch.push(folder);
        let mut arguments: Vec<_> = flags(self.size).into_iter().map(OsString::from).collect();
        arguments.push(scratch);
        arguments.extend(class_archive(self.jar).filter(|_| self.archive));
        arguments.extend(["-jar".into(), self.jar.into()]);
        arguments
    }
}

/// A heap of one size: neither its growth nor the machine's memory decides what is measured.
pub(super) fn flags(Size { heap_mib, compilers }: Size) -> Vec<String> {
    let heap = ["-Xms", "-Xmx"].map(|flag| format!("{flag}{heap_mib}m"));
    let first_only = (compilers == Compilers::First).then_some(FIRST_COMPILER_ONLY);
    let all = heap.into_iter().chain(FLAGS.map(str::to_owned));
    all.chain(first_only.map(str::to_owned)).collect()
}

/// The JVM's flag for the archive of the jar's classes, if set-up has made one; without it a JVM starts later.
fn class_archive(jar: &Path) -> Option<OsString> {
    let archive = jar.with_extension("jsa");
    archive.is_file().then(|| {
        let mut flag = OsString::from("-XX:SharedArchiveFile=");
        flag.push(&archive);
        flag
    })
}

/// Keeps from a JVM of toll's what its user tells all JVMs.
fn shield(command: &mut Command, inherited: impl IntoIterator<Item = (OsString, OsString)>) {
    for (name, _) in inherited.into_iter().filter(|(name, _)| is_withheld(name)) {
        command.env_remove(name);
    }
}

fn is_withheld(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let is_setting = |start: &str| {
        let (first, rest) = bytes.split_at_checked(start.len()).unwrap_or_default();
        first.eq_ignore_ascii_case(start.as_bytes()) && matches!(rest.first(), Some(b'_' | b'.'))
    };
    OPTIONS.iter().any(|options| name == *options) || SETTINGS.iter().any(|start| is_setting(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jvm(jar: &Path, archive: bool) -> Jvm<'_> {
        Jvm { jar, size: size(96), archive }
    }

    fn size(heap_mib: u32) -> Size {
        Size { heap_mib, compilers: Compilers::Both }
    }

    #[test]
    fn the_heap_is_the_studys_and_all_else_is_equal() {
        let [small, large] = [96, 256].map(|heap_mib| flags(size(heap_mib)));
        assert_eq!(small[..2], ["-Xms96m", "-Xmx96m"]);
        assert_eq!(small[2..], large[2..]);
        let first = flags(Size { compilers: Compilers::First, ..size(96) });
        assert_eq!(first[..first.len() - 1], small);
        assert_eq!(first.last().unwrap(), FIRST_COMPILER_ONLY);
    }

    #[test]
    fn what_a_jvm_unpacks_goes_into_the_folder_that_is_removed() {
        let arguments = jvm(Path::new("/jars/vets.jar"), true).arguments(Path::new("/run/x"));
        assert!(arguments.contains(&"-Djava.io.tmpdir=/run/x".into()), "{arguments:?}");
        assert_eq!(arguments[arguments.len() - 2..], ["-jar", "/jars/vets.jar"]);
    }

    #[test]
    fn tolls_own_jvms_run_in_a_folder_where_no_settings_of_the_user_are() {
        let jvm = jvm(Path::new("/jars/vets.jar"), true);
        let start = jvm.start(Path::new("/bin/java"), Path::new("/run/x"));
        assert_eq!(start.command.get_current_dir(), Some(Path::new("/run/x")));
    }

    #[test]
    fn a_class_archive_beside_the_jar_is_used_but_where_agents_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let jar = folder.path().join("vets.jar");
        assert_eq!(class_archive(&jar), None);
        std::fs::write(folder.path().join("vets.jsa"), "").unwrap();
        let has_archive = |archive| {
            let arguments = jvm(&jar, archive).arguments(folder.path());
            arguments.iter().any(|argument| argument.to_string_lossy().ends_with("/vets.jsa"))
        };
        assert!(has_archive(true) && !has_archive(false));
    }

    /// The variables that a JVM of toll's is kept from, of these.
    fn withheld(names: &[&str]) -> Vec<String> {
        let mut command = Command::new("java");
        shield(&mut command, names.iter().map(|name| (name.into(), "x".into())));
        let changed: Vec<_> = command.get_envs().collect();
        assert!(changed.iter().all(|(_, value)| value.is_none()));
        changed.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn tolls_own_jvms_do_not_hear_what_its_user_tells_all_jvms() {
        assert_eq!(withheld(&["JAVA_TOOL_OPTIONS", "HOME"]), ["JAVA_TOOL_OPTIONS"]);
    }

    #[test]
    fn tolls_own_jvms_do_not_take_settings_of_spring_from_the_environment() {
        let settings =
            ["LOGGING_LEVEL_ROOT", "Management_X", "SPRING_PROFILES_ACTIVE", "server.port"];
        let others = ["SPRINGFIELD", "SERVERS_X", "HOME", "SPR"];
        assert_eq!(withheld(&[&settings[..], &others[..]].concat()), settings);
    }
}
