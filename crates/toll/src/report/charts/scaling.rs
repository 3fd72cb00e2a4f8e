//! What grows with the pods: memory and CPU at each rate, a line a variant with its band, the cells as dots with
//! their intervals, where lines cross, and the largest size as predicted from the smaller ones.

use super::axes::Axes;
use crate::analysis::findings::{
    Crossing, Findings, HeldOut, ScaledQuantity, Scaling, ScalingPoint,
};
use crate::report::drawing::{
    Chart, Frame, Mark, Place, WIDTH, band, circle, group, line, path, plain_group, slug, text,
};
use crate::report::figures::reach;
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::subjects::scaling::{crossings_in_words, fitted, quantity, quantity_title};
use crate::report::wording::{capital, level, with_interval};

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 104.0, top: 18.0, bottom: 246.0 };
const HEIGHT: f64 = 272.0;
/// Predictions stand beside the dots of what was measured.
const ASIDE: f64 = 7.0;

/// A chart for each quantity and rate; those of one quantity on one scale, so that rates compare.
pub(in crate::report) fn scaling(findings: &Findings) -> Vec<Chart> {
    let mut charts = Vec::new();
    for quantity in [ScaledQuantity::Memory, ScaledQuantity::Cpu] {
        let of = |s: &&Scaling| s.quantity == quantity && is_drawable(s);
        let lines: Vec<&Scaling> = findings.scalings.iter().filter(of).collect();
        if let Some(plot) = Plot::over(&lines) {
            charts.extend(rates(&lines).into_iter().map(|rate| plot.chart(findings, &lines, rate)));
        }
    }
    charts
}

fn is_drawable(scaling: &Scaling) -> bool {
    let per_request = scaling.per_request.map_or(0.0, |e| e.value);
    [scaling.fixed.value, scaling.per_pod.value, per_request].iter().all(|v| v.is_finite())
        && points(scaling).next().is_some()
}

fn points(scaling: &Scaling) -> impl Iterator<Item = &ScalingPoint> {
    scaling.points.iter().filter(|p| p.measured.value.is_finite() && p.rate_per_s.is_finite())
}

