//! All that one cell shows, each behind a title of its own; what the sections mean is said once, before the first.

use super::resources;
use crate::analysis::findings::{Findings, LoadFindings};
use crate::report::charts;
use crate::report::document::{Piece, Section};
use crate::report::sections::content;
use crate::report::sections::{components, pods};
use crate::report::subjects::sweep::cell_name;
use crate::report::wording::is_primary;

/// Each of `detailed` behind a title; none without cells. Memory over time is drawn of the `leading` ones: the others
/// would fill the page with flat lines.
pub(in crate::report) fn cells(
    findings: &Findings,
    detailed: &[&LoadFindings],
    leading: &[&LoadFindings],
) -> Option<Section> {
    let meanings = [components::cpu(findings, &[]), components::memory(&[])];
    let top = pods::top(findings, detailed);
    let mut pieces: Vec<Piece> =
        meanings.into_iter().chain(top).flat_map(|s| split(s.pieces).0).collect();
    let leads = |load: &LoadFindings| leading.iter().any(|of| std::ptr::eq(*of, load));
    pieces.extend(detailed.iter().map(|load| Piece::Fold(details(findings, load, leads(load)))));
    let names: Vec<String> = detailed.iter().map(|load| cell_name(load)).collect();
    let answer = match names.as_slice() {
        [] => return None,
        [first, .., last] => format!("{} cells, from {first} to {last}", names.len()),
        [only] => only.clone(),
    };
    Some(Section::new("cells", "Cell by cell", pieces).saying(answer))
}

/// The sections of `load`, one after the other.
fn details(findings: &Findings, load: &LoadFindings, leads: bool) -> Section {
    let index = index_of(findings, load);
    let cpu = (!is_primary(findings, load)).then(|| charts::cpu(load)).flatten();
    let memory = leads.then(|| charts::memory(load)).into_iter().flatten();
    let of_load = content::load(findings, index, cpu.into_iter().chain(memory).collect());
    let mut pieces = of_load.pieces;
    for section in uses(findings, load) {
        pieces.push(Piece::Heading(section.title));
        pieces.extend(section.pieces);
    }
    Section {
        id: format!("cell-{}", index + 1),
        title: format!("{} ({})", cell_name(load), load.name),
        answer: of_load.answer,
        pieces,
    }
}

/// Who uses what under `load`, without what that means.
fn uses(findings: &Findings, load: &LoadFindings) -> Vec<Section> {
    let groups = resources::table(load).map(|table| {
        Section::new(
            "resources",
            format!("Who uses what: {}", cell_name(load)),
            vec![Piece::Table(table)],
        )
    });
    let sections = [
        Some(components::cpu(findings, &[load])),
        groups,
        pods::top(findings, &[load]),
        Some(components::memory(&[load])),
    ];
    sections.into_iter().flatten().filter_map(without_meaning).collect()
}

/// Where `load` stands among the loads of the study.
fn index_of(findings: &Findings, load: &LoadFindings) -> usize {
    findings.loads.iter().position(|l| std::ptr::eq(l, load)).unwrap_or(0)
}

/// The section without what was said before the first cell.
fn without_meaning(section: Section) -> Option<Section> {
    let pieces = split(section.pieces).1;
    (!pieces.is_empty()).then_some(Section { pieces, ..section })
}

/// The texts that a section opens with, and the rest of it.
fn split(mut pieces: Vec<Piece>) -> (Vec<Piece>, Vec<Piece>) {
    let texts = pieces.iter().take_while(|piece| matches!(piece, Piece::Text(_))).count();
    let rest = pieces.split_off(texts);
    (pieces, rest)
}
