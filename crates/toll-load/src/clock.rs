//! Reads the instruments of the engine: the two clocks and a thread's resource usage.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`, nanoseconds. Never steps, comparable between processes of one machine.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has CLOCK_MONOTONIC");
    now.tv_sec() as u64 * SECOND_NS + now.tv_nsec() as u64
}

/// The wall clock, nanoseconds since 1970 (UTC).
pub(crate) fn unix_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("Linux always has CLOCK_REALTIME");
    now.tv_sec() as u64 * SECOND_NS + now.tv_nsec() as u64
}

/// What this thread has used since it began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// User and system CPU time, nanoseconds.
    pub cpu_ns: u64,
    /// Times that the kernel took the CPU away.
    pub involuntary_switches: u64,
}

impl Usage {
    /// The counters at this instant.
    pub fn of_this_thread() -> Usage {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may read its own usage");
        Usage {
            cpu_ns: nanoseconds(usage.user_time()) + nanoseconds(usage.system_time()),
            involuntary_switches: usage.involuntary_context_switches() as u64,
        }
    }

    /// What was used between `earlier` and this reading.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

fn nanoseconds(time: TimeVal) -> u64 {
    time.num_microseconds() as u64 * 1_000
}
