//! Feeds what a peer says to an HTTP/2 connection with a request on each lane, whole and in arbitrary pieces: no
//! bytes make it panic, each request ends exactly once, and where the bytes are cut makes no difference.
//!
//! An input is `mode`, `cuts`, then the peer's bytes after its first SETTINGS. The lowest bits of `mode` are gRPC,
//! a HEAD request and bodies; the others say how many bytes of cuts follow, each the length of a piece, in turn.
#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use pieces::pieces;
use toll_load::ErrorKind;
use toll_load::fuzzing::{Ended, LANES, Requests, read_http2};

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    let (cuts, bytes) = rest.split_at(usize::from(mode >> 3).min(rest.len()));
    let has = |bit| mode & bit != 0;
    let requests = Requests { is_grpc: has(1), has_head: has(2), has_bodies: has(4) };
    let whole = read_http2(requests, [bytes]);
    check(requests, &whole);
    let cut = read_http2(requests, pieces(bytes, cuts));
    let bytewise = read_http2(requests, bytes.chunks(1));
    if requests.has_bodies {
        // How much of a body is sent depends on the pieces, and with it which update is too much for a window.
        check(requests, &cut);
        check(requests, &bytewise);
    } else {
        assert_eq!(cut, whole, "in pieces {cuts:?}");
        assert_eq!(bytewise, whole, "byte by byte");
    }
});

fn check(requests: Requests, ended: &[Ended]) {
    let mut lanes: Vec<u32> = ended.iter().map(|end| end.lane).collect();
    lanes.sort_unstable();
    assert!(lanes.into_iter().eq(0..LANES), "each request ends once: {ended:?}");
    for Ended { outcome, processed, .. } in ended {
        match outcome {
            Ok((status, _, grpc_status)) => {
                assert!((200..1000).contains(status), "{status} is no final status");
                assert!(!requests.is_grpc || *status != 200 || grpc_status.is_some());
                assert!(processed, "an answer is the work of its server");
            }
            Err(ErrorKind::Closed | ErrorKind::Reset) => {}
            Err(kind) => assert!(processed, "{kind:?}"),
        }
    }
}
