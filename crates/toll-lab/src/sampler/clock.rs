//! The clock of samples.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, nanoseconds)
}

pub(super) fn nanoseconds(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}
