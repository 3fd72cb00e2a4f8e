//! Turns published figures into tables beside the measured ones, with what was recomputed. Draws nothing.

use crate::analysis::findings::{
    Derived, Findings, LoadFindings, Publication, RecomputedRow, ReferenceRow,
};

use super::pods::other_rates;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale, ratio, rounded, signed, verbatim, verbatim_column};
use crate::report::values::in_first_order;
use crate::report::wording::{interval_title, load_title, range};

/// Published figures beside the measured ones, ratios first; none when the study has none.
pub(in crate::report) fn published(findings: &Findings) -> Option<Section> {
    let mut pieces = vec![Piece::Text(
        "Machines differ, so compare the ratios to the baseline rather than the values.".into(),
    )];
    for load in findings.loads.iter().filter(|l| has_published(l)) {
        pieces.push(Piece::Heading(load_title(load)));
        pieces.extend(shows_raw_cpu(load).then(|| other_rates(&findings.baseline, load)).flatten());
        pieces.extend(as_published(load));
        let heading = format!("Recomputed from the published figures: {}", load.name);
        let rows: Vec<_> = load.recomputed.iter().map(|row| (String::new(), row)).collect();
        pieces.extend(recomputed(heading, &rows));
    }
    if pieces.len() == 1 {
        return None;
    }
    pieces.extend(notes(findings));
    Some(Section::new("published", "Published beside measured", pieces).saying(answer(findings)))
}

/// Where the figures come from, and what the study says about them.
pub(in crate::report) fn notes(findings: &Findings) -> Option<Piece> {
    let Publication { source, notes } = findings.published.as_ref()?;
    let source = format!("Published in: {source}.");
    let lines = std::iter::once(&source).chain(notes);
    Some(Piece::List(lines.map(|line| Cell::toned(line, Tone::Quiet)).collect()))
}

/// `throughput of istio published ×0.76, here ×0.75`: the first ratio that has both.
fn answer(findings: &Findings) -> String {
    let rows = findings.loads.iter().flat_map(|load| &load.reference);
    let both = |row: &ReferenceRow| {
        let (published, here) = (row.published_ratio?, row.measured_ratio?);
        let title = figure_title(&row.figure);
        Some(format!(
            "{title} of {}: published {}, here {}",
            row.variant,
            ratio(published),
            ratio(here.value)
        ))
    };
    let mut answers = rows.filter_map(both);
    answers.next().unwrap_or_default()
}

fn has_published(load: &LoadFindings) -> bool {
    !(load.reference.is_empty() && load.recomputed.is_empty())
}

fn shows_raw_cpu(load: &LoadFindings) -> bool {
    let raw = [Derived::CpuChange, Derived::CpuLoadPoints];
    let is_raw = |figure: &str| {
        figure.starts_with("cpu_millicores") || figure.starts_with("cpu_load_percent")
    };
    load.recomputed.iter().any(|row| raw.contains(&row.derived))
        || load.reference.iter().any(|row| is_raw(&row.figure))
}

fn as_published(load: &LoadFindings) -> Option<Piece> {
    let shown: Vec<&ReferenceRow> = load.reference.iter().collect();
    (!shown.is_empty()).then(|| Piece::Table(published_table(load, &shown)))
}

fn published_table(load: &LoadFindings, shown: &[&ReferenceRow]) -> Table {
    let titles: Vec<String> = shown.iter().map(|row| figure_title(&row.figure)).collect();
    let groups = in_first_order(titles.iter().map(String::as_str))
        .into_iter()
        .map(|title| published_group(title, shown))
        .collect();
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

fn published_group(title: &str, shown: &[&ReferenceRow]) -> Group {
    let rows: Vec<&ReferenceRow> =
        shown.iter().copied().filter(|row| figure_title(&row.figure) == title).collect();
    let scale = Scale::of(Quantity::Percent, rows.iter().filter_map(|r| r.measured));
    let ratios = |e| ends(e).map(|(l, h)| range(&ratio(l), &ratio(h)));
    let published = verbatim_column(&rows.iter().map(|r| r.published).collect::<Vec<_>>());
    let rows = rows
        .iter()
        .zip(published)
        .map(|(row, published)| {
            vec![
                Cell::from(row_name(row)),
                row.published_ratio.map_or_else(Cell::absent, |r| ratio(r).into()),
                row.measured_ratio.map_or_else(Cell::absent, |r| ratio(r.value).into()),
                row.measured_ratio.and_then(ratios).map_or_else(Cell::absent, Cell::from),
                published.into(),
                row.measured.map_or_else(did_not_run, |m| scale.plain(m).into()),
            ]
        })
        .collect();
    Group { title: Some(title.into()), rows }
}

/// The variant, with the pod before it where the figure is that of one.
pub(in crate::report) fn row_name(row: &ReferenceRow) -> String {
    match row.figure.split_once('.') {
        Some((kind, pod)) if kind != "latency_ms" => {
            format!("{pod}, {}", row.variant)
        }
        _ => row.variant.clone(),
    }
}

/// `latency_ms.p99` as `p99 latency, ms`; a figure of another form stays as it is.
pub(in crate::report) fn figure_title(figure: &str) -> String {
    match figure.split_once('.') {
        None if figure == "throughput_per_s" => "throughput, requests/s".into(),
        None if figure == "cpu_total_millicores" => "CPU of all pods, millicores".into(),
        None if figure == "memory_total_mib" => "memory of all pods, MiB".into(),
        Some(("latency_ms", statistic)) => format!("{statistic} latency, ms"),
        Some(("cpu_millicores", _)) => "CPU by pod, millicores".into(),
        Some(("memory_mib", _)) => "memory by pod, MiB".into(),
        Some(("cpu_load_percent", _)) => "CPU load by pod, % of all cores".into(),
        Some(("heap_mib", _)) => "heap used by pod, MiB".into(),
        _ => figure.into(),
    }
}

/// A row that follows from published figures, and the cell of a sweep that it is of; empty elsewhere.
pub(in crate::report) type Derivation<'a> = (String, &'a RecomputedRow);

