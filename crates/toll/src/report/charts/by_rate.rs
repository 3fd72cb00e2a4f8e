//! Latency, or CPU per request, against the rate: a line a variant, with its knee marked. The band is the interval; p99
//! is dashed.

use crate::analysis::findings::{
    Curve, CurveLine, CurvePointAtRate, Estimate, LoadFindings, Metric,
};
use crate::report::drawing::{
    Axis, Chart, Frame, Mark, Place, WIDTH, arrow, band, circle, columns, group, line, path, text,
};
use crate::report::figures::{Quantity, Scale, rounded};
use crate::report::figures::{ends, reach};
use crate::report::values::value_of;

const FRAME: Frame = Frame { left: 40.0, right: WIDTH - 92.0, top: 16.0, bottom: 208.0 };
const HEIGHT: f64 = 244.0;
/// A span of more than this factor needs a logarithmic axis.
const LINEAR_SPAN: f64 = 8.0;
/// An interval that reaches further than so many times the largest figure would flatten the lines: it is cut.
const MOST: f64 = 2.0;

type Part = fn(&CurvePointAtRate) -> Option<Estimate>;

/// p50 and p99; `load` is where the variants are compared.
pub(in crate::report) fn latency_by_rate(curve: &Curve, load: &LoadFindings) -> Option<Chart> {
    let parts: Vec<Part> = vec![|p| Some(p.p50_us), |p| Some(p.p99_us)];
    let plot = Plot::of(curve, parts, Quantity::Time)?;
    let growth = if plot.is_log { "logarithmic" } else { "linear" };
    let note = format!("({growth}); p50 solid with its interval, p99 dashed, knee ringed");
    let compared_at = load.variants.first().and_then(|v| value_of(v, Metric::Throughput));
    Some(plot.chart("latency-by-rate", "Latency against rate", &note, compared_at))
}

/// CPU per request.
pub(in crate::report) fn cpu_by_rate(curve: &Curve) -> Option<Chart> {
    let plot = Plot::of(curve, vec![|p| p.cpu_us], Quantity::CpuTime)?;
    let note = "with its interval, knee ringed";
    Some(plot.chart("cpu-by-rate", "CPU per request against rate", note, None))
}

struct Plot<'a> {
    curve: &'a Curve,
    /// What is drawn of each rate: the first as a solid line with its band, the second dashed.
    parts: Vec<Part>,
    x: Axis,
    y: Axis,
    scale: Scale,
    is_log: bool,
    is_cut: bool,
    /// The highest value on the axis, microseconds.
    highest: f64,
}

impl<'a> Plot<'a> {
    /// None without a point that can be drawn.
    fn of(curve: &'a Curve, parts: Vec<Part>, quantity: Quantity) -> Option<Self> {
        let points = || curve.lines.iter().flat_map(|line| &line.points);
        let drawn: Vec<Estimate> =
            parts.iter().flat_map(|part| points().filter_map(move |p| drawn(*part, p))).collect();
        let values = || drawn.iter().map(|e| e.value);
        let largest = values().fold(0.0, f64::max);
        let reach = drawn.iter().map(|e| reach(*e).1).fold(largest, f64::max);
        let highest = reach.min(largest * MOST);
        let lowest = values().fold(largest, f64::min);
        let fastest = points().map(|p| p.rate_per_s).filter(|r| r.is_finite()).fold(0.0, f64::max);
        if largest <= 0.0 || fastest <= 0.0 {
            return None;
        }
        let scale = Scale::of(quantity, [highest]).with_decimals_for(values());
        let is_log = highest / lowest > LINEAR_SPAN;
        let y = match is_log {
            true => FRAME.log_up(scale.in_unit(lowest * 0.8), scale.in_unit(highest)),
            false => FRAME.up(0.0, scale.in_unit(highest)),
        };
        let x = FRAME.across(0.0, fastest * 1.02);
        Some(Self { curve, parts, x, y, scale, is_log, is_cut: reach > highest, highest })
    }

