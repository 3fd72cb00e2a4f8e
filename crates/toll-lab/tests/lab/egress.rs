//! The airline and its database outside of the mesh, by every way that traffic can take there: it comes up, answers
//! everything that it can be asked, its path is proven, and nothing of it is left. What breaks on the way is named.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{
    TestLab, Traces, carry_out, free_ports, is_possible, pid_by_argument, postgres, servers_below,
    service, service_program, skip,
};
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    Airline, AirlineDatabase, AirlinePart, Asked, DataPlane, DatabaseServer, Deployment, Egress,
    EgressGateway, Environment, External, Isolation, LabError, Mtls, Program, Proof, Reading, Role,
    Service, SidecarProxy, Traffic,
};

/// What the load asks for, in turn: method, path and body.
const REQUESTS: [(&str, &str, &str); 4] = [
    ("GET", "/flights?from=A1&to=A2", ""),
    ("POST", "/bookings", r#"{"key":"of-the-test","customer":3,"flight":7}"#),
    ("GET", "/bookings?customer=3", ""),
    ("GET", "/customers/3", ""),
];

/// How often it asks for each, with another key each time.
const ROUNDS: u64 = 5;

/// Sends each line of its plan as a request of a connection of its own, and prints each answer in a line.
const LOAD: &str = r#"
read -r host port
while read -r method path body && [ -n "$method" ]; do
  exec 3<>"/dev/tcp/$host/$port"
  printf '%s %s HTTP/1.1\r\nhost: %s:%s\r\nconnection: close\r\ncontent-length: %s\r\n\r\n%s' \
    "$method" "$path" "$host" "$port" "${#body}" "$body" >&3
  tr -d '\r' <&3 | tr '\n' ' '
  echo
  exec 3>&-
done"#;

/// The jar of the stand-in for MongoDB: named by `TOLL_MONGO`, or built in its folder.
fn stand_in() -> Option<PathBuf> {
    let built =
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/mongo/target/toll-mongo.jar");
    let jar = std::env::var_os("TOLL_MONGO").map_or_else(built, PathBuf::from);
    jar.is_file().then_some(jar)
}

/// A lab with all that the airline needs, whose certificates hold so long.
macro_rules! lab_at {
    ($level:expr, $lifetime:expr) => {{
        let Some(service) = service_program() else { skip!("toll-service is not built") };
        let Ok(envoy) = Artifact::Envoy.find(Fetch::Forbidden) else { skip!("there is no Envoy") };
        let Ok(nginx) = Artifact::Nginx.find(Fetch::Forbidden) else { skip!("there is no nginx") };
        let Ok(java) = Artifact::Java.find(Fetch::Forbidden) else {
            skip!("there is no Java runtime")
        };
        let Some(postgres) = postgres() else { skip!("there is no PostgreSQL") };
        let Some(mongo) = stand_in() else { skip!("the stand-in for MongoDB is not built") };
        if !is_possible($level) {
            skip!("isolation level {} is not possible here", $level);
        }
        TestLab::with($level, &service, |options| {
            options.load = ["bash", "-c", LOAD].map(Into::into).to_vec();
            options.artifacts.put(Artifact::Envoy, envoy.path);
            options.artifacts.put(Artifact::Nginx, nginx.path);
            options.artifacts.put(Artifact::Java, java.path);
            options.artifacts.put(Artifact::Postgres, postgres);
            options.artifacts.put(Artifact::MongoStandIn, mongo);
            options.certificate_lifetime = $lifetime;
        })
    }};
}

const LONG: Duration = Duration::from_secs(3600);

/// `web` calls `flights`, `bookings` and `customers`, which have a database outside of the mesh.
fn airline(server: DatabaseServer, data_plane: DataPlane) -> Deployment {
    let [web, flights, bookings, customers, database] = free_ports();
    let part = |part, connections| {
        Program::Airline(Airline { part, work: Duration::from_micros(50), connections })
    };
    let inventory = AirlineDatabase { server, flights: 200, seats: 1000, customers: 100 };
    let database = service("airline-db", database, &[], Program::AirlineDatabase(inventory));
    let external = Some(External { host: "db.airline.example".into() });
    let of_bookings = ["customers", "flights", "airline-db"];
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "airline".into(),
        entry: "web".into(),
        services: vec![
            service("web", web, &["flights", "bookings", "customers"], part(AirlinePart::Web, 0)),
            service("flights", flights, &["airline-db"], part(AirlinePart::Flights, 4)),
            service("bookings", bookings, &of_bookings, part(AirlinePart::Bookings, 4)),
            service("customers", customers, &["airline-db"], part(AirlinePart::Customers, 4)),
            Service { external, ..database },
        ],
        data_plane,
    }
}

