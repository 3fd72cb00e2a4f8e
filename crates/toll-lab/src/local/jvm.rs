//! Turns a service into the command line and the environment of its JVM: the flags of all of toll's JVMs, and
//! what a tracing agent adds. Starts nothing. The user's own JVMs get an agent's environment, and no flags.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::topology;
use crate::LabError;
use crate::data_plane::Topology;
use crate::data_plane::agent::{self, Launch};
use crate::deployment::{
    AgentKind, Compilers, DataPlane, Deployment, Petclinic, PetclinicPart, Program, Runtime,
    Service,
};
use crate::lab::{LocalOptions, absolute};

/// Heap of the built-in service's Spring form, MiB.
const SPRING_HEAP_MIB: u32 = 256;

/// Heap of the server that stands in for MongoDB, MiB: all that is booked in an hour is in it.
const STAND_IN_HEAP_MIB: u32 = 1024;

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

/// Stands for the agent's jar where nothing is started and none was looked for.
pub(super) const EXAMPLE_AGENT: &str = "opentelemetry-javaagent.jar";

/// A JVM that runs one of toll's jars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jvm<'a> {
    jar: &'a Path,
    heap_mib: u32,
    /// Whether it may take its classes from an archive.
    archive: bool,
    /// How far it compiles.
    pub(super) compilers: Compilers,
}

impl<'a> Jvm<'a> {
    /// The JVM of `program` in `deployment`; none when it is no jar of toll's.
    ///
    /// Without an archive of classes where agents are compared, in the variant without one, too: an agent that
    /// rewrites archived classes ends the JVM with a `LinkageError` (seen with OpenJDK 17 and Netty's).
    ///
    /// # Errors
    /// When the jar is not there.
    pub(super) fn of(
        program: &Program,
        deployment: &Deployment,
        options: &'a LocalOptions,
    ) -> Result<Option<Self>, LabError> {
        let (jar, missing) = match program {
            Program::BuiltIn(built_in) if built_in.runtime == Runtime::Spring => {
                (&options.spring, LabError::SpringMissing)
            }
            Program::Petclinic(Petclinic { part: PetclinicPart::Gateway, .. }) => {
                (&options.petclinic_gateway, LabError::PetclinicMissing { part: "gateway" })
            }
            Program::Petclinic(Petclinic { part: PetclinicPart::Vets, .. }) => {
                (&options.petclinic_vets, LabError::PetclinicMissing { part: "vets" })
            }
            _ => return Ok(None),
        };
        let jar = jar.as_deref().ok_or(missing)?;
        let archive = !has_collector(deployment);
        Ok(size(program).map(|(heap_mib, compilers)| Self { jar, heap_mib, archive, compilers }))
    }

    /// The JVM of the server that stands in for MongoDB.
    pub(super) fn of_stand_in(jar: &'a Path) -> Self {
        Self { jar, heap_mib: STAND_IN_HEAP_MIB, archive: true, compilers: Compilers::First }
    }

    /// Runs in `folder`: Spring reads settings from files of the folder that it runs in, and the user's may have
    /// some. So all paths must be absolute.
    pub(super) fn command(&self, java: &Path, folder: &Path) -> Command {
        let mut command = Command::new(java);
        command.args(self.arguments(folder)).current_dir(folder);
        command
    }

    /// Everything up to the jar's own arguments. What it unpacks goes below `folder`.
    pub(super) fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut scratch = OsString::from("-Djava.io.tmpdir=");
        // Tomcat and agents make folders that stay behind when a JVM is killed; this one is removed.
        scratch.push(folder);
        let flags = flags(self.heap_mib, self.compilers);
        let mut arguments: Vec<_> = flags.into_iter().map(OsString::from).collect();
        arguments.push(scratch);
        arguments.extend(class_archive(self.jar).filter(|_| self.archive));
        arguments.extend(["-jar".into(), self.jar.into()]);
        arguments
    }
}

