//! Puts the sections of a report in their order, the same for every study and every way to draw it. Each has one line
//! that answers for it, so a page can keep it folded. Draws nothing.

use crate::analysis::findings::{Findings, LoadFindings, View};

use super::content::{self, in_first_order, section};
use super::curve::curve;
use super::staircase::{self, Stairs};
use super::sweep::{self, Sweep};
use super::table::{Piece, Section};
use super::wording::load_title;
use super::{
    components, heap, hey, jvms, k6, pods, proof, published, reading, record, settled, spans,
    vegeta,
};

/// How much a reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Everything.
    All,
    /// What a forge takes of one comment: of a sweep's cells those that lead, and not each claim as seen.
    Forge,
}

/// All sections behind the first screen.
pub(super) fn sections(findings: &Findings, room: Room) -> Vec<Section> {
    let stairs = Stairs::all(findings);
    let sweep = Sweep::of(findings);
    let open = open_loads(findings);
    let cells = cells(findings, &stairs, room);
    let told: Vec<&LoadFindings> = open.iter().map(|i| &findings.loads[*i]).collect();
    let detailed: Vec<&LoadFindings> =
        told.iter().copied().filter(|load| !spans::is_point_only(findings, load)).collect();
    let mut sections: Vec<Section> = Vec::new();
    sections.extend(content::headline(findings));
    let of_view = |equal: bool| {
        open.iter().filter(move |i| (findings.loads[**i].view == View::EqualRate) == equal)
    };
    sections.extend(of_view(true).map(|i| content::load(findings, *i)));
    sections.extend(curve(findings));
    sections.extend(staircase::sections(&stairs));
    sections.extend(sweep.iter().flat_map(sweep::sections));
    sections.extend(of_view(false).map(|i| content::load(findings, *i)));
    sections.extend(spans::spans(findings));
    sections.extend(jvms::jvms(findings));
    sections.extend(heap::heap(findings));
    if !told.is_empty() {
        sections.push(components::cpu(findings, &told));
        sections.extend(pods::top(findings, &detailed));
        sections.push(components::memory(&detailed));
    }
    sections.extend(sweep::cells(findings, &cells));
    sections.extend(published(findings, &stairs, sweep.as_ref()));
    sections.push(proof::proof(findings));
    sections.extend((room == Room::All && !stairs.is_empty()).then(|| proof::claims(findings)));
    sections.extend(other_tools(findings, room));
    sections.push(content::caveats(findings));
    sections.extend(settled::settled(findings));
    sections.push(record::rounds(findings, room));
    sections.push(record::machine(findings));
    sections.push(reading::reading(findings));
    sections
}

/// Loads that are no cell of a sweep; those that only serve a line through the spans come last.
fn open_loads(findings: &Findings) -> Vec<usize> {
    let order = spans::in_order(findings).into_iter();
    order.filter(|i| findings.loads[*i].cell.is_none()).collect()
}

/// The cells that are told one by one.
fn cells<'a>(findings: &'a Findings, stairs: &[Stairs<'a>], room: Room) -> Vec<&'a LoadFindings> {
    let mut leading = staircase::nearest(stairs);
    if leading.is_empty() {
        leading = Sweep::of(findings).map_or_else(Vec::new, |sweep| sweep.largest());
    }
    let is_told = |load: &&LoadFindings| {
        let leads = leading.iter().any(|of| std::ptr::eq(*of, *load));
        load.cell.is_some() && (room == Room::All || leads)
    };
    findings.loads.iter().filter(is_told).collect()
}

fn published(
    findings: &Findings,
    stairs: &[Stairs<'_>],
    sweep: Option<&Sweep<'_>>,
) -> Option<Section> {
    match sweep {
        _ if !stairs.is_empty() => staircase::published(stairs, findings),
        Some(sweep) => sweep::published(sweep),
        None => published::published(findings),
    }
}

/// What another tool would print of a load.
type Summary = fn(&LoadFindings) -> Vec<Piece>;

/// The same slices as other tools would sum them up, each behind its title.
fn other_tools(findings: &Findings, room: Room) -> Option<Section> {
    let summaries: [(&str, Summary); 3] =
        [("hey", hey::pieces), ("k6", k6::pieces), ("vegeta", vegeta::pieces)];
    let mut folds: Vec<Piece> = Vec::new();
    let mut tools: Vec<&str> = Vec::new();
    // Of many cells the summaries would fill a comment.
    let told = |load: &&LoadFindings| room == Room::All || load.cell.is_none();
    for load in findings.loads.iter().filter(told) {
        for (tool, pieces) in summaries {
            let pieces = pieces(load);
            if !pieces.is_empty() {
                tools.push(tool);
                let id = format!("{tool}-{}", folds.len() + 1);
                let title = format!("As {tool} sums it up: {}", load_title(load));
                folds.push(Piece::Fold(section(id, title, pieces)));
            }
        }
    }
    let text = "All slices that count as one load.";
    let pieces = std::iter::once(Piece::Text(text.into())).chain(folds).collect();
    let answer = in_first_order(tools.iter().copied()).join(", ");
    (!tools.is_empty()).then(|| section("tools", "As other tools sum it up", pieces).saying(answer))
}
