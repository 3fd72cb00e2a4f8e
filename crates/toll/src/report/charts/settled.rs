//! Discarded runs, slice by slice: throughput and CPU per request, one line a run in its variant's colour.

use crate::analysis::findings::{Findings, Settled, SettledRun, SettledSlice};
use crate::report::drawing::{Chart, Frame, Ink, WIDTH, path};
use crate::report::figures::{Quantity, Scale};

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 14.0, top: 12.0, bottom: 150.0 };
const HEIGHT: f64 = 176.0;

/// A chart of throughput and one of CPU per request, as far as there is something to draw.
pub(in crate::report) fn settled(findings: &Findings) -> Vec<Chart> {
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
    [throughput, cpu].iter().filter_map(|drawing| drawing.chart(&findings.settled)).collect()
}

/// What is drawn of each slice.
struct Drawing {
    id: &'static str,
    title: &'static str,
    quantity: Quantity,
    value: fn(&SettledSlice) -> Option<f64>,
}

impl Drawing {
    fn chart(&self, settled: &[Settled]) -> Option<Chart> {
        let points = || settled.iter().flat_map(|s| &s.runs).flat_map(|run| self.points(run));
        let highest = points().map(|(_, value)| value).fold(0.0, f64::max);
        let last = points().map(|(at_s, _)| at_s).fold(0.0, f64::max);
        if highest <= 0.0 || last <= 0.0 {
            return None;
        }
        let scale = Scale::of(self.quantity, [highest]);
        let x = FRAME.across(0.0, last);
        let y = FRAME.up(0.0, scale.in_unit(highest) * 1.05);
        let place = |(at_s, value): (f64, f64)| (x.at(at_s), y.at(scale.in_unit(value)));
        let line = |variant: &str, run: &SettledRun| {
            let line = path("faint", self.points(run).map(place)).inked(Ink::of(variant));
            line.titled(format!("{variant}, round {}", run.round))
        };
        let mut marks = [FRAME.rows(&y, 4), FRAME.feet(&x, 6)].concat();
        for Settled { variant, runs, .. } in settled {
            let drawn = runs.iter().filter(|run| self.points(run).count() > 1);
            marks.extend(drawn.map(|run| line(variant, run)));
        }
        Some(Chart {
            id: self.id.into(),
            title: self.title.into(),
            note: format!("{} by seconds since the run began, one line a run", scale.unit()),
            describes: settled.iter().map(|of| self.describes(of, scale)).collect(),
            height: HEIGHT,
            marks,
            legend: settled.iter().map(|of| (Ink::of(&of.variant), of.variant.clone())).collect(),
        })
    }

    fn points(&self, run: &SettledRun) -> impl Iterator<Item = (f64, f64)> {
        let points =
            run.slices.iter().filter_map(move |slice| Some((slice.at_s, (self.value)(slice)?)));
        points.filter(|(at_s, value)| at_s.is_finite() && value.is_finite())
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