fn mesh(egress: Egress) -> DataPlane {
    DataPlane::Sidecar { proxy: SidecarProxy::Envoy, mtls: Mtls::Strict, egress }
}

fn gateway(mtls: bool, sni_proxy: bool) -> DataPlane {
    mesh(Egress::Gateway(EgressGateway { mtls, sni_proxy, hosts: vec![] }))
}

/// Asks for everything [`ROUNDS`] times and gives the answers, a line each.
fn ask(environment: &mut Environment) -> Vec<String> {
    ask_each(&REQUESTS, 0..ROUNDS, environment)
}

/// Asks for these once for each of the numbers.
fn ask_each(
    requests: &[(&str, &str, &str)],
    rounds: std::ops::Range<u64>,
    environment: &mut Environment,
) -> Vec<String> {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/').replace(':', " ");
    let mut plan = format!("{at}\n");
    for round in rounds {
        for (method, path, body) in requests {
            let body = body.replace("of-the-test", &format!("key-{round}"));
            plan.push_str(&format!("{method} {path} {body}\n"));
        }
    }
    let (lines, outcome) = carry_out(environment, &plan);
    outcome.unwrap();
    lines
}

fn all_is_answered(answers: &[String]) {
    assert_eq!(answers.len() as u64, ROUNDS * REQUESTS.len() as u64);
    for (answer, (method, path, _)) in answers.iter().zip(REQUESTS.iter().cycle()) {
        let status = if *method == "POST" { "HTTP/1.1 201 " } else { "HTTP/1.1 200 " };
        assert!(answer.starts_with(status), "{method} {path}: {answer}");
    }
}

/// What [`ask`] has sent, where all of it was answered.
fn traffic() -> Traffic {
    let asked = REQUESTS.map(|(method, path, _)| Asked {
        method: method.into(),
        path: path.into(),
        requests: ROUNDS,
        acknowledged: ROUNDS,
        ..Asked::default()
    });
    let requests = ROUNDS * REQUESTS.len() as u64;
    let (writes, acknowledged, asked) = (ROUNDS, ROUNDS, asked.to_vec());
    Traffic { requests, writes, acknowledged, asked }
}

fn broken(proof: &Proof) -> Vec<String> {
    let broken = proof.claims.iter().filter(|claim| !claim.holds);
    broken.map(|claim| format!("{}: {} / {}", claim.claim, claim.expected, claim.seen)).collect()
}

/// One proof of each server.
fn is_proven_and_leaves_nothing(lab: &TestLab, data_plane: &DataPlane, servers: &[DatabaseServer]) {
    for server in servers {
        let deployment = airline(*server, data_plane.clone());
        let mut environment = lab.up(&deployment);
        environment.open_proof().unwrap();
        let answers = ask(&mut environment);
        let proof = environment.close_proof(traffic()).unwrap();
        all_is_answered(&answers);
        assert_eq!(broken(&proof), [""; 0], "{server:?}");
        assert!(proof.holds());
        assert_every_component_is_counted(&mut environment);
        assert!(environment.crashed().is_none());
        environment.down().unwrap();
        assert_eq!(servers_below(lab.folder.path()), [0; 0], "{server:?}");
    }
}

fn assert_every_component_is_counted(environment: &mut Environment) {
    for component in environment.sample().components {
        let read = (component.component.role, &component.cpu_ns);
        assert!(read.0 == Role::LoadGenerator || matches!(read.1, Reading::Value(1..)), "{read:?}");
    }
}

const BOTH: &[DatabaseServer] = &[DatabaseServer::MongoDb, DatabaseServer::Postgres];

macro_rules! the_airline {
    ($($name:ident: $level:expr, $data_plane:expr, $servers:expr;)+) => {$(
        #[test]
        fn $name() {
            is_proven_and_leaves_nothing(&lab_at!($level, LONG), &$data_plane, $servers);
        }
    )+};
}

