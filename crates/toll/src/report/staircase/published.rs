//! Published changes of the throughput beside the measured ones, each against the case that the study holds it
//! against: a source that prints one percentage may mean several. Draws nothing.

use super::Stairs;
use super::differences::judged;
use super::words::{as_change, percents, signed_interval};
use crate::analysis::findings::{Derived, Estimate, Findings, RecomputedRow, StaircaseDifference};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{signed, verbatim};
use crate::report::published::{Derivation, did_not_run, recomputed};
use crate::report::sweep::listed;
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// What the source says of the throughput, and what follows from the rest; none when the study has nothing of it.
pub(super) fn published(
    all: &[Stairs<'_>],
    findings: &Findings,
    detail: Detail,
) -> Option<Section> {
    let mut pieces = Vec::new();
    for stairs in all {
        let changes = changes(stairs);
        pieces.extend(said(&changes).map(Piece::Text));
        pieces.extend((!changes.is_empty()).then(|| Piece::Table(table(stairs, &changes, detail))));
        // A terminal has no room for the reasons.
        pieces.extend((detail == Detail::Full).then(|| reasons(&changes)).flatten());
    }
    let others = recomputed("What else the source says", &others(all, findings)).into_iter();
    pieces
        .extend(others.filter(|piece| detail == Detail::Full || !matches!(piece, Piece::List(_))));
    if pieces.is_empty() {
        return None;
    }
    let notes = findings.published.iter().map(|note| Cell::toned(note, Tone::Quiet));
    pieces.push(Piece::List(notes.collect()));
    Some(section("published", "Published figures", pieces))
}

/// What the study writes of the throughput over all steps.
fn changes<'a>(stairs: &Stairs<'a>) -> Vec<&'a RecomputedRow> {
    stairs.of.recomputed.iter().filter(|row| row.derived == Derived::ThroughputChange).collect()
}

/// All else, that of a single step or another load by its name.
fn others<'a>(all: &[Stairs<'a>], findings: &'a Findings) -> Vec<Derivation<'a>> {
    let of_stairs = all.iter().flat_map(|stairs| &stairs.of.recomputed);
    let of_stairs = of_stairs.filter(|row| row.derived != Derived::ThroughputChange);
    let of_loads = findings
        .loads
        .iter()
        .flat_map(|load| load.recomputed.iter().map(|row| (load.name.clone(), row)));
    of_stairs.map(|row| (String::new(), row)).chain(of_loads).collect()
}

fn shown(printed: f64) -> String {
    signed(printed, verbatim(printed))
}

/// None when the source prints no figure at all.
fn said(rows: &[&RecomputedRow]) -> Option<String> {
    let printed: Vec<(&str, String)> =
        rows.iter().filter_map(|row| Some((row.variant.as_str(), shown(row.printed?)))).collect();
    let mut each = printed.clone();
    each.dedup();
    let unclear = if each.len() < printed.len() {
        " and does not say against which case, so each is held against all that it may mean"
    } else {
        ""
    };
    let figures: Vec<String> = each.iter().map(|(_, figure)| format!("{figure}\u{a0}%")).collect();
    (!figures.is_empty()).then(|| {
        format!(
            "Of the throughput the source prints {}{unclear}. Measured over all steps, in %; the verdict is that of the measured change.",
            listed(&figures)
        )
    })
}

/// A group a variant, a row for each case that the study holds it against.
fn table(stairs: &Stairs<'_>, rows: &[&RecomputedRow], detail: Detail) -> Table {
    let level = stairs.of.differences.first().map_or(0.95, |d| d.throughput_ratio.level) * 100.0;
    let columns = vec![
        words(""),
        figures("published"),
        figures("measured"),
        figures(format!("{level:.0}\u{a0}% interval")),
        words("verdict"),
    ];
    let group = |variant: &str| Group {
        title: Some(variant.to_owned()),
        rows: rows
            .iter()
            .filter(|row| row.variant == variant)
            .map(|published| row(stairs, published, detail))
            .collect(),
    };
    let variants = in_first_order(rows.iter().map(|row| row.variant.as_str()));
    Table { columns, groups: variants.into_iter().map(group).collect() }
}

fn row(stairs: &Stairs<'_>, published: &RecomputedRow, detail: Detail) -> Vec<Cell> {
    let against = published.against.as_deref().unwrap_or(&stairs.findings.baseline);
    let is_of_pair =
        |d: &&StaircaseDifference| d.variant == published.variant && d.against == against;
    let judgement = stairs.of.differences.iter().find(is_of_pair);
    let change = judgement.map(|of| as_change(of.throughput_ratio)).or(published.measured);
    let verdict = judgement.map(|of| judged(of, detail));
    let mut cells = vec![format!("against {against}").into(), published_cell(published.printed)];
    cells.extend(measured(change));
    cells.push(verdict.unwrap_or_default());
    cells
}

fn published_cell(printed: Option<f64>) -> Cell {
    printed.map_or_else(|| Cell::toned("no figure", Tone::Quiet), |f| shown(f).into())
}

fn measured(change: Option<Estimate>) -> [Cell; 2] {
    change.map_or_else(
        || [did_not_run(), Cell::default()],
        |change| {
            let interval = signed_interval(percents(), change);
            [percents().signed(change.value).into(), interval.into()]
        },
    )
}

/// What the study says of the published changes, each sentence once.
fn reasons(rows: &[&RecomputedRow]) -> Option<Piece> {
    let reasons = in_first_order(rows.iter().map(|row| row.because.as_str()));
    let entries: Vec<Cell> =
        reasons.into_iter().map(|said| Cell::toned(said, Tone::Quiet)).collect();
    (!entries.is_empty()).then_some(Piece::List(entries))
}
