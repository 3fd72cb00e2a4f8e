//! What tracing adds to CPU per request by the number of spans: the effects with their intervals, and the line
//! through them, whose slope is what a span costs.

use super::axes::Axes;
use crate::analysis::findings::{Findings, SpanCosts, SpanPoint};
use crate::report::drawing::{Axis, Chart, Frame, Ink, Mark, WIDTH, group, line, path, slug};
use crate::report::figures::reach;
use crate::report::subjects::spans::{of_whom, price, scale};
use crate::report::wording::with_interval;

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 18.0, top: 14.0, bottom: 226.0 };
const HEIGHT: f64 = 252.0;

/// A chart for all pods together and one for each, on one scale, so that they compare.
pub(in crate::report) fn spans(findings: &Findings) -> Vec<Chart> {
    let Some(plot) = Plot::over(findings) else { return vec![] };
    let mut services: Vec<&Option<String>> = Vec::new();
    for costs in &findings.span_costs {
        if !services.contains(&&costs.service) {
            services.push(&costs.service);
        }
    }
    let of_service = |service: &Option<String>| {
        let drawn = drawable(findings).filter(|costs| costs.service == *service);
        let lines: Vec<&SpanCosts> = drawn.collect();
        (!lines.is_empty()).then(|| plot.chart(&lines, &findings.baseline))
    };
    services.into_iter().filter_map(of_service).collect()
}

fn drawable(findings: &Findings) -> impl Iterator<Item = &SpanCosts> {
    findings.span_costs.iter().filter(|costs| {
        costs.per_span_us.value.is_finite()
            && costs.per_request_us.value.is_finite()
            && points(costs).next().is_some()
    })
}

fn points(costs: &SpanCosts) -> impl Iterator<Item = &SpanPoint> {
    costs.points.iter().filter(|p| p.effect_us.value.is_finite())
}

/// What the line of a variant says of so many spans.
fn on_line(costs: &SpanCosts, spans: f64) -> f64 {
    costs.per_request_us.value + costs.per_span_us.value * spans
}

/// What all charts share.
struct Plot {
    axes: Axes,
    most: f64,
}

impl Plot {
    fn over(findings: &Findings) -> Option<Self> {
        let scale = scale(findings);
        let drawn = || drawable(findings);
        let most = drawn().flat_map(points).map(|p| p.spans as f64).fold(0.0, f64::max);
        let ends = |costs: &SpanCosts| {
            let estimates = points(costs).map(|p| p.effect_us).chain([costs.per_request_us]);
            let ends = estimates.map(reach).flat_map(|(low, high)| [low, high]);
            ends.chain([on_line(costs, most)]).collect::<Vec<f64>>()
        };
        let (low, high) = drawn()
            .flat_map(ends)
            .map(|us| scale.in_unit(us))
            .fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
        let axes = Axes {
            x: Axis::linear(0.0, most * 1.04, FRAME.left + 8.0, FRAME.right),
            y: FRAME.up(low * 1.05, high * 1.05),
            scale,
        };
        (most > 0.0 && high > low).then_some(Self { axes, most })
    }

    fn chart(&self, lines: &[&SpanCosts], baseline: &str) -> Chart {
        let first = lines[0];
        let (of, unit) = (of_whom(first), self.axes.scale.unit());
        let whose = match first.service {
            None => "its number of spans".to_owned(),
            Some(_) => format!("the spans that {of} adds to it"),
        };
        let zero = self.axes.height(0.0);
        let zero = line("zero", [FRAME.left, FRAME.right], [zero, zero]);
        let grid = [FRAME.rows(&self.axes.y, 5), FRAME.feet(&self.axes.x, 7), vec![zero]].concat();
        let price = |l: &&SpanCosts| format!("{}: {}", l.variant, price(l));
        Chart {
            id: format!("spans-{}", slug(first.service.as_deref().unwrap_or("all"))),
            title: format!("CPU per request by number of spans, {of}"),
            note: format!(
                "{unit} of CPU for each request more than {baseline}, by {whose}; the hollow dot is the line at no spans"
            ),
            describes: lines.iter().map(|l| self.describes(l)).collect(),
            height: HEIGHT,
            marks: grid.into_iter().chain(lines.iter().map(|l| self.line(l))).collect(),
            legend: lines.iter().map(|l| (Ink::of(&l.variant), price(l))).collect(),
        }
    }

    fn line(&self, costs: &SpanCosts) -> Mark {
        let end = |spans: f64| self.axes.at(spans, on_line(costs, spans));
        let point = |spans: f64, of, what: &str| {
            self.axes.point(self.axes.x.at(spans), of, &format!("{}, {what}", costs.variant))
        };
        let whatever = point(0.0, costs.per_request_us, "whatever its spans");
        let dots = points(costs)
            .flat_map(|p| point(p.spans as f64, p.effect_us, &p.load).whole("dot", 5.0));
        let line = path("line", [end(0.0), end(self.most)]);
        let marks = [line].into_iter().chain(whatever.whole("hollow", 4.5)).chain(dots);
        group(&costs.variant, marks.collect())
    }

    fn describes(&self, costs: &SpanCosts) -> String {
        let figure = |of| with_interval(self.axes.scale, of);
        let point = |p: &SpanPoint| format!("{} spans {}", p.spans, figure(p.effect_us));
        let points: Vec<String> = points(costs).map(point).collect();
        let (variant, price, each) = (&costs.variant, price(costs), figure(costs.per_request_us));
        format!("{variant}: {price}; whatever its spans {each}; {}.", points.join(", "))
    }
}
