//! Turns a deployment into what it needs of limits that the system sets, and raises those that it may.
//!
//! Open files: getrlimit(2). Neighbours: the ARP table is one for all network namespaces of the machine, and
//! drops what is beyond `gc_thresh3`, arp(7).

use std::fs;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};

use crate::LabError;
use crate::Role;
use crate::deployment::Deployment;
use crate::host::ledger::Ledger;
use crate::host::networks::End;
use crate::topology::Topology;

/// The greatest number of neighbours that the kernel keeps.
const NEIGHBOURS: &str = "/proc/sys/net/ipv4/neigh/default/gc_thresh3";

/// Descriptors that toll has open whatever it brings up, and some to spare.
const SPARE_FILES: u64 = 256;

/// Counters of a component that stay open: its CPU time and three files of its memory.
const FILES_OF_COMPONENT: u64 = 4;

/// Sockets and descriptors that a node's proxy has for each pod: listeners and the network itself.
const FILES_OF_POD: u64 = 8;

/// Neighbours of whatever else the machine does.
const SPARE_NEIGHBOURS: u64 = 128;

/// Arms that stand side by side at the most: the variants of a study, and its baseline twice. They share the ARP table, and
/// the first of them makes room for all, since each puts back what it found.
const ARMS: u64 = 8;

/// What a deployment needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs {
    /// Files that one process has open at once: toll, or a node's proxy.
    files: u64,
    /// Entries of the machine's ARP table.
    neighbours: u64,
}

impl Needs {
    /// Of a deployment whose pods have networks of their own: `ends`.
    pub(super) fn of(deployment: &Deployment, topology: &Topology, ends: &[End]) -> Self {
        let sidecars =
            deployment.pods().into_iter().filter(|(_, service)| deployment.has_sidecar(service));
        let (pods, components) = (count(ends.len()), count(ends.len() + sidecars.count()));
        let toll = SPARE_FILES + FILES_OF_COMPONENT * components + pods;
        let node_proxy = match deployment.data_plane.ambient() {
            Some(_) => SPARE_FILES + FILES_OF_POD * pods,
            None => 0,
        };
        // Two pods that talk have an entry each. Arms differ by a few pods, and are to need the same.
        let neighbours = SPARE_NEIGHBOURS + ARMS * 2 * pairs(deployment, topology, pods);
        Self { files: toll.max(node_proxy), neighbours: neighbours.next_power_of_two() }
    }

    /// Raises the limits that are lower, as far as the system lets toll.
    ///
    /// # Errors
    /// When the system does not, with what to raise.
    pub(super) fn raise(self, ledger: &mut Ledger) -> Result<(), LabError> {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        if files < self.files {
            return Err(LabError::TooFewOpenFiles { needed: self.files, limit: files });
        }
        match number_in(Path::new(NEIGHBOURS)) {
            Some(limit) if limit < self.neighbours => {
                let needed = self.neighbours;
                ledger
                    .raise(Path::new(NEIGHBOURS), needed)
                    .map_err(|_| LabError::NeighbourTableSmall { needed, limit })
            }
            // A namespace of the caller's own may not show it.
            _ => Ok(()),
        }
    }
}

/// Pairs of pods that talk: the load with each, callers with those they call, and each with a waypoint or collector.
fn pairs(deployment: &Deployment, topology: &Topology, pods: u64) -> u64 {
    let replicas = |service: &str| deployment.service(service).map_or(0, |s| count(s.replicas));
    let calls = deployment.services.iter().flat_map(|service| {
        service.calls.iter().map(move |callee| count(service.replicas) * replicas(callee))
    });
    let collectors = deployment.services.iter().filter(|s| s.program.role() == Role::Collector);
    let hubs = 1 + collectors.count() + usize::from(topology.waypoint.is_some());
    calls.sum::<u64>() + count(hubs) * pods
}

fn count(things: usize) -> u64 {
    u64::try_from(things).unwrap_or(u64::MAX)
}

fn number_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{chain, in_mesh};
    use crate::host::isolation::Isolation;
    use crate::topology;

    /// `client` and `server` with so many pods each.
    fn needs(mut deployment: Deployment, replicas: [usize; 2]) -> Needs {
        for (service, replicas) in deployment.services.iter_mut().zip(replicas) {
            service.replicas = replicas;
        }
        let topology = topology::plan(&deployment, Isolation::Pods, []);
        Needs::of(&deployment, &topology, &topology::ends(&deployment, &topology))
    }

    #[test]
    fn each_caller_knows_each_pod_that_it_calls_and_the_load_knows_all() {
        // Of one arm 128 + 2 * (90 + 91), which fits into the kernel's default of 1024; of several it does not.
        assert_eq!(needs(chain(), [1, 90]).neighbours, 4096);
        assert_eq!(needs(chain(), [1, 1]).neighbours, 256);
        assert_eq!(needs(chain(), [40, 40]).neighbours, 32_768);
    }

    #[test]
    fn sidecars_are_counted_beside_their_services() {
        let (bare, mesh) = (needs(chain(), [1, 90]), needs(in_mesh(chain()), [1, 90]));
        assert_eq!(mesh.files - bare.files, 91 * FILES_OF_COMPONENT);
        assert!(mesh.files > 1024 && bare.files < 1024, "a soft limit that is common");
    }

    #[test]
    fn files_that_may_not_be_opened_are_missed_before_anything_starts() {
        let mut ledger = crate::local::open_ledger().unwrap();
        let needs = Needs { files: u64::MAX - 1, neighbours: 0 };
        let error = needs.raise(&mut ledger).unwrap_err();
        assert!(matches!(error, LabError::TooFewOpenFiles { .. }), "{error}");
        assert!(error.help().unwrap().contains("ulimit -n"));
        ledger.settle().unwrap();
    }
}