the_airline! {
    an_airline_without_a_mesh_is_proven: Isolation::Pods, DataPlane::Bare, BOTH;
    a_database_past_the_sidecars_is_proven: Isolation::Pods, mesh(Egress::Bypass), BOTH;
    a_database_through_the_sidecar_is_proven: Isolation::Pods, mesh(Egress::Sidecar), BOTH;
    a_database_through_a_gateway_is_proven: Isolation::Pods, gateway(false, false), BOTH;
    a_database_through_mtls_to_a_gateway_is_proven: Isolation::Pods, gateway(true, false), BOTH;
    a_database_through_an_sni_proxy_is_proven: Isolation::Pods, gateway(true, true), BOTH;
    an_airline_without_root_and_mesh_is_proven:
        Isolation::Rootless, DataPlane::Bare, &[DatabaseServer::Postgres];
    a_database_through_an_sni_proxy_without_root_is_proven:
        Isolation::Rootless, gateway(true, true), &[DatabaseServer::MongoDb];
    a_database_past_the_sidecars_on_loopback_is_proven:
        Isolation::Loopback, mesh(Egress::Bypass), &[DatabaseServer::Postgres];
    a_database_through_an_sni_proxy_on_loopback_is_proven:
        Isolation::Loopback, gateway(true, true), BOTH;
}

fn crash_of(environment: &mut Environment) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match environment.crashed() {
            Some(crash) => return crash.to_string(),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(Instant::now() < deadline, "no crash was seen within 20 s");
    }
}

/// The component whose command line names a file that ends so is killed.
fn is_named_when_killed(lab: &TestLab, server: DatabaseServer, file: &str, words: &str) {
    let mut environment = lab.up(&airline(server, gateway(true, true)));
    let traces = Traces::of_servers_below(lab.folder.path());
    let pid = pid_by_argument(&lab.folder.path().join("lab"), file);
    kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
    let crash = crash_of(&mut environment);
    assert!(crash.starts_with(words), "{crash}");
    // One is enough: it waits for the database as long as the services do.
    let answers = ask_each(&REQUESTS[..1], 0..1, &mut environment);
    assert!(answers.iter().all(|answer| !answer.starts_with("HTTP/1.1 2")), "{answers:#?}");
    environment.down().unwrap();
    traces.assert_gone();
}

macro_rules! a_killed_component {
    ($($name:ident: $server:expr, $file:expr, $words:expr;)+) => {$(
        #[test]
        fn $name() {
            is_named_when_killed(&lab_at!(Isolation::Pods, LONG), $server, $file, $words);
        }
    )+};
}

a_killed_component! {
    a_killed_egress_gateway_is_named: DatabaseServer::MongoDb, "/egress.envoy.yaml",
        "egress gateway ended by itself with signal SIGKILL";
    a_killed_sni_proxy_is_named: DatabaseServer::MongoDb, "/egress.nginx.conf",
        "egress SNI proxy ended by itself with signal SIGKILL";
    a_killed_stand_in_is_named: DatabaseServer::MongoDb, "/db.airline.example.key",
        "airline-db database ended by itself with signal SIGKILL";
    a_killed_external_postgres_is_named: DatabaseServer::Postgres, "/db4/data",
        "airline-db database ended by itself with signal SIGKILL";
}

#[test]
fn certificates_that_expire_between_two_looks_break_the_proof_and_say_so() {
    let lifetime = Duration::from_secs(30);
    let lab = lab_at!(Isolation::Pods, lifetime);
    let began = Instant::now();
    let mut environment = lab.up(&airline(DatabaseServer::MongoDb, gateway(true, false)));
    environment.open_proof().unwrap();
    all_is_answered(&ask(&mut environment));
    let left = (lifetime + Duration::from_secs(1)).saturating_sub(began.elapsed());
    std::thread::sleep(left);
    let proof = environment.close_proof(traffic()).unwrap();
    assert!(!proof.holds());
    let broken = broken(&proof);
    assert!(broken.iter().any(|claim| claim.contains("certificate expired")), "{broken:#?}");
    environment.down().unwrap();
}

#[test]
fn a_name_that_the_gateway_does_not_let_out_leads_nowhere_and_that_is_said() {
    let lab = lab_at!(Isolation::Pods, LONG);
    for sni_proxy in [false, true] {
        let hosts = vec!["other.example".to_owned()];
        let gateway = EgressGateway { mtls: false, sni_proxy, hosts };
        let deployment = airline(DatabaseServer::Postgres, mesh(Egress::Gateway(gateway)));
        let words = match lab.lab.up(&deployment, &lab.logs()) {
            // The services may find no database when they start, and end.
            Err(error) => error.to_string(),
            Ok(mut environment) => {
                environment.open_proof().unwrap();
                let answers = ask_each(&REQUESTS, 0..1, &mut environment);
                assert!(answers.iter().all(|a| !a.starts_with("HTTP/1.1 2")), "{answers:#?}");
                let proof = environment.close_proof(traffic()).unwrap();
                environment.down().unwrap();
                broken(&proof).join("\n")
            }
        };
        assert!(words.contains("closed"), "{words}");
    }
}

