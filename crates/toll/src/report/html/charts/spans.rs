//! What tracing adds to CPU per request by the number of spans: the effects with their intervals, and the line
//! through them, whose slope is what a span costs.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, path, px, rows, slug};
use crate::analysis::findings::{Estimate, Findings, SpanCosts, SpanPoint};
use crate::report::content::in_first_order;
use crate::report::figures::Scale;
use crate::report::html::palette::Palette;
use crate::report::spans::{WHOLE, of_whom, price, scale};
use crate::report::wording::{ends, interval};

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 226.0;
const HEIGHT: f64 = 252.0;

/// A chart for all pods together and one for each, on one scale, so that they compare.
pub(in crate::report::html) fn spans(findings: &Findings, palette: &Palette) -> Markup {
    let Some(plot) = Plot::over(findings) else { return html! {} };
    let all = in_first_order(findings.span_costs.iter().map(|costs| costs.of.as_str()));
    html! {
        @for of in all {
            @let lines: Vec<&SpanCosts> = findings.span_costs.iter().filter(|c| c.of == of).filter(|c| is_drawable(c)).collect();
            @if !lines.is_empty() { (plot.chart(&lines, &findings.baseline, palette)) }
        }
    }
}

fn is_drawable(costs: &SpanCosts) -> bool {
    costs.per_span_us.value.is_finite()
        && costs.per_request_us.value.is_finite()
        && points(costs).next().is_some()
}

fn points(costs: &SpanCosts) -> impl Iterator<Item = &SpanPoint> {
    costs.points.iter().filter(|p| p.effect_us.value.is_finite())
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

/// The axes that all charts share.
struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    most: f64,
}

impl Plot {
    fn over(findings: &Findings) -> Option<Self> {
        let scale = scale(findings);
        let drawn = || findings.span_costs.iter().filter(|costs| is_drawable(costs));
        let most = drawn().flat_map(points).map(|p| p.spans as f64).fold(0.0, f64::max);
        let ends = |costs: &SpanCosts| {
            let last = costs.per_request_us.value + costs.per_span_us.value * most;
            let at_zero = reach(costs.per_request_us);
            let effects: Vec<f64> =
                points(costs).map(|p| reach(p.effect_us)).flat_map(|(l, h)| [l, h]).collect();
            effects.into_iter().chain([last, at_zero.0, at_zero.1])
        };
        let (low, high) = drawn()
            .flat_map(ends)
            .map(|us| scale.in_unit(us))
            .fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        (most > 0.0 && high > low).then(|| Self {
            x: Axis::linear(0.0, most * 1.04, LEFT + 8.0, RIGHT),
            y: Axis::linear(low * 1.05, high * 1.05, BOTTOM, TOP),
            scale,
            most,
        })
    }

    fn chart(&self, lines: &[&SpanCosts], baseline: &str, palette: &Palette) -> Markup {
        let of = of_whom(lines[0]);
        let unit = self.scale.unit();
        let whose = if lines[0].of == WHOLE {
            "its number of spans".to_owned()
        } else {
            format!("the spans that {of} adds to it")
        };
        let chart = Chart {
            id: format!("spans-{}", slug(&lines[0].of)),
            title: format!("CPU per request by number of spans, {of}"),
            note: format!(
                "{unit} of CPU for each request more than {baseline}, by {whose}; the hollow dot is the line at no spans"
            ),
            describes: lines.iter().map(|l| self.describes(l)).collect::<Vec<_>>().join(" "),
            height: HEIGHT,
            marks: self.marks(lines, palette),
            legend: lines
                .iter()
                .map(|l| (palette.variant(&l.variant), format!("{}: {}", l.variant, price(l))))
                .collect(),
        };
        chart.render()
    }

    fn marks(&self, lines: &[&SpanCosts], palette: &Palette) -> Markup {
        let zero = self.y.at(0.0);
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            (columns(&self.x, 7, BOTTOM, BOTTOM))
            line.zero x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(zero)) y2=(px(zero)) {}
            @for line in lines { g class=(palette.variant(&line.variant)) { (self.line(line)) } }
        }
    }

    fn line(&self, costs: &SpanCosts) -> Markup {
        let on_line = |spans: f64| {
            let us = costs.per_request_us.value + costs.per_span_us.value * spans;
            (self.x.at(spans), self.y.at(self.scale.in_unit(us)))
        };
        let (x, at_zero) = on_line(0.0);
        html! {
            path.line d=(path([on_line(0.0), on_line(self.most)])) {}
            (self.interval(x, costs.per_request_us))
            circle.hollow cx=(px(x)) cy=(px(at_zero)) r="4.5" {
                title { (format!("{}, whatever its spans: {}", costs.variant, self.figure(costs.per_request_us))) }
            }
            @for point in points(costs) {
                @let x = self.x.at(point.spans as f64);
                (self.interval(x, point.effect_us))
                circle.dot cx=(px(x)) cy=(px(self.y.at(self.scale.in_unit(point.effect_us.value)))) r="5" {
                    title { (format!("{}, {}: {}", costs.variant, point.load, self.figure(point.effect_us))) }
                }
            }
        }
    }

    fn interval(&self, x: f64, estimate: Estimate) -> Markup {
        let (low, high) = reach(estimate);
        let y = |us: f64| px(self.y.at(self.scale.in_unit(us)));
        html! { line.interval x1=(px(x)) x2=(px(x)) y1=(y(low)) y2=(y(high)) {} }
    }

    /// `187 µs (170 to 204)`.
    fn figure(&self, estimate: Estimate) -> String {
        format!("{} ({})", self.scale.with_unit(estimate.value), interval(self.scale, estimate))
    }

    fn describes(&self, costs: &SpanCosts) -> String {
        let point = |p: &SpanPoint| format!("{} spans {}", p.spans, self.figure(p.effect_us));
        let points: Vec<String> = points(costs).map(point).collect();
        let each = self.figure(costs.per_request_us);
        let (variant, price) = (&costs.variant, price(costs));
        format!("{variant}: {price}; whatever its spans {each}; {}.", points.join(", "))
    }
}
