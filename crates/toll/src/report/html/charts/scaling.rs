//! What grows with the pods: memory and CPU at each rate, a line a variant with its band, the cells as dots with
//! their intervals, where lines cross, and the largest size as predicted from the smaller ones.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, columns, path, px, rows, short, slug};
use crate::analysis::findings::{
    Crossing, Estimate, HeldOut, ScaledQuantity, Scaling, ScalingPoint,
};
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::html::palette::Palette;
use crate::report::sweep::{Sweep, fitted, level, quantity, quantity_title, told_crossings};
use crate::report::wording::{ends, interval};

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 104.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 246.0;
const HEIGHT: f64 = 272.0;
/// Predictions stand beside the dots of what was measured.
const ASIDE: f64 = 7.0;

/// A chart for each quantity and rate; those of one quantity on one scale, so that rates compare.
pub(in crate::report::html) fn scaling(sweep: &Sweep<'_>, palette: &Palette) -> Markup {
    let charts = [ScaledQuantity::Memory, ScaledQuantity::Cpu].into_iter().flat_map(|quantity| {
        let of = |s: &&Scaling| s.quantity == quantity && is_drawable(s);
        let lines: Vec<&Scaling> = sweep.findings.scalings.iter().filter(of).collect();
        let rates = rates(&lines);
        rates.into_iter().filter_map(move |rate| Some((Plot::over(&lines)?, rate, lines.clone())))
    });
    html! {
        @for (plot, rate, lines) in charts {
            (plot.chart(&lines, rate, &sweep.findings.crossings, palette))
        }
    }
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
    let sizes = |rate: f64| {
        let mut sizes: Vec<usize> =
            all().filter(|p| p.rate_per_s == rate).map(|p| p.pods).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    };
    rates.retain(|rate| sizes(*rate) > 1);
    rates
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

/// The axes that all charts of a quantity share.
struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    most: f64,
}

impl Plot {
    fn over(lines: &[&Scaling]) -> Option<Self> {
        let all = || lines.iter().flat_map(|s| points(s));
        let most = all().map(|p| p.pods as f64).fold(0.0, f64::max);
        let highest = all().map(|p| reach(p.measured).1.max(p.fitted)).fold(0.0, f64::max);
        let scale = Scale::of(quantity(lines.first()?.quantity), [highest]);
        (most > 0.0 && highest > 0.0).then(|| Self {
            x: Axis::linear(0.0, most * 1.04, LEFT, RIGHT),
            y: Axis::linear(0.0, scale.in_unit(highest) * 1.06, BOTTOM, TOP),
            scale,
            most,
        })
    }

    fn chart(
        &self,
        lines: &[&Scaling],
        rate: f64,
        crossings: &[Crossing],
        palette: &Palette,
    ) -> Markup {
        let of = lines[0];
        let name = quantity_title(of.quantity);
        let drawn: Vec<Line<'_>> = lines.iter().map(|s| Line { plot: self, of: s, rate }).collect();
        let crossings: Vec<&Crossing> = crossings
            .iter()
            .filter(|c| c.quantity == of.quantity && c.rate_per_s.is_none_or(|r| r == rate))
            .filter(|c| (0.0..=self.most).contains(&c.pods.value))
            .collect();
        let chart = Chart {
            id: format!("scaling-{}-{}", slug(name), slug(&verbatim(rate))),
            title: format!(
                "{} by {} pods at {} requests/s",
                capital(name),
                of.service,
                verbatim(rate)
            ),
            note: format!(
                "{}: the line fitted through all cells and its band; dots as measured with their {} interval; hollow: predicted from the smaller sizes; ringed: where lines cross",
                self.scale.unit(),
                level(of.fixed)
            ),
            describes: drawn
                .iter()
                .map(Line::describes)
                .chain(crossings.iter().map(|c| said(c)))
                .collect::<Vec<_>>()
                .join(" "),
            height: HEIGHT,
            marks: self.marks(&drawn, &crossings, palette),
            legend: vec![],
        };
        chart.render()
    }

    fn marks(&self, lines: &[Line<'_>], crossings: &[&Crossing], palette: &Palette) -> Markup {
        let labels = apart(&lines.iter().map(|l| l.end().1).collect::<Vec<_>>(), BOTTOM);
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            (columns(&self.x, 6, BOTTOM, BOTTOM))
            @for line in lines { g class=(palette.variant(&line.of.variant)) { (line.band()) } }
            @for (line, y) in lines.iter().zip(labels) {
                g class=(palette.variant(&line.of.variant)) {
                    path.line d=(path(line.ends())) {}
                    @let (x, end) = line.end();
                    path.leader d=(path([(x, end), (RIGHT + 8.0, y)])) {}
                    text.label x=(px(RIGHT + 12.0)) y=(px(y + 4.5)) { (short(&line.of.variant)) }
                    (line.predictions())
                    (line.dots())
                }
            }
            @for crossing in crossings {
                @if let Some(line) = lines.iter().find(|l| l.of.variant == crossing.above) { (line.crossing(crossing)) }
            }
        }
    }

