//! How claims are put together: counts held against bounds, and what both ends of a window say made one.

use super::expected::Bounds;
use super::{Sight, Window};
use crate::proof::Claim;

/// A count that must lie within its bounds.
pub(super) fn count_claim(claim: String, bounds: Bounds, seen: Option<u64>) -> Claim {
    let Bounds { least, most } = bounds;
    Claim {
        claim,
        expected: match most - least {
            0 => least.to_string(),
            again => format!("{least}, and at most {again} sent again"),
        },
        seen: seen.map_or("no counters".to_owned(), |n| n.to_string()),
        holds: seen.is_some_and(|n| (least..=most).contains(&n)),
    }
}

/// A count of which there must be enough.
pub(super) fn at_least_claim(claim: String, least: u64, seen: Option<u64>) -> Claim {
    Claim {
        claim,
        expected: format!("at least {least}"),
        seen: seen.map_or("no counters".to_owned(), |n| n.to_string()),
        holds: seen.is_some_and(|n| n >= least),
    }
}

/// One claim for what `judge` says of both ends of the window; it holds if it held at both.
pub(super) fn at_both_ends(seen: &Window<'_>, judge: impl Fn(&Sight) -> Vec<Claim>) -> Vec<Claim> {
    merged(judge(seen.before), judge(seen.after))
}

/// Claims in the same words become one. One that is made at a single end stays as it is.
pub(super) fn merged(before: Vec<Claim>, after: Vec<Claim>) -> Vec<Claim> {
    let mut claims = before;
    for late in after {
        match claims.iter_mut().find(|early| early.claim == late.claim) {
            Some(early) => merge(early, late),
            None => claims.push(late),
        }
    }
    claims
}

fn merge(early: &mut Claim, late: Claim) {
    if early.seen != late.seen {
        early.seen = format!("{} before the load, {} after it", early.seen, late.seen);
    }
    early.holds &= late.holds;
}
