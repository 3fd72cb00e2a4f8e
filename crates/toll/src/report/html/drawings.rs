//! Which charts a section has: by its id, each chart once in a page.

use maud::{Markup, html};

use super::charts;
use super::palette::Palette;
use crate::analysis::findings::{Findings, LoadFindings, Metric, View};
use crate::report::spans;
use crate::report::staircase::{Stairs, in_order, nearest};
use crate::report::sweep::Sweep;
use crate::report::wording::primary;

/// The findings as their charts need them.
pub(super) struct Drawings<'a> {
    pub(super) findings: &'a Findings,
    pub(super) palette: Palette,
    stairs: Vec<Stairs<'a>>,
    sweep: Option<Sweep<'a>>,
}

impl<'a> Drawings<'a> {
    pub(super) fn of(findings: &'a Findings) -> Self {
        let (stairs, sweep) = (Stairs::all(findings), Sweep::of(findings));
        Self { findings, palette: Palette::of(findings), stairs, sweep }
    }

    /// The two pictures of the first screen: latency, against the rate where it was swept, and who pays.
    pub(super) fn first(&self) -> [Option<Markup>; 2] {
        let Some(load) = primary(self.findings) else { return [None, None] };
        let curve = self.findings.curve.as_ref();
        let against_rate =
            curve.and_then(|curve| charts::latency_by_rate(curve, load, &self.palette));
        let latency = against_rate.or_else(|| charts::latency(load, &self.palette));
        [latency, charts::cpu(load, &self.palette)]
    }

    /// The charts of the section `id`; empty when it has none.
    pub(super) fn charts(&self, id: &str) -> Markup {
        let drawn = self.drawn(id);
        html! { @if !drawn.is_empty() { div.charts { @for chart in drawn { (chart) } } } }
    }

    fn drawn(&self, id: &str) -> Vec<Markup> {
        let (findings, palette) = (self.findings, &self.palette);
        match id {
            "curve" => {
                let curve = findings.curve.as_ref();
                curve.and_then(|curve| charts::cpu_by_rate(curve, palette)).into_iter().collect()
            }
            "spans" => vec![charts::spans(findings, palette)],
            "heap" => vec![charts::heap(findings, palette)],
            "settled" => vec![charts::settled(findings, palette)],
            "cpu" => self.told().filter_map(|load| self.cpu(load)).collect(),
            "memory" => {
                let loads = self.told().filter(|load| !spans::is_point_only(findings, load));
                loads.map(|load| charts::memory(load, palette)).collect()
            }
            _ => {
                self.of_sweep(id).or_else(|| self.of_stairs(id)).unwrap_or_else(|| self.of_load(id))
            }
        }
    }

    /// Loads that are no cell.
    fn told(&self) -> impl Iterator<Item = &'a LoadFindings> {
        self.findings.loads.iter().filter(|load| load.cell.is_none())
    }

    fn of_sweep(&self, id: &str) -> Option<Vec<Markup>> {
        let (sweep, palette) = (self.sweep.as_ref()?, &self.palette);
        Some(match id {
            "overview" => [Metric::LatencyP50, Metric::LatencyP99]
                .into_iter()
                .filter_map(|metric| charts::cells(sweep, metric, palette))
                .collect(),
            "scaling" => vec![charts::scaling(sweep, palette)],
            "service-times" => vec![charts::service_times(sweep, palette)],
            _ => return None,
        })
    }

    fn of_stairs(&self, id: &str) -> Option<Vec<Markup>> {
        let palette = &self.palette;
        self.stairs.iter().find_map(|stairs| {
            let charts = [
                ("throughput", vec![charts::throughput_by_clients(stairs, palette)]),
                ("response", vec![charts::response(stairs, palette)]),
                ("cpu", self.cpu_of_stairs(stairs)),
            ];
            let (_, charts) = charts.into_iter().find(|(part, _)| stairs.id(part) == id)?;
            Some(charts.into_iter().flatten().collect())
        })
    }

    fn cpu_of_stairs(&self, stairs: &Stairs<'_>) -> Vec<Option<Markup>> {
        let Some((_, load)) = stairs.nearest() else { return vec![] };
        let (variants, palette) = (in_order(stairs, load), &self.palette);
        vec![
            charts::data_plane(load, &variants, palette),
            charts::application(load, &variants, palette),
            charts::data_plane_by_clients(stairs, palette),
        ]
    }

    /// Of `load-3` the effects and the latency, of `cell-3` the CPU too.
    fn of_load(&self, id: &str) -> Vec<Markup> {
        let index = |prefix: &str| id.strip_prefix(prefix)?.parse::<usize>().ok()?.checked_sub(1);
        let Some(at) = index("load-").or_else(|| index("cell-")) else { return vec![] };
        let Some(load) = self.findings.loads.get(at) else { return vec![] };
        let palette = &self.palette;
        let is_cell = load.cell.is_some();
        let charts = [
            charts::effects(load, leading(load.view), palette),
            self.latency(load),
            is_cell.then(|| self.cpu(load)).flatten(),
            // The others would fill the page with flat lines.
            (is_cell && self.leads(load)).then(|| charts::memory(load, palette)),
        ];
        charts.into_iter().flatten().collect()
    }

    fn leads(&self, load: &LoadFindings) -> bool {
        let largest = self.sweep.as_ref().map_or_else(Vec::new, Sweep::largest);
        let leading = if self.stairs.is_empty() { largest } else { nearest(&self.stairs) };
        leading.iter().any(|of| std::ptr::eq(*of, load))
    }

    fn is_first(&self, load: &LoadFindings) -> bool {
        primary(self.findings).is_some_and(|first| std::ptr::eq(first, load))
    }

    /// Unless the first screen has it.
    fn cpu(&self, load: &LoadFindings) -> Option<Markup> {
        (!self.is_first(load)).then(|| charts::cpu(load, &self.palette)).flatten()
    }

    fn latency(&self, load: &LoadFindings) -> Option<Markup> {
        let is_drawn = self.is_first(load) && self.findings.curve.is_none();
        (!is_drawn).then(|| charts::latency(load, &self.palette)).flatten()
    }
}

/// What the effects of a view are drawn of.
fn leading(view: View) -> &'static [Metric] {
    use Metric::{CpuPerRequest, LatencyP50, LatencyP90, LatencyP99, Throughput};
    match view {
        View::EqualRate => &[LatencyP50, LatencyP90, LatencyP99, CpuPerRequest],
        View::FlatOut => &[Throughput, LatencyP50, LatencyP99, CpuPerRequest],
        View::Users => &[Throughput, LatencyP50, LatencyP90, CpuPerRequest],
    }
}
