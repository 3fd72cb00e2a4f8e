//! Turns findings into the tables of CPU and memory by component. Draws nothing.

use crate::analysis::findings::{Effect, Findings, LoadFindings, Metric, Role};

use super::payers;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale, figure, signed};
use crate::report::parts::{self, Part};
use crate::report::values::{in_first_order, value_of};
use crate::report::wording::load_title;

/// Variants that a line of answer names at most.
const MOST_ANSWERED: usize = 2;

/// CPU per request and idle CPU by component.
pub(in crate::report) fn cpu(findings: &Findings, loads: &[&LoadFindings]) -> Section {
    let text = "CPU time by component, mean over rounds; changes are within rounds. What toll and the load generator use, and what no component owns (interrupts, kernel threads, other programs), is not counted in CPU per request.";
    let mut pieces = vec![Piece::Text(text.into())];
    let mut costs = loads.iter().flat_map(|l| &l.variants).flat_map(|v| &v.cpu_per_request);
    if costs.any(|cost| cost.owner.role == Role::Collector) {
        let text = "The collector of spans is toll's own too: it takes what an agent sends, in every variant, and is in no sum.";
        pieces.push(Piece::Text(text.into()));
    }
    if loads.iter().flat_map(|l| &l.variants).any(|v| v.traversals.is_some()) {
        let text = "A traversal is one way through one sidecar, in or out, with its answer, as the proof of path counted them; to a database it is one query, or one whole transaction.";
        pieces.push(Piece::Text(text.into()));
    }
    for load in loads {
        let of_load = cpu_pieces(findings, load);
        if !of_load.is_empty() {
            pieces.push(Piece::Heading(load_title(load)));
        }
        pieces.extend(of_load);
    }
    let paid = loads.first().map(|load| load.attribution.as_slice()).unwrap_or_default();
    let paid: Vec<String> = paid
        .iter()
        .take(MOST_ANSWERED)
        .map(|a| format!("{}: {}", a.variant, payers::sentence(a)))
        .collect();
    Section::new("cpu", "What it costs, and who pays", pieces).saying(paid.join("; "))
}

/// Who pays for the change where that is known, else who used what; then what was used without load.
fn cpu_pieces(findings: &Findings, load: &LoadFindings) -> Vec<Piece> {
    if load.attribution.is_empty() {
        return cpu_table(load).into_iter().map(Piece::Table).collect();
    }
    let mut pieces = payers::pieces(load, &findings.baseline);
    if let Some(idle) = component_table(load, vec![idle_group(idle_parts(load))]) {
        pieces.push(Piece::Heading(format!("Without load, before {}", load.name)));
        pieces.push(Piece::Table(idle));
    }
    pieces
}

/// Memory per variant and by component.
pub(in crate::report) fn memory(loads: &[&LoadFindings]) -> Section {
    let text = "Anonymous memory, the mean of the measured window.";
    let tables = loads.iter().map(|l| (*l, memory_table(l)));
    let effects = loads.first().map(|load| load.effects.as_slice()).unwrap_or_default();
    let memory = effects.iter().filter(|e| e.metric == Metric::Memory);
    let said = |e: &Effect| {
        let by = figure(Quantity::BinaryBytes, e.difference.value);
        format!("{} {}", e.variant, signed(e.difference.value, by))
    };
    let said: Vec<String> = memory.take(MOST_ANSWERED).map(said).collect();
    Section::new("memory", "Memory", by_load(text, tables)).saying(said.join(", "))
}

/// The table of each load below its title.
fn by_load<'a>(
    text: &str,
    tables: impl Iterator<Item = (&'a LoadFindings, Option<Table>)>,
) -> Vec<Piece> {
    let mut pieces = vec![Piece::Text(text.into())];
    for (load, table) in tables {
        if let Some(table) = table {
            pieces.extend([Piece::Heading(load_title(load)), Piece::Table(table)]);
        }
    }
    pieces
}

fn cpu_table(load: &LoadFindings) -> Option<Table> {
    let per_request = load.variants.iter().map(|v| parts::of_costs(&v.cpu_per_request)).collect();
    let idle = idle_group(idle_parts(load));
    let groups = per_request_groups(load, per_request).into_iter().chain([idle]);
    component_table(load, groups.collect())
}

