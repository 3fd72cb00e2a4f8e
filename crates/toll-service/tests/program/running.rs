//! Starts the program and talks to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;
use std::{fs, io};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// No answer takes as long, on however busy a machine.
pub const HANG: Duration = Duration::from_secs(60);

/// A service that runs until this is dropped.
pub struct Running {
    pub process: Child,
    pub address: SocketAddr,
}

impl Running {
    /// Plays `config` and waits until it listens.
    pub fn start(config: &Value) -> Self {
        let file = config_file(config);
        let mut process = play(&file).spawn().expect("the program can be started");
        let stderr = process.stderr.take().expect("stderr is a pipe");
        Self { process, address: announced_address(stderr) }
    }

    pub fn get(&self, headers: &str) -> Reply {
        self.send("GET", "/", headers, "")
    }

    /// Sends one request with more `headers` (lines that end with `\r\n`) and reads until the end.
    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let length = match body.len() {
            0 => String::new(),
            length => format!("content-length: {length}\r\n"),
        };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: client:9000\r\n{headers}{length}");
        exchange(self.address, &format!("{head}connection: close\r\n\r\n{body}"))
    }

    /// CPU time of all its threads, by the scheduler's own count.
    pub fn cpu_time(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).expect("it runs");
        let of_thread = |task: io::Result<fs::DirEntry>| -> u64 {
            let path = task.expect("a readable directory").path().join("schedstat");
            let text = fs::read_to_string(path).expect("the thread lives on");
            text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds come first")
        };
        Duration::from_nanos(tasks.map(of_thread).sum())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then seen.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A service without calls that does nothing but answer `hello`.
pub fn plain(name: &str) -> Value {
    json!({
        "name": name, "listen": "127.0.0.1:0", "calls": [],
        "work_us": 0, "reply_bytes": 5, "status": 200,
    })
}

/// A plain service that calls what listens at `address` under the name `server`.
pub fn calling(name: &str, address: SocketAddr) -> Value {
    calling_in_turn(name, &[address])
}

/// As [`calling`], with a server at each of `addresses`.
pub fn calling_in_turn(name: &str, addresses: &[SocketAddr]) -> Value {
    let call = json!({ "service": "server", "addresses": addresses, "host": "server:9999" });
    with(plain(name), "calls", json!([call]))
}

/// `config` with another value for `key`.
pub fn with(mut config: Value, key: &str, value: Value) -> Value {
    config[key] = value;
    config
}

pub fn config_file(config: &Value) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(config.to_string().as_bytes()).expect("room for a configuration");
    file
}

/// The program, about to play `config`.
pub fn play(config: &NamedTempFile) -> Command {
    let mut command = program();
    command.arg("--config").arg(config.path()).stderr(Stdio::piped());
    command
}

pub fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().expect("the program can be started")
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_toll-service"))
}

fn announced_address(stderr: ChildStderr) -> SocketAddr {
    let mut line = String::new();
    BufReader::new(stderr).read_line(&mut line).expect("readable text");
    let address = line.trim().strip_prefix("listening on ");
    address.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("not ready: {line}"))
}

/// A connection that is kept.
pub struct Connection(TcpStream);

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).expect("it listens"))
    }

    /// Sends one GET with more `headers` and reads until what came ends with `end`.
    pub fn ask(&mut self, headers: &str, end: &str) {
        let request = format!("GET / HTTP/1.1\r\nhost: client:9000\r\n{headers}\r\n");
        self.0.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            let mut piece = [0; 4096];
            let length = self.0.read(&mut piece).expect("it answers");
            assert!(length > 0, "it hung up");
            answer.extend_from_slice(&piece[..length]);
        }
    }
}

/// An answer over HTTP/1.1.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

/// Sends `requests`, the last of which closes the connection, and reads until the end.
pub fn exchange(address: SocketAddr, requests: &str) -> Reply {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(HANG)).expect("a time limit");
    stream.write_all(requests.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers in text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Reply { status, head: head.to_lowercase(), body: body.into() }
}
