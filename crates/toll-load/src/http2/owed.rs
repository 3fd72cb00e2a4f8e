//! Bounds the control frames that a peer makes us owe and does not read: acknowledgements, resets, windows.
//!
//! Sees numbers of bytes only. Requests are not its business: they are as many as there are lanes.

use crate::ErrorKind;

/// More than this cannot wait to be written, bytes; no peer that reads at all comes near.
const MAX_OWED: usize = 1 << 20;

/// Control frames that have been queued since a mark in the queue, which moves to its end when it is reached.
/// So what is counted is all still waiting, and what waits is less than twice the limit.
#[derive(Debug, Default)]
pub(super) struct Owed {
    bytes: usize,
    /// Bytes to be written until the mark is reached.
    until_mark: usize,
}

impl Owed {
    /// Counts bytes that were queued.
    ///
    /// # Errors
    /// When the peer has made us owe more than it has any use for.
    pub fn add(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        self.bytes += bytes;
        if self.bytes > MAX_OWED { Err(ErrorKind::Garbage) } else { Ok(()) }
    }

    /// The socket took so many bytes of the queue, and so many are left in it.
    pub fn wrote(&mut self, taken: usize, left: usize) {
        self.until_mark = self.until_mark.saturating_sub(taken);
        if self.until_mark == 0 {
            *self = Owed { bytes: 0, until_mark: left };
        }
    }
}
