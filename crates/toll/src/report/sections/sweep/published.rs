//! Published figures of all cells in one table beside the measured ones, and what follows from them.

use crate::analysis::findings::{LoadFindings, RecomputedRow, ReferenceRow};
use crate::report::document::{Cell, Group, Piece, Section, Table, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale, ratio, verbatim_column};
use crate::report::sections::published::{did_not_run, figure_title, notes, recomputed, row_name};
use crate::report::subjects::sweep::{Sweep, cell_name};
use crate::report::values::in_first_order;
use crate::report::wording::range;

/// A row a cell, a group a figure; none when the study has none.
pub(in crate::report) fn published(sweep: &Sweep<'_>) -> Option<Section> {
    let has_some = |l: &LoadFindings| !(l.reference.is_empty() && l.recomputed.is_empty());
    let loads: Vec<&LoadFindings> = sweep.cells.iter().copied().filter(|l| has_some(l)).collect();
    if loads.is_empty() {
        return None;
    }
    let text = "Machines differ: compare how a figure grows from cell to cell, and ratios between variants.";
    let mut pieces = vec![Piece::Text(text.into())];
    pieces.extend(as_published(&loads).map(Piece::Table));
    pieces.extend(derived(&loads));
    pieces.extend(notes(sweep.findings));
    Some(Section::new("published", "Published beside measured", pieces))
}

/// A published figure and the cell that it is of.
type Row<'a> = (&'a LoadFindings, &'a ReferenceRow);

/// A group a figure with a row a cell, so that one sees it grow; of a single cell a row a figure.
fn as_published(loads: &[&LoadFindings]) -> Option<Table> {
    let rows: Vec<Row<'_>> =
        loads.iter().flat_map(|load| load.reference.iter().map(move |row| (*load, row))).collect();
    let names = |(load, row): &Row<'_>| {
        let cell = cell_name(load);
        let figure = figure_title(&row.figure);
        if loads.len() == 1 { (cell, figure) } else { (figure, cell) }
    };
    let with_ratios = rows.iter().any(|(_, row)| row.published_ratio.is_some());
    let mut columns = vec![words(""), figures("published"), figures("measured")];
    if with_ratios {
        columns.extend(["published ratio", "measured ratio", "interval"].map(figures));
    }
    let titles: Vec<String> = rows.iter().map(|row| names(row).0).collect();
    let group = |title: &str| {
        let of: Vec<Row<'_>> = rows.iter().filter(|row| names(row).0 == title).copied().collect();
        let published = verbatim_column(&of.iter().map(|(_, r)| r.published).collect::<Vec<_>>());
        let row = |(row, published): (&Row<'_>, String)| {
            let title = format!("{}, {}", names(row).1, row_name(row.1));
            let measured = row.1.measured.map(|m| scale_of(&rows, &row.1.figure).plain(m));
            let mut cells = vec![title.into(), published.into()];
            cells.push(measured.map_or_else(did_not_run, Cell::from));
            cells.extend(with_ratios.then(|| ratios(row.1)).into_iter().flatten());
            cells
        };
        Group { title: Some(title.into()), rows: of.iter().zip(published).map(row).collect() }
    };
    let groups: Vec<Group> =
        in_first_order(titles.iter().map(String::as_str)).into_iter().map(group).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

/// One scale for a figure, whichever cell it is of.
fn scale_of(rows: &[Row<'_>], figure: &str) -> Scale {
    let alike = rows.iter().filter(|(_, row)| row.figure == figure);
    Scale::of(Quantity::Percent, alike.filter_map(|(_, row)| row.measured))
}

/// Published and measured ratio to the baseline, and the interval of the latter.
fn ratios(row: &ReferenceRow) -> [Cell; 3] {
    let ends = row.measured_ratio.and_then(ends).map(|(l, h)| range(&ratio(l), &ratio(h)));
    [
        row.published_ratio.map_or_else(Cell::absent, |r| ratio(r).into()),
        row.measured_ratio.map_or_else(Cell::absent, |r| ratio(r.value).into()),
        ends.map_or_else(Cell::absent, Cell::from),
    ]
}

/// What follows from the published figures, cell by cell; what is said of several cells is said once.
fn derived(loads: &[&LoadFindings]) -> Vec<Piece> {
    // The rows of a single cell need not name it.
    let place =
        |load: &LoadFindings| if loads.len() == 1 { String::new() } else { cell_name(load) };
    let rows: Vec<(String, &RecomputedRow)> = loads
        .iter()
        .flat_map(|load| load.recomputed.iter().map(|row| (place(load), row)))
        .collect();
    recomputed("Recomputed from the published figures", &rows)
}
