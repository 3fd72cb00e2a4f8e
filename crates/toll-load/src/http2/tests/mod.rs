use proptest::prelude::*;

use super::*;

mod peer;
mod speed;

const NOW_NS: u64 = 77;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Header { length: payload.len(), kind, flags, stream }.write(&mut out);
    [&out, payload].concat()
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_settings(settings, &mut out);
    out
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        hpack::encode_header(&mut out, name.as_bytes(), value.as_bytes());
    }
    out
}

/// A head or trailers in one frame.
fn fields(stream: u32, is_last: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let end = if is_last { flag::END_STREAM } else { 0 };
    frame(kind::HEADERS, flag::END_HEADERS | end, stream, &block(fields))
}

fn status(stream: u32, is_last: bool, status: &str) -> Vec<u8> {
    fields(stream, is_last, &[(":status", status), ("server", "s")])
}

fn data(stream: u32, is_last: bool, length: usize) -> Vec<u8> {
    frame(kind::DATA, u8::from(is_last), stream, &vec![0; length])
}

fn number(kind: u8, stream: u32, number: u32) -> Vec<u8> {
    frame(kind, 0, stream, &number.to_be_bytes())
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    number(kind::WINDOW_UPDATE, stream, increment)
}

fn goaway(last: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())
}

/// A connection, and all that has come out of it.
struct Talk {
    http2: Http2,
    out: Vec<u8>,
    completions: Vec<Completion>,
}

impl Talk {
    /// A connection whose peer has sent nothing yet.
    fn silent(lanes: u32, is_grpc: bool) -> Talk {
        let http2 = Http2::new(lanes, is_grpc);
        Talk { http2, out: Vec::new(), completions: Vec::new() }
    }

    /// A connection whose peer has greeted, with requests on the first lanes: streams 1, 3, 5, …
    fn with_requests(requests: u32) -> Talk {
        let mut talk = Talk::silent(10, false).hear(&settings(&[]));
        (0..requests).for_each(|lane| assert!(talk.start(lane, b"", false)));
        talk.out.clear();
        talk
    }

    fn start(&mut self, lane: u32, body: &[u8], is_head: bool) -> bool {
        let head = block(&[(":method", "GET"), (":path", "/x")]);
        self.http2.start(lane, &head, body, is_head, &mut self.out)
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.http2.feed(bytes, NOW_NS, &mut self.out, &mut self.completions)
    }

    fn hear(mut self, bytes: &[u8]) -> Talk {
        self.feed(bytes).unwrap();
        self
    }

    /// The frames written so far, which are forgotten.
    fn written(&mut self) -> Vec<(Header, Vec<u8>)> {
        frames(&std::mem::take(&mut self.out))
    }

    fn outcomes(&self) -> Vec<(u32, Result<u16, ErrorKind>)> {
        self.completions.iter().map(|c| (c.lane, c.outcome.map(|answer| answer.status))).collect()
    }
}

fn frames(bytes: &[u8]) -> Vec<(Header, Vec<u8>)> {
    let mut rest = bytes.strip_prefix(frame::MAGIC).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let Some(header) = Header::read(rest) {
        let (payload, next) = rest[frame::HEADER..].split_at(header.length);
        frames.push((header, payload.to_vec()));
        rest = next;
    }
    assert!(rest.is_empty());
    frames
}

/// Body bytes in the frames, and whether the last of them ends the stream.
fn body_of(stream: u32, frames: &[(Header, Vec<u8>)]) -> (usize, bool) {
    let mut data = frames.iter().filter(|(h, _)| h.kind == kind::DATA && h.stream == stream);
    let length = data.clone().map(|(header, _)| header.length).sum();
    (length, data.next_back().is_some_and(|(header, _)| header.has(flag::END_STREAM)))
}

fn resets(frames: &[(Header, Vec<u8>)]) -> Vec<(u32, Vec<u8>)> {
    let resets = frames.iter().filter(|(h, _)| h.kind == kind::RST_STREAM);
    resets.map(|(header, payload)| (header.stream, payload.clone())).collect()
}

fn answer(status: u16, body_bytes: u64) -> Result<Answer, ErrorKind> {
    Ok(Answer { status, keep_alive: true, first_byte_ns: NOW_NS, body_bytes, grpc_status: None })
}

