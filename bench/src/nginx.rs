//! Runs nginx as a server under test: one worker, one file of 615 bytes, connections kept for ever; HTTP/1.1 on
//! one port, HTTP/1.1 and HTTP/2 over TLS on another, with a certificate made for the run.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::BenchError;

/// As long as nginx's own start page.
const BODY_BYTES: usize = 615;

/// A running nginx; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Nginx {
    master: Child,
    plain_port: u16,
    tls_port: u16,
}

impl Nginx {
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Starts nginx with all its files below `scratch`.
    ///
    /// # Errors
    /// When its files cannot be written, or it does not listen after five seconds.
    pub(crate) fn start(program: &Path, scratch: &Path) -> Result<Nginx, BenchError> {
        let directory = scratch.join("nginx");
        let [plain_port, tls_port] = free_ports()?;
        lay_out(&directory, plain_port, tls_port)?;
        let master = Command::new(program)
            .arg("-p")
            .arg(&directory)
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let nginx = Nginx { master, plain_port, tls_port };
        nginx.wait_until_up().then_some(nginx).ok_or_else(|| BenchError::NginxDown {
            log: fs::read_to_string(directory.join("error.log")).unwrap_or_default(),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.plain_port)
    }

    pub(crate) fn tls_url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.tls_port)
    }

    fn wait_until_up(&self) -> bool {
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.tls_port)).is_err() {
            if begin.elapsed() > Self::PATIENCE {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

impl Drop for Nginx {
    /// The master ends its worker on SIGTERM; killed, it would leave it behind.
    fn drop(&mut self) {
        let pid = i32::try_from(self.master.id()).expect("process ids fit 22 bits");
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        let _ = self.master.wait();
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> io::Result<[u16; 2]> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

fn lay_out(directory: &Path, plain_port: u16, tls_port: u16) -> Result<(), BenchError> {
    fs::create_dir_all(directory.join("html"))?;
    fs::write(directory.join("html/index.html"), "x".repeat(BODY_BYTES))?;
    fs::write(directory.join("nginx.conf"), configuration(plain_port, tls_port))?;
    let certificate = rcgen::generate_simple_self_signed(["localhost".into(), "127.0.0.1".into()])?;
    fs::write(directory.join("certificate.pem"), certificate.cert.pem())?;
    fs::write(directory.join("key.pem"), certificate.signing_key.serialize_pem())?;
    Ok(())
}

fn configuration(plain_port: u16, tls_port: u16) -> String {
    // Workers of root's nginx would run as nobody, who cannot read a private temporary directory.
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "{user}
daemon off;
worker_processes 1;
pid nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    # As Debian ships it; without the second, head and body of an answer are two packets, and two reads.
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 1h;
    keepalive_requests 4294967295;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    ssl_certificate certificate.pem;
    ssl_certificate_key key.pem;
    ssl_protocols TLSv1.3;
    server {{
        listen 127.0.0.1:{plain_port};
        listen 127.0.0.1:{tls_port} ssl http2;
        root html;
    }}
}}
"
    )
}