/// Rates at which more than one size was measured.
fn rates(lines: &[&Scaling]) -> Vec<f64> {
    let all = || lines.iter().flat_map(|s| points(s));
    let mut rates: Vec<f64> = all().map(|p| p.rate_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let has_sizes = |rate: f64| {
        let mut sizes = all().filter(|p| p.rate_per_s == rate).map(|p| p.pods);
        let first = sizes.next();
        sizes.any(|pods| Some(pods) != first)
    };
    rates.retain(|rate| has_sizes(*rate));
    rates
}

/// What all charts of a quantity share.
struct Plot {
    axes: Axes,
    most: f64,
}

impl Plot {
    fn over(lines: &[&Scaling]) -> Option<Self> {
        let all = || lines.iter().flat_map(|s| points(s));
        let most = all().map(|p| p.pods as f64).fold(0.0, f64::max);
        let highest = all().map(|p| reach(p.measured).1.max(p.fitted)).fold(0.0, f64::max);
        let scale = Scale::of(quantity(lines.first()?.quantity), [highest]);
        let axes = Axes {
            x: FRAME.across(0.0, most * 1.04),
            y: FRAME.up(0.0, scale.in_unit(highest) * 1.06),
            scale,
        };
        (most > 0.0 && highest > 0.0).then_some(Self { axes, most })
    }

    fn chart(&self, findings: &Findings, all: &[&Scaling], rate: f64) -> Chart {
        let of = all[0];
        let name = quantity_title(of.quantity);
        let lines: Vec<Line<'_>> = all.iter().map(|s| Line { plot: self, of: s, rate }).collect();
        let is_drawn = |c: &&Crossing| {
            let is_here = c.quantity == of.quantity && c.rate_per_s.is_none_or(|r| r == rate);
            is_here && (0.0..=self.most).contains(&c.pods.value)
        };
        let crossings: Vec<&Crossing> = findings.crossings.iter().filter(is_drawn).collect();
        let at = verbatim(rate);
        Chart {
            id: format!("scaling-{}-{}", slug(name), slug(&at)),
            title: format!("{} by {} pods at {at} requests/s", capital(name), of.service),
            note: format!(
                "{}: the line fitted through all cells and its band; dots as measured with their {} interval; hollow: predicted from the smaller sizes; ringed: where lines cross",
                self.axes.scale.unit(),
                level(of.fixed)
            ),
            describes: lines
                .iter()
                .map(Line::describes)
                .chain(crossings.iter().map(|c| said(c)))
                .collect(),
            height: HEIGHT,
            marks: self.marks(&lines, &crossings),
            legend: vec![],
        }
    }

    fn marks(&self, lines: &[Line<'_>], crossings: &[&Crossing]) -> Vec<Mark> {
        let ends: Vec<(&str, Place)> =
            lines.iter().map(|l| (l.of.variant.as_str(), l.place(self.most))).collect();
        let names = FRAME.names(&ends, [8.0, 12.0]);
        let mut marks = [FRAME.rows(&self.axes.y, 5), FRAME.feet(&self.axes.x, 6)].concat();
        marks.extend(
            lines.iter().map(|line| group(&line.of.variant, line.band().into_iter().collect())),
        );
        marks.extend(lines.iter().zip(names).map(|(line, name)| {
            let drawn = path("line", [line.place(0.0), line.place(self.most)]);
            let dots = line.predictions().chain(line.dots());
            group(&line.of.variant, [drawn].into_iter().chain(name).chain(dots).collect())
        }));
        marks.extend(crossings.iter().filter_map(|crossing| {
            let line = lines.iter().find(|line| line.of.variant == crossing.above)?;
            Some(line.crossing(crossing))
        }));
        marks
    }
}

fn said(crossing: &Crossing) -> String {
    crossings_in_words(&[crossing]).into_iter().map(|said| said.sentence + ".").collect()
}

/// A variant at one rate.
struct Line<'a> {
    plot: &'a Plot,
    of: &'a Scaling,
    rate: f64,
}

impl<'a> Line<'a> {
    fn points(&self) -> impl Iterator<Item = &'a ScalingPoint> + use<'a> {
        let rate = self.rate;
        points(self.of).filter(move |p| p.rate_per_s == rate)
    }

    fn place(&self, pods: f64) -> Place {
        self.plot.axes.at(pods, fitted(self.of, pods, self.rate))
    }

    /// From size to size, as far as the fit tells of itself.
    fn band(&self) -> Option<Mark> {
        let known = |p: &'a ScalingPoint| {
            let (low, high) = p.band.filter(|(l, h)| l.is_finite() && h.is_finite())?;
            Some((p.pods, [low, high].map(|value| self.plot.axes.at(p.pods as f64, value))))
        };
        let mut ends: Vec<(usize, [Place; 2])> = self.points().filter_map(known).collect();
        ends.sort_by_key(|(pods, _)| *pods);
        let ends: Vec<[Place; 2]> = ends.into_iter().map(|(_, ends)| ends).collect();
        (ends.len() > 1).then(|| band(&ends))
    }

    fn dots(&self) -> impl Iterator<Item = Mark> {
        self.points().flat_map(move |point| {
            let what = format!("{}, {} pods", self.of.variant, point.pods);
            let x = self.plot.axes.x.at(point.pods as f64);
            self.plot.axes.point(x, point.measured, &what).whole("dot", 4.5)
        })
    }

    fn predictions(&self) -> impl Iterator<Item = Mark> {
        let held = self.of.held_out.iter().filter(|h| h.predicted.value.is_finite());
        let placed = held.filter_map(move |h| Some((h, self.points().find(|p| p.load == h.load)?)));
        placed.flat_map(move |(held, point): (&HeldOut, &ScalingPoint)| {
            let what = format!("{}, {} pods as predicted", self.of.variant, point.pods);
            let x = self.plot.axes.x.at(point.pods as f64) + ASIDE;
            self.plot.axes.point(x, held.predicted, &what).whole("hollow", 4.0)
        })
    }

    /// A leader up to the top, with the number of pods beside it.
    fn crossing(&self, crossing: &Crossing) -> Mark {
        let (x, y) = self.place(crossing.pods.value);
        let pods = Scale::of(Quantity::Pods, [crossing.pods.value]).plain(crossing.pods.value);
        let marks = vec![
            line("", [x, x], [y, FRAME.top]),
            circle("", (x, y), 6.5),
            text("tick", (x + 5.0, FRAME.top + 2.0), format!("{pods} pods")),
        ];
        plain_group("crossing", marks).titled(said(crossing))
    }

    fn describes(&self) -> String {
        let figure = |of| with_interval(self.plot.axes.scale, of);
        let point = |p: &ScalingPoint| format!("{} pods {}", p.pods, figure(p.measured));
        let points: Vec<String> = self.points().map(point).collect();
        format!("{}: {}.", self.of.variant, points.join(", "))
    }
}
