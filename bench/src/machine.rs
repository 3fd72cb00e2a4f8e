//! Reads what this machine is and how busy it is, and pins threads to its cores. Linux only: proc(5).

use std::fs;
use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Where servers and clients run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pins {
    /// The core of servers and of this program.
    pub(crate) server: usize,
    /// The core of the client that is being measured.
    pub(crate) client: usize,
}

impl Pins {
    /// The first two cores that this process may use; none on a machine with a single one.
    ///
    /// # Errors
    /// When the kernel does not say which cores those are.
    pub(crate) fn choose() -> io::Result<Option<Pins>> {
        let allowed = sched_getaffinity(Pid::from_raw(0))?;
        let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true));
        Ok(match (cores.next(), cores.next()) {
            (Some(server), Some(client)) => Some(Pins { server, client }),
            _ => None,
        })
    }
}

/// Moves the calling thread to one core; threads and processes that it starts from now on inherit that.
pub(crate) fn pin_to(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Cores of the machine, whichever of them this process may use.
pub(crate) fn cores() -> usize {
    read("/proc/cpuinfo").lines().filter(|line| line.starts_with("processor")).count().max(1)
}

/// CPU model, cores, kernel.
pub(crate) fn describe() -> String {
    let info = read("/proc/cpuinfo");
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown CPU", |(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{model}, {} cores, Linux {}", cores(), kernel.trim())
}

/// Load average of the last minute.
pub(crate) fn load_average() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// Clock ticks of all cores since boot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTicks {
    all: u64,
    stolen: u64,
}

impl CpuTicks {
    pub(crate) fn now() -> CpuTicks {
        CpuTicks::parse(&read("/proc/stat")).unwrap_or(CpuTicks { all: 0, stolen: 0 })
    }

    /// `user nice system idle iowait irq softirq steal …`; what follows is counted in the first two already.
    fn parse(stat: &str) -> Option<CpuTicks> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).flat_map(str::parse).collect();
        Some(CpuTicks { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// Percent of the time since then that the hypervisor gave to others.
    pub(crate) fn stolen_since(self, then: CpuTicks) -> f64 {
        100.0 * (self.stolen - then.stolen) as f64 / (self.all - then.all).max(1) as f64
    }
}

/// How busy others kept this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Disturbance {
    /// Load averages of the last minute, at the beginning and at the end.
    pub(crate) load_average: [f64; 2],
    /// Percent of the CPU time that was stolen, in the first round and in the last.
    pub(crate) steal: [f64; 2],
}

/// A file of the kernel; empty where it does not exist.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number() {
        let then = CpuTicks::parse("cpu  100 0 50 800 0 0 0 50 7 7\ncpu0 1").unwrap();
        let now = CpuTicks::parse("cpu  200 0 150 1500 0 0 50 100 9 9\ncpu0 1").unwrap();
        assert_eq!(now.stolen_since(then), 5.0);
    }

    #[test]
    fn a_pinned_thread_runs_on_its_core_and_so_does_what_it_starts() {
        let Some(pins) = Pins::choose().unwrap() else { return };
        std::thread::spawn(move || {
            pin_to(pins.client).unwrap();
            let status =
                std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
            let allowed = format!("Cpus_allowed_list:\t{}\n", pins.client);
            assert!(String::from_utf8(status.stdout).unwrap().contains(&allowed));
        })
        .join()
        .unwrap();
    }
}
