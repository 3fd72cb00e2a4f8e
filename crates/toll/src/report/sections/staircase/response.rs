//! Response times at the step that the published study tells of. Draws nothing.

use crate::analysis::findings::{Estimate, VariantLoad};
use crate::report::charts;
use crate::report::document::{Cell, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::Scale;
use crate::report::subjects::staircase::{
    STATISTICS, Stairs, in_order, response_of, scale_of_response, several_clients,
};
use crate::report::wording::interval;

/// A row a variant; none when no load had a step.
pub(super) fn response(stairs: &Stairs<'_>) -> Option<Section> {
    let (clients, load) = stairs.nearest()?;
    let all = in_order(stairs, load);
    let scale = scale_of_response(&all);
    let text = format!(
        "Response times in {}: means of the rounds' means, percentiles of all rounds together. The rates differ as the throughput does: a closed loop with {} waits for each answer.",
        scale.unit(),
        several_clients(clients)
    );
    let heads = STATISTICS.iter().map(|(_, name)| figures(*name));
    let rows = all.iter().flat_map(|variant| rows(variant, scale)).collect();
    let table = Table::new(std::iter::once(words("")).chain(heads).collect(), rows);
    let title = stairs.title(format!("Response times with {}", several_clients(clients)));
    let pieces = vec![Piece::Text(text), Piece::Table(table)];
    let section = Section::new(stairs.id("response"), title, pieces);
    Some(section.showing(charts::response(stairs).into_iter().collect()))
}

fn rows(variant: &VariantLoad, scale: Scale) -> Vec<Vec<Cell>> {
    let row = |title: &str, shown: &dyn Fn(Option<Estimate>) -> Cell| {
        let cells = STATISTICS.iter().map(|(metric, _)| shown(response_of(variant, *metric)));
        std::iter::once(title.into()).chain(cells).collect::<Vec<Cell>>()
    };
    let value = |e: Option<Estimate>| e.map_or_else(Cell::absent, |e| scale.plain(e.value).into());
    let below = |e: Option<Estimate>| {
        Cell::toned(e.map_or_else(String::new, |e| interval(scale, e)), Tone::Quiet)
    };
    vec![row(&variant.variant, &value), row("", &below)]
}
