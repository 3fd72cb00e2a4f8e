use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use super::launch::option;
use super::*;
use crate::error::DataPlaneError;
use crate::fixture::petclinic;
use crate::host::isolation::Isolation;
use crate::{Program, UserProgram, topology};

const COLLECTOR: &str = "10.77.0.4:4318";

fn agent(kind: AgentKind, settings: &[(&str, &str)]) -> JavaAgent {
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    JavaAgent { kind, settings: settings.collect(), spans: BTreeMap::new() }
}

fn launched(agent: &JavaAgent, jar: &str) -> Result<Launch, DataPlaneError> {
    let collector = COLLECTOR.parse().unwrap();
    let manner = match agent.kind {
        AgentKind::OpenTelemetry => opentelemetry::manner("vets", collector),
        AgentKind::EaseAgent { .. } => easeagent::manner("vets", collector),
    };
    Launch::new(agent, &manner, Path::new(jar), "vets", Path::new("/run/toll"))
}

fn opentelemetry(settings: &[(&str, &str)]) -> Result<Launch, DataPlaneError> {
    launched(&agent(AgentKind::OpenTelemetry, settings), "/cache/otel.jar")
}

/// As it would be typed and written.
fn listing(launch: &Launch) -> String {
    let variable = |(name, value): &(String, OsString)| format!("{name}={}\n", value.display());
    let file = |(path, text): &(PathBuf, String)| format!("--- {}\n{text}", path.display());
    let variables: String = launch.environment.iter().map(variable).collect();
    variables + &launch.files.iter().map(file).collect::<String>()
}

#[test]
fn opentelemetry_is_told_the_service_and_the_collector_in_a_file() {
    let launch = opentelemetry(&[
        ("otel.metrics.exporter", "none"),
        ("otel.bsp.schedule.delay", "250"),
        ("otel.resource.attributes", "team=a b"),
    ]);
    insta::assert_snapshot!(listing(&launch.unwrap()));
}

#[test]
fn easeagent_is_told_the_service_and_the_collector_in_a_file() {
    let kind = AgentKind::EaseAgent { jar: "/opt/ease agent/easeagent.jar".into() };
    let launch = launched(
        &agent(kind, &[("observability.tracings.sampled", "0.5")]),
        "/opt/ease agent/easeagent.jar",
    );
    insta::assert_snapshot!(listing(&launch.unwrap()));
}

#[test]
fn a_jvm_that_easeagent_does_not_know_is_told_to_try_by_an_option_and_not_in_the_agents_file() {
    let kind = AgentKind::EaseAgent { jar: "/opt/easeagent-dep.jar".into() };
    let agent = agent(kind, &[("net.bytebuddy.experimental", "true")]);
    let told = listing(&launched(&agent, "/opt/easeagent-dep.jar").unwrap());
    let (variables, file) = told.split_once("---").unwrap();
    assert!(variables.contains(" -Dnet.bytebuddy.experimental=true"), "{told}");
    assert!(!file.contains("bytebuddy"), "{told}");
    assert!(agent.when_silent().contains("-Dnet.bytebuddy.experimental=true"));
}

#[test]
fn what_easeagent_leaves_behind_is_in_the_folder_of_the_run() {
    let kind = AgentKind::EaseAgent { jar: "/opt/easeagent-dep.jar".into() };
    let launch = launched(&agent(kind, &[]), "/opt/easeagent-dep.jar").unwrap();
    assert_eq!(launch.folders, [Path::new("/run/toll/vets.tmp")]);
    assert!(listing(&launch).contains("-Djava.io.tmpdir=/run/toll/vets.tmp"));
    assert!(opentelemetry(&[]).unwrap().folders.is_empty());
}

