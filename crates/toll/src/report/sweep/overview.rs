//! One line a cell: latency, CPU and memory of every variant.

use super::Sweep;
use super::words::{cell_name, scale_over};
use crate::analysis::findings::{
    LoadFindings, Metric, ResourceGroup, ResourceUse, Spread, VariantLoad,
};
use crate::report::content::{Detail, in_first_order, section, value_of};
use crate::report::figures::{Quantity, Scale};
use crate::report::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// The overview of all cells.
pub(super) fn overview(sweep: &Sweep<'_>, detail: Detail) -> Section {
    let percentiles: &[(Metric, &str)] = match detail {
        Detail::Brief => &[(Metric::LatencyP50, "p50"), (Metric::LatencyP99, "p99")],
        Detail::Full => &[
            (Metric::LatencyP50, "p50"),
            (Metric::LatencyP99, "p99"),
            (Metric::LatencyMean, "mean"),
        ],
    };
    let mut text =
        "Means over blocks, at equal rate; percentiles are those of each block.".to_owned();
    if detail == Detail::Brief {
        text += " Each cell's effects, components and vegeta summary are in the HTML report.";
    }
    let mut pieces = vec![Piece::Text(text)];
    let unit = scale_over(&sweep.cells, Metric::LatencyP99).unit();
    pieces.push(Piece::Heading(format!("Latency by cell, {unit}")));
    pieces.push(Piece::Table(latencies(sweep, percentiles)));
    pieces.extend(uses(sweep));
    section("overview", "All cells", pieces)
}

/// A column of the overview: its title and what it shows of a cell.
struct Shown<'a> {
    title: String,
    cell: Box<dyn Fn(&LoadFindings) -> Option<String> + 'a>,
}

fn latencies(sweep: &Sweep<'_>, percentiles: &[(Metric, &str)]) -> Table {
    // One scale for all percentiles, so that p99 is seen to be larger than p50.
    let scale = scale_over(&sweep.cells, Metric::LatencyP50);
    let largest = scale_over(&sweep.cells, Metric::LatencyP99);
    let scale = if scale.unit() == largest.unit() { scale } else { largest };
    let mut shown = Vec::new();
    for (metric, name) in percentiles {
        for variant in sweep.variants() {
            let cell = move |load: &LoadFindings| {
                Some(scale.plain(value_of(of(load, variant)?, *metric)?))
            };
            shown.push(Shown { title: format!("{name} {variant}"), cell: Box::new(cell) });
        }
    }
    table(sweep, &shown)
}

fn of<'a>(load: &'a LoadFindings, variant: &str) -> Option<&'a VariantLoad> {
    load.variants.iter().find(|v| v.variant == variant)
}

/// CPU and memory of all groups at the same instant; nothing when no cell has them.
fn uses(sweep: &Sweep<'_>) -> Vec<Piece> {
    let cpu = |of: &ResourceUse| of.cpu_millicores;
    let memory = |of: &ResourceUse| of.memory_mib;
    let values = |part: fn(&ResourceUse) -> Option<Spread>| {
        let uses = sweep.cells.iter().filter_map(|l| total(l)).flatten();
        uses.filter_map(part).map(|spread| spread.mean.value).collect::<Vec<_>>()
    };
    let scales = [
        ("CPU", cpu as fn(&ResourceUse) -> _, Scale::of(Quantity::Millicores, values(cpu))),
        ("memory", memory, Scale::of(Quantity::Mebibytes, values(memory))),
    ];
    if values(cpu).is_empty() && values(memory).is_empty() {
        return vec![];
    }
    let mut shown = Vec::new();
    for (name, part, scale) in scales {
        for variant in sweep.variants() {
            let cell = move |load: &LoadFindings| {
                let of = total(load)?.iter().find(|of| of.variant == variant)?;
                Some(scale.plain(part(of)?.mean.value))
            };
            shown.push(Shown { title: format!("{name} {variant}"), cell: Box::new(cell) });
        }
    }
    let heading = "CPU of all pods, mCPU, and their anonymous memory, MiB";
    vec![Piece::Heading(heading.into()), Piece::Table(table(sweep, &shown))]
}

fn total(load: &LoadFindings) -> Option<&[ResourceUse]> {
    let total = load.resources.iter().find(|row| row.group == ResourceGroup::Total)?;
    Some(&total.uses)
}

/// A group a swept load, named where there are several.
fn table(sweep: &Sweep<'_>, shown: &[Shown<'_>]) -> Table {
    let of = |load: &LoadFindings| load.cell.as_ref().map_or("", |c| c.load.as_str()).to_owned();
    let names: Vec<String> = sweep.cells.iter().map(|load| of(load)).collect();
    let names = in_first_order(names.iter().map(String::as_str));
    let row = |load: &&LoadFindings| {
        let absent = || Cell::toned("–", Tone::Quiet);
        let cells = shown.iter().map(|s| (s.cell)(load).map_or_else(absent, Cell::from));
        std::iter::once(cell_name(load).into()).chain(cells).collect()
    };
    let group = |name: &&str| Group {
        title: (names.len() > 1).then(|| (*name).to_owned()),
        rows: sweep.cells.iter().filter(|load| of(load) == *name).map(row).collect(),
    };
    let columns = shown.iter().map(|s| figures(&s.title));
    Table {
        columns: std::iter::once(words("")).chain(columns).collect(),
        groups: names.iter().map(group).collect(),
    }
}
