//! Published figures of all cells in one table beside the measured ones, and what follows from them.

use super::Sweep;
use super::words::cell_name;
use crate::analysis::findings::{LoadFindings, RecomputedRow, ReferenceRow};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{Quantity, Scale, ratio, verbatim_column};
use crate::report::published::{did_not_run, figure_title, recomputed, row_name};
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::wording::{ends, range};

/// A row a cell, a group a figure; none when the study has none.
pub(super) fn published(sweep: &Sweep<'_>, detail: Detail) -> Option<Section> {
    let loads = match detail {
        Detail::Brief => sweep.largest(),
        Detail::Full => sweep.cells.clone(),
    };
    let has_some = |l: &&LoadFindings| !(l.reference.is_empty() && l.recomputed.is_empty());
    sweep.cells.iter().copied().find(has_some)?;
    let mut pieces = vec![Piece::Text(
        "Machines differ: what compares is how a figure grows from cell to cell, and ratios between variants.".into(),
    )];
    pieces.extend(as_published(&loads).map(Piece::Table));
    if sweep.cells.len() > loads.len() {
        pieces.push(Piece::Text("Those of the smaller sizes are in the HTML report.".into()));
    }
    pieces.extend(derived(&loads));
    let notes = sweep.findings.published.iter().map(|note| Cell::toned(note, Tone::Quiet));
    pieces.push(Piece::List(notes.collect()));
    Some(section("published", "Published figures", pieces))
}

/// A published figure and the cell that it is of.
type Row<'a> = (&'a LoadFindings, &'a ReferenceRow);

fn as_published(loads: &[&LoadFindings]) -> Option<Table> {
    let rows: Vec<Row<'_>> =
        loads.iter().flat_map(|load| load.reference.iter().map(move |row| (*load, row))).collect();
    let with_ratios = rows.iter().any(|(_, row)| row.published_ratio.is_some());
    let mut columns = vec![words(""), figures("published"), figures("measured")];
    if with_ratios {
        columns.extend(["published ratio", "measured ratio", "interval"].map(figures));
    }
    let titles: Vec<String> = rows.iter().map(|(_, row)| figure_title(&row.figure)).collect();
    let group = |title: &str| {
        let of = |(_, row): &&Row<'_>| figure_title(&row.figure) == title;
        group(title, &rows.iter().filter(of).copied().collect::<Vec<_>>(), with_ratios)
    };
    let groups: Vec<Group> =
        in_first_order(titles.iter().map(String::as_str)).into_iter().map(group).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

fn group(title: &str, rows: &[Row<'_>], with_ratios: bool) -> Group {
    let scale = Scale::of(Quantity::Percent, rows.iter().filter_map(|(_, r)| r.measured));
    let published = verbatim_column(&rows.iter().map(|(_, r)| r.published).collect::<Vec<_>>());
    let absent = || Cell::toned("–", Tone::Quiet);
    let row = |((load, row), published): (&Row<'_>, String)| {
        let mut cells = vec![
            Cell::from(format!("{}, {}", cell_name(load), row_name(row))),
            published.into(),
            row.measured.map_or_else(did_not_run, |m| scale.plain(m).into()),
        ];
        if with_ratios {
            let measured = row.measured_ratio;
            let ends = measured.and_then(ends).map(|(l, h)| range(&ratio(l), &ratio(h)));
            cells.push(row.published_ratio.map_or_else(absent, |r| ratio(r).into()));
            cells.push(measured.map_or_else(absent, |r| ratio(r.value).into()));
            cells.push(ends.map_or_else(absent, Cell::from));
        }
        cells
    };
    Group { title: Some(title.into()), rows: rows.iter().zip(published).map(row).collect() }
}

/// What follows from the published figures, cell by cell; what is said of several cells is said once.
fn derived(loads: &[&LoadFindings]) -> Vec<Piece> {
    let rows: Vec<(String, &RecomputedRow)> = loads
        .iter()
        .flat_map(|load| load.recomputed.iter().map(|row| (cell_name(load), row)))
        .collect();
    recomputed("Recomputed from the published figures", &rows)
}
