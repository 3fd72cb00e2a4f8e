//! Finds the end of an answer in bytes that come in pieces. Keeps the status, forgets head and body.
//!
//! Message framing follows RFC 9112 section 6.3. A head that comes whole, the usual case, is read where it
//! lies; only a head in pieces is copied. One that is the same as the last, which is usual too, is not read again.

use memchr::memchr;

use super::Answer;

/// A head longer than this is refused, bytes.
const MAX_HEAD: usize = 32 * 1024;
/// A body longer than this is refused, bytes.
const MAX_BODY: u64 = 256 * 1024 * 1024;

/// Why bytes are no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not HTTP/1.x, or framed against the rules.
    Garbage,
    /// Head or body beyond the limit.
    Oversize,
    /// The bytes ended before the answer did.
    Truncated,
}

const NOTHING_YET: Answer =
    Answer { status: 0, keep_alive: false, first_byte_ns: 0, body_bytes: 0, grpc_status: None };

/// Reads the answers of one connection, one after the other.
#[derive(Debug)]
pub(crate) struct ResponseParser {
    to_head_request: bool,
    state: State,
    answer: Answer,
    partial_head: Vec<u8>,
    /// The last head that came whole, and what it said.
    last_head: Vec<u8>,
    last: Option<Head>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Sized { left: u64 },
    Chunked(Chunk),
    UntilClose,
    Complete,
}

/// Where in a chunked body (RFC 9112 section 7.1) the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Size { value: u64, digits: bool },
    Extension { value: u64 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataReturn,
    DataEnd,
    Trailer { line: usize },
}

impl ResponseParser {
    /// A parser at the begin of an answer.
    pub fn new() -> ResponseParser {
        ResponseParser {
            to_head_request: false,
            state: State::Head,
            answer: NOTHING_YET,
            partial_head: Vec::new(),
            last_head: Vec::new(),
            last: None,
        }
    }

    /// The next answer is one to HEAD, or to another method.
    pub fn expect(&mut self, to_head_request: bool) {
        self.to_head_request = to_head_request;
    }

    /// Takes the next piece, which came at `now_ns`; gives the answer once it is complete.
    ///
    /// # Errors
    /// When the bytes are no answer.
    pub fn feed(&mut self, mut piece: &[u8], now_ns: u64) -> Result<Option<Answer>, Fault> {
        if self.answer.first_byte_ns == 0 {
            self.answer.first_byte_ns = now_ns;
        }
        while !piece.is_empty() && self.state != State::Complete {
            piece = self.step(piece)?;
        }
        if self.state != State::Complete {
            return Ok(None);
        }
        // Nothing was asked that more bytes could answer: they are in the way of the next answer.
        self.answer.keep_alive &= piece.is_empty();
        Ok(Some(self.finish()))
    }

    /// The connection ended: the end of a close-delimited body, or of an answer that stays incomplete.
    ///
    /// # Errors
    /// When the answer was not complete.
    pub fn end_of_stream(&mut self) -> Result<Answer, Fault> {
        if self.state == State::UntilClose { Ok(self.finish()) } else { Err(Fault::Truncated) }
    }

    fn finish(&mut self) -> Answer {
        self.state = State::Head;
        std::mem::replace(&mut self.answer, NOTHING_YET)
    }

