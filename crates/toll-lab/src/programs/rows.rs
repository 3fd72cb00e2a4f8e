//! What writes have left in a database, held against what the load sent.

use crate::claim::{Claim, Topic};
use crate::evidence::{DatabaseSnapshot, PathSnapshot};
use crate::proof::bounds::Bounds;
use crate::proof::claims::count_claim;
use crate::proof::window::Window;

pub(super) fn doubled_claim(claim: String, all: Option<u64>, different: Option<u64>) -> Claim {
    let doubled = all.zip(different).map(|(all, different)| all.saturating_sub(different));
    count_claim(claim, Bounds::exactly(0), doubled).about(Topic::Doubled)
}

/// By how much all rows that writes make, and different ones among them, rose.
pub(super) fn written(seen: &Window<'_>, name: &str) -> [Option<u64>; 2] {
    [
        growth(seen, name, |snapshot| snapshot.written.map(|(all, _)| all)),
        growth(seen, name, |snapshot| snapshot.written.map(|(_, different)| different)),
    ]
}

/// By how much a count of all pods of a database rose; none when one was not read or began anew.
pub(super) fn growth(
    seen: &Window<'_>,
    name: &str,
    pick: impl Fn(&DatabaseSnapshot) -> Option<u64>,
) -> Option<u64> {
    let of = |snapshot: &PathSnapshot, pod: &String| snapshot.databases.get(pod).and_then(&pick);
    let growth = |pod: &String| of(seen.after, pod)?.checked_sub(of(seen.before, pod)?);
    seen.pods_of(name).iter().map(growth).sum()
}

/// Proxies send again only what had no effect, so that more rows than writes are a fault.
pub(super) fn range_claim(
    claim: String,
    Bounds { least, most }: Bounds,
    rows: Option<u64>,
) -> Claim {
    Claim {
        topic: Topic::Other,
        claim,
        expected: if least == most { least.to_string() } else { format!("{least} to {most}") },
        seen: rows.map_or("no rows read".to_owned(), |rows| rows.to_string()),
        holds: rows.is_some_and(|rows| (least..=most).contains(&rows)),
    }
}
