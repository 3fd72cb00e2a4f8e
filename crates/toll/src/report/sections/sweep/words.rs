//! What a sweep's cells, quantities and effects are called. Decides nothing.

use crate::analysis::findings::{Estimate, LoadFindings, Metric};
use crate::report::document::{Cell, Tone};
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::wording::interval;

/// The scale of `metric` over several cells.
pub(super) fn scale_over(loads: &[&LoadFindings], metric: Metric) -> Scale {
    let metrics = loads.iter().flat_map(|load| &load.variants).flat_map(|v| &v.metrics);
    let values = metrics.filter(|(m, _)| *m == metric).map(|(_, mean)| mean.value);
    Scale::of(Quantity::of(metric), values)
}

/// An interval that stands below its figure.
pub(super) fn below(scale: Scale, estimate: Estimate) -> Cell {
    Cell::toned(interval(scale, estimate), Tone::Quiet)
}

/// The value of an estimate and its interval below; the one or other absent where there is none.
pub(super) fn stacked(scale: Scale, estimate: Option<Estimate>) -> [Cell; 2] {
    match estimate {
        Some(estimate) => [scale.plain(estimate.value).into(), below(scale, estimate)],
        None => [Cell::absent(), Cell::default()],
    }
}

/// `at 20 requests/s`.
pub(super) fn at_rate(rate_per_s: f64) -> String {
    format!("at {}\u{a0}requests/s", verbatim(rate_per_s))
}