#[test]
fn the_preface_is_magic_settings_and_a_window() {
    let mut out = Vec::new();
    Http2::new(1, false).preface(&mut out);
    assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let frames = frames(&out);
    let sent: Vec<_> = frame::settings(&frames[0].1).collect();
    assert_eq!(sent, [(1, 0), (2, 0), (4, STREAM_WINDOW)]);
    assert_eq!((frames[1].0.kind, frames[1].0.stream), (kind::WINDOW_UPDATE, 0));
}

#[test]
fn requests_have_odd_streams_in_order_and_the_first_empties_the_table() {
    let mut talk = Talk::with_requests(0);
    assert!(talk.start(1, b"", false) && talk.start(0, b"body", false));
    let frames = talk.written();
    let ends = flag::END_HEADERS | flag::END_STREAM;
    let head = block(&[(":method", "GET"), (":path", "/x")]);
    let first = [&[hpack::TABLE_SIZE_ZERO][..], &head].concat();
    let header = |length, kind, flags, stream| Header { length, kind, flags, stream };
    assert_eq!(frames[0], (header(first.len(), kind::HEADERS, ends, 1), first));
    assert_eq!(frames[1], (header(head.len(), kind::HEADERS, flag::END_HEADERS, 3), head));
    assert_eq!(frames[2], (header(4, kind::DATA, flag::END_STREAM, 3), b"body".to_vec()));
}

#[test]
fn a_long_block_is_continued() {
    let mut talk = Talk::with_requests(1);
    let long = vec![0x82; 40_000];
    assert!(talk.http2.start(1, &long, b"", false, &mut talk.out));
    let frames = talk.written();
    let seen: Vec<_> = frames.iter().map(|(h, _)| (h.kind, h.flags, h.length)).collect();
    let continued = (kind::CONTINUATION, 0, 16_384);
    assert_eq!(
        seen,
        [(kind::HEADERS, 1, 16_384), continued, (kind::CONTINUATION, flag::END_HEADERS, 7_232)]
    );
    assert_eq!(frames.iter().flat_map(|(_, p)| p.clone()).collect::<Vec<_>>(), long);
}

