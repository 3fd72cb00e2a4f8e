//! One percentile of latency by cell: a row a cell, a dot a variant with its interval.

use super::described;
use crate::analysis::findings::{Estimate, LoadFindings, Metric};
use crate::report::drawing::{
    Axis, Chart, Ink, Mark, WIDTH, beside, circle, columns, group, line, slug, stacked,
};
use crate::report::figures::reach;
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::sweep::{Sweep, cell_name};
use crate::report::wording::{metric_title, with_interval};

const LEFT: f64 = 112.0;
const RIGHT: f64 = WIDTH - 14.0;
/// From one variant to the next.
const LINE_HEIGHT: f64 = 9.0;
const ROW_GAP: f64 = 13.0;
const AXIS_HEIGHT: f64 = 26.0;

/// The chart; none without a cell that has the percentile.
pub(in crate::report) fn cells(sweep: &Sweep<'_>, metric: Metric) -> Option<Chart> {
    let rows: Vec<Row<'_>> = sweep.cells.iter().filter_map(|load| Row::of(load, metric)).collect();
    let dots = rows.iter().flat_map(|row| &row.dots);
    let highest = dots.map(|(_, of)| reach(*of).1).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let scale = Scale::of(Quantity::of(metric), [highest]);
    let (tops, height) = stacked(rows.iter().map(Row::height));
    let axis = Axis::linear(0.0, scale.in_unit(highest) * 1.03, LEFT, RIGHT);
    let title = metric_title(metric);
    let marks = rows.iter().zip(tops).flat_map(|(row, top)| row.marks(&axis, scale, top));
    Some(Chart {
        id: format!("cells-{}", slug(title)),
        title: format!("By cell: {title}"),
        note: format!("{}: a dot a variant, bar its interval over the rounds", scale.unit()),
        describes: rows.iter().map(|row| described(&row.name, &row.dots, scale)).collect(),
        height: height + AXIS_HEIGHT,
        marks: columns(&axis, 5, 0.0, height).into_iter().chain(marks).collect(),
        legend: sweep.variants().into_iter().map(|name| (Ink::of(name), name.to_owned())).collect(),
    })
}

/// A cell, and the percentile of each variant.
struct Row<'a> {
    name: String,
    dots: Vec<(&'a str, Estimate)>,
}

impl<'a> Row<'a> {
    fn of(load: &'a LoadFindings, metric: Metric) -> Option<Self> {
        let dots = load.variants.iter().filter_map(|v| {
            let (_, of) = v.metrics.iter().find(|(m, of)| *m == metric && of.value.is_finite())?;
            Some((v.variant.as_str(), *of))
        });
        let dots: Vec<(&str, Estimate)> = dots.collect();
        (!dots.is_empty()).then(|| Self { name: cell_name(load), dots })
    }

    fn height(&self) -> f64 {
        self.dots.len() as f64 * LINE_HEIGHT + ROW_GAP
    }

    fn marks(&self, axis: &Axis, scale: Scale, top: f64) -> Vec<Mark> {
        let name = beside("name", (0.0, top + self.height() / 2.0), &self.name);
        let x = |value: f64| axis.at(scale.in_unit(value));
        let dot = |(i, (variant, of)): (usize, &(&str, Estimate))| {
            let y = top + ROW_GAP / 2.0 + LINE_HEIGHT * (i as f64 + 0.5);
            let (low, high) = reach(*of);
            let interval = line("interval", [x(low), x(high)], [y, y]);
            let marks = vec![interval, circle("dot", (x(of.value), y), 4.0)];
            let says = format!("{variant}, {}: {}", self.name, with_interval(scale, *of));
            group(variant, marks).titled(says)
        };
        [name].into_iter().chain(self.dots.iter().enumerate().map(dot)).collect()
    }
}
