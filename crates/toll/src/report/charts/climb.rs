//! Throughput, or CPU of the data plane for a request, against clients: a line a variant with its band over the steps,
//! labelled at its end.

use super::axes::Axes;
use crate::analysis::findings::{Estimate, StaircaseLine, StaircaseStep};
use crate::report::drawing::{
    Axis, Chart, Curve, Frame, Mark, Point, WIDTH, column, group, named_ends,
};
use crate::report::figures::reach;
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::staircase::{Stairs, several_clients};
use crate::report::wording::with_interval;

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 122.0, top: 14.0, bottom: 292.0 };
const HEIGHT: f64 = 318.0;
/// Labels of the axis that are nearer than this would touch.
const LABEL_WIDTH: f64 = 20.0;

/// Throughput.
pub(in crate::report) fn throughput_by_clients(stairs: &Stairs<'_>) -> Option<Chart> {
    let of = Shows {
        id: "climb",
        title: "Throughput against clients",
        quantity: Quantity::PerSecond,
        of: |step| Some(step.throughput_per_s),
    };
    of.chart(stairs)
}

/// CPU of the data plane for a request.
pub(in crate::report) fn data_plane_by_clients(stairs: &Stairs<'_>) -> Option<Chart> {
    let of = Shows {
        id: "data-plane-climb",
        title: "CPU per request of the data plane against clients",
        quantity: Quantity::CpuTime,
        of: |step| step.mesh_cpu_us,
    };
    of.chart(stairs)
}

/// What is drawn of each step.
struct Shows {
    id: &'static str,
    title: &'static str,
    quantity: Quantity,
    of: fn(&StaircaseStep) -> Option<Estimate>,
}

impl Shows {
    fn chart(&self, stairs: &Stairs<'_>) -> Option<Chart> {
        let all = stairs.of.lines.iter().flat_map(|line| self.steps(line));
        let highest = all.map(|(_, of)| reach(of).1).fold(0.0, f64::max);
        let most = f64::from(*stairs.clients().last()?);
        if highest <= 0.0 || most <= 0.0 {
            return None;
        }
        let scale = Scale::of(self.quantity, [highest]);
        let y = FRAME.up(0.0, scale.in_unit(highest) * 1.04);
        let axes = Axes { x: FRAME.across(0.0, most), y, scale };
        let curve = |line: &'_ StaircaseLine| -> Vec<Point> {
            let point = |(clients, of): (u32, Estimate)| {
                let what = format!("{}, {}", line.variant, several_clients(clients));
                axes.point(axes.x.at(f64::from(clients)), of, &what)
            };
            self.steps(line).map(point).collect()
        };
        let drawn = stairs.of.lines.iter().filter(|line| self.steps(line).next().is_some());
        let describes = |line: &StaircaseLine| {
            let step = |(clients, of): (u32, Estimate)| {
                format!("{} with {}", with_interval(scale, of), several_clients(clients))
            };
            let steps: Vec<String> = self.steps(line).map(step).collect();
            format!("{}: {}.", line.variant, steps.join(", "))
        };
        let curves: Vec<Curve<'_>> = drawn
            .clone()
            .map(|line| Curve { variant: &line.variant, points: curve(line) })
            .collect();
        let marks = [FRAME.rows(&axes.y, 5), labels(stairs, &axes.x), lines(&curves)].concat();
        Some(Chart {
            id: stairs.id(self.id),
            title: stairs.title(self.title),
            note: format!("{}; band the interval over the rounds", scale.unit()),
            describes: drawn.map(describes).collect(),
            height: HEIGHT,
            marks,
            legend: vec![],
        })
    }

    /// Those that can be drawn.
    fn steps(&self, line: &StaircaseLine) -> impl Iterator<Item = (u32, Estimate)> {
        let steps =
            line.steps.iter().filter_map(move |step| Some((step.connections, (self.of)(step)?)));
        steps.filter(|(_, of)| of.value.is_finite())
    }
}

/// Bands below all lines, so that none hides another variant's.
fn lines(curves: &[Curve<'_>]) -> Vec<Mark> {
    let band = |curve: &Curve<'_>| {
        let band = (curve.points.len() > 1).then(|| curve.band());
        group(curve.variant, band.into_iter().collect())
    };
    let names = FRAME.names(&named_ends(curves), [8.0, 12.0]);
    let line = |(curve, name): (&Curve<'_>, [Mark; 2])| {
        let dots = curve.points.iter().map(|point| point.dot("dot", 3.5));
        group(curve.variant, [curve.line()].into_iter().chain(name).chain(dots).collect())
    };
    curves.iter().map(band).chain(curves.iter().zip(names).map(line)).collect()
}

/// A label at each step, unless it would overlap the one before.
fn labels(stairs: &Stairs<'_>, axis: &Axis) -> Vec<Mark> {
    let mut placed: Vec<f64> = Vec::new();
    let mut marks = Vec::new();
    for clients in stairs.clients() {
        let x = axis.at(f64::from(clients));
        if placed.last().is_none_or(|last| x - last >= LABEL_WIDTH) {
            placed.push(x);
            marks.extend(column(x, clients.to_string(), FRAME.bottom, FRAME.bottom));
        }
    }
    marks
}
