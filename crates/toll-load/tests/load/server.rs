//! A small HTTP server that answers as a test tells it: a thread for each connection, standard library only.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// What the server has seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub body_bytes: AtomicU64,
}

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

impl Server {
    /// Answers each request with what `reply` says to its number, counted from zero over all connections.
    pub fn start(reply: impl Fn(u64) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let (shared, reply) = (Arc::clone(&seen), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, reply) = (Arc::clone(&shared), Arc::clone(&reply));
                seen.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve(stream.unwrap(), &seen, &*reply));
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
}

fn serve(stream: TcpStream, seen: &Seen, reply: &(impl Fn(u64) -> Reply + ?Sized)) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(body) = read_request(&mut reader) {
        seen.body_bytes.fetch_add(body, Ordering::Relaxed);
        match reply(seen.requests.fetch_add(1, Ordering::Relaxed)) {
            Reply::Keep(text) => {
                if (&stream).write_all(text.as_bytes()).is_err() {
                    return;
                }
            }
            Reply::Close(text) => {
                let _ = (&stream).write_all(text.as_bytes());
                return;
            }
            Reply::Reset => {
                let at_once = linger { l_onoff: 1, l_linger: 0 };
                setsockopt(&stream, sockopt::Linger, &at_once).unwrap();
                return;
            }
            Reply::Silence => {}
        }
    }
}

/// Reads one request; gives the length of its body, or nothing at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<u64> {
    let mut body = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(length) = line.strip_prefix("content-length: ") {
            body = length.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let read = std::io::copy(&mut reader.take(body), &mut std::io::sink()).ok()?;
    (read == body).then_some(body)
}
