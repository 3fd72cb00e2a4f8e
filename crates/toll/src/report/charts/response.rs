//! Response times at one step: a group a statistic, in it a bar a variant with its interval.

use super::described;
use crate::analysis::findings::{Estimate, Metric, VariantLoad};
use crate::report::drawing::{
    Axis, Chart, Ink, Mark, WIDTH, beside, circle, columns, group, line, rect, stacked, text,
};
use crate::report::figures::Scale;
use crate::report::figures::reach;
use crate::report::subjects::staircase::{
    STATISTICS, Stairs, in_order, response_of, scale_of_response, several_clients,
};
use crate::report::wording::with_interval;

const LEFT: f64 = 46.0;
/// The figure of the longest bar stands behind it.
const RIGHT: f64 = WIDTH - 52.0;
const BAR_HEIGHT: f64 = 11.0;
/// From one variant to the next.
const LINE_HEIGHT: f64 = 14.0;
const GROUP_GAP: f64 = 14.0;
const AXIS_HEIGHT: f64 = 26.0;
/// Ends of intervals beyond so many times the longest bar lie outside of the chart.
const MOST: f64 = 2.0;

/// The chart; none when no load had a step.
pub(in crate::report) fn response(stairs: &Stairs<'_>) -> Option<Chart> {
    let (clients, load) = stairs.nearest()?;
    let variants = in_order(stairs, load);
    let groups = STATISTICS.iter().map(|(metric, name)| Bars::of(name, &variants, *metric));
    let groups: Vec<Bars<'_>> = groups.filter(|group| !group.bars.is_empty()).collect();
    let all = || groups.iter().flat_map(|group| &group.bars).map(|(_, of)| *of);
    let longest = all().map(|of| of.value).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let furthest = all().map(|of| reach(of).1).fold(longest, f64::max);
    let highest = furthest.min(longest * MOST);
    let is_cut = highest < furthest || all().any(|of| reach(of).0 < 0.0);
    let scale = scale_of_response(&variants);
    let axis = Axis::linear(0.0, scale.in_unit(highest) * 1.02, LEFT, RIGHT);
    let (tops, height) = stacked(groups.iter().map(Bars::height));
    let marks = groups.iter().zip(tops).flat_map(|(group, top)| group.marks(&axis, scale, top));
    let names = variants.iter().map(|v| (Ink::of(&v.variant), v.variant.clone()));
    Some(Chart {
        id: stairs.id("response-times"),
        title: stairs.title(format!("Response times with {}", several_clients(clients))),
        note: format!(
            "{}; bar the figure of all rounds, line its interval{}",
            scale.unit(),
            if is_cut { ", cut where it reaches further" } else { "" }
        ),
        describes: groups.iter().map(|of| described(of.name, &of.bars, scale)).collect(),
        height: height + AXIS_HEIGHT,
        marks: columns(&axis, 5, 0.0, height).into_iter().chain(marks).collect(),
        legend: names.collect(),
    })
}

/// A statistic of each variant.
struct Bars<'a> {
    name: &'static str,
    bars: Vec<(&'a str, Estimate)>,
}

impl<'a> Bars<'a> {
    fn of(name: &'static str, variants: &[&'a VariantLoad], metric: Metric) -> Self {
        let bar = |v: &&'a VariantLoad| Some((v.variant.as_str(), response_of(v, metric)?));
        Self { name, bars: variants.iter().filter_map(bar).collect() }
    }

    fn height(&self) -> f64 {
        self.bars.len() as f64 * LINE_HEIGHT + GROUP_GAP
    }

    fn marks(&self, axis: &Axis, scale: Scale, top: f64) -> Vec<Mark> {
        let name = beside("name", (0.0, top + self.height() / 2.0), self.name);
        let x = |value: f64| axis.at(scale.in_unit(value)).clamp(LEFT, RIGHT);
        let bar = |(i, (variant, of)): (usize, &(&str, Estimate))| {
            let top = top + GROUP_GAP / 2.0 + LINE_HEIGHT * i as f64;
            let middle = top + BAR_HEIGHT / 2.0;
            let (end, (low, high)) = (x(of.value), reach(*of));
            let marks = vec![
                rect("bar", (LEFT, top), (end - LEFT, BAR_HEIGHT)),
                line("interval", [x(low), x(high)], [middle, middle]),
                circle("dot", (end, middle), 3.5),
                text("tick", (x(high) + 8.0, middle + 4.0), scale.plain(of.value)),
            ];
            let says = format!("{variant}, {}: {}", self.name, with_interval(scale, *of));
            group(variant, marks).titled(says)
        };
        [name].into_iter().chain(self.bars.iter().enumerate().map(bar)).collect()
    }
}
