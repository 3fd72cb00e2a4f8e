//! Throughput, or CPU of the data plane for a request, against clients: a line a variant with its band over the steps,
//! labelled at its end.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, column, path, px, rows, short};
use crate::analysis::findings::{Estimate, StaircaseLine, StaircaseStep};
use crate::report::figures::{Quantity, Scale};
use crate::report::html::palette::Palette;
use crate::report::staircase::{Stairs, several_clients};
use crate::report::wording::{ends, interval};

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 122.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 292.0;
const HEIGHT: f64 = 318.0;
/// Labels of the axis that are nearer than this would touch.
const LABEL_WIDTH: f64 = 20.0;

/// Throughput; none without a step that can be drawn.
pub(in crate::report::html) fn throughput_by_clients(
    stairs: &Stairs<'_>,
    palette: &Palette,
) -> Option<Markup> {
    let of = Shows {
        id: "climb",
        title: "Throughput against clients",
        quantity: Quantity::PerSecond,
        of: |step| Some(step.throughput_per_s),
    };
    of.chart(stairs, palette)
}

/// CPU of the data plane for a request; none where no variant has one.
pub(in crate::report::html) fn data_plane_by_clients(
    stairs: &Stairs<'_>,
    palette: &Palette,
) -> Option<Markup> {
    let of = Shows {
        id: "data-plane-climb",
        title: "CPU per request of the data plane against clients",
        quantity: Quantity::CpuTime,
        of: |step| step.mesh_cpu_us,
    };
    of.chart(stairs, palette)
}

/// What is drawn of each step.
struct Shows {
    id: &'static str,
    title: &'static str,
    quantity: Quantity,
    of: fn(&StaircaseStep) -> Option<Estimate>,
}

impl Shows {
    fn chart(self, stairs: &Stairs<'_>, palette: &Palette) -> Option<Markup> {
        let lines: Vec<Line> = stairs.of.lines.iter().filter_map(|line| self.line(line)).collect();
        let plot = Plot::over(stairs, &lines, self.quantity)?;
        let chart = Chart {
            id: stairs.id(self.id),
            title: stairs.title(self.title),
            note: format!("{}; band the interval over the rounds", plot.scale.unit()),
            describes: lines.iter().map(|line| plot.describes(line)).collect::<Vec<_>>().join(" "),
            height: HEIGHT,
            marks: plot.marks(&lines, palette),
            legend: vec![],
        };
        Some(chart.render())
    }

    /// None without a step that can be drawn.
    fn line(&self, line: &StaircaseLine) -> Option<Line> {
        let point = |step: &StaircaseStep| {
            let of = (self.of)(step).filter(|of| of.value.is_finite())?;
            Some(Point { clients: step.connections, of })
        };
        let points: Vec<Point> = line.steps.iter().filter_map(point).collect();
        (!points.is_empty()).then(|| Line { variant: line.variant.clone(), points })
    }
}

/// What a variant shows over the steps.
struct Line {
    variant: String,
    points: Vec<Point>,
}

#[derive(Clone, Copy)]
struct Point {
    clients: u32,
    of: Estimate,
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    /// Where the axis is labelled: at the steps that ran.
    clients: Vec<u32>,
}

impl Plot {
    fn over(stairs: &Stairs<'_>, lines: &[Line], quantity: Quantity) -> Option<Self> {
        let clients = stairs.clients();
        let all = lines.iter().flat_map(|line| &line.points);
        let highest = all.map(|point| reach(point.of).1).fold(0.0, f64::max);
        let most = f64::from(*clients.last()?);
        let scale = Scale::of(quantity, [highest]);
        (highest > 0.0 && most > 0.0).then(|| Self {
            x: Axis::linear(0.0, most, LEFT, RIGHT),
            y: Axis::linear(0.0, scale.in_unit(highest) * 1.04, BOTTOM, TOP),
            scale,
            clients,
        })
    }

    fn at(&self, point: &Point, value: f64) -> (f64, f64) {
        (self.x.at(f64::from(point.clients)), self.y.at(self.scale.in_unit(value)))
    }

    fn place(&self, point: &Point) -> (f64, f64) {
        self.at(point, point.of.value)
    }

    fn end(&self, line: &Line) -> (f64, f64) {
        line.points.last().map_or((RIGHT, BOTTOM), |point| self.place(point))
    }

    fn marks(&self, lines: &[Line], palette: &Palette) -> Markup {
        let ends: Vec<f64> = lines.iter().map(|line| self.end(line).1).collect();
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            @for (x, label) in self.labels() { (column(x, &label, BOTTOM, BOTTOM)) }
            // Bands below all lines, so that none hides another variant's.
            @for line in lines { g class=(palette.variant(&line.variant)) { (self.band(line)) } }
            @for (line, y) in lines.iter().zip(apart(&ends, BOTTOM)) {
                g class=(palette.variant(&line.variant)) {
                    path.line d=(path(line.points.iter().map(|point| self.place(point)))) {}
                    path.leader d=(path([self.end(line), (RIGHT + 8.0, y)])) {}
                    text.label x=(px(RIGHT + 12.0)) y=(px(y + 4.5)) { (short(&line.variant)) }
                    @for point in &line.points { (self.dot(line, point)) }
                }
            }
        }
    }

    /// A label at each step, as far as they leave room for each other.
    fn labels(&self) -> Vec<(f64, String)> {
        let mut placed: Vec<(f64, String)> = Vec::new();
        for clients in &self.clients {
            let x = self.x.at(f64::from(*clients));
            if placed.last().is_none_or(|(last, _)| x - last >= LABEL_WIDTH) {
                placed.push((x, clients.to_string()));
            }
        }
        placed
    }

    fn band(&self, line: &Line) -> Markup {
        let up = line.points.iter().map(|point| self.at(point, reach(point.of).1));
        let down = line.points.iter().rev().map(|point| self.at(point, reach(point.of).0));
        html! { @if line.points.len() > 1 { path.band d=(path(up.chain(down)) + "Z") {} } }
    }

    fn dot(&self, line: &Line, point: &Point) -> Markup {
        let (x, y) = self.place(point);
        let clients = several_clients(point.clients);
        html! {
            circle.dot cx=(px(x)) cy=(px(y)) r="3.5" {
                title { (format!("{}, {clients}: {}", line.variant, self.figure(point))) }
            }
        }
    }

    /// `804 requests/s (788 to 820)`.
    fn figure(&self, point: &Point) -> String {
        let of = point.of;
        format!("{} ({})", self.scale.with_unit(of.value), interval(self.scale, of))
    }

    fn describes(&self, line: &Line) -> String {
        let point = |p: &Point| format!("{} with {}", self.figure(p), several_clients(p.clients));
        let points: Vec<String> = line.points.iter().map(point).collect();
        format!("{}: {}.", line.variant, points.join(", "))
    }
}
