//! Turns a closed loop over its number of clients into few sections: what each case costs against the baseline and
//! against the case before it, throughput by clients, response times at one step, who uses the CPU. What one step
//! shows by itself is told apart. Draws nothing, adds nothing up.

mod answers;
mod application;
mod before;
mod cpu;
mod differences;
mod published;
mod response;
mod throughput;
mod words;

use crate::analysis::findings::{
    Findings, LoadFindings, Staircase, StaircaseStep, VariantLoad, View,
};

use super::content::{self, Detail};
use super::sweep::{Folded, Part, Sweep, cell_details, cells_introduction, uses};
use super::table::Section;
use super::{proof, reading, record};

pub(super) use answers::answers;
pub(super) use before::against_the_case_before;
pub(super) use response::{STATISTICS, response_of, scale_of_response};
pub(super) use words::several_clients;

/// Clients at which response times are told: those of the published study.
const CLIENTS: u32 = 20;

/// One staircase of a run.
#[derive(Clone, Copy)]
pub(super) struct Stairs<'a> {
    pub(super) findings: &'a Findings,
    pub(super) of: &'a Staircase,
    /// Among the staircases of the run.
    index: usize,
}

impl<'a> Stairs<'a> {
    /// The staircases of `findings` that show a step; none when no load sweeps its connections.
    pub(super) fn all(findings: &'a Findings) -> Vec<Self> {
        let shows = |of: &Staircase| of.lines.iter().any(|line| !line.steps.is_empty());
        let all = findings.staircases.iter().filter(|of| shows(of)).enumerate();
        all.map(|(index, of)| Self { findings, of, index }).collect()
    }

    /// In the order of the study.
    pub(super) fn variants(&self) -> Vec<&'a str> {
        self.of.lines.iter().map(|line| line.variant.as_str()).collect()
    }

    /// Numbers of clients at which some variant has a valid trial.
    pub(super) fn clients(&self) -> Vec<u32> {
        let mut clients: Vec<u32> =
            self.of.lines.iter().flat_map(|line| &line.steps).map(|s| s.connections).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// What `variant` showed with `clients`.
    pub(super) fn step(&self, variant: &str, clients: u32) -> Option<&'a StaircaseStep> {
        let line = self.of.lines.iter().find(|line| line.variant == variant)?;
        line.steps.iter().find(|step| step.connections == clients)
    }

    /// Whether `variant` showed proxies at any step.
    pub(super) fn has_data_plane(&self, variant: &str) -> bool {
        let lines = self.of.lines.iter().filter(|line| line.variant == variant);
        lines.flat_map(|line| &line.steps).any(|step| step.mesh_cpu_us.is_some())
    }

    /// The number of clients nearest [`CLIENTS`], and what the load with so many showed.
    pub(super) fn nearest(&self) -> Option<(u32, &'a LoadFindings)> {
        let clients = self.clients().into_iter().min_by_key(|c| c.abs_diff(CLIENTS))?;
        let name = self.of.lines.iter().find_map(|line| {
            let step = line.steps.iter().find(|step| step.connections == clients)?;
            Some(step.load.as_str())
        })?;
        Some((clients, self.findings.loads.iter().find(|load| load.name == name)?))
    }

    /// Loads that are steps of this staircase, in the order of the study.
    pub(super) fn steps(&self) -> impl Iterator<Item = &'a LoadFindings> + use<'a> {
        let of = self.of;
        let is_step = move |name: &str| {
            of.lines.iter().flat_map(|line| &line.steps).any(|step| step.load == name)
        };
        self.findings.loads.iter().filter(move |load| is_step(&load.name))
    }

    /// An id that no other staircase has.
    pub(super) fn id(&self, part: &str) -> String {
        if self.index == 0 { part.into() } else { format!("{part}-{}", self.index + 1) }
    }

    /// A title that no other staircase has.
    pub(super) fn title(&self, text: impl Into<String>) -> String {
        let text = text.into();
        self.name().map_or_else(|| text.clone(), |name| format!("{text}: {name}"))
    }

    /// What tells it from the others of the run; none where it is the only one.
    fn name(&self) -> Option<String> {
        let all = &self.findings.staircases;
        let alike = all.iter().filter(|of| of.load == self.of.load).count();
        match (all.len(), alike) {
            (1, _) => None,
            (_, 1) => Some(self.of.load.clone()),
            // A load may sweep something else besides.
            _ => Some(format!("{}, staircase {}", self.of.load, self.index + 1)),
        }
    }
}

