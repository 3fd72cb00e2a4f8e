//! What the lab's integration tests share: the built-in service, deployments, visible skips.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use tempfile::TempDir;
use toll_lab::artifacts::{Artifact, Fetch};
use toll_lab::{
    BuiltIn, DataPlane, Deployment, Egress, Environment, Isolation, Lab, LoadEngine, LocalOptions,
    Mtls, NextLine, Planted, Postgres, Program, Queries, Runtime, Service, SidecarProxy, Traffic,
    UserProgram, survey,
};

/// Returns from the test with a line that the test run counts.
macro_rules! skip {
    ($($reason:tt)*) => {{
        eprintln!("SKIP {}: {}", std::thread::current().name().unwrap_or("?"), format!($($reason)*));
        return;
    }};
}
pub(crate) use skip;

/// The built-in service: named by `TOLL_SERVICE`, or built into the same target folder.
pub fn service_program() -> Option<PathBuf> {
    let built = || Some(target_folder()?.join("toll-service"));
    let program = std::env::var_os("TOLL_SERVICE").map(PathBuf::from).or_else(built)?;
    program.is_file().then_some(program)
}

/// PostgreSQL's server.
pub fn postgres() -> Option<PathBuf> {
    Some(Artifact::Postgres.find(Fetch::Forbidden).ok()?.path)
}

/// The folder of this profile's programs: tests are one below it.
pub fn target_folder() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.parent()?.to_owned())
}

/// Whether this machine and this user can have the level.
pub fn is_possible(isolation: Isolation) -> bool {
    survey().into_iter().any(|(level, outcome)| level == isolation && outcome.is_ok())
}

/// A lab and the folder that holds its files; both end with the test.
pub struct TestLab {
    pub lab: Lab,
    pub folder: TempDir,
    /// What the lab's user sets to leave.
    pub interrupt: Arc<AtomicBool>,
}

impl TestLab {
    /// At this level, with a load that prints its plan back and ends.
    pub fn at(isolation: Isolation, service: &Path) -> Self {
        Self::with(isolation, service, |_| ())
    }

    /// At this level, with options that `change` changes.
    pub fn with(
        isolation: Isolation,
        service: &Path,
        change: impl FnOnce(&mut LocalOptions),
    ) -> Self {
        let folder = open_folder();
        let load = ["head", "-n", "1"].map(OsString::from).to_vec();
        let work_dir = folder.path().join("lab");
        let mut options = LocalOptions::new(vec![service.into()], load, work_dir);
        options.isolation = Some(isolation);
        change(&mut options);
        let interrupt = Arc::clone(&options.interrupt);
        Self { lab: Lab::local(options).unwrap(), folder, interrupt }
    }

    /// At this level, with a load that asks the address in each plan and then reports.
    pub fn asking(
        isolation: Isolation,
        service: &Path,
        change: impl FnOnce(&mut LocalOptions),
    ) -> Self {
        Self::with(isolation, service, |options| {
            let probe = format!("{} probe --connect \"$at\"", service.display());
            let load = format!("while read -r at; do {probe}; echo '{REPORT}'; done");
            options.load = vec!["sh".into(), "-c".into(), load.into()];
            change(options);
        })
    }

    pub fn up(&self, deployment: &Deployment) -> Environment {
        self.lab.up(deployment, &self.logs()).unwrap()
    }

    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("logs")
    }
}

/// What ends the lines of a plan.
const REPORT: &str = r#"{"event":"report"}"#;

/// One request of an engine of [`TestLab::asking`], which must be answered.
pub fn ask_once(environment: &Environment, engine: &mut LoadEngine) {
    let url = environment.entry_url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    engine.send(0, at.as_bytes()).unwrap();
    let mut answered = false;
    loop {
        match engine.next_line(Duration::from_secs(60)) {
            NextLine::Line(line) if line == REPORT => break,
            NextLine::Line(line) => answered |= line.contains("\"status\":200"),
            other => panic!("{other:?}"),
        }
    }
    assert!(answered);
}

