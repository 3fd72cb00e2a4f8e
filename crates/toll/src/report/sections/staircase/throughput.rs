//! Throughput by clients and variant. Draws nothing.

use crate::analysis::findings::{Estimate, StaircaseStep};
use crate::report::charts;
use crate::report::document::{Cell, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::ends;
use crate::report::figures::{Quantity, Scale};
use crate::report::subjects::staircase::Stairs;
use crate::report::wording::{listed, range};

/// A row a step, with the intervals below.
pub(super) fn throughput(stairs: &Stairs<'_>) -> Section {
    let text = "Completed requests/s, means over rounds, and their intervals below; each client asks again when it is answered, so a slower variant is asked less.";
    let scale = |values| Scale::of(Quantity::PerSecond, values);
    let table = by_clients(stairs, scale, true, |step| Some(step.throughput_per_s));
    let pieces = vec![Piece::Text(text.into()), Piece::Table(table)];
    let clients: Vec<String> = stairs.clients().iter().map(ToString::to_string).collect();
    Section::new(stairs.id("throughput"), stairs.title("Throughput against clients"), pieces)
        .showing(charts::throughput_by_clients(stairs).into_iter().collect())
        .saying(format!("with {} clients", listed(&clients)))
}

/// A row a number of clients, a column a variant.
pub(super) fn by_clients(
    stairs: &Stairs<'_>,
    scale: impl Fn(Vec<f64>) -> Scale,
    with_intervals: bool,
    of: impl Fn(&StaircaseStep) -> Option<Estimate>,
) -> Table {
    let variants = stairs.variants();
    let all = stairs.of.lines.iter().flat_map(|line| &line.steps).filter_map(&of);
    let scale = scale(all.map(|e| e.value).collect());
    let row = |clients: u32, shown: &dyn Fn(Option<Estimate>) -> Cell, title: String| {
        let cell = |name: &&str| shown(stairs.step(name, clients).and_then(&of));
        std::iter::once(title.into()).chain(variants.iter().map(cell)).collect::<Vec<Cell>>()
    };
    let value = |e: Option<Estimate>| e.map_or_else(Cell::absent, |e| scale.plain(e.value).into());
    let below = |e: Option<Estimate>| {
        let said = e.and_then(ends).map(|(l, h)| range(&scale.plain(l), &scale.plain(h)));
        Cell::toned(said.unwrap_or_default(), Tone::Quiet)
    };
    let rows = stairs.clients().into_iter().flat_map(|clients| {
        let mut rows = vec![row(clients, &value, clients.to_string())];
        rows.extend(with_intervals.then(|| row(clients, &below, String::new())));
        rows
    });
    let heads = variants.iter().map(|name| figures(*name));
    Table::new(std::iter::once(words("clients")).chain(heads).collect(), rows.collect())
}
