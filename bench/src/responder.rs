//! Turns a conduct into a running HTTP/1.1 server that is faster than any client: one thread, edge-triggered
//! epoll, one `recv` and one `send` per request, an answer made beforehand. It also stalls when told to (a
//! known answer for latencies) or keeps the kernel's arrival stamps (SO_TIMESTAMPNS, socket(7)).
//!
//! It does not read requests: each end of a head is one request, bodies and `Connection: close` are unknown
//! to it, and a client that does not take its answers is dropped.

use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use memchr::memmem;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use crate::machine;

/// 128 bytes with its head.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: toll-bench\r\nContent-Type: text/plain\r\n\
Content-Length: 43\r\n\r\nThe quick brown fox jumps over a lazy dog.\n";
const HEAD_END: &[u8] = b"\r\n\r\n";

/// What the server does besides answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// Nothing.
    Prompt,
    /// It stands still now and then.
    Stalling(Stall),
    /// It keeps the instant at which each request came in, by the kernel's clock.
    Stamping,
}

/// The server stands still for `lasting` once in every period of `every`, in its middle. Periods count from
/// the first request, so that a run of n periods sees n whole stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) every: Duration,
    pub(crate) lasting: Duration,
}

impl Stall {
    /// What an open loop must report as latency quantile `q` (0..=1): a request that falls due at instant u of
    /// a stall waits until its end, so P(latency > x) = (lasting - x) / every.
    pub(crate) fn expected_ms(self, q: f64) -> f64 {
        let lasting_ms = self.lasting.as_secs_f64() * 1e3;
        (lasting_ms - (1.0 - q) * self.every.as_secs_f64() * 1e3).max(0.0)
    }
}

/// What came in.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Requests answered.
    pub(crate) requests: u64,
    /// When each came in, nanoseconds since 1970, in the order of reading. Only [`Conduct::Stamping`].
    pub(crate) arrivals_ns: Vec<u64>,
}

/// A running server; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Responder {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Served>>>,
}

