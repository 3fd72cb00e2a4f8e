//! Tells from `/proc` who listens on a TCP port. Opens no connection.
//!
//! Format of `/proc/net/tcp`: proc_net_tcp in the kernel's networking documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::unistd::Pid;

/// The program that listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: i32,
    /// Its name, at most 15 bytes long.
    pub program: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.program, self.pid)
    }
}

/// Whether a socket listens on `port` in the network namespace of `pid`.
pub(crate) fn listens(pid: Pid, port: u16) -> bool {
    // A look goes through all connections of the machine, so the second is taken only where the first misses.
    FAMILIES.iter().any(|family| {
        let table = File::open(format!("/proc/{pid}/net/{family}"));
        table.is_ok_and(|table| is_among_listeners(BufReader::new(table), port))
    })
}

/// The table has a title, then all sockets that listen, then thousands of connections, which are not read.
fn is_among_listeners(table: impl BufRead, port: u16) -> bool {
    let lines = table.lines().skip(1).map_while(Result::ok);
    let mut listeners = lines.map_while(|line| listener(&line));
    listeners.any(|(of, _)| of == port)
}

/// The ports on which the processes of the session of `pid` listen: a program, and what it started.
pub(crate) fn of_session(pid: Pid) -> BTreeSet<u16> {
    let sockets: Vec<String> =
        processes().filter(|of| session(*of) == Some(pid.as_raw())).flat_map(sockets).collect();
    let read = |family| fs::read_to_string(format!("/proc/{pid}/net/{family}")).unwrap_or_default();
    let texts = FAMILIES.map(read);
    let listeners = texts.iter().flat_map(|text| text.lines()).filter_map(listener);
    let is_own = |(_, inode): &(u16, u64)| sockets.contains(&socket(*inode));
    listeners.filter(is_own).map(|(port, _)| port).collect()
}

/// All processes that `/proc` shows.
fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The session of a process: proc_pid_stat(5), where the name may hold blanks.
fn session(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

/// What its descriptors lead to, sockets among them.
fn sockets(pid: i32) -> impl Iterator<Item = String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|fd| Some(fs::read_link(fd.path()).ok()?.to_string_lossy().into_owned()))
}

/// As a descriptor's link names it.
fn socket(inode: u64) -> String {
    format!("socket:[{inode}]")
}

/// Where the connections that are established to `port` in the network namespace of `pid` come from, and how many
/// from each address.
///
/// # Errors
/// When the process is gone.
pub(crate) fn peers(pid: Pid, port: u16) -> io::Result<BTreeMap<IpAddr, u64>> {
    let mut peers = BTreeMap::new();
    for family in FAMILIES {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{family}"))?;
        for peer in text.lines().filter_map(|line| established_peer(line, port)) {
            *peers.entry(peer).or_default() += 1;
        }
    }
    Ok(peers)
}

/// Files of IPv4 and IPv6 sockets.
const FAMILIES: [&str; 2] = ["tcp", "tcp6"];

/// Whether a service can listen on `port` of the loopback address.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The ports that environments without networks of their own take. Above them Linux has those that it gives to
/// outgoing connections, of which a load makes many: `ip_local_port_range` in the kernel's ip-sysctl.
const TAKEN_FROM: Range<u16> = 20_000..32_768;

/// Different free ports, none of them in `except`. They are free when this returns, and nothing keeps them so; but
/// nobody else in this process is given them before all others were given.
///
/// # Errors
/// When there are not so many.
pub(crate) fn free(count: usize, except: &[u16]) -> io::Result<Vec<u16>> {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    // Another process begins elsewhere.
    let first = std::process::id() as usize * 97;
    let next = |_| {
        let offset = (first + GIVEN.fetch_add(1, Ordering::Relaxed)) % TAKEN_FROM.len();
        TAKEN_FROM.start + offset as u16
    };
    let good = |port: &u16| !except.contains(port) && is_free(*port);
    let ports: Vec<u16> = TAKEN_FROM.map(next).filter(good).take(count).collect();
    if ports.len() == count { Ok(ports) } else { Err(io::ErrorKind::AddrNotAvailable.into()) }
}

/// Who listens on `port` here, when `/proc` lets the caller see it.
pub(crate) fn holder(port: u16) -> Option<Holder> {
    let inodes = listeners("/proc/net", port);
    processes()
        .find(|pid| inodes.iter().any(|inode| sockets(*pid).any(|to| to == socket(*inode))))
        .map(|pid| Holder { pid, program: program_of(pid) })
}

