//! One connection: requests out, what came of them in. Knows nothing of schedules and keeps no statistics.
//!
//! A connection has lanes, each with at most one request in flight: one lane in HTTP/1.1, as many as there are
//! streams in HTTP/2.

use std::io::{self, ErrorKind as Io};
use std::net::IpAddr;

use crate::ErrorKind;
use crate::clock::now_ns;
use crate::http::{Answer, Fault, ResponseParser};
use crate::http2::{Completion, Http2};
use crate::requests::Message;
use crate::transport::{Origin, Stream, TlsFault};

/// Buffers that all connections of an event loop share.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// What was read last.
    pub buffer: Vec<u8>,
    /// What the bytes read came to.
    pub completions: Vec<Completion>,
    /// When the last bytes had come, nanoseconds.
    pub now_ns: u64,
}

/// What reading came to, besides completions.
#[derive(Debug)]
pub(crate) struct Received {
    /// Bytes of HTTP.
    pub bytes: u64,
    /// The server would not talk TLS with this client after all.
    pub refused: Option<TlsFault>,
}

/// Why a connection did not come about.
#[derive(Debug)]
pub(crate) enum OpenFault {
    /// TCP or the Unix socket.
    Connect(io::Error),
    /// TLS.
    Tls(TlsFault),
}

/// A connection to an origin.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    progress: Progress,
    began_ns: u64,
    connected_ns: u64,
    ready_ns: u64,
    speaker: Speaker,
    /// What the socket has not taken yet, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    was_of_use: bool,
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Connecting,
    Handshaking,
    Ready,
}

#[derive(Debug)]
enum Speaker {
    Http1 { parser: ResponseParser, busy: bool },
    Http2(Box<Http2>),
}

/// How to speak on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speech {
    /// HTTP/2 instead of HTTP/1.1.
    pub http2: bool,
    /// Answers carry a `grpc-status`.
    pub grpc: bool,
    /// Lanes.
    pub streams: u32,
}

impl Connection {
    /// Begins to connect; the handshakes go on in the background.
    ///
    /// # Errors
    /// When the kernel refuses at once, for instance for want of file descriptors or ports.
    pub fn begin(
        origin: &Origin,
        local: Option<IpAddr>,
        speech: Speech,
        now_ns: u64,
    ) -> io::Result<Connection> {
        let speaker = if speech.http2 {
            Speaker::Http2(Box::new(Http2::new(speech.streams, speech.grpc)))
        } else {
            Speaker::Http1 { parser: ResponseParser::new(), busy: false }
        };
        Ok(Connection {
            stream: Stream::connect(origin, local)?,
            progress: Progress::Connecting,
            began_ns: now_ns,
            connected_ns: 0,
            ready_ns: 0,
            speaker,
            outgoing: Vec::new(),
            written: 0,
            was_of_use: false,
            is_over: false,
        })
    }

    /// The socket, to register it for events.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Whether requests can be sent.
    pub fn is_ready(&self) -> bool {
        self.progress == Progress::Ready
    }

    /// When it was begun, nanoseconds.
    pub fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Time that TCP took, nanoseconds.
    pub fn connect_ns(&self) -> u64 {
        self.connected_ns - self.began_ns
    }

    /// Time that TLS took, nanoseconds; nothing without TLS.
    pub fn tls_ns(&self) -> Option<u64> {
        self.stream.is_tls().then_some(self.ready_ns - self.connected_ns)
    }

    /// The kind of failure of a connection that is not ready.
    pub fn opening_fails_as(&self) -> ErrorKind {
        match self.progress {
            Progress::Connecting => ErrorKind::Connect,
            Progress::Handshaking | Progress::Ready => ErrorKind::Tls,
        }
    }

    /// Whether bytes may have come that no event tells of: with the end of a TLS handshake.
    pub fn may_have_read_ahead(&self) -> bool {
        self.stream.is_tls()
    }

    /// Whether a request has come to its end on it, by an answer or by a failure: a peer that takes requests may be
    /// connected to again at once.
    pub fn was_of_use(&self) -> bool {
        self.was_of_use
    }

