//! Turns a run that sweeps a load (a cell for each rate and size) into few sections: one overview of all cells, what
//! grows with what; all that one cell shows is told apart. Draws nothing.

mod cells;
mod overview;
mod published;
mod resources;
mod scaling;
mod service_times;
mod words;

use crate::analysis::findings::{Findings, LoadFindings};

use crate::report::document::Section;

pub(in crate::report) use cells::cells;
pub(in crate::report) use published::published;
pub(in crate::report) use scaling::{
    fitted, growths, level, off, quantity, quantity_title, shown_off, told_crossings,
};
pub(in crate::report) use words::{cell_name, listed, several};

/// The cells of a run that sweeps.
#[derive(Clone)]
pub(in crate::report) struct Sweep<'a> {
    pub(in crate::report) findings: &'a Findings,
    /// In the order of the study.
    pub(in crate::report) cells: Vec<&'a LoadFindings>,
}

impl<'a> Sweep<'a> {
    /// The sweep of `findings`; none when no load is a cell.
    pub(in crate::report) fn of(findings: &'a Findings) -> Option<Self> {
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
    pub(in crate::report) fn largest(&self) -> Vec<&'a LoadFindings> {
        let most = self.cells.iter().map(|load| pods(load)).max();
        self.cells.iter().filter(|load| Some(pods(load)) == most).copied().collect()
    }

    /// Whether it is pods or rates that are swept; the steps of a staircase have tables of their own.
    fn is_of_pods_or_rates(&self) -> bool {
        let mut cells = self.cells.iter().filter_map(|load| load.cell.as_ref());
        cells.any(|cell| cell.connections.is_none())
    }

    /// The variants but the baseline that some cell shows, in the order of the study.
    pub(in crate::report) fn others(&self) -> Vec<&'a str> {
        let ran = |name: &str| {
            self.cells.iter().flat_map(|load| &load.variants).any(|v| v.variant == name)
        };
        let names = self.findings.variants.iter().map(|v| v.name.as_str());
        names.filter(|name| *name != self.findings.baseline && ran(name)).collect()
    }

    /// The same behind the baseline.
    pub(in crate::report) fn variants(&self) -> Vec<&'a str> {
        std::iter::once(self.findings.baseline.as_str()).chain(self.others()).collect()
    }
}

fn pods(load: &LoadFindings) -> usize {
    load.cell.as_ref().and_then(|cell| cell.replicas.as_ref()).map_or(0, |(_, pods)| *pods)
}

/// What all cells show together.
pub(in crate::report) fn sections(sweep: &Sweep<'_>) -> Vec<Section> {
    let sections = [
        sweep.is_of_pods_or_rates().then(|| overview::overview(sweep)),
        scaling::scaling(sweep),
        service_times::service_times(sweep),
        resources::resources(sweep),
        resources::top(sweep),
    ];
    sections.into_iter().flatten().collect()
}
