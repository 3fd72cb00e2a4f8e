mod authority;
mod cost;
mod plain;
mod server;
mod tls;

use std::io::{self, ErrorKind};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{setsockopt, sockopt};

use super::{LocalAddresses, Origin, Remote, Scheme, Stream, TlsFault};
use crate::{ConnectionPlan, LoadError};

/// A stream and its edge-triggered events, used as the engine does: a lost edge is a test that fails.
struct Driver {
    epoll: Epoll,
    stream: Stream,
    /// Writes that had to wait for the peer.
    blocked: usize,
}

impl Driver {
    fn begin(origin: &Origin, locals: &mut LocalAddresses) -> io::Result<Driver> {
        let stream = Stream::connect(origin, locals.take_turn())?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        epoll.add(&stream, EpollEvent::new(flags, 0))?;
        Ok(Driver { epoll, stream, blocked: 0 })
    }

    /// Connected, without TLS yet.
    fn connected(origin: &Origin, plan: &ConnectionPlan) -> io::Result<Driver> {
        let mut driver = Driver::begin(origin, &mut LocalAddresses::new(plan, &origin.remote))?;
        driver.wait();
        driver.stream.finish_connecting()?;
        Ok(driver)
    }

    /// Connected, and agreed on TLS.
    fn ready(origin: &Origin, plan: &ConnectionPlan) -> Result<Driver, TlsFault> {
        let mut driver = Driver::connected(origin, plan).map_err(TlsFault::Io)?;
        while !driver.stream.handshake()? {
            driver.wait();
        }
        Ok(driver)
    }

    /// Lets the socket take only a few kilobytes at a time.
    fn narrow(&self) {
        setsockopt(&self.stream, sockopt::SndBuf, &4096).unwrap();
    }

    fn wait(&self) {
        let mut events = [EpollEvent::empty()];
        let number = self.epoll.wait(&mut events, 5000_u16).unwrap();
        assert_eq!(number, 1, "no event within five seconds");
    }

    /// Sends all of it and reads as many bytes, both as far as the socket allows.
    fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        let (mut sent, mut answer) = (0, vec![0; request.len()]);
        let mut read = 0;
        loop {
            while sent < request.len() {
                match self.stream.write(&request[sent..]) {
                    Ok(bytes) => sent += bytes,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.blocked += 1;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.stream.flush()?;
            // A read that gives less than was asked for has emptied the socket.
            while read < answer.len() {
                let end = (read + 10_000).min(answer.len());
                match self.stream.read(&mut answer[read..end]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(bytes) if read + bytes == end => read = end,
                    Ok(bytes) => {
                        read += bytes;
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            if read == answer.len() {
                return Ok(answer);
            }
            self.wait();
        }
    }

    /// The next bytes, or an empty text at the end of the stream.
    fn next(&mut self) -> io::Result<String> {
        let mut buffer = [0; 100];
        loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(),
                result => return result.map(|n| String::from_utf8(buffer[..n].into()).unwrap()),
            }
        }
    }
}

fn origin(scheme: Scheme, host: &str, port: u16, plan: &ConnectionPlan) -> Origin {
    Origin::find(scheme, host, port, plan).unwrap().0
}

/// The first line and the help that a user would see.
fn told(error: &LoadError) -> String {
    format!("{error}; {}", error.help().unwrap_or_default())
}

/// A megabyte in which no two places look alike.
fn megabyte() -> Vec<u8> {
    (0..250_000_u32).flat_map(u32::to_le_bytes).collect()
}

const LONG: Duration = Duration::from_secs(10);
