//! One TCP connection with at most one request in flight: bytes out, an answer or a failure in.
//! Knows nothing of schedules and keeps no statistics.

use std::io::{self, ErrorKind as Io, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};

use crate::http::{Answer, Fault, ResponseParser};
use crate::{ErrorKind, Phase};

/// A request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The phase it counts in.
    pub phase: Phase,
    /// When it ought to have been sent, nanoseconds.
    pub intended_ns: u64,
    /// When it was handed to the kernel, nanoseconds.
    pub sent_ns: u64,
}

/// What reading from a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// The answer is not complete yet.
    Incomplete,
    /// The answer is complete.
    Answer(Answer),
    /// There will be no answer.
    Failure(ErrorKind),
}

/// A TCP connection to the target.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    state: State,
    parser: ResponseParser,
    /// Bytes of the request that are still to be written.
    unwritten: usize,
    has_answered: bool,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The handshake is under way since this instant, nanoseconds.
    Connecting { since_ns: u64 },
    /// Ready for a request.
    Idle,
    /// A request was sent, at least in part, and its answer is due.
    Busy(Exchange),
}

impl Connection {
    /// Begins to connect; the handshake goes on in the background.
    ///
    /// # Errors
    /// When the kernel refuses at once, for instance for want of file descriptors or ports.
    pub fn begin(
        address: SocketAddr,
        to_head_request: bool,
        now_ns: u64,
    ) -> io::Result<Connection> {
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Stream, flags, None)?;
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(address)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let state = State::Connecting { since_ns: now_ns };
        Connection::new(fd.into(), state, to_head_request)
    }

    /// Takes over a stream that is connected.
    ///
    /// # Errors
    /// When the kernel refuses to make it non-blocking.
    pub fn established(stream: TcpStream, to_head_request: bool) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Connection::new(stream, State::Idle, to_head_request)
    }

    fn new(stream: TcpStream, state: State, to_head_request: bool) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        let parser = ResponseParser::new(to_head_request);
        Ok(Connection { stream, state, parser, unwritten: 0, has_answered: false })
    }

    /// The socket, to register it for events.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What it is doing.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it has carried an answer: a peer that answers may be connected to again at once.
    pub fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Ends the handshake.
    ///
    /// # Errors
    /// What the handshake failed with.
    pub fn finish_connecting(&mut self) -> io::Result<()> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        self.state = State::Idle;
        Ok(())
    }

    /// Begins a request on an idle connection; gives the bytes written.
    ///
    /// # Errors
    /// When nothing was written: the peer has closed the connection, the request was not sent.
    pub fn send(&mut self, exchange: Exchange, request: &[u8]) -> io::Result<usize> {
        self.unwritten = request.len();
        let written = self.write_on(request)?;
        self.state = State::Busy(exchange);
        Ok(written)
    }

    /// Writes what is left of the request, as far as the socket takes it; gives the bytes written.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write_on(&mut self, request: &[u8]) -> io::Result<usize> {
        let before = self.unwritten;
        while self.unwritten > 0 {
            match self.stream.write(&request[request.len() - self.unwritten..]) {
                Ok(bytes) => self.unwritten -= bytes,
                Err(error) if error.kind() == Io::WouldBlock => break,
                Err(error) if error.kind() == Io::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(before - self.unwritten)
    }

    /// Reads what has come; gives the bytes read and what they came to. `hung_up` says that the peer's end of
    /// stream is among it.
    pub fn receive(&mut self, buffer: &mut [u8], hung_up: bool) -> (u64, Received) {
        let mut total = 0;
        loop {
            let received = match self.stream.read(buffer) {
                Ok(0) => self.end_of_stream(),
                Ok(bytes) => {
                    total += bytes as u64;
                    let received = self.feed(&buffer[..bytes], hung_up);
                    // A short read has emptied the socket; what comes later is a new event (epoll(7)).
                    let more = bytes == buffer.len() || hung_up;
                    if received == Received::Incomplete && more {
                        continue;
                    }
                    received
                }
                Err(error) if error.kind() == Io::WouldBlock => Received::Incomplete,
                Err(error) if error.kind() == Io::Interrupted => continue,
                Err(_) => Received::Failure(ErrorKind::Reset),
            };
            return (total, received);
        }
    }

    fn feed(&mut self, bytes: &[u8], hung_up: bool) -> Received {
        match self.parser.feed(bytes) {
            Ok(None) => Received::Incomplete,
            Ok(Some(answer)) => self.answered(answer, hung_up),
            Err(fault) => Received::Failure(kind_of(fault)),
        }
    }

    fn end_of_stream(&mut self) -> Received {
        match self.parser.end_of_stream() {
            Ok(answer) => self.answered(answer, true),
            Err(fault) => Received::Failure(kind_of(fault)),
        }
    }

    fn answered(&mut self, answer: Answer, hung_up: bool) -> Received {
        self.has_answered = true;
        self.state = State::Idle;
        // An answer that came before the request was all written leaves the rest of it in the way.
        let keep_alive = answer.keep_alive && !hung_up && self.unwritten == 0;
        Received::Answer(Answer { keep_alive, ..answer })
    }
}

fn kind_of(fault: Fault) -> ErrorKind {
    match fault {
        Fault::Garbage => ErrorKind::Garbage,
        Fault::Oversize => ErrorKind::Oversize,
        Fault::Truncated => ErrorKind::Closed,
    }
}
