//! Heap after each collection over the time under load: a chart a pod, in it a line a variant.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, path, px, rows, slug};
use crate::analysis::findings::{Findings, HeapTrend};
use crate::report::content::in_first_order;
use crate::report::figures::{Quantity, Scale};
use crate::report::heap::in_words;
use crate::report::html::palette::Palette;

const LEFT: f64 = 54.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 170.0;
const HEIGHT: f64 = 196.0;
/// Less than this share of the highest value is not worth the whole height: it would make noise look like growth.
const LEAST_RANGE: f64 = 0.25;

/// A chart a pod whose JVM told of a collection; one range of time and heap for all.
pub(in crate::report::html) fn heap(findings: &Findings, palette: &Palette) -> Markup {
    let trends = &findings.heap_trends;
    let Some(plot) = Plot::over(trends) else { return html! {} };
    html! {
        @for pod in in_first_order(trends.iter().map(|trend| trend.pod.as_str())) {
            @let lines: Vec<&HeapTrend> = trends.iter().filter(|t| t.pod == pod && points(t).next().is_some()).collect();
            @if !lines.is_empty() { (plot.chart(pod, &lines, palette)) }
        }
    }
}

fn points(trend: &HeapTrend) -> impl Iterator<Item = (f64, f64)> {
    trend.series.iter().copied().filter(|(at, mib)| at.is_finite() && mib.is_finite())
}

struct Plot {
    x: Axis,
    y: Axis,
    scale: Scale,
}

impl Plot {
    fn over(trends: &[HeapTrend]) -> Option<Self> {
        let all = || trends.iter().flat_map(points);
        let last = all().map(|(minute, _)| minute).fold(0.0, f64::max);
        let highest = all().map(|(_, mib)| mib).fold(0.0, f64::max);
        let lowest = all().map(|(_, mib)| mib).fold(highest, f64::min);
        if highest <= 0.0 {
            return None;
        }
        let margin = (highest - lowest) * 0.08;
        let low = (lowest - margin).min(highest * (1.0 - LEAST_RANGE)).max(0.0);
        Some(Self {
            x: Axis::linear(0.0, last, LEFT, RIGHT),
            y: Axis::linear(low, highest + margin, BOTTOM, TOP),
            scale: Scale::of(Quantity::Mebibytes, [highest]),
        })
    }

    fn chart(&self, pod: &str, lines: &[&HeapTrend], palette: &Palette) -> Markup {
        let unit = self.scale.unit();
        let chart = Chart {
            id: format!("heap-{}", slug(pod)),
            title: format!("Heap after collection, {pod}"),
            note: format!("{unit} by minutes under load; the axis need not begin at zero"),
            describes: lines.iter().map(|l| self.describes(l)).collect::<Vec<_>>().join(" "),
            height: HEIGHT,
            marks: self.marks(lines, palette),
            legend: lines
                .iter()
                .map(|line| (palette.variant(&line.variant), line.variant.clone()))
                .collect(),
        };
        chart.render()
    }

    fn marks(&self, lines: &[&HeapTrend], palette: &Palette) -> Markup {
        let place = |(minute, mib)| (self.x.at(minute), self.y.at(mib));
        html! {
            (rows(&self.y, 4, LEFT, RIGHT))
            (columns(&self.x, 6, BOTTOM, BOTTOM))
            @for line in lines {
                g class=(palette.variant(&line.variant)) {
                    title { (line.variant) }
                    path.line d=(path(points(line).map(place))) {}
                    @for (x, y) in points(line).map(place) { circle.point cx=(px(x)) cy=(px(y)) r="3" {} }
                }
            }
        }
    }

    fn describes(&self, trend: &HeapTrend) -> String {
        let ends = (points(trend).next(), points(trend).last());
        let (said, _) = in_words(trend);
        let (Some((_, first)), Some((_, last))) = ends else { return String::new() };
        let [first, last] = [first, last].map(|mib| self.scale.with_unit(mib));
        format!("{}: from {first} to {last}, {said}.", trend.variant)
    }
}
