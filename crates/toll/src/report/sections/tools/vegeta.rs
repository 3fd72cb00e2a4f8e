//! The summary that vegeta prints of an attack.

use super::{SideBySide, count};
use crate::analysis::findings::{LoadFindings, VegetaSummary};
use crate::report::document::{Group, Piece};
use crate::report::figures::{Quantity, figure, rounded, share, verbatim};

/// As vegeta calls the latencies of its report.
const LATENCIES: [&str; 7] = ["min", "mean", "50", "90", "95", "99", "max"];

type Summaries<'a> = SideBySide<'a, VegetaSummary>;

pub(super) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    let Some(all) = SideBySide::of(load, |v| v.vegeta.as_ref()) else { return vec![] };
    vec![
        Piece::Heading(format!("As vegeta sums up all slices that count: {}", load.name)),
        Piece::Table(all.table(vec![requests(&all), latencies(&all), bytes(&all), outcomes(&all)])),
    ]
}

fn requests(all: &Summaries<'_>) -> Group {
    let rows = vec![
        all.row("total", |v| verbatim(v.requests as f64)),
        all.row("rate, a second", |v| rounded(v.rate_per_s)),
        all.row("throughput, a second", |v| rounded(v.throughput_per_s)),
        all.row("attack, s", |v| rounded(v.attack_s)),
    ];
    Group::new("requests", rows)
}

fn latencies(all: &Summaries<'_>) -> Group {
    let of = |at: usize| move |v: &VegetaSummary| figure(Quantity::Time, v.latencies_us[at]);
    let rows = LATENCIES.iter().enumerate().map(|(at, name)| all.row(name, of(at)));
    Group::new("latencies", rows.collect())
}

fn bytes(all: &Summaries<'_>) -> Group {
    let rows = vec![
        all.row("in, total", |v| verbatim(v.bytes_in.0 as f64)),
        all.row("in, mean", |v| rounded(v.bytes_in.1)),
        all.row("out, total", |v| verbatim(v.bytes_out.0 as f64)),
        all.row("out, mean", |v| rounded(v.bytes_out.1)),
    ];
    Group::new("bytes of bodies", rows)
}

fn outcomes(all: &Summaries<'_>) -> Group {
    let of = |v: &VegetaSummary, code: u16| {
        count(&v.statuses, &code).map_or_else(String::new, |count| verbatim(count as f64))
    };
    let mut rows = vec![all.row("success", |v| share(v.success))];
    let codes = all.codes(|v| &v.statuses).into_iter();
    rows.extend(codes.map(|code| all.row(&format!("status {code}"), |v| of(v, code))));
    if all.summaries().any(|v| !v.errors.is_empty()) {
        rows.push(all.row("errors", |v| v.errors.join("; ")));
    }
    Group::new("outcomes", rows)
}
