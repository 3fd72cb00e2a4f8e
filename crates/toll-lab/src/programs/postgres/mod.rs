//! What the lab knows of PostgreSQL: its settings, its files, and what it is asked.
//!
//! The settings are the server's defaults (fsync is on) but for what the lab needs, each with its reason in
//! [`arguments`]. Files: <https://www.postgresql.org/docs/17/storage-file-layout.html>; `postmaster.pid` has
//! a line each for process, data directory, start time, port, socket directory, address, segment and status.

pub(crate) mod claims;
pub(crate) mod ending;
mod query;
pub(crate) mod template;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ending::line_of_pid_file;
use query::{Row, query};
use template::{SUPERUSER, Template};

use crate::LabError;
use crate::artifacts::{Artifact, Lacking};
use crate::certificates::external::ExternalFiles;
use crate::deployment::{Deployment, Postgres};
use crate::evidence::DatabaseSnapshot;
use crate::host::error::HostError;
use crate::host::isolation::Isolation;
use crate::host::spawn::{Start, User};
use crate::programs::running::{LONGEST_LOOK, LONGEST_SEED, Running};
use crate::topology::Site;

/// The user that a server runs as when the caller is root, whom it refuses. Not the sidecars' user: the
/// redirect lets that one's traffic through.
const SERVER_UID: u32 = 1338;

/// The role that services connect as, and its database.
pub(super) const ROLE: &str = "toll";

/// No statement is shorter: Bind without a parameter, and Execute.
pub(super) const LEAST_OF_STATEMENT: u64 = 13 + 10;

/// What the server's default is, with three for superusers among them.
const LEAST_CONNECTIONS: u32 = 100;

/// The first version that speaks TLS from the first byte on: before, nobody on the way could see a name.
const LEAST_VERSION_WITH_TLS: u32 = 17;

/// Who may connect: everybody over the socket, whose folder is closed to others; the services over TCP. A server
/// with TLS takes those only whose certificate is of its own authority.
fn host_based_authentication(has_tls: bool) -> &'static str {
    match has_tls {
        false => "local all all trust\nhost toll toll 0.0.0.0/0 trust\n",
        true => "local all all trust\nhostssl toll toll 0.0.0.0/0 trust clientcert=verify-ca\n",
    }
}

/// What a server did and who is connected, a row each: kind, address, number.
///
/// The view has one row for each different statement; BEGIN and COMMIT are not in it (`track_utility`). Left
/// out are the probes' question and those about types, which drivers ask.
const SNAPSHOT: &str = "
    SELECT 'statements', NULL, coalesce(sum(calls), 0)::bigint
    FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
    WHERE rolname = 'toll' AND query !~ '\\minet_client_addr\\M|\\mpg_(catalog|type|range|enum|namespace|class|attribute)\\M'
    UNION ALL
    SELECT 'peer', host(client_addr), count(*)
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND usename = 'toll' AND client_addr IS NOT NULL
    GROUP BY client_addr";

/// Who is connected by which certificate, a row each: its serial number, how many sessions.
const CLIENTS: &str = "
    SELECT client_serial::text, count(*)
    FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE client_serial IS NOT NULL AND usename = 'toll'
    GROUP BY client_serial";

/// Folders of one server.
#[derive(Debug, Clone)]
struct Server {
    /// Holds the socket and the data directory.
    folder: PathBuf,
    /// TCP port, also in the socket's name.
    port: u16,
}