/// Two environments of `deployment` side by side, loaded in turn over engines that stay: what was sent to one is no
/// matter of the other's.
pub fn are_proven_side_by_side(lab: &TestLab, deployment: &Deployment) {
    const REQUESTS: [u64; 2] = [4, 2];
    assert!(!lab.lab.stands_alone(deployment));
    let mut arms = [(); 2].map(|()| {
        let mut environment = lab.up(deployment);
        let engine = environment.start_engine().unwrap();
        (environment, engine)
    });
    for (environment, engine) in &mut arms {
        ask_once(environment, engine);
        environment.open_proof().unwrap();
    }
    for cycle in 0..REQUESTS[0] {
        for ((environment, engine), requests) in arms.iter_mut().zip(REQUESTS) {
            if cycle < requests {
                ask_once(environment, engine);
            }
        }
    }
    for ((mut environment, engine), requests) in arms.into_iter().zip(REQUESTS) {
        let proof = environment.close_proof(Traffic { requests, ..Traffic::default() }).unwrap();
        assert!(proof.holds(), "{proof:#?}");
        engine.end().unwrap();
        environment.down().unwrap();
    }
}

/// A new folder that every user can enter.
pub fn open_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    tempfile::Builder::new().prefix("toll-").permissions(mode).tempdir_in("/tmp").unwrap()
}

/// `client` calls `server`; both burn `work` for each request.
pub fn chain(ports: [u16; 2], work: Duration) -> Deployment {
    let [client, server] = ports;
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "original".into(),
        entry: "client".into(),
        services: vec![
            service("client", client, &["server"], built_in(work)),
            service("server", server, &[], built_in(work)),
        ],
        data_plane: DataPlane::Bare,
    }
}

/// `ingress`, a gateway, calls `customer` calls `person` calls `name`, which asks `postgres` for its two rows.
pub fn customer(ports: [u16; 5]) -> Deployment {
    let [ingress, customer, person, name, postgres] = ports;
    let relay = || built_in_and(|service| service.relay = true);
    let name_service = built_in_and(|service| {
        service.queries = Some(Queries {
            database: "postgres".into(),
            connections: 3,
            read: "SELECT id, name FROM customers WHERE id <= 2 ORDER BY id".into(),
            write: Some("INSERT INTO customers (name) VALUES ($1::text::json->>'name')".into()),
        });
    });
    let database = Program::Postgres(Postgres { seed: SEED.into(), written: Some(WRITTEN.into()) });
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "original".into(),
        entry: "ingress".into(),
        services: vec![
            service("ingress", ingress, &["customer"], Program::Gateway),
            service("customer", customer, &["person"], relay()),
            service("person", person, &["name"], relay()),
            service("name", name, &["postgres"], name_service),
            service("postgres", postgres, &[], database),
        ],
        data_plane: DataPlane::Bare,
    }
}

const SEED: &str = "
    -- Two to read; what is written comes behind them.
    CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL);
    INSERT INTO customers (name) VALUES ('Ada'), ('Émile');";

const WRITTEN: &str = "SELECT count(*), count(DISTINCT name) FROM customers WHERE id > 2";

/// One service that is a shell script.
pub fn script(port: u16, script: &str) -> Deployment {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    Deployment {
        nodes: 1,
        envoy: Box::default(),
        name: "script".into(),
        entry: "only".into(),
        services: vec![service(
            "only",
            port,
            &[],
            Program::Command(UserProgram { argv, ..UserProgram::default() }),
        )],
        data_plane: DataPlane::Bare,
    }
}

/// The same with an Envoy beside each service.
pub fn in_mesh(deployment: Deployment, mtls: Mtls) -> Deployment {
    let data_plane =
        DataPlane::Sidecar { egress: Egress::Sidecar, proxy: SidecarProxy::Envoy, mtls };
    Deployment { name: "istio".into(), data_plane, ..deployment }
}