/// The flags of the JVM that plays `program`, the same in all variants; none when it is no JVM of toll's.
pub(super) fn flags_of(program: &Program) -> Option<Vec<String>> {
    size(program).map(|(heap_mib, compilers)| flags(heap_mib, compilers))
}

/// The heap of the JVM that plays `program`, MiB, and how far it compiles.
fn size(program: &Program) -> Option<(u32, Compilers)> {
    match program {
        Program::BuiltIn(built_in) => {
            (built_in.runtime == Runtime::Spring).then_some((SPRING_HEAP_MIB, Compilers::Both))
        }
        Program::Petclinic(petclinic) => Some((petclinic.heap_mib, petclinic.compilers)),
        _ => None,
    }
}

/// A heap of one size: neither its growth nor the machine's memory decides what is measured.
fn flags(heap_mib: u32, compilers: Compilers) -> Vec<String> {
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

/// The same, with a path of the agent's jar that holds in every folder.
pub(super) fn with_absolute_jar(deployment: &Deployment) -> Deployment {
    let mut deployment = deployment.clone();
    if let DataPlane::Agent(java_agent) = &mut deployment.data_plane
        && let AgentKind::EaseAgent { jar } = &mut java_agent.kind
    {
        *jar = absolute(jar);
    }
    deployment
}

/// What an agent adds to the JVMs of a deployment, by pod; nothing in a variant without one.
///
/// # Errors
/// When there is no collector for its spans, or no adapter for the agent.
pub(super) fn launches(
    deployment: &Deployment,
    topology: &Topology,
    opentelemetry: Option<&Path>,
    folder: &Path,
) -> Result<Vec<(String, Launch)>, LabError> {
    let DataPlane::Agent(java_agent) = &deployment.data_plane else { return Ok(Vec::new()) };
    let collector = SocketAddr::V4(topology::collector(deployment, topology)?);
    let with_agent = |(_, service): &(String, &Service)| service.program.takes_agent();
    let launch = |(pod, service): (String, &Service)| {
        agent::launch(java_agent, opentelemetry, &service.name, collector, folder)
            .map(|launch| (pod, launch))
    };
    let pods = deployment.pods().into_iter().filter(with_agent);
    Ok(pods.map(launch).collect::<Result<_, _>>()?)
}

/// What an agent adds as texts with names: the variables, `NAME=value` a line, and the files.
pub(super) fn in_words(pod: &str, launch: &Launch) -> Vec<(String, String)> {
    let line = |(name, value): &(String, OsString)| format!("{name}={}\n", value.to_string_lossy());
    let variables = launch.environment.iter().map(line).collect();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let files = launch.files.iter().map(|(path, text)| (name(path), text.clone()));
    std::iter::once((format!("{pod}.environment"), variables)).chain(files).collect()
}

/// Gives the JVM that `command` starts the agent of its variant, if there is one.
///
/// What toll's user tells all JVMs is kept from toll's own: it would be in every variant, and in no plan.
pub(super) fn equip(
    command: &mut Command,
    program: &Program,
    launch: Option<&Launch>,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) {
    let ours = flags_of(program).is_some();
    let (withheld, kept): (Vec<_>, Vec<_>) =
        inherited.into_iter().partition(|(name, _)| ours && is_withheld(name));
    for (name, _) in withheld {
        command.env_remove(name);
    }
    if let Some(launch) = launch {
        launch.equip(command, kept);
    }
}

/// Keeps from a JVM of toll's what its user tells all JVMs.
pub(super) fn shield(
    command: &mut Command,
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
) {
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

/// Whether the deployment has the OpenTelemetry Java agent.
pub(super) fn has_opentelemetry(deployment: &Deployment) -> bool {
    let DataPlane::Agent(agent) = &deployment.data_plane else { return false };
    agent.kind == AgentKind::OpenTelemetry
}

/// Where the collector of a deployment has its admin socket.
pub(super) fn collector_socket(deployment: &Deployment, folder: &Path) -> Option<PathBuf> {
    has_collector(deployment).then(|| folder.join("collector.sock"))
}

/// Whether it is a variant of a study that compares agents.
fn has_collector(deployment: &Deployment) -> bool {
    deployment.services.iter().any(|service| matches!(service.program, Program::Collector))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::deployment::JavaAgent;
    use crate::fixture::petclinic;
    use crate::local::Isolation;

    fn traced(deployment: Deployment) -> Deployment {
        let agent = JavaAgent { kind: AgentKind::OpenTelemetry, settings: BTreeMap::new() };
        Deployment { data_plane: DataPlane::Agent(agent), ..deployment }
    }

    fn launches_of(deployment: &Deployment) -> Vec<(String, Launch)> {
        let topology = topology::plan(deployment, Isolation::Pods, []);
        launches(deployment, &topology, Some(Path::new("otel.jar")), Path::new("/run/x")).unwrap()
    }

    fn program(argv: &[&str]) -> Program {
        Program::Command(argv.iter().map(|word| (*word).to_owned()).collect())
    }

    /// What `command` is started with beside or instead of what it inherits; none for what is taken away.
    fn variables(command: &Command) -> BTreeMap<String, Option<String>> {
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        command.get_envs().map(|(name, value)| (text(name), value.map(text))).collect()
    }

    fn inherited() -> [(OsString, OsString); 1] {
        [("JAVA_TOOL_OPTIONS".into(), "-Dtheirs".into())]
    }

    #[test]
    fn the_heap_is_the_studys_and_all_else_is_equal() {
        let flags = |heap_mib| {
            let (part, compilers) = (PetclinicPart::Vets, Compilers::Both);
            flags_of(&Program::Petclinic(Petclinic { part, heap_mib, compilers })).unwrap()
        };
        assert_eq!(flags(96)[..2], ["-Xms96m", "-Xmx96m"]);
        assert_eq!(flags(96)[2..], flags(256)[2..]);
        let first = super::flags(96, Compilers::First);
        assert_eq!(first[..first.len() - 1], flags(96));
        assert_eq!(first.last().unwrap(), FIRST_COMPILER_ONLY);
        assert_eq!(flags_of(&program(&["java"])), None, "a program of the user's own has its own");
    }

    #[test]
    fn what_a_jvm_unpacks_goes_into_the_folder_that_is_removed() {
        let jvm = Jvm {
            jar: Path::new("/jars/vets.jar"),
            heap_mib: 96,
            archive: true,
            compilers: Compilers::Both,
        };
        let arguments = jvm.arguments(Path::new("/run/x"));
        assert!(arguments.contains(&"-Djava.io.tmpdir=/run/x".into()), "{arguments:?}");
        assert_eq!(arguments[arguments.len() - 2..], ["-jar", "/jars/vets.jar"]);
    }

    #[test]
    fn tolls_own_jvms_run_in_a_folder_where_no_settings_of_the_user_are() {
        let jvm = Jvm {
            jar: Path::new("/jars/vets.jar"),
            heap_mib: 96,
            archive: true,
            compilers: Compilers::Both,
        };
        let command = jvm.command(Path::new("/bin/java"), Path::new("/run/x"));
        assert_eq!(command.get_current_dir(), Some(Path::new("/run/x")));
    }

    #[test]
    fn a_class_archive_beside_the_jar_is_used_but_where_agents_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let jar = folder.path().join("vets.jar");
        assert_eq!(class_archive(&jar), None);
        std::fs::write(folder.path().join("vets.jsa"), "").unwrap();
        let has_archive = |archive| {
            let arguments = Jvm { jar: &jar, heap_mib: 96, archive, compilers: Compilers::Both }
                .arguments(folder.path());
            arguments.iter().any(|argument| argument.to_string_lossy().ends_with("/vets.jsa"))
        };
        assert!(has_archive(true) && !has_archive(false));
        assert!(has_collector(&petclinic()) && !has_collector(&crate::fixture::chain()));
    }

    #[test]
    fn an_agent_goes_into_every_program_that_can_be_a_jvm_and_no_other() {
        let mut deployment = traced(petclinic());
        deployment.services[1].program = program(&["their-own"]);
        let pods: Vec<_> = launches_of(&deployment).into_iter().map(|(pod, _)| pod).collect();
        assert_eq!(pods, ["gateway", "vets"]);
        assert_eq!(launches_of(&petclinic()), []);
    }

    #[test]
    fn an_agent_without_a_collector_is_refused() {
        let mut deployment = traced(petclinic());
        deployment.services.pop();
        let topology = topology::plan(&deployment, Isolation::Pods, []);
        let error = launches(&deployment, &topology, None, Path::new("/run/x")).unwrap_err();
        assert!(matches!(error, LabError::UnknownService(name) if name == "collector"));
    }

    #[test]
    fn tolls_own_jvms_do_not_hear_what_its_user_tells_all_jvms() {
        let vets = &petclinic().services[1].program;
        let mut bare = Command::new("java");
        equip(&mut bare, vets, None, inherited());
        assert_eq!(variables(&bare)["JAVA_TOOL_OPTIONS"], None);
        let launches = launches_of(&traced(petclinic()));
        let mut with_agent = Command::new("java");
        equip(&mut with_agent, vets, Some(&launches[1].1), inherited());
        let options = variables(&with_agent).remove("JAVA_TOOL_OPTIONS").flatten().unwrap();
        assert!(options.contains("-javaagent:otel.jar"), "{options}");
        assert!(!options.contains("-Dtheirs"), "{options}");
    }

    #[test]
    fn an_agents_jar_is_found_from_every_folder() {
        let kind = AgentKind::EaseAgent { jar: "easeagent.jar".into() };
        let agent = JavaAgent { kind, settings: BTreeMap::new() };
        let deployment = Deployment { data_plane: DataPlane::Agent(agent), ..petclinic() };
        let launches = launches_of(&with_absolute_jar(&deployment));
        let options = launches[0].1.environment[0].1.to_string_lossy().into_owned();
        let here = std::env::current_dir().unwrap();
        assert!(options.contains(&*here.join("easeagent.jar").to_string_lossy()), "{options}");
    }

    #[test]
    fn tolls_own_jvms_do_not_take_settings_of_spring_from_the_environment() {
        let vets = &petclinic().services[1].program;
        let names = ["SPRING_PROFILES_ACTIVE", "server.port", "LOGGING_LEVEL_ROOT", "Management_X"];
        let others = ["SPRINGFIELD", "SERVERS_X", "HOME", "SPR"];
        let inherited = || names.iter().chain(&others).map(|name| (name.into(), "x".into()));
        let mut ours = Command::new("java");
        equip(&mut ours, vets, None, inherited());
        let mut taken: Vec<String> = names.map(str::to_owned).into();
        taken.sort();
        let withheld: Vec<_> = variables(&ours).into_keys().collect();
        assert_eq!(withheld, taken);
        let mut theirs = Command::new("their-own");
        equip(&mut theirs, &program(&["their-own"]), None, inherited());
        assert_eq!(variables(&theirs), BTreeMap::new());
    }

    #[test]
    fn a_program_of_the_users_own_hears_both_its_user_and_the_agent() {
        let launches = launches_of(&traced(petclinic()));
        let mut command = Command::new("their-own");
        equip(&mut command, &program(&["their-own"]), Some(&launches[1].1), inherited());
        let options = variables(&command).remove("JAVA_TOOL_OPTIONS").flatten().unwrap();
        assert!(options.starts_with("-Dtheirs -javaagent:otel.jar"), "{options}");
        let mut bare = Command::new("their-own");
        equip(&mut bare, &program(&["their-own"]), None, inherited());
        assert_eq!(variables(&bare), BTreeMap::new());
    }

    #[test]
    fn the_collectors_socket_is_known_where_there_is_a_collector() {
        let folder = Path::new("/run/x");
        let expected = Some(PathBuf::from("/run/x/collector.sock"));
        assert_eq!(collector_socket(&petclinic(), folder), expected);
        assert_eq!(collector_socket(&crate::fixture::chain(), folder), None);
    }
}