fn program_of(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Inodes of the sockets that listen on `port`, IPv4 and IPv6.
fn listeners(net: &str, port: u16) -> Vec<u64> {
    let read = |family| fs::read_to_string(format!("{net}/{family}")).unwrap_or_default();
    let texts = FAMILIES.map(read);
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(|line| listening_inode(line, port)).collect()
}

fn listening_inode(line: &str, port: u16) -> Option<u64> {
    listener(line).filter(|(of, _)| *of == port).map(|(_, inode)| inode)
}

/// Port and inode of a socket that listens. Fields: slot, local address:port, remote address:port, state, queues, timer,
/// retransmits, uid, timeout, inode.
fn listener(line: &str) -> Option<(u16, u64)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    let listens = *fields.get(3)? == LISTEN;
    listens.then(|| Some((u16::from_str_radix(port, 16).ok()?, fields.get(9)?.parse().ok()?)))?
}

/// Who is at the other end of a connection to `port`; the fields are those of [`listener`].
fn established_peer(line: &str, port: u16) -> Option<IpAddr> {
    const ESTABLISHED: &str = "01";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
    let (remote, _) = fields.get(2)?.rsplit_once(':')?;
    let ours = u16::from_str_radix(local_port, 16).ok()? == port && *fields.get(3)? == ESTABLISHED;
    ours.then(|| address(remote))?
}

/// The kernel writes each four bytes of an address as a number in the byte order of the machine. A server that
/// listens on IPv6 has its IPv4 clients there, too.
fn address(hexadecimal: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hexadecimal.get(at..at + 8)?, 16).ok();
    match hexadecimal.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].map(u32::to_ne_bytes);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    const LISTENING: &str = "   0: 00000000:270F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0";
    const ESTABLISHED: &str = "   1: 0100007F:270F 0100007F:8000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1";

    #[test]
    fn only_a_listening_socket_holds_a_port() {
        assert_eq!(listening_inode(LISTENING, 9999), Some(4711));
        assert_eq!(listening_inode(ESTABLISHED, 9999), None);
        assert_eq!(listening_inode(LISTENING, 9000), None);
    }

    #[test]
    fn listeners_are_looked_for_before_the_first_connection_only() {
        let among = |lines: [&str; 3]| is_among_listeners(lines.join("\n").as_bytes(), 9999);
        assert!(among(["  sl  local_address", LISTENING, ESTABLISHED]));
        assert!(!among(["  sl  local_address", ESTABLISHED, LISTENING]));
    }

    #[test]
    fn a_peer_is_read_from_both_kinds_of_sockets() {
        assert_eq!(established_peer(ESTABLISHED, 9999), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(established_peer(ESTABLISHED, 9000), None);
        assert_eq!(established_peer(LISTENING, 9999), None);
        let mapped = "0000000000000000FFFF000005004D0A";
        assert_eq!(address(mapped), Some(Ipv4Addr::new(10, 77, 0, 5).into()));
    }

    #[test]
    fn connections_to_a_port_are_counted_by_where_they_come_from() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        let held: Vec<_> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        let peers = peers(nix::unistd::getpid(), at.port()).unwrap();
        assert_eq!(peers, BTreeMap::from([(Ipv4Addr::LOCALHOST.into(), held.len() as u64)]));
    }

    #[test]
    fn the_holder_of_a_taken_port_is_named() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_free(port));
        assert_eq!(holder(port).map(|h| h.pid), i32::try_from(std::process::id()).ok());
    }

    #[test]
    fn ports_that_are_given_at_the_same_time_are_all_different() {
        let together = std::thread::scope(|scope| {
            let takers = [(); 4].map(|()| scope.spawn(|| free(20, &[]).unwrap()));
            takers.map(|taker| taker.join().unwrap()).concat()
        });
        let different: std::collections::BTreeSet<u16> = together.iter().copied().collect();
        assert_eq!(different.len(), 80, "{together:?}");
        assert!(together.iter().all(|port| TAKEN_FROM.contains(port)));
    }

    #[test]
    fn ports_that_are_taken_or_spoken_for_are_not_given() {
        let first = free(1, &[]).unwrap()[0];
        // Those that would come next.
        let spoken_for: Vec<u16> = (first + 1..first + 20).collect();
        let _taken: Vec<_> = (first + 20..first + 40)
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .collect();
        let given = free(5, &spoken_for).unwrap();
        assert!(given.iter().all(|port| !(first + 1..first + 40).contains(port)), "{given:?}");
    }
}