impl Server {
    fn new(site: &Site<'_>) -> Self {
        Self { folder: site.data_folder(), port: site.service.port }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Closed to others: who reaches the socket may be the superuser.
    fn make_folder(&self, user: &User) -> Result<(), HostError> {
        let make = || {
            std::fs::DirBuilder::new().mode(0o700).create(&self.folder)?;
            chown(&self.folder, user.owner(), user.owner())
        };
        make().map_err(|source| HostError::Write { path: self.folder.clone(), source })
    }

    /// Whether it takes connections: what `pg_ctl` looks at.
    fn is_ready(&self) -> bool {
        line_of_pid_file(&self.data(), 8).is_some_and(|status| status.trim() == "ready")
    }
}

/// The files of a server that speaks TLS.
#[derive(Debug, Clone)]
struct Tls {
    /// Its certificate.
    certificate: PathBuf,
    /// Its key, which belongs to the server's user.
    key: PathBuf,
    /// Who vouches for its clients.
    authority: PathBuf,
}

impl Tls {
    /// Of a database outside of the mesh.
    fn new(site: &Site<'_>) -> Option<Self> {
        let (host, files) = (&site.service.external.as_ref()?.host, ExternalFiles::new(site.dir));
        Some(Self {
            certificate: files.chain(host),
            key: files.key(host),
            authority: files.authority(),
        })
    }

