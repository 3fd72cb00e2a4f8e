//! Latency by percentile, one line a variant, with a band from the lowest to the highest round.

use crate::analysis::findings::{CurvePoint, LoadFindings, VariantLoad};
use crate::report::drawing::{
    Chart, Curve, Frame, Ink, Mark, Point, WIDTH, column, group, named_ends, slug,
};
use crate::report::figures::{Quantity, Scale};

const FRAME: Frame = Frame { left: 46.0, right: WIDTH - 118.0, top: 12.0, bottom: 208.0 };
const HEIGHT: f64 = 232.0;
/// A span of more than this factor between lowest and highest needs a logarithmic axis.
const LINEAR_SPAN: f64 = 15.0;
/// Beyond this the tail is one request.
const LAST_QUANTILE: f64 = 0.999_999;

/// The chart.
pub(in crate::report) fn latency(load: &LoadFindings) -> Option<Chart> {
    let lines: Vec<Line<'_>> = load.variants.iter().filter_map(Line::of).collect();
    let points = || lines.iter().flat_map(|l| &l.points);
    let highest = points().map(|p| p.high_us).fold(0.0, f64::max);
    let lowest = points().map(|p| p.low_us).fold(highest, f64::min);
    if highest <= 0.0 {
        return None;
    }
    let scale = Scale::of(Quantity::Time, [highest]);
    let is_log = lowest > 0.0 && highest / lowest > LINEAR_SPAN;
    let y = match is_log {
        true => FRAME.log_up(scale.in_unit(lowest), scale.in_unit(highest)),
        false => FRAME.up(0.0, scale.in_unit(highest)),
    };
    let tail = points().map(|p| tail_position(p.quantile)).fold(1.0, f64::max);
    let x = FRAME.across(0.0, tail);
    let named = NAMED.iter().filter(|(quantile, _)| tail_position(*quantile) <= tail + 1e-6);
    let columns = named.flat_map(|(quantile, label)| {
        column(x.at(tail_position(*quantile)), *label, FRAME.top, FRAME.bottom)
    });
    let curve = |line: &Line<'_>| -> Vec<Point> {
        let point = |p: &CurvePoint| {
            let height = |us: f64| y.at(scale.in_unit(us));
            let at = (x.at(tail_position(p.quantile)), height(p.merged_us));
            let ends = [height(p.low_us), height(p.high_us)];
            Point { at, ends, says: line.says(p, scale) }
        };
        line.points.iter().map(point).collect()
    };
    let curves: Vec<Curve<'_>> =
        lines.iter().map(|line| Curve { variant: line.variant, points: curve(line) }).collect();
    let dots = lines.iter().zip(&curves).flat_map(|(line, curve)| {
        let named =
            line.points.iter().zip(&curve.points).filter(|(p, _)| label(p.quantile).is_some());
        named.map(|(_, point)| point.dot("dot", 3.5).inked(Ink::of(line.variant)))
    });
    let growth = if is_log { "logarithmic" } else { "linear" };
    Some(Chart {
        id: format!("latency-{}", slug(&load.name)),
        title: format!("Latency by percentile, {}", load.name),
        note: format!(
            "{} ({growth}) by percentile of requests; the band spans the rounds",
            scale.unit()
        ),
        describes: lines.iter().map(|line| line.describes(scale)).collect(),
        height: HEIGHT,
        marks: FRAME
            .rows(&y, 5)
            .into_iter()
            .chain(columns)
            .chain(bands_and_lines(&curves))
            .chain(dots)
            .collect(),
        legend: vec![],
    })
}

fn bands_and_lines(curves: &[Curve<'_>]) -> Vec<Mark> {
    let bands = curves.iter().map(|curve| curve.band().inked(Ink::of(curve.variant)));
    let names = FRAME.names(&named_ends(curves), [10.0, 14.0]);
    let lines = curves.iter().zip(names).map(|(curve, name)| {
        let marks = [curve.line()].into_iter().chain(name);
        group(curve.variant, marks.collect()).titled(curve.variant)
    });
    bands.chain(lines).collect()
}

/// What of a variant's curve can be drawn.
struct Line<'a> {
    variant: &'a str,
    points: Vec<CurvePoint>,
}

impl<'a> Line<'a> {
    fn of(variant: &'a VariantLoad) -> Option<Self> {
        let known = |p: &&CurvePoint| {
            [p.quantile, p.merged_us, p.low_us, p.high_us].iter().all(|v| v.is_finite())
                && (0.0..=LAST_QUANTILE).contains(&p.quantile)
        };
        let points: Vec<CurvePoint> = variant.latency_curve.iter().filter(known).copied().collect();
        (!points.is_empty()).then_some(Self { variant: &variant.variant, points })
    }

    fn says(&self, point: &CurvePoint, scale: Scale) -> String {
        let [at, low, high] =
            [point.merged_us, point.low_us, point.high_us].map(|us| scale.with_unit(us));
        let percentile = label(point.quantile).unwrap_or_default();
        format!("{}, p{percentile}: {at} (rounds {low} to {high})", self.variant)
    }

    fn describes(&self, scale: Scale) -> String {
        let at = |quantile: f64| {
            let near = |p: &&CurvePoint| (p.quantile - quantile).abs() < 1e-6;
            self.points.iter().find(near).map(|p| scale.with_unit(p.merged_us))
        };
        match (at(0.5), at(0.99)) {
            (Some(p50), Some(p99)) => format!("{}: p50 {p50}, p99 {p99}.", self.variant),
            _ => format!("{}.", self.variant),
        }
    }
}

/// Every further nine takes the same width.
fn tail_position(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
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

fn label(quantile: f64) -> Option<&'static str> {
    NAMED.iter().find(|(q, _)| (q - quantile).abs() < 1e-9).map(|(_, label)| *label)
}
