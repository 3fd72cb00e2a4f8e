//! Turns a scheme, a host and a port into non-blocking byte streams: TCP or a Unix socket, plain or TLS.
//!
//! Knows nothing of HTTP, of schedules and of event queues. Made for edge-triggered events (epoll(7)): whoever
//! gets an event goes on until the call says `WouldBlock`, or gives less than the buffer would have held.

mod fault;
mod resolve;
mod socket;
mod tls;

use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;

pub(crate) use self::fault::TlsFault;
use self::socket::Socket;
use self::tls::{TlsClient, TlsSession};
pub(crate) use crate::requests::Scheme;
use crate::{ConnectionPlan, LoadError};

/// Where the connections of one scheme, host and port go, and how.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// As in the URL.
    pub host: String,
    /// As in the URL.
    pub port: u16,
    /// Where they go: the first of [`Origin::addresses`] until whoever connects has found a better one.
    pub remote: Remote,
    addresses: Vec<SocketAddr>,
    tls: Option<TlsClient>,
}

/// What is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remote {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Tcp(address) => address.fmt(f),
            Remote::Unix(path) => path.display().fmt(f),
        }
    }
}

impl Origin {
    /// Resolves the host and prepares TLS; also gives the time that the resolver took.
    ///
    /// # Errors
    /// When the host has no address that the plan's local addresses can reach, when one of these is not this
    /// machine's, or when the plan's certificates cannot be used.
    pub fn find(
        scheme: Scheme,
        host: &str,
        port: u16,
        plan: &ConnectionPlan,
    ) -> Result<(Origin, Duration), LoadError> {
        let begin = Instant::now();
        let (remote, addresses) = match &plan.unix_socket {
            Some(path) => (Remote::Unix(path.clone()), Vec::new()),
            None => {
                let addresses =
                    reachable(host, resolve::addresses(host, port, &plan.resolve)?, plan)?;
                (Remote::Tcp(addresses[0]), addresses)
            }
        };
        // An address was there without a resolver.
        let is_name = plan.unix_socket.is_none() && resolve::bare(host).parse::<IpAddr>().is_err();
        let took = if is_name { begin.elapsed() } else { Duration::ZERO };
        let tls = match scheme {
            Scheme::Http => None,
            Scheme::Https => Some(TlsClient::new(&plan.tls, plan.protocol, resolve::bare(host))?),
        };
        Ok((Origin { host: host.into(), port, remote, addresses, tls }, took))
    }

    /// All that the host resolves to, in the resolver's order; none for a Unix socket.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connections go to this one of the addresses.
    pub fn choose(&mut self, address: SocketAddr) {
        self.remote = Remote::Tcp(address);
    }

    /// Why no load can be run when no connection could be made.
    pub fn connect_error(&self, source: io::Error) -> LoadError {
        match &self.remote {
            Remote::Unix(path) => LoadError::ConnectUnix { path: path.clone(), source },
            // The local addresses were checked before: it is the ports that are gone.
            Remote::Tcp(address) if source.raw_os_error() == Some(Errno::EADDRNOTAVAIL as i32) => {
                LoadError::NoFreePort { address: *address }
            }
            Remote::Tcp(address) => LoadError::Connect { address: *address, source },
        }
    }
}

/// Those of the addresses that have the family of one of the plan's local addresses, all when it has none.
fn reachable(
    host: &str,
    mut addresses: Vec<SocketAddr>,
    plan: &ConnectionPlan,
) -> Result<Vec<SocketAddr>, LoadError> {
    for local in &plan.local_addresses {
        socket::check_local(*local)
            .map_err(|errno| LoadError::LocalAddress { address: *local, errno })?;
    }
    if !plan.local_addresses.is_empty() {
        let is_reached = |remote: &SocketAddr| {
            plan.local_addresses.iter().any(|local| local.is_ipv4() == remote.is_ipv4())
        };
        addresses.retain(is_reached);
    }
    if addresses.is_empty() {
        Err(LoadError::NoLocalAddress { host: host.into() })
    } else {
        Ok(addresses)
    }
}

/// Hands out the plan's local addresses in turn.
#[derive(Debug, Clone)]
pub(crate) struct LocalAddresses {
    addresses: Vec<IpAddr>,
    turn: usize,
}