    fn settings(&self) -> [String; 4] {
        let file = |setting, path: &Path| format!("{setting}={}", path.display());
        [
            "ssl=on".to_owned(),
            file("ssl_cert_file", &self.certificate),
            file("ssl_key_file", &self.key),
            file("ssl_ca_file", &self.authority),
        ]
    }
}

/// What the server is started with.
fn arguments(
    server: &Server,
    listen: Ipv4Addr,
    connections: u32,
    tls: Option<&Tls>,
) -> Vec<OsString> {
    let settings = [
        format!("listen_addresses={listen}"),
        format!("unix_socket_directories=\"{}\"", server.folder.display()),
        format!("max_connections={connections}"),
        // The proof of path counts the statements that the services ran.
        "shared_preload_libraries=pg_stat_statements".to_owned(),
        "pg_stat_statements.track_utility=off".to_owned(),
        // Shared memory in files of the data directory: a killed server leaves that of /dev/shm behind.
        "dynamic_shared_memory_type=mmap".to_owned(),
        // A server that recovers by itself from a killed process would be measured on.
        "restart_after_crash=off".to_owned(),
    ];
    let mut arguments: Vec<OsString> = vec!["-D".into(), server.data().into()];
    arguments.extend(["-p".into(), server.port.to_string().into()]);
    let settings = settings.into_iter().chain(tls.into_iter().flat_map(Tls::settings));
    arguments.extend(settings.flat_map(|setting| ["-c".into(), setting.into()]));
    arguments
}

/// Connections that the pools of all pods can hold on `database`, and some for the lab itself.
fn connections(deployment: &Deployment, database: &str) -> u32 {
    let pods = deployment.pods();
    let pooled: u32 = pods.iter().map(|(_, service)| service.connections_to(database)).sum();
    LEAST_CONNECTIONS.max(pooled + 10)
}

/// Whom servers run as: they refuse root, also the root of a user namespace.
pub(crate) fn user(isolation: Isolation) -> User {
    match (isolation, nix::unistd::geteuid().is_root()) {
        (Isolation::Rootless, _) => User::Mapped(SERVER_UID),
        (Isolation::Pods | Isolation::Loopback, true) => User::Other(SERVER_UID),
        (Isolation::Pods | Isolation::Loopback, false) => User::Caller,
    }
}

/// Where the server at `site` keeps what outlives it when it is killed.
pub(crate) fn data_directory(site: &Site<'_>) -> PathBuf {
    Server::new(site).data()
}

/// A server on a copy of the template.
///
/// # Errors
/// When there is no template, or its files cannot be written.
pub(crate) fn start(
    site: &Site<'_>,
    template: Option<&Template>,
    isolation: Isolation,
) -> Result<Start, LabError> {
    let template = template.ok_or(Lacking(Artifact::Postgres))?;
    let (server, user, tls) = (Server::new(site), user(isolation), Tls::new(site));
    server.make_folder(&user)?;
    template.copy_to(&server.data(), &user, host_based_authentication(tls.is_some()))?;
    let connections = connections(site.deployment, &site.service.name);
    let listen = site.listen_ip();
    let path = template.programs.join("postgres");
    let mut command = Command::new(&path);
    command.args(arguments(&server, listen, connections, tls.as_ref()));
    Ok(Start { user, ..Start::new(path, command) })
}

/// Whether the server at `site` takes connections.
pub(crate) fn is_ready(site: &Site<'_>) -> bool {
    Server::new(site).is_ready()
}

/// Runs the study's seed.
///
/// # Errors
/// When the server refuses it.
pub(crate) fn seed(running: &Running<'_>, postgres: &Postgres) -> Result<(), LabError> {
    let seeded = ask(running, [ROLE; 2], &postgres.seed, LONGEST_SEED);
    seeded.map(drop).map_err(|error| match error {
        LabError::Database { pod, message } => {
            LabError::Database { pod, message: format!("the seed: {message}") }
        }
        other => other,
    })
}

/// What it says of itself, and the rows that the study counts.
///
/// # Errors
/// When it does not answer as it should.
pub(crate) fn snapshot(
    running: &Running<'_>,
    postgres: &Postgres,
) -> Result<DatabaseSnapshot, LabError> {
    let mut snapshot = statistics(running)?;
    if let Some(sql) = &postgres.written {
        // Not as the services' role, whose statements are counted.
        let rows = ask(running, [SUPERUSER, ROLE], sql, LONGEST_LOOK)?;
        let unreadable =
            || running.unreadable("the study's `written` (one row of two whole numbers)");
        snapshot.written = Some(written(&rows).ok_or_else(unreadable)?);
    }
    Ok(snapshot)
}

/// What it has counted itself, and who is connected.
///
/// # Errors
/// When it does not answer as it should.
pub(super) fn statistics(running: &Running<'_>) -> Result<DatabaseSnapshot, LabError> {
    let rows = ask(running, [SUPERUSER; 2], SNAPSHOT, LONGEST_LOOK)?;
    snapshot_in(&rows).ok_or_else(|| running.unreadable("the statistics"))
}

/// Sessions by the serial number of the client's certificate.
///
/// # Errors
/// When it does not answer as it should.
pub(super) fn certified(running: &Running<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    let rows = ask(running, [SUPERUSER; 2], CLIENTS, LONGEST_LOOK)?;
    let client = |row: &Row| Some((text(row, 0)?.to_owned(), text(row, 1)?.parse().ok()?));
    let clients = rows.iter().map(client).collect::<Option<_>>();
    clients.ok_or_else(|| running.unreadable("the clients' certificates"))
}

fn ask(
    running: &Running<'_>,
    login: [&str; 2],
    sql: &str,
    limit: Duration,
) -> Result<Vec<Row>, LabError> {
    let Server { folder, port } = Server::new(&running.site);
    query(running, (&folder, port), login, sql, limit)
}

/// Whether the server program at `path` speaks TLS from the first byte on. One that does not say which version it is
/// shows what is wrong with it when it starts.
///
/// # Errors
/// When it is too old.
pub(super) fn check_tls(path: &Path) -> Result<(), LabError> {
    let output = Command::new(path).arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match version.ok().and_then(|version| Some((major_version(&version)?, version))) {
        Some((major, version)) if major < LEAST_VERSION_WITH_TLS => {
            Err(LabError::PostgresTooOld { version })
        }
        _ => Ok(()),
    }
}

/// The major version that `postgres --version` tells: `postgres (PostgreSQL) 17.11`.
fn major_version(output: &str) -> Option<u32> {
    let (_, version) = output.split_once("(PostgreSQL)")?;
    let digits = version.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Reads the rows of [`SNAPSHOT`].
fn snapshot_in(rows: &[Row]) -> Option<DatabaseSnapshot> {
    let mut snapshot = DatabaseSnapshot::default();
    for row in rows {
        let number: u64 = text(row, 2)?.parse().ok()?;
        match text(row, 0)? {
            "statements" => snapshot.statements = number,
            _ => {
                let peer: IpAddr = text(row, 1)?.parse().ok()?;
                snapshot.peers.insert(peer, number);
            }
        }
    }
    Some(snapshot)
}

/// The one row of two whole numbers that a study's `written` gives.
fn written(rows: &[Row]) -> Option<(u64, u64)> {
    match rows {
        [row] if row.len() == 2 => Some((text(row, 0)?.parse().ok()?, text(row, 1)?.parse().ok()?)),
        _ => None,
    }
}

fn text(row: &Row, column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::graphs::{customer, with_replicas};

    fn server(folder: &Path) -> Server {
        Server { folder: folder.to_owned(), port: 5432 }
    }

    fn with_pid_file(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/postmaster.pid"), text).unwrap();
        folder
    }

    #[test]
    fn a_server_is_ready_when_its_file_says_so() {
        let file = "21068\n/a/data\n1795301273\n5432\n/a\n0.0.0.0\n 10176775         5\n";
        let said = |status: &str| {
            let folder = with_pid_file(&format!("{file}{status}"));
            server(folder.path()).is_ready()
        };
        assert!(said("ready   \n"));
        assert!(!said("starting\n"));
        assert!(!said(""));
        assert!(!server(Path::new("/nowhere")).is_ready());
    }

    #[test]
    fn the_pools_of_all_pods_find_room() {
        assert_eq!(connections(&customer(), "postgres"), LEAST_CONNECTIONS);
        assert_eq!(connections(&with_replicas(customer(), "name", 10), "postgres"), 170);
    }

    #[test]
    fn the_servers_settings_are_the_documented_ones() {
        insta::assert_snapshot!(settings(None).join("\n"));
    }

    fn settings(tls: Option<&Tls>) -> Vec<String> {
        let server = server(Path::new("/run/toll/db 4"));
        let arguments = arguments(&server, Ipv4Addr::UNSPECIFIED, 100, tls);
        arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_server_with_tls_has_the_same_settings_and_demands_its_clients_certificates() {
        let file = |name: &str| PathBuf::from("/run/toll/external").join(name);
        let [certificate, key, authority] = ["db.crt", "db.key", "ca.crt"].map(file);
        let with = settings(Some(&Tls { certificate, key, authority }));
        let without = settings(None);
        assert_eq!(with[..without.len()], without);
        let added: Vec<_> = with[without.len()..].iter().filter(|word| *word != "-c").collect();
        let expected = [
            "ssl=on",
            "ssl_cert_file=/run/toll/external/db.crt",
            "ssl_key_file=/run/toll/external/db.key",
            "ssl_ca_file=/run/toll/external/ca.crt",
        ];
        assert_eq!(added, expected);
        assert!(host_based_authentication(true).contains("hostssl"));
        assert!(!host_based_authentication(true).contains("\nhost toll"));
    }

    #[test]
    fn a_version_is_known_by_its_first_number() {
        assert_eq!(major_version("postgres (PostgreSQL) 17.11\n"), Some(17));
        let debian = "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)";
        assert_eq!(major_version(debian), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(major_version("nginx"), None);
    }

    fn row(texts: &[Option<&str>]) -> Row {
        texts.iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn statements_and_peers_are_told_apart() {
        let rows = [
            row(&[Some("statements"), None, Some("42")]),
            row(&[Some("peer"), Some("10.77.0.5"), Some("16")]),
            row(&[Some("peer"), Some("127.0.0.6"), Some("1")]),
        ];
        let peers = [("10.77.0.5", 16), ("127.0.0.6", 1)].map(|(ip, n)| (ip.parse().unwrap(), n));
        let expected = DatabaseSnapshot {
            clients: None,
            seats_taken: None,
            statements: 42,
            looked: 0,
            peers: peers.into(),
            written: None,
        };
        assert_eq!(snapshot_in(&rows), Some(expected));
        assert_eq!(snapshot_in(&[row(&[Some("peer"), None, Some("1")])]), None);
    }

    #[test]
    fn what_was_written_is_one_row_of_two_whole_numbers() {
        assert_eq!(written(&[row(&[Some("7"), Some("6")])]), Some((7, 6)));
        assert_eq!(written(&[row(&[Some("7")])]), None);
        assert_eq!(written(&[row(&[Some("7"), None])]), None);
        assert_eq!(written(&[]), None);
    }
}