    /// Whether it can carry no further request and has none in flight that could still be answered.
    pub fn is_over(&self) -> bool {
        self.is_over
            || matches!(&self.speaker, Speaker::Http2(h2) if h2.is_closing() && h2.open_lanes() == 0)
    }

    /// Whether the peer allows another request at present.
    pub fn can_start(&self) -> bool {
        match &self.speaker {
            Speaker::Http1 { busy, .. } => !busy,
            Speaker::Http2(http2) => http2.can_start(),
        }
    }

    /// Goes on with the handshakes; true when requests can be sent.
    ///
    /// # Errors
    /// What the connection failed with.
    pub fn advance(&mut self) -> Result<bool, OpenFault> {
        if self.progress == Progress::Connecting {
            self.stream.finish_connecting().map_err(OpenFault::Connect)?;
            self.connected_ns = now_ns();
            self.progress = Progress::Handshaking;
        }
        if !self.stream.handshake().map_err(OpenFault::Tls)? {
            return Ok(false);
        }
        self.ready_ns = now_ns();
        if let Speaker::Http2(http2) = &self.speaker {
            http2.preface(&mut self.outgoing);
            self.flush().map_err(OpenFault::Connect)?;
        }
        self.progress = Progress::Ready;
        Ok(true)
    }

    /// Begins a request on a free lane; false when the peer allows no more at present. HTTP/1.1 writes at once,
    /// HTTP/2 with the next [`Connection::flush`].
    ///
    /// # Errors
    /// When nothing was written: the peer has closed the connection, the request was not sent.
    pub fn start(&mut self, lane: u32, message: &Message<'_>) -> io::Result<bool> {
        match &mut self.speaker {
            Speaker::Http1 { parser, busy } => {
                parser.expect(message.is_head);
                *busy = true;
                let taken = write_all_of(&mut self.stream, message.head)?;
                self.keep(&message.head[taken..]);
                if !message.body.is_empty() {
                    let taken = if self.has_unwritten() {
                        0
                    } else {
                        write_all_of(&mut self.stream, message.body).unwrap_or(0)
                    };
                    self.keep(&message.body[taken..]);
                }
                Ok(true)
            }
            Speaker::Http2(http2) => Ok(http2.start(
                lane,
                message.head,
                message.body,
                message.is_head,
                &mut self.outgoing,
            )),
        }
    }

    /// Whether requests leave with the next [`Connection::flush`] and not at once.
    pub fn is_multiplexed(&self) -> bool {
        matches!(self.speaker, Speaker::Http2(_))
    }

