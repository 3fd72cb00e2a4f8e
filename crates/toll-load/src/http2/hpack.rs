//! Header fields to bytes and back (HPACK, RFC 7541), with an empty dynamic table on both sides: no state.
//!
//! Reads only the two fields that an answer is judged by; the others are stepped over. Huffman codes are
//! compared or, for numbers, decoded; they are never written.

/// Announces that the dynamic table holds nothing from now on (section 6.3).
pub(super) const TABLE_SIZE_ZERO: u8 = 0x20;

/// Largest integer that is read: far above any index or length that fits a block.
const MAX_INTEGER: usize = 1 << 24;

/// Fields that have an index of their own, from 1 (appendix A).
const STATIC_TABLE: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// `:status` in the Huffman code of appendix B.
const HUFFMAN_STATUS: &[u8] = b"\xb8\x84\x8d\x36\xa3";
/// `grpc-status` in the Huffman code of appendix B.
const HUFFMAN_GRPC_STATUS: &[u8] = b"\x9a\xca\xc8\xb2\x12\x34\xda\x8f";

/// Appends one field. Names are made lower-case, as RFC 9113 section 8.2.1 requires.
pub(crate) fn encode_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let has_name = |entry: &&str| entry.as_bytes().eq_ignore_ascii_case(name);
    let pair = STATIC_TABLE.iter().position(|(n, v)| has_name(n) && v.as_bytes() == value);
    if let Some(at) = pair {
        return encode_integer(out, 0x80, 7, at + 1);
    }
    match STATIC_TABLE.iter().position(|(n, _)| has_name(n)) {
        Some(at) => encode_integer(out, 0, 4, at + 1),
        None => {
            out.push(0);
            encode_integer(out, 0, 7, name.len());
            out.extend(name.iter().map(u8::to_ascii_lowercase));
        }
    }
    encode_integer(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Section 5.1: as much as fits in the low bits of the first byte, the rest in groups of seven.
fn encode_integer(out: &mut Vec<u8>, pattern: u8, prefix_bits: u32, value: usize) {
    let full = (1 << prefix_bits) - 1;
    if value < full {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A block that cannot be read, or that needs a dynamic table. The connection cannot go on after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Undecodable;

/// What is kept of a block of fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub status: Option<u16>,
    pub grpc_status: Option<u16>,
    /// There is a `:status` that is no status, or a second one.
    pub malformed: bool,
}

/// Reads a whole block.
///
/// # Errors
/// When it is cut short, holds an index of the dynamic table or would let that table grow.
pub(super) fn decode(block: &[u8]) -> Result<Fields, Undecodable> {
    let mut fields = Fields::default();
    let mut reader = Reader(block);
    let mut may_resize = true;
    while let Some(&first) = reader.0.first() {
        match first {
            0x80.. => fields.take_indexed(reader.integer(7)?)?,
            0x40.. => reader.literal(6, &mut fields)?,
            // Section 4.2: a change of the table's size stands at the beginning of a block.
            0x20.. if may_resize && first == TABLE_SIZE_ZERO => {
                reader.0 = &reader.0[1..];
                continue;
            }
            0x20.. => return Err(Undecodable),
            _ => reader.literal(4, &mut fields)?,
        }
        may_resize = false;
    }
    Ok(fields)
}

impl Fields {
    fn take_indexed(&mut self, index: usize) -> Result<(), Undecodable> {
        const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
        match index {
            8..=14 => self.take_status(Some(STATUSES[index - 8])),
            1..=61 => {}
            _ => return Err(Undecodable),
        }
        Ok(())
    }

    fn take_status(&mut self, status: Option<u16>) {
        self.malformed |= self.status.is_some() || status.is_none_or(|s| s < 100);
        self.status = status;
    }

    fn take(&mut self, name: Name, value: Text) {
        match name {
            Name::Status => self.take_status(value.number()),
            Name::GrpcStatus => self.grpc_status = value.number(),
            Name::Other => {}
        }
    }
}

/// The names that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Status,
    GrpcStatus,
    Other,
}

/// A string as it stands in a block.
struct Text<'a> {
    is_huffman: bool,
    bytes: &'a [u8],
}

impl Text<'_> {
    /// A name is compared as it is written: a string has exactly one Huffman code.
    fn name(&self) -> Name {
        match (self.is_huffman, self.bytes) {
            (false, b":status") | (true, HUFFMAN_STATUS) => Name::Status,
            (false, b"grpc-status") | (true, HUFFMAN_GRPC_STATUS) => Name::GrpcStatus,
            _ => Name::Other,
        }
    }

    /// The number that one to three digits stand for.
    fn number(&self) -> Option<u16> {
        if self.is_huffman {
            return huffman_number(self.bytes);
        }
        let is_number =
            (1..=3).contains(&self.bytes.len()) && self.bytes.iter().all(u8::is_ascii_digit);
        is_number
            .then(|| self.bytes.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
    }
}

/// One to three digits in the code of appendix B: 0, 1 and 2 have five bits, 3 to 9 have six (from 0x19), and
/// fewer than eight bits, all ones, fill the last byte.
fn huffman_number(bytes: &[u8]) -> Option<u16> {
    if bytes.len() > 3 {
        return None;
    }
    let mut left = 8 * bytes.len() as u32;
    let mut bits = bytes.iter().rev().fold(0_u32, |bits, byte| bits >> 8 | u32::from(*byte) << 24);
    let (mut number, mut digits) = (0, 0);
    while left >= 8 || bits.leading_ones() < left {
        let (digit, width) = match bits >> 26 {
            code @ 0..=5 => (code >> 1, 5),
            code @ 0x19..=0x1f => (code - 0x19 + 3, 6),
            _ => return None,
        };
        left = left.checked_sub(width)?;
        bits <<= width;
        number = number * 10 + digit as u16;
        digits += 1;
    }
    (1..=3).contains(&digits).then_some(number)
}

/// What is left of a block.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Undecodable> {
        let (first, rest) = self.0.split_first().ok_or(Undecodable)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Section 5.1.
    fn integer(&mut self, prefix_bits: u32) -> Result<usize, Undecodable> {
        let full = (1 << prefix_bits) - 1;
        let mut value = usize::from(self.byte()?) & full;
        if value < full {
            return Ok(value);
        }
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            value += (byte & 0x7f) << shift;
            if byte < 0x80 {
                return if value > MAX_INTEGER { Err(Undecodable) } else { Ok(value) };
            }
        }
        Err(Undecodable)
    }

    /// Section 5.2.
    fn string(&mut self) -> Result<Text<'a>, Undecodable> {
        let is_huffman = self.0.first().is_some_and(|first| first & 0x80 != 0);
        let length = self.integer(7)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Undecodable)?;
        self.0 = rest;
        Ok(Text { is_huffman, bytes })
    }

    /// Section 6.2. With incremental indexing too: a table of size zero forgets the field at once (section 4.4).
    fn literal(&mut self, prefix_bits: u32, fields: &mut Fields) -> Result<(), Undecodable> {
        let name = match self.integer(prefix_bits)? {
            0 => self.string()?.name(),
            8..=14 => Name::Status,
            1..=61 => Name::Other,
            _ => return Err(Undecodable),
        };
        fields.take(name, self.string()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