    fn at(&self, pods: f64, value: f64) -> (f64, f64) {
        (self.x.at(pods), self.y.at(self.scale.in_unit(value)))
    }

    fn interval(&self, x: f64, (low, high): (f64, f64)) -> Markup {
        let y = |value: f64| px(self.y.at(self.scale.in_unit(value)));
        html! { line.interval x1=(px(x)) x2=(px(x)) y1=(y(low)) y2=(y(high)) {} }
    }

    /// `1,390 MiB (1,380 to 1,400)`.
    fn figure(&self, estimate: Estimate) -> String {
        let (unit, interval) =
            (self.scale.with_unit(estimate.value), interval(self.scale, estimate));
        format!("{unit} ({interval})")
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn said(crossing: &Crossing) -> String {
    told_crossings(&[crossing]).into_iter().map(|said| said.sentence + ".").collect()
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

    fn place(&self, pods: f64) -> (f64, f64) {
        self.plot.at(pods, fitted(self.of, pods, self.rate))
    }

    fn ends(&self) -> [(f64, f64); 2] {
        [self.place(0.0), self.end()]
    }

    fn end(&self) -> (f64, f64) {
        self.place(self.plot.most)
    }

    /// From size to size, as far as the fit tells of itself.
    fn band(&self) -> Markup {
        let known = |p: &ScalingPoint| {
            let (low, high) = p.band.filter(|(l, h)| l.is_finite() && h.is_finite())?;
            Some((p.pods as f64, low, high))
        };
        let mut ends: Vec<(f64, f64, f64)> = self.points().filter_map(known).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let up = ends.iter().map(|(pods, _, high)| self.plot.at(*pods, *high));
        let down = ends.iter().rev().map(|(pods, low, _)| self.plot.at(*pods, *low));
        html! {
            @if ends.len() > 1 { path.band d=(path(up.chain(down)) + "Z") {} }
        }
    }

    fn dots(&self) -> Markup {
        html! {
            @for point in self.points() {
                @let (x, y) = self.plot.at(point.pods as f64, point.measured.value);
                (self.plot.interval(x, reach(point.measured)))
                circle.dot cx=(px(x)) cy=(px(y)) r="4.5" {
                    title { (format!("{}, {} pods: {}", self.of.variant, point.pods, self.plot.figure(point.measured))) }
                }
            }
        }
    }

    fn predictions(&self) -> Markup {
        let held = self.of.held_out.iter().filter(|h| h.predicted.value.is_finite());
        let placed = held.filter_map(|h| Some((h, self.points().find(|p| p.load == h.load)?)));
        html! { @for (held, point) in placed { (self.prediction(held, point.pods)) } }
    }

    fn prediction(&self, held: &HeldOut, pods: usize) -> Markup {
        let (x, y) = self.plot.at(pods as f64, held.predicted.value);
        let x = x + ASIDE;
        html! {
            (self.plot.interval(x, reach(held.predicted)))
            circle.hollow cx=(px(x)) cy=(px(y)) r="4" {
                title { (format!("{}, {pods} pods as predicted: {}", self.of.variant, self.plot.figure(held.predicted))) }
            }
        }
    }

    /// A leader up to where there is room for the number of pods.
    fn crossing(&self, crossing: &Crossing) -> Markup {
        let (x, y) = self.place(crossing.pods.value);
        let pods = Scale::of(Quantity::Pods, [crossing.pods.value]).plain(crossing.pods.value);
        html! {
            g.crossing {
                title { (said(crossing)) }
                line x1=(px(x)) x2=(px(x)) y1=(px(y)) y2=(px(TOP)) {}
                circle cx=(px(x)) cy=(px(y)) r="6.5" {}
                text.tick x=(px(x + 5.0)) y=(px(TOP + 2.0)) { (pods) " pods" }
            }
        }
    }

    fn describes(&self) -> String {
        let point = |p: &ScalingPoint| format!("{} pods {}", p.pods, self.plot.figure(p.measured));
        let points: Vec<String> = self.points().map(point).collect();
        format!("{}: {}.", self.of.variant, points.join(", "))
    }
}
