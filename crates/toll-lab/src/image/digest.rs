//! By what blobs are known.

use ring::digest::{SHA256, digest};

/// The SHA-256, in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