/// What a peer says to requests on lanes 0 and 1 (streams 1 and 3), and what comes of them, in order.
type Conversation = (&'static str, Vec<Vec<u8>>, Vec<(u32, Result<Answer, ErrorKind>)>);

fn conversations() -> Vec<Conversation> {
    let padded = |flags, payload: &[u8]| frame(kind::HEADERS, flags, 3, payload);
    let head = block(&[(":status", "200"), ("x", "y")]);
    let priority = [3, 0, 0, 0, 1, 16].as_slice();
    let end = flag::END_STREAM;
    vec![
        ("a head alone", vec![status(3, true, "204")], vec![(1, answer(204, 0))]),
        (
            "answers out of order, interleaved",
            vec![
                status(3, false, "200"),
                status(1, false, "404"),
                data(3, false, 10),
                data(1, true, 5),
                data(3, true, 7),
            ],
            vec![(0, answer(404, 5)), (1, answer(200, 17))],
        ),
        (
            "an empty last frame",
            vec![status(1, false, "200"), data(1, false, 3), data(1, true, 0)],
            vec![(0, answer(200, 3))],
        ),
        (
            "trailers",
            vec![status(1, false, "200"), data(1, false, 3), fields(1, true, &[("x", "y")])],
            vec![(0, answer(200, 3))],
        ),
        (
            "interim heads",
            vec![status(1, false, "100"), status(1, false, "103"), status(1, true, "200")],
            vec![(0, answer(200, 0))],
        ),
        (
            "a block in three frames",
            vec![
                frame(kind::HEADERS, end, 3, &head[..1]),
                frame(kind::CONTINUATION, 0, 3, b""),
                frame(kind::CONTINUATION, flag::END_HEADERS, 3, &head[1..]),
            ],
            vec![(1, answer(200, 0))],
        ),
        (
            "padding and priority",
            vec![
                padded(flag::END_HEADERS | flag::PADDED | flag::PRIORITY, &{
                    [priority, &head, &[0; 3]].concat()
                }),
                frame(kind::PRIORITY, 0, 1, &priority[1..]),
                frame(kind::DATA, flag::PADDED, 3, &[2, 9, 9, 9, 0, 0]),
                frame(kind::DATA, flag::PADDED | end, 3, &[4, 0, 0, 0, 0]),
            ],
            vec![(1, answer(200, 3))],
        ),
        (
            "a reset stream fails only its own request",
            vec![number(kind::RST_STREAM, 1, 8), status(3, true, "200"), data(1, true, 9)],
            vec![(0, Err(ErrorKind::Reset)), (1, answer(200, 0))],
        ),
        (
            "frames of the connection between those of an answer",
            vec![
                status(1, false, "200"),
                frame(kind::PING, 0, 0, b"12345678"),
                settings(&[(setting::MAX_FRAME_SIZE, 20_000), (99, 1)]),
                frame(0xee, 0xff, 7, b"unknown"),
                window_update(0, 5),
                window_update(1, 5),
                data(1, true, 1),
            ],
            vec![(0, answer(200, 1))],
        ),
        (
            "malformed answers fail alone",
            vec![data(1, true, 4), fields(3, true, &[("x", "y")])],
            vec![(0, Err(ErrorKind::Garbage)), (1, Err(ErrorKind::Garbage))],
        ),
        (
            "an interim head is no answer, and 101 is none at all",
            vec![status(1, true, "100"), status(3, false, "101")],
            vec![(0, Err(ErrorKind::Garbage)), (1, Err(ErrorKind::Garbage))],
        ),
        (
            "trailers that do not end, or have a status",
            vec![
                status(1, false, "200"),
                fields(1, false, &[("x", "y")]),
                status(3, false, "200"),
                status(3, true, "200"),
            ],
            vec![(0, Err(ErrorKind::Garbage)), (1, Err(ErrorKind::Garbage))],
        ),
        (
            "204 has no body",
            vec![
                status(1, false, "204"),
                data(1, true, 1),
                status(3, false, "304"),
                data(3, true, 0),
            ],
            vec![(0, Err(ErrorKind::Garbage)), (1, answer(304, 0))],
        ),
        (
            "a stream window that overflows, one that is opened by nothing",
            vec![window_update(1, 0x7fff_ffff), window_update(3, 0)],
            vec![(0, Err(ErrorKind::Garbage)), (1, Err(ErrorKind::Garbage))],
        ),
    ]
}

fn completed(talk: &Talk) -> Vec<(u32, Result<Answer, ErrorKind>)> {
    talk.completions.iter().map(|c| (c.lane, c.outcome)).collect()
}

#[test]
fn each_conversation_comes_to_what_the_rfc_says() {
    for (name, said, expected) in conversations() {
        let talk = Talk::with_requests(2).hear(&said.concat());
        assert_eq!(completed(&talk), expected, "{name}");
        assert_eq!(talk.http2.open_lanes(), 2 - expected.len() as u32, "{name}");
    }
}

#[test]
fn every_cut_in_two_and_every_single_byte_read_the_same() {
    for (name, said, expected) in conversations() {
        let said = said.concat();
        for cut in 0..said.len() {
            let talk = Talk::with_requests(2).hear(&said[..cut]).hear(&said[cut..]);
            assert_eq!(completed(&talk), expected, "{name} cut at {cut}");
        }
        let talk = said.iter().fold(Talk::with_requests(2), |talk, byte| talk.hear(&[*byte]));
        assert_eq!(completed(&talk), expected, "{name} byte by byte");
    }
}

#[test]
fn a_peer_that_breaks_the_protocol_breaks_the_connection() {
    let oversize_header = [0x00, 0x40, 0x01, 0, 0, 0, 0, 0, 1];
    for (name, said, kind) in [
        ("data before any request", data(5, false, 1), ErrorKind::Garbage),
        ("a head for a stream that never was", status(5, true, "200"), ErrorKind::Garbage),
        ("a head for the connection", status(0, true, "200"), ErrorKind::Garbage),
        ("a stream of the server", data(2, true, 1), ErrorKind::Garbage),
        ("a promise", frame(kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), ErrorKind::Garbage),
        ("push", settings(&[(setting::ENABLE_PUSH, 1)]), ErrorKind::Garbage),
        ("a short setting", frame(kind::SETTINGS, 0, 0, &[0; 5]), ErrorKind::Garbage),
        ("settings of a stream", frame(kind::SETTINGS, 0, 1, &[]), ErrorKind::Garbage),
        ("an ack with content", frame(kind::SETTINGS, 1, 0, &[0; 6]), ErrorKind::Garbage),
        ("a huge window", settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]), ErrorKind::Garbage),
        ("a tiny frame size", settings(&[(setting::MAX_FRAME_SIZE, 16_383)]), ErrorKind::Garbage),
        ("a window opened by nothing", window_update(0, 0), ErrorKind::Garbage),
        ("a window that overflows", window_update(0, 0x7fff_ffff), ErrorKind::Garbage),
        ("a short window update", frame(kind::WINDOW_UPDATE, 0, 0, &[1]), ErrorKind::Garbage),
        ("a short ping", frame(kind::PING, 0, 0, &[1]), ErrorKind::Garbage),
        ("a short reset", frame(kind::RST_STREAM, 0, 1, &[1]), ErrorKind::Garbage),
        ("a reset of the connection", number(kind::RST_STREAM, 0, 1), ErrorKind::Garbage),
        ("a short goaway", frame(kind::GOAWAY, 0, 0, &[0; 7]), ErrorKind::Garbage),
        ("a short priority", frame(kind::PRIORITY, 0, 1, &[0; 4]), ErrorKind::Garbage),
        ("a lone continuation", frame(kind::CONTINUATION, 4, 1, &[0x88]), ErrorKind::Garbage),
        (
            "a ping within a block",
            [frame(kind::HEADERS, 0, 1, &[0x88]), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            ErrorKind::Garbage,
        ),
        ("a dynamic index", frame(kind::HEADERS, 4, 1, &[0xbe]), ErrorKind::Garbage),
        ("more padding than payload", frame(kind::HEADERS, 12, 1, &[2, 0x88]), ErrorKind::Garbage),
        ("data with too much padding", frame(kind::DATA, 8, 1, &[1]), ErrorKind::Garbage),
        ("padding without its length", frame(kind::DATA, 8, 1, &[]), ErrorKind::Garbage),
        ("a frame that is too long", oversize_header.to_vec(), ErrorKind::Oversize),
        (
            "a block that is too long",
            [
                frame(kind::HEADERS, 0, 1, &[0x88; 16_000]),
                frame(kind::CONTINUATION, 0, 1, &[0x88; 16_000]),
                frame(kind::CONTINUATION, 0, 1, &[0x88; 16_000]),
            ]
            .concat(),
            ErrorKind::Oversize,
        ),
    ] {
        assert_eq!(Talk::with_requests(2).feed(&said), Err(kind), "{name}");
    }
}

