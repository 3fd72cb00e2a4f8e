//! What the lab knows of PostgreSQL: its settings and files, and how a server ends that was killed.
//!
//! The settings are the server's defaults (fsync is on) but for what the lab needs, each with its reason in
//! [`arguments`]. Files: <https://www.postgresql.org/docs/17/storage-file-layout.html>; `postmaster.pid` has
//! a line each for process, data directory, start time, port, socket directory, address, segment and status.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::deployment::{Deployment, Program, Service};

/// The user that a server runs as when the caller is root, whom it refuses. Not the sidecars' user: the
/// redirect lets that one's traffic through.
pub(super) const SERVER_UID: u32 = 1338;

/// The user that makes a cluster when the caller is root. `initdb` wants one that the system has a name for;
/// the server does not.
pub(super) const NOBODY_UID: u32 = 65_534;

/// Connects over the socket only.
pub(super) const SUPERUSER: &str = "postgres";

/// The role that services connect as, and its database.
pub(super) const ROLE: &str = "toll";

/// How long the processes of a killed server may take to end.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// What the server's default is, with three for superusers among them.
const LEAST_CONNECTIONS: u32 = 100;

/// The first version that speaks TLS from the first byte on: before, nobody on the way could see a name.
pub(super) const LEAST_VERSION_WITH_TLS: u32 = 17;

/// Who may connect: everybody over the socket, whose folder is closed to others; the services over TCP. A server
/// with TLS takes those only whose certificate is of its own authority.
pub(super) fn host_based_authentication(has_tls: bool) -> &'static str {
    match has_tls {
        false => "local all all trust\nhost toll toll 0.0.0.0/0 trust\n",
        true => "local all all trust\nhostssl toll toll 0.0.0.0/0 trust clientcert=verify-ca\n",
    }
}

/// Turns a fresh cluster into one that a deployment's seed can go into, a statement a line.
pub(super) const PREPARATION: &str = "\
CREATE ROLE toll LOGIN
CREATE DATABASE toll OWNER toll
CREATE EXTENSION pg_stat_statements
";

/// What a server did and who is connected, a row each: kind, address, number.
///
/// The view has one row for each different statement; BEGIN and COMMIT are not in it (`track_utility`). Left
/// out are the probes' question and those about types, which drivers ask.
pub(super) const SIGHT: &str = "
    SELECT 'statements', NULL, coalesce(sum(calls), 0)::bigint
    FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
    WHERE rolname = 'toll' AND query !~ '\\minet_client_addr\\M|\\mpg_(catalog|type|range|enum|namespace|class|attribute)\\M'
    UNION ALL
    SELECT 'peer', host(client_addr), count(*)
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND usename = 'toll' AND client_addr IS NOT NULL
    GROUP BY client_addr";

/// Who is connected by which certificate, a row each: its serial number, how many sessions.
pub(super) const CLIENTS: &str = "
    SELECT client_serial::text, count(*)
    FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE client_serial IS NOT NULL AND usename = 'toll'
    GROUP BY client_serial";

/// Folders of one server.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Holds the socket and the data directory.
    pub(super) folder: PathBuf,
    /// TCP port, also in the socket's name.
    pub(super) port: u16,
}

impl Server {
    /// Its data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Whether it takes connections: what `pg_ctl` looks at.
    pub(super) fn is_ready(&self) -> bool {
        line_of_pid_file(&self.data(), 8).is_some_and(|status| status.trim() == "ready")
    }
}

/// The files of a server that speaks TLS.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    /// Its certificate.
    pub(super) certificate: PathBuf,
    /// Its key, which belongs to the server's user.
    pub(super) key: PathBuf,
    /// Who vouches for its clients.
    pub(super) authority: PathBuf,
}

