//! How a staircase says percentages, intervals and verdicts. Decides nothing.

use crate::analysis::findings::{Estimate, Verdict};
use crate::report::figures::{Quantity, Scale, share};
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

/// CPU of a request in whole microseconds, of next to nothing with decimals; never in milliseconds, so that all tables
/// compare.
pub(super) fn microseconds(values: impl IntoIterator<Item = f64>) -> Scale {
    let largest = values.into_iter().map(f64::abs).filter(|us| us.is_finite()).fold(0.0, f64::max);
    let whole = Scale::whole(Quantity::CpuTime);
    if largest < 100.0 { whole.with_decimals_for([largest]) } else { whole }
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

/// A figure with the mark of its verdict before it: `? ` where nothing can be told, `= ` for no difference larger than
/// the bound.
pub(super) fn marked(verdict: Option<Verdict>, figure: &str) -> Cell {
    match verdict {
        Some(Verdict::Difference) => figure.into(),
        Some(Verdict::NoDifference { .. }) => Cell::toned(format!("=\u{a0}{figure}"), Tone::Quiet),
        Some(Verdict::CannotTell { .. }) | None => {
            Cell::toned(format!("?\u{a0}{figure}"), Tone::Quiet)
        }
    }
}

/// What may be said of the throughput; bound and noise floor are shares of it.
pub(super) fn verdict(verdict: Verdict, ratio: f64) -> Cell {
    match verdict {
        Verdict::Difference if ratio < 1.0 => Cell::toned("carries less", Tone::Worse),
        Verdict::Difference => Cell::toned("carries more", Tone::Better),
        Verdict::NoDifference { bound } => {
            Cell::toned(format!("no difference larger than {}", share(bound)), Tone::Same)
        }
        Verdict::CannotTell { floor, more_blocks } => {
            let (floor, more) = (floor_aside(floor), blocks_aside(more_blocks));
            Cell::toned(format!("cannot tell{floor}{more}"), Tone::Unknown)
        }
    }
}

/// `: the noise floor is 4.0 %`; nothing where there is none.
fn floor_aside(floor: f64) -> String {
    let is_known = floor.is_finite() && floor > 0.0;
    if is_known { format!(": the noise floor is {}", share(floor)) } else { String::new() }
}
