//! Feeds a connection's bytes to the HTTP/1.1 response parser, whole and in arbitrary pieces: no bytes make it
//! panic, and where they are cut makes no difference.
//!
//! An input is `mode`, `cuts`, then the connection's bytes. The lowest bit of `mode` says that the answer is to
//! a HEAD request, the others how many bytes of cuts follow; each of those is the length of a piece, in turn.
#![no_main]

mod pieces;

use libfuzzer_sys::fuzz_target;
use pieces::pieces;
use toll_load::fuzzing::{Outcome, read_http1};

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    let (cuts, bytes) = rest.split_at(usize::from(mode >> 1).min(rest.len()));
    let to_head_request = mode & 1 == 1;
    let whole = read_http1(to_head_request, [bytes]);
    assert_eq!(read_http1(to_head_request, pieces(bytes, cuts)), whole, "in pieces {cuts:?}");
    // A head in pieces is read again with each of them: a long one byte by byte would take all the time.
    let even = (bytes.len() / 256).max(1);
    assert_eq!(read_http1(to_head_request, bytes.chunks(even)), whole, "in pieces of {even}");
    if let Outcome::Answer { status, .. } = whole {
        assert!((200..1000).contains(&status), "{status} is no final status");
    }
});