#[test]
fn what_an_airline_needs_is_asked_for_before_anything_starts() {
    let refusal = |change: fn(&mut toll_lab::LocalOptions), server| {
        let lab = TestLab::with(Isolation::Loopback, Path::new("/no/service"), |options| {
            options.artifacts.put(Artifact::Envoy, "/no/envoy");
            options.artifacts.put(Artifact::Nginx, "/no/nginx");
            options.artifacts.put(Artifact::Java, "/no/java");
            options.artifacts.put(Artifact::MongoStandIn, "/no/jar");
            change(options);
        });
        lab.lab.up(&airline(server, gateway(true, true)), &lab.logs()).unwrap_err()
    };
    let (mongo, postgres) = (DatabaseServer::MongoDb, DatabaseServer::Postgres);
    let refusals: [LabError; 5] = [
        refusal(|options| options.artifacts.remove(Artifact::Envoy), mongo),
        refusal(|options| options.artifacts.remove(Artifact::Nginx), mongo),
        refusal(|options| options.artifacts.remove(Artifact::MongoStandIn), mongo),
        refusal(|options| options.artifacts.remove(Artifact::Java), mongo),
        refusal(|_| (), postgres),
    ];
    assert!(refusals.iter().all(|error| error.help().is_some()));
    assert_eq!(
        refusals.map(|error| error.to_string()),
        [
            "there is no Envoy binary",
            "there is no nginx",
            "there is no MongoDB server",
            "there is no Java runtime",
            "there is no PostgreSQL",
        ]
    );
}

#[test]
fn a_postgres_that_speaks_no_tls_from_the_first_byte_on_is_refused_with_advice() {
    let lab = TestLab::with(Isolation::Loopback, Path::new("/no/service"), |options| {
        let programs = options.work_dir.join("../old");
        std::fs::create_dir_all(&programs).unwrap();
        let (old, told) = (programs.join("postgres"), "postgres (PostgreSQL) 15.13 (Debian)");
        std::fs::write(&old, format!("#!/bin/sh\necho '{told}'\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&old, executable).unwrap();
        options.artifacts.put(Artifact::Postgres, old);
    });
    let deployment = airline(DatabaseServer::Postgres, DataPlane::Bare);
    let error = lab.lab.up(&deployment, &lab.logs()).unwrap_err();
    assert!(error.to_string().starts_with("`postgres (PostgreSQL) 15.13 (Debian)` is too old"));
    assert!(error.help().unwrap().contains("toll doctor --fetch"));
}

/// A mongod cannot be had here: this one prints its arguments and ends.
#[test]
fn a_fake_mongod_is_started_with_tls_on_a_fresh_folder_and_named_when_it_ends() {
    let Some(service) = service_program() else { skip!("toll-service is not built") };
    let lab = TestLab::with(Isolation::Loopback, &service, |options| {
        let mongod = options.work_dir.with_file_name("mongod");
        std::fs::write(&mongod, "#!/bin/sh\necho \"$@\"\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&mongod, executable).unwrap();
        options.artifacts.put(Artifact::Mongod, mongod);
    });
    let deployment = airline(DatabaseServer::MongoDb, DataPlane::Bare);
    let error = lab.lab.up(&deployment, &lab.logs()).unwrap_err().to_string();
    assert!(error.starts_with("airline-db database ended by itself with exit status 0"), "{error}");
    for word in ["--tlsMode requireTLS", "/db4 --bind_ip 127.0.0.1", "/external/ca.crt"] {
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn a_plan_shows_what_the_egress_gateway_and_its_sni_proxy_are_told() {
    let lab = TestLab::at(Isolation::Loopback, Path::new("/no/service"));
    let files = lab.lab.render(&airline(DatabaseServer::MongoDb, gateway(true, true))).unwrap();
    let text = |name: &str| {
        let file = files.iter().find(|file| file.name == name);
        &file.unwrap_or_else(|| panic!("no {name}")).text
    };
    assert!(text("egress.envoy.yaml").contains("_.localhost"), "{}", text("egress.envoy.yaml"));
    assert!(text("egress.nginx.conf").contains("ssl_preread on"));
    assert!(text("flights.service.json").contains("flights.identity.pem"));
}
