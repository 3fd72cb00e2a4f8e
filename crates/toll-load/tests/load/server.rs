//! A small HTTP server that answers as a test tells it: a thread for each connection, standard library only.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};

pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// These bytes; the connection lives on.
    Keep(String),
    /// These bytes, then the end of the connection.
    Close(String),
    /// The connection is reset.
    Reset,
    /// Nothing, ever.
    Silence,
}

impl Reply {
    pub fn ok() -> Reply {
        Reply::Keep(OK.into())
    }
}

/// A request as it came in.
#[derive(Debug)]
pub struct Request {
    /// Counted from zero over all connections.
    pub number: u64,
    /// Requests being answered, this one included.
    pub in_flight: u64,
    /// `GET /path HTTP/1.1`.
    pub line: String,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// What the server has seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub body_bytes: AtomicU64,
    in_flight: AtomicU64,
    most_in_flight: AtomicU64,
    peers: Mutex<Vec<IpAddr>>,
}

impl Seen {
    fn begin(&self) -> u64 {
        let in_flight = 1 + self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        in_flight
    }

    fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a connection is read from and written to.
pub trait Wire: Read + Write {
    fn reset(&self);
}

impl Wire for TcpStream {
    fn reset(&self) {
        let at_once = linger { l_onoff: 1, l_linger: 0 };
        setsockopt(self, sockopt::Linger, &at_once).unwrap();
    }
}

impl Wire for UnixStream {
    fn reset(&self) {}
}

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    /// Answers each request with what `reply` says to its number, counted from zero over all connections.
    pub fn start(reply: impl Fn(u64) -> Reply + Send + Sync + 'static) -> Server {
        Server::hear(move |request| reply(request.number))
    }

    /// Answers each request with what `reply` says to it.
    pub fn hear(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::wrapped(|_, stream| Some(stream), reply)
    }

    /// The same over what `wrap` makes of each connection, if it makes anything, given its number.
    pub fn wrapped<W: Wire>(
        wrap: impl Fn(u64, TcpStream) -> Option<W> + Send + Sync + 'static,
        reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (shared, wrap, reply) = (Arc::clone(&seen), Arc::new(wrap), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, wrap, reply) = (shared.clone(), wrap.clone(), reply.clone());
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let number = seen.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || {
                    seen.peers.lock().unwrap().extend(stream.peer_addr().map(|peer| peer.ip()));
                    if let Some(wire) = wrap(number, stream) {
                        serve(wire, &seen, &*reply);
                    }
                });
            }
        });
        Server { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    pub fn body_bytes(&self) -> u64 {
        self.seen.body_bytes.load(Ordering::Relaxed)
    }

    /// Most requests that were being answered at a time.
    pub fn most_in_flight(&self) -> u64 {
        self.seen.most_in_flight.load(Ordering::Relaxed)
    }

    /// Where connections came from.
    pub fn peers(&self) -> Vec<IpAddr> {
        self.seen.peers.lock().unwrap().clone()
    }
}

/// Answers at a Unix socket; gives what it sees.
pub fn at_unix_socket(
    path: &Path,
    reply: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Arc<Seen> {
    let listener = UnixListener::bind(path).unwrap();
    let seen = Arc::new(Seen::default());
    let (shared, reply) = (Arc::clone(&seen), Arc::new(reply));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, reply) = (shared.clone(), reply.clone());
            seen.connections.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || serve(stream.unwrap(), &seen, &*reply));
        }
    });
    seen
}

fn serve(wire: impl Wire, seen: &Seen, reply: &(impl Fn(&Request) -> Reply + ?Sized)) {
    let mut wire = BufReader::new(wire);
    while let Some(mut request) = read_request(&mut wire) {
        seen.body_bytes.fetch_add(request.body.len() as u64, Ordering::Relaxed);
        request.number = seen.requests.fetch_add(1, Ordering::Relaxed);
        request.in_flight = seen.begin();
        let reply = reply(&request);
        seen.end();
        match reply {
            Reply::Keep(text) => {
                if wire.get_mut().write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
            Reply::Close(text) => {
                let _ = wire.get_mut().write_all(text.as_bytes());
                return;
            }
            Reply::Reset => return wire.get_ref().reset(),
            Reply::Silence => {}
        }
    }
}

/// Reads one request; nothing at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let line = read_line(reader)?;
    let mut request =
        Request { number: 0, in_flight: 0, line, headers: Vec::new(), body: Vec::new() };
    loop {
        match read_line(reader)? {
            end if end.is_empty() => break,
            header => request.headers.push(header),
        }
    }
    let length = request.headers.iter().find_map(|h| h.strip_prefix("content-length: "));
    request.body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn read_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.strip_suffix("\r\n").map(String::from)
}