#[test]
fn a_peer_that_does_not_begin_with_settings_does_not_speak_http_2() {
    for said in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        frame(kind::PING, 0, 0, b"12345678"),
        frame(kind::SETTINGS, flag::ACK, 0, b""),
    ] {
        assert_eq!(Talk::silent(1, false).feed(&said), Err(ErrorKind::Garbage));
    }
}

#[test]
fn settings_and_pings_are_acknowledged_and_acknowledgements_are_not() {
    let mut talk = Talk::with_requests(0);
    talk.feed(&frame(kind::PING, 0, 0, b"12345678")).unwrap();
    talk.feed(&settings(&[])).unwrap();
    talk.feed(&frame(kind::PING, flag::ACK, 0, b"87654321")).unwrap();
    talk.feed(&frame(kind::SETTINGS, flag::ACK, 0, b"")).unwrap();
    let expected =
        [frame(kind::PING, flag::ACK, 0, b"12345678"), frame(kind::SETTINGS, flag::ACK, 0, b"")];
    assert_eq!(talk.out, expected.concat());
}

const PINGS: usize = 1000;

/// Hears pings and has the socket take some of what waits, as often as given; gives the rounds that went well.
fn rounds_of_pings(rounds: usize, mut taken: impl FnMut(usize) -> usize) -> usize {
    let mut talk = Talk::with_requests(0);
    let pings = frame(kind::PING, 0, 0, &[0; 8]).repeat(PINGS);
    (0..rounds)
        .take_while(|_| {
            let went_well = talk.feed(&pings).is_ok();
            let taken = taken(talk.out.len());
            talk.out.drain(..taken);
            talk.http2.wrote(taken, talk.out.len());
            went_well
        })
        .count()
}

#[test]
fn a_peer_that_asks_and_does_not_read_breaks_the_connection() {
    let limit = (1 << 20) / (17 * PINGS);
    for taken in [0, 1, 17 * PINGS / 10, 17 * PINGS / 2] {
        let rounds = rounds_of_pings(1000, |_| taken);
        let left = rounds * (17 * PINGS - taken) / (17 * PINGS);
        assert!(
            (limit / 2..=2 * limit).contains(&left),
            "{left} rounds wait when {taken} are taken"
        );
    }
}

#[test]
fn a_peer_that_reads_may_ask_for_ever() {
    assert_eq!(rounds_of_pings(1000, |waiting| waiting), 1000);
    // However slowly, and though the queue is never empty.
    assert_eq!(rounds_of_pings(1000, |waiting| waiting.saturating_sub(40 * 17 * PINGS)), 1000);
    assert_eq!(rounds_of_pings(1000, |waiting| waiting / 2), 1000);
}

