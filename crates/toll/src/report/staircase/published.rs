//! Published changes of the throughput beside the measured ones, against the baseline and against the case before:
//! a source that prints one percentage may mean either. Draws nothing.

use super::Stairs;
use super::words::{as_change, percents, signed_interval};
use crate::analysis::findings::{
    Derived, Findings, LoadFindings, RecomputedRow, StaircaseDifference,
};
use crate::report::content::{in_first_order, section};
use crate::report::figures::{signed, verbatim};
use crate::report::published::{did_not_run, recomputed};
use crate::report::sweep::listed;
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// What the source prints; none when the study has nothing of it.
pub(super) fn published(all: &[Stairs<'_>], findings: &Findings) -> Option<Section> {
    let rows = || findings.loads.iter().flat_map(|load: &LoadFindings| &load.recomputed);
    let (printed, others): (Vec<&RecomputedRow>, Vec<&RecomputedRow>) =
        rows().partition(|row| row.derived == Derived::ThroughputChange && row.printed.is_some());
    let changes = printed_changes(&printed);
    let mut pieces = Vec::new();
    for stairs in all.iter().filter(|_| !changes.is_empty()) {
        pieces.push(Piece::Text(said(&changes, &findings.baseline)));
        pieces.push(Piece::Table(table(stairs, &changes)));
    }
    pieces.extend(reasons(&printed));
    let others: Vec<_> = others.into_iter().map(|row| (String::new(), row)).collect();
    pieces.extend(recomputed("Recomputed from the published figures", &others));
    if pieces.is_empty() {
        return None;
    }
    let notes = findings.published.iter().map(|note| Cell::toned(note, Tone::Quiet));
    pieces.push(Piece::List(notes.collect()));
    Some(section("published", "Published figures", pieces))
}

/// A variant and the change that is printed of it, whatever it may be against.
type Printed<'a> = (&'a str, f64);

fn printed_changes<'a>(rows: &[&'a RecomputedRow]) -> Vec<Printed<'a>> {
    let mut changes: Vec<Printed<'a>> = Vec::new();
    for row in rows {
        let change = row.printed.map(|printed| (row.variant.as_str(), printed));
        changes.extend(change.filter(|change| !changes.contains(change)));
    }
    changes
}

fn shown(printed: f64) -> String {
    signed(printed, verbatim(printed))
}

fn said(changes: &[Printed<'_>], baseline: &str) -> String {
    let figures: Vec<String> =
        changes.iter().map(|(_, printed)| format!("{}\u{a0}%", shown(*printed))).collect();
    format!(
        "The source prints {} as changes of the throughput and does not say which: each may be against {baseline} or against the case before. Both were measured here, in %.",
        listed(&figures)
    )
}

/// A row for each variant that the printed one may be against.
fn table(stairs: &Stairs<'_>, changes: &[Printed<'_>]) -> Table {
    let level = stairs.of.differences.first().map_or(0.95, |d| d.throughput_ratio.level) * 100.0;
    let columns = vec![
        words(""),
        figures("published"),
        figures("measured here"),
        figures(format!("{level:.0}\u{a0}% interval")),
    ];
    let group = |(variant, printed): &Printed<'_>| {
        let against: Vec<&StaircaseDifference> =
            stairs.of.differences.iter().filter(|d| d.variant == *variant).collect();
        let mut rows: Vec<Vec<Cell>> = against.iter().map(|d| row(d, *printed)).collect();
        if rows.is_empty() {
            let none = Cell::default();
            rows.push(vec!["against any".into(), shown(*printed).into(), did_not_run(), none]);
        }
        Group { title: Some((*variant).to_owned()), rows }
    };
    Table { columns, groups: changes.iter().map(group).collect() }
}

fn row(of: &StaircaseDifference, printed: f64) -> Vec<Cell> {
    let change = as_change(of.throughput_ratio);
    vec![
        format!("against {}", of.against).into(),
        shown(printed).into(),
        percents().signed(change.value).into(),
        signed_interval(percents(), change).into(),
    ]
}

/// What the study says of the printed changes, each sentence once.
fn reasons(rows: &[&RecomputedRow]) -> Option<Piece> {
    let reasons = in_first_order(rows.iter().map(|row| row.because.as_str()));
    let entries: Vec<Cell> =
        reasons.into_iter().map(|said| Cell::toned(said, Tone::Quiet)).collect();
    (!entries.is_empty()).then_some(Piece::List(entries))
}