    /// Consumes part of a piece that is not empty; gives the rest.
    fn step<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], Fault> {
        match self.state {
            State::Head => self.read_head(piece),
            State::Sized { left } => Ok(self.skip_sized(piece, left)),
            State::Chunked(Chunk::Data { left }) => Ok(self.skip_chunk(piece, left)),
            State::Chunked(chunk) => {
                let next = self.read_framing(chunk, piece[0])?;
                self.state = next;
                Ok(&piece[1..])
            }
            State::UntilClose => {
                self.count_body(piece.len() as u64)?;
                Ok(&[])
            }
            State::Complete => Ok(piece),
        }
    }

    fn read_head<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], Fault> {
        let before = self.partial_head.len();
        let head = if before == 0 {
            self.parse_whole_head(piece)?
        } else {
            self.partial_head.extend_from_slice(piece);
            parse_head(&self.partial_head)?
        };
        let Some(head) = head else {
            return self.keep_partial(piece, before);
        };
        self.partial_head.clear();
        self.begin_body(&head)?;
        Ok(&piece[head.length - before..])
    }

    fn parse_whole_head(&mut self, piece: &[u8]) -> Result<Option<Head>, Fault> {
        if let Some(last) = self.last.filter(|_| piece.starts_with(&self.last_head)) {
            return Ok(Some(last));
        }
        let head = parse_head(piece)?;
        if let Some(head) = head {
            self.last_head.clear();
            self.last_head.extend_from_slice(&piece[..head.length]);
            self.last = Some(head);
        }
        Ok(head)
    }

    fn keep_partial<'a>(&mut self, piece: &[u8], before: usize) -> Result<&'a [u8], Fault> {
        if before == 0 {
            self.partial_head.extend_from_slice(piece);
        }
        if self.partial_head.len() > MAX_HEAD { Err(Fault::Oversize) } else { Ok(&[]) }
    }

    fn begin_body(&mut self, head: &Head) -> Result<(), Fault> {
        if is_interim(head.status) {
            return Ok(());
        }
        self.answer.status = head.status;
        self.answer.keep_alive = head.keep_alive;
        let bodiless = self.to_head_request || matches!(head.status, 204 | 304);
        self.state = match head.framing {
            _ if bodiless => State::Complete,
            Framing::Length(0) => State::Complete,
            Framing::Length(left) => {
                self.count_body(left)?;
                State::Sized { left }
            }
            Framing::Chunked => State::Chunked(Chunk::Size { value: 0, digits: false }),
            Framing::UntilClose => {
                self.answer.keep_alive = false;
                State::UntilClose
            }
        };
        Ok(())
    }

    fn skip_sized<'a>(&mut self, piece: &'a [u8], left: u64) -> &'a [u8] {
        let taken = left.min(piece.len() as u64);
        let left = left - taken;
        self.state = if left == 0 { State::Complete } else { State::Sized { left } };
        &piece[taken as usize..]
    }

    fn skip_chunk<'a>(&mut self, piece: &'a [u8], left: u64) -> &'a [u8] {
        let taken = left.min(piece.len() as u64);
        let left = left - taken;
        self.state =
            State::Chunked(if left == 0 { Chunk::DataReturn } else { Chunk::Data { left } });
        &piece[taken as usize..]
    }

    fn read_framing(&mut self, chunk: Chunk, byte: u8) -> Result<State, Fault> {
        let next = match (chunk, byte) {
            (Chunk::Size { value, .. }, b) if b.is_ascii_hexdigit() => {
                Chunk::Size { value: self.append_digit(value, b)?, digits: true }
            }
            (Chunk::Size { value, digits: true }, b'\r') => Chunk::SizeEnd { value },
            (Chunk::Size { value, digits: true }, b';' | b' ' | b'\t') => {
                Chunk::Extension { value }
            }
            (Chunk::Extension { value }, b'\r') => Chunk::SizeEnd { value },
            (Chunk::Extension { value }, b) if b != b'\n' => Chunk::Extension { value },
            (Chunk::SizeEnd { value: 0 }, b'\n') => Chunk::Trailer { line: 0 },
            (Chunk::SizeEnd { value }, b'\n') => {
                self.count_body(value)?;
                Chunk::Data { left: value }
            }
            (Chunk::DataReturn, b'\r') => Chunk::DataEnd,
            (Chunk::DataEnd, b'\n') => Chunk::Size { value: 0, digits: false },
            (Chunk::Trailer { line: 0 }, b'\n') => return Ok(State::Complete),
            (Chunk::Trailer { .. }, b'\n') => Chunk::Trailer { line: 0 },
            (Chunk::Trailer { line }, b'\r') => Chunk::Trailer { line },
            (Chunk::Trailer { line }, _) if line < MAX_HEAD => Chunk::Trailer { line: line + 1 },
            (Chunk::Trailer { .. }, _) => return Err(Fault::Oversize),
            _ => return Err(Fault::Garbage),
        };
        Ok(State::Chunked(next))
    }

    fn append_digit(&self, value: u64, digit: u8) -> Result<u64, Fault> {
        let digit = char::from(digit).to_digit(16).ok_or(Fault::Garbage)?;
        let value = value * 16 + u64::from(digit);
        if value > MAX_BODY { Err(Fault::Oversize) } else { Ok(value) }
    }

    fn count_body(&mut self, bytes: u64) -> Result<(), Fault> {
        let total = &mut self.answer.body_bytes;
        *total = total.saturating_add(bytes);
        if *total > MAX_BODY { Err(Fault::Oversize) } else { Ok(()) }
    }
}