#[test]
fn requests_of_any_length_are_not_what_the_peer_makes_us_owe() {
    let windows = [settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 30)]), window_update(0, 1 << 30)];
    let mut talk = Talk::with_requests(0);
    assert!(talk.start(0, &vec![0; 5 << 20], false));
    let mut talk = talk.hear(&windows.concat());
    assert!(talk.start(1, &vec![0; 5 << 20], false));
    assert_eq!(talk.feed(&frame(kind::PING, 0, 0, &[0; 8])), Ok(()));
    assert!(talk.out.len() > 10 << 20);
}

#[test]
fn a_head_request_takes_the_head_alone() {
    let mut talk = Talk::with_requests(0);
    assert!(talk.start(0, b"", true) && talk.start(1, b"", true));
    let said =
        [status(1, false, "200"), data(1, true, 0), status(3, false, "200"), data(3, true, 1)];
    let talk = talk.hear(&said.concat());
    assert_eq!(talk.outcomes(), [(0, Ok(200)), (1, Err(ErrorKind::Garbage))]);
}

#[test]
fn a_lane_is_free_again_after_its_answer() {
    let mut talk = Talk::with_requests(1);
    for stream in (1..2000).step_by(2) {
        talk.feed(&[status(stream, false, "200"), data(stream, true, 3)].concat()).unwrap();
        assert!(talk.start(0, b"", false));
    }
    assert_eq!(talk.completions.len(), 1000);
    assert!(talk.completions.iter().all(|c| c.outcome == answer(200, 3)));
}

#[test]
fn a_stream_that_many_others_overtake_keeps_its_lane() {
    let mut talk = Talk::with_requests(2);
    for stream in (3..2001).step_by(2) {
        talk.feed(&status(stream, true, "200")).unwrap();
        assert!(talk.start(1, b"", false));
    }
    let talk = talk.hear(&status(1, true, "201"));
    assert_eq!(talk.outcomes().last(), Some(&(0, Ok(201))));
}

#[test]
fn the_first_head_stamps_the_answer() {
    let mut talk = Talk::with_requests(1);
    let mut feed = |bytes: &[u8], now_ns| {
        talk.http2.feed(bytes, now_ns, &mut talk.out, &mut talk.completions).unwrap();
    };
    feed(&frame(kind::HEADERS, 0, 1, &[0x88]), 100);
    feed(&frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]), 200);
    feed(&data(1, true, 5), 300);
    assert_eq!(talk.completions[0].outcome.unwrap().first_byte_ns, 100);
}

#[test]
fn no_more_requests_begin_than_the_peer_allows() {
    let limit = |streams| settings(&[(setting::MAX_CONCURRENT_STREAMS, streams)]);
    let mut talk = Talk::with_requests(2).hear(&limit(3));
    assert!(talk.start(2, b"", false));
    assert!(!talk.http2.can_start() && !talk.start(3, b"", false));
    assert!(!talk.http2.is_closing());
    let mut talk = talk.hear(&status(3, true, "200"));
    assert!(talk.start(1, b"", false) && !talk.http2.can_start());
    assert!(talk.hear(&limit(4)).http2.can_start());
}

#[test]
fn one_request_begins_before_the_peer_has_said_how_many() {
    let mut talk = Talk::silent(200, false);
    assert!(talk.start(0, b"", false) && !talk.start(1, b"", false));
    let mut talk = talk.hear(&settings(&[]));
    assert_eq!((1..200).take_while(|lane| talk.start(*lane, b"", false)).count(), 199);
}

#[test]
fn goaway_fails_what_the_peer_never_saw_and_lets_the_rest_finish() {
    let talk = Talk::with_requests(3).hear(&goaway(3));
    assert_eq!(talk.outcomes(), [(2, Err(ErrorKind::Closed))]);
    assert!(talk.http2.is_closing() && !talk.http2.can_start());
    let said = [goaway(1), status(1, true, "200")].concat();
    let talk = talk.hear(&said);
    assert_eq!(talk.outcomes()[1..], [(1, Err(ErrorKind::Closed)), (0, Ok(200))]);
    assert!(!talk.completions[2].outcome.unwrap().keep_alive);
}

