//! Turns published figures into tables beside the measured ones, with what was recomputed. Draws nothing.

use crate::analysis::findings::{Derived, Findings, LoadFindings, RecomputedRow};

use super::content::{Detail, in_first_order, section};
use super::figures::{Quantity, Scale, ratio, rounded, signed, verbatim, verbatim_column};
use super::table::{Cell, Column, Group, Piece, Section, Table, Tone, figures, words};
use super::wording::{ends, interval_title, load_title, range};

/// Published figures beside the measured ones, ratios first; none when the study has none.
pub(super) fn published(findings: &Findings, detail: Detail) -> Option<Section> {
    let mut pieces = vec![Piece::Text(
        "Machines differ, so compare the ratios to the baseline rather than the values.".into(),
    )];
    for load in findings.loads.iter().filter(|l| has_published(l)) {
        pieces.push(Piece::Heading(load_title(load)));
        pieces.push(Piece::Table(published_table(load, detail)));
        pieces.extend(recomputed(load, detail));
    }
    if pieces.len() == 1 {
        return None;
    }
    let notes = findings.published.iter().map(|note| Cell::toned(note, Tone::Quiet)).collect();
    pieces.push(Piece::List(notes));
    Some(section("published", "Published figures", pieces))
}

fn has_published(load: &LoadFindings) -> bool {
    !(load.reference.is_empty() && load.recomputed.is_empty())
}

fn published_table(load: &LoadFindings, detail: Detail) -> Table {
    let mut names = in_first_order(load.reference.iter().map(|r| r.figure.as_str()));
    names.retain(|name| detail == Detail::Full || is_headline(name));
    let groups = names.iter().map(|name| published_group(load, name)).collect();
    let columns = vec![
        words(""),
        figures("published ratio"),
        figures("measured ratio"),
        figures(interval_title(&load.effects)),
        figures("published"),
        figures("measured"),
    ];
    Table { columns, groups }
}

fn published_group(load: &LoadFindings, figure: &str) -> Group {
    let rows: Vec<_> = load.reference.iter().filter(|r| r.figure == figure).collect();
    let scale = Scale::of(Quantity::Percent, rows.iter().filter_map(|r| r.measured));
    let absent = || Cell::toned("–", Tone::Quiet);
    let ratios = |e| ends(e).map(|(l, h)| range(&ratio(l), &ratio(h)));
    let published = verbatim_column(&rows.iter().map(|r| r.published).collect::<Vec<_>>());
    let rows = rows
        .iter()
        .zip(published)
        .map(|(row, published)| {
            vec![
                Cell::from(&row.variant),
                row.published_ratio.map_or_else(absent, |r| ratio(r).into()),
                row.measured_ratio.map_or_else(absent, |r| ratio(r.value).into()),
                row.measured_ratio.and_then(ratios).map_or_else(absent, Cell::from),
                published.into(),
                row.measured.map_or_else(
                    || Cell::toned("did not run", Tone::Quiet),
                    |m| scale.plain(m).into(),
                ),
            ]
        })
        .collect();
    Group { title: Some(figure_title(figure)), rows }
}

/// Whether a brief report has room for it: figures by pod, and the percentiles between, fill pages.
fn is_headline(figure: &str) -> bool {
    const HEADLINES: [&str; 5] = [
        "throughput_per_s",
        "latency_ms.mean",
        "latency_ms.p50",
        "latency_ms.p95",
        "latency_ms.p99",
    ];
    HEADLINES.contains(&figure)
}

/// `latency_ms.p99` as `p99 latency, ms`; a figure of another form stays as it is.
fn figure_title(figure: &str) -> String {
    match figure.split_once('.') {
        None if figure == "throughput_per_s" => "throughput, requests/s".into(),
        Some(("latency_ms", statistic)) => format!("{statistic} latency, ms"),
        Some(("cpu_millicores", pod)) => format!("CPU of {pod}, millicores"),
        Some(("memory_mib", pod)) => format!("memory of {pod}, MiB"),
        _ => figure.into(),
    }
}

/// What follows from the published figures beside what the source printed and what was measured here.
fn recomputed(load: &LoadFindings, detail: Detail) -> Vec<Piece> {
    if load.recomputed.is_empty() {
        return vec![];
    }
    let mut columns = vec![
        words(""),
        figures("printed"),
        figures("recomputed"),
        figures("measured here"),
        figures(interval_title(&load.effects)),
    ];
    columns.extend(whys(detail));
    let of_variant = |variant: &str| Group {
        title: Some(variant.into()),
        rows: load
            .recomputed
            .iter()
            .filter(|row| row.variant == variant)
            .map(|row| recomputed_row(row, detail))
            .collect(),
    };
    let variants = in_first_order(load.recomputed.iter().map(|row| row.variant.as_str()));
    let groups = variants.into_iter().map(of_variant).collect();
    let heading = Piece::Heading(format!("Recomputed from the published figures: {}", load.name));
    let mut pieces = vec![heading, Piece::Table(Table { columns, groups })];
    if detail == Detail::Brief {
        let why = |row: &RecomputedRow| {
            Cell::toned(
                format!("{}, {}: {}", row.variant, derived_name(row.derived), row.because),
                Tone::Quiet,
            )
        };
        pieces.push(Piece::List(load.recomputed.iter().map(why).collect()));
    }
    pieces
}

/// A terminal has no room for sentences in a sixth column.
fn whys(detail: Detail) -> Option<Column> {
    (detail == Detail::Full).then(|| words("why"))
}

fn recomputed_row(row: &RecomputedRow, detail: Detail) -> Vec<Cell> {
    let absent = || Cell::toned("–", Tone::Quiet);
    let is_change = is_change(row.derived);
    let given =
        |value: f64| if is_change { signed(value, verbatim(value)) } else { verbatim(value) };
    let shown = |value: f64| if is_change { signed(value, rounded(value)) } else { rounded(value) };
    let interval = row.measured.and_then(ends);
    let mut cells = vec![
        Cell::from(derived_title(row.derived)),
        row.printed.map_or_else(absent, |printed| given(printed).into()),
        given(row.recomputed).into(),
        row.measured.map_or_else(|| did_not_run(), |e| shown(e.value).into()),
        interval.map_or_else(absent, |(l, h)| range(&shown(l), &shown(h)).into()),
    ];
    cells.extend(whys(detail).map(|_| Cell::from(&row.because)));
    cells
}

fn did_not_run() -> Cell {
    Cell::toned("did not run", Tone::Quiet)
}

fn is_change(derived: Derived) -> bool {
    use Derived::{
        CpuChange, CpuPerRequestChange, LatencyP95Change, MemoryChange, ThroughputChange,
    };
    matches!(
        derived,
        ThroughputChange | LatencyP95Change | CpuChange | MemoryChange | CpuPerRequestChange
    )
}

fn derived_title(derived: Derived) -> String {
    let unit = match derived {
        derived if is_change(derived) => "change in\u{a0}%",
        Derived::CpuPerRequest => "ms",
        Derived::MemoryTotal => "MiB",
        _ => return derived_name(derived).into(),
    };
    format!("{}, {unit}", derived_name(derived))
}

fn derived_name(derived: Derived) -> &'static str {
    match derived {
        Derived::ThroughputChange => "throughput",
        Derived::LatencyP95Change => "p95 latency",
        Derived::CpuChange => "raw CPU",
        Derived::MemoryChange | Derived::MemoryTotal => "memory of all pods",
        Derived::CpuPerRequest | Derived::CpuPerRequestChange => "CPU per request",
        Derived::UnderWay => "requests under way",
    }
}