/// The variant in the order of the study rather than behind the baseline.
pub(super) fn in_order<'a>(stairs: &Stairs<'a>, load: &'a LoadFindings) -> Vec<&'a VariantLoad> {
    let of = |name: &str| load.variants.iter().find(|v| v.variant == name);
    stairs.variants().into_iter().filter_map(of).collect()
}

/// The staircase whose section `id` is, by its name without the number.
pub(super) fn part_of<'s, 'a>(
    all: &'s [Stairs<'a>],
    id: &str,
) -> Option<(&'s Stairs<'a>, &'static str)> {
    let parts = ["throughput", "response", "cpu"];
    all.iter().find_map(|stairs| {
        let part = parts.into_iter().find(|part| stairs.id(part) == id)?;
        Some((stairs, part))
    })
}

/// What a terminal has room for.
pub(super) fn brief(all: &[Stairs<'_>], findings: &Findings) -> Vec<Section> {
    let mut sections = shown(all, findings, Detail::Brief);
    sections.extend(published::published(all, findings, Detail::Brief));
    sections.push(proof::proof(findings, Detail::Brief));
    sections.push(content::caveats(findings));
    sections
}

/// Everything, what each of `detailed` shows and what ran when behind titles of their own.
pub(super) fn full(
    all: &[Stairs<'_>],
    findings: &Findings,
    detailed: &[&LoadFindings],
) -> Vec<Part> {
    let mut open = shown(all, findings, Detail::Full);
    // Right behind what ran.
    open.insert(1, content::caveats(findings));
    open.extend(published::published(all, findings, Detail::Full));
    open.push(proof::proof(findings, Detail::Full));
    let sweep = Sweep::of(findings);
    open.extend(sweep.iter().map(|sweep| cells_introduction(sweep, detailed)));
    let mut parts: Vec<Part> = open.into_iter().map(Part::Open).collect();
    let is_whole = detailed.len() == all.iter().flat_map(Stairs::steps).count();
    let others = other_loads(all, findings).filter(|_| is_whole).map(|i| who_pays(findings, i));
    let cells = detailed.iter().filter_map(|load| Some(cell_details(sweep.as_ref()?, load)));
    parts.extend(others.chain(cells).map(Part::Folded));
    // Of four services and six cases there are hundreds of claims and trials: more than a forge takes.
    let behind = if is_whole {
        vec![proof::claims(findings), record::trials(findings)]
    } else {
        vec![record::invalid_trials(findings)]
    };
    let behind = behind.into_iter().map(|section| {
        let (id, title) = (format!("{}-all", section.id), section.title.clone());
        Part::Folded(Folded { id, title, sections: vec![section] })
    });
    parts.extend(behind);
    parts.extend([record::machine(findings), reading::reading(findings)].map(Part::Open));
    parts
}

/// The steps at which response times are told.
pub(super) fn nearest<'a>(all: &[Stairs<'a>]) -> Vec<&'a LoadFindings> {
    all.iter().filter_map(Stairs::nearest).map(|(_, load)| load).collect()
}

/// Equal rate first (METHOD.md rule 1).
fn shown(all: &[Stairs<'_>], findings: &Findings, detail: Detail) -> Vec<Section> {
    let of = |stairs: &Stairs<'_>| {
        let sections = [
            differences::differences(stairs, detail),
            Some(throughput::throughput(stairs, detail)),
            response::response(stairs, detail),
            cpu::cpu(stairs, detail),
        ];
        sections.into_iter().flatten().collect::<Vec<_>>()
    };
    let (equal_rate, others): (Vec<usize>, Vec<usize>) =
        other_loads(all, findings).partition(|i| findings.loads[*i].view == View::EqualRate);
    let load = |i: usize| content::load(findings, i, detail);
    let mut sections: Vec<Section> =
        all.first().map(application::application).into_iter().collect();
    sections.extend(equal_rate.into_iter().map(load));
    sections.extend(all.iter().flat_map(of));
    sections.extend(others.into_iter().map(load));
    sections
}

/// Who pays under a load that is no step, behind a title of its own: what it compares is open.
fn who_pays(findings: &Findings, index: usize) -> Folded {
    let load = &findings.loads[index];
    Folded {
        id: format!("cell-{}", index + 1),
        title: format!("Who pays: {}", load.name),
        sections: uses(findings, load),
    }
}

/// Loads that are no step of a staircase.
fn other_loads(all: &[Stairs<'_>], findings: &Findings) -> impl Iterator<Item = usize> {
    let is_step = |load: &LoadFindings| {
        all.iter().flat_map(Stairs::steps).any(|step| std::ptr::eq(step, load))
    };
    let others: Vec<usize> =
        (0..findings.loads.len()).filter(|i| !is_step(&findings.loads[*i])).collect();
    others.into_iter()
}
