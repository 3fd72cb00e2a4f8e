//! Turns a component's cgroup or process into readings, from the best counter that is there.
//!
//! CPU: cgroup v2 `cpu.stat`, cgroup v1 `cpuacct.usage`, the process clock of clock_getcpuclockid(3).
//! Memory: cgroup v2, cgroup v1, `/proc/PID`. The two are chosen apart, because a machine may have the one
//! without the other. Files stay open, so that a sample costs one `pread` each.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::family::Family;
use super::format;
use crate::host::hierarchy::Hierarchies;
use crate::{MemorySample, Reading};

/// The counters of one component.
#[derive(Debug)]
pub(crate) struct Source {
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug)]
enum Cpu {
    V2 { stat: File },
    V1 { usage: File },
    Clock(ClockId),
    Family(Family),
    Missing(String),
}

#[derive(Debug)]
enum Memory {
    V2 { current: File, stat: File, peak: io::Result<File> },
    V1 { usage: File, stat: File, peak: File },
    Process { statm: File, status: File },
    Family(Family),
    Missing(String),
}

impl Source {
    /// The best counters of a component whose first process is `pid` and whose cgroup directories, if any,
    /// are `groups`.
    pub(crate) fn of(groups: &Hierarchies, pid: Pid) -> Self {
        Self {
            cpu: Cpu::of_group(groups).unwrap_or_else(|| Cpu::of_process(pid)),
            memory: Memory::of_group(groups).unwrap_or_else(|| Memory::of_process(pid)),
        }
    }

    /// The same of a server that starts a process for each connection. Where no cgroup counts memory, pages that
    /// its processes share cannot be told apart from others.
    pub(crate) fn of_family(groups: &Hierarchies, first: Pid) -> Self {
        let family = || Family::of(first);
        Self {
            cpu: Cpu::of_group(groups).unwrap_or_else(|| Cpu::Family(family())),
            memory: Memory::of_group(groups).unwrap_or_else(|| Memory::Family(family())),
        }
    }

    /// The counters of a group whose processes are another's.
    pub(crate) fn of_group(groups: &Hierarchies) -> Self {
        let none = |what: &str| format!("its cgroup does not count {what}");
        Self {
            cpu: Cpu::of_group(groups).unwrap_or_else(|| Cpu::Missing(none("CPU time"))),
            memory: Memory::of_group(groups).unwrap_or_else(|| Memory::Missing(none("memory"))),
        }
    }

    /// No counters, and why.
    pub(crate) fn missing(reason: &str) -> Self {
        Self { cpu: Cpu::Missing(reason.into()), memory: Memory::Missing(reason.into()) }
    }

    /// The source of the CPU reading, for the report.
    pub(crate) fn cpu_name(&self) -> &'static str {
        match self.cpu {
            Cpu::V2 { .. } => "cgroup v2 cpu.stat usage_usec",
            Cpu::V1 { .. } => "cgroup v1 cpuacct.usage",
            Cpu::Clock(_) => "process clock (clock_getcpuclockid)",
            Cpu::Family(_) => "process clocks of a server and its children",
            Cpu::Missing(_) => "none",
        }
    }

    /// The source of the memory readings, for the report.
    pub(crate) fn memory_name(&self) -> &'static str {
        match self.memory {
            Memory::V2 { .. } => "cgroup v2 memory.current, memory.stat anon, memory.peak",
            Memory::V1 { .. } => "cgroup v1 memory.usage, memory.stat total_rss, memory.max_usage",
            Memory::Process { .. } => "/proc/PID statm, RssAnon, VmHWM",
            Memory::Family(_) => "/proc/PID RssAnon of a server and its children",
            Memory::Missing(_) => "none",
        }
    }

    /// What is not counted of a program that starts others; `None` when all of it is.
    pub(crate) fn lacks(&self) -> Option<&'static str> {
        match (self.cpu_is_of_one_process(), matches!(self.memory, Memory::Process { .. })) {
            (true, true) => Some(
                "no cgroups: of a program that starts others, only the first process is counted; of a \
                 database, all that live when a sample is taken",
            ),
            (true, false) => Some(
                "no cgroup counts CPU time: of a program that starts others, only that of the first \
                 process is counted; of a database, that of all that live when a sample is taken",
            ),
            (false, true) => Some(
                "no cgroup counts memory: of a program that starts others, only that of the first \
                 process is counted; of a database, what its processes do not share",
            ),
            (false, false) => None,
        }
    }

    /// Whether the CPU reading begins at zero with each process.
    pub(super) fn cpu_is_of_one_process(&self) -> bool {
        matches!(self.cpu, Cpu::Clock(_) | Cpu::Family(_))
    }

    /// CPU time so far, nanoseconds.
    pub(crate) fn cpu_ns(&self) -> Reading<u64> {
        match &self.cpu {
            Cpu::V2 { stat } => {
                number(stat, |text| Some(format::keyed(text, "usage_usec")? * 1000), "usage_usec")
            }
            Cpu::V1 { usage } => number(usage, format::single, "cpuacct.usage"),
            Cpu::Clock(clock) => clock_ns(*clock),
            Cpu::Family(family) => reading_of(family.cpu_ns()),
            Cpu::Missing(reason) => Reading::Missing(reason.clone()),
        }
    }

    /// Memory now and at its highest.
    pub(crate) fn memory(&self) -> MemorySample {
        match &self.memory {
            Memory::V2 { current, stat, peak } => MemorySample {
                current: number(current, format::single, "memory.current"),
                anonymous: number(stat, |text| format::keyed(text, "anon"), "anon"),
                peak: match peak {
                    Ok(file) => number(file, format::single, "memory.peak"),
                    Err(e) => Reading::Missing(format!("memory.peak: {e}")),
                },
            },
            Memory::V1 { usage, stat, peak } => MemorySample {
                current: number(usage, format::single, "memory.usage_in_bytes"),
                anonymous: number(stat, |text| format::keyed(text, "total_rss"), "total_rss"),
                peak: number(peak, format::single, "memory.max_usage_in_bytes"),
            },
            Memory::Process { statm, status } => MemorySample {
                current: number(statm, resident_bytes, "statm"),
                anonymous: number(status, |t| format::status_bytes(t, "RssAnon"), "RssAnon"),
                peak: number(status, |t| format::status_bytes(t, "VmHWM"), "VmHWM"),
            },
            Memory::Family(family) => {
                let shared = || Reading::Missing("no cgroup tells pages that are shared".into());
                let anonymous = reading_of(family.anonymous());
                MemorySample { current: shared(), anonymous, peak: shared() }
            }
            Memory::Missing(reason) => MemorySample {
                current: Reading::Missing(reason.clone()),
                anonymous: Reading::Missing(reason.clone()),
                peak: Reading::Missing(reason.clone()),
            },
        }
    }
}

