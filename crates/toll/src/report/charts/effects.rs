//! What each variant changed, in percent of the baseline: a dot with its interval.

use crate::analysis::findings::{Effect, LoadFindings, Metric};
use crate::report::document::Tone;
use crate::report::drawing::{
    Axis, Chart, Mark, WIDTH, area, beside, circle, columns, group, line, short, slug, stacked,
    text,
};
use crate::report::figures::Scale;
use crate::report::figures::reach;
use crate::report::wording::{difference_scale, measured_scale, metric_title, tone};

const LEFT: f64 = 126.0;
const RIGHT: f64 = WIDTH - 92.0;
const TITLE_HEIGHT: f64 = 26.0;
const ROW_HEIGHT: f64 = 24.0;
const AXIS_HEIGHT: f64 = 28.0;
/// Above the axis.
const TOP: f64 = 4.0;
/// Intervals that reach further than so many times the largest change would hide the others: they are cut.
const MOST: f64 = 2.0;

/// The chart for `metrics`; none without an effect.
pub(in crate::report) fn effects(load: &LoadFindings, metrics: &[Metric]) -> Option<Chart> {
    let groups: Vec<(Metric, Vec<Row<'_>>)> = metrics
        .iter()
        .map(|m| (*m, rows_of(load, *m)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let all = || groups.iter().flat_map(|(_, rows)| rows);
    all().next()?;
    let heights = groups.iter().map(|(_, rows)| TITLE_HEIGHT + ROW_HEIGHT * rows.len() as f64);
    let (tops, height) = stacked(heights);
    let reach = all().flat_map(|r| [r.low, r.high, r.at]);
    let reach = reach.fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let furthest = all().map(|r| r.at.abs()).fold(1.0, f64::max) * MOST;
    let (low, high) = (reach.0.max(-furthest), reach.1.min(furthest));
    let pad = (high - low).max(1.0) * 0.04;
    let axis = Axis::linear(low - pad, high + pad, LEFT, RIGHT);
    let zero = axis.at(0.0);
    let mut marks = columns(&axis, 5, TOP, height);
    marks.push(line("zero", [zero, zero], [TOP, height]));
    for ((metric, rows), top) in groups.iter().zip(tops) {
        marks.push(text("row-title", (0.0, top + 17.0), metric_title(*metric)));
        let middle = |at: usize| top + TITLE_HEIGHT + ROW_HEIGHT * (at as f64 + 0.5);
        marks.extend(rows.iter().enumerate().map(|(at, row)| row.marks(&axis, middle(at))));
    }
    Some(Chart {
        id: format!("effects-{}", slug(&load.name)),
        title: format!("What changed, {}", load.name),
        note: format!(
            "% of the baseline: dot the change (hollow where it is unclear), bar its interval{}",
            if (low, high) == reach { "" } else { "; an arrow where it reaches further" }
        ),
        describes: all().map(|row| format!("{}.", row.says)).collect(),
        height: height + AXIS_HEIGHT,
        marks,
        legend: vec![],
    })
}

/// One effect in percent of the baseline.
struct Row<'a> {
    variant: &'a str,
    at: f64,
    low: f64,
    high: f64,
    is_clear: bool,
    figure: String,
    says: String,
}

fn rows_of(load: &LoadFindings, metric: Metric) -> Vec<Row<'_>> {
    let drawable =
        |e: &&Effect| e.metric == metric && e.baseline > 0.0 && e.difference.value.is_finite();
    let scale = measured_scale(load, metric);
    load.effects.iter().filter(drawable).map(|effect| Row::of(effect, scale)).collect()
}

impl<'a> Row<'a> {
    fn of(effect: &'a Effect, scale: Scale) -> Self {
        let percent = |v: f64| v / effect.baseline * 100.0;
        let scale = difference_scale(scale, [effect]);
        let at = effect.difference.value;
        let (low, high) = reach(effect.difference);
        let unit = if scale.unit() == "requests/s" { "/s" } else { scale.unit() };
        let figure = format!("{}\u{a0}{unit}", scale.signed(at));
        let range = format!("{} to {}", scale.signed(low), scale.signed(high));
        let name = metric_title(effect.metric);
        Self {
            variant: &effect.variant,
            at: percent(at),
            low: percent(low),
            high: percent(high),
            is_clear: !matches!(tone(effect), Tone::Unknown | Tone::Same),
            says: format!("{}, {name}: {figure} ({range})", effect.variant),
            figure,
        }
    }

    fn marks(&self, axis: &Axis, y: f64) -> Mark {
        let mut marks = vec![
            beside("name", (10.0, y), short(self.variant)),
            line("interval", [axis.at(self.low), axis.at(self.high)], [y, y]),
        ];
        // A point of the axis that a value beyond it is placed at.
        let arrow = |x: f64, by: f64| {
            area("arrow", [(x + by, y), (x - by / 3.0, y - 5.0), (x - by / 3.0, y + 5.0)])
        };
        marks.extend((!axis.holds(self.low)).then(|| arrow(LEFT, -6.0)));
        marks.extend((!axis.holds(self.high)).then(|| arrow(RIGHT, 6.0)));
        let class = if self.is_clear { "dot" } else { "dot hollow" };
        marks.push(circle(class, (axis.at(self.at), y), 4.5));
        marks.push(beside("figure", (WIDTH, y), &self.figure).anchored("end"));
        group(self.variant, marks).titled(&self.says)
    }
}
