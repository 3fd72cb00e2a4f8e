//! CPU and memory by pod, as `kubectl top pods` counts them: a sidecar's in its pod. A view (docs/method.md rule 5):
//! nothing is computed from it.
//!
//! CPU is that of counters at the ends of slices, where metrics-server averages over a window of its
//! own. Memory is all that is charged to the pod; the working set of `kubectl top` leaves out file pages that
//! were not used lately, which no reading tells apart here.

use std::collections::BTreeMap;

use toll_lab::Deployment;

use super::effects::measured;
use super::findings::{Owner, PodRow, PodUse, Pods, Role};
use super::memory;
use super::tally::{Arms, Tally};
use crate::plan::{Plan, PlannedLoad};

const MIB: f64 = 1024.0 * 1024.0;

/// Pods of the application and its databases by group, then proxies of nodes, their total, then the gateways. `arms`
/// has the baseline first. The pods of a service with many are one row.
pub fn top(plan: &Plan, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<PodRow> {
    let groups = groups(plan, load);
    let row = |host: &Owner| PodRow {
        owner: Some(host.clone()),
        group: groups.get(&host.pods).cloned().unwrap_or_default(),
        uses: uses(arms, |owner| owner.is_measured() && owner.pods == host.pods),
    };
    let (gateways, others): (Vec<_>, Vec<_>) =
        hosts(arms).into_iter().partition(|owner| owner.role == Role::Gateway);
    let mut rows: Vec<PodRow> = others.iter().map(row).collect();
    rows.sort_by_key(|row| order(plan, &row.group));
    if !rows.is_empty() {
        rows.push(total(arms));
    }
    rows.extend(gateways.iter().map(row));
    rows
}

fn total(arms: &[Arms<'_>]) -> PodRow {
    PodRow { owner: None, group: String::new(), uses: uses(arms, is_counted_in_total) }
}

/// Whether the published totals have it: they leave the ingress out.
pub fn is_counted_in_total(owner: &Owner) -> bool {
    owner.is_measured() && owner.role != Role::Gateway
}

/// The group of each pod under this load, by the variants in their order.
fn groups(plan: &Plan, load: &PlannedLoad) -> BTreeMap<Pods, String> {
    let of_size = |deployment: &Deployment| match &load.cell {
        Some(cell) => cell.of(deployment),
        None => deployment.clone(),
    };
    let of_variant = |deployment: Deployment| -> Vec<(Pods, String)> {
        let pods = deployment.pods().into_iter();
        pods.map(|(pod, service)| (Pods::of(&pod, service), service.group.clone())).collect()
    };
    plan.ready().flat_map(|(_, deployment)| of_variant(of_size(deployment))).collect()
}

/// Where a group comes first in the plan; proxies of nodes are in none and come last.
fn order(plan: &Plan, group: &str) -> usize {
    let mut services = plan.ready().flat_map(|(_, deployment)| &deployment.services);
    services.position(|service| service.group == group).unwrap_or(usize::MAX)
}

/// Whose pods used something, in the order of the samples; what runs beside them is counted in them.
fn hosts(arms: &[Arms<'_>]) -> Vec<Owner> {
    let mut hosts: Vec<Owner> = Vec::new();
    let tallies = arms.iter().flat_map(|(_, tallies)| tallies);
    for (owner, _) in tallies.flat_map(|tally| &tally.sums.cpu.by_owner) {
        let is_host = owner.is_measured() && !owner.role.is_guest();
        if is_host && !hosts.iter().any(|known| known.pods == owner.pods) {
            hosts.push(Owner::clone(owner));
        }
    }
    hosts
}

fn uses(arms: &[Arms<'_>], wanted: impl Fn(&Owner) -> bool) -> Vec<PodUse> {
    let Some(((_, baseline), others)) = arms.split_first() else { return vec![] };
    let of = |(variant, tallies): &Arms<'_>, against: Option<&[&Tally<'_>]>| PodUse {
        variant: (*variant).into(),
        cpu_millicores: measured(tallies, against, |t| cpu_millicores(t, &wanted)),
        memory_mib: measured(tallies, against, |t| memory_mib(t, &wanted)),
    };
    std::iter::once(of(&arms[0], None))
        .chain(others.iter().map(|arm| of(arm, Some(baseline))))
        .collect()
}

/// CPU in the slices of the owners that `wanted` picks, thousandths of a core.
pub fn cpu_millicores(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    tally.sums.millicores(wanted)
}

/// Memory charged to the owners that `wanted` picks, the mean over the slices, MiB.
pub fn memory_mib(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    memory::mean_charged(tally, wanted).map(|bytes| bytes / MIB)
}