pub fn service(name: &str, port: u16, calls: &[&str], program: Program) -> Service {
    let calls = calls.iter().map(|c| (*c).to_owned()).collect();
    Service {
        external: None,
        node: None,
        tls: false,
        name: name.into(),
        group: "default".into(),
        replicas: 1,
        port,
        program,
        calls,
        observed_calls: vec![],
        metrics: None,
    }
}

fn built_in(work: Duration) -> Program {
    built_in_and(|service| service.work = work)
}

fn built_in_and(change: impl FnOnce(&mut BuiltIn)) -> Program {
    let mut service = BuiltIn {
        runtime: Runtime::Native,
        work: Duration::ZERO,
        reply_bytes: 5,
        status: 200,
        relay: false,
        queries: None,
        stall: None,
        planted: Planted::default(),
    };
    change(&mut service);
    Program::BuiltIn(service)
}

/// Different ports that nobody listens on.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// All lines of a load program that is given this plan and then ends by itself, and how it ended.
pub fn carry_out(
    environment: &mut Environment,
    plan: &str,
) -> (Vec<String>, Result<(), toll_lab::LabError>) {
    let mut engine = environment.start_engine().unwrap();
    engine.send(0, plan.as_bytes()).unwrap();
    let mut lines = Vec::new();
    loop {
        match engine.next_line(Duration::from_secs(60)) {
            NextLine::Line(line) => lines.push(line),
            NextLine::Quiet => panic!("the load said nothing for a minute after {lines:?}"),
            NextLine::Ended(outcome) => return (lines, outcome),
        }
    }
}

/// The process with an argument that begins with `folder` and ends with `end`.
pub fn pid_by_argument(folder: &Path, end: &str) -> u32 {
    let has = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').any(|a| a.starts_with(&*folder.to_string_lossy()) && a.ends_with(end))
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.find(has).expect("the service runs")
}

/// What `act` gives on a thread in the network namespace of `pid`, which ends with it.
pub fn in_network_of<T: Send + 'static>(pid: u32, act: impl FnOnce() -> T + Send + 'static) -> T {
    let enter_and_act = move || {
        let namespace = File::open(format!("/proc/{pid}/ns/net")).unwrap();
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        act()
    };
    std::thread::spawn(enter_and_act).join().unwrap()
}

/// What of the database servers of one lab could stay in the system. Other programs of this machine have their own.
pub struct Traces {
    folder: PathBuf,
    processes: Vec<i32>,
    /// Files of POSIX shared memory.
    files: BTreeSet<PathBuf>,
}

impl Traces {
    pub fn of_servers_below(folder: &Path) -> Self {
        let processes = servers_below(folder);
        assert!(!processes.is_empty(), "a server runs");
        let files = processes.iter().flat_map(|pid| shared_files_of(*pid)).collect();
        Self { folder: folder.to_owned(), processes, files }
    }

    /// Ids of System V shared memory that they made.
    pub fn segments(&self) -> Vec<String> {
        segments_made_by(&self.processes)
    }

    pub fn assert_gone(&self) {
        assert_eq!(servers_below(&self.folder), [0; 0], "processes");
        assert_eq!(self.segments(), [""; 0], "segments of shared memory");
        assert!(!self.files.iter().any(|file| file.exists()), "{:?}", self.files);
    }
}

/// The processes that work in a folder below this one.
pub fn servers_below(folder: &Path) -> Vec<i32> {
    let works_below = |pid: &i32| {
        let cwd = fs::read_link(format!("/proc/{pid}/cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(folder))
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(works_below).collect()
}

fn shared_files_of(pid: i32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.find("/dev/shm/").map(|at| line[at..].into()));
    paths.collect()
}

/// Ids of System V shared memory, by the process that made it: fields 2 and 5 of `/proc/sysvipc/shm`.
fn segments_made_by(pids: &[i32]) -> Vec<String> {
    let text = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let fields = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let made = fields.filter(|fields| pids.iter().any(|pid| fields[4] == pid.to_string()));
    made.map(|fields| fields[1].to_owned()).collect()
}
