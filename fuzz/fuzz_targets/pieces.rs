//! Cuts an input as a network would.

/// Cuts bytes into pieces of these lengths, over and over; the last piece takes what is left.
pub fn pieces<'a>(bytes: &'a [u8], lengths: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut left = bytes;
    let mut lengths = lengths.iter().map(|length| usize::from(*length).max(1)).cycle();
    std::iter::from_fn(move || {
        let length = lengths.next().unwrap_or(left.len()).min(left.len());
        let (piece, rest) = left.split_at(length);
        left = rest;
        (length > 0).then_some(piece)
    })
}
