//! Services over a real PostgreSQL behind a gateway, at each isolation level: it comes up seeded, its path is
//! proven, and whatever ends it, nothing of it is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    TestLab, Traces, carry_out, customer, free_ports, in_mesh, is_possible, postgres, script,
    servers_below, service_program, skip,
};
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    Deployment, Environment, Isolation, LabError, LocalOptions, Mtls, Program, Reading, Role,
    Runtime, Traffic,
};

/// Requests of one proof.
const REQUESTS: u64 = 20;

/// What the seed leaves for every GET to answer.
const ROWS: &str = r#"[{\"id\":1,\"name\":\"Ada\"},{\"id\":2,\"name\":\"Émile\"}]"#;

/// A lab whose load sends [`REQUESTS`] to the address in its plan, each over a new connection.
fn lab(isolation: Isolation, service: &Path, [envoy, postgres]: [PathBuf; 2]) -> TestLab {
    TestLab::with(isolation, service, |options| {
        let probe = format!("{} probe --connect \"$at\"", service.display());
        let load =
            format!("read -r at; i=0; while [ $i -lt {REQUESTS} ]; do {probe}; i=$((i + 1)); done");
        options.load = vec!["sh".into(), "-c".into(), load.into()];
        options.artifacts.put(Artifact::Envoy, envoy);
        options.artifacts.put(Artifact::Postgres, postgres);
    })
}

macro_rules! with_parts_at {
    ($level:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        let Some(envoy) = Artifact::Envoy.find(Fetch::Forbidden).ok() else {
            skip!("there is no Envoy")
        };
        let Some(postgres) = postgres() else { skip!("there is no PostgreSQL") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        lab($level, &service, [envoy.path, postgres])
    }};
}

/// The lines that a load of [`REQUESTS`] prints.
fn send_requests(environment: &mut Environment) -> Vec<String> {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let (lines, outcome) = carry_out(environment, at);
    outcome.unwrap();
    lines
}

fn comes_up_proven_and_leaves_nothing(lab: &TestLab, deployment: &Deployment) {
    let mut environment = lab.up(deployment);
    environment.open_proof().unwrap();
    let lines = send_requests(&mut environment);
    assert_eq!(
        lines.iter().filter(|line| line.contains(ROWS)).count() as u64,
        REQUESTS,
        "{lines:?}"
    );
    let traffic = Traffic { requests: REQUESTS, ..Traffic::default() };
    let proof = environment.close_proof(traffic).unwrap();
    assert!(proof.holds(), "{:#?}", proof.claims.iter().filter(|c| !c.holds).collect::<Vec<_>>());
    assert_every_component_is_counted(&mut environment, deployment);
    let traces = Traces::of_servers_below(lab.folder.path());
    environment.down().unwrap();
    traces.assert_gone();
    assert_only_the_template_is_left(lab);
}

fn assert_every_component_is_counted(environment: &mut Environment, deployment: &Deployment) {
    let sample = environment.sample();
    for (pod, service) in deployment.pods() {
        let role = match service.program {
            Program::Gateway => Role::Gateway,
            Program::Postgres(_) => Role::Database,
            _ => Role::Application,
        };
        let mut of_pod = sample.components.iter().filter(|c| c.component.pod == pod);
        let read = of_pod.find(|c| c.component.role == role).unwrap();
        assert!(matches!(read.cpu_ns, Reading::Value(1..)), "{read:#?}");
    }
}

