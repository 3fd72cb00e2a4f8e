//! Turns hey's summary of each variant into tables, side by side. Draws nothing.

use crate::analysis::findings::{HeySummary, LoadFindings, Step};

use super::figures::{Quantity, Scale, figure, rounded, verbatim};
use super::table::{Cell, Group, Piece, Table, bars, figures, words};

/// Width of the longest bar of the histogram.
const BAR: f64 = 28.0;

/// The summary that hey prints of a closed loop, of every variant that has one.
pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let all: Vec<Summary<'_>> =
        load.variants.iter().filter_map(|v| Some((v.variant.as_str(), v.hey.as_ref()?))).collect();
    if all.is_empty() {
        return vec![];
    }
    vec![
        Piece::Heading(format!("As hey sums up all slices that count: {}", load.name)),
        Piece::Table(summary(&all)),
        Piece::Heading(format!("Response time histogram: {}", load.name)),
        Piece::Table(histogram(&all)),
        Piece::Heading(format!("Details: {}", load.name)),
        Piece::Table(details(&all)),
    ]
}

type Summary<'a> = (&'a str, &'a HeySummary);

fn summary(all: &[Summary<'_>]) -> Table {
    let columns = all.iter().map(|(variant, _)| figures(*variant));
    let mut groups = vec![whole(all), latency(all), statuses(all)];
    groups.extend(errors(all));
    Table { columns: std::iter::once(words("")).chain(columns).collect(), groups }
}

/// A row with one cell a variant.
fn row(title: &str, all: &[Summary<'_>], cell: impl Fn(&HeySummary) -> String) -> Vec<Cell> {
    let cells = all.iter().map(|(_, summary)| Cell::from(cell(summary)));
    std::iter::once(title.into()).chain(cells).collect()
}

fn whole(all: &[Summary<'_>]) -> Group {
    let rows = vec![
        row("total, s", all, |h| rounded(h.total_s)),
        row("requests/s", all, |h| rounded(h.requests_per_s)),
        row("bytes a response", all, |h| verbatim(h.bytes_per_request as f64)),
    ];
    Group { title: Some("summary".into()), rows }
}

fn latency(all: &[Summary<'_>]) -> Group {
    let us = |seconds: f64| seconds * 1e6;
    let extremes = all.iter().flat_map(|(_, h)| [us(h.fastest_s), us(h.slowest_s)]);
    let scale = Scale::of(Quantity::Time, extremes);
    let mut rows = vec![
        row("slowest", all, |h| scale.plain(us(h.slowest_s))),
        row("fastest", all, |h| scale.plain(us(h.fastest_s))),
        row("average", all, |h| scale.plain(us(h.average_s))),
    ];
    for (percent, _) in all.first().map_or(&[][..], |(_, h)| &h.percentiles) {
        let at = |h: &HeySummary| h.percentiles.iter().find(|(p, _)| p == percent).map(|(_, s)| *s);
        rows.push(row(&format!("{percent}\u{a0}% in"), all, |h| {
            at(h).map_or_else(String::new, |seconds| scale.plain(us(seconds)))
        }));
    }
    Group { title: Some(format!("latency, {}", scale.unit())), rows }
}

fn statuses(all: &[Summary<'_>]) -> Group {
    let mut codes: Vec<u16> = all.iter().flat_map(|(_, h)| &h.statuses).map(|(c, _)| *c).collect();
    codes.sort_unstable();
    codes.dedup();
    let count = |h: &HeySummary, code| h.statuses.iter().find(|(c, _)| *c == code).map(|(_, n)| *n);
    let rows = codes
        .into_iter()
        .map(|code| row(&code.to_string(), all, |h| verbatim(count(h, code).unwrap_or(0) as f64)));
    Group { title: Some("responses by status code".into()), rows: rows.collect() }
}

fn errors(all: &[Summary<'_>]) -> Option<Group> {
    let kinds = all.iter().flat_map(|(_, h)| &h.errors).map(|(kind, _)| kind.as_str());
    let count = |h: &HeySummary, kind| h.errors.iter().find(|(k, _)| k == kind).map(|(_, n)| *n);
    let rows: Vec<Vec<Cell>> = super::content::in_first_order(kinds)
        .into_iter()
        .map(|kind| row(kind, all, |h| verbatim(count(h, kind).unwrap_or(0) as f64)))
        .collect();
    (!rows.is_empty()).then(|| Group { title: Some("errors".into()), rows })
}

fn histogram(all: &[Summary<'_>]) -> Table {
    let marks = all.iter().flat_map(|(_, h)| &h.histogram).map(|(up_to_s, _)| up_to_s * 1e6);
    let scale = Scale::of(Quantity::Time, marks);
    let group = |(variant, h): &Summary<'_>| {
        let longest = h.histogram.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        let bar = |count: u64| "■".repeat((count as f64 / longest as f64 * BAR).round() as usize);
        let row = |(up_to_s, count): &(f64, u64)| {
            vec![
                scale.plain(up_to_s * 1e6).into(),
                verbatim(*count as f64).into(),
                Cell::from(bar(*count)),
            ]
        };
        Group { title: Some((*variant).into()), rows: h.histogram.iter().map(row).collect() }
    };
    let columns = vec![figures(format!("up to, {}", scale.unit())), figures("responses"), bars()];
    Table { columns, groups: all.iter().map(group).collect() }
}

fn details(all: &[Summary<'_>]) -> Table {
    let time = |seconds: f64| Cell::from(figure(Quantity::Time, seconds * 1e6));
    let row = |s: &Step| {
        vec![Cell::from(&s.name), time(s.average_s), time(s.fastest_s), time(s.slowest_s)]
    };
    let group = |(variant, h): &Summary<'_>| Group {
        title: Some((*variant).into()),
        rows: h.details.iter().map(row).collect(),
    };
    let columns = vec![words(""), figures("average"), figures("fastest"), figures("slowest")];
    Table { columns, groups: all.iter().map(group).collect() }
}
