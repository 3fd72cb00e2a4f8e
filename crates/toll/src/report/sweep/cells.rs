//! All that one cell shows, behind a title of its own; what the sections mean is said once, before the first.

use super::words::{cell_name, quantity_of};
use super::{Folded, Sweep, resources};
use crate::analysis::findings::{Effect, Findings, LoadFindings, View};
use crate::report::content::{
    self, Detail, effect_cells, effect_columns, in_first_order, section, value_of,
};
use crate::report::figures::Scale;
use crate::report::table::{Cell, Group, Piece, Section, Table};
use crate::report::wording::{difference_scale, metric_title};
use crate::report::{components, pods, vegeta};

/// What the sections of every cell mean.
pub(in crate::report) fn introduction(sweep: &Sweep<'_>, detailed: &[&LoadFindings]) -> Section {
    let mut texts = vec![Piece::Text(format!(
        "What each cell shows by itself: effects, who pays, CPU{}.",
        summary(sweep)
            .map_or_else(|| " and memory".into(), |of| format!(", memory and {of}'s summary"))
    ))];
    if detailed.len() < sweep.cells.len() {
        texts.push(Piece::Text("Those of the other cells are in the HTML report.".into()));
    }
    let meanings = [
        components::cpu(sweep.findings, &[], Detail::Full),
        components::memory(sweep.findings, &[], Detail::Full),
    ];
    let top = pods::top(sweep.findings, &sweep.cells);
    texts.extend(meanings.into_iter().chain(top).flat_map(|s| split(s.pieces).0));
    section("cells", "Cell by cell", texts)
}

/// Whose summary the cells show; of a staircase in Markdown none.
fn summary(sweep: &Sweep<'_>) -> Option<&'static str> {
    let variants = || sweep.cells.iter().flat_map(|load| &load.variants);
    match sweep.cells.iter().any(|load| load.view == View::FlatOut) {
        true => variants().any(|of| of.hey.is_some()).then_some("hey"),
        false => Some("vegeta"),
    }
}

/// The sections of `load`.
pub(in crate::report) fn details(sweep: &Sweep<'_>, load: &LoadFindings) -> Folded {
    let findings = sweep.findings;
    let index = index_of(findings, load);
    let mut of_load = content::load(findings, index, Detail::Full);
    of_load.pieces.extend(between(load));
    of_load.pieces.extend(vegeta::pieces(load));
    Folded {
        id: format!("cell-{}", index + 1),
        title: format!("{} ({})", cell_name(load), load.name),
        sections: std::iter::once(of_load).chain(uses(findings, load)).collect(),
    }
}

/// Who uses what under `load`, without what that means.
pub(in crate::report) fn uses(findings: &Findings, load: &LoadFindings) -> Vec<Section> {
    let index = index_of(findings, load);
    let groups = resources::table(load).map(|table| {
        section(
            "resources",
            format!("Who uses what: {}", cell_name(load)),
            vec![Piece::Table(table)],
        )
    });
    let sections = [
        Some(components::cpu(findings, &[load], Detail::Full)),
        groups,
        pods::top(findings, &[load]),
        Some(components::memory(findings, &[load], Detail::Full)),
    ];
    sections.into_iter().flatten().filter_map(|s| without_meaning(index, s)).collect()
}

/// Where `load` stands among the loads of the study.
fn index_of(findings: &Findings, load: &LoadFindings) -> usize {
    findings.loads.iter().position(|l| std::ptr::eq(l, load)).unwrap_or(0)
}

/// The effects between variants of which none is the baseline, a group a pair.
fn between(load: &LoadFindings) -> Vec<Piece> {
    let pair = |e: &Effect| format!("{} against {}", e.variant, e.against.as_deref().unwrap_or(""));
    let pairs: Vec<String> = load.between.iter().map(pair).collect();
    let group = |name: &str| Group {
        title: Some(name.into()),
        rows: load.between.iter().filter(|e| pair(e) == name).map(|e| row(load, e)).collect(),
    };
    let groups: Vec<Group> =
        in_first_order(pairs.iter().map(String::as_str)).into_iter().map(group).collect();
    if groups.is_empty() {
        return vec![];
    }
    let columns = effect_columns(&load.between);
    let heading = format!("Between the variants: {}", load.name);
    vec![Piece::Heading(heading), Piece::Table(Table { columns, groups })]
}

fn row(load: &LoadFindings, effect: &Effect) -> Vec<Cell> {
    let means = load.variants.iter().filter_map(|v| value_of(v, effect.metric));
    let scale = difference_scale(Scale::of(quantity_of(effect.metric), means), [effect]);
    let title = format!("{}, {}", metric_title(effect.metric), scale.unit());
    std::iter::once(title.into()).chain(effect_cells(effect, scale, Detail::Brief)).collect()
}

/// The section with an id of its cell and without what was said before the first cell.
fn without_meaning(index: usize, section: Section) -> Option<Section> {
    let id = format!("cell-{}-{}", index + 1, section.id);
    let pieces = split(section.pieces).1;
    (!pieces.is_empty()).then_some(Section { id, pieces, title: section.title })
}

/// The texts that a section opens with, and the rest of it.
fn split(mut pieces: Vec<Piece>) -> (Vec<Piece>, Vec<Piece>) {
    let texts = pieces.iter().take_while(|piece| matches!(piece, Piece::Text(_))).count();
    let rest = pieces.split_off(texts);
    (pieces, rest)
}
