//! A closed loop over its number of clients: its steps, and the response times at one of them.

use crate::analysis::findings::{
    Estimate, Findings, LoadFindings, Metric, Staircase, StaircaseDifference, StaircaseStep,
    VariantLoad,
};
use crate::report::figures::{Quantity, Scale};
use crate::report::wording::several;

/// Clients at which response times are shown: those of the published study.
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

/// The steps at which response times are shown.
pub(in crate::report) fn nearest<'a>(all: &[Stairs<'a>]) -> Vec<&'a LoadFindings> {
    all.iter().filter_map(Stairs::nearest).map(|(_, load)| load).collect()
}

/// `20 clients`.
pub(in crate::report) fn several_clients(clients: u32) -> String {
    several(clients as usize, "client")
}

/// In the order of the published study.
pub(in crate::report) const STATISTICS: [(Metric, &str); 5] = [
    (Metric::LatencyMean, "mean"),
    (Metric::LatencyP50, "p50"),
    (Metric::LatencyP90, "p90"),
    (Metric::LatencyP95, "p95"),
    (Metric::LatencyP99, "p99"),
];

/// One statistic of a variant with its interval.
pub(in crate::report) fn response_of(variant: &VariantLoad, metric: Metric) -> Option<Estimate> {
    let found = variant.metrics.iter().find(|(m, of)| *m == metric && of.value.is_finite());
    found.map(|(_, of)| *of)
}

/// One scale for table and chart: that of the figures, whatever their intervals reach.
pub(in crate::report) fn scale_of_response(variants: &[&VariantLoad]) -> Scale {
    let values = variants.iter().flat_map(|v| STATISTICS.map(|(metric, _)| response_of(v, metric)));
    let values: Vec<f64> = values.flatten().map(|e| e.value).collect();
    let unit = Scale::of(Quantity::Time, [values.iter().copied().fold(0.0, f64::max)]);
    unit.with_decimals_for(values)
}
