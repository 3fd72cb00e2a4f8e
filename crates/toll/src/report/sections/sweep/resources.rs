//! CPU and memory by group of pods as lowest, highest and mean, and what `kubectl top` would make of the same
//! counters. Adds nothing up.

use crate::analysis::findings::{
    LoadFindings, ResourceGroup, ResourceRow, ResourceUse, Spread, TopTotal,
};
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::sweep::{Sweep, cell_name};
use crate::report::wording::several;

/// What a group of pods used of one kind.
pub(super) type Part = fn(&ResourceUse) -> Option<Spread>;

/// A quantity that is shown for each group of pods.
pub(super) const PARTS: [(&str, Quantity, Part); 2] = [
    ("CPU", Quantity::Millicores, |of| of.cpu_millicores),
    ("memory", Quantity::Mebibytes, |of| of.memory_mib),
];

/// The groups of the largest cells; those of the others stand with their cells.
pub(super) fn resources(sweep: &Sweep<'_>) -> Option<Section> {
    let text = "CPU, mCPU, and anonymous memory, MiB, in exactly the measured window: the mean of CPU from counters at its ends, lowest and highest from samples. The published study adds up each column by itself, so its totals are of no instant.";
    let mut pieces = vec![Piece::Text(text.into())];
    for load in sweep.largest() {
        if let Some(table) = table(load) {
            pieces.extend([Piece::Heading(cell_name(load)), Piece::Table(table)]);
        }
    }
    (pieces.len() > 1).then(|| Section::new("resources", "CPU and memory by group of pods", pieces))
}

/// A row of figures behind the name of its group of pods.
fn toned(group: ResourceGroup, figures: impl Iterator<Item = String>) -> Vec<Cell> {
    let tone = match group {
        ResourceGroup::Total => Tone::Sum,
        ResourceGroup::ColumnSums => Tone::Quiet,
        _ => Tone::Neutral,
    };
    let cells = std::iter::once(group_title(group).to_owned()).chain(figures);
    cells.map(|text| Cell::toned(text, tone)).collect()
}

/// A group a variant, a row a group of pods; none without a reading.
pub(super) fn table(load: &LoadFindings) -> Option<Table> {
    let uses = || load.resources.iter().flat_map(|row| &row.uses);
    let cpu = scale(Quantity::Millicores, uses().filter_map(|u| u.cpu_millicores));
    let memory = scale(Quantity::Mebibytes, uses().filter_map(|u| u.memory_mib));
    let row = |row: &ResourceRow, variant: &str| {
        let of = row.uses.iter().find(|u| u.variant == variant)?;
        Some(resource_row(row.group, of, cpu, memory))
    };
    let groups = load.variants.iter().map(|v| Group {
        title: Some(v.variant.clone()),
        rows: load.resources.iter().filter_map(|r| row(r, &v.variant)).collect(),
    });
    let groups: Vec<Group> = groups.filter(|g| !g.rows.is_empty()).collect();
    let columns = ["CPU min", "CPU max", "CPU avg", "memory min", "memory max", "memory avg"];
    let columns = std::iter::once(words("")).chain(columns.map(figures)).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}

fn scale(quantity: Quantity, spreads: impl Iterator<Item = Spread>) -> Scale {
    // The largest sets the decimals: a row of the table is read against its total.
    let largest = spreads.map(|s| s.mean.value).fold(0.0, f64::max);
    Scale::of(quantity, [largest, largest / 10.0])
}

fn resource_row(group: ResourceGroup, of: &ResourceUse, cpu: Scale, memory: Scale) -> Vec<Cell> {
    let figures = |spread: Option<Spread>, scale: Scale| match spread {
        Some(s) => [s.min, s.max, s.mean.value].map(|value| scale.plain(value)),
        None => ["–"; 3].map(String::from),
    };
    let cpu = figures(of.cpu_millicores, cpu);
    toned(group, cpu.into_iter().chain(figures(of.memory_mib, memory)))
}

fn group_title(group: ResourceGroup) -> &'static str {
    match group {
        ResourceGroup::Gateway => "gateway",
        ResourceGroup::Application => "application",
        ResourceGroup::Egress => "egress gateway",
        ResourceGroup::NodeProxies => "node proxies",
        ResourceGroup::Control => "control plane",
        ResourceGroup::Total => "total, at one instant",
        ResourceGroup::ColumnSums => "sum of columns",
    }
}

/// What `kubectl top` would show: sentences on the largest cell, and a table of all.
pub(super) fn top(sweep: &Sweep<'_>) -> Option<Section> {
    let load = sweep.largest().into_iter().rfind(|load| !load.top_totals.is_empty())?;
    let text = format!(
        "A view: kubectl top rounds every pod that did anything up to 1m at the least, so with many idle pods it counts pods: {}.",
        cell_name(load)
    );
    let said = load.top_totals.iter().map(sentence).collect();
    let pieces = vec![Piece::Text(text), Piece::List(said), Piece::Table(all_tops(sweep))];
    Some(Section::new("top", "What kubectl top would show", pieces))
}

/// `ambient: counters say 7.2m, kubectl top would show 90m: 90 pods, each rounded up to 1m`.
fn sentence(of: &TopTotal) -> Cell {
    let scale = Scale::of(Quantity::Millicores, [of.counted_millicores.value]);
    let shown = Scale::whole(Quantity::Millicores).plain(of.shown_millicores.value);
    let text = format!(
        "{}: counters say {}m, kubectl top would show {shown}m: {} rounded up",
        of.variant,
        scale.plain(of.counted_millicores.value),
        several(of.pods, "pod")
    );
    Cell::toned(text, Tone::Quiet)
}

fn all_tops(sweep: &Sweep<'_>) -> Table {
    let counted = sweep.cells.iter().flat_map(|l| &l.top_totals);
    let scale = Scale::of(Quantity::Millicores, counted.map(|t| t.counted_millicores.value));
    let whole = Scale::whole(Quantity::Millicores);
    let variants = sweep.variants();
    let row = |load: &&LoadFindings| {
        let of = |name: &&str| load.top_totals.iter().find(|t| t.variant == **name);
        let cells = variants.iter().flat_map(|name| match of(name) {
            Some(t) => {
                [scale.plain(t.counted_millicores.value), whole.plain(t.shown_millicores.value)]
            }
            None => ["–"; 2].map(String::from),
        });
        std::iter::once(cell_name(load)).chain(cells).map(Cell::from).collect()
    };
    let columns = variants
        .iter()
        .flat_map(|name| [figures(format!("{name}, by counters")), figures("by kubectl top")]);
    let columns = std::iter::once(words("mCPU")).chain(columns).collect();
    let with_tops = sweep.cells.iter().filter(|load| !load.top_totals.is_empty());
    Table::new(columns, with_tops.map(row).collect())
}
