//! Turns a port and a Unix socket into a server that runs until SIGTERM, on one thread.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io, process, thread};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime;

use crate::command_line::CommandLine;
use crate::error::Error;
use crate::tally::Tally;
use crate::{admin, intake};

/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Where the program can be reached.
#[derive(Debug, Serialize)]
pub(crate) struct Listening {
    listening: SocketAddr,
    admin: PathBuf,
}

/// Serves until SIGTERM, which ends the process; calls `ready` once connections are taken.
///
/// # Errors
/// [`Error`]
pub(crate) fn run(line: &CommandLine, ready: impl FnOnce(&Listening)) -> Result<Infallible, Error> {
    // Before the runtime, whose threads then inherit the mask.
    let sigterm = blocked_sigterm().map_err(Error::Threads)?;
    // One thread: the collector runs beside what is measured.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Error::Threads)?.block_on(serve(line, sigterm, ready))
}

async fn serve(
    line: &CommandLine,
    sigterm: SigSet,
    ready: impl FnOnce(&Listening),
) -> Result<Infallible, Error> {
    let port_error = |source| Error::Listen { address: line.listen, source };
    let socket_error = |source| Error::Admin { socket: line.admin.clone(), source };
    let port = TcpListener::bind(line.listen).await.map_err(port_error)?;
    let socket = UnixListener::bind(&line.admin).map_err(socket_error)?;
    end_at(sigterm, &line.admin).map_err(Error::Threads)?;
    let listening = port.local_addr().map_err(port_error)?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    ready(&Listening { listening, admin: line.admin.clone() });
    tokio::spawn(accept_admins(socket, Arc::clone(&tally)));
    accept_senders(port, tally).await
}

async fn accept_senders(port: TcpListener, tally: Arc<Mutex<Tally>>) -> ! {
    loop {
        match port.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(take(stream, Arc::clone(&tally)))),
            // Out of file descriptors, mostly: what waits is taken when other connections have closed.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn accept_admins(socket: UnixListener, tally: Arc<Mutex<Tally>>) -> ! {
    loop {
        match socket.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(answer(stream, Arc::clone(&tally)))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers all requests of one connection, HTTP/1.1 or HTTP/2 as its first bytes tell.
async fn take(stream: TcpStream, tally: Arc<Mutex<Tally>>) {
    let service = service_fn(move |request| {
        let tally = Arc::clone(&tally);
        async move { intake::answer(request, &tally).await }
    });
    // What goes wrong with a connection is its other end's to tell: it sees a reset.
    let _ = stream.set_nodelay(true);
    let builder = auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(stream: UnixStream, tally: Arc<Mutex<Tally>>) {
    let service = service_fn(move |request| {
        let answer = admin::answer(&request, &tally);
        async { Ok::<_, Infallible>(answer) }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn blocked_sigterm() -> io::Result<SigSet> {
    let mut sigterm = SigSet::empty();
    sigterm.add(Signal::SIGTERM);
    sigterm.thread_block()?;
    Ok(sigterm)
}

/// Starts a thread that removes the socket and ends the process when the signal comes.
///
/// Not the default action: there is none for the first process of a container.
fn end_at(sigterm: SigSet, socket: &Path) -> io::Result<()> {
    let socket = socket.to_owned();
    let wait = move || {
        sigterm.wait().expect("SIGTERM can be waited for");
        // It may have been removed with its folder.
        let _ = fs::remove_file(socket);
        process::exit(0)
    };
    thread::Builder::new().name("sigterm".into()).spawn(wait).map(drop)
}
