//! A PostgreSQL server of the tests' own, where the machine has one: never the machine's running one.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::certificates::Identity;
use crate::running::run;

/// The server refuses root, so that root's tests run it as nobody.
const NOBODY: u32 = 65534;

/// The server that tests which run at the same time share, each with a database of its own.
static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

/// A server that runs until this is dropped.
pub struct Postgres {
    process: Child,
    programs: PathBuf,
    /// Holds its data and its socket.
    folder: TempDir,
    /// More arguments of it.
    settings: Vec<String>,
    pub port: u16,
}

impl Postgres {
    /// The server that is running, or a new one; `None` after a `SKIP` line when the machine has none.
    pub fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let new = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&new);
        Some(new)
    }

    /// A server that no other test has; `None` as [`Postgres::shared`].
    pub fn start() -> Option<Self> {
        match programs(|_| true) {
            Some(programs) => Some(Self::start_from(programs, None)),
            None => skip("no PostgreSQL (package postgresql, or its bin folder in POSTGRES)"),
        }
    }

    /// As [`Postgres::start`], one that lets role `toll` in over TLS alone, and only with a certificate of the
    /// authority that made its own.
    pub fn start_external(identity: &Identity) -> Option<Self> {
        match programs(speaks_tls_at_once) {
            Some(programs) => Some(Self::start_from(programs, Some(identity))),
            None => skip("no PostgreSQL of version 17 or newer (its bin folder in POSTGRES)"),
        }
    }

    fn start_from(programs: PathBuf, external: Option<&Identity>) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        if geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("root may give folders away");
        }
        initialise(&programs, folder.path());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let settings = external.map(|own| secure(folder.path(), own)).unwrap_or_default();
        let process = launch(&programs, folder.path(), port, &settings);
        let server = Self { process, programs, folder, settings, port };
        server.wait_until_ready();
        server.ask("postgres", &["CREATE ROLE toll LOGIN"]);
        server
    }

    /// Ends it as a crash does: connections are cut, nothing is finished.
    pub fn die(&mut self) {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        // It may have ended by itself; SIGQUIT is its immediate shutdown.
        let _ = kill(pid, Signal::SIGQUIT);
        let _ = self.process.wait();
    }

    /// Starts it again after [`Postgres::die`], with the same data at the same port.
    pub fn come_back(&mut self) {
        self.process = launch(&self.programs, self.folder.path(), self.port, &self.settings);
        self.wait_until_ready();
    }

    /// Makes a database that belongs to the role `toll`, and what `sql` says in it.
    pub fn create(&self, database: &str, sql: &str) {
        self.ask("postgres", &[&format!("CREATE DATABASE {database} OWNER toll")]);
        self.ask(database, &["SET ROLE toll", sql]);
    }

    /// The rows of the last of `sql`, as the superuser sees them.
    pub fn ask(&self, database: &str, sql: &[&str]) -> Value {
        let output = self.query("postgres", database, sql);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        told["rows"].clone()
    }

    /// What role `toll` ran in `database`, in order, as the server's log tells it before it runs.
    pub fn statements(&self, database: &str) -> Vec<String> {
        let log = log_in(self.folder.path());
        let of_role = format!("toll@{database} LOG:  ");
        log.lines().filter_map(|line| line.strip_prefix(&of_role)).map(str::to_owned).collect()
    }

    /// What the `query` program does over the server's socket.
    pub fn query(&self, user: &str, database: &str, sql: &[&str]) -> std::process::Output {
        let (folder, port) = (self.folder.path().display().to_string(), self.port.to_string());
        let server = ["query", "--socket", &folder, "--port", &port];
        run(&[&server, &["--user", user, "--database", database][..], sql].concat())
    }

    /// What a service is told of `database`.
    pub fn told(&self, database: &str, connections: usize, read: &str, write: &str) -> Value {
        json!({
            "service": "postgres", "address": format!("127.0.0.1:{}", self.port),
            "user": "toll", "database": database, "connections": connections,
            "read": read, "write": write,
        })
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.query("postgres", "postgres", &["SELECT 1"]).status.success() {
            assert!(Instant::now() < deadline, "{}", log_in(self.folder.path()));
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.die();
    }
}

fn skip<T>(reason: &str) -> Option<T> {
    eprintln!("SKIP {}: {reason}", thread::current().name().unwrap_or("?"));
    None
}

/// The folder of the first installation that this user, or nobody in root's place, may run, and whose version will do.
fn programs(will_do: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let given = env::var_os("POSTGRES").map(PathBuf::from);
    let cached = env::home_dir().map(|home| home.join(".cache/toll/postgres-17.11.0/bin"));
    given.into_iter().chain(cached).chain(of_the_system()).find(|folder| {
        let version = unprivileged(&folder.join("initdb")).arg("--version").output();
        version.is_ok_and(|told| {
            told.status.success() && will_do(&String::from_utf8_lossy(&told.stdout))
        })
    })
}

/// Whether the version is 17 or newer: `initdb (PostgreSQL) 17.11`.
fn speaks_tls_at_once(version: &str) -> bool {
    let number = version.rsplit(' ').next().and_then(|number| number.split('.').next());
    number.and_then(|number| number.trim().parse().ok()).is_some_and(|major: u32| major >= 17)
}

/// Demands certificates; what the settings for that are.
fn secure(folder: &Path, identity: &Identity) -> Vec<String> {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("room for a certificate");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is this user's");
        if geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
        }
        path.display().to_string()
    };
    let hba = "local all all trust\nhostssl toll toll 127.0.0.1/32 trust clientcert=verify-ca\n";
    [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", file("server.crt", &identity.certificate)),
        format!("ssl_key_file={}", file("server.key", &identity.key)),
        format!("ssl_ca_file={}", file("ca.crt", &identity.authority)),
        format!("hba_file={}", file("hba.conf", hba)),
    ]
    .into_iter()
    .flat_map(|setting| ["-c".to_owned(), setting])
    .collect()
}

/// Newest first.
fn of_the_system() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = versions.map(|version| version.path()).collect();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.into_iter().map(|version| version.join("bin")).collect()
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if geteuid().is_root() {
        // Drops the supplementary groups as well.
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn initialise(programs: &Path, folder: &Path) {
    let mut initdb = unprivileged(&programs.join("initdb"));
    initdb.arg("-D").arg(folder.join("data"));
    initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    let output = initdb.output().expect("initdb can be started");
    assert!(output.status.success(), "{output:?}");
}

fn launch(programs: &Path, folder: &Path, port: u16, settings: &[String]) -> Child {
    let log = fs::File::options().create(true).append(true).open(folder.join("log"));
    let mut server = unprivileged(&programs.join("postgres"));
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    server.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-c", "fsync=off"]);
    server.args(["-c", "log_statement=all", "-c", "log_line_prefix=%u@%d "]);
    server.args(settings);
    server.stdout(Stdio::null()).stderr(log.expect("room for a log"));
    server.spawn().expect("the server can be started")
}

fn log_in(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}
