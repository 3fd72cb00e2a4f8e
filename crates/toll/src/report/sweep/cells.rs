//! All that one cell shows, behind a title of its own; what the sections mean is said once, before the first.

use super::words::cell_name;
use super::{Folded, Sweep, resources};
use crate::analysis::findings::LoadFindings;
use crate::report::content::{self, Detail, section};
use crate::report::table::{Piece, Section};
use crate::report::{components, pods, vegeta};

/// What the sections of every cell mean.
pub(super) fn introduction(sweep: &Sweep<'_>) -> Section {
    let mut texts = vec![Piece::Text(
        "What each cell shows by itself: effects, who pays, CPU, memory and vegeta's summary."
            .into(),
    )];
    let meanings = [
        components::cpu(sweep.findings, &[], Detail::Full),
        components::memory(sweep.findings, &[], Detail::Full),
    ];
    let top = pods::top(sweep.findings, &sweep.cells);
    texts.extend(meanings.into_iter().chain(top).flat_map(|s| split(s.pieces).0));
    section("cells", "Cell by cell", texts)
}

/// The sections of `load`.
pub(super) fn details(sweep: &Sweep<'_>, load: &LoadFindings) -> Folded {
    let findings = sweep.findings;
    let index = findings.loads.iter().position(|l| std::ptr::eq(l, load)).unwrap_or(0);
    let mut of_load = content::load(findings, index, Detail::Full);
    of_load.pieces.extend(vegeta::pieces(load));
    let groups = resources::table(load).map(|table| {
        section(
            "resources",
            format!("Who uses what: {}", cell_name(load)),
            vec![Piece::Table(table)],
        )
    });
    let others = [
        Some(components::cpu(findings, &[load], Detail::Full)),
        groups,
        pods::top(findings, &[load]),
        Some(components::memory(findings, &[load], Detail::Full)),
    ];
    let others = others.into_iter().flatten().filter_map(|s| without_meaning(index, s));
    Folded {
        id: format!("cell-{}", index + 1),
        title: format!("{} ({})", cell_name(load), load.name),
        sections: std::iter::once(of_load).chain(others).collect(),
    }
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
