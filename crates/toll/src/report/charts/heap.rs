//! Heap after each collection over the time under load: a chart a pod, in it a line a variant.

use crate::analysis::findings::{Findings, HeapTrend};
use crate::report::drawing::{Axis, Chart, Frame, Ink, Mark, WIDTH, circle, group, path, slug};
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::heap::in_words;
use crate::report::values::in_first_order;

const FRAME: Frame = Frame { left: 54.0, right: WIDTH - 14.0, top: 12.0, bottom: 170.0 };
const HEIGHT: f64 = 196.0;
/// Less than this share of the highest value is not worth the whole height: it would make noise look like growth.
const LEAST_RANGE: f64 = 0.25;

/// A chart for each pod whose JVM reported a collection; one range of time and heap for all.
pub(in crate::report) fn heap(findings: &Findings) -> Vec<Chart> {
    let trends = &findings.heap_trends;
    let Some(plot) = Plot::over(trends) else { return vec![] };
    let of_pod = |pod: &str| {
        let drawn = trends.iter().filter(|t| t.pod == pod && points(t).next().is_some());
        let lines: Vec<&HeapTrend> = drawn.collect();
        (!lines.is_empty()).then(|| plot.chart(pod, &lines))
    };
    let pods = in_first_order(trends.iter().map(|trend| trend.pod.as_str()));
    pods.into_iter().filter_map(of_pod).collect()
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
        let margin = (highest - lowest) * 0.08;
        let low = (lowest - margin).min(highest * (1.0 - LEAST_RANGE)).max(0.0);
        (highest > 0.0).then(|| Self {
            x: FRAME.across(0.0, last),
            y: FRAME.up(low, highest + margin),
            scale: Scale::of(Quantity::Mebibytes, [highest]),
        })
    }

    fn chart(&self, pod: &str, lines: &[&HeapTrend]) -> Chart {
        let grid = [FRAME.rows(&self.y, 4), FRAME.feet(&self.x, 6)].concat();
        let names = lines.iter().map(|line| (Ink::of(&line.variant), line.variant.clone()));
        Chart {
            id: format!("heap-{}", slug(pod)),
            title: format!("Heap after collection, {pod}"),
            note: format!(
                "{} by minutes under load; the axis need not begin at zero",
                self.scale.unit()
            ),
            describes: lines.iter().map(|line| self.describes(line)).collect(),
            height: HEIGHT,
            marks: grid.into_iter().chain(lines.iter().map(|line| self.line(line))).collect(),
            legend: names.collect(),
        }
    }

    fn line(&self, trend: &HeapTrend) -> Mark {
        let place = |(minute, mib)| (self.x.at(minute), self.y.at(mib));
        let dots = points(trend).map(|point| circle("point", place(point), 3.0));
        let line = path("line", points(trend).map(place));
        group(&trend.variant, [line].into_iter().chain(dots).collect()).titled(&trend.variant)
    }

    fn describes(&self, trend: &HeapTrend) -> String {
        let ends = (points(trend).next(), points(trend).last());
        let (said, _) = in_words(trend);
        let (Some((_, first)), Some((_, last))) = ends else { return String::new() };
        let [first, last] = [first, last].map(|mib| self.scale.with_unit(mib));
        format!("{}: from {first} to {last}, {said}.", trend.variant)
    }
}