    /// Takes a lane back whose answer nobody waits for any more; false when that ends the connection.
    pub fn cancel(&mut self, lane: u32) -> bool {
        match &mut self.speaker {
            Speaker::Http1 { .. } => false,
            Speaker::Http2(http2) => {
                http2.cancel(lane, &mut self.outgoing);
                true
            }
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        self.outgoing.extend_from_slice(rest);
    }

    /// Whether something waits to be written.
    pub fn has_unwritten(&self) -> bool {
        !self.outgoing.is_empty() || self.stream.has_unwritten()
    }

    /// Writes what waits, as far as the socket takes it.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.outgoing.is_empty() {
            let taken = write_all_of(&mut self.stream, &self.outgoing[self.written..])?;
            self.written += taken;
            if let Speaker::Http2(http2) = &mut self.speaker {
                http2.wrote(taken, self.outgoing.len() - self.written);
            }
            // Not only when all is written: that may never be while bodies are sent without a pause.
            if 2 * self.written >= self.outgoing.len() {
                self.outgoing.drain(..self.written);
                self.written = 0;
            }
        }
        self.stream.flush().map(|_| ())
    }

    /// Reads what has come. `hung_up` says that the peer's end of stream is among it.
    pub fn receive(&mut self, scratch: &mut Scratch, hung_up: bool) -> Received {
        let mut bytes = 0;
        let mut refused = None;
        loop {
            let read = self.stream.read(&mut scratch.buffer);
            scratch.now_ns = now_ns();
            let broken = match read {
                Ok(0) => Some(self.end_of_stream(scratch)),
                Ok(read) => {
                    bytes += read as u64;
                    let fault = self.feed(scratch, read, hung_up).err();
                    // A short read has emptied the socket; what comes later is a new event (epoll(7)).
                    let drained = read < scratch.buffer.len();
                    if fault.is_none() && (!drained || hung_up) {
                        continue;
                    }
                    fault
                }
                Err(error) if error.kind() == Io::WouldBlock => None,
                Err(error) if error.kind() == Io::Interrupted => continue,
                Err(error) => {
                    refused = TlsFault::of(&error);
                    Some(ErrorKind::Reset)
                }
            };
            if let Some(kind) = broken {
                self.fail(kind, &mut scratch.completions);
            }
            return Received { bytes, refused };
        }
    }

    /// Gives the connection up: every request in flight on it has failed.
    pub fn fail(&mut self, kind: ErrorKind, completions: &mut Vec<Completion>) {
        let before = completions.len();
        self.is_over = true;
        match &mut self.speaker {
            Speaker::Http1 { busy, .. } => {
                if std::mem::take(busy) {
                    completions.push(Completion { lane: 0, outcome: Err(kind), processed: true });
                }
            }
            Speaker::Http2(http2) => http2.fail_open_lanes(kind, completions),
        }
        self.was_of_use |= completions[before..].iter().any(|c| c.processed);
    }

    fn feed(&mut self, scratch: &mut Scratch, read: usize, hung_up: bool) -> Result<(), ErrorKind> {
        let Scratch { buffer, completions, now_ns } = scratch;
        let piece = &buffer[..read];
        match &mut self.speaker {
            Speaker::Http2(http2) => {
                let before = completions.len();
                http2.feed(piece, *now_ns, &mut self.outgoing, completions)?;
                self.was_of_use |= completions[before..].iter().any(|c| c.processed);
                Ok(())
            }
            // The peer spoke without being asked.
            Speaker::Http1 { busy: false, .. } => Err(ErrorKind::Garbage),
            Speaker::Http1 { parser, .. } => match parser.feed(piece, *now_ns) {
                Ok(None) => Ok(()),
                Ok(Some(answer)) => {
                    self.answered(answer, hung_up, completions);
                    Ok(())
                }
                Err(fault) => Err(kind_of(fault)),
            },
        }
    }

    fn end_of_stream(&mut self, scratch: &mut Scratch) -> ErrorKind {
        if let Speaker::Http1 { parser, busy: true } = &mut self.speaker {
            match parser.end_of_stream() {
                Ok(answer) => self.answered(answer, true, &mut scratch.completions),
                Err(fault) => return kind_of(fault),
            }
        }
        ErrorKind::Closed
    }

    fn answered(&mut self, answer: Answer, hung_up: bool, completions: &mut Vec<Completion>) {
        self.was_of_use = true;
        if let Speaker::Http1 { busy, .. } = &mut self.speaker {
            *busy = false;
        }
        // An answer that came before the request was all written leaves the rest of it in the way.
        self.is_over |= !answer.keep_alive || hung_up || self.has_unwritten();
        completions.push(Completion { lane: 0, outcome: Ok(answer), processed: true });
    }
}

/// Writes as much as the stream takes; gives the bytes taken.
fn write_all_of(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut taken = 0;
    while taken < bytes.len() {
        match stream.write(&bytes[taken..]) {
            Ok(more) => taken += more,
            Err(error) if error.kind() == Io::WouldBlock => break,
            Err(error) if error.kind() == Io::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}

fn kind_of(fault: Fault) -> ErrorKind {
    match fault {
        Fault::Garbage => ErrorKind::Garbage,
        Fault::Oversize => ErrorKind::Oversize,
        Fault::Truncated => ErrorKind::Closed,
    }
}

#[cfg(test)]
mod tests;
