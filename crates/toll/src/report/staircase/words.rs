//! How a staircase says percentages, intervals and verdicts. Decides nothing.

use crate::analysis::findings::{Estimate, Verdict};
use crate::report::figures::{Quantity, Scale};
use crate::report::sweep::several;
use crate::report::table::{Cell, Tone};
use crate::report::wording::{blocks_aside, ends, range};

/// `20 clients`.
pub(in crate::report) fn several_clients(clients: u32) -> String {
    several(clients as usize, "client")
}

/// Percentages with one decimal: those of a column compare, and the published ones have none.
pub(super) fn percents() -> Scale {
    Scale::of(Quantity::Percent, [10.0])
}

/// A ratio as a change in percent, its interval with it.
pub(super) fn as_change(ratio: Estimate) -> Estimate {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Estimate {
        value: percent(ratio.value),
        low: percent(ratio.low),
        high: percent(ratio.high),
        ..ratio
    }
}

/// `−10.4 to −9.6`: both signs, since a change has one.
pub(super) fn signed_interval(scale: Scale, of: Estimate) -> String {
    ends(of).map_or_else(
        || "no interval".into(),
        |(low, high)| range(&scale.signed(low), &scale.signed(high)),
    )
}

/// Whether the interval leaves zero out.
pub(super) fn is_clear(of: Estimate) -> bool {
    ends(of).is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

/// What may be said of the throughput.
pub(super) fn verdict(verdict: Verdict, ratio: f64) -> Cell {
    match verdict {
        Verdict::Difference if ratio < 1.0 => Cell::toned("carries less", Tone::Worse),
        Verdict::Difference => Cell::toned("carries more", Tone::Better),
        Verdict::NoDifference { .. } => Cell::toned("no difference", Tone::Same),
        Verdict::CannotTell { more_blocks, .. } => {
            Cell::toned(format!("cannot tell{}", blocks_aside(more_blocks)), Tone::Unknown)
        }
    }
}
