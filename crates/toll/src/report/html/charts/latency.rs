//! Latency by percentile, one line a variant, with a band from the lowest to the highest round.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, column, path, px, rows, short};
use crate::analysis::findings::{CurvePoint, LoadFindings};
use crate::report::figures::{Quantity, Scale};
use crate::report::html::palette::Palette;

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 118.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 208.0;
const HEIGHT: f64 = 232.0;
/// A span of more than this factor between lowest and highest needs a logarithmic axis.
const LINEAR_SPAN: f64 = 15.0;
/// Beyond this the tail is one request.
const LAST_QUANTILE: f64 = 0.999_999;

/// The chart; none without a curve.
pub(in crate::report::html) fn latency(load: &LoadFindings, palette: &Palette) -> Option<Markup> {
    let lines = lines(load, palette);
    let points = || lines.iter().flat_map(|l| &l.points);
    let highest = points().map(|p| p.high_us).fold(0.0, f64::max);
    let lowest = points().map(|p| p.low_us).fold(highest, f64::min);
    if points().next().is_none() || highest <= 0.0 {
        return None;
    }
    let scale = Scale::of(Quantity::Time, [highest]);
    let log = lowest > 0.0 && highest / lowest > LINEAR_SPAN;
    let y = if log {
        Axis::log(scale.in_unit(lowest), scale.in_unit(highest), BOTTOM, TOP)
    } else {
        Axis::linear(0.0, scale.in_unit(highest), BOTTOM, TOP)
    };
    let tail = points().map(|p| tail_position(p.quantile)).fold(1.0, f64::max);
    let plot = Plot { x: Axis::linear(0.0, tail, LEFT, RIGHT), y, scale, tail };
    let unit = scale.unit();
    let growth = if log { "logarithmic" } else { "linear" };
    let chart = Chart {
        id: format!("latency-{}", super::frame::slug(&load.name)),
        title: format!("Latency by percentile, {}", load.name),
        note: format!("{unit} ({growth}) by percentile of requests; the band spans the rounds"),
        describes: describes(&lines, scale),
        height: HEIGHT,
        marks: plot.marks(&lines),
        legend: vec![],
    };
    Some(chart.render())
}

struct Line {
    name: String,
    class: String,
    points: Vec<CurvePoint>,
}

fn lines(load: &LoadFindings, palette: &Palette) -> Vec<Line> {
    let known = |p: &&CurvePoint| {
        [p.quantile, p.merged_us, p.low_us, p.high_us].iter().all(|v| v.is_finite())
            && (0.0..=LAST_QUANTILE).contains(&p.quantile)
    };
    load.variants
        .iter()
        .map(|v| Line {
            name: v.variant.clone(),
            class: palette.variant(&v.variant),
            points: v.latency_curve.iter().filter(known).copied().collect(),
        })
        .filter(|l| !l.points.is_empty())
        .collect()
}

/// Every further nine takes the same width.
fn tail_position(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

fn describes(lines: &[Line], scale: Scale) -> String {
    let at = |line: &Line, q: f64| {
        let near = |p: &&CurvePoint| (p.quantile - q).abs() < 1e-6;
        line.points.iter().find(near).map(|p| scale.with_unit(p.merged_us))
    };
    let part = |line: &Line| match (at(line, 0.5), at(line, 0.99)) {
        (Some(p50), Some(p99)) => format!("{}: p50 {p50}, p99 {p99}.", line.name),
        _ => format!("{}.", line.name),
    };
    lines.iter().map(part).collect::<Vec<_>>().join(" ")
}

struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    /// Where the horizontal axis ends, see [`tail_position`].
    tail: f64,
}

impl Plot {
    fn marks(&self, lines: &[Line]) -> Markup {
        let ends: Vec<f64> = lines.iter().map(|l| self.end(l).1).collect();
        let labels = apart(&ends, BOTTOM);
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            @for (quantile, label) in self.percentiles() {
                (column(self.x.at(tail_position(quantile)), label, TOP, BOTTOM))
            }
            @for line in lines { path class=(format!("band {}", line.class)) d=(self.band(line)) {} }
            @for (line, y) in lines.iter().zip(labels) {
                @let (x, end) = self.end(line);
                g class=(line.class) {
                    title { (line.name) }
                    path.line d=(path(line.points.iter().map(|p| self.point(p, p.merged_us)))) {}
                    path.leader d=(path([(x, end), (RIGHT + 10.0, y)])) {}
                    text.label x=(px(RIGHT + 14.0)) y=(px(y + 4.5)) { (short(&line.name)) }
                }
            }
            @for line in lines { @for p in &line.points { @if is_named(p.quantile) { (self.dot(line, p)) } } }
        }
    }

    fn point(&self, point: &CurvePoint, us: f64) -> (f64, f64) {
        (self.x.at(tail_position(point.quantile)), self.y.at(self.scale.in_unit(us)))
    }

    fn end(&self, line: &Line) -> (f64, f64) {
        line.points.last().map_or((RIGHT, BOTTOM), |p| self.point(p, p.merged_us))
    }

    fn band(&self, line: &Line) -> String {
        let up = line.points.iter().map(|p| self.point(p, p.high_us));
        let down = line.points.iter().rev().map(|p| self.point(p, p.low_us));
        path(up.chain(down)) + "Z"
    }

    fn dot(&self, line: &Line, point: &CurvePoint) -> Markup {
        let (x, y) = self.point(point, point.merged_us);
        let [at, low, high] =
            [point.merged_us, point.low_us, point.high_us].map(|us| self.scale.with_unit(us));
        html! {
            circle class=(format!("dot {}", line.class)) cx=(px(x)) cy=(px(y)) r="3.5" {
                title { (format!("{}, p{}: {at} (rounds {low} to {high})", line.name, percentile(point.quantile))) }
            }
        }
    }

    fn percentiles(&self) -> impl Iterator<Item = (f64, &'static str)> {
        let tail = self.tail + 1e-6;
        NAMED.into_iter().filter(move |(q, _)| tail_position(*q) <= tail)
    }
}

/// Percentiles that the axis names.
const NAMED: [(f64, &str); 6] = [
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
];

fn is_named(quantile: f64) -> bool {
    NAMED.iter().any(|(q, _)| (q - quantile).abs() < 1e-9)
}

fn percentile(quantile: f64) -> String {
    let label = NAMED.iter().find(|(q, _)| (q - quantile).abs() < 1e-9);
    label.map_or_else(String::new, |(_, label)| (*label).into())
}
