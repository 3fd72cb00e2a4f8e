//! Turns k6's end-of-test summary of each variant into tables, side by side. Draws nothing.

use crate::analysis::findings::{K6Summary, K6Trend, LoadFindings};

use super::figures::{Quantity, figure, rounded, share, verbatim};
use super::table::{Cell, Group, Piece, Table, figures, words};

/// The summary that k6 prints at the end of a test, of every variant that has one.
pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let all: Vec<Summary<'_>> =
        load.variants.iter().filter_map(|v| Some((v.variant.as_str(), v.k6.as_ref()?))).collect();
    if all.is_empty() {
        return vec![];
    }
    vec![
        Piece::Heading(format!("As k6 sums up all valid trials: {}", load.name)),
        Piece::Table(trends(&all)),
        Piece::Heading(format!("Counts: {}", load.name)),
        Piece::Table(counts(&all)),
    ]
}

type Summary<'a> = (&'a str, &'a K6Summary);

fn trends(all: &[Summary<'_>]) -> Table {
    let columns = ["avg", "min", "med", "max", "p(90)", "p(95)"].map(figures);
    let group = |(variant, k6): &Summary<'_>| Group {
        title: Some((*variant).into()),
        rows: k6.trends.iter().map(trend).collect(),
    };
    Table {
        columns: std::iter::once(words("")).chain(columns).collect(),
        groups: all.iter().map(group).collect(),
    }
}

fn trend(trend: &K6Trend) -> Vec<Cell> {
    let K6Trend { avg_s, min_s, med_s, max_s, p90_s, p95_s, .. } = trend;
    let times = [avg_s, min_s, med_s, max_s, p90_s, p95_s];
    let cells = times.map(|seconds| Cell::from(figure(Quantity::Time, seconds * 1e6)));
    std::iter::once(Cell::from(&trend.name)).chain(cells).collect()
}

fn counts(all: &[Summary<'_>]) -> Table {
    let row = |title: &str, cell: &dyn Fn(&K6Summary) -> String| -> Vec<Cell> {
        let cells = all.iter().map(|(_, k6)| Cell::from(cell(k6)));
        std::iter::once(title.into()).chain(cells).collect()
    };
    let bytes = |count: u64| figure(Quantity::Bytes, count as f64);
    let per_second = |count: u64, k6: &K6Summary| count as f64 / k6.total_s;
    let rows = vec![
        row("data_received", &|k6| bytes(k6.data_received)),
        row("data_sent", &|k6| bytes(k6.data_sent)),
        row("http_req_failed", &|k6| share(k6.failed as f64 / k6.requests.max(1) as f64)),
        row("http_reqs", &|k6| verbatim(k6.requests as f64)),
        row("http_reqs, 1/s", &|k6| rounded(per_second(k6.requests, k6))),
        row("iterations", &|k6| verbatim(k6.iterations as f64)),
        row("iterations, 1/s", &|k6| rounded(per_second(k6.iterations, k6))),
        row("vus, at the end", &|k6| k6.vus[0].to_string()),
        row("vus, min", &|k6| k6.vus[1].to_string()),
        row("vus, max", &|k6| k6.vus[2].to_string()),
        row("vus_max", &|k6| k6.vus_max.to_string()),
    ];
    let columns = all.iter().map(|(variant, _)| figures(*variant));
    Table::new(std::iter::once(words("")).chain(columns).collect(), rows)
}