impl Responder {
    /// Serves on a free port of 127.0.0.1 until stopped.
    pub(crate) fn start(conduct: Conduct) -> io::Result<Responder> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Loop::new(listener, conduct, stop.clone())?;
        let thread = thread::Builder::new().name("responder".into()).spawn(move || server.run())?;
        Ok(Responder { address, stop, thread: Some(thread) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends the server.
    pub(crate) fn stop(mut self) -> io::Result<Served> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only stop and drop take the thread");
        thread.join().expect("the responder does not panic")
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Loop {
    listener: TcpListener,
    epoll: Epoll,
    /// By file descriptor.
    connections: Vec<Option<Connection>>,
    conduct: Conduct,
    next_stall: Option<Instant>,
    stop: Arc<AtomicBool>,
    /// Before it sleeps, the server looks again for this long: a client must never have to pay for waking it.
    spin: Duration,
    stamps: StampReader,
    served: Served,
}

impl Loop {
    const SPIN: Duration = Duration::from_micros(50);
    const LONGEST_SLEEP: Duration = Duration::from_millis(50);
    const MOST_STAMPS: usize = 1 << 20;

    fn new(listener: TcpListener, conduct: Conduct, stop: Arc<AtomicBool>) -> io::Result<Loop> {
        listener.set_nonblocking(true)?;
        if conduct == Conduct::Stamping {
            // Connections inherit it; set on them it would come too late for their first request.
            setsockopt(&listener, ReceiveTimestampns, &true)?;
        }
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, fd_key(listener.as_raw_fd())))?;
        // On a single core, looking again would take the CPU from the client.
        let spin = if machine::cores() > 1 { Self::SPIN } else { Duration::ZERO };
        let stamps = if conduct == Conduct::Stamping { Self::MOST_STAMPS } else { 0 };
        Ok(Loop {
            listener,
            epoll,
            connections: Vec::new(),
            conduct,
            next_stall: None,
            stop,
            spin,
            stamps: StampReader::new(),
            served: Served { requests: 0, arrivals_ns: Vec::with_capacity(stamps) },
        })
    }

    fn run(&mut self) -> io::Result<Served> {
        let mut events = [EpollEvent::empty(); 256];
        let mut buffer = vec![0; 64 * 1024];
        while !self.stop.load(Ordering::Relaxed) {
            let ready = self.wait(&mut events)?;
            self.stall();
            for event in &events[..ready] {
                let fd = event.data() as RawFd;
                if fd == self.listener.as_raw_fd() {
                    self.accept()?;
                } else {
                    self.answer(fd, &mut buffer);
                }
            }
        }
        Ok(std::mem::take(&mut self.served))
    }

    fn wait(&self, events: &mut [EpollEvent]) -> io::Result<usize> {
        let mut ready = self.poll(events, EpollTimeout::ZERO)?;
        if ready > 0 {
            return Ok(ready);
        }
        let begin = Instant::now();
        while ready == 0 && begin.elapsed() < self.spin {
            ready = self.poll(events, EpollTimeout::ZERO)?;
        }
        if ready == 0 {
            ready = self.poll(events, self.sleep_limit())?;
        }
        Ok(ready)
    }

    fn poll(&self, events: &mut [EpollEvent], limit: EpollTimeout) -> io::Result<usize> {
        match self.epoll.wait(events, limit) {
            Err(Errno::EINTR) => Ok(0),
            result => Ok(result?),
        }
    }

    /// Epoll counts whole milliseconds; rounded down, so that a stall is not missed.
    fn sleep_limit(&self) -> EpollTimeout {
        let until_stall = self.next_stall.map(|at| at.saturating_duration_since(Instant::now()));
        let limit = until_stall.unwrap_or(Self::LONGEST_SLEEP).min(Self::LONGEST_SLEEP);
        EpollTimeout::try_from(limit).expect("50 ms at most")
    }

    fn stall(&mut self) {
        let (Conduct::Stalling(stall), Some(at)) = (self.conduct, self.next_stall) else { return };
        let now = Instant::now();
        if now >= at {
            thread::sleep((at + stall.lasting).saturating_duration_since(now));
            self.next_stall = Some(at + stall.every);
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn admit(&mut self, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let fd = stream.as_raw_fd();
        let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.epoll.add(&stream, EpollEvent::new(interest, fd_key(fd)))?;
        let slot = fd as usize;
        if self.connections.len() <= slot {
            self.connections.resize_with(slot + 1, || None);
        }
        self.connections[slot] = Some(Connection { stream, head_ends: HeadEnds::default() });
        Ok(())
    }

    fn answer(&mut self, fd: RawFd, buffer: &mut [u8]) {
        let Some(connection) = self.connections[fd as usize].as_mut() else { return };
        let stamps = (self.conduct == Conduct::Stamping).then_some(&mut self.stamps);
        match connection.exchange(buffer, stamps, &mut self.served) {
            Ok(()) => self.start_stall_clock(),
            Err(_) => self.connections[fd as usize] = None,
        }
    }

    fn start_stall_clock(&mut self) {
        if let (Conduct::Stalling(stall), None) = (self.conduct, self.next_stall) {
            self.next_stall = Some(Instant::now() + stall.every / 2);
        }
    }
}

fn fd_key(fd: RawFd) -> u64 {
    u64::try_from(fd).expect("an open file descriptor is not negative")
}

struct Connection {
    stream: TcpStream,
    head_ends: HeadEnds,
}

impl Connection {
    /// Answers all requests that have come in whole.
    ///
    /// # Errors
    /// When the connection is of no further use, its end included.
    fn exchange(
        &mut self,
        buffer: &mut [u8],
        mut stamps: Option<&mut StampReader>,
        served: &mut Served,
    ) -> io::Result<()> {
        loop {
            let (length, stamp_ns) = match stamps.as_deref_mut() {
                Some(stamps) => stamps.read(&self.stream, buffer)?,
                None => (self.stream.read(buffer)?, None),
            };
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let requests = self.head_ends.count(&buffer[..length]);
            served.requests += requests;
            for _ in 0..requests {
                served.arrivals_ns.extend(stamp_ns);
                self.stream.write_all(ANSWER)?;
            }
            // A read that did not fill the buffer has emptied the socket: the next bytes are a new edge.
            if length < buffer.len() {
                return Ok(());
            }
        }
    }
}

/// Reads a socket and the stamp that the kernel gave its last bytes.
struct StampReader {
    control: Vec<u8>,
}

impl StampReader {
    fn new() -> StampReader {
        StampReader { control: nix::cmsg_space!(TimeSpec) }
    }

    fn read(&mut self, from: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut into = [IoSliceMut::new(buffer)];
        let message =
            recvmsg::<()>(from.as_raw_fd(), &mut into, Some(&mut self.control), MsgFlags::empty())?;
        let stamp = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(at) => Some(nanoseconds(at)),
            _ => None,
        });
        Ok((message.bytes, stamp))
    }
}

fn nanoseconds(at: TimeSpec) -> u64 {
    at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64
}

/// Counts blank lines that end a head, across reads.
#[derive(Debug, Default)]
struct HeadEnds {
    /// Bytes of the next one that have been seen.
    matched: usize,
}

impl HeadEnds {
    fn count(&mut self, bytes: &[u8]) -> u64 {
        if self.matched == 0 && bytes.ends_with(HEAD_END) {
            let ends = memmem::find_iter(bytes, HEAD_END).map(|at| at + HEAD_END.len());
            let (count, last) = ends.fold((0, 0), |(count, _), end| (count + 1, end));
            // Of "\r\n\r\n\r\n" the last two bytes begin another end.
            if last == bytes.len() {
                return count;
            }
        }
        bytes.iter().map(|byte| self.step(*byte)).sum()
    }

