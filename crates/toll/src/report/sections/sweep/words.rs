//! What a sweep's cells, quantities and effects are called. Decides nothing.

use crate::analysis::findings::{Cell as SweptCell, Estimate, LoadFindings, Metric};
use crate::report::document::{Cell, Tone};
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::wording::interval;

/// `20/s, 90 pods`; what is not swept is left out.
pub(in crate::report) fn cell_name(load: &LoadFindings) -> String {
    let Some(cell) = &load.cell else { return load.name.clone() };
    let rate = cell.rate_per_s.map(|rate| format!("{}/s", verbatim(rate)));
    let clients = cell.connections.map(|clients| several(clients as usize, "client"));
    let nodes = cell.nodes.map(|nodes| several(nodes, "node"));
    let parts: Vec<String> =
        rate.into_iter().chain(clients).chain(size(cell)).chain(nodes).collect();
    if parts.is_empty() { load.name.clone() } else { parts.join(", ") }
}

fn size(cell: &SweptCell) -> Option<String> {
    cell.replicas.as_ref().map(|(_, pods)| several(*pods, "pod"))
}

/// `1 pod`, `90 pods`.
pub(in crate::report) fn several(count: usize, what: &str) -> String {
    format!("{count}\u{a0}{what}{}", if count == 1 { "" } else { "s" })
}

/// `sidecar, ambient and bare`.
pub(in crate::report) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

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
