//! The summary that k6 prints at the end of a test.

use super::SideBySide;
use crate::analysis::findings::{K6Summary, K6Trend, LoadFindings};
use crate::report::document::{Cell, Group, Piece, Table, heads, row};
use crate::report::figures::{Quantity, figure, rounded, share, verbatim};

pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let Some(all) = SideBySide::of(load, |v| v.k6.as_ref()) else { return vec![] };
    let columns = heads("", ["avg", "min", "med", "max", "p(90)", "p(95)"]);
    let mut pieces = vec![
        Piece::Heading(format!("As k6 sums up all slices that count: {}", load.name)),
        Piece::Table(all.groups(columns, |k6| k6.trends.iter().map(trend).collect())),
        Piece::Heading(format!("Counts: {}", load.name)),
        Piece::Table(counts(&all)),
    ];
    let is_cut = all.summaries().any(|k6| k6.interrupted.is_some_and(|count| count > 0));
    pieces.extend(is_cut.then(|| Piece::Text("An iteration that the end of a slice cuts off is not among the iterations; the requests of it that had come to an end are among the requests. Interrupted are as many as these requests make up.".into())));
    pieces
}

fn trend(trend: &K6Trend) -> Vec<Cell> {
    let K6Trend { avg_us, min_us, med_us, max_us, p90_us, p95_us, .. } = *trend;
    let times = [avg_us, min_us, med_us, max_us, p90_us, p95_us];
    row(name(trend), times.map(|us| figure(Quantity::Time, us)))
}

/// A part of a metric stands below it without its name, as k6 has it: with it the table would be too wide for a terminal.
fn name(trend: &K6Trend) -> &str {
    trend.name.find('{').map_or(&trend.name, |part| &trend.name[part..])
}

fn counts(all: &SideBySide<'_, K6Summary>) -> Table {
    let bytes = |count: f64| figure(Quantity::Bytes, count);
    let mut rows = vec![
        all.row("data_received", |k6| bytes(k6.data_received as f64)),
        all.row("data_received, 1/s", |k6| bytes(k6.data_received as f64 / k6.total_s)),
        all.row("data_sent", |k6| bytes(k6.data_sent as f64)),
        all.row("data_sent, 1/s", |k6| bytes(k6.data_sent as f64 / k6.total_s)),
        all.row("http_req_failed", |k6| share(k6.failed as f64 / k6.requests as f64)),
        all.row("http_reqs", |k6| verbatim(k6.requests as f64)),
        all.row("http_reqs, 1/s", |k6| rounded(k6.requests_per_s)),
        all.row("iterations", |k6| verbatim(k6.iterations as f64)),
        all.row("iterations, 1/s", |k6| rounded(k6.iterations_per_s)),
    ];
    if all.summaries().any(|k6| k6.interrupted.is_some()) {
        rows.push(all.row("iterations, interrupted", |k6| {
            k6.interrupted.map_or_else(|| "–".into(), |count| verbatim(count as f64))
        }));
    }
    rows.extend([
        all.row("vus, at the end", |k6| k6.vus[0].to_string()),
        all.row("vus, min", |k6| k6.vus[1].to_string()),
        all.row("vus, max", |k6| k6.vus[2].to_string()),
        all.row("vus_max", |k6| k6.vus_max.to_string()),
    ]);
    all.table(vec![Group { title: None, rows }])
}
