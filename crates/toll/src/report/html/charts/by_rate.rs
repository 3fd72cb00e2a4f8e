//! Latency, or CPU per request, against the rate: a line a variant, with its knee marked. The band is the interval; p99
//! is dashed.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, columns, path, px, rows, short};
use crate::analysis::findings::{
    Curve, CurveLine, CurvePointAtRate, Estimate, LoadFindings, Metric,
};
use crate::report::content::value_of;
use crate::report::figures::{Quantity, Scale, rounded};
use crate::report::html::palette::Palette;
use crate::report::wording::ends;

const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 92.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 208.0;
const HEIGHT: f64 = 244.0;
/// A span of more than this factor needs a logarithmic axis.
const LINEAR_SPAN: f64 = 8.0;
/// An interval that reaches further than so many times the largest figure would flatten the lines: it is cut.
const MOST: f64 = 2.0;

type Part = fn(&CurvePointAtRate) -> Option<Estimate>;

/// p50 and p99; `load` is where the variants are compared.
pub(in crate::report::html) fn latency_by_rate(
    curve: &Curve,
    load: &LoadFindings,
    palette: &Palette,
) -> Option<Markup> {
    let throughput = load.variants.first().and_then(|v| value_of(v, Metric::Throughput));
    let of =
        Shows { parts: vec![|p| Some(p.p50_us), |p| Some(p.p99_us)], quantity: Quantity::Time };
    let plot = Plot::of(curve, of, throughput)?;
    let growth = if plot.is_log { "logarithmic" } else { "linear" };
    let cut = if plot.is_cut { "; intervals that reach further are cut (▴)" } else { "" };
    Some(plot.chart(
        curve,
        palette,
        "latency-by-rate",
        "Latency against rate",
        format!(
            "{} ({growth}); p50 solid with its interval, p99 dashed, knee ringed{cut}",
            plot.scale.unit()
        ),
    ))
}

/// CPU per request.
pub(in crate::report::html) fn cpu_by_rate(curve: &Curve, palette: &Palette) -> Option<Markup> {
    let of = Shows { parts: vec![|p| p.cpu_us], quantity: Quantity::CpuTime };
    let plot = Plot::of(curve, of, None)?;
    let cut = if plot.is_cut { "; intervals that reach further are cut (▴)" } else { "" };
    Some(plot.chart(
        curve,
        palette,
        "cpu-by-rate",
        "CPU per request against rate",
        format!("{} with its interval, knee ringed{cut}", plot.scale.unit()),
    ))
}

/// What is drawn of each rate: the first as a solid line with its band, the second dashed.
struct Shows {
    parts: Vec<Part>,
    quantity: Quantity,
}

struct Plot {
    parts: Vec<Part>,
    x: Axis,
    y: Axis,
    scale: Scale,
    is_log: bool,
    is_cut: bool,
    /// The highest value on the axis, microseconds.
    highest: f64,
    /// The rate at which the variants are compared.
    compared_at: Option<f64>,
}

impl Plot {
    /// None without a point that can be drawn.
    fn of(curve: &Curve, shows: Shows, compared_at: Option<f64>) -> Option<Self> {
        let points = || curve.lines.iter().flat_map(|line| &line.points);
        let values = || {
            shows
                .parts
                .iter()
                .flat_map(move |part| points().filter_map(part))
                .filter(|e| is_drawn(*e))
        };
        let largest = values().map(|e| e.value).fold(0.0, f64::max);
        let reach =
            values().map(|e| ends(e).map_or(e.value, |(_, high)| high)).fold(largest, f64::max);
        let highest = reach.min(largest * MOST);
        let lowest = values().map(|e| e.value).fold(largest, f64::min);
        let fastest = points().map(|p| p.rate_per_s).filter(|r| r.is_finite()).fold(0.0, f64::max);
        if largest <= 0.0 || fastest <= 0.0 {
            return None;
        }
        let drawn: Vec<f64> = values().map(|e| e.value).collect();
        let scale = Scale::of(shows.quantity, [highest]).with_decimals_for(drawn);
        let is_log = highest / lowest > LINEAR_SPAN;
        let y = if is_log {
            Axis::log(scale.in_unit(lowest * 0.8), scale.in_unit(highest), BOTTOM, TOP)
        } else {
            Axis::linear(0.0, scale.in_unit(highest), BOTTOM, TOP)
        };
        let x = Axis::linear(0.0, fastest * 1.02, LEFT, RIGHT);
        Some(Self {
            parts: shows.parts,
            x,
            y,
            scale,
            is_log,
            is_cut: reach > highest,
            highest,
            compared_at,
        })
    }

    fn chart(
        &self,
        curve: &Curve,
        palette: &Palette,
        id: &str,
        title: &str,
        note: String,
    ) -> Markup {
        let describes: Vec<String> = curve.lines.iter().map(|line| self.describes(line)).collect();
        let chart = Chart {
            id: id.into(),
            title: title.into(),
            note,
            describes: describes.join(" "),
            height: HEIGHT,
            marks: self.marks(curve, palette),
            legend: vec![],
        };
        chart.render()
    }

