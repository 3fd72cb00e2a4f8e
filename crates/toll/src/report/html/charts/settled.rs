//! Discarded runs, slice by slice: throughput and CPU per request, one line a run in its variant's colour.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, path, rows};
use crate::analysis::findings::{Findings, Settled, SettledRun, SettledSlice};
use crate::report::figures::{Quantity, Scale};
use crate::report::html::palette::Palette;

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 150.0;
const HEIGHT: f64 = 176.0;

/// A chart of throughput and one of CPU per request, as far as there is something to draw.
pub(in crate::report::html) fn settled(findings: &Findings, palette: &Palette) -> Markup {
    let throughput = Drawing {
        id: "settled-throughput",
        title: "Discarded runs, throughput",
        quantity: Quantity::PerSecond,
        value: |slice| Some(slice.throughput_per_s),
    };
    let cpu = Drawing {
        id: "settled-cpu",
        title: "Discarded runs, CPU per request",
        quantity: Quantity::CpuTime,
        value: |slice| slice.cpu_per_request_us,
    };
    html! {
        @for drawing in [throughput, cpu] {
            @if let Some(chart) = drawing.chart(&findings.settled, palette) { (chart) }
        }
    }
}

/// What is drawn of each slice.
struct Drawing {
    id: &'static str,
    title: &'static str,
    quantity: Quantity,
    value: fn(&SettledSlice) -> Option<f64>,
}

impl Drawing {
    fn chart(&self, settled: &[Settled], palette: &Palette) -> Option<Markup> {
        let points = || settled.iter().flat_map(|s| &s.runs).flat_map(|run| self.points(run));
        let highest = points().map(|(_, value)| value).fold(0.0, f64::max);
        let last = points().map(|(at_s, _)| at_s).fold(0.0, f64::max);
        if highest <= 0.0 || last <= 0.0 {
            return None;
        }
        let scale = Scale::of(self.quantity, [highest]);
        let x = Axis::linear(0.0, last, LEFT, RIGHT);
        let y = Axis::linear(0.0, scale.in_unit(highest) * 1.05, BOTTOM, TOP);
        let place = |(at_s, value): (f64, f64)| (x.at(at_s), y.at(scale.in_unit(value)));
        let chart = Chart {
            id: self.id.into(),
            title: self.title.into(),
            note: format!("{} by seconds since the run began, one line a run", scale.unit()),
            describes: settled
                .iter()
                .map(|s| self.describes(s, scale))
                .collect::<Vec<_>>()
                .join(" "),
            height: HEIGHT,
            marks: html! {
                (rows(&y, 4, LEFT, RIGHT))
                (columns(&x, 6, BOTTOM, BOTTOM))
                @for variant in settled {
                    @for run in variant.runs.iter().filter(|run| self.points(run).count() > 1) {
                        path class=(format!("faint {}", palette.variant(&variant.variant))) d=(path(self.points(run).map(place))) {
                            title { (format!("{}, round {}", variant.variant, run.round)) }
                        }
                    }
                }
            },
            legend: settled
                .iter()
                .map(|s| (palette.variant(&s.variant), s.variant.clone()))
                .collect(),
        };
        Some(chart.render())
    }

    fn points<'a>(&self, run: &'a SettledRun) -> impl Iterator<Item = (f64, f64)> + 'a {
        let value = self.value;
        let point = move |slice: &SettledSlice| Some((slice.at_s, value(slice)?));
        run.slices
            .iter()
            .filter_map(point)
            .filter(|(at_s, value)| at_s.is_finite() && value.is_finite())
    }

    fn describes(&self, settled: &Settled, scale: Scale) -> String {
        let runs = settled.runs.iter().filter_map(|run| {
            let (_, first) = self.points(run).next()?;
            let (_, last) = self.points(run).last()?;
            Some(format!("from {} to {}", scale.with_unit(first), scale.with_unit(last)))
        });
        format!("{}: {}.", settled.variant, runs.collect::<Vec<_>>().join(", "))
    }
}
