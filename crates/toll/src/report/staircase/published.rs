//! Published changes of the throughput beside the measured ones, against the baseline and against the case before:
//! a source that prints one percentage may mean either. Draws nothing.

use super::Stairs;
use super::words::{as_change, percents, signed_interval};
use crate::analysis::findings::{Derived, Findings, RecomputedRow, StaircaseDifference};
use crate::report::content::{Detail, in_first_order, section};
use crate::report::figures::{signed, verbatim};
use crate::report::published::{did_not_run, recomputed};
use crate::report::sweep::listed;
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// What the source says of the throughput, and what follows from the rest; none when the study has nothing of it.
pub(super) fn published(
    all: &[Stairs<'_>],
    findings: &Findings,
    detail: Detail,
) -> Option<Section> {
    let of_steps = findings.loads.iter().flat_map(|load| &load.recomputed);
    let rows = all.iter().flat_map(|stairs| &stairs.of.recomputed).chain(of_steps);
    let (changes, others): (Vec<&RecomputedRow>, Vec<&RecomputedRow>) =
        rows.partition(|row| row.derived == Derived::ThroughputChange);
    let claims = claims(&changes);
    let mut pieces: Vec<Piece> =
        said(&claims, &findings.baseline).map(Piece::Text).into_iter().collect();
    let stairs = all.iter().filter(|_| !claims.is_empty());
    pieces.extend(stairs.map(|stairs| Piece::Table(table(stairs, &claims))));
    // A terminal has no room for the reasons.
    pieces.extend((detail == Detail::Full).then(|| reasons(&changes)).flatten());
    let others: Vec<_> = others.into_iter().map(|row| (String::new(), row)).collect();
    pieces.extend(recomputed("Recomputed from the published figures", &others));
    if pieces.is_empty() {
        return None;
    }
    let notes = findings.published.iter().map(|note| Cell::toned(note, Tone::Quiet));
    pieces.push(Piece::List(notes.collect()));
    Some(section("published", "Published figures", pieces))
}

/// A variant and the change that is printed of it, whatever it may be against; none where the source has no figure.
type Claim<'a> = (&'a str, Option<f64>);

fn claims<'a>(rows: &[&'a RecomputedRow]) -> Vec<Claim<'a>> {
    let mut claims: Vec<Claim<'a>> = Vec::new();
    for row in rows {
        let claim = (row.variant.as_str(), row.printed);
        claims.extend((!claims.contains(&claim)).then_some(claim));
    }
    claims
}

fn shown(printed: f64) -> String {
    signed(printed, verbatim(printed))
}

/// None when the source prints no figure at all.
fn said(claims: &[Claim<'_>], baseline: &str) -> Option<String> {
    let printed = claims.iter().filter_map(|(_, printed)| *printed);
    let figures: Vec<String> = printed.map(|f| format!("{}\u{a0}%", shown(f))).collect();
    (!figures.is_empty()).then(|| {
        format!(
            "Of the throughput the source prints {} and does not say against which case: it may be {baseline} or the case before. Both were measured here, over all steps, in %.",
            listed(&figures)
        )
    })
}

/// A row for each variant that the printed one may be against.
fn table(stairs: &Stairs<'_>, claims: &[Claim<'_>]) -> Table {
    let level = stairs.of.differences.first().map_or(0.95, |d| d.throughput_ratio.level) * 100.0;
    let columns = vec![
        words(""),
        figures("published"),
        figures("measured here"),
        figures(format!("{level:.0}\u{a0}% interval")),
    ];
    let group = |(variant, printed): &Claim<'_>| {
        let against: Vec<&StaircaseDifference> =
            stairs.of.differences.iter().filter(|d| d.variant == *variant).collect();
        let mut rows: Vec<Vec<Cell>> = against.iter().map(|d| row(d, *printed)).collect();
        if rows.is_empty() {
            let none = Cell::default();
            rows.push(vec!["against any".into(), published_cell(*printed), did_not_run(), none]);
        }
        Group { title: Some((*variant).to_owned()), rows }
    };
    Table { columns, groups: claims.iter().map(group).collect() }
}

fn published_cell(printed: Option<f64>) -> Cell {
    printed.map_or_else(|| Cell::toned("no figure", Tone::Quiet), |f| shown(f).into())
}

fn row(of: &StaircaseDifference, printed: Option<f64>) -> Vec<Cell> {
    let change = as_change(of.throughput_ratio);
    vec![
        format!("against {}", of.against).into(),
        published_cell(printed),
        percents().signed(change.value).into(),
        signed_interval(percents(), change).into(),
    ]
}

/// What the study says of the published changes, each sentence once.
fn reasons(rows: &[&RecomputedRow]) -> Option<Piece> {
    let reasons = in_first_order(rows.iter().map(|row| row.because.as_str()));
    let entries: Vec<Cell> =
        reasons.into_iter().map(|said| Cell::toned(said, Tone::Quiet)).collect();
    (!entries.is_empty()).then_some(Piece::List(entries))
}
