//! Throughput of each variant flat out: a bar to the mean over blocks, a dot for each block.

use maud::{Markup, html};

use super::frame::{Axis, Chart, WIDTH, above, columns, px, slug};
use crate::analysis::findings::{LoadFindings, Metric};
use crate::report::content::value_of;
use crate::report::figures::{Quantity, figure};
use crate::report::html::palette::Palette;

const ROW_HEIGHT: f64 = 62.0;
const BAR_HEIGHT: f64 = 28.0;
const AXIS_HEIGHT: f64 = 26.0;
/// Keeps the first and last axis labels inside the drawing.
const MARGIN: f64 = 14.0;

/// The chart; none without a block.
pub(in crate::report::html) fn throughput(
    load: &LoadFindings,
    palette: &Palette,
) -> Option<Markup> {
    let rows = rows(load, palette);
    let highest =
        rows.iter().flat_map(|r| r.blocks.iter().copied().chain([r.mean])).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let height = ROW_HEIGHT * rows.len() as f64;
    let axis = Axis::linear(0.0, highest * 1.02, MARGIN, WIDTH - MARGIN);
    let chart = Chart {
        id: format!("throughput-{}", slug(&load.name)),
        title: format!("Throughput, {}", load.name),
        note: "completed requests/s: bar the mean, dots the blocks".into(),
        describes: rows
            .iter()
            .map(|r| format!("{}: {}.", r.name, r.figure))
            .collect::<Vec<_>>()
            .join(" "),
        height: height + AXIS_HEIGHT,
        marks: html! {
            (columns(&axis, 5, 0.0, height))
            @for (i, row) in rows.iter().enumerate() { (row_marks(row, &axis, ROW_HEIGHT * i as f64)) }
        },
        legend: vec![],
    };
    Some(chart.render())
}

struct Row {
    name: String,
    class: String,
    mean: f64,
    blocks: Vec<f64>,
    figure: String,
}

fn rows(load: &LoadFindings, palette: &Palette) -> Vec<Row> {
    load.variants
        .iter()
        .filter_map(|v| {
            let blocks: Vec<f64> =
                v.throughput_by_block.iter().copied().filter(|b| b.is_finite()).collect();
            let mean = value_of(v, Metric::Throughput).filter(|m| m.is_finite())?;
            Some(Row {
                name: v.variant.clone(),
                class: palette.variant(&v.variant),
                mean,
                blocks,
                figure: figure(Quantity::PerSecond, mean),
            })
        })
        .collect()
}

fn row_marks(row: &Row, axis: &Axis, top: f64) -> Markup {
    let (bar, start) = (top + 26.0, axis.at(0.0));
    let per_block =
        |rate| format!("{}, one block: {}", row.name, figure(Quantity::PerSecond, rate));
    html! {
        g class=(row.class) {
            text.name x=(px(start)) y=(px(top + 18.0)) { (above(&row.name)) }
            text.figure x=(px(WIDTH - MARGIN)) y=(px(top + 18.0)) text-anchor="end" { (row.figure) }
            rect.bar x=(px(start)) y=(px(bar)) width=(px(axis.at(row.mean) - start)) height=(px(BAR_HEIGHT)) {}
            @for (i, rate) in row.blocks.iter().enumerate() {
                // One below the other, the first block on top, so that close ones do not hide each other.
                @let y = bar + BAR_HEIGHT * (i as f64 + 0.5) / row.blocks.len() as f64;
                circle.block cx=(px(axis.at(*rate))) cy=(px(y)) r="3" {
                    title { (per_block(*rate)) }
                }
            }
        }
    }
}