/// A complete head.
#[derive(Debug, Clone, Copy)]
struct Head {
    length: usize,
    status: u16,
    keep_alive: bool,
    framing: Framing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Answers 100..=199 announce the one that counts. 101 would end HTTP on the connection; nobody asked for it.
fn is_interim(status: u16) -> bool {
    (100..200).contains(&status)
}

/// Reads a head if all of it is there; `None` when more bytes are needed.
fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    let mut fields = Fields::default();
    let mut length = 0;
    let mut status_line = None;
    while let Some(end) = memchr(b'\n', &bytes[length..]) {
        let line = &bytes[length..length + end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        length += end + 1;
        if length > MAX_HEAD {
            return Err(Fault::Oversize);
        }
        match status_line {
            None => status_line = Some(parse_status_line(line)?),
            Some(status_line) if line.is_empty() => return fields.into_head(status_line, length),
            Some(_) => fields.read(line)?,
        }
    }
    if status_line.is_none() && !may_become_http(bytes) {
        return Err(Fault::Garbage);
    }
    Ok(None)
}

fn may_become_http(bytes: &[u8]) -> bool {
    let expected = b"HTTP/1.";
    let known = bytes.len().min(expected.len());
    bytes[..known] == expected[..known]
}

#[derive(Clone, Copy)]
struct StatusLine {
    status: u16,
    persistent: bool,
}

/// `HTTP/1.1 200 OK`; the reason may be missing.
fn parse_status_line(line: &[u8]) -> Result<StatusLine, Fault> {
    let minor = match line.get(..9) {
        Some(b"HTTP/1.1 ") => 1,
        Some(b"HTTP/1.0 ") => 0,
        _ => return Err(Fault::Garbage),
    };
    let code = line.get(9..12).ok_or(Fault::Garbage)?;
    if !code.iter().all(u8::is_ascii_digit) || !matches!(line.get(12), None | Some(b' ')) {
        return Err(Fault::Garbage);
    }
    let status = code.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    if status < 100 || status == 101 {
        return Err(Fault::Garbage);
    }
    Ok(StatusLine { status, persistent: minor == 1 })
}

/// The header fields that decide where the answer ends and whether the connection lives on.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    /// Whether the last transfer coding is `chunked`.
    chunked: Option<bool>,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    fn read(&mut self, line: &[u8]) -> Result<(), Fault> {
        let colon = memchr(b':', line).ok_or(Fault::Garbage)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => self.read_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = Some(ends_with_chunked(value));
            }
            10 if name.eq_ignore_ascii_case(b"connection") => self.read_connection(value),
            _ => {}
        }
        Ok(())
    }

    fn read_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(Fault::Garbage);
        }
        let length = value.iter().fold(0_u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        if self.length.is_some_and(|other| other != length) {
            return Err(Fault::Garbage);
        }
        self.length = Some(length);
        Ok(())
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn into_head(self, line: StatusLine, length: usize) -> Result<Option<Head>, Fault> {
        let framing = match (self.chunked, self.length) {
            (Some(true), _) => Framing::Chunked,
            (None, Some(length)) => Framing::Length(length),
            (Some(false), _) | (None, None) => Framing::UntilClose,
        };
        let keep_alive = !self.close && (line.persistent || self.keep_alive);
        Ok(Some(Head { length, status: line.status, keep_alive, framing }))
    }
}

fn ends_with_chunked(value: &[u8]) -> bool {
    let last = value.rsplit(|b| *b == b',').next().unwrap_or(value);
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

#[cfg(test)]
mod tests;