impl Cpu {
    fn of_group(groups: &Hierarchies) -> Option<Self> {
        let v2 = groups.unified.as_deref().and_then(Self::of_v2);
        v2.or_else(|| Self::of_v1(groups.cpuacct.as_deref()?))
    }

    /// `cpu.stat` is there even where the `cpu` controller is not enabled.
    fn of_v2(group: &Path) -> Option<Self> {
        Some(Self::V2 { stat: File::open(group.join("cpu.stat")).ok()? })
    }

    fn of_v1(group: &Path) -> Option<Self> {
        Some(Self::V1 { usage: File::open(group.join("cpuacct.usage")).ok()? })
    }

    fn of_process(pid: Pid) -> Self {
        match clock_getcpuclockid(pid) {
            Ok(clock) => Self::Clock(clock),
            Err(e) => Self::Missing(format!("no clock of process {pid}: {}", e.desc())),
        }
    }
}

impl Memory {
    fn of_group(groups: &Hierarchies) -> Option<Self> {
        let v2 = groups.unified.as_deref().and_then(Self::of_v2);
        v2.or_else(|| Self::of_v1(groups.memory.as_deref()?))
    }

    /// Without the `memory` controller there is no `memory.current`; before Linux 5.19 no `memory.peak`.
    fn of_v2(group: &Path) -> Option<Self> {
        Some(Self::V2 {
            current: File::open(group.join("memory.current")).ok()?,
            stat: File::open(group.join("memory.stat")).ok()?,
            peak: File::open(group.join("memory.peak")),
        })
    }

    fn of_v1(group: &Path) -> Option<Self> {
        Some(Self::V1 {
            usage: File::open(group.join("memory.usage_in_bytes")).ok()?,
            stat: File::open(group.join("memory.stat")).ok()?,
            peak: File::open(group.join("memory.max_usage_in_bytes")).ok()?,
        })
    }

    fn of_process(pid: Pid) -> Self {
        let open = |file: &str| File::open(format!("/proc/{pid}/{file}"));
        match (open("statm"), open("status")) {
            (Ok(statm), Ok(status)) => Self::Process { statm, status },
            (Err(e), _) | (_, Err(e)) => Self::Missing(format!("/proc/{pid}: {e}")),
        }
    }
}

fn reading_of(of_family: io::Result<u64>) -> Reading<u64> {
    match of_family {
        Ok(value) => Reading::Value(value),
        Err(e) => Reading::Missing(format!("processes of the server: {e}")),
    }
}

fn clock_ns(clock: ClockId) -> Reading<u64> {
    match clock.now() {
        Ok(time) => Reading::Value(super::clock::nanoseconds(time)),
        Err(e) => Reading::Missing(format!("process clock: {}", e.desc())),
    }
}

fn resident_bytes(statm: &str) -> Option<u64> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|size| size.try_into().ok());
    Some(format::resident_pages(statm)? * page.unwrap_or(4096))
}

/// Reads `file` anew from its start and finds the number in it.
fn number(file: &File, find: impl FnOnce(&str) -> Option<u64>, what: &str) -> Reading<u64> {
    match whole(file) {
        Ok(text) => match find(&text) {
            Some(value) => Reading::Value(value),
            None => Reading::Missing(format!("{what} is not in its file")),
        },
        Err(e) => Reading::Missing(format!("{what}: {e}")),
    }
}

/// The files read here are below 4 KiB: `memory.stat` is the longest.
fn whole(file: &File) -> io::Result<String> {
    let mut text = [0; 8192];
    let length = file.read_at(&mut text, 0)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

#[cfg(test)]
mod tests;