/// Nothing of the environments; of the template the lab itself has a folder.
fn assert_only_the_template_is_left(lab: &TestLab) {
    let folders = fs::read_dir(lab.folder.path().join("lab")).unwrap().flatten();
    let names: Vec<_> = folders.map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// The ports of ingress, customer, person, name and PostgreSQL.
fn bare() -> Deployment {
    customer(free_ports())
}

macro_rules! the_customer_graph {
    ($($name:ident: $level:expr, $deployment:expr;)+) => {$(
        #[test]
        fn $name() {
            let lab = with_parts_at!($level);
            comes_up_proven_and_leaves_nothing(&lab, &$deployment);
        }
    )+};
}

the_customer_graph! {
    a_database_behind_a_gateway_in_pods_is_proven_bare: Isolation::Pods, bare();
    a_database_behind_a_gateway_without_root_is_proven_bare: Isolation::Rootless, bare();
    a_database_behind_a_gateway_on_loopback_is_proven_bare: Isolation::Loopback, bare();
    a_database_behind_sidecars_in_pods_is_proven: Isolation::Pods, in_mesh(bare(), Mtls::Permissive);
    a_database_behind_strict_sidecars_in_pods_is_proven: Isolation::Pods, in_mesh(bare(), Mtls::Strict);
    a_database_behind_sidecars_without_root_is_proven:
        Isolation::Rootless, in_mesh(bare(), Mtls::Permissive);
    a_database_behind_sidecars_on_loopback_is_proven:
        Isolation::Loopback, in_mesh(bare(), Mtls::Permissive);
}

/// The server is killed as a fault would, by its main process alone.
fn is_named_when_killed_and_leaves_nothing(lab: &TestLab) {
    let mut environment = lab.up(&bare());
    assert!(environment.crashed().is_none());
    let traces = Traces::of_servers_below(lab.folder.path());
    assert_eq!(traces.segments().len(), 1, "what is to be removed is there");
    kill(server_of(lab), Signal::SIGKILL).unwrap();
    let crash = wait_for_crash(&mut environment);
    assert!(crash.contains("postgres database ended by itself with signal SIGKILL"), "{crash}");
    environment.down().unwrap();
    traces.assert_gone();
    assert_only_the_template_is_left(lab);
}

fn wait_for_crash(environment: &mut Environment) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match environment.crashed() {
            Some(crash) => return crash.to_string(),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
        assert!(Instant::now() < deadline, "no crash was seen within 20 s");
    }
}

/// The server's main process, by the file that it keeps in its data directory.
fn server_of(lab: &TestLab) -> Pid {
    let folders = fs::read_dir(lab.folder.path().join("lab")).unwrap().flatten();
    let of_pods = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten());
    let mut files = of_pods.map(|folder| folder.path().join("data/postmaster.pid"));
    let file = files.find(|file| file.is_file()).expect("a server runs");
    let text = fs::read_to_string(file).unwrap();
    Pid::from_raw(text.lines().next().unwrap().parse().unwrap())
}

#[test]
fn a_server_that_loses_one_of_its_processes_does_not_go_on_as_if_nothing_were() {
    let lab = with_parts_at!(Isolation::Loopback);
    let mut environment = lab.up(&bare());
    let server = server_of(&lab);
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    let child: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
    kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    let crash = wait_for_crash(&mut environment);
    assert!(crash.contains("postgres database ended by itself with exit status"), "{crash}");
    environment.down().unwrap();
}

macro_rules! a_killed_server {
    ($($name:ident: $level:expr;)+) => {$(
        #[test]
        fn $name() {
            is_named_when_killed_and_leaves_nothing(&with_parts_at!($level));
        }
    )+};
}

a_killed_server! {
    a_server_killed_in_pods_is_named_and_leaves_nothing: Isolation::Pods;
    a_server_killed_without_root_is_named_and_leaves_nothing: Isolation::Rootless;
    a_server_killed_on_loopback_is_named_and_leaves_nothing: Isolation::Loopback;
}

#[test]
fn two_environments_with_databases_are_up_at_once() {
    let lab = with_parts_at!(Isolation::Pods);
    let ports = free_ports();
    let [mut first, mut second] = [lab.up(&customer(ports)), lab.up(&customer(ports))];
    for environment in [&mut first, &mut second] {
        assert_eq!(
            send_requests(environment).iter().filter(|line| line.contains(ROWS)).count(),
            20
        );
    }
    let traces = Traces::of_servers_below(lab.folder.path());
    first.down().unwrap();
    assert!(second.crashed().is_none());
    assert!(send_requests(&mut second).iter().all(|line| line.contains(ROWS)));
    second.down().unwrap();
    traces.assert_gone();
    assert_only_the_template_is_left(&lab);
}

