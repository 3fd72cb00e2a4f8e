//! Random numbers of one event loop: the same in every version and on every machine, because of ChaCha8.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What random numbers are used for; each use has a stream of its own, so that one never shifts another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    /// Which target is next.
    Choice,
    /// What placeholders become.
    Values,
}

/// The stream of one use in one event loop. Stream 0, which a plain seed gives, is left to the schedule.
pub(super) fn stream(seed: u64, of: Use, shard: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(match of {
        Use::Choice => 1 << 62 | shard,
        Use::Values => 1 << 63 | shard,
    });
    rng
}

/// An integer below `bound`, by multiplication instead of division (Lemire 2019, without the rejection: the
/// bias is below bound / 2^64).
pub(super) fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// An integer from `low` to `low + width`, both included.
pub(super) fn within(rng: &mut ChaCha8Rng, low: i64, width: u64) -> i64 {
    match width.checked_add(1) {
        Some(bound) => low.wrapping_add_unsigned(below(rng, bound)),
        None => rng.next_u64().cast_signed(),
    }
}