impl Tls {
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
pub(super) fn arguments(
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
pub(super) fn connections(deployment: &Deployment, database: &str) -> u32 {
    let pool = |service: &Service| match &service.program {
        Program::BuiltIn(built_in) => {
            built_in.queries.as_ref().filter(|q| q.database == database).map(|q| q.connections)
        }
        Program::Airline(airline) => {
            service.calls.iter().any(|callee| callee == database).then_some(airline.connections)
        }
        _ => None,
    };
    let pods = deployment.pods();
    let pooled: u32 = pods.iter().filter_map(|(_, service)| pool(service)).sum();
    LEAST_CONNECTIONS.max(pooled + 10)
}

/// The major version that `postgres --version` tells: `postgres (PostgreSQL) 17.11`.
pub(super) fn major_version(told: &str) -> Option<u32> {
    let (_, version) = told.split_once("(PostgreSQL)")?;
    let digits = version.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Ends what is left of the server on this data directory: its processes, each of which leads a session of its
/// own, and the segment of System V shared memory by which it keeps a second server out.
///
/// # Errors
/// When a process does not end.
pub(super) fn end_server(data: &Path) -> io::Result<()> {
    let deadline = Instant::now() + LONGEST_EXIT;
    loop {
        let processes = processes_of(data);
        if processes.is_empty() {
            return remove_segment(data);
        }
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for process in processes {
            let _ = kill(process, Signal::SIGKILL);
        }
        // Not our children, so there is nothing to wait on.
        thread::sleep(Duration::from_millis(2));
    }
}

/// The processes of the server: all work in its data directory.
pub(super) fn processes_of(data: &Path) -> Vec<Pid> {
    let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let is_its_own = |pid: &i32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm == "postgres\n" && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == data)
    };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_its_own).map(Pid::from_raw).collect()
}

/// The kernel keeps a segment until somebody removes it; a server that is killed cannot.
fn remove_segment(data: &Path) -> io::Result<()> {
    match line_of_pid_file(data, 7).as_deref().and_then(segment_in) {
        Some(segment) if segment.is_still_there() => segment.remove(),
        _ => Ok(()),
    }
}

/// A segment of System V shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// As the server chose it.
    key: u32,
    /// As the kernel did.
    id: i32,
}

impl Segment {
    /// Ids are used again: the key must be the same, and nobody may use it.
    fn is_still_there(self) -> bool {
        let mut found = MaybeUninit::<libc::shmid_ds>::uninit();
        // SAFETY: the kernel fills the structure when it returns 0, and only then is it read.
        let found = unsafe {
            match libc::shmctl(self.id, libc::IPC_STAT, found.as_mut_ptr()) {
                0 => found.assume_init(),
                _ => return false,
            }
        };
        #[expect(clippy::cast_sign_loss, reason = "a key is a bit pattern")]
        let key = found.shm_perm.__key as u32;
        key == self.key && found.shm_nattch == 0
    }

    fn remove(self) -> io::Result<()> {
        // SAFETY: nothing is read or written through the pointer.
        match unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Key and id, with blanks before each.
fn segment_in(line: &str) -> Option<Segment> {
    let mut numbers = line.split_whitespace();
    Some(Segment { key: numbers.next()?.parse().ok()?, id: numbers.next()?.parse().ok()? })
}

/// A line of `postmaster.pid`; the first is 1.
fn line_of_pid_file(data: &Path, number: usize) -> Option<String> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    text.lines().nth(number - 1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::fixture::{customer, with_replicas};

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
    fn a_segment_is_known_by_its_key_and_id() {
        assert_eq!(segment_in(" 10176775         5"), Some(Segment { key: 10_176_775, id: 5 }));
        assert_eq!(segment_in("  "), None);
    }

    /// The segment is this test's own.
    #[test]
    fn a_segment_is_removed_only_when_its_key_is_that_of_the_file_and_nobody_uses_it() {
        // SAFETY: makes a segment and touches no memory.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        let of_another = Segment { key: 1, id };
        assert!(!of_another.is_still_there());
        let file = format!("1\n/a\n1\n1\n/a\n\n {} {id}\n", libc::IPC_PRIVATE);
        let folder = with_pid_file(&file);
        let segment = Segment { key: 0, id };
        assert!(segment.is_still_there());
        end_server(&server(folder.path()).data()).unwrap();
        assert!(!segment.is_still_there());
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
}