fn idle_parts(load: &LoadFindings) -> Vec<Vec<Part>> {
    load.variants.iter().map(|v| parts::of_costs(&v.idle_cpu)).collect()
}

fn per_request_groups(load: &LoadFindings, variants: Vec<Vec<Part>>) -> [Group; 2] {
    let totals: Vec<Option<f64>> =
        load.variants.iter().map(|v| value_of(v, Metric::CpuPerRequest)).collect();
    let scale = scale(Quantity::CpuTime, &variants);
    let mut counted = rows(&variants, scale, Role::is_measured);
    if !counted.is_empty() {
        counted.push(total_row(&totals, scale));
    }
    let others = rows(&variants, scale, |role| !role.is_measured());
    let unit = scale.unit();
    [
        Group { title: Some(format!("per request, {unit}")), rows: counted },
        Group { title: Some(format!("not counted, per request, {unit}")), rows: others },
    ]
}

/// An idle proxy costs little beside a busy neighbour, and what it costs is what is asked for: it is never shown as 0.
fn idle_group(variants: Vec<Vec<Part>>) -> Group {
    let scale = scale(Quantity::Millicores, &variants);
    let title = Some(format!("idle, without load, {}", scale.unit()));
    Group { title, rows: rows_of(&variants, |_| true, &|value| scale.legible(value)) }
}

fn memory_table(load: &LoadFindings) -> Option<Table> {
    let variants: Vec<Vec<Part>> =
        load.variants.iter().map(|v| parts::of_memory(&v.memory)).collect();
    let scale = scale(Quantity::BinaryBytes, &variants);
    let title = Some(format!("by component, {}", scale.unit()));
    component_table(load, vec![Group { title, rows: rows(&variants, scale, |_| true) }])
}

/// The largest part sets the decimals: those of the smallest would be noise in the sum.
fn scale(quantity: Quantity, variants: &[Vec<Part>]) -> Scale {
    Scale::of(quantity, [variants.iter().flatten().map(|p| p.value).fold(0.0, f64::max)])
}

fn rows(variants: &[Vec<Part>], scale: Scale, wanted: impl Fn(Role) -> bool) -> Vec<Vec<Cell>> {
    rows_of(variants, wanted, &|value| scale.plain(value))
}

/// One row a part, one figure a variant, by role and in the order in which the variants bring them.
fn rows_of(
    variants: &[Vec<Part>],
    wanted: impl Fn(Role) -> bool,
    shown: &dyn Fn(f64) -> String,
) -> Vec<Vec<Cell>> {
    let all = variants.iter().flatten().filter(|p| wanted(p.role)).cloned();
    let value = |of: &[Part], name: &str| of.iter().find(|p| p.name == name).map(|p| p.value);
    let in_order = parts::by_role(all.collect());
    in_first_order(in_order.iter().map(|p| p.name.as_str()))
        .into_iter()
        .map(|name| {
            let values: Vec<Option<f64>> = variants.iter().map(|of| value(of, name)).collect();
            row(name, &values, shown)
        })
        .collect()
}

fn total_row(totals: &[Option<f64>], scale: Scale) -> Vec<Cell> {
    let cells = row("CPU per request", totals, &|value| scale.plain(value));
    cells.into_iter().map(|cell| Cell::toned(cell.text, Tone::Sum)).collect()
}

fn row(title: &str, values: &[Option<f64>], shown: &dyn Fn(f64) -> String) -> Vec<Cell> {
    let figures = values.iter().map(|v| v.map_or_else(Cell::absent, |v| shown(v).into()));
    std::iter::once(title.into()).chain(figures).collect()
}

/// A table with a column a variant; none when no group has a row.
fn component_table(load: &LoadFindings, mut groups: Vec<Group>) -> Option<Table> {
    groups.retain(|g| !g.rows.is_empty());
    let variants = load.variants.iter().map(|v| figures(&v.variant));
    let columns = std::iter::once(words("")).chain(variants).collect();
    (!groups.is_empty()).then_some(Table { columns, groups })
}
