//! Turns a run that sweeps a load (a cell for each rate and size) into few sections: the answer at the largest
//! size, one overview of all cells, what grows with what; all that one cell shows is told apart. Draws nothing.

mod answers;
mod cells;
mod largest;
mod overview;
mod published;
mod resources;
mod scaling;
mod service_times;
mod words;

use crate::analysis::findings::{Findings, LoadFindings};

use super::content::{self, Detail};
use super::table::Section;
use super::{proof, reading, record};

pub(super) use answers::answers;
pub(super) use cells::{details as cell_details, introduction as cells_introduction, uses};
pub(super) use scaling::{fitted, level, off, quantity, quantity_title, shown_off, told_crossings};
pub(super) use words::{cell_name, listed, several};

/// The cells of a run that sweeps.
#[derive(Clone)]
pub(super) struct Sweep<'a> {
    pub(super) findings: &'a Findings,
    /// In the order of the study.
    pub(super) cells: Vec<&'a LoadFindings>,
}

/// One part of a full report.
pub(super) enum Part {
    /// For every reader.
    Open(Section),
    /// For who asks: title and sections.
    Folded(Folded),
}

/// Sections behind one title.
pub(super) struct Folded {
    /// Unique in a report.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) sections: Vec<Section>,
}

impl<'a> Sweep<'a> {
    /// The sweep of `findings`; none when no load is a cell.
    pub(super) fn of(findings: &'a Findings) -> Option<Self> {
        let cells: Vec<&LoadFindings> =
            findings.loads.iter().filter(|load| load.cell.is_some()).collect();
        (!cells.is_empty()).then_some(Self { findings, cells })
    }

    /// ` on 1 node`: what the fits are of where nodes are swept, too, and else nothing.
    fn of_nodes(&self) -> String {
        let fitted = self.findings.scalings.iter().flat_map(|fit| &fit.points).next();
        let cell = fitted.and_then(|point| self.cells.iter().find(|load| load.name == point.load));
        let nodes = cell.and_then(|load| load.cell.as_ref()?.nodes);
        nodes.map_or_else(String::new, |nodes| format!(" on {}", several(nodes, "node")))
    }

    /// The cells with the most pods, one a rate.
    pub(super) fn largest(&self) -> Vec<&'a LoadFindings> {
        let most = self.cells.iter().map(|load| pods(load)).max();
        self.cells.iter().filter(|load| Some(pods(load)) == most).copied().collect()
    }

    /// The service whose pods are swept, with the most that there were.
    pub(super) fn most_pods(&self) -> Option<(&'a str, usize)> {
        let replicas = self.cells.iter().filter_map(|load| load.cell.as_ref()?.replicas.as_ref());
        replicas.max_by_key(|(_, pods)| *pods).map(|(service, pods)| (service.as_str(), *pods))
    }

    /// The variants but the baseline that some cell shows, in the order of the study.
    pub(super) fn others(&self) -> Vec<&'a str> {
        let ran = |name: &str| {
            self.cells.iter().flat_map(|load| &load.variants).any(|v| v.variant == name)
        };
        let names = self.findings.variants.iter().map(|v| v.name.as_str());
        names.filter(|name| *name != self.findings.baseline && ran(name)).collect()
    }

    /// The same behind the baseline.
    pub(super) fn variants(&self) -> Vec<&'a str> {
        std::iter::once(self.findings.baseline.as_str()).chain(self.others()).collect()
    }

    /// Loads that are no cell.
    pub(super) fn other_loads(&self) -> impl Iterator<Item = usize> + use<'a> {
        let findings = self.findings;
        (0..findings.loads.len()).filter(move |i| findings.loads[*i].cell.is_none())
    }
}

fn pods(load: &LoadFindings) -> usize {
    load.cell.as_ref().and_then(|cell| cell.replicas.as_ref()).map_or(0, |(_, pods)| *pods)
}

/// What a terminal has room for.
pub(super) fn brief(sweep: &Sweep<'_>) -> Vec<Section> {
    let mut sections = Vec::new();
    sections.extend(largest::largest(sweep));
    sections.push(overview::overview(sweep, Detail::Brief));
    sections.extend(scaling::scaling(sweep, Detail::Brief));
    sections.extend(service_times::service_times(sweep, Detail::Brief));
    sections.extend(resources::resources(sweep, Detail::Brief));
    sections.extend(resources::top(sweep, Detail::Brief));
    sections.extend(sweep.other_loads().map(|i| content::load(sweep.findings, i, Detail::Brief)));
    sections.extend(published::published(sweep, Detail::Brief));
    sections.push(proof::proof(sweep.findings, Detail::Brief));
    sections.push(content::caveats(sweep.findings));
    sections
}

/// Everything, what each of `detailed` shows and what ran when behind titles of their own.
pub(super) fn full(sweep: &Sweep<'_>, detailed: &[&LoadFindings]) -> Vec<Part> {
    let findings = sweep.findings;
    let mut open = Vec::new();
    open.extend(largest::largest(sweep));
    open.push(content::caveats(findings));
    open.push(overview::overview(sweep, Detail::Full));
    open.extend(scaling::scaling(sweep, Detail::Full));
    open.extend(service_times::service_times(sweep, Detail::Full));
    open.extend(resources::resources(sweep, Detail::Full));
    open.extend(resources::top(sweep, Detail::Full));
    open.extend(sweep.other_loads().map(|i| content::load(findings, i, Detail::Full)));
    open.extend(published::published(sweep, Detail::Full));
    open.push(proof::proof(findings, Detail::Full));
    open.push(cells::introduction(sweep, detailed));
    let mut parts: Vec<Part> = open.into_iter().map(Part::Open).collect();
    parts.extend(detailed.iter().map(|load| Part::Folded(cells::details(sweep, load))));
    let trials = record::trials(findings);
    let title = trials.title.clone();
    parts.push(Part::Folded(Folded { id: "trials-all".into(), title, sections: vec![trials] }));
    parts.extend([record::machine(findings), reading::reading(findings)].map(Part::Open));
    parts
}
