//! Turns a configuration into a server that runs until SIGTERM.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, process, thread};

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::airline::Airline;
use crate::error::Error;
use crate::registry::Instances;
use crate::request::{Unread, WholeRequest, read_whole};
use crate::role::Role;
use crate::service::{Answer, Service, too_large};

/// How long to wait when no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A node of an application graph.
#[derive(Debug)]
enum Node {
    BuiltIn(Service),
    Airline(Airline),
    Registry(Instances),
}

impl Node {
    fn new(role: Role) -> Result<Self, Error> {
        match role {
            Role::BuiltIn(config) => {
                Service::new(config).map(Self::BuiltIn).map_err(Error::Threads)
            }
            Role::Airline(config) => Airline::new(config).map(Self::Airline),
            Role::Registry(config) => Ok(Self::Registry(config.registry)),
        }
    }

    async fn answer(&self, request: &WholeRequest, peer: SocketAddr) -> Answer {
        match self {
            Self::BuiltIn(service) => service.answer(request, peer).await,
            Self::Airline(airline) => airline.answer(request, peer).await,
            Self::Registry(instances) => instances.answer(request),
        }
    }
}

/// Serves until SIGTERM, which ends the process; calls `ready` with the address once connections are taken.
///
/// # Errors
/// [`Error::Listen`], [`Error::Threads`], [`Error::NoStore`].
pub(crate) fn run(role: Role, ready: impl FnOnce(SocketAddr)) -> Result<Infallible, Error> {
    end_at_sigterm().map_err(Error::Threads)?;
    allow_many_connections();
    // As many workers as CPUs may be used: tokio's default, which minds affinity and cgroup quota.
    let runtime = Runtime::new().map_err(Error::Threads)?;
    runtime.block_on(serve(role, ready))
}

async fn serve(role: Role, ready: impl FnOnce(SocketAddr)) -> Result<Infallible, Error> {
    let address = role.listen();
    let listen_error = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen_error)?;
    let node = Arc::new(Node::new(role)?);
    ready(listener.local_addr().map_err(listen_error)?);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => drop(tokio::spawn(converse(stream, peer, Arc::clone(&node)))),
            // Out of file descriptors, mostly: what waits is taken when other connections have closed.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers all requests of one connection.
async fn converse(stream: TcpStream, peer: SocketAddr, node: Arc<Node>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let node = Arc::clone(&node);
        async move {
            match read_whole(request).await {
                Ok(request) => Ok(node.answer(&request, peer).await),
                Err(Unread::TooLarge) => Ok(too_large()),
                Err(Unread::BrokenOff(error)) => Err(error),
            }
        }
    });
    // What goes wrong with a connection is its other end's to tell: it sees a reset.
    let _ = stream.set_nodelay(true);
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

/// Raises the limit of open files to what is allowed: a default of 1024 ends at some 500 requests at a time.
fn allow_many_connections() {
    if let Ok((_, allowed)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // To go on with fewer is fine.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, allowed, allowed);
    }
}

/// Starts a thread that ends the process at SIGTERM, requests under way or not.
///
/// Not tokio's signals: they wait for a worker that does not compute. Not the default action either: there is
/// none for the first process of a container.
fn end_at_sigterm() -> io::Result<()> {
    let mut sigterm = SigSet::empty();
    sigterm.add(Signal::SIGTERM);
    // Threads inherit this: only the one that waits may get the signal.
    sigterm.thread_block()?;
    let wait = move || {
        sigterm.wait().expect("SIGTERM can be waited for");
        process::exit(0)
    };
    thread::Builder::new().name("sigterm".into()).spawn(wait).map(drop)
}
