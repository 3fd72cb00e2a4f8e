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
    AgentKind, DataPlane, Deployment, Petclinic, PetclinicPart, Program, Runtime, Service,
};
use crate::lab::LocalOptions;

/// Heap of the built-in service's Spring form, MiB.
const SPRING_HEAP_MIB: u32 = 256;

/// What all JVMs are started with.
const FLAGS: [&str; 3] = [
    // What a JVM chooses by itself in a pod of one core; by name, so that every machine runs the same collector.
    "-XX:+UseSerialGC",
    // Else its counters stay behind in /tmp when it is killed.
    "-XX:-UsePerfData",
    // A component that has ended invalidates the trial; one that limps would be measured.
    "-XX:+ExitOnOutOfMemoryError",
];

/// The variables that a JVM takes options from.
const OPTIONS: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// Stands for the agent's jar where nothing is started and none was looked for.
pub(super) const EXAMPLE_AGENT: &str = "opentelemetry-javaagent.jar";

/// A JVM that runs one of toll's jars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jvm<'a> {
    jar: &'a Path,
    heap_mib: u32,
}

impl<'a> Jvm<'a> {
    /// The JVM of `program`; none when it is no jar of toll's.
    ///
    /// # Errors
    /// When the jar is not there.
    pub(super) fn of(
        program: &Program,
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
        Ok(heap_mib(program).map(|heap_mib| Self { jar, heap_mib }))
    }

    /// Everything up to the jar's own arguments. What it unpacks goes below `folder`.
    pub(super) fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut scratch = OsString::from("-Djava.io.tmpdir=");
        // Tomcat and agents make folders that stay behind when a JVM is killed; this one is removed.
        scratch.push(folder);
        let mut arguments: Vec<_> = flags(self.heap_mib).into_iter().map(OsString::from).collect();
        arguments.push(scratch);
        arguments.extend(class_archive(self.jar));
        arguments.extend(["-jar".into(), self.jar.into()]);
        arguments
    }
}

/// The flags of the JVM that plays `program`, the same in all variants; none when it is no JVM of toll's.
pub(super) fn flags_of(program: &Program) -> Option<Vec<String>> {
    heap_mib(program).map(flags)
}

fn heap_mib(program: &Program) -> Option<u32> {
    match program {
        Program::BuiltIn(built_in) => {
            (built_in.runtime == Runtime::Spring).then_some(SPRING_HEAP_MIB)
        }
        Program::Petclinic(petclinic) => Some(petclinic.heap_mib),
        _ => None,
    }
}

/// A heap of one size: neither its growth nor the machine's memory decides what is measured.
fn flags(heap_mib: u32) -> Vec<String> {
    let heap = ["-Xms", "-Xmx"].map(|flag| format!("{flag}{heap_mib}m"));
    heap.into_iter().chain(FLAGS.map(str::to_owned)).collect()
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
    if ours {
        OPTIONS.iter().for_each(|name| {
            command.env_remove(name);
        });
    }
    let is_kept = |name: &OsStr| !(ours && OPTIONS.iter().any(|options| name == *options));
    if let Some(launch) = launch {
        launch.equip(command, inherited.into_iter().filter(|(name, _)| is_kept(name)));
    }
}

/// Whether the deployment has the OpenTelemetry Java agent.
pub(super) fn has_opentelemetry(deployment: &Deployment) -> bool {
    let DataPlane::Agent(agent) = &deployment.data_plane else { return false };
    agent.kind == AgentKind::OpenTelemetry
}

/// Where the collector of a deployment has its admin socket.
pub(super) fn collector_socket(deployment: &Deployment, folder: &Path) -> Option<PathBuf> {
    let is_collector = |service: &Service| matches!(service.program, Program::Collector);
    deployment.services.iter().any(is_collector).then(|| folder.join("collector.sock"))
}
