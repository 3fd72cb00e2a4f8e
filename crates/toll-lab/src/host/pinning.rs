//! Decides which cores the load and the system under test run on. Pure.
//!
//! The generator's own queueing must not be taken for the application's. On a small machine a core for the
//! load alone would leave the application too few, so there nothing is pinned, and the report says so.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

/// The cores of each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pinning {
    /// The load has a core of its own, the system under test has the others.
    Apart {
        /// The load's core.
        load: usize,
        /// All other cores.
        system: Vec<usize>,
    },
    /// Both share all cores.
    Shared {
        /// How many there are.
        cores: usize,
    },
}

/// The fewest cores with which the load gets one of its own.
const FEWEST_TO_PIN: usize = 4;

impl Pinning {
    /// Splits the cores that this process may run on.
    pub(crate) fn of_this_process() -> Self {
        let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Self::split(&[]) };
        let is_allowed = |core: &usize| set.is_set(*core).unwrap_or(false);
        Self::split(&(0..CpuSet::count()).filter(is_allowed).collect::<Vec<_>>())
    }

    /// Splits these cores, in ascending order.
    fn split(cores: &[usize]) -> Self {
        match cores.split_last() {
            Some((&load, system)) if cores.len() >= FEWEST_TO_PIN => {
                Self::Apart { load, system: system.to_vec() }
            }
            _ => Self::Shared { cores: cores.len() },
        }
    }

    /// The cores of the load, when it has its own.
    pub(crate) fn load(&self) -> Option<&[usize]> {
        match self {
            Self::Apart { load, .. } => Some(std::slice::from_ref(load)),
            Self::Shared { .. } => None,
        }
    }

    /// The cores of the system under test, when the load has its own.
    pub(crate) fn system(&self) -> Option<&[usize]> {
        match self {
            Self::Apart { system, .. } => Some(system),
            Self::Shared { .. } => None,
        }
    }

    /// One sentence for the report.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Apart { load, system } => {
                format!("load on core {load}, system under test on the other {}", system.len())
            }
            Self::Shared { cores } => {
                format!("none: {cores} cores, the load shares them (pinning needs {FEWEST_TO_PIN})")
            }
        }
    }
}

/// The set of these cores, for the kernel.
pub(crate) fn cpu_set(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core).expect("the core came from a set of the same size");
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_four_cores_the_load_has_the_last_one() {
        let pinning = Pinning::split(&[0, 1, 2, 3]);
        assert_eq!(pinning.load(), Some(&[3][..]));
        assert_eq!(pinning.system(), Some(&[0, 1, 2][..]));
    }

    #[test]
    fn with_fewer_cores_nothing_is_pinned_and_the_report_says_so() {
        let pinning = Pinning::split(&[0, 1, 2]);
        assert_eq!((pinning.load(), pinning.system()), (None, None));
        assert!(pinning.describe().starts_with("none: 3 cores"));
    }

    #[test]
    fn only_cores_that_the_process_may_use_are_given_out() {
        assert_eq!(Pinning::split(&[2, 5, 8, 9, 11]).load(), Some(&[11][..]));
    }
}
