//! The summary that hey prints of a closed loop.

use super::{SideBySide, count};
use crate::analysis::findings::{HeySummary, LoadFindings, Step};
use crate::report::document::{Cell, Group, Piece, Table, bars, figures, heads, row};
use crate::report::figures::{Quantity, Scale, figure, rounded, verbatim};
use crate::report::values::in_first_order;

/// Width of the longest bar of the histogram.
const BAR: f64 = 28.0;

type Summaries<'a> = SideBySide<'a, HeySummary>;

pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let Some(all) = SideBySide::of(load, |v| v.hey.as_ref()) else { return vec![] };
    let groups = vec![whole(&all), latency(&all), statuses(&all), errors(&all)];
    vec![
        Piece::Heading(format!("As hey sums up all slices that count: {}", load.name)),
        Piece::Table(all.table(groups)),
        Piece::Heading(format!("Response time histogram: {}", load.name)),
        Piece::Table(histogram(&all)),
        Piece::Heading(format!("Details: {}", load.name)),
        Piece::Table(all.groups(heads("", ["average", "fastest", "slowest"]), details)),
    ]
}

fn whole(all: &Summaries<'_>) -> Group {
    let rows = vec![
        all.row("total, s", |h| rounded(h.total_s)),
        all.row("requests/s", |h| rounded(h.requests_per_s)),
        all.row("bytes a response", |h| verbatim(h.bytes_per_request as f64)),
    ];
    Group::new("summary", rows)
}

fn latency(all: &Summaries<'_>) -> Group {
    let us = |seconds: f64| seconds * 1e6;
    let extremes = all.summaries().flat_map(|h| [us(h.fastest_s), us(h.slowest_s)]);
    let scale = Scale::of(Quantity::Time, extremes);
    let mut rows = vec![
        all.row("slowest", |h| scale.plain(us(h.slowest_s))),
        all.row("fastest", |h| scale.plain(us(h.fastest_s))),
        all.row("average", |h| scale.plain(us(h.average_s))),
    ];
    for (percent, _) in all.summaries().next().map_or(&[][..], |h| &h.percentiles) {
        let at = |h: &HeySummary| h.percentiles.iter().find(|(p, _)| p == percent).map(|(_, s)| *s);
        rows.push(all.row(&format!("{percent}\u{a0}% in"), |h| {
            at(h).map_or_else(String::new, |seconds| scale.plain(us(seconds)))
        }));
    }
    Group::new(format!("latency, {}", scale.unit()), rows)
}

fn statuses(all: &Summaries<'_>) -> Group {
    let of = |code: u16| {
        all.row(&code.to_string(), |h| verbatim(count(&h.statuses, &code).unwrap_or(0) as f64))
    };
    let codes = all.codes(|h| &h.statuses).into_iter();
    Group::new("responses by status code", codes.map(of).collect())
}

fn errors(all: &Summaries<'_>) -> Group {
    let kinds = all.summaries().flat_map(|h| &h.errors).map(|(kind, _)| kind.as_str());
    let of = |kind: &str| all.row(kind, |h| verbatim(count(&h.errors, kind).unwrap_or(0) as f64));
    Group::new("errors", in_first_order(kinds).into_iter().map(of).collect())
}

fn histogram(all: &Summaries<'_>) -> Table {
    let marks = all.summaries().flat_map(|h| &h.histogram).map(|(up_to_s, _)| up_to_s * 1e6);
    let scale = Scale::of(Quantity::Time, marks);
    let columns = vec![figures(format!("up to, {}", scale.unit())), figures("responses"), bars()];
    all.groups(columns, |h| {
        let longest = h.histogram.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        let bar = |count: u64| "■".repeat((count as f64 / longest as f64 * BAR).round() as usize);
        let of = |(up_to_s, count): &(f64, u64)| {
            row(scale.plain(up_to_s * 1e6), [verbatim(*count as f64), bar(*count)])
        };
        h.histogram.iter().map(of).collect()
    })
}

fn details(of: &HeySummary) -> Vec<Vec<Cell>> {
    let time = |seconds: f64| figure(Quantity::Time, seconds * 1e6);
    let step = |s: &Step| row(&s.name, [s.average_s, s.fastest_s, s.slowest_s].map(time));
    of.details.iter().map(step).collect()
}
