//! Gives the ztunnel of a node the networks of its pods, as istio-cni does: over a Unix socket of sequenced packets, a
//! descriptor of the network beside each pod's message.
//!
//! A thread waits for ztunnel and answers it for as long as the environment stands: a ztunnel that connects again is
//! told all again. Source: `proto/zds.proto` and `src/inpod/` of ztunnel.

use std::io::{self, IoSlice, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    listen, recv, sendmsg, socket,
};

use super::messages;
use super::workload::Workload;

/// Longest message of ztunnel's: an error in its words.
const LONGEST_MESSAGE: usize = 4096;

/// A pod and its network.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    pub(crate) workload: Workload,
    pub(crate) network: Arc<OwnedFd>,
}

/// The thread that answers one node's ztunnel.
#[derive(Debug)]
pub(crate) struct Zds {
    stop: PipeWriter,
    thread: Option<JoinHandle<()>>,
    state: Arc<Mutex<State>>,
}

/// How far ztunnel is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not got all its pods yet.
    #[default]
    Waiting,
    /// It has taken all its pods.
    Served,
    /// It refuses what it is sent, or the socket broke.
    Refused(String),
}

impl Zds {
    /// Listens at `path` and serves `pods` to whoever connects.
    ///
    /// # Errors
    /// When the socket or the thread cannot be made.
    pub(crate) fn serve(path: &Path, pods: Vec<Pod>) -> io::Result<Self> {
        let listener = listen_at(path)?;
        let (stopped, stop) = io::pipe()?;
        let state = Arc::new(Mutex::new(State::Waiting));
        let server = Server { listener, stopped, pods, state: Arc::clone(&state) };
        let thread = thread::Builder::new().name("toll-zds".into()).spawn(move || server.run())?;
        Ok(Self { stop, thread: Some(thread), state })
    }

    pub(crate) fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Zds {
    fn drop(&mut self) {
        let stopped = self.stop.write_all(b"0");
        if let (Ok(()), Some(thread)) = (stopped, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Why one connection's service is over.
enum End {
    /// The environment goes down.
    Stopped,
    /// Ztunnel closed the connection.
    Closed,
}

/// Why it broke off.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the socket broke: {0}")]
    Socket(#[from] io::Error),
    #[error("{0}")]
    Hello(String),
    #[error("{pod}: {reason}")]
    Pod { pod: String, reason: String },
    #[error("end of the list: {0}")]
    Snapshot(String),
}

/// What one question of the server's brings.
enum Received {
    Message(Vec<u8>),
    End(End),
}

struct Server {
    listener: OwnedFd,
    stopped: PipeReader,
    pods: Vec<Pod>,
    state: Arc<Mutex<State>>,
}

impl Server {
    fn run(&self) {
        loop {
            match self.accept().map_err(Failure::from).and_then(|peer| match peer {
                Some(peer) => self.serve(&peer),
                None => Ok(End::Stopped),
            }) {
                Ok(End::Stopped) => return,
                Ok(End::Closed) => {}
                Err(failure) => return self.be(State::Refused(failure.to_string())),
            }
        }
    }

    fn be(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// None when the environment goes down.
    fn accept(&self) -> io::Result<Option<OwnedFd>> {
        if !self.is_readable(self.listener.as_fd())? {
            return Ok(None);
        }
        let peer = accept4(self.listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: the kernel has just made it, and nobody else knows it.
        Ok(Some(unsafe { OwnedFd::from_raw_fd(peer) }))
    }

    /// Tells one ztunnel of all pods, then waits for its end: pods neither come nor go.
    fn serve(&self, peer: &OwnedFd) -> Result<End, Failure> {
        self.be(State::Waiting);
        match self.receive(peer)? {
            Received::Message(hello) => messages::hello(&hello).map_err(Failure::Hello)?,
            Received::End(end) => return Ok(end),
        }
        for pod in &self.pods {
            let refused = |reason| Failure::Pod { pod: pod.workload.pod.clone(), reason };
            match self.ask(peer, &messages::add(&pod.workload), Some(pod.network.as_fd()))? {
                Received::Message(answer) => messages::acknowledged(&answer).map_err(refused)?,
                Received::End(end) => return Ok(end),
            }
        }
        match self.ask(peer, &messages::snapshot_sent(), None)? {
            Received::Message(answer) => {
                messages::acknowledged(&answer).map_err(Failure::Snapshot)?;
            }
            Received::End(end) => return Ok(end),
        }
        self.be(State::Served);
        loop {
            if let Received::End(end) = self.receive(peer)? {
                return Ok(end);
            }
        }
    }

    fn ask(
        &self,
        peer: &OwnedFd,
        message: &[u8],
        beside: Option<BorrowedFd<'_>>,
    ) -> io::Result<Received> {
        match send(peer, message, beside) {
            Err(Errno::EPIPE | Errno::ECONNRESET) => Ok(Received::End(End::Closed)),
            sent => sent.map_err(io::Error::from).and_then(|()| self.receive(peer)),
        }
    }

    fn receive(&self, peer: &OwnedFd) -> io::Result<Received> {
        if !self.is_readable(peer.as_fd())? {
            return Ok(Received::End(End::Stopped));
        }
        let mut message = vec![0; LONGEST_MESSAGE];
        match recv(peer.as_raw_fd(), &mut message, MsgFlags::empty()) {
            Ok(0) | Err(Errno::ECONNRESET) => Ok(Received::End(End::Closed)),
            Ok(length) => {
                message.truncate(length);
                Ok(Received::Message(message))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Waits for something to read, or for the end of the environment: then it is false.
    fn is_readable(&self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let stopped = self.stopped.as_fd();
        let mut both = [socket, stopped].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        loop {
            match poll(&mut both, PollTimeout::NONE) {
                Ok(_) => return Ok(!both[1].any().unwrap_or(true)),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    bind(listener.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&listener, Backlog::new(1)?)?;
    Ok(listener)
}

fn send(peer: &OwnedFd, message: &[u8], beside: Option<BorrowedFd<'_>>) -> nix::Result<()> {
    let descriptors: Vec<_> = beside.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(peer.as_raw_fd(), &[IoSlice::new(message)], rights, flags, None).map(drop)
}

#[cfg(test)]
pub(crate) mod tests;
