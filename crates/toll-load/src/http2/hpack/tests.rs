use proptest::prelude::*;

use super::*;

/// Bytes as the RFC prints them.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The codes of RFC 7541 appendix B that the names and numbers of answers need: symbol, code, bits.
const CODES: [(u8, u32, u32); 21] = [
    (b'-', 0x16, 6),
    (b'0', 0x0, 5),
    (b'1', 0x1, 5),
    (b'2', 0x2, 5),
    (b'3', 0x19, 6),
    (b'4', 0x1a, 6),
    (b'5', 0x1b, 6),
    (b'6', 0x1c, 6),
    (b'7', 0x1d, 6),
    (b'8', 0x1e, 6),
    (b'9', 0x1f, 6),
    (b':', 0x5c, 7),
    (b'a', 0x3, 5),
    (b'c', 0x4, 5),
    (b'g', 0x26, 6),
    (b'p', 0x2b, 6),
    (b'r', 0x2c, 6),
    (b's', 0x8, 5),
    (b't', 0x9, 5),
    (b'u', 0x2d, 6),
    (b'x', 0x79, 7),
];

fn huffman(text: &str) -> Vec<u8> {
    let code = |symbol| CODES.iter().find(|(s, ..)| *s == symbol).unwrap();
    let mut bits: Vec<bool> = text
        .bytes()
        .map(code)
        .flat_map(|(_, code, width)| (0..*width).rev().map(move |bit| code >> bit & 1 == 1))
        .collect();
    bits.resize(bits.len().next_multiple_of(8), true);
    let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

fn string(is_huffman: bool, text: &str) -> Vec<u8> {
    let bytes = if is_huffman { huffman(text) } else { text.as_bytes().to_vec() };
    let mut out = Vec::new();
    encode_integer(&mut out, if is_huffman { 0x80 } else { 0 }, 7, bytes.len());
    [out, bytes].concat()
}

fn status(status: u16) -> Fields {
    Fields { status: Some(status), ..Fields::default() }
}

fn encoded(name: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_header(&mut out, name.as_bytes(), value.as_bytes());
    out
}

#[test]
fn integers_are_written_and_read_as_in_appendix_c_1() {
    for (value, prefix_bits, bytes) in [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a")] {
        let mut out = Vec::new();
        encode_integer(&mut out, 0, prefix_bits, value);
        assert_eq!(out, hex(bytes), "{value}");
        assert_eq!(Reader(&out).integer(prefix_bits), Ok(value));
    }
}

#[test]
fn requests_are_written_as_in_appendix_c_without_a_table() {
    // C.2.2 and C.2.4 as they stand; C.3.1 with its last field as a literal that is not indexed.
    assert_eq!(encoded(":path", "/sample/path"), hex("040c 2f73616d706c652f70617468"));
    assert_eq!(encoded(":method", "GET"), hex("82"));
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/")];
    let request: Vec<u8> = fields.iter().flat_map(|(name, value)| encoded(name, value)).collect();
    assert_eq!(request, hex("8286 84"));
    assert_eq!(
        encoded(":authority", "www.example.com"),
        hex("010f 7777772e6578616d706c652e636f6d")
    );
}

#[test]
fn a_name_without_an_index_is_written_out_in_lower_case() {
    assert_eq!(encoded("X-A", "b"), hex("00 03 782d61 01 62"));
    assert_eq!(encoded("User-Agent", "b"), hex("0f2b 01 62"));
}

#[test]
fn statuses_are_read_as_in_appendix_c() {
    for (block, expected) in [
        // C.5.1 and C.6.1 up to the first index of the dynamic table, C.5.2 and C.6.2 their literals.
        ("4803 333032 5807 70726976617465", 302),
        ("4882 6402 5885 aec3771a4b", 302),
        ("4803 333037", 307),
        ("4883 640eff", 307),
        ("88", 200),
        ("8e", 500),
    ] {
        assert_eq!(decode(&hex(block)), Ok(status(expected)), "{block}");
    }
}

#[test]
fn a_huffman_request_is_stepped_over_as_in_appendix_c_4() {
    let block = hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff");
    assert_eq!(decode(&block), Ok(Fields::default()));
}

#[test]
fn both_names_are_known_in_both_codes() {
    for is_huffman in [false, true] {
        let name = |text| [vec![0], string(is_huffman, text), string(is_huffman, "16")].concat();
        let fields = decode(&name("grpc-status")).unwrap();
        assert_eq!(fields, Fields { grpc_status: Some(16), ..Fields::default() });
        assert_eq!(decode(&name("grpc-stat")), Ok(Fields::default()));
        let status = [vec![0], string(is_huffman, ":status"), string(is_huffman, "201")].concat();
        assert_eq!(decode(&status).unwrap().status, Some(201));
    }
}

#[test]
fn each_number_of_three_digits_at_most_is_read_in_both_codes() {
    for number in 0..1000_u16 {
        let text = number.to_string();
        assert_eq!(Text { is_huffman: false, bytes: text.as_bytes() }.number(), Some(number));
        assert_eq!(huffman_number(&huffman(&text)), Some(number), "{text}");
    }
    assert_eq!(huffman_number(&huffman("007")), Some(7));
}

#[test]
fn what_is_no_number_is_none() {
    for text in ["", "1000", "2x0", "x", "-1", "20x"] {
        assert_eq!(Text { is_huffman: false, bytes: text.as_bytes() }.number(), None, "{text}");
        assert_eq!(huffman_number(&huffman(text)), None, "{text}");
    }
    // "0" and "00" with a last byte of padding too many, and padding of zeros (section 5.2).
    for bytes in ["07ff", "003fff", "18", "ff", "ffffff"] {
        assert_eq!(huffman_number(&hex(bytes)), None, "{bytes}");
    }
}

#[test]
fn a_block_that_needs_a_dynamic_table_is_refused() {
    for block in ["be", "ff00", "80", "7e01 61", "88 20", "3f e1 1f", "21", "0f 2f 01 61"] {
        assert_eq!(decode(&hex(block)), Err(Undecodable), "{block}");
    }
    assert_eq!(decode(&hex("20 88")), Ok(status(200)));
    assert_eq!(decode(&hex("20 20 88")), Ok(status(200)));
}

#[test]
fn a_block_that_is_cut_short_is_refused() {
    let whole = hex("20 48 82 6402 00 8821ea496a4ac9f559 03 616263");
    assert_eq!(decode(&whole), Ok(status(302)));
    for cut in [3, 4, 5, 7, 10, whole.len() - 1] {
        assert_eq!(
            decode(&whole[..cut]),
            if cut == 5 { Ok(status(302)) } else { Err(Undecodable) }
        );
    }
    assert_eq!(decode(&hex("00 7fffffffff7f")), Err(Undecodable));
}

#[test]
fn a_status_that_is_none_or_comes_twice_is_malformed() {
    for block in ["88 88", "48 02 3939", "48 03 303939", "48 00", "48 04 32303030"] {
        assert!(decode(&hex(block)).unwrap().malformed, "{block}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(code in 100_u16..1000, name in "[a-z-]{1,40}", value in "[ -~]{0,300}") {
        prop_assume!(name != "grpc-status");
        let block = [
            encoded(&name, &value),
            encoded(":status", &code.to_string()),
            encoded("grpc-status", "5"),
        ];
        let expected = Fields { grpc_status: Some(5), ..status(code) };
        prop_assert_eq!(decode(&block.concat()), Ok(expected));
    }

    #[test]
    fn arbitrary_bytes_never_panic(block in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = decode(&block);
        let _ = huffman_number(&block);
    }
}