    /// With a mark at the rate at which the variants are compared.
    fn chart(&self, id: &str, title: &str, note: &str, compared_at: Option<f64>) -> Chart {
        let cut = if self.is_cut { "; intervals that reach further are cut (▴)" } else { "" };
        let middle = f64::midpoint(FRAME.left, FRAME.right);
        let unit = text("tick", (middle, HEIGHT - 2.0), "requests/s").anchored("middle");
        let compared = compared_at.filter(|rate| rate.is_finite()).map(|rate| self.compared(rate));
        let lines: Vec<(&CurveLine, Place)> =
            self.curve.lines.iter().filter_map(|line| Some((line, self.end(line)?))).collect();
        let ends: Vec<(&str, Place)> =
            lines.iter().map(|(line, end)| (line.variant.as_str(), *end)).collect();
        let names = FRAME.names(&ends, [8.0, 11.0]);
        let mut marks =
            [FRAME.rows(&self.y, 5), columns(&self.x, 4, FRAME.top, FRAME.bottom)].concat();
        marks.extend([unit].into_iter().chain(compared.into_iter().flatten()));
        marks.extend(lines.iter().zip(names).map(|((line, _), name)| {
            group(&line.variant, self.line(line).into_iter().chain(name).collect())
        }));
        Chart {
            id: id.into(),
            title: title.into(),
            note: format!("{} {note}{cut}", self.scale.unit()),
            describes: self.curve.lines.iter().map(|line| self.describes(line)).collect(),
            height: HEIGHT,
            marks,
            legend: vec![],
        }
    }

    /// Where the variants are compared.
    fn compared(&self, rate: f64) -> [Mark; 2] {
        let x = self.x.at(rate);
        let said = text("tick", (x + 5.0, FRAME.top - 2.0), format!("{}/s", rounded(rate)));
        [line("at", [x, x], [FRAME.top - 6.0, FRAME.bottom]), said]
    }

    fn line(&self, line: &CurveLine) -> Vec<Mark> {
        let places = |part: Part| self.points(line, part).into_iter().map(|(place, _)| place);
        let interval = |(at, point): &(Place, &CurvePointAtRate)| {
            let (low, high) = drawn(self.parts[0], point).map_or((0.0, 0.0), reach);
            [low, high].map(|us| (at.0, self.height(us)))
        };
        let solid = self.points(line, self.parts[0]);
        let mut marks = vec![
            band(&solid.iter().map(interval).collect::<Vec<_>>()),
            path("line", places(self.parts[0])),
        ];
        let dashed: Vec<Place> = self.parts.get(1).map_or_else(Vec::new, |p| places(*p).collect());
        marks.extend((!dashed.is_empty()).then(|| path("line dashed", dashed)));
        marks.extend(solid.iter().map(|(at, point)| {
            let class = if point.carried { "dot" } else { "dot hollow" };
            circle(class, *at, 3.0).titled(self.says(line, point))
        }));
        let knees = solid.iter().filter(|(_, point)| Some(point.rate_per_s) == line.knee_per_s);
        marks.extend(knees.map(|(at, _)| circle("knee", *at, 7.0)));
        // Where the band leaves the drawing.
        let leaves = |point: &&CurvePointAtRate| {
            let ends = (self.parts[0])(point).and_then(ends);
            ends.is_some_and(|(_, high)| high > self.highest)
        };
        let cut = line.points.iter().filter(leaves);
        marks.extend(cut.map(|point| arrow((self.x.at(point.rate_per_s), FRAME.top))));
        marks
    }

    fn points<'c>(&self, line: &'c CurveLine, part: Part) -> Vec<(Place, &'c CurvePointAtRate)> {
        let place = |p: &'c CurvePointAtRate| {
            Some(((self.x.at(p.rate_per_s), self.height(drawn(part, p)?.value)), p))
        };
        line.points.iter().filter_map(place).collect()
    }

    fn height(&self, us: f64) -> f64 {
        self.y.at(self.scale.in_unit(us))
    }

    fn end(&self, line: &CurveLine) -> Option<Place> {
        self.points(line, self.parts[0]).last().map(|(place, _)| *place)
    }

    /// `istio at 540 requests/s: 2.08 ms (2.02 to 2.14), 3.79 ms`.
    fn says(&self, line: &CurveLine, point: &CurvePointAtRate) -> String {
        let figure = |part: &Part| {
            let of = part(point)?;
            let ends = ends(of)
                .map(|(l, h)| format!(" ({} to {})", self.scale.plain(l), self.scale.plain(h)));
            Some(self.scale.with_unit(of.value) + &ends.unwrap_or_default())
        };
        let figures: Vec<String> = self.parts.iter().filter_map(figure).collect();
        let rate = rounded(point.rate_per_s);
        format!("{} at {rate}\u{a0}requests/s: {}", line.variant, figures.join(", "))
    }

    fn describes(&self, line: &CurveLine) -> String {
        let said: Vec<String> = line.points.iter().map(|p| self.says(line, p)).collect();
        format!("{}.", said.join("; "))
    }
}

/// What can be drawn of a point.
fn drawn(part: Part, point: &CurvePointAtRate) -> Option<Estimate> {
    part(point).filter(|of| of.value.is_finite() && of.value > 0.0)
}
