use proptest::prelude::*;

use super::*;

const NOW_NS: u64 = 9;

/// Status, and whether the connection lives on.
type Seen = Result<(u16, bool), Fault>;

/// What a whole connection's bytes come to, when they arrive in these pieces and then end.
fn read_in_pieces(to_head: bool, pieces: &[&[u8]]) -> Seen {
    let mut parser = ResponseParser::new();
    parser.expect(to_head);
    let mut answer: Option<Answer> = None;
    for piece in pieces.iter().filter(|p| !p.is_empty()) {
        match &mut answer {
            // The engine closes a connection on which more comes than was asked for.
            Some(answer) => answer.keep_alive = false,
            None => answer = parser.feed(piece, NOW_NS)?,
        }
    }
    let answer = answer.map_or_else(|| parser.end_of_stream(), Ok)?;
    Ok((answer.status, answer.keep_alive))
}

fn read(text: &str) -> Seen {
    read_in_pieces(false, &[text.as_bytes()])
}

fn kept(status: u16) -> Seen {
    Ok((status, true))
}

fn closed(status: u16) -> Seen {
    Ok((status, false))
}

const ANSWERS: &[(&str, Seen)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Ok((200, true))),
    ("HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", Ok((200, true))),
    (
        "HTTP/1.1 503 Busy\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nno",
        Ok((503, false)),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5;x=y\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: 1\r\n\r\n",
        Ok((200, true)),
    ),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx",
        Ok((201, true)),
    ),
    ("HTTP/1.1 204 None\r\n\r\n", Ok((204, true))),
    ("HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n", Ok((304, true))),
    ("HTTP/1.1 200 OK\r\n\r\nuntil the end", Ok((200, false))),
    ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Ok((200, false))),
    ("SSH-2.0-OpenSSH\r\n", Err(Fault::Garbage)),
    ("HTTP/1.1 20x OK\r\n\r\n", Err(Fault::Garbage)),
    ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Err(Fault::Garbage)),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", Err(Fault::Garbage)),
    ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1", Ok((200, false))),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", Err(Fault::Garbage)),
    ("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", Err(Fault::Oversize)),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", Err(Fault::Oversize)),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Err(Fault::Truncated)),
    ("HTTP/1.1 200 OK\r\nContent-", Err(Fault::Truncated)),
    ("", Err(Fault::Truncated)),
];

#[test]
fn each_kind_of_answer_is_read_as_the_rfc_says() {
    for (text, expected) in ANSWERS {
        assert_eq!(&read(text), expected, "{text:?}");
    }
}

#[test]
fn every_cut_in_two_reads_the_same() {
    for (text, expected) in ANSWERS {
        for cut in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(&read_in_pieces(false, &[left, right]), expected, "{text:?} cut at {cut}");
        }
    }
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_says() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    assert_eq!(read_in_pieces(true, &[head]), kept(200));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read_in_pieces(true, &[chunked]), kept(200));
}

#[test]
fn chunked_wins_over_a_length() {
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(read(both), kept(200));
}

#[test]
fn http_1_0_lives_on_only_when_it_says_so() {
    let text = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(read(text), kept(200));
    assert_eq!(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"), closed(200));
}

#[test]
fn a_head_without_end_is_refused() {
    let line = format!("X: {}\r\n", "y".repeat(1000));
    let text = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(40));
    assert_eq!(read(&text), Err(Fault::Oversize));
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(700).collect();
    assert_eq!(read_in_pieces(false, &pieces), Err(Fault::Oversize));
}

#[test]
fn one_parser_reads_answer_after_answer() {
    let mut parser = ResponseParser::new();
    for status in [200, 404, 200] {
        let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(parser.feed(&text.as_bytes()[..20], NOW_NS), Ok(None));
        assert_eq!(
            parser.feed(&text.as_bytes()[20..], NOW_NS).map(|a| a.map(|a| a.status)),
            Ok(Some(status))
        );
    }
}

proptest! {
    #[test]
    fn any_split_reads_as_the_whole(
        which in 0..ANSWERS.len(),
        mut cuts in prop::collection::vec(0_usize..250, 0..12),
    ) {
        let (text, expected) = &ANSWERS[which];
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(text.len()));
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
        prop_assert_eq!(&read_in_pieces(false, &pieces), expected);
    }

    #[test]
    fn any_split_of_any_bytes_reads_as_the_whole(
        bytes in "HTTP/1\\.[01] [0-9]{3}[ \r\n]{1,3}(content-length: [0-9]{1,2}\r\n|transfer-encoding: chunked\r\n|a:b\r\n){0,3}\r?\n[0-9a-f\r\n;]{0,40}",
        cut in 0_usize..150,
    ) {
        let whole = read_in_pieces(false, &[bytes.as_bytes()]);
        let (left, right) = bytes.as_bytes().split_at(cut.min(bytes.len()));
        prop_assert_eq!(read_in_pieces(false, &[left, right]), whole);
    }
}

#[test]
fn the_first_byte_and_the_length_of_the_body_are_kept() {
    let mut parser = ResponseParser::new();
    let text =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for number in 1..=2 {
        assert_eq!(parser.feed(&text[..30], number * 100), Ok(None));
        let answer = parser.feed(&text[30..], number * 100 + 50).unwrap().unwrap();
        assert_eq!((answer.first_byte_ns, answer.body_bytes), (number * 100, 5));
    }
}

#[test]
fn a_head_that_begins_as_the_last_one_is_read_as_its_own() {
    let mut parser = ResponseParser::new();
    let heads = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", 200, 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb", 200, 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nabcdefghijkl", 200, 12),
        ("HTTP/1.1 503 No\r\ncontent-length: 1\r\n\r\na", 503, 1),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", 200, 1),
    ];
    for (text, status, body_bytes) in heads {
        let answer = parser.feed(text.as_bytes(), NOW_NS).unwrap().unwrap();
        assert_eq!((answer.status, answer.body_bytes), (status, body_bytes));
    }
}
