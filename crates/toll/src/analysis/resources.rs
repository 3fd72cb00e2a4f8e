//! CPU and memory by group of pods, over exactly the slices: what a platform pays for.
//!
//! The mean of CPU comes from counters at the slices' ends, its lowest and highest reading from counters at least a
//! second apart, or from whole slices where these are shorter; memory is anonymous memory in every sample, since page cache is charged to whoever touched it first.
//! The total is that of one instant. A published study adds up the groups' own minima and maxima, which may belong to
//! different instants: those sums stand beside it under their own name.

use std::collections::BTreeMap;

use super::accounts::{CpuAccount, memory_of};
use super::effects::mean_of;
use super::findings::{Estimate, Owner, ResourceGroup, ResourceRow, ResourceUse, Role, Spread};
use super::tally::{Arms, Tally};

const MIB: f64 = 1024.0 * 1024.0;
/// CPU is not read over less: the clocks of many components are not read at one instant.
const LEAST_INTERVAL_NS: u64 = 1_000_000_000;
/// The groups that the local lab can have.
const GROUPS: [ResourceGroup; 4] = [
    ResourceGroup::Gateway,
    ResourceGroup::Application,
    ResourceGroup::Egress,
    ResourceGroup::NodeProxies,
];

/// One row a group that any variant has, the control plane where there is a mesh, then the sums. `arms` has the
/// baseline first.
pub fn rows(arms: &[Arms<'_>]) -> Vec<ResourceRow> {
    let arms: Vec<&Arms<'_>> = arms.iter().filter(|(_, tallies)| !tallies.is_empty()).collect();
    let row = |group: ResourceGroup| ResourceRow {
        group,
        uses: arms.iter().map(|arm| use_of(arm, |owner| group_of(owner) == Some(group))).collect(),
    };
    let groups: Vec<ResourceRow> = GROUPS.into_iter().map(row).filter(is_there).collect();
    if groups.is_empty() {
        return vec![];
    }
    let total = ResourceRow {
        group: ResourceGroup::Total,
        uses: arms.iter().map(|arm| use_of(arm, Owner::is_measured)).collect(),
    };
    let sums = column_sums(&groups, &total);
    let control = arms.iter().any(|arm| is_meshed(arm)).then(|| row(ResourceGroup::Control));
    groups.into_iter().chain(control).chain([total, sums]).collect()
}

fn group_of(owner: &Owner) -> Option<ResourceGroup> {
    match owner.role {
        Role::Gateway => Some(ResourceGroup::Gateway),
        Role::Application | Role::Sidecar | Role::Database => Some(ResourceGroup::Application),
        Role::EgressGateway | Role::SniProxy => Some(ResourceGroup::Egress),
        Role::NodeProxy | Role::Waypoint => Some(ResourceGroup::NodeProxies),
        Role::ControlPlane
        | Role::Collector
        | Role::LoadGenerator
        | Role::Harness
        | Role::Unattributed => None,
    }
}

fn is_meshed((_, tallies): &Arms<'_>) -> bool {
    let snapshots = tallies.iter().filter_map(|tally| tally.snapshots().next());
    let mut roles = snapshots.flat_map(|snapshot| &snapshot.uses).map(|of| of.owner.role);
    roles.any(|role| matches!(role, Role::Sidecar | Role::NodeProxy | Role::Waypoint))
}

fn is_there(row: &ResourceRow) -> bool {
    row.uses.iter().any(|of| of.cpu_millicores.is_some() || of.memory_mib.is_some())
}

fn use_of((variant, tallies): &Arms<'_>, wanted: impl Fn(&Owner) -> bool) -> ResourceUse {
    let of_all = |levels: &dyn Fn(&Tally<'_>) -> Option<Levels>| {
        spread(&tallies.iter().filter_map(|tally| levels(tally)).collect::<Vec<_>>())
    };
    ResourceUse {
        variant: (*variant).into(),
        cpu_millicores: of_all(&|tally| cpu(tally, &wanted)),
        memory_mib: of_all(&|tally| memory(tally, &wanted)),
    }
}

/// What was read in one tally.
struct Levels {
    round: usize,
    min: f64,
    max: f64,
    mean: f64,
}

impl Levels {
    fn of(round: usize, readings: &[f64], mean: f64) -> Option<Self> {
        let min = readings.iter().copied().reduce(f64::min)?;
        let max = readings.iter().copied().reduce(f64::max)?;
        Some(Self { round, min, max, mean })
    }
}

fn spread(tallies: &[Levels]) -> Option<Spread> {
    let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    tallies.iter().for_each(|levels| rounds.entry(levels.round).or_default().push(levels.mean));
    let means = rounds.values().map(|arms| arms.iter().sum::<f64>() / arms.len() as f64);
    let mean = mean_of(&means.collect::<Vec<_>>())?;
    let min = tallies.iter().map(|levels| levels.min).reduce(f64::min)?;
    let max = tallies.iter().map(|levels| levels.max).reduce(f64::max)?;
    Some(Spread { min, max, mean })
}

fn cpu(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<Levels> {
    tally.sums.cpu.has(&wanted).then_some(())?;
    let readings = tally.slices.iter().flat_map(|slice| {
        let snapshots = &slice.snapshots;
        let instants: Vec<u64> = snapshots.iter().map(|snapshot| snapshot.at_ns).collect();
        let ends = boundaries(&instants, LEAST_INTERVAL_NS);
        let used = |pair: &[usize]| {
            CpuAccount::of(&snapshots[pair[0]], &snapshots[pair[1]]).millicores(&wanted)
        };
        ends.windows(2).filter_map(used).collect::<Vec<_>>()
    });
    let readings: Vec<f64> = readings.collect();
    Levels::of(tally.round, &readings, tally.sums.cpu.millicores(&wanted)?)
}

fn memory(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<Levels> {
    let bytes = tally.snapshots().filter_map(|snapshot| memory_of(snapshot, &wanted));
    let readings: Vec<f64> = bytes.map(|bytes| bytes / MIB).collect();
    let mean = readings.iter().sum::<f64>() / readings.len() as f64;
    Levels::of(tally.round, &readings, mean)
}

/// Places of instants at least so far apart, from the first to the last; what is left at the end is part of the last
/// interval, so a short window is one.
pub fn boundaries(instants_ns: &[u64], apart_ns: u64) -> Vec<usize> {
    let Some(last) = instants_ns.len().checked_sub(1).filter(|last| *last > 0) else {
        return vec![];
    };
    let mut places = vec![0];
    for (at, at_ns) in instants_ns.iter().enumerate() {
        let before_ns = instants_ns[*places.last().expect("it begins with the first")];
        if at_ns.saturating_sub(before_ns) >= apart_ns {
            places.push(at);
        }
    }
    match places.len() {
        1 => places.push(last),
        _ => *places.last_mut().expect("it has two") = last,
    }
    places
}

/// The groups' own minima and maxima; a sum of means is the mean of the sum.
fn column_sums(groups: &[ResourceRow], total: &ResourceRow) -> ResourceRow {
    let sums = |at: usize, of: fn(&ResourceUse) -> Option<Spread>| -> Option<Spread> {
        let mean: Estimate = of(&total.uses[at])?.mean;
        let columns = || groups.iter().filter_map(|row| of(&row.uses[at]));
        let sum = |end: fn(Spread) -> f64| columns().map(end).sum();
        Some(Spread { min: sum(|s| s.min), max: sum(|s| s.max), mean })
    };
    let uses = total.uses.iter().enumerate().map(|(at, of)| ResourceUse {
        variant: of.variant.clone(),
        cpu_millicores: sums(at, |of| of.cpu_millicores),
        memory_mib: sums(at, |of| of.memory_mib),
    });
    ResourceRow { group: ResourceGroup::ColumnSums, uses: uses.collect() }
}
