//! The sections of a report in their order, the same for every study and every way to draw them. A section has one line that answers for it, so a page can keep it folded. Draws nothing.

mod components;
pub(super) mod content;
mod curve;
mod failures;
mod heap;
mod jvms;
pub(super) mod payers;
mod pods;
mod proof;
mod published;
mod rates;
mod reading;
pub(super) mod record;
mod regimes;
mod settled;
mod spans;
pub(super) mod staircase;
mod sweep;
mod tools;
mod traffic;

use crate::analysis::findings::{Findings, LoadFindings, View};

use super::charts;
use super::document::Section;
use super::drawing::Chart;
use super::subjects::spans::{in_order, is_point_only};
use super::subjects::staircase::{Stairs, nearest};
use super::subjects::sweep::Sweep;
use super::wording::is_primary;
use curve::curve;
use tools::tools;

/// How much a reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Everything.
    All,
    /// What a forge takes of one comment: of a sweep's cells those that lead, and not each claim as seen.
    Forge,
}

/// All sections behind the first screen.
pub(super) fn all(findings: &Findings, detail: Detail) -> Vec<Section> {
    let stairs = Stairs::all(findings);
    let sweep = Sweep::of(findings);
    let open = open_loads(findings);
    let leading = leading(&stairs, sweep.as_ref());
    let shown: Vec<&LoadFindings> = open.iter().map(|i| &findings.loads[*i]).collect();
    let detailed: Vec<&LoadFindings> =
        shown.iter().copied().filter(|load| !is_point_only(findings, load)).collect();
    let mut sections: Vec<Section> = Vec::new();
    sections.extend(content::headline(findings));
    let of_view = |equal: bool| {
        let of_view =
            open.iter().filter(move |i| (findings.loads[**i].view == View::EqualRate) == equal);
        of_view.map(|i| content::load(findings, *i, vec![]))
    };
    sections.extend(of_view(true));
    sections.extend(failures::failures(findings));
    sections.extend(curve(findings));
    sections.extend(staircase::sections(&stairs));
    sections.extend(sweep.iter().flat_map(sweep::sections));
    sections.extend(of_view(false));
    sections.extend(spans::spans(findings));
    sections.extend(jvms::jvms(findings));
    sections.extend(heap::heap(findings));
    if !shown.is_empty() {
        sections.push(components::cpu(findings, &shown).showing(cpu_charts(findings)));
        sections.extend(pods::top(findings, &detailed));
        sections.push(components::memory(&detailed).showing(memory_charts(findings)));
    }
    sections.extend(sweep::cells(findings, &cells(findings, &leading, detail), &leading));
    sections.extend(published(findings, &stairs, sweep.as_ref()));
    sections.push(proof::proof(findings));
    sections.extend((detail == Detail::All && !stairs.is_empty()).then(|| proof::claims(findings)));
    sections.extend(tools(findings, detail));
    sections.extend(traffic::at_traffic(findings));
    sections.push(content::caveats(findings));
    sections.extend(settled::settled(findings));
    sections.push(record::rounds(findings, detail));
    sections.push(record::machine(findings));
    sections.push(reading::reading(findings));
    sections
}

/// Loads that are no cell of a sweep; those that only serve a line through the spans come last.
fn open_loads(findings: &Findings) -> Vec<usize> {
    let order = in_order(findings).into_iter();
    order.filter(|i| findings.loads[*i].cell.is_none()).collect()
}

/// The cells that stand for a staircase, or for a sweep.
fn leading<'a>(stairs: &[Stairs<'a>], sweep: Option<&Sweep<'a>>) -> Vec<&'a LoadFindings> {
    match (nearest(stairs), sweep) {
        (nearest, Some(sweep)) if nearest.is_empty() => sweep.largest(),
        (nearest, _) => nearest,
    }
}

/// The cells that are shown one by one.
fn cells<'a>(
    findings: &'a Findings,
    leading: &[&LoadFindings],
    detail: Detail,
) -> Vec<&'a LoadFindings> {
    let is_shown = |load: &&LoadFindings| {
        let leads = leading.iter().any(|of| std::ptr::eq(*of, *load));
        load.cell.is_some() && (detail == Detail::All || leads)
    };
    findings.loads.iter().filter(is_shown).collect()
}

/// But that of the first screen.
fn cpu_charts(findings: &Findings) -> Vec<Chart> {
    let loads = findings.loads.iter().filter(|load| load.cell.is_none());
    loads.filter(|load| !is_primary(findings, load)).filter_map(charts::cpu).collect()
}

fn memory_charts(findings: &Findings) -> Vec<Chart> {
    let loads = findings.loads.iter().filter(|load| load.cell.is_none());
    loads.filter(|load| !is_point_only(findings, load)).flat_map(charts::memory).collect()
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
