//! What each sidecar costs for a request, and for each time that one crosses it.
//!
//! How often a request crosses a sidecar is counted by the proof of path, which is one for all loads of an arm in a
//! round: over all requests of the round. CPU is that of the load's slices over what was answered in them.

use toll_lab::{Component, Role};

use super::accounts::Owner;
use super::effects;
use super::findings::{SidecarCost, TraversalCosts};
use super::tally::{Stay, Tally};

/// Of the tallies whose proof counted traversals; `None` when none did.
pub fn costs(tallies: &[&Tally<'_>]) -> Option<TraversalCosts> {
    let counted = |t: &&Tally<'_>| !t.stay.traversals.is_empty();
    let tallies: Vec<&Tally<'_>> = tallies.iter().copied().filter(counted).collect();
    let sidecars: Vec<SidecarCost> =
        pods(&tallies).iter().filter_map(|pod| cost(&tallies, pod, |one| one == pod)).collect();
    Some(TraversalCosts { sidecars, total: cost(&tallies, "all", |_| true)? })
}

/// Pods with a sidecar, in the order of the proofs.
fn pods(tallies: &[&Tally<'_>]) -> Vec<String> {
    let mut pods: Vec<String> = Vec::new();
    for way in tallies.iter().flat_map(|tally| &tally.stay.traversals) {
        if !pods.contains(&way.pod) {
            pods.push(way.pod.clone());
        }
    }
    pods
}

fn cost(tallies: &[&Tally<'_>], name: &str, wanted: impl Fn(&str) -> bool) -> Option<SidecarCost> {
    let cpu = |t: &Tally<'_>| {
        effects::cpu_per_request(t, |owner| sidecar_pod(owner).is_some_and(&wanted))
    };
    let crossed = |t: &Tally<'_>| traversals_per_request(t, &wanted);
    let per_traversal = |t: &Tally<'_>| {
        let times = crossed(t).filter(|times| *times > 0.0)?;
        cpu(t).map(|us| us / times)
    };
    Some(SidecarCost {
        pod: name.into(),
        cpu_us: effects::mean_observed(tallies, cpu)?,
        traversals: effects::mean_observed(tallies, crossed)?,
        per_traversal_us: effects::mean_observed(tallies, per_traversal),
    })
}

fn sidecar_pod(owner: &Owner) -> Option<&str> {
    match owner {
        Owner::Component(Component { role: Role::Sidecar, pod }) => Some(pod),
        _ => None,
    }
}

fn traversals_per_request(tally: &Tally<'_>, wanted: impl Fn(&str) -> bool) -> Option<f64> {
    let Stay { traversals, requests, .. } = &*tally.stay;
    let counted: u64 = traversals.iter().filter(|t| wanted(&t.pod)).map(|t| t.counted).sum();
    (*requests > 0).then(|| counted as f64 / *requests as f64)
}