impl LocalAddresses {
    /// Those that can reach the remote.
    pub fn new(plan: &ConnectionPlan, remote: &Remote) -> LocalAddresses {
        let addresses = match remote {
            Remote::Unix(_) => Vec::new(),
            Remote::Tcp(remote) => {
                let has_family = |local: &&IpAddr| local.is_ipv4() == remote.is_ipv4();
                plan.local_addresses.iter().filter(has_family).copied().collect()
            }
        };
        LocalAddresses { addresses, turn: 0 }
    }

    /// The address of the next connection; `None` leaves the choice to the kernel.
    pub fn take_turn(&mut self) -> Option<IpAddr> {
        let address = self.addresses.get(self.turn).copied()?;
        self.turn = (self.turn + 1) % self.addresses.len();
        Some(address)
    }
}

/// A connection: bytes in, bytes out.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    layer: Layer,
}

#[derive(Debug)]
enum Layer {
    Plain,
    Tls(Box<TlsSession>),
}

impl Stream {
    /// Begins to connect; an event says when [`Stream::finish_connecting`] may be called.
    ///
    /// # Errors
    /// When the kernel refuses at once. A Unix socket whose accept queue is full says `WouldBlock`, and no event
    /// follows: this, too, is a refusal (connect(2)).
    pub fn connect(origin: &Origin, local: Option<IpAddr>) -> io::Result<Stream> {
        let layer = match &origin.tls {
            None => Layer::Plain,
            Some(client) => Layer::Tls(Box::new(client.begin()?)),
        };
        Ok(Stream { socket: Socket::connect(&origin.remote, local)?, layer })
    }

    /// Ends the connecting, once the socket has become writable.
    ///
    /// # Errors
    /// What the connecting failed with.
    pub fn finish_connecting(&mut self) -> io::Result<()> {
        self.socket.finish_connecting()
    }

    /// Drives the TLS handshake as far as the socket allows; true when it is done, at once without TLS. The peer's
    /// first bytes may have come with the end of the handshake, and no event tells of them: read next.
    ///
    /// # Errors
    /// Why there is no TLS connection. A server that wants a certificate of the client may say so only in the
    /// first [`Stream::read`] (RFC 8446, section 4.4.2.4); see [`TlsFault::of`].
    pub fn handshake(&mut self) -> Result<bool, TlsFault> {
        match &mut self.layer {
            Layer::Plain => Ok(true),
            Layer::Tls(session) => session.handshake(&mut self.socket),
        }
    }

    /// Reads what has come; 0 at the end of the stream. When it gives less than the buffer holds, the socket was
    /// empty, and later bytes are a new event; an end of stream that was announced together with the bytes is not.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come, or why the connection is broken.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.layer {
            Layer::Plain => self.socket.receive(buffer),
            Layer::Tls(session) => session.read(&mut self.socket, buffer),
        }
    }

    /// Takes bytes to send; gives how many. With TLS they may wait as ciphertext: see [`Stream::flush`].
    ///
    /// # Errors
    /// `WouldBlock` when none were taken, or why the connection is broken.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.layer {
            Layer::Plain => self.socket.send(bytes),
            Layer::Tls(session) => session.write(&mut self.socket, bytes),
        }
    }

    /// Sends ciphertext that waits; true when none is left. Due whenever the socket becomes writable.
    ///
    /// # Errors
    /// Why the connection is broken.
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.layer {
            Layer::Plain => Ok(true),
            Layer::Tls(session) => session.flush(&mut self.socket),
        }
    }

    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.layer, Layer::Tls(_))
    }

    /// Whether ciphertext waits to be sent.
    pub fn has_unwritten(&self) -> bool {
        match &self.layer {
            Layer::Plain => false,
            Layer::Tls(session) => session.has_unwritten(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends the closing alert (RFC 8446, section 6.1) if that does not have to wait.
impl Drop for Stream {
    fn drop(&mut self) {
        if let Layer::Tls(session) = &mut self.layer {
            session.say_goodbye(&mut self.socket);
        }
    }
}

#[cfg(test)]
mod tests;
