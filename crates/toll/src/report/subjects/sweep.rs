//! The cells of a load that is swept, and what they are called.

use crate::analysis::findings::{Cell, Findings, LoadFindings};
use crate::report::figures::verbatim;
use crate::report::wording::several;

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
    pub(in crate::report) fn of_nodes(&self) -> String {
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
    pub(in crate::report) fn is_of_pods_or_rates(&self) -> bool {
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

/// `20/s, 90 pods`; what is not swept is left out.
pub(in crate::report) fn cell_name(load: &LoadFindings) -> String {
    let Some(cell) = &load.cell else { return load.name.clone() };
    let rate = cell.rate_per_s.map(|rate| format!("{}/s", verbatim(rate)));
    let clients = cell.connections.map(|clients| several(clients as usize, "client"));
    let nodes = cell.nodes.map(|nodes| several(nodes, "node"));
    let parts: Vec<String> =
        rate.into_iter().chain(clients).chain(size(cell)).chain(nodes).collect();
    if parts.is_empty() { load.name.clone() } else { parts.join(", ") }
}

fn size(cell: &Cell) -> Option<String> {
    cell.replicas.as_ref().map(|(_, pods)| several(*pods, "pod"))
}
