//! The Petclinic on two JVMs and a collector of spans, bare and with an agent in each JVM, at each isolation
//! level: both answer, only the agent leaves spans, and nothing of them is left.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{
    TestLab, carry_out, free_ports, is_possible, service_program, skip, target_folder,
};
use toll_lab::artifacts::{Artifact, Fetch, Lacking};
use toll_lab::{
    AgentKind, Compilers, DataPlane, Deployment, Environment, Isolation, JavaAgent, Lab, LabError,
    LocalOptions, Metrics, Petclinic, PetclinicPart, Program, Reading, Role, Service, UserProgram,
};

/// What the load sends to the address in its plan.
const REQUEST: &str = r#"
read -r at
exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
printf 'GET /api/vet/vets?spans=9 HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n' >&3
cat <&3"#;

/// Spans leave the agent half a second after a request; on a busy machine they take longer.
const LONGEST_DELIVERY: Duration = Duration::from_secs(30);

/// What a JVM of the Petclinic needs.
const JVM_ARTIFACTS: [Artifact; 4] =
    [Artifact::Java, Artifact::PetclinicGateway, Artifact::PetclinicVets, Artifact::OpenTelemetry];

/// All that a JVM of the Petclinic needs, put into the options; or why it cannot be had here.
fn with_parts(options: &mut LocalOptions) -> Result<(), String> {
    for artifact in JVM_ARTIFACTS {
        let found = artifact.find(Fetch::Forbidden).map_err(|e| e.to_string())?;
        options.artifacts.put(artifact, found.path);
    }
    let collector = collector_program().ok_or("toll-collector is not built")?;
    options.collector = vec![collector.into()];
    options.load = vec!["bash".into(), "-c".into(), REQUEST.into()];
    Ok(())
}

fn collector_program() -> Option<PathBuf> {
    let program = target_folder()?.join("toll-collector");
    program.is_file().then_some(program)
}

macro_rules! lab_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        let mut outcome = Ok(());
        let lab = TestLab::with($level, &service, |options| outcome = with_parts(options));
        if let Err(reason) = outcome {
            skip!("{reason}");
        }
        lab
    }};
}

/// `gateway` calls `vets`; both tell of themselves, and `collector` stands beside them.
fn petclinic(ports: [u16; 5]) -> Deployment {
    let [gateway, gateway_metrics, vets, vets_metrics, collector] = ports;
    let part =
        |part| Program::Petclinic(Petclinic { part, heap_mib: 128, compilers: Compilers::Both });
    let telling = |service, port| Service {
        metrics: Some(Metrics { port, path: "/metrics".into(), series: vec![] }),
        ..service
    };
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "baseline".into(),
        entry: "gateway".into(),
        services: vec![
            telling(
                service("gateway", gateway, &["vets"], part(PetclinicPart::Gateway)),
                gateway_metrics,
            ),
            telling(service("vets", vets, &[], part(PetclinicPart::Vets)), vets_metrics),
            service("collector", collector, &[], Program::Collector),
        ],
        data_plane: DataPlane::Bare,
    }
}

fn service(name: &str, port: u16, calls: &[&str], program: Program) -> Service {
    let calls = calls.iter().map(|c| (*c).to_owned()).collect();
    let (name, group) = (name.to_owned(), "default".to_owned());
    Service {
        external: None,
        node: None,
        tls: false,
        name,
        group,
        replicas: 1,
        port,
        program,
        calls,
        observed_calls: vec![],
        metrics: None,
    }
}

/// In pods all services have networks of their own.
fn in_pods() -> Deployment {
    petclinic([8080, 9080, 8081, 9080, 4318])
}