/// What follows from the published figures beside what the source printed and what was measured here.
pub(in crate::report) fn recomputed(
    heading: impl Into<String>,
    all: &[Derivation<'_>],
) -> Vec<Piece> {
    if all.is_empty() {
        return vec![];
    }
    let level = all.iter().find_map(|(_, row)| row.measured).map_or(0.95, |e| e.level);
    let columns = vec![
        words(""),
        figures("printed"),
        figures("recomputed"),
        figures("measured here"),
        figures(format!("{:.0}\u{a0}% interval", level * 100.0)),
    ];
    let titles: Vec<String> = all.iter().map(|(place, row)| group_title(place, row)).collect();
    let of_title = |title: &str| Group {
        title: Some(title.into()),
        rows: all
            .iter()
            .zip(&titles)
            .filter(|(_, of)| *of == title)
            .map(|((place, row), _)| recomputed_row(place, row))
            .collect(),
    };
    let groups = in_first_order(titles.iter().map(String::as_str));
    let groups = groups.into_iter().map(of_title).collect();
    let why = |(_, row): &Derivation<'_>| {
        let what = of_pod(row, derived_name(row.derived));
        format!("{}, {what}: {}", arms(row), row.because)
    };
    let whys: Vec<String> = all.iter().map(why).collect();
    // What holds of several cells is said once.
    let whys = in_first_order(whys.iter().map(String::as_str));
    let whys = Piece::List(whys.into_iter().map(|why| Cell::toned(why, Tone::Quiet)).collect());
    vec![Piece::Heading(heading.into()), Piece::Table(Table { columns, groups }), whys]
}

/// The variant; in a sweep with what is derived, since the rows are its cells.
fn group_title(place: &str, row: &RecomputedRow) -> String {
    if place.is_empty() {
        return arms(row);
    }
    format!("{}, {}", arms(row), of_pod(row, &derived_title(row.derived)))
}

/// The variant, with what it is held against where that is not the baseline.
fn arms(row: &RecomputedRow) -> String {
    let against = row.against.as_ref().map(|against| format!(" against {against}"));
    format!("{}{}", row.variant, against.unwrap_or_default())
}

fn recomputed_row(place: &str, row: &RecomputedRow) -> Vec<Cell> {
    let is_change = is_change(row.derived);
    let given =
        |value: f64| if is_change { signed(value, verbatim(value)) } else { verbatim(value) };
    let shown = |value: f64| if is_change { signed(value, rounded(value)) } else { rounded(value) };
    let interval = row.measured.and_then(ends);
    let what = of_pod(row, &derived_title(row.derived));
    vec![
        Cell::from(if place.is_empty() { what.as_str() } else { place }),
        row.printed.map_or_else(Cell::absent, |printed| given(printed).into()),
        row.recomputed.map_or_else(Cell::absent, |recomputed| given(recomputed).into()),
        row.measured.map_or_else(did_not_run, |e| shown(e.value).into()),
        interval.map_or_else(Cell::absent, |(l, h)| range(&shown(l), &shown(h)).into()),
    ]
}

pub(in crate::report) fn did_not_run() -> Cell {
    Cell::toned("did not run", Tone::Quiet)
}

/// `vets, heap` for what is of one pod, `mean latency against sidecar` for what is not against the baseline.
fn of_pod(row: &RecomputedRow, what: &str) -> String {
    let what = match &row.against {
        Some(against) => format!("{what} against {against}"),
        None => what.into(),
    };
    row.pod.as_ref().map_or_else(|| what.clone(), |pod| format!("{pod}, {what}"))
}

fn is_change(derived: Derived) -> bool {
    derived.is_of_two_variants() && !matches!(derived, Derived::CpuRatio | Derived::MemoryRatio)
}

fn derived_title(derived: Derived) -> String {
    let unit = match derived {
        Derived::CpuLoadPoints => "points",
        Derived::HeapDifference => "MiB",
        derived if is_change(derived) => "change in\u{a0}%",
        Derived::CpuPerRequest => "ms",
        Derived::MemoryTotal => "MiB",
        Derived::CpuRatio | Derived::MemoryRatio => "ratio",
        _ => return derived_name(derived).into(),
    };
    format!("{}, {unit}", derived_name(derived))
}

fn derived_name(derived: Derived) -> &'static str {
    match derived {
        Derived::ThroughputChange => "throughput",
        Derived::LatencyMeanChange => "mean latency",
        Derived::LatencyP99Change => "p99 latency",
        Derived::CpuRatio => "CPU of all groups",
        Derived::MemoryRatio => "memory of all groups",
        Derived::LatencyP95Change => "p95 latency",
        Derived::LatencyP90Change => "p90 latency",
        Derived::CpuLoadPoints => "CPU load",
        Derived::HeapDifference => "heap used",
        Derived::PodCpuPerRequestChange => "CPU per request",
        Derived::CpuChange => "raw CPU",
        Derived::MemoryChange | Derived::MemoryTotal => "memory of all pods",
        Derived::CpuPerRequest | Derived::CpuPerRequestChange => "CPU of all pods per request",
        Derived::MeshCpuPerRequestChange => "CPU of the data plane per request",
        Derived::UnderWay => "requests under way",
    }
}
