//! One line a cell: latency, CPU and memory of every variant.

use super::resources::{PARTS, Part};
use super::words::scale_over;
use crate::analysis::findings::{LoadFindings, Metric, ResourceGroup, ResourceUse};
use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, figures, words};
use crate::report::figures::Scale;
use crate::report::subjects::sweep::{Sweep, cell_name};
use crate::report::values::{in_first_order, value_of};

const PERCENTILES: [(Metric, &str); 2] = [(Metric::LatencyP50, "p50"), (Metric::LatencyP99, "p99")];

/// The overview of all cells.
pub(super) fn overview(sweep: &Sweep<'_>) -> Section {
    let text = "At equal rate: percentiles of all rounds together; CPU and anonymous memory of all pods, means over rounds. What each cell shows by itself is below.";
    let shown = Shown { sweep, loads: sweep.cells.clone() };
    let mut pieces = vec![Piece::Text(text.into()), Piece::Table(shown.latencies())];
    pieces.extend(shown.uses().map(Piece::Table));
    let charts = PERCENTILES.iter().filter_map(|(metric, _)| charts::cells(sweep, *metric));
    Section::new("overview", "All sizes and rates", pieces)
        .showing(charts.collect())
        .saying(format!("{} cells", sweep.cells.len()))
}

/// The cells that are shown.
struct Shown<'a> {
    sweep: &'a Sweep<'a>,
    loads: Vec<&'a LoadFindings>,
}

/// A column of the overview: its title and what it shows of each cell.
struct Shows {
    title: String,
    cells: Vec<Cell>,
}

impl Shown<'_> {
    fn latencies(&self) -> Table {
        // One scale for all percentiles, so that p99 is seen to be larger than p50.
        let scale = scale_over(&self.loads, Metric::LatencyP50);
        let largest = scale_over(&self.loads, Metric::LatencyP99);
        let scale = if scale.unit() == largest.unit() { scale } else { largest };
        let columns = PERCENTILES.iter().flat_map(|(metric, name)| {
            self.by_variant(name, |load, variant| {
                let of = load.variants.iter().find(|v| v.variant == variant)?;
                Some(scale.plain(value_of(of, *metric)?))
            })
        });
        self.table(&format!("latency, {}", scale.unit()), columns.collect())
    }

    /// CPU and memory of all groups at the same instant; nothing when no cell has them.
    fn uses(&self) -> Option<Table> {
        let values = |part: Part| {
            let uses = self.loads.iter().filter_map(|l| total(l)).flatten();
            uses.filter_map(part).map(|spread| spread.mean.value).collect::<Vec<_>>()
        };
        let columns = PARTS.iter().flat_map(|(name, quantity, part)| {
            let scale = Scale::of(*quantity, values(*part));
            self.by_variant(name, |load, variant| {
                let of = total(load)?.iter().find(|of| of.variant == variant)?;
                Some(scale.plain(part(of)?.mean.value))
            })
        });
        let title = "CPU, mCPU, and memory, MiB";
        let any = PARTS.iter().any(|(.., part)| !values(*part).is_empty());
        any.then(|| self.table(title, columns.collect()))
    }

    /// A column a variant.
    fn by_variant(
        &self,
        name: &str,
        figure: impl Fn(&LoadFindings, &str) -> Option<String>,
    ) -> Vec<Shows> {
        let cell = |load: &LoadFindings, variant: &str| {
            figure(load, variant).map_or_else(Cell::absent, Cell::from)
        };
        let of = |variant: &str| Shows {
            title: format!("{name} {variant}"),
            cells: self.loads.iter().map(|load| cell(load, variant)).collect(),
        };
        self.sweep.variants().into_iter().map(of).collect()
    }

    /// A group a swept load, named where there are several.
    fn table(&self, title: &str, columns: Vec<Shows>) -> Table {
        let names = in_first_order(self.loads.iter().map(|load| swept(load)));
        let row = |at: usize| {
            let cells = columns.iter().map(|column| column.cells[at].clone());
            std::iter::once(cell_name(self.loads[at]).into()).chain(cells).collect()
        };
        let group = |name: &&str| Group {
            title: Some(if names.len() > 1 { format!("{name}: {title}") } else { title.into() }),
            rows: (0..self.loads.len())
                .filter(|at| swept(self.loads[*at]) == *name)
                .map(row)
                .collect(),
        };
        let groups = names.iter().map(group).collect();
        let heads = columns.iter().map(|column| figures(&column.title));
        Table { columns: std::iter::once(words("")).chain(heads).collect(), groups }
    }
}

/// The load of the study that a cell is of.
fn swept(load: &LoadFindings) -> &str {
    load.cell.as_ref().map_or("", |cell| cell.load.as_str())
}

fn total(load: &LoadFindings) -> Option<&[ResourceUse]> {
    let total = load.resources.iter().find(|row| row.group == ResourceGroup::Total)?;
    Some(&total.uses)
}
