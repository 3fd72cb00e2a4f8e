//! What the owners of memory held over a tally's samples.

use std::rc::Rc;

use super::accounts::memory_of;
use super::owners::{Owner, Snapshot, Use};
use super::tally::Tally;

/// An owner with what it held over time: nanoseconds on the samples' clock, bytes.
pub type Held = (Rc<Owner>, Vec<(u64, f64)>);

/// Anonymous memory by owner.
pub fn memory_series(tally: &Tally<'_>) -> Vec<Held> {
    let mut series: Vec<Held> = Vec::new();
    for snapshot in tally.snapshots() {
        for Use { owner, anonymous, .. } in &snapshot.uses {
            let Some(bytes) = anonymous else { continue };
            let point = (snapshot.at_ns, *bytes as f64);
            match series.iter_mut().find(|(known, _)| known == owner) {
                Some((_, points)) => points.push(point),
                None => series.push((Rc::clone(owner), vec![point])),
            }
        }
    }
    series
}

/// Mean anonymous memory of the measured system, bytes.
pub fn mean_memory(tally: &Tally<'_>) -> Option<f64> {
    mean(tally.snapshots().filter_map(|snapshot| memory_of(snapshot, Owner::is_measured)))
}

/// Mean memory charged to the owners that `wanted` picks, page cache included, bytes.
pub fn mean_charged(tally: &Tally<'_>, wanted: impl Fn(&Owner) -> bool) -> Option<f64> {
    let sum = |snapshot: &Snapshot| -> Option<f64> {
        let picked = snapshot.uses.iter().filter(|of| wanted(&of.owner));
        picked.map(|of| of.current.map(|bytes| bytes as f64)).sum()
    };
    mean(tally.snapshots().filter_map(sum))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Whether the pod is an owner: there, and not one of many that are one.
pub fn has_pod(tally: &Tally<'_>, pod: &str) -> bool {
    let first = tally.snapshots().next();
    first.is_some_and(|snapshot| snapshot.uses.iter().any(|of| of.owner.pods.is(pod)))
}
