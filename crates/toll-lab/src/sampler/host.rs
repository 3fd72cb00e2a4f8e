//! Turns `/proc/stat` into the host's busy and stolen time. Format: proc_stat(5).
//!
//! Busy time is what is left of all cores' time without idle, iowait and steal. The fields of busy time itself
//! count whole timer ticks for whatever task a tick interrupts: tasks that sleep and wake between ticks, as
//! those of a lab under light load do, hardly show in them. Idle time is counted exactly by a kernel that
//! stops its tick on idle cores (`CONFIG_NO_HZ_COMMON`, the default).

use std::fs;
use std::io;

use crate::HostSample;

/// Counters of the machine.
///
/// # Errors
/// When `/proc/stat` cannot be read, or has another form.
pub(crate) fn read() -> io::Result<HostSample> {
    let text = fs::read_to_string("/proc/stat")?;
    let sample = parse(&text, nanoseconds_per_tick(), super::clock::monotonic_ns());
    sample.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn nanoseconds_per_tick() -> u64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten();
    1_000_000_000 / ticks.and_then(|t| u64::try_from(t).ok()).unwrap_or(100)
}

/// Fields of the first line: user nice system idle iowait irq softirq steal guest guest_nice.
fn parse(text: &str, tick_ns: u64, since_boot_ns: u64) -> Option<HostSample> {
    let fields: Vec<u64> = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    let field_ns = |i: usize| fields.get(i).map(|ticks| ticks * tick_ns);
    let (idle, iowait, steal_ns) = (field_ns(3)?, field_ns(4)?, field_ns(7)?);
    let runnable = super::format::keyed(text, "procs_running").unwrap_or(0);
    Some(HostSample {
        busy_ns: (cores(text) * since_boot_ns).saturating_sub(idle + iowait + steal_ns),
        steal_ns,
        runnable: u32::try_from(runnable).unwrap_or(u32::MAX),
    })
}

/// Lines `cpu0`, `cpu1`, ...
fn cores(text: &str) -> u64 {
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    text.lines().filter(is_core).count() as u64
}

#[cfg(test)]
mod tests {
    use std::thread::{available_parallelism, sleep};
    use std::time::{Duration, Instant};

    use super::*;

    const STAT: &str = "\
cpu  100 10 50 9000 300 5 15 7 60 0
cpu0 50 5 25 4500 150 2 7 3 30 0
cpu1 50 5 25 4500 150 3 8 4 30 0
ctxt 123
procs_running 3
procs_blocked 0
";

    #[test]
    fn busy_is_what_idle_iowait_and_steal_leave_of_all_cores() {
        assert_eq!(parse(STAT, 10, 50_000).unwrap().busy_ns, 2 * 50_000 - (9000 + 300 + 7) * 10);
    }

    #[test]
    fn stolen_time_and_runnable_tasks_are_told_apart() {
        let host = parse(STAT, 10, 50_000).unwrap();
        assert_eq!((host.steal_ns, host.runnable), (70, 3));
    }

    #[test]
    fn a_file_without_the_machines_line_is_no_idle_machine() {
        assert_eq!(parse("", 10, 50_000), None);
        assert_eq!(parse("cpu  100 10 50\n", 10, 50_000), None);
    }

    #[test]
    fn short_bursts_between_ticks_count_as_busy() {
        let (begin, before) = (Instant::now(), read().unwrap().busy_ns);
        let mut burned = Duration::ZERO;
        while begin.elapsed() < Duration::from_millis(600) {
            let burst = Instant::now();
            while burst.elapsed() < Duration::from_micros(500) {}
            burned += burst.elapsed();
            sleep(Duration::from_millis(1));
        }
        let busy = Duration::from_nanos(read().unwrap().busy_ns.saturating_sub(before));
        let cores = available_parallelism().map_or(1, usize::from) as u32;
        // Other work may add to it, up to all cores; ticks would have missed most of the bursts.
        assert!(busy >= burned * 7 / 10, "burned {burned:?}, counted {busy:?}");
        assert!(busy <= begin.elapsed() * cores * 11 / 10, "counted {busy:?}");
    }
}
