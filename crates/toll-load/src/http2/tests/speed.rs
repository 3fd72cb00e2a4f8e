//! What a request costs without a kernel: `cargo test --release -p toll-load --lib speed -- --ignored --nocapture`.

use std::time::Instant;

use super::*;

const LANES: u32 = 10;
const ROUNDS: u32 = 100_000;

/// An answer as a common server gives it, its body of 100 bytes included.
fn answer_of(stream: u32) -> Vec<u8> {
    let head = fields(
        stream,
        false,
        &[
            (":status", "200"),
            ("server", "nginx/1.26.3"),
            ("date", "Sat, 21 Nov 2026 12:00:00 GMT"),
            ("content-type", "text/html"),
            ("content-length", "100"),
            ("etag", "\"67890abc-64\""),
        ],
    );
    [head, data(stream, true, 100)].concat()
}

/// Puts the round's streams in the place of those before.
fn renumber(said: &mut [u8], round: u32) {
    let length = said.len() / LANES as usize;
    for (lane, answer) in (0..).zip(said.chunks_mut(length)) {
        let stream = (2 * (round * LANES + lane) + 1).to_be_bytes();
        let second = length - 109;
        answer[5..9].copy_from_slice(&stream);
        answer[second + 5..second + 9].copy_from_slice(&stream);
    }
}

#[test]
#[ignore = "a measurement, of use in a release build only"]
fn a_request_costs_less_than_a_microsecond() {
    let head = block(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "127.0.0.1:8080"),
        (":path", "/index"),
        ("user-agent", "toll"),
    ]);
    let mut said: Vec<u8> = (0..LANES).flat_map(answer_of).collect();
    let mut talk = Talk::silent(LANES, false).hear(&settings(&[]));
    let mut rounds_ns = Vec::with_capacity(ROUNDS as usize);
    for round in 0..ROUNDS {
        renumber(&mut said, round);
        let begin = Instant::now();
        talk.out.clear();
        talk.completions.clear();
        for lane in 0..LANES {
            assert!(talk.http2.start(lane, &head, b"", false, &mut talk.out));
        }
        talk.feed(&said).unwrap();
        rounds_ns.push(begin.elapsed().as_nanos());
        assert_eq!(talk.completions.len(), LANES as usize);
    }
    // The median, since neighbours on the machine lengthen some rounds.
    rounds_ns.sort_unstable();
    let each_ns = rounds_ns[rounds_ns.len() / 2] as f64 / f64::from(LANES);
    println!("{each_ns:.1} ns a request (start and feed)");
    assert!(each_ns < 1000.0);
}