/// Lanes and kinds of the requests that the peer says it has done nothing about.
fn unprocessed(talk: &Talk) -> Vec<(u32, Option<ErrorKind>)> {
    let unprocessed = talk.completions.iter().filter(|c| !c.processed);
    unprocessed.map(|c| (c.lane, c.outcome.err())).collect()
}

/// As a server does that takes so many requests on a connection and no more.
#[test]
fn goaway_in_the_middle_tells_which_requests_may_be_sent_again() {
    let mut talk = Talk::with_requests(5).hear(&[status(1, true, "200"), goaway(5)].concat());
    let closed = Some(ErrorKind::Closed);
    assert_eq!(unprocessed(&talk), [(3, closed), (4, closed)]);
    talk = talk.hear(&[status(5, true, "200"), goaway(5)].concat());
    // The peer may have begun what it leaves unanswered.
    talk.http2.fail_open_lanes(ErrorKind::Closed, &mut talk.completions);
    assert_eq!(unprocessed(&talk), [(3, closed), (4, closed)]);
    assert_eq!(talk.outcomes()[3..], [(2, Ok(200)), (1, Err(ErrorKind::Closed))]);
}

#[test]
fn a_refused_stream_may_be_sent_again_and_no_other_reset_may() {
    for code in 0..=14 {
        let talk = Talk::with_requests(2).hear(&number(kind::RST_STREAM, 3, code));
        assert_eq!(talk.outcomes(), [(1, Err(ErrorKind::Reset))]);
        assert_eq!(talk.completions[0].processed, code != 7, "code {code}");
        assert!(talk.http2.can_start());
    }
}

#[test]
fn a_connection_ends_when_its_identifiers_are_used_up() {
    let mut talk = Talk::with_requests(0);
    talk.http2.next_stream = LAST_STREAM;
    assert!(talk.start(0, b"", false));
    assert!(talk.http2.is_closing() && !talk.start(1, b"", false));
    assert_eq!(talk.hear(&status(LAST_STREAM, true, "200")).outcomes(), [(0, Ok(200))]);
}

#[test]
fn the_end_of_the_connection_fails_every_open_request() {
    let mut talk = Talk::with_requests(3).hear(&status(3, true, "200"));
    talk.completions.clear();
    talk.http2.fail_open_lanes(ErrorKind::Closed, &mut talk.completions);
    assert_eq!(talk.outcomes(), [(0, Err(ErrorKind::Closed)), (2, Err(ErrorKind::Closed))]);
    assert_eq!(talk.http2.open_lanes(), 0);
}

#[test]
fn a_cancelled_lane_is_free_at_once_and_late_frames_are_not_its_business() {
    let mut talk = Talk::with_requests(2).hear(&status(1, false, "200"));
    talk.http2.cancel(0, &mut talk.out);
    talk.http2.cancel(0, &mut talk.out);
    assert_eq!(resets(&talk.written()), [(1, vec![0, 0, 0, 8])]);
    assert!(talk.start(0, b"", false));
    let late = [data(1, true, 9), number(kind::RST_STREAM, 1, 8), window_update(1, 1)].concat();
    let talk = talk.hear(&late).hear(&status(1, true, "500")).hear(&status(5, true, "200"));
    assert_eq!(completed(&talk), [(0, answer(200, 0))]);
}

#[test]
fn a_lane_cancelled_within_a_frame_of_its_answer_stays_free() {
    let last = data(1, true, 9);
    let mut talk = Talk::with_requests(1).hear(&status(1, false, "200")).hear(&last[..12]);
    talk.http2.cancel(0, &mut talk.out);
    assert!(talk.start(0, b"", false));
    assert_eq!(completed(&talk.hear(&last[12..])), []);
}

#[test]
fn a_body_waits_for_both_windows_and_frames_are_as_long_as_allowed() {
    let mut talk = Talk::with_requests(0);
    assert!(talk.start(0, &[0; 100_000], false));
    let first = talk.written();
    assert_eq!(body_of(1, &first), (65_535, false));
    assert_eq!(first.iter().map(|(header, _)| header.length).max(), Some(16_384));
    let mut talk = talk.hear(&window_update(1, 50_000));
    assert_eq!(body_of(1, &talk.written()), (0, false));
    let mut talk = talk.hear(&window_update(0, 30_000));
    assert_eq!(body_of(1, &talk.written()), (30_000, false));
    let larger = settings(&[(setting::MAX_FRAME_SIZE, 1 << 20)]);
    let mut talk = talk.hear(&[larger, window_update(0, 30_000)].concat());
    assert_eq!(body_of(1, &talk.written()), (4_465, true));
    assert_eq!(talk.http2.waiting, 0);
}

