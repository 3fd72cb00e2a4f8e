//! Response times at the step that the published study tells of. Draws nothing.

use super::words::several_clients;
use super::{Stairs, in_order};
use crate::analysis::findings::{Estimate, Metric, VariantLoad};
use crate::report::charts;
use crate::report::document::{Cell, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale};
use crate::report::wording::interval;

/// In the order of the published study.
pub(in crate::report) const STATISTICS: [(Metric, &str); 5] = [
    (Metric::LatencyMean, "mean"),
    (Metric::LatencyP50, "p50"),
    (Metric::LatencyP90, "p90"),
    (Metric::LatencyP95, "p95"),
    (Metric::LatencyP99, "p99"),
];

/// One statistic of a variant with its interval.
pub(in crate::report) fn response_of(variant: &VariantLoad, metric: Metric) -> Option<Estimate> {
    let found = variant.metrics.iter().find(|(m, of)| *m == metric && of.value.is_finite());
    found.map(|(_, of)| *of)
}

/// One scale for table and chart: that of the figures, whatever their intervals reach.
pub(in crate::report) fn scale_of_response(variants: &[&VariantLoad]) -> Scale {
    let values = variants.iter().flat_map(|v| STATISTICS.map(|(metric, _)| response_of(v, metric)));
    let values: Vec<f64> = values.flatten().map(|e| e.value).collect();
    let unit = Scale::of(Quantity::Time, [values.iter().copied().fold(0.0, f64::max)]);
    unit.with_decimals_for(values)
}

/// A row a variant; none when no load had a step.
pub(super) fn response(stairs: &Stairs<'_>) -> Option<Section> {
    let (clients, load) = stairs.nearest()?;
    let all = in_order(stairs, load);
    let scale = scale_of_response(&all);
    let text = format!(
        "Response times in {}: means of the rounds' means, percentiles of all rounds together. The rates differ as the throughput does: a closed loop with {} waits for each answer.",
        scale.unit(),
        several_clients(clients)
    );
    let heads = STATISTICS.iter().map(|(_, name)| figures(*name));
    let rows = all.iter().flat_map(|variant| rows(variant, scale)).collect();
    let table = Table::new(std::iter::once(words("")).chain(heads).collect(), rows);
    let title = stairs.title(format!("Response times with {}", several_clients(clients)));
    let pieces = vec![Piece::Text(text), Piece::Table(table)];
    let section = Section::new(stairs.id("response"), title, pieces);
    Some(section.showing(charts::response(stairs).into_iter().collect()))
}

fn rows(variant: &VariantLoad, scale: Scale) -> Vec<Vec<Cell>> {
    let row = |title: &str, shown: &dyn Fn(Option<Estimate>) -> Cell| {
        let cells = STATISTICS.iter().map(|(metric, _)| shown(response_of(variant, *metric)));
        std::iter::once(title.into()).chain(cells).collect::<Vec<Cell>>()
    };
    let value = |e: Option<Estimate>| e.map_or_else(Cell::absent, |e| scale.plain(e.value).into());
    let below = |e: Option<Estimate>| {
        Cell::toned(e.map_or_else(String::new, |e| interval(scale, e)), Tone::Quiet)
    };
    vec![row(&variant.variant, &value), row("", &below)]
}
