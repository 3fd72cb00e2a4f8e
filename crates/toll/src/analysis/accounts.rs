//! Who used the CPU and the memory in a slice, and in several together.
//!
//! CPU comes from cumulative counters at a slice's ends (docs/method.md rule 5); what the host used beyond the
//! sum of the components is *unattributed* (kernel threads, softirq outside of any component, arms that stand by).

use std::collections::HashMap;
use std::rc::Rc;

use toll_lab::{Component, ComponentSample, Reading, Sample};

use super::owners::{Owner, Snapshot, Use, value};

/// Nanoseconds by owner; `None` for one whose counter could not be read.
pub type ByOwner = Vec<(Rc<Owner>, Option<f64>)>;

/// CPU time by owner in one window or several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuAccount {
    /// Length of the windows together, nanoseconds.
    pub window_ns: u64,
    /// In the order of the deployment, *unattributed* last.
    pub by_owner: ByOwner,
}

impl CpuAccount {
    /// Of the window between two samples.
    pub fn of(begin: &Snapshot, end: &Snapshot) -> Self {
        let mut by_owner: ByOwner = end.uses.iter().map(|now| used(begin, now)).collect();
        let owned: Option<f64> = by_owner.iter().map(|(_, ns)| *ns).sum();
        let busy = end.busy_ns.saturating_sub(begin.busy_ns) as f64;
        by_owner.push((Rc::new(Owner::unattributed()), owned.map(|owned| busy - owned)));
        Self { window_ns: end.at_ns.saturating_sub(begin.at_ns), by_owner }
    }

    /// Adds another window.
    pub fn add(&mut self, other: Self) {
        self.window_ns += other.window_ns;
        for (owner, ns) in other.by_owner {
            match self.by_owner.iter_mut().find(|(known, _)| *known == owner) {
                Some((_, sum)) => *sum = sum.zip(ns).map(|(sum, ns)| sum + ns),
                None => self.by_owner.push((owner, ns)),
            }
        }
    }

    /// CPU time of the owners that `wanted` picks, nanoseconds; `None` when one of them is unknown.
    pub fn total_ns(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        self.by_owner.iter().filter(|(owner, _)| wanted(owner)).map(|(_, ns)| *ns).sum()
    }

    /// Whether it has an owner that `wanted` picks.
    pub fn has(&self, wanted: impl Fn(&Owner) -> bool) -> bool {
        self.by_owner.iter().any(|(owner, _)| wanted(owner))
    }

    /// CPU of the owners that `wanted` picks, thousandths of a core.
    pub fn millicores(&self, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
        let used_ns = self.total_ns(wanted)?;
        (self.window_ns > 0).then(|| used_ns / self.window_ns as f64 * 1e3)
    }
}

fn used(begin: &Snapshot, now: &Use) -> (Rc<Owner>, Option<f64>) {
    // An owner without an earlier reading began at zero.
    let then = begin.uses.iter().find(|then| then.owner == now.owner);
    let then = then.map_or(Some(0), |then| then.cpu_ns);
    let used = now.cpu_ns.zip(then).map(|(now, then)| now.saturating_sub(then) as f64);
    (Rc::clone(&now.owner), used)
}

/// CPU time of the window between two samples that components used, and that none did, nanoseconds; `None` when a
/// counter could not be read.
pub fn owned_and_others(begin: &Sample, end: &Sample) -> Option<[f64; 2]> {
    let before: HashMap<&Component, &Reading<u64>> =
        begin.components.iter().map(|c| (&c.component, &c.cpu_ns)).collect();
    let used = |now: &ComponentSample| {
        let then = before.get(&now.component).map_or(Some(0), |then| value(then))?;
        Some(value(&now.cpu_ns)?.saturating_sub(then) as f64)
    };
    let owned = end.components.iter().map(used).sum::<Option<f64>>()?;
    Some([owned, end.host.busy_ns.saturating_sub(begin.host.busy_ns) as f64 - owned])
}

/// Anonymous memory of the owners that `wanted` picks, bytes; `None` when one is unknown or there is none.
pub fn memory_of(snapshot: &Snapshot, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    let mut picked = snapshot.uses.iter().filter(|of| wanted(&of.owner)).peekable();
    picked.peek()?;
    picked.map(|of| of.anonymous.map(|bytes| bytes as f64)).sum()
}
