//! Turns vegeta's summary of each variant into a table, side by side. Draws nothing.

use crate::analysis::findings::{LoadFindings, VegetaSummary};

use super::figures::{Quantity, figure, rounded, share, verbatim};
use super::table::{Cell, Group, Piece, Table, figures, words};

/// As vegeta calls the latencies of its report.
const LATENCIES: [&str; 7] = ["min", "mean", "50", "90", "95", "99", "max"];

/// The summary that vegeta prints of an attack, of every variant that has one.
pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let all: Vec<Summary<'_>> = load
        .variants
        .iter()
        .filter_map(|v| Some((v.variant.as_str(), v.vegeta.as_ref()?)))
        .collect();
    if all.is_empty() {
        return vec![];
    }
    let columns = all.iter().map(|(variant, _)| figures(*variant));
    let columns = std::iter::once(words("")).chain(columns).collect();
    let mut groups = vec![requests(&all), latencies(&all), bytes(&all), outcomes(&all)];
    groups.retain(|group| !group.rows.is_empty());
    vec![
        Piece::Heading(format!("As vegeta sums up all slices that count: {}", load.name)),
        Piece::Table(Table { columns, groups }),
    ]
}

type Summary<'a> = (&'a str, &'a VegetaSummary);

/// A row with one cell a variant.
fn row(title: &str, all: &[Summary<'_>], cell: impl Fn(&VegetaSummary) -> String) -> Vec<Cell> {
    let cells = all.iter().map(|(_, summary)| Cell::from(cell(summary)));
    std::iter::once(title.into()).chain(cells).collect()
}

fn group(title: &str, rows: Vec<Vec<Cell>>) -> Group {
    Group { title: Some(title.into()), rows }
}

fn requests(all: &[Summary<'_>]) -> Group {
    let rows = vec![
        row("total", all, |v| verbatim(v.requests as f64)),
        row("rate, a second", all, |v| rounded(v.rate_per_s)),
        row("throughput, a second", all, |v| rounded(v.throughput_per_s)),
        row("attack, s", all, |v| rounded(v.attack_s)),
    ];
    group("requests", rows)
}

fn latencies(all: &[Summary<'_>]) -> Group {
    let of = |at: usize| move |v: &VegetaSummary| figure(Quantity::Time, v.latencies_us[at]);
    let rows = LATENCIES.iter().enumerate().map(|(at, name)| row(name, all, of(at)));
    group("latencies", rows.collect())
}

fn bytes(all: &[Summary<'_>]) -> Group {
    let rows = vec![
        row("in, total", all, |v| verbatim(v.bytes_in.0 as f64)),
        row("in, mean", all, |v| rounded(v.bytes_in.1)),
        row("out, total", all, |v| verbatim(v.bytes_out.0 as f64)),
        row("out, mean", all, |v| rounded(v.bytes_out.1)),
    ];
    group("bytes of bodies", rows)
}

fn outcomes(all: &[Summary<'_>]) -> Group {
    let mut codes: Vec<u16> =
        all.iter().flat_map(|(_, v)| &v.statuses).map(|(code, _)| *code).collect();
    codes.sort_unstable();
    codes.dedup();
    let count = |v: &VegetaSummary, code: u16| {
        let found = v.statuses.iter().find(|(of, _)| *of == code);
        found.map_or_else(String::new, |(_, count)| verbatim(*count as f64))
    };
    let mut rows = vec![row("success", all, |v| share(v.success))];
    rows.extend(codes.iter().map(|code| row(&format!("status {code}"), all, |v| count(v, *code))));
    if all.iter().any(|(_, v)| !v.errors.is_empty()) {
        rows.push(row("errors", all, |v| v.errors.join("; ")));
    }
    group("outcomes", rows)
}
