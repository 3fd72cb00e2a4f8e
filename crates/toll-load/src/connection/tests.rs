use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::ConnectionPlan;
use crate::transport::Scheme;

const GREETING: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
/// Their acknowledgements come to twice as much as may wait.
const PINGS: usize = 123_400;

/// An HTTP/2 connection to a server that does this with its socket after its greeting.
fn connection_to(server: impl FnOnce(TcpStream) + Send + 'static) -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(&GREETING).unwrap();
        server(socket);
    });
    let plan = ConnectionPlan::default();
    let (origin, _) = Origin::find(Scheme::Http, "127.0.0.1", port, &plan).unwrap();
    let speech = Speech { http2: true, grpc: false, streams: 1 };
    let mut connection = Connection::begin(&origin, None, speech, now_ns()).unwrap();
    wait_for(|| connection.advance().unwrap());
    connection
}

fn wait_for(mut happens: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !happens() {
        assert!(begin.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends one request; gives what came of it, and the most that waited meanwhile.
fn exchange(mut connection: Connection) -> (Completion, usize) {
    let mut scratch = Scratch { buffer: vec![0; 8192], completions: Vec::new(), now_ns: 0 };
    let message = Message { head: &[0x82, 0x84, 0x86], body: b"", is_head: false, body_bytes: 0 };
    assert!(connection.start(0, &message).unwrap());
    let mut most = 0;
    wait_for(|| {
        connection.receive(&mut scratch, false);
        most = most.max(connection.outgoing.len());
        // A server that is gone is told of by `receive`.
        let _ = connection.flush();
        !scratch.completions.is_empty()
    });
    (scratch.completions[0], most)
}

#[test]
fn a_server_that_asks_and_never_reads_loses_the_connection() {
    // Until the client hangs up; far more than the socket's buffers hold.
    let connection = connection_to(|mut socket| {
        let pings = PING.repeat(1000);
        while socket.write_all(&pings).is_ok() {}
    });
    let (completion, most) = exchange(connection);
    assert_eq!(completion.outcome, Err(ErrorKind::Garbage));
    assert!(most < 3 << 20, "{most}");
}

#[test]
fn a_server_that_asks_as_much_and_reads_is_answered() {
    let connection = connection_to(|mut socket| {
        let mut reader = socket.try_clone().unwrap();
        let reading = thread::spawn(move || {
            let mut acknowledgements = vec![0; PINGS * PING.len()];
            reader.read_exact(&mut acknowledgements).unwrap();
            reader
        });
        for _ in 0..PINGS / 100 {
            socket.write_all(&PING.repeat(100)).unwrap();
            thread::sleep(Duration::from_micros(100));
        }
        socket.write_all(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x89]).unwrap();
        let _ = reading.join().unwrap().read(&mut [0]);
    });
    let (completion, most) = exchange(connection);
    assert_eq!(completion.outcome.map(|answer| answer.status), Ok(204));
    assert!(most < 1 << 20, "{most}");
}
