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
        Piece::Heading(format!("As k6 sums up all slices that count: {}", load.name)),
        Piece::Table(trends(&all)),
        Piece::Heading(format!("Counts: {}", load.name)),
        Piece::Table(counts(&all)),
    ]
    .into_iter()
    .chain(cut_off(&all).map(Piece::Text))
    .collect()
}

/// What the end of a slice does to iterations of several requests.
fn cut_off(all: &[Summary<'_>]) -> Option<String> {
    all.iter().any(|(_, k6)| k6.interrupted.is_some_and(|count| count > 0)).then(|| {
        "An iteration that the end of a slice cuts off is not among the iterations; the requests of it that had come to an end are among the requests. Interrupted are as many as these requests make up.".into()
    })
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
    let K6Trend { avg_us, min_us, med_us, max_us, p90_us, p95_us, .. } = *trend;
    let times = [avg_us, min_us, med_us, max_us, p90_us, p95_us];
    let cells = times.map(|us| Cell::from(figure(Quantity::Time, us)));
    std::iter::once(name(trend).into()).chain(cells).collect()
}

/// A part of a metric stands below it without its name, as k6 has it: with it no terminal had room.
fn name(trend: &K6Trend) -> &str {
    trend.name.find('{').map_or(&trend.name, |part| &trend.name[part..])
}

/// Rows about users, the last of the counts.
const USERS: usize = 4;

fn counts(all: &[Summary<'_>]) -> Table {
    let row = |title: &str, cell: &dyn Fn(&K6Summary) -> String| -> Vec<Cell> {
        let cells = all.iter().map(|(_, k6)| Cell::from(cell(k6)));
        std::iter::once(title.into()).chain(cells).collect()
    };
    let bytes = |count: f64| figure(Quantity::Bytes, count);
    let mut rows = vec![
        row("data_received", &|k6| bytes(k6.data_received as f64)),
        row("data_received, 1/s", &|k6| bytes(k6.data_received as f64 / k6.total_s)),
        row("data_sent", &|k6| bytes(k6.data_sent as f64)),
        row("data_sent, 1/s", &|k6| bytes(k6.data_sent as f64 / k6.total_s)),
        row("http_req_failed", &|k6| share(k6.failed as f64 / k6.requests as f64)),
        row("http_reqs", &|k6| verbatim(k6.requests as f64)),
        row("http_reqs, 1/s", &|k6| rounded(k6.requests_per_s)),
        row("iterations", &|k6| verbatim(k6.iterations as f64)),
        row("iterations, 1/s", &|k6| rounded(k6.iterations_per_s)),
        row("vus, at the end", &|k6| k6.vus[0].to_string()),
        row("vus, min", &|k6| k6.vus[1].to_string()),
        row("vus, max", &|k6| k6.vus[2].to_string()),
        row("vus_max", &|k6| k6.vus_max.to_string()),
    ];
    if all.iter().any(|(_, k6)| k6.interrupted.is_some()) {
        let place = rows.len() - USERS;
        let interrupted = |k6: &K6Summary| {
            k6.interrupted.map_or_else(|| "–".into(), |count| verbatim(count as f64))
        };
        rows.insert(place, row("iterations, interrupted", &interrupted));
    }
    let columns = all.iter().map(|(variant, _)| figures(*variant));
    Table::new(std::iter::once(words("")).chain(columns).collect(), rows)
}