    fn step(&mut self, byte: u8) -> u64 {
        self.matched = match (self.matched, byte) {
            (matched, byte) if byte == HEAD_END[matched] => matched + 1,
            (_, b'\r') => 1,
            _ => 0,
        };
        let complete = self.matched == HEAD_END.len();
        if complete {
            self.matched = 0;
        }
        u64::from(complete)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";

    fn ask(stream: &mut TcpStream) -> Vec<u8> {
        stream.write_all(REQUEST).unwrap();
        read_answer(stream)
    }

    fn read_answer(stream: &mut TcpStream) -> Vec<u8> {
        let mut answer = vec![0; ANSWER.len()];
        stream.read_exact(&mut answer).unwrap();
        answer
    }

    fn connect(responder: &Responder) -> TcpStream {
        let stream = TcpStream::connect(responder.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    #[test]
    fn the_answer_is_what_it_says_it_is() {
        let mut lines = BufReader::new(ANSWER).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "HTTP/1.1 200 OK");
        let length =
            lines.find_map(|line| line.strip_prefix("Content-Length: ").map(str::to_owned));
        let body = memmem::find(ANSWER, HEAD_END).unwrap() + HEAD_END.len();
        assert_eq!(length.unwrap().parse(), Ok(ANSWER.len() - body));
        assert_eq!(ANSWER.len(), 128);
    }

    #[test]
    fn each_request_on_a_kept_connection_is_answered_and_counted() {
        let responder = Responder::start(Conduct::Prompt).unwrap();
        let (mut one, mut other) = (connect(&responder), connect(&responder));
        for _ in 0..3 {
            assert_eq!(ask(&mut one), ANSWER);
            assert_eq!(ask(&mut other), ANSWER);
        }
        let served = responder.stop().unwrap();
        assert_eq!((served.requests, served.arrivals_ns.len()), (6, 0));
    }

    #[test]
    fn a_request_in_two_pieces_is_answered_once() {
        let responder = Responder::start(Conduct::Prompt).unwrap();
        let mut stream = connect(&responder);
        stream.set_nodelay(true).unwrap();
        stream.write_all(&REQUEST[..REQUEST.len() - 2]).unwrap();
        thread::sleep(Duration::from_millis(20));
        stream.write_all(&REQUEST[REQUEST.len() - 2..]).unwrap();
        assert_eq!(read_answer(&mut stream), ANSWER);
        assert_eq!(responder.stop().unwrap().requests, 1);
    }

    #[test]
    fn stamps_are_instants_of_arrival_by_the_realtime_clock() {
        let responder = Responder::start(Conduct::Stamping).unwrap();
        let mut stream = connect(&responder);
        let now_ns = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let mut bounds = Vec::new();
        // The kernel begins to stamp a moment after the first socket has asked for it.
        ask(&mut stream);
        thread::sleep(Duration::from_millis(50));
        for _ in 0..3 {
            let before = now_ns();
            ask(&mut stream);
            bounds.push((before, now_ns()));
            thread::sleep(Duration::from_millis(2));
        }
        let arrivals = responder.stop().unwrap().arrivals_ns;
        let stamped = &arrivals[arrivals.len() - 3..];
        for (at, (before, after)) in stamped.iter().zip(bounds) {
            assert!((before..=after).contains(at), "{at} outside {before}..={after}");
        }
    }

    #[test]
    fn a_request_that_falls_into_a_stall_waits_for_its_end() {
        let stall =
            Stall { every: Duration::from_millis(400), lasting: Duration::from_millis(150) };
        let responder = Responder::start(Conduct::Stalling(stall)).unwrap();
        let mut stream = connect(&responder);
        let begin = Instant::now();
        let mut slowest = Duration::ZERO;
        while begin.elapsed() < Duration::from_millis(390) {
            let sent = Instant::now();
            ask(&mut stream);
            slowest = slowest.max(sent.elapsed());
        }
        assert!((120..300).contains(&slowest.as_millis()), "{slowest:?}");
    }

    #[test]
    fn arithmetic_says_what_a_stall_of_200_ms_every_5_s_costs() {
        let stall = Stall { every: Duration::from_secs(5), lasting: Duration::from_millis(200) };
        assert!((stall.expected_ms(0.99) - 150.0).abs() < 1e-9);
        assert!((stall.expected_ms(0.999) - 195.0).abs() < 1e-9);
        assert_eq!(stall.expected_ms(0.5), 0.0);
    }

    proptest! {
        #[test]
        fn heads_are_counted_the_same_however_they_are_cut(
            text in "[\r\nab]{0,60}",
            cut in 0_usize..60,
        ) {
            let mut whole = 0;
            let mut rest = text.as_str();
            while let Some(at) = rest.find("\r\n\r\n") {
                whole += 1;
                rest = &rest[at + 4..];
            }
            let (left, right) = text.as_bytes().split_at(cut.min(text.len()));
            let mut head_ends = HeadEnds::default();
            prop_assert_eq!(head_ends.count(left) + head_ends.count(right), whole);
        }
    }
}
