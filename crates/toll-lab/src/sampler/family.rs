//! Counts a server that starts a process for each connection where no cgroup does: its first process and that
//! one's children.
//!
//! A child counts up to the last sample at which it lived, so pooled connections are counted whole, and a child
//! that comes and goes between two samples is missed: never too much. Children: proc_pid_task_children(5).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use super::clock::nanoseconds;
use super::format;

/// A process and its children.
#[derive(Debug)]
pub(super) struct Family {
    first: Pid,
    spent: RefCell<Spent>,
}

impl Family {
    /// That of `first`, which has one thread.
    pub(super) fn of(first: Pid) -> Self {
        Self { first, spent: RefCell::default() }
    }

    /// CPU time so far, nanoseconds. Never decreases.
    ///
    /// # Errors
    /// When the first process has ended or the kernel does not list children.
    pub(super) fn cpu_ns(&self) -> io::Result<u64> {
        let first = clock_ns(self.first)?;
        let clock = |pid: Pid| Some((pid.as_raw(), clock_ns(pid).ok()?));
        let mut clocks: BTreeMap<i32, u64> =
            self.children()?.into_iter().filter_map(clock).collect();
        clocks.insert(self.first.as_raw(), first);
        Ok(self.spent.borrow_mut().at(clocks))
    }

    /// Memory that only one process has, of all of them, bytes.
    ///
    /// # Errors
    /// As [`Self::cpu_ns`].
    pub(super) fn anonymous(&self) -> io::Result<u64> {
        let of = |pid: &Pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            format::status_bytes(&status, "RssAnon")
        };
        let processes = [vec![self.first], self.children()?].concat();
        Ok(processes.iter().filter_map(of).sum())
    }

    fn children(&self) -> io::Result<Vec<Pid>> {
        let list = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.first))?;
        Ok(list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect())
    }
}

fn clock_ns(pid: Pid) -> io::Result<u64> {
    Ok(nanoseconds(clock_getcpuclockid(pid)?.now()?))
}

/// CPU time of processes that come and go.
#[derive(Debug, Default)]
struct Spent {
    /// Of those that are gone, nanoseconds.
    gone_ns: u64,
    /// Of those that lived at the last reading, by id.
    living_ns: BTreeMap<i32, u64>,
}

impl Spent {
    /// All of it, when the clocks of those that live stand so.
    fn at(&mut self, clocks: BTreeMap<i32, u64>) -> u64 {
        // An id that is used again belongs to a clock that began anew.
        let goes_on =
            |(pid, before): (&i32, &u64)| clocks.get(pid).is_some_and(|now| now >= before);
        let gone = self.living_ns.iter().filter(|known| !goes_on(*known)).map(|(_, ns)| ns);
        self.gone_ns += gone.sum::<u64>();
        self.living_ns = clocks;
        self.gone_ns + self.living_ns.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_ended_child_used_stays_counted_also_when_its_id_is_used_again() {
        let mut spent = Spent::default();
        let mut at = |clocks: &[(i32, u64)]| spent.at(clocks.iter().copied().collect());
        assert_eq!(at(&[(1, 10), (2, 100), (3, 7)]), 117);
        assert_eq!(at(&[(1, 11), (3, 7)]), 118, "2 has ended");
        assert_eq!(at(&[(1, 11), (3, 1)]), 119, "another 3 has begun");
        assert_eq!(at(&[(1, 11), (3, 5)]), 123);
    }

    #[test]
    fn a_child_counts_with_its_parent() {
        let spins = "(while :; do :; done) & while read -r line; do :; done; kill $!";
        let mut parent = std::process::Command::new("sh")
            .args(["-c", spins])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(parent.id().try_into().unwrap());
        let family = Family::of(pid);
        // The parent sleeps: only its child can use this much.
        while family.cpu_ns().unwrap() < 50_000_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(clock_ns(pid).unwrap() < 40_000_000);
        assert!(family.anonymous().unwrap() > 0);
        drop(parent.stdin.take());
        parent.wait().unwrap();
    }
}
