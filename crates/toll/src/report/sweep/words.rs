//! What a sweep's cells, quantities and effects are called. Decides nothing.

use super::Sweep;
use crate::analysis::findings::{
    Cell as SweptCell, Effect, Estimate, LoadFindings, Metric, Verdict,
};
use crate::report::figures::{Quantity, Scale, ratio, verbatim};
use crate::report::table::{Cell, Tone};
use crate::report::wording::{interval, tone};

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

/// Memory of a sweep is told in MiB throughout, as the fits and the groups of pods are.
pub(super) fn quantity_of(metric: Metric) -> Quantity {
    if metric == Metric::Memory { Quantity::BinaryBytes } else { Quantity::of(metric) }
}

/// The scale of `metric` over several cells.
pub(super) fn scale_over(loads: &[&LoadFindings], metric: Metric) -> Scale {
    let metrics = loads.iter().flat_map(|load| &load.variants).flat_map(|v| &v.metrics);
    let values = metrics.filter(|(m, _)| *m == metric).map(|(_, mean)| mean.value);
    Scale::of(quantity_of(metric), values)
}

/// `p50`, `CPU per request`.
pub(super) fn short_title(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "p50",
        Metric::LatencyP99 => "p99",
        Metric::CpuPerRequest => "CPU/request",
        Metric::Memory => "memory",
        other => crate::report::wording::metric_title(other),
    }
}

/// What may be said of an effect, and its interval to stand below.
pub(super) fn told(effect: &Effect, scale: Scale) -> [Cell; 2] {
    let said = match effect.verdict {
        Verdict::Difference => {
            let by = scale.signed(effect.difference.value);
            format!("{by}\u{a0}({})", ratio(effect.ratio.value))
        }
        Verdict::NoDifference { bound } => format!("at most {}", scale.plain(bound)),
        Verdict::CannotTell { .. } => "cannot tell".into(),
    };
    [Cell::toned(said, tone(effect)), below(scale, effect.difference)]
}

/// An interval that stands below its figure.
pub(super) fn below(scale: Scale, estimate: Estimate) -> Cell {
    Cell::toned(interval(scale, estimate), Tone::Quiet)
}

/// The value of an estimate and its interval below; the one or other absent where there is none.
pub(super) fn stacked(scale: Scale, estimate: Option<Estimate>) -> [Cell; 2] {
    match estimate {
        Some(estimate) => [scale.plain(estimate.value).into(), below(scale, estimate)],
        None => [Cell::toned("–", Tone::Quiet), Cell::default()],
    }
}

/// `With 90 nginx pods`; what the largest cells have in common.
pub(super) fn at_largest(sweep: &Sweep<'_>) -> String {
    match sweep.most_pods() {
        Some((service, pods)) => format!("With {}", several(pods, &format!("{service} pod"))),
        None => "Cell by cell".into(),
    }
}

/// What tells the largest cells apart: `at 20 requests/s`.
pub(super) fn rate_title(load: &LoadFindings) -> String {
    let Some(cell) = &load.cell else { return load.name.clone() };
    let nodes = cell.nodes.map(|nodes| format!("on {}", several(nodes, "node")));
    let rate = cell.rate_per_s.map(at_rate);
    let parts: Vec<String> = rate.into_iter().chain(nodes).collect();
    if parts.is_empty() { load.name.clone() } else { parts.join(", ") }
}

/// `at 20 requests/s`.
pub(super) fn at_rate(rate_per_s: f64) -> String {
    format!("at {}\u{a0}requests/s", verbatim(rate_per_s))
}
