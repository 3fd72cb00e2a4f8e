//! Frames to bytes and back (RFC 9113 sections 4 and 6): layouts and numbers only, no state.

/// Bytes of a frame before its payload.
pub(super) const HEADER: usize = 9;
/// Largest payload that a peer may send as long as it was not allowed more, and that every peer takes.
pub(super) const DEFAULT_MAX_FRAME: usize = 16_384;
/// Largest payload that a length can tell.
pub(super) const LARGEST_FRAME: usize = (1 << 24) - 1;
/// Largest flow-control window.
pub(super) const LARGEST_WINDOW: i64 = (1 << 31) - 1;
/// Flow-control window of a connection, and of a stream as long as no setting says otherwise.
pub(super) const DEFAULT_WINDOW: i64 = 65_535;
/// What a client sends before its first frame.
pub(super) const MAGIC: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub(super) mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Frame flags; one bit means different things in different frames.
pub(super) mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Identifiers of settings.
pub(super) mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
}

/// Why a stream is reset (RFC 9113 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    ProtocolError = 1,
    FlowControlError = 3,
    RefusedStream = 7,
    Cancel = 8,
}

/// The fixed part of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of payload.
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    /// 0 for the connection itself.
    pub stream: u32,
}

impl Header {
    /// The header at the front of the bytes; `None` when they are too few.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let [a, b, c, kind, flags, id @ ..] = *bytes.first_chunk::<HEADER>()?;
        Some(Header {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u31(id),
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, d, e, f, g]);
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A number whose highest bit is reserved, and ignored (RFC 9113 sections 4.1, 6.8, 6.9).
pub(super) fn u31(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

/// The settings in a payload, in order; a rest shorter than a setting is left out.
pub(super) fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    let (settings, _) = payload.as_chunks::<6>();
    settings.iter().map(|[a, b, c, d, e, f]| {
        (u16::from_be_bytes([*a, *b]), u32::from_be_bytes([*c, *d, *e, *f]))
    })
}

pub(super) fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let length = settings.len() * 6;
    Header { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn write_settings_ack(out: &mut Vec<u8>) {
    Header { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
}

pub(super) fn write_ping_ack(opaque: &[u8], out: &mut Vec<u8>) {
    Header { length: opaque.len(), kind: kind::PING, flags: flag::ACK, stream: 0 }.write(out);
    out.extend_from_slice(opaque);
}

pub(super) fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    Header { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

pub(super) fn write_reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    Header { length: 4, kind: kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// A header block, in as many frames as it takes.
pub(super) fn write_block(
    stream: u32,
    block: &[u8],
    is_last: bool,
    max_frame: usize,
    out: &mut Vec<u8>,
) {
    let (mut piece, mut rest) = block.split_at(block.len().min(max_frame));
    let mut frame = Header {
        length: piece.len(),
        kind: kind::HEADERS,
        flags: if is_last { flag::END_STREAM } else { 0 },
        stream,
    };
    while !rest.is_empty() {
        frame.write(out);
        out.extend_from_slice(piece);
        (piece, rest) = rest.split_at(rest.len().min(max_frame));
        frame = Header { length: piece.len(), kind: kind::CONTINUATION, flags: 0, stream };
    }
    Header { flags: frame.flags | flag::END_HEADERS, ..frame }.write(out);
    out.extend_from_slice(piece);
}

/// A piece of a body, in as many frames as it takes; nothing when it is empty.
pub(super) fn write_data(
    stream: u32,
    piece: &[u8],
    is_last: bool,
    max_frame: usize,
    out: &mut Vec<u8>,
) {
    let mut chunks = piece.chunks(max_frame).peekable();
    while let Some(chunk) = chunks.next() {
        let ends = is_last && chunks.peek().is_none();
        let flags = if ends { flag::END_STREAM } else { 0 };
        Header { length: chunk.len(), kind: kind::DATA, flags, stream }.write(out);
        out.extend_from_slice(chunk);
    }
}
