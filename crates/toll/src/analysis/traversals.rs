//! What each sidecar costs for a request, and for each time that one crosses it.
//!
//! How often a request crosses a sidecar is counted by the proof of path, which is one for all loads of an arm in a
//! round: over all requests of the round. CPU is that of the load's slices over what was answered in them.

use super::effects;
use super::findings::{Owner, Pods, Role, SidecarCost, TraversalCosts};
use super::tally::{Stay, Tally};

/// Of the tallies whose proof counted traversals; `None` when none did.
pub fn costs(tallies: &[&Tally<'_>]) -> Option<TraversalCosts> {
    let counted = |t: &&Tally<'_>| !t.stay.traversals.is_empty();
    let tallies: Vec<&Tally<'_>> = tallies.iter().copied().filter(counted).collect();
    let of = |pods: &Pods| cost(&tallies, Some(pods), |one| one == pods);
    let sidecars: Vec<SidecarCost> = with_sidecars(&tallies).into_iter().filter_map(of).collect();
    Some(TraversalCosts { sidecars, total: cost(&tallies, None, |_| true)? })
}

/// Pods with a sidecar, in the order of the proofs.
fn with_sidecars<'a>(tallies: &[&'a Tally<'_>]) -> Vec<&'a Pods> {
    let mut all: Vec<&Pods> = Vec::new();
    for (pods, _) in tallies.iter().flat_map(|tally| &tally.stay.traversals) {
        if !all.contains(&pods) {
            all.push(pods);
        }
    }
    all
}

fn cost(
    tallies: &[&Tally<'_>],
    pods: Option<&Pods>,
    wanted: impl Fn(&Pods) -> bool,
) -> Option<SidecarCost> {
    let is_of_it = |owner: &Owner| owner.role == Role::Sidecar && wanted(&owner.pods);
    let cpu = |t: &Tally<'_>| effects::cpu_per_request(t, is_of_it);
    let crossed = |t: &Tally<'_>| traversals_per_request(t, &wanted);
    let per_traversal = |t: &Tally<'_>| {
        let times = crossed(t).filter(|times| *times > 0.0)?;
        cpu(t).map(|us| us / times)
    };
    Some(SidecarCost {
        pods: pods.cloned(),
        cpu_us: effects::mean_observed(tallies, cpu)?,
        traversals: effects::mean_observed(tallies, crossed)?,
        per_traversal_us: effects::mean_observed(tallies, per_traversal),
    })
}

fn traversals_per_request(tally: &Tally<'_>, wanted: impl Fn(&Pods) -> bool) -> Option<f64> {
    let Stay { traversals, requests, .. } = &*tally.stay;
    let picked = traversals.iter().filter(|(pods, _)| wanted(pods));
    let counted: u64 = picked.map(|(_, counted)| counted).sum();
    (*requests > 0).then(|| counted as f64 / *requests as f64)
}
