//! Published changes of the throughput beside the measured ones, each against the case that the study holds it
//! against: a source that prints one percentage may mean several. Draws nothing.

use super::words::{as_change, percents, signed_interval};
use crate::analysis::findings::{Derived, Estimate, Findings, RecomputedRow};
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{signed, verbatim};
use crate::report::sections::published::{Derivation, did_not_run, notes, recomputed};
use crate::report::subjects::staircase::Stairs;
use crate::report::values::in_first_order;
use crate::report::wording::{change_in_words, listed};

/// What the source says of the throughput, and what follows from the rest; none when the study has nothing of it.
pub(in crate::report) fn published(all: &[Stairs<'_>], findings: &Findings) -> Option<Section> {
    let mut pieces = Vec::new();
    for stairs in all {
        let changes = changes(stairs);
        pieces.extend(said(&changes).map(Piece::Text));
        pieces.extend((!changes.is_empty()).then(|| Piece::Table(table(stairs, &changes))));
        pieces.extend(reasons(&changes));
    }
    pieces.extend(recomputed("What else the source says", &others(all, findings)));
    if pieces.is_empty() {
        return None;
    }
    pieces.extend(notes(findings));
    Some(Section::new("published", "Published beside measured", pieces).saying(answer(all)))
}

/// `throughput: gateway-mtls −10 % (here −8.1 % ±2.0)`: what the source prints, held against what it may mean first.
pub(in crate::report) fn answer(all: &[Stairs<'_>]) -> String {
    let mut said: Vec<(&str, String)> = Vec::new();
    for (stairs, row) in all.iter().flat_map(|s| changes(s).into_iter().map(move |row| (s, row))) {
        let against = row.against.as_deref().unwrap_or(&stairs.findings.baseline);
        let of = stairs.difference(&row.variant, against);
        if let (Some(printed), Some(of)) = (row.printed, of)
            && !said.iter().any(|(variant, _)| *variant == row.variant)
        {
            let (printed, here) = (shown(printed), change_in_words(of.throughput_ratio));
            said.push((&row.variant, format!("{} {printed}\u{a0}% (here {here})", row.variant)));
        }
    }
    if said.is_empty() {
        return String::new();
    }
    let said: Vec<String> = said.into_iter().map(|(_, said)| said).collect();
    format!("throughput: {}", said.join(", "))
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
            "Of the throughput the source prints {}{unclear}. Measured over all steps, in %.",
            listed(&figures)
        )
    })
}

/// A group a variant, a row for each case that the study holds it against.
fn table(stairs: &Stairs<'_>, rows: &[&RecomputedRow]) -> Table {
    let level = stairs.of.differences.first().map_or(0.95, |d| d.throughput_ratio.level) * 100.0;
    let columns = vec![
        words(""),
        figures("published"),
        figures("measured"),
        figures(format!("{level:.0}\u{a0}% interval")),
    ];
    let group = |variant: &str| Group {
        title: Some(variant.to_owned()),
        rows: rows
            .iter()
            .filter(|row| row.variant == variant)
            .map(|published| row(stairs, published))
            .collect(),
    };
    let variants = in_first_order(rows.iter().map(|row| row.variant.as_str()));
    Table { columns, groups: variants.into_iter().map(group).collect() }
}

fn row(stairs: &Stairs<'_>, published: &RecomputedRow) -> Vec<Cell> {
    let against = published.against.as_deref().unwrap_or(&stairs.findings.baseline);
    let judgement = stairs.difference(&published.variant, against);
    let change = judgement.map(|of| as_change(of.throughput_ratio)).or(published.measured);
    let mut cells = vec![format!("against {against}").into(), published_cell(published.printed)];
    cells.extend(measured(change));
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
