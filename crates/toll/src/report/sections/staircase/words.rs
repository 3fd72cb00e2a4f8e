//! How a staircase says percentages and intervals. Decides nothing.

use crate::analysis::findings::Estimate;
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale};
use crate::report::wording::range;

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
