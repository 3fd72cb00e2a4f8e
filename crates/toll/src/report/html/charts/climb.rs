//! Throughput against clients: a line a variant with its band over the steps, labelled at its end.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, column, path, px, rows, short};
use crate::analysis::findings::{Estimate, StaircaseLine, StaircaseStep};
use crate::report::figures::{Quantity, Scale};
use crate::report::html::palette::Palette;
use crate::report::staircase::{Stairs, several_clients};
use crate::report::wording::{ends, interval};

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 108.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 292.0;
const HEIGHT: f64 = 318.0;
/// Labels of the axis that are nearer than this would touch.
const LABEL_WIDTH: f64 = 20.0;

/// The chart; none without a step that can be drawn.
pub(in crate::report::html) fn climb(stairs: &Stairs<'_>, palette: &Palette) -> Option<Markup> {
    let plot = Plot::over(stairs)?;
    let lines: Vec<&StaircaseLine> =
        stairs.of.lines.iter().filter(|line| points(line).next().is_some()).collect();
    let chart = Chart {
        id: stairs.id("climb"),
        title: stairs.title("Throughput against clients"),
        note: format!("{}; band the interval over the blocks", plot.scale.unit()),
        describes: lines.iter().map(|line| plot.describes(line)).collect::<Vec<_>>().join(" "),
        height: HEIGHT,
        marks: plot.marks(&lines, palette),
        legend: vec![],
    };
    Some(chart.render())
}

/// The steps that can be drawn.
fn points(line: &StaircaseLine) -> impl Iterator<Item = &StaircaseStep> {
    line.steps.iter().filter(|step| step.throughput_per_s.value.is_finite())
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
    fn over(stairs: &Stairs<'_>) -> Option<Self> {
        let clients = stairs.clients();
        let all = || stairs.of.lines.iter().flat_map(points);
        let highest = all().map(|step| reach(step.throughput_per_s).1).fold(0.0, f64::max);
        let most = f64::from(*clients.last()?);
        (highest > 0.0 && most > 0.0).then(|| Self {
            x: Axis::linear(0.0, most, LEFT, RIGHT),
            y: Axis::linear(0.0, highest * 1.04, BOTTOM, TOP),
            scale: Scale::of(Quantity::PerSecond, [highest]),
            clients,
        })
    }

    fn at(&self, step: &StaircaseStep, value: f64) -> (f64, f64) {
        (self.x.at(f64::from(step.connections)), self.y.at(value))
    }

    fn place(&self, step: &StaircaseStep) -> (f64, f64) {
        self.at(step, step.throughput_per_s.value)
    }

    fn end(&self, line: &StaircaseLine) -> (f64, f64) {
        points(line).last().map_or((RIGHT, BOTTOM), |step| self.place(step))
    }

    fn marks(&self, lines: &[&StaircaseLine], palette: &Palette) -> Markup {
        let ends: Vec<f64> = lines.iter().map(|line| self.end(line).1).collect();
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            @for (x, label) in self.labels() { (column(x, &label, BOTTOM, BOTTOM)) }
            // Bands below all lines, so that none hides another variant's.
            @for line in lines { g class=(palette.variant(&line.variant)) { (self.band(line)) } }
            @for (line, y) in lines.iter().zip(apart(&ends, BOTTOM)) {
                g class=(palette.variant(&line.variant)) {
                    path.line d=(path(points(line).map(|step| self.place(step)))) {}
                    path.leader d=(path([self.end(line), (RIGHT + 8.0, y)])) {}
                    text.label x=(px(RIGHT + 12.0)) y=(px(y + 4.5)) { (short(&line.variant)) }
                    @for step in points(line) { (self.dot(line, step)) }
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

    fn band(&self, line: &StaircaseLine) -> Markup {
        let up = points(line).map(|step| self.at(step, reach(step.throughput_per_s).1));
        let steps: Vec<&StaircaseStep> = points(line).collect();
        let down = steps.iter().rev().map(|step| self.at(step, reach(step.throughput_per_s).0));
        html! { @if steps.len() > 1 { path.band d=(path(up.chain(down)) + "Z") {} } }
    }

    fn dot(&self, line: &StaircaseLine, step: &StaircaseStep) -> Markup {
        let (x, y) = self.place(step);
        let clients = several_clients(step.connections);
        html! {
            circle.dot cx=(px(x)) cy=(px(y)) r="3.5" {
                title { (format!("{}, {clients}: {}", line.variant, self.figure(step))) }
            }
        }
    }

    /// `804 requests/s (788 to 820)`.
    fn figure(&self, step: &StaircaseStep) -> String {
        let of = step.throughput_per_s;
        format!("{} ({})", self.scale.with_unit(of.value), interval(self.scale, of))
    }

    fn describes(&self, line: &StaircaseLine) -> String {
        let point = |s: &StaircaseStep| {
            format!("{} with {}", self.figure(s), several_clients(s.connections))
        };
        let points: Vec<String> = points(line).map(point).collect();
        format!("{}: {}.", line.variant, points.join(", "))
    }
}
