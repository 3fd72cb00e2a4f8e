//! Turns a body as it was sent into the bytes that were meant: unpacked from gzip, when it came so.

use std::io::Read as _;

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;

use crate::refusal::{LARGEST_BODY, Refusal};

/// `body` without its `encoding`, the value of a header.
///
/// # Errors
/// [`Refusal::Encoding`], [`Refusal::Malformed`], [`Refusal::TooLarge`].
pub(crate) fn unpacked(body: Bytes, encoding: Option<&str>) -> Result<Bytes, Refusal> {
    match encoding {
        None | Some("" | "identity") => Ok(body),
        Some("gzip") => gunzipped(&body, LARGEST_BODY),
        Some(other) => Err(Refusal::Encoding(other.into())),
    }
}

/// What `body` unpacks into, unless that is more than `most` bytes.
fn gunzipped(body: &[u8], most: usize) -> Result<Bytes, Refusal> {
    let mut unpacked = Vec::with_capacity(body.len().saturating_mul(4).min(most));
    // One byte beyond the limit tells a body of the limit's length from a longer one.
    let mut bounded = MultiGzDecoder::new(body).take(most as u64 + 1);
    bounded.read_to_end(&mut unpacked).map_err(|why| Refusal::Malformed(format!("gzip: {why}")))?;
    if unpacked.len() > most {
        return Err(Refusal::TooLarge);
    }
    Ok(unpacked.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzipped(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn what_was_packed_comes_out_again() {
        assert_eq!(unpacked(gzipped(b"spans"), Some("gzip")).unwrap(), "spans");
    }

    #[test]
    fn a_body_without_encoding_is_left_alone() {
        assert_eq!(unpacked(Bytes::from("spans"), None).unwrap(), "spans");
        assert_eq!(unpacked(Bytes::from("spans"), Some("identity")).unwrap(), "spans");
    }

    #[test]
    fn an_unknown_encoding_is_named() {
        let refusal = unpacked(Bytes::from("spans"), Some("zstd")).unwrap_err();
        assert_eq!(refusal, Refusal::Encoding("zstd".into()));
    }

    #[test]
    fn half_a_gzip_body_is_malformed() {
        let whole = gzipped(b"spans");
        let half = whole.slice(..whole.len() / 2);
        assert!(matches!(unpacked(half, Some("gzip")), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_small_body_cannot_unpack_into_a_huge_one() {
        let bomb = gzipped(&[0; 10_001]);
        assert!(bomb.len() < 1_000);
        assert_eq!(gunzipped(&bomb, 10_000), Err(Refusal::TooLarge));
        assert_eq!(gunzipped(&bomb, 10_001).unwrap().len(), 10_001);
    }
}