    fn marks(&self, curve: &Curve, palette: &Palette) -> Markup {
        let drawn: Vec<&CurveLine> = curve.lines.iter().filter(|l| self.end(l).is_some()).collect();
        let ends: Vec<f64> = drawn.iter().filter_map(|l| self.end(l)).map(|(_, y)| y).collect();
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            (columns(&self.x, 4, TOP, BOTTOM))
            text.tick x=(px((LEFT + RIGHT) / 2.0)) y=(px(HEIGHT - 2.0)) text-anchor="middle" { "requests/s" }
            @if let Some(rate) = self.compared_at.filter(|r| r.is_finite()) { (self.compared(rate)) }
            @for (line, y) in drawn.iter().zip(apart(&ends, BOTTOM)) {
                g class=(palette.variant(&line.variant)) { (self.line(line)) (self.label(line, y)) }
            }
        }
    }

    /// Where the variants are compared.
    fn compared(&self, rate: f64) -> Markup {
        let x = self.x.at(rate);
        html! {
            line.at x1=(px(x)) x2=(px(x)) y1=(px(TOP - 6.0)) y2=(px(BOTTOM)) {}
            text.tick x=(px(x + 5.0)) y=(px(TOP - 2.0)) { (rounded(rate)) "/s" }
        }
    }

    fn line(&self, line: &CurveLine) -> Markup {
        let solid = self.points(line, self.parts[0]);
        let dashed = self.parts.get(1).map(|part| self.points(line, *part)).unwrap_or_default();
        html! {
            path.band d=(self.band(line)) {}
            path.line d=(path(solid.iter().map(|(x, y, _)| (*x, *y)))) {}
            @if !dashed.is_empty() { path.line.dashed d=(path(dashed.iter().map(|(x, y, _)| (*x, *y)))) {} }
            @for (x, y, point) in &solid {
                circle class=(if point.carried { "dot" } else { "dot hollow" }) cx=(px(*x)) cy=(px(*y)) r="3" { title { (self.says(line, point)) } }
            }
            @for (x, y, _) in solid.iter().filter(|(.., p)| Some(p.rate_per_s) == line.knee_per_s) {
                circle.knee cx=(px(*x)) cy=(px(*y)) r="7" {}
            }
            @for x in self.cut(line) { path.arrow d=(format!("M{} {}l4 7l-8 0Z", px(x), px(TOP))) {} }
        }
    }

    fn label(&self, line: &CurveLine, y: f64) -> Markup {
        let (x, end) = self.end(line).unwrap_or((RIGHT, y));
        html! {
            path.leader d=(path([(x, end), (RIGHT + 8.0, y)])) {}
            text.label x=(px(RIGHT + 11.0)) y=(px(y + 4.5)) { (short(&line.variant)) }
        }
    }

    fn points<'c>(&self, line: &'c CurveLine, part: Part) -> Vec<(f64, f64, &'c CurvePointAtRate)> {
        let point = |p: &'c CurvePointAtRate| {
            let of = part(p).filter(|e| is_drawn(*e))?;
            Some((self.x.at(p.rate_per_s), self.y.at(self.scale.in_unit(of.value)), p))
        };
        line.points.iter().filter_map(point).collect()
    }

    fn end(&self, line: &CurveLine) -> Option<(f64, f64)> {
        self.points(line, self.parts[0]).last().map(|(x, y, _)| (*x, *y))
    }

    fn band(&self, line: &CurveLine) -> String {
        let of = |p: &CurvePointAtRate| {
            let estimate = (self.parts[0])(p).filter(|e| is_drawn(*e))?;
            let (low, high) = ends(estimate).unwrap_or((estimate.value, estimate.value));
            let y = |us: f64| self.y.at(self.scale.in_unit(us));
            Some((self.x.at(p.rate_per_s), y(low), y(high)))
        };
        let all: Vec<(f64, f64, f64)> = line.points.iter().filter_map(of).collect();
        let up = all.iter().map(|(x, _, high)| (*x, *high));
        let down = all.iter().rev().map(|(x, low, _)| (*x, *low));
        path(up.chain(down)) + "Z"
    }

    /// Where the band leaves the drawing.
    fn cut(&self, line: &CurveLine) -> Vec<f64> {
        let leaves = |p: &&CurvePointAtRate| {
            let of = (self.parts[0])(p).and_then(ends);
            of.is_some_and(|(_, high)| high > self.highest)
        };
        line.points.iter().filter(leaves).map(|p| self.x.at(p.rate_per_s)).collect()
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
        format!(
            "{} at {}\u{a0}requests/s: {}",
            line.variant,
            rounded(point.rate_per_s),
            figures.join(", ")
        )
    }

    fn describes(&self, line: &CurveLine) -> String {
        let said: Vec<String> = line.points.iter().map(|p| self.says(line, p)).collect();
        format!("{}.", said.join("; "))
    }
}

fn is_drawn(of: Estimate) -> bool {
    of.value.is_finite() && of.value > 0.0
}