#[test]
fn a_study_cannot_send_the_spans_elsewhere() {
    let error = opentelemetry(&[("otel.exporter.otlp.endpoint", "http://elsewhere")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent's setting `otel.exporter.otlp.endpoint` is made by toll"
    );
}

#[test]
fn without_its_jar_opentelemetry_cannot_be_launched() {
    let agent = agent(AgentKind::OpenTelemetry, &[]);
    assert_eq!(jar(&agent, &Artifacts::default()), Err(Lacking(Artifact::OpenTelemetry)));
}

#[test]
fn a_path_is_quoted_as_a_jvm_reads_it_or_refused() {
    let quoted = |path: &str| option(&["-javaagent:".as_ref(), path.as_ref()]).ok();
    assert_eq!(quoted("/a/b.jar").unwrap(), "-javaagent:/a/b.jar");
    assert_eq!(quoted("/a b.jar").unwrap(), "'-javaagent:/a b.jar'");
    assert_eq!(quoted("/it's.jar").unwrap(), "\"-javaagent:/it's.jar\"");
    assert_eq!(quoted("/it's \"b\".jar"), None);
    assert_eq!(quoted("/a=b.jar"), None, "the JVM takes what follows for an argument");
}

#[test]
fn a_setting_of_any_characters_survives_the_file() {
    let settings = BTreeMap::from([("a:b=c d".into(), " #1\\ = é\n💧".into())]);
    assert_eq!(
        properties::text(&settings),
        "a\\:b\\=c\\ d=\\ #1\\\\ = \\u00e9\\u000a\\ud83d\\udca7\n"
    );
}

#[test]
fn what_the_user_gives_all_jvms_stays_and_what_would_outdo_the_file_goes() {
    let inherited =
        [("JAVA_TOOL_OPTIONS", "-Xlog"), ("OTEL_TRACES_SAMPLER", "always_off"), ("HOME", "/root")]
            .map(|(name, value)| (name.into(), value.into()));
    let mut command = Command::new("java");
    opentelemetry(&[]).unwrap().equip(&mut command, inherited);
    let changed: BTreeMap<_, _> = command.get_envs().collect();
    let options = changed[OsStr::new("JAVA_TOOL_OPTIONS")].unwrap().to_str().unwrap();
    assert!(options.starts_with("-Xlog -javaagent:/cache/otel.jar -D"), "{options}");
    assert_eq!(changed[OsStr::new("OTEL_TRACES_SAMPLER")], None);
    assert!(!changed.contains_key(OsStr::new("HOME")));
}

#[test]
fn the_delay_of_batches_is_the_labs_unless_the_study_sets_it() {
    let delay = |settings: &[_]| agent(AgentKind::OpenTelemetry, settings).batch_delay();
    assert_eq!(delay(&[]), Duration::from_millis(200));
    assert_eq!(delay(&[("otel.bsp.schedule.delay", "5000")]), Duration::from_secs(5));
}

fn in_petclinic(jvm: &Program) -> (Deployment, JavaAgent) {
    let mut deployment = petclinic();
    deployment.services[1].program = jvm.clone();
    (deployment, agent(AgentKind::OpenTelemetry, &[]))
}

fn launches_in(
    (deployment, agent): (Deployment, JavaAgent),
) -> Result<Vec<(String, Launch)>, LabError> {
    let topology = topology::plan(&deployment, Isolation::Pods, []);
    launches(&deployment, &agent, &topology, Path::new("otel.jar"), Path::new("/run/x"))
}

fn users_own() -> Program {
    Program::Command(UserProgram::of(["their-own"]))
}

#[test]
fn an_agent_goes_into_every_program_that_can_be_a_jvm_and_no_other() {
    let launches = launches_in(in_petclinic(&users_own())).unwrap();
    let pods: Vec<_> = launches.into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(pods, ["gateway", "vets"]);
}

#[test]
fn an_agents_jar_is_found_from_every_folder() {
    let kind = AgentKind::EaseAgent { jar: "easeagent.jar".into() };
    let data_plane = DataPlane::Agent(agent(kind, &[]));
    let deployment = with_absolute_jar(Deployment { data_plane, ..petclinic() });
    let DataPlane::Agent(agent) = &deployment.data_plane else { unreachable!() };
    let here = std::env::current_dir().unwrap();
    assert_eq!(jar(agent, &Artifacts::default()), Ok(&*here.join("easeagent.jar")));
}

#[test]
fn an_agent_without_a_collector_is_refused() {
    let (mut deployment, agent) = in_petclinic(&users_own());
    deployment.services.pop();
    let error = launches_in((deployment, agent)).unwrap_err();
    assert!(matches!(error, LabError::UnknownService(name) if name == "collector"));
}

/// What `command`, equipped with the agent, has as options for JVMs, where its user gives all JVMs some.
fn options_of(mut command: Command) -> String {
    let launches = launches_in(in_petclinic(&users_own())).unwrap();
    launches[1].1.equip(&mut command, [("JAVA_TOOL_OPTIONS".into(), "-Dtheirs".into())]);
    let mut variables = command.get_envs();
    let options = variables.find(|(name, _)| *name == "JAVA_TOOL_OPTIONS").and_then(|(_, o)| o);
    options.unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_program_of_the_users_own_hears_both_its_user_and_the_agent() {
    let options = options_of(Command::new("their-own"));
    assert!(options.starts_with("-Dtheirs -javaagent:otel.jar"), "{options}");
}

#[test]
fn a_jvm_that_is_kept_from_hearing_its_user_hears_the_agent() {
    let mut shielded = Command::new("java");
    shielded.env_remove("JAVA_TOOL_OPTIONS");
    let options = options_of(shielded);
    assert!(options.starts_with("-javaagent:otel.jar"), "{options}");
}
