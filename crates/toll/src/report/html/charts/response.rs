//! Response times at one step: a group a statistic, in it a bar a variant with its interval.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, px};
use crate::analysis::findings::{Estimate, Metric, VariantLoad};
use crate::report::figures::Scale;
use crate::report::html::palette::Palette;
use crate::report::staircase::{
    STATISTICS, Stairs, in_order, response_of, scale_of_response, several_clients,
};
use crate::report::wording::{ends, interval};

const LEFT: f64 = 46.0;
/// Leaves room for the figure behind the longest bar.
const RIGHT: f64 = WIDTH - 52.0;
const BAR_HEIGHT: f64 = 11.0;
/// From one variant to the next.
const LINE_HEIGHT: f64 = 14.0;
const GROUP_GAP: f64 = 14.0;
const AXIS_HEIGHT: f64 = 26.0;
/// Ends of intervals beyond so many times the longest bar lie outside of the chart.
const MOST: f64 = 2.0;

/// The chart; none when no load had a step.
pub(in crate::report::html) fn response(stairs: &Stairs<'_>, palette: &Palette) -> Option<Markup> {
    let (clients, load) = stairs.nearest()?;
    let variants = in_order(stairs, load);
    let groups: Vec<Group> = STATISTICS
        .iter()
        .map(|(metric, name)| Group { name, bars: bars(&variants, *metric, palette) })
        .filter(|group| !group.bars.is_empty())
        .collect();
    let all = || groups.iter().flat_map(|group| &group.bars);
    let longest = all().map(|bar| bar.of.value).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let ends = || all().map(|bar| reach(bar.of));
    let furthest = ends().map(|(_, high)| high).fold(longest, f64::max);
    let highest = furthest.min(longest * MOST);
    let is_cut = highest < furthest || ends().any(|(low, _)| low < 0.0);
    let scale = scale_of_response(&variants);
    let axis = Axis::linear(0.0, scale.in_unit(highest) * 1.02, LEFT, RIGHT);
    let height: f64 = groups.iter().map(Group::height).sum();
    let chart = Chart {
        id: stairs.id("response-times"),
        title: stairs.title(format!("Response times with {}", several_clients(clients))),
        note: format!(
            "{}; bar the figure of all rounds, line its interval{}",
            scale.unit(),
            if is_cut { ", cut where it reaches further" } else { "" }
        ),
        describes: groups.iter().map(|g| g.describes(scale)).collect::<Vec<_>>().join(" "),
        height: height + AXIS_HEIGHT,
        marks: marks(&groups, &axis, scale, height),
        legend: variants.iter().map(|v| (palette.variant(&v.variant), v.variant.clone())).collect(),
    };
    Some(chart.render())
}

struct Group {
    name: &'static str,
    bars: Vec<Bar>,
}

struct Bar {
    variant: String,
    class: String,
    of: Estimate,
}

fn bars(variants: &[&VariantLoad], metric: Metric, palette: &Palette) -> Vec<Bar> {
    let bar = |v: &&VariantLoad| {
        let of = response_of(v, metric)?;
        Some(Bar { variant: v.variant.clone(), class: palette.variant(&v.variant), of })
    };
    variants.iter().filter_map(bar).collect()
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

impl Group {
    fn height(&self) -> f64 {
        self.bars.len() as f64 * LINE_HEIGHT + GROUP_GAP
    }

    fn describes(&self, scale: Scale) -> String {
        let bars =
            self.bars.iter().map(|b| format!("{} {}", b.variant, scale.with_unit(b.of.value)));
        format!("{}: {}.", self.name, bars.collect::<Vec<_>>().join(", "))
    }
}

fn marks(groups: &[Group], axis: &Axis, scale: Scale, height: f64) -> Markup {
    let tops = groups.iter().scan(0.0, |next, group| {
        let top = *next;
        *next += group.height();
        Some(top)
    });
    html! {
        (columns(axis, 5, 0.0, height))
        @for (group, top) in groups.iter().zip(tops) {
            text.name x="0" y=(px(top + group.height() / 2.0 + 4.5)) { (group.name) }
            @for (i, bar) in group.bars.iter().enumerate() {
                (bar_marks(group.name, bar, axis, scale, top + GROUP_GAP / 2.0 + LINE_HEIGHT * i as f64))
            }
        }
    }
}

fn bar_marks(statistic: &str, bar: &Bar, axis: &Axis, scale: Scale, top: f64) -> Markup {
    let (low, high) = reach(bar.of);
    let x = |value: f64| axis.at(scale.in_unit(value)).clamp(LEFT, RIGHT);
    let middle = top + BAR_HEIGHT / 2.0;
    let figure = format!("{} ({})", scale.with_unit(bar.of.value), interval(scale, bar.of));
    html! {
        g class=(bar.class) {
            title { (format!("{}, {statistic}: {figure}", bar.variant)) }
            rect.bar x=(px(LEFT)) y=(px(top)) width=(px(x(bar.of.value) - LEFT)) height=(px(BAR_HEIGHT)) {}
            line.interval x1=(px(x(low))) x2=(px(x(high))) y1=(px(middle)) y2=(px(middle)) {}
            circle.dot cx=(px(x(bar.of.value))) cy=(px(middle)) r="3.5" {}
            text.tick x=(px(x(high) + 8.0)) y=(px(middle + 4.0)) { (scale.plain(bar.of.value)) }
        }
    }
}
