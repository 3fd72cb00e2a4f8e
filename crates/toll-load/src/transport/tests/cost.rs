//! What an exchange costs the client, in the clear and over TLS: `cargo test --release -- --ignored --nocapture`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::authority::Authority;
use super::server::{Server, config, saw};
use super::*;
use crate::Tls;

const EXCHANGES: u32 = 50_000;
const REQUEST: [u8; 100] = [7; 100];

/// Answers each request of 100 bytes with so many.
fn answer(mut stream: impl Read + Write, length: usize) {
    let (mut request, answer) = ([0; REQUEST.len()], vec![1; length]);
    while stream.read_exact(&mut request).is_ok() {
        stream.write_all(&answer).unwrap();
        stream.flush().unwrap();
    }
}

fn user_ns() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).unwrap().user_time().num_microseconds() * 1000
}

fn system_ns() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).unwrap().system_time().num_microseconds() * 1000
}

fn measure(name: &str, origin: &Origin, plan: &ConnectionPlan, length: usize) {
    let mut driver = Driver::ready(origin, plan).unwrap();
    let mut buffer = vec![0; 65_536];
    let (user, system) = (user_ns(), system_ns());
    for _ in 0..EXCHANGES {
        assert_eq!(driver.stream.write(&REQUEST).unwrap(), REQUEST.len());
        let mut read = 0;
        while read < length {
            match driver.stream.read(&mut buffer) {
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => driver.wait(),
                Err(error) => panic!("{error}"),
            }
        }
    }
    let (user, system) = (user_ns() - user, system_ns() - system);
    let per = |total| total / i64::from(EXCHANGES);
    println!("{name}, answers of {length} bytes: user {} ns, system {} ns", per(user), per(system));
}

#[test]
#[ignore = "a measurement: run it in release mode on a quiet machine"]
fn the_cost_of_an_exchange() {
    for length in [700, 16_000, 100_000] {
        let server = Server::start(1, move |stream: TcpStream| {
            let peer = stream.peer_addr().unwrap();
            stream.set_nodelay(true).unwrap();
            answer(stream, length);
            saw(&peer)
        });
        let plan = ConnectionPlan::default();
        let origin = origin(Scheme::Http, "127.0.0.1", server.port, &plan);
        measure("plain", &origin, &plan, length);
    }
    for length in [700, 16_000, 100_000] {
        let authority = Authority::new("ca");
        let config = Arc::new(config(&authority.issue(&["127.0.0.1"]), &[], None));
        let server = Server::start(1, move |stream: TcpStream| {
            let peer = stream.peer_addr().unwrap();
            stream.set_nodelay(true).unwrap();
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            answer(rustls::StreamOwned::new(session, stream), length);
            saw(&peer)
        });
        let tls = Tls { ca_pem: Some(authority.pem.clone()), ..Tls::default() };
        let plan = ConnectionPlan { tls, ..ConnectionPlan::default() };
        let origin = origin(Scheme::Https, "127.0.0.1", server.port, &plan);
        measure("tls", &origin, &plan, length);
    }
}