#[test]
fn a_changed_initial_window_applies_to_open_streams() {
    let initial = |window| settings(&[(setting::INITIAL_WINDOW_SIZE, window)]);
    let mut talk = Talk::with_requests(0).hear(&window_update(0, 1 << 20)).hear(&initial(1_000));
    assert!(talk.start(0, &[0; 5_000], false));
    assert_eq!(body_of(1, &talk.written()), (1_000, false));
    // Back to 200: the stream is 800 below zero, and 900 more open only 100.
    let mut talk = talk.hear(&initial(200)).hear(&window_update(1, 900));
    assert_eq!(body_of(1, &talk.written()), (100, false));
    let mut talk = talk.hear(&initial(5_000));
    assert_eq!(body_of(1, &talk.written()), (3_900, true));
}

#[test]
fn bodies_take_turns_when_the_connection_is_the_limit() {
    let mut talk =
        Talk::with_requests(0).hear(&settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]));
    assert!((0..3).all(|lane| talk.start(lane, &[0; 100_000], false)));
    talk.written();
    let mut said = Vec::new();
    for _ in 0..6 {
        talk.feed(&window_update(0, 10_000)).unwrap();
        said.extend(talk.written());
    }
    let sent: Vec<_> = [1, 3, 5].map(|stream| body_of(stream, &said)).to_vec();
    assert_eq!(sent, [(20_000, false); 3]);
}

#[test]
fn an_answer_before_the_request_was_all_sent_stops_it() {
    let mut talk = Talk::with_requests(0);
    assert!(talk.start(0, &[0; 100_000], false));
    talk.written();
    let mut talk = talk.hear(&status(1, true, "413"));
    assert_eq!(talk.outcomes(), [(0, Ok(413))]);
    assert_eq!(resets(&talk.written()), [(1, vec![0, 0, 0, 8])]);
    // The body of the request before is not sent in the name of the next.
    assert!(talk.start(0, b"", false));
    talk.written();
    let mut talk = talk.hear(&[window_update(0, 100_000), window_update(3, 100_000)].concat());
    assert_eq!((talk.http2.waiting, talk.written().len()), (0, 0));
}

#[test]
fn our_windows_open_again_when_half_used() {
    let mut talk = Talk::with_requests(2).hear(&status(1, false, "200"));
    let piece = data(1, false, 16_384);
    let half = STREAM_WINDOW as usize / 2 / 16_384;
    (0..half).for_each(|_| talk.feed(&piece).unwrap());
    assert!(talk.out.is_empty());
    talk.feed(&piece).unwrap();
    assert_eq!(talk.out, window_update(1, (half as u32 + 1) * 16_384));
}

#[test]
fn the_connection_window_counts_what_nobody_waits_for() {
    let mut talk = Talk::with_requests(1);
    talk.http2.cancel(0, &mut talk.out);
    talk.http2.received = CONNECTION_WINDOW / 2 - 10;
    talk.out.clear();
    let talk = talk.hear(&data(1, true, 11));
    assert_eq!(talk.out, window_update(0, CONNECTION_WINDOW / 2 + 1));
}

#[test]
fn a_body_beyond_the_limit_fails_its_own_request() {
    let mut talk = Talk::with_requests(2).hear(&status(1, false, "200"));
    let piece = data(1, false, 16_384);
    (0..16_384).for_each(|_| talk.feed(&piece).unwrap());
    assert_eq!(talk.completions, []);
    talk.written();
    let mut talk = talk.hear(&data(1, false, 1)).hear(&status(3, true, "200"));
    assert_eq!(talk.outcomes(), [(0, Err(ErrorKind::Oversize)), (1, Ok(200))]);
    assert_eq!(resets(&talk.written()), [(1, vec![0, 0, 0, 8])]);
}

