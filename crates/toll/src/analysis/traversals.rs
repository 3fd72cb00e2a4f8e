//! What each sidecar costs for a request, and for each time that one crosses it.
//!
//! How often a request crosses a sidecar is counted by the proof of path over all that the load sent; CPU is that
//! of the measured window over what was completed in it.

use toll_lab::{Component, Proof, Role};

use super::accounts::Owner;
use super::effects;
use super::findings::{SidecarCost, TraversalCosts};
use crate::store::TrialRecord;

/// Of the trials whose proof counted traversals; `None` when none did.
pub fn costs(trials: &[&TrialRecord]) -> Option<TraversalCosts> {
    let counted = |t: &&TrialRecord| t.proof.as_ref().is_some_and(|p| !p.traversals.is_empty());
    let trials: Vec<&TrialRecord> = trials.iter().copied().filter(counted).collect();
    let sidecars: Vec<SidecarCost> =
        pods(&trials).iter().filter_map(|pod| cost(&trials, pod, |one| one == pod)).collect();
    Some(TraversalCosts { sidecars, total: cost(&trials, "all", |_| true)? })
}

/// Pods with a sidecar, in the order of the proofs.
fn pods(trials: &[&TrialRecord]) -> Vec<String> {
    let mut pods: Vec<String> = Vec::new();
    for way in trials.iter().filter_map(|t| t.proof.as_ref()).flat_map(|p| &p.traversals) {
        if !pods.contains(&way.pod) {
            pods.push(way.pod.clone());
        }
    }
    pods
}

fn cost(trials: &[&TrialRecord], name: &str, wanted: impl Fn(&str) -> bool) -> Option<SidecarCost> {
    let cpu = |t: &TrialRecord| {
        effects::cpu_per_request(t, |owner| sidecar_pod(owner).is_some_and(&wanted))
    };
    let crossed = |t: &TrialRecord| traversals_per_request(t, &wanted);
    let per_traversal = |t: &TrialRecord| {
        let times = crossed(t).filter(|times| *times > 0.0)?;
        cpu(t).map(|us| us / times)
    };
    Some(SidecarCost {
        pod: name.into(),
        cpu_us: effects::mean_observed(trials, cpu)?,
        traversals: effects::mean_observed(trials, crossed)?,
        per_traversal_us: effects::mean_observed(trials, per_traversal),
    })
}

fn sidecar_pod(owner: &Owner) -> Option<&str> {
    match owner {
        Owner::Component(Component { role: Role::Sidecar, pod }) => Some(pod),
        _ => None,
    }
}

fn traversals_per_request(trial: &TrialRecord, wanted: impl Fn(&str) -> bool) -> Option<f64> {
    let Proof { traversals, .. } = trial.proof.as_ref()?;
    let requests = trial.load.as_ref()?.sent_in_all_phases;
    let counted: u64 = traversals.iter().filter(|t| wanted(&t.pod)).map(|t| t.counted).sum();
    (requests > 0).then(|| counted as f64 / requests as f64)
}