#[test]
fn the_pods_of_a_service_get_requests_in_turn() {
    let lab = with_parts_at!(Isolation::Pods);
    for deployment in [bare(), in_mesh(bare(), Mtls::Permissive)] {
        let mut deployment = deployment;
        deployment.services.iter_mut().find(|s| s.name == "person").unwrap().replicas = 3;
        let mut environment = lab.up(&deployment);
        environment.open_proof().unwrap();
        // Ten for each replica, so that the proof wants each to have got some.
        send_requests(&mut environment);
        send_requests(&mut environment);
        let traffic = Traffic { requests: 2 * REQUESTS, ..Traffic::default() };
        let proof = environment.close_proof(traffic).unwrap();
        let broken: Vec<_> = proof.claims.iter().filter(|claim| !claim.holds).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        let each = "person: each of its 3 pods got requests";
        assert!(proof.claims.iter().any(|claim| claim.claim == each), "{:#?}", proof.claims);
        environment.down().unwrap();
    }
}

fn refusal(lab: &TestLab, deployment: &Deployment) -> LabError {
    lab.lab.up(deployment, &lab.logs()).unwrap_err()
}

#[test]
fn a_part_that_a_deployment_needs_is_asked_for_before_anything_starts() {
    let without = |change: fn(&mut LocalOptions)| {
        TestLab::with(Isolation::Loopback, Path::new("/no/service"), |options| {
            options.artifacts.put(Artifact::Envoy, "/no/envoy");
            options.artifacts.put(Artifact::Postgres, "/no/postgres");
            change(options);
        })
    };
    let mut spring = bare();
    let Program::BuiltIn(customer) = &mut spring.services[1].program else { unreachable!() };
    customer.runtime = Runtime::Spring;
    let refusals = [
        refusal(&without(|options| options.artifacts.remove(Artifact::Envoy)), &bare()),
        refusal(&without(|options| options.artifacts.remove(Artifact::Postgres)), &bare()),
        refusal(&without(|_| ()), &spring),
        refusal(&without(|options| options.artifacts.put(Artifact::Java, "/no/java")), &spring),
    ];
    let words = refusals.map(|error| (error.to_string(), error.help().unwrap()));
    assert!(words.iter().all(|(_, help)| help.contains("`toll doctor")));
    assert_eq!(
        words.map(|(text, _)| text),
        [
            "there is no Envoy binary",
            "there is no PostgreSQL",
            "there is no Java runtime",
            "the Spring form of the built-in service has not been built",
        ]
    );
}

#[test]
fn replicas_on_one_network_are_refused_with_advice() {
    let lab = TestLab::with(Isolation::Loopback, Path::new("/no/service"), |options| {
        options.artifacts.put(Artifact::Envoy, "/no/envoy");
        options.artifacts.put(Artifact::Postgres, "/no/postgres");
    });
    let mut deployment = bare();
    deployment.services[2].replicas = 3;
    let error = refusal(&lab, &deployment);
    assert!(error.to_string().starts_with("service `person` has 3 replicas"), "{error}");
    assert!(error.help().unwrap().contains("`--isolation rootless`"));
}

#[test]
fn a_seed_that_the_server_refuses_is_quoted_and_nothing_stays_up() {
    let lab = with_parts_at!(Isolation::Loopback);
    let mut deployment = bare();
    let Program::Postgres(database) = &mut deployment.services[4].program else { unreachable!() };
    database.seed = "CREATE TABEL customers ()".into();
    let error = refusal(&lab, &deployment);
    assert!(error.help().unwrap().contains("`seed`"));
    let error = error.to_string();
    assert!(
        error.starts_with("the postgres database does not answer as it should: the seed: "),
        "{error}"
    );
    assert!(error.contains("syntax error at or near \"TABEL\""), "{error}");
    assert_eq!(servers_below(lab.folder.path()), [0; 0]);
}

#[test]
fn whoever_waits_for_a_deployment_that_does_not_come_up_can_leave() {
    let lab = TestLab::with(Isolation::Loopback, Path::new("/no/service"), |_| ());
    let leave = Arc::clone(&lab.interrupt);
    let began = Instant::now();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        leave.store(true, Ordering::Relaxed);
    });
    let [port] = free_ports();
    let error = refusal(&lab, &script(port, "sleep 600"));
    assert!(matches!(error, LabError::Interrupted), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
}
