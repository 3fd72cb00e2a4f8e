//! Median service time against the rate on a logarithmic axis, one line a variant: they fall together.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, apart, column, path, px, rows, short, slug};
use crate::analysis::findings::{Estimate, ServiceTimeCurve, ServiceTimes};
use crate::report::figures::{Quantity, Scale, verbatim};
use crate::report::html::palette::Palette;
use crate::report::sweep::Sweep;
use crate::report::wording::{ends, interval};

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 104.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 206.0;
const HEIGHT: f64 = 232.0;

/// A chart a size that had loads of several rates.
pub(in crate::report::html) fn service_times(sweep: &Sweep<'_>, palette: &Palette) -> Markup {
    let all = &sweep.findings.service_times;
    html! {
        @for (i, times) in all.iter().enumerate() {
            @if let Some(plot) = Plot::over(times) { (plot.chart(i, times, palette)) }
        }
    }
}

/// Rate and service time of a curve, as far as they can be drawn.
fn points(curve: &ServiceTimeCurve) -> impl Iterator<Item = (f64, Estimate)> + '_ {
    let points = curve.points.iter().map(|(_, rate, time)| (*rate, *time));
    points.filter(|(rate, time)| *rate > 0.0 && rate.is_finite() && time.value.is_finite())
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
    /// Where the axis is labelled: at the rates that ran.
    rates: Vec<f64>,
}

impl Plot {
    fn over(times: &ServiceTimes) -> Option<Self> {
        let all = || times.variants.iter().flat_map(points);
        let mut rates: Vec<f64> = all().map(|(rate, _)| rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let highest = all().map(|(_, time)| reach(time).1).fold(0.0, f64::max);
        let (first, last) = (*rates.first()?, *rates.last()?);
        let scale = Scale::of(Quantity::Time, [highest]);
        (last > first && highest > 0.0).then(|| Self {
            x: Axis::log(first / 1.15, last * 1.15, LEFT, RIGHT),
            y: Axis::linear(0.0, scale.in_unit(highest) * 1.06, BOTTOM, TOP),
            scale,
            rates,
        })
    }

    fn chart(&self, index: usize, times: &ServiceTimes, palette: &Palette) -> Markup {
        let size = times.replicas.as_ref().map_or_else(String::new, |(service, pods)| {
            let plural = if *pods == 1 { "" } else { "s" };
            format!(", {pods} {service} pod{plural}")
        });
        let drawn: Vec<&ServiceTimeCurve> =
            times.variants.iter().filter(|c| points(c).next().is_some()).collect();
        let chart = Chart {
            id: format!("service-times-{}", slug(&(index + 1).to_string())),
            title: format!("Median service time by rate{size}"),
            note: format!(
                "{} by requests a second (logarithmic); bar the interval over the rounds",
                self.scale.unit()
            ),
            describes: drawn.iter().map(|c| self.describes(c)).collect::<Vec<_>>().join(" "),
            height: HEIGHT,
            marks: self.marks(&drawn, palette),
            legend: vec![],
        };
        chart.render()
    }

    fn at(&self, (rate, time): (f64, Estimate)) -> (f64, f64) {
        (self.x.at(rate), self.y.at(self.scale.in_unit(time.value)))
    }

    fn end(&self, curve: &ServiceTimeCurve) -> (f64, f64) {
        points(curve).last().map_or((RIGHT, BOTTOM), |point| self.at(point))
    }

    fn marks(&self, curves: &[&ServiceTimeCurve], palette: &Palette) -> Markup {
        let ends: Vec<f64> = curves.iter().map(|c| self.end(c).1).collect();
        html! {
            (rows(&self.y, 5, LEFT, RIGHT))
            @for rate in &self.rates { (column(self.x.at(*rate), &verbatim(*rate), TOP, BOTTOM)) }
            @for (curve, y) in curves.iter().zip(apart(&ends, BOTTOM)) {
                g class=(palette.variant(&curve.variant)) {
                    path.line d=(path(points(curve).map(|point| self.at(point)))) {}
                    path.leader d=(path([self.end(curve), (RIGHT + 8.0, y)])) {}
                    text.label x=(px(RIGHT + 12.0)) y=(px(y + 4.5)) { (short(&curve.variant)) }
                    @for point in points(curve) { (self.dot(curve, point)) }
                }
            }
        }
    }

    fn dot(&self, curve: &ServiceTimeCurve, (rate, time): (f64, Estimate)) -> Markup {
        let (x, y) = self.at((rate, time));
        let (low, high) = reach(time);
        let end = |us: f64| px(self.y.at(self.scale.in_unit(us)));
        let figure =
            format!("{} ({})", self.scale.with_unit(time.value), interval(self.scale, time));
        html! {
            line.interval x1=(px(x)) x2=(px(x)) y1=(end(low)) y2=(end(high)) {}
            circle.dot cx=(px(x)) cy=(px(y)) r="4.5" {
                title { (format!("{} at {} requests/s: {figure}", curve.variant, verbatim(rate))) }
            }
        }
    }

    fn describes(&self, curve: &ServiceTimeCurve) -> String {
        let point = |(rate, time): (f64, Estimate)| {
            format!("{} at {}/s", self.scale.with_unit(time.value), verbatim(rate))
        };
        format!("{}: {}.", curve.variant, points(curve).map(point).collect::<Vec<_>>().join(", "))
    }
}
