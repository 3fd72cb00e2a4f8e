//! What each variant changed, in percent of the baseline: a dot with its interval.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, path, px, short, slug};
use crate::analysis::findings::{Effect, LoadFindings, Metric};
use crate::report::figures::Scale;
use crate::report::html::palette::Palette;
use crate::report::table::Tone;
use crate::report::wording::{difference_scale, ends, measured_scale, metric_title, tone};

const LEFT: f64 = 126.0;
const RIGHT: f64 = WIDTH - 92.0;
const TITLE_HEIGHT: f64 = 26.0;
const ROW_HEIGHT: f64 = 24.0;
const AXIS_HEIGHT: f64 = 28.0;
/// Intervals that reach further than so many times the largest change would hide the others: they are cut.
const MOST: f64 = 2.0;

/// The chart for `metrics`; none without an effect.
pub(in crate::report::html) fn effects(
    load: &LoadFindings,
    metrics: &[Metric],
    palette: &Palette,
) -> Option<Markup> {
    let groups: Vec<(Metric, Vec<Row>)> = metrics
        .iter()
        .map(|m| (*m, rows_of(load, *m, palette)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let all = || groups.iter().flat_map(|(_, rows)| rows);
    all().next()?;
    let height: f64 = groups.iter().map(group_height).sum();
    let reach = all().flat_map(|r| [r.low, r.high, r.at]);
    let reach = reach.fold((0.0_f64, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let furthest = all().map(|r| r.at.abs()).fold(1.0, f64::max) * MOST;
    let (low, high) = (reach.0.max(-furthest), reach.1.min(furthest));
    let pad = (high - low).max(1.0) * 0.04;
    let axis = Axis::linear(low - pad, high + pad, LEFT, RIGHT);
    let chart = Chart {
        id: format!("effects-{}", slug(&load.name)),
        title: format!("What changed, {}", load.name),
        note: format!(
            "% of the baseline: dot the change (hollow where it cannot be told), bar its interval{}",
            if (low, high) == reach { "" } else { "; an arrow where it reaches further" }
        ),
        describes: all().map(|r| format!("{}.", r.says)).collect::<Vec<_>>().join(" "),
        height: height + AXIS_HEIGHT,
        marks: marks(&groups, &axis, height),
        legend: vec![],
    };
    Some(chart.render())
}

/// One effect in percent of the baseline.
struct Row {
    name: String,
    class: String,
    at: f64,
    low: f64,
    high: f64,
    is_clear: bool,
    figure: String,
    says: String,
}

fn rows_of(load: &LoadFindings, metric: Metric, palette: &Palette) -> Vec<Row> {
    let drawable =
        |e: &&Effect| e.metric == metric && e.baseline > 0.0 && e.difference.value.is_finite();
    let scale = measured_scale(load, metric);
    load.effects.iter().filter(drawable).map(|e| row(e, scale, palette)).collect()
}

fn row(effect: &Effect, scale: Scale, palette: &Palette) -> Row {
    let percent = |v: f64| v / effect.baseline * 100.0;
    let scale = difference_scale(scale, [effect]);
    let at = effect.difference.value;
    let (low, high) = ends(effect.difference).unwrap_or((at, at));
    let figure = format!("{}\u{a0}{}", scale.signed(at), short_unit(scale.unit()));
    let range = format!("{} to {}", scale.signed(low), scale.signed(high));
    let name = metric_title(effect.metric);
    Row {
        name: effect.variant.clone(),
        class: palette.variant(&effect.variant),
        at: percent(at),
        low: percent(low),
        high: percent(high),
        is_clear: !matches!(tone(effect), Tone::Unknown | Tone::Same),
        says: format!("{}, {name}: {figure} ({range})", effect.variant),
        figure,
    }
}

fn short_unit(unit: &str) -> &str {
    if unit == "requests/s" { "/s" } else { unit }
}

fn marks(groups: &[(Metric, Vec<Row>)], axis: &Axis, height: f64) -> Markup {
    let zero = axis.at(0.0);
    html! {
        (columns(axis, 5, 4.0, height))
        line.zero x1=(px(zero)) x2=(px(zero)) y1="4" y2=(px(height)) {}
        @for ((metric, rows), top) in groups.iter().zip(tops(groups)) {
            text.row-title x="0" y=(px(top + 17.0)) { (metric_title(*metric)) }
            @for (i, row) in rows.iter().enumerate() {
                (row_marks(row, axis, top + TITLE_HEIGHT + ROW_HEIGHT * (i as f64 + 0.5)))
            }
        }
    }
}

/// Where each group begins.
fn tops(groups: &[(Metric, Vec<Row>)]) -> impl Iterator<Item = f64> {
    groups.iter().scan(0.0, |next, group| {
        let top = *next;
        *next += group_height(group);
        Some(top)
    })
}

fn group_height((_, rows): &(Metric, Vec<Row>)) -> f64 {
    TITLE_HEIGHT + ROW_HEIGHT * rows.len() as f64
}

fn row_marks(row: &Row, axis: &Axis, y: f64) -> Markup {
    let ends = [row.low, row.high].map(|end| axis.at(end));
    // A point of the axis that a value beyond it is placed at.
    let is_cut = |end: f64| !axis.holds(end);
    html! {
        g class=(row.class) {
            title { (row.says) }
            text.name x="10" y=(px(y + 4.5)) { (short(&row.name)) }
            line.interval x1=(px(ends[0])) x2=(px(ends[1])) y1=(px(y)) y2=(px(y)) {}
            @if is_cut(row.low) { path.arrow d=(path([(LEFT - 6.0, y), (LEFT + 2.0, y - 5.0), (LEFT + 2.0, y + 5.0)]) + "Z") {} }
            @if is_cut(row.high) { path.arrow d=(path([(RIGHT + 6.0, y), (RIGHT - 2.0, y - 5.0), (RIGHT - 2.0, y + 5.0)]) + "Z") {} }
            circle class=(if row.is_clear { "dot" } else { "dot hollow" }) cx=(px(axis.at(row.at))) cy=(px(y)) r="4.5" {}
            text.figure x=(px(WIDTH)) y=(px(y + 4.5)) text-anchor="end" { (row.figure) }
        }
    }
}
