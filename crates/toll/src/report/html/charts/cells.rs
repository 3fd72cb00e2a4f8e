//! One percentile of latency by cell: a row a cell, a dot a variant with its interval.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, columns, px, slug};
use crate::analysis::findings::{Estimate, LoadFindings, Metric};
use crate::report::figures::Scale;
use crate::report::html::palette::Palette;
use crate::report::sweep::{Sweep, cell_name};
use crate::report::wording::{ends, interval, metric_title};

const LEFT: f64 = 112.0;
const RIGHT: f64 = WIDTH - 14.0;
/// From one variant to the next.
const LINE_HEIGHT: f64 = 9.0;
const ROW_GAP: f64 = 13.0;
const AXIS_HEIGHT: f64 = 26.0;

/// The chart; none without a cell that has the percentile.
pub(in crate::report::html) fn cells(
    sweep: &Sweep<'_>,
    metric: Metric,
    palette: &Palette,
) -> Option<Markup> {
    let rows: Vec<Row> = sweep.cells.iter().filter_map(|load| row(load, metric, palette)).collect();
    let highest = rows.iter().flat_map(|r| &r.dots).map(|d| reach(d.of).1).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let scale = Scale::of(crate::report::figures::Quantity::of(metric), [highest]);
    let height: f64 = rows.iter().map(Row::height).sum();
    let axis = Axis::linear(0.0, scale.in_unit(highest) * 1.03, LEFT, RIGHT);
    let title = metric_title(metric);
    let chart = Chart {
        id: format!("cells-{}", slug(title)),
        title: format!("By cell: {title}"),
        note: format!("{}: a dot a variant, bar its interval over the rounds", scale.unit()),
        describes: rows.iter().map(|r| r.describes(scale)).collect::<Vec<_>>().join(" "),
        height: height + AXIS_HEIGHT,
        marks: marks(&rows, &axis, scale, height),
        legend: sweep
            .variants()
            .into_iter()
            .map(|name| (palette.variant(name), name.to_owned()))
            .collect(),
    };
    Some(chart.render())
}

struct Row {
    name: String,
    dots: Vec<Dot>,
}

struct Dot {
    variant: String,
    class: String,
    of: Estimate,
}

fn row(load: &LoadFindings, metric: Metric, palette: &Palette) -> Option<Row> {
    let dot = |v: &crate::analysis::findings::VariantLoad| {
        let (_, of) = v.metrics.iter().find(|(m, of)| *m == metric && of.value.is_finite())?;
        Some(Dot { variant: v.variant.clone(), class: palette.variant(&v.variant), of: *of })
    };
    let dots: Vec<Dot> = load.variants.iter().filter_map(dot).collect();
    (!dots.is_empty()).then(|| Row { name: cell_name(load), dots })
}

/// Ends of an interval; the value itself at both where there is none.
fn reach(estimate: Estimate) -> (f64, f64) {
    ends(estimate).unwrap_or((estimate.value, estimate.value))
}

impl Row {
    fn height(&self) -> f64 {
        self.dots.len() as f64 * LINE_HEIGHT + ROW_GAP
    }

    fn describes(&self, scale: Scale) -> String {
        let dots =
            self.dots.iter().map(|d| format!("{} {}", d.variant, scale.with_unit(d.of.value)));
        format!("{}: {}.", self.name, dots.collect::<Vec<_>>().join(", "))
    }
}

fn marks(rows: &[Row], axis: &Axis, scale: Scale, height: f64) -> Markup {
    let tops = rows.iter().scan(0.0, |next, row| {
        let top = *next;
        *next += row.height();
        Some(top)
    });
    html! {
        (columns(axis, 5, 0.0, height))
        @for (row, top) in rows.iter().zip(tops) {
            text.name x="0" y=(px(top + row.height() / 2.0 + 4.5)) { (row.name) }
            @for (i, dot) in row.dots.iter().enumerate() {
                (dot_marks(row, dot, axis, scale, top + ROW_GAP / 2.0 + LINE_HEIGHT * (i as f64 + 0.5)))
            }
        }
    }
}

fn dot_marks(row: &Row, dot: &Dot, axis: &Axis, scale: Scale, y: f64) -> Markup {
    let (low, high) = reach(dot.of);
    let x = |value: f64| px(axis.at(scale.in_unit(value)));
    let figure = format!("{} ({})", scale.with_unit(dot.of.value), interval(scale, dot.of));
    html! {
        g class=(dot.class) {
            title { (format!("{}, {}: {figure}", dot.variant, row.name)) }
            line.interval x1=(x(low)) x2=(x(high)) y1=(px(y)) y2=(px(y)) {}
            circle.dot cx=(x(dot.of.value)) cy=(px(y)) r="4" {}
        }
    }
}