#[test]
fn a_grpc_answer_is_complete_with_its_status() {
    let head = fields(1, false, &[(":status", "200")]);
    let trailers = |value| fields(1, true, &[("grpc-status", value), ("grpc-message", "no")]);
    let alone = fields(1, true, &[(":status", "200"), ("grpc-status", "7")]);
    for (said, expected) in [
        (vec![head.clone(), data(1, false, 9), trailers("0")], Ok((200, Some(0)))),
        (vec![head.clone(), trailers("14")], Ok((200, Some(14)))),
        (vec![alone], Ok((200, Some(7)))),
        (vec![head.clone(), data(1, true, 9)], Err(ErrorKind::Garbage)),
        (vec![head.clone(), fields(1, true, &[("x", "y")])], Err(ErrorKind::Garbage)),
        (vec![head, trailers("none")], Err(ErrorKind::Garbage)),
        (vec![status(1, true, "503")], Ok((503, None))),
    ] {
        let mut talk = Talk::silent(1, true).hear(&settings(&[]));
        assert!(talk.start(0, b"\0\0\0\0\0", false));
        let talk = talk.hear(&said.concat());
        let outcome = talk.completions[0].outcome.map(|a| (a.status, a.grpc_status));
        assert_eq!(outcome, expected);
    }
}

/// Frames as a peer without manners would send them.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..40);
    let stream = prop_oneof![Just(0_u32), 1_u32..12];
    let block = prop_oneof![Just(0x88_u8), Just(0x20), any::<u8>()];
    prop_oneof![
        (0_u8..11, any::<u8>(), stream, payload)
            .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload)),
        (0_u8..2, 0_u32..4, block).prop_map(|(end, n, byte)| frame(
            kind::HEADERS,
            4 | end,
            2 * n + 1,
            &[byte]
        )),
        (any::<bool>(), 0_u32..4, 0_usize..99).prop_map(|(end, n, size)| data(
            2 * n + 1,
            end,
            size
        )),
        (0_u32..4, any::<u32>()).prop_map(|(stream, increment)| window_update(stream, increment)),
        (0_u16..7, any::<u32>()).prop_map(|(id, value)| settings(&[(id, value)])),
    ]
}

/// Bytes in pieces that begin at these shares of the whole.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// What comes of pieces, and what was sent: frames other than DATA, and the lengths of bodies.
fn hear_all(pieces: &[&[u8]]) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut talk = Talk::with_requests(2);
    assert!(talk.start(2, &[0; 100], false) && talk.start(3, &[0; 70_000], false));
    let result = pieces.iter().try_for_each(|piece| talk.feed(piece));
    let frames = talk.written();
    let bodies = result.map(|()| [5, 7].map(|stream| body_of(stream, &frames)));
    let others: Vec<_> = frames.into_iter().filter(|(h, _)| h.kind != kind::DATA).collect();
    (talk.completions, bodies, others)
}

proptest! {
    #[test]
    fn any_split_of_what_a_peer_says_comes_to_the_same(
        // Without answers to the request whose body waits: how much of that is sent depends on the pieces.
        streams in prop::sample::subsequence(vec![1_u32, 3, 5], 0..=3).prop_shuffle(),
        bodies in prop::collection::vec(0_usize..40_000, 3),
        windows in prop::collection::vec(1_u32..100_000, 0..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut said = Vec::new();
        for (stream, length) in streams.iter().zip(bodies) {
            said.extend(status(*stream, false, "200"));
            windows.iter().for_each(|window| said.extend(window_update(7 * (window % 2), *window)));
            for left in (0..=length).rev().step_by(16_384) {
                said.extend(data(*stream, left < 16_384, left.min(16_384)));
            }
            said.extend(frame(kind::PING, 0, 0, &u64::from(*stream).to_be_bytes()));
        }
        prop_assert_eq!(hear_all(&pieces(&said, &cuts)), hear_all(&[&said]));
    }

    #[test]
    fn no_frames_make_it_panic_or_lose_a_lane(
        said in prop::collection::vec(any_frame(), 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let said = said.concat();
        let mut talk = Talk::with_requests(2);
        assert!(talk.start(2, &[0; 70_000], false));
        let result = pieces(&said, &cuts).into_iter().try_for_each(|piece| talk.feed(piece));
        let waiting = talk.http2.lanes.iter().filter(|lane| lane.is_waiting()).count();
        prop_assert_eq!(waiting, talk.http2.waiting as usize);
        talk.http2.fail_open_lanes(result.err().unwrap_or(ErrorKind::Closed), &mut talk.completions);
        let mut lanes: Vec<u32> = talk.completions.iter().map(|c| c.lane).collect();
        lanes.sort_unstable();
        prop_assert_eq!(lanes, vec![0, 1, 2]);
    }

    #[test]
    fn no_bytes_make_it_panic(
        said in prop::collection::vec(any::<u8>(), 0..400),
        has_greeted in any::<bool>(),
    ) {
        let mut talk = if has_greeted { Talk::with_requests(1) } else { Talk::silent(1, false) };
        let _ = talk.feed(&said);
    }
}
