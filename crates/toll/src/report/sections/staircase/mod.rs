//! Turns a closed loop over its number of clients into few sections: what each case costs against the baseline and
//! against the case before it, throughput by clients, response times at one step, who uses the CPU. What one step
//! shows by itself is told apart. Draws nothing, adds nothing up.

mod cpu;
mod differences;
mod published;
mod response;
mod throughput;
mod words;

use crate::analysis::findings::{
    Findings, LoadFindings, Staircase, StaircaseDifference, StaircaseStep, VariantLoad,
};

use crate::report::document::Section;

pub(in crate::report) use published::{answer as published_answer, published};
pub(in crate::report) use response::{STATISTICS, response_of, scale_of_response};
pub(in crate::report) use words::several_clients;

/// Clients at which response times are told: those of the published study.
const CLIENTS: u32 = 20;

/// One staircase of a run.
#[derive(Clone, Copy)]
pub(in crate::report) struct Stairs<'a> {
    pub(in crate::report) findings: &'a Findings,
    pub(in crate::report) of: &'a Staircase,
    /// Among the staircases of the run.
    index: usize,
}

impl<'a> Stairs<'a> {
    /// The staircases of `findings` that show a step; none when no load sweeps its connections.
    pub(in crate::report) fn all(findings: &'a Findings) -> Vec<Self> {
        let shows = |of: &Staircase| of.lines.iter().any(|line| !line.steps.is_empty());
        let all = findings.staircases.iter().filter(|of| shows(of)).enumerate();
        all.map(|(index, of)| Self { findings, of, index }).collect()
    }

    /// In the order of the study.
    pub(in crate::report) fn variants(&self) -> Vec<&'a str> {
        self.of.lines.iter().map(|line| line.variant.as_str()).collect()
    }

    /// Numbers of clients at which some variant has a slice that counts.
    pub(in crate::report) fn clients(&self) -> Vec<u32> {
        let mut clients: Vec<u32> =
            self.of.lines.iter().flat_map(|line| &line.steps).map(|s| s.connections).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// What `variant` showed with `clients`.
    pub(in crate::report) fn step(&self, variant: &str, clients: u32) -> Option<&'a StaircaseStep> {
        let line = self.of.lines.iter().find(|line| line.variant == variant)?;
        line.steps.iter().find(|step| step.connections == clients)
    }

    /// Whether `variant` showed proxies at any step.
    pub(in crate::report) fn has_data_plane(&self, variant: &str) -> bool {
        let lines = self.of.lines.iter().filter(|line| line.variant == variant);
        lines.flat_map(|line| &line.steps).any(|step| step.mesh_cpu_us.is_some())
    }

    /// The number of clients nearest [`CLIENTS`], and what the load with so many showed.
    pub(in crate::report) fn nearest(&self) -> Option<(u32, &'a LoadFindings)> {
        let clients = self.clients().into_iter().min_by_key(|c| c.abs_diff(CLIENTS))?;
        let name = self.of.lines.iter().find_map(|line| {
            let step = line.steps.iter().find(|step| step.connections == clients)?;
            Some(step.load.as_str())
        })?;
        Some((clients, self.findings.loads.iter().find(|load| load.name == name)?))
    }

    /// `variant` over the whole staircase, held against another.
    pub(in crate::report) fn difference(
        &self,
        variant: &str,
        against: &str,
    ) -> Option<&'a StaircaseDifference> {
        self.of.differences.iter().find(|d| d.variant == variant && d.against == against)
    }

    /// An id that no other staircase has.
    pub(in crate::report) fn id(&self, part: &str) -> String {
        format!("stairs-{part}-{}", self.index + 1)
    }

    /// A title that no other staircase has.
    pub(in crate::report) fn title(&self, text: impl Into<String>) -> String {
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
pub(in crate::report) fn in_order<'a>(
    stairs: &Stairs<'a>,
    load: &'a LoadFindings,
) -> Vec<&'a VariantLoad> {
    let of = |name: &str| load.variants.iter().find(|v| v.variant == name);
    stairs.variants().into_iter().filter_map(of).collect()
}

/// The steps at which response times are told.
pub(in crate::report) fn nearest<'a>(all: &[Stairs<'a>]) -> Vec<&'a LoadFindings> {
    all.iter().filter_map(Stairs::nearest).map(|(_, load)| load).collect()
}

/// What the staircases show, each by itself.
pub(in crate::report) fn sections(all: &[Stairs<'_>]) -> Vec<Section> {
    let of = |stairs| {
        let sections = [
            differences::differences(stairs),
            Some(throughput::throughput(stairs)),
            response::response(stairs),
            cpu::cpu(stairs),
        ];
        sections.into_iter().flatten()
    };
    all.iter().flat_map(of).collect()
}