fn traced(deployment: Deployment) -> Deployment {
    let settings = [("otel.metrics.exporter", "none"), ("otel.logs.exporter", "none")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let agent = JavaAgent { kind: AgentKind::OpenTelemetry, settings, spans: BTreeMap::new() };
    Deployment { name: "agent".into(), data_plane: DataPlane::Agent(agent), ..deployment }
}

/// The whole answer of the entry to [`REQUEST`].
fn answer(environment: &mut Environment) -> String {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let (lines, outcome) = carry_out(environment, at);
    outcome.unwrap();
    lines.join("\n")
}

/// The only environment's folder.
fn folder_of(lab: &TestLab) -> PathBuf {
    let mut folders = fs::read_dir(lab.folder.path().join("lab")).unwrap();
    folders.next().unwrap().unwrap().path()
}

fn ask_collector(lab: &TestLab, method: &str) -> String {
    let mut socket = UnixStream::connect(folder_of(lab).join("collector.sock")).unwrap();
    let request = format!(
        "{method} /window HTTP/1.1\r\nHost: collector\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Spans by service since the window was opened.
fn spans(lab: &TestLab) -> BTreeMap<String, u64> {
    let window: serde_json::Value = serde_json::from_str(&ask_collector(lab, "GET")).unwrap();
    serde_json::from_value(window["spans"].clone()).unwrap()
}

/// Spans of both services, once some of each have come.
fn delivered_spans(lab: &TestLab) -> BTreeMap<String, u64> {
    let deadline = Instant::now() + LONGEST_DELIVERY;
    loop {
        let spans = spans(lab);
        if ["gateway", "vets"].iter().all(|service| spans.contains_key(*service)) {
            return spans;
        }
        assert!(Instant::now() < deadline, "only {spans:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Brings it up, asks once, looks at what came of it, and takes it down.
fn answers_and_leaves_nothing(lab: &TestLab, deployment: &Deployment, look: impl FnOnce(&TestLab)) {
    let mut environment = lab.up(deployment);
    ask_collector(lab, "POST");
    let answer = answer(&mut environment);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    look(lab);
    assert_every_component_is_counted(&mut environment);
    let scratch = fs::read_dir(folder_of(lab)).unwrap().flatten();
    let names: Vec<_> = scratch.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.starts_with("tomcat")), "Tomcat's folder: {names:?}");
    environment.down().unwrap();
    assert_eq!(processes_of(lab.folder.path()), [""; 0]);
    let left = fs::read_dir(lab.folder.path().join("lab")).unwrap().flatten();
    assert_eq!(left.count(), 0);
}

fn assert_every_component_is_counted(environment: &mut Environment) {
    for (pod, role) in [
        ("gateway", Role::Application),
        ("vets", Role::Application),
        ("collector", Role::Collector),
    ] {
        let sample = environment.sample();
        let mut components = sample.components.iter();
        let read = components.find(|c| c.component.pod == pod && c.component.role == role);
        let read = read.unwrap_or_else(|| panic!("{pod} is not sampled"));
        assert!(matches!(read.cpu_ns, Reading::Value(1..)), "{read:#?}");
    }
}

/// Command lines that name the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let lines = pids.filter_map(|pid| fs::read_to_string(pid.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&*folder.to_string_lossy())).collect()
}

fn leaves_no_span(lab: &TestLab) {
    // What an agent would need to deliver its first spans.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(spans(lab), BTreeMap::new());
}

fn leaves_spans_of_both_services(lab: &TestLab) {
    let spans = delivered_spans(lab);
    assert_eq!(spans.len(), 2, "the collector has no agent: {spans:?}");
}

#[test]
fn in_pods_the_baseline_answers_without_spans_and_the_agent_with_some() {
    let lab = lab_at!(Isolation::Pods);
    answers_and_leaves_nothing(&lab, &in_pods(), leaves_no_span);
    answers_and_leaves_nothing(&lab, &traced(in_pods()), leaves_spans_of_both_services);
}

#[test]
#[ignore = "forty seconds of JVMs for what is tested in pods; make test-agents"]
fn without_root_the_agent_reaches_the_collector() {
    let lab = lab_at!(Isolation::Rootless);
    answers_and_leaves_nothing(&lab, &traced(in_pods()), leaves_spans_of_both_services);
}

#[test]
#[ignore = "fifty seconds of JVMs for what is tested in pods; make test-agents"]
fn without_namespaces_the_agent_reaches_the_collector() {
    let lab = lab_at!(Isolation::Loopback);
    let deployment = traced(petclinic(free_ports()));
    answers_and_leaves_nothing(&lab, &deployment, leaves_spans_of_both_services);
}

/// Why `deployment` does not come up in a lab that lacks something; nothing is started.
fn refusal(deployment: &Deployment, lacking: Option<Artifact>) -> LabError {
    let lab = TestLab::with(Isolation::Loopback, Path::new("unused"), |options| {
        for artifact in JVM_ARTIFACTS {
            options.artifacts.put(artifact, "/nowhere/there.jar");
        }
        lacking.into_iter().for_each(|artifact| options.artifacts.remove(artifact));
    });
    lab.lab.up(deployment, &lab.logs()).unwrap_err()
}

#[test]
fn a_part_that_is_missing_is_named_with_advice_before_anything_starts() {
    let agent = traced(petclinic(free_ports()));
    let vets = refusal(&agent, Some(Artifact::PetclinicVets));
    assert_eq!(vets.to_string(), "the Petclinic's vets has not been built");
    assert!(vets.help().unwrap().contains("toll doctor"));
    let java = refusal(&agent, Some(Artifact::Java));
    assert!(matches!(java, LabError::Lacking(Lacking(Artifact::Java))), "{java}");
    let jar = refusal(&agent, Some(Artifact::OpenTelemetry));
    assert!(matches!(jar, LabError::Lacking(Lacking(Artifact::OpenTelemetry))), "{jar}");
    assert!(jar.help().unwrap().contains("toll doctor --fetch"));
}

#[test]
fn a_metrics_port_of_the_users_own_that_is_taken_is_named_before_anything_starts() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let [gateway, gateway_metrics, vets, _, collector] = free_ports();
    let mut deployment = petclinic([gateway, gateway_metrics, vets, port, collector]);
    deployment.services[1].program = Program::Command(UserProgram::of(["./vets"]));
    let error = refusal(&deployment, None);
    assert!(
        matches!(&error, LabError::PortInUse { port: p, service, .. } if *p == port && service == "vets"),
        "{error}"
    );
}

#[test]
fn all_that_an_agent_changes_is_in_the_rendered_files_and_the_flags_are_in_the_facts() {
    let lab = TestLab::at(Isolation::Loopback, Path::new("unused"));
    let (bare, agent) = (petclinic([1, 2, 3, 4, 5]), traced(petclinic([1, 2, 3, 4, 5])));
    let names = |lab: &Lab, deployment| -> Vec<String> {
        lab.render(deployment).unwrap().into_iter().map(|file| file.name).collect()
    };
    assert_eq!(names(&lab.lab, &bare), ["gateway.service.json", "vets.service.json"]);
    let added = [
        "gateway.environment",
        "gateway.agent.properties",
        "vets.environment",
        "vets.agent.properties",
    ];
    let with_agent = names(&lab.lab, &agent);
    assert!(added.iter().all(|name| with_agent.iter().any(|n| n == name)), "{with_agent:?}");
    let facts: BTreeMap<_, _> = lab.lab.facts_of(&agent).unwrap().into_iter().collect();
    assert!(facts["JVM flags of vets"].starts_with("-Xms128m -Xmx128m -XX:+UseSerialGC"));
    assert!(facts["agent of vets, agent"].contains("otel.service.name=vets"), "{facts:#?}");
}
