//! Tells developers how long steps take.

use std::time::Instant;

/// Does `work` and logs how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = work();
    tracing::debug!("{name}: {:.1?}", began.elapsed());
    outcome
}
