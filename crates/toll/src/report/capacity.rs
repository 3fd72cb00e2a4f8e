//! Turns the answer of `toll plan-capacity` into one table for a terminal, or into JSON. Predicts nothing.

use crate::analysis::capacity::{Capacity, Prediction, VariantCapacity};
use crate::analysis::findings::{HeldOut, ScaledQuantity};
use crate::analysis::scaling::QUANTITIES;

use super::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use super::figures::ends;
use super::figures::{Scale, verbatim};
use super::subjects::scaling::{off, quantity, shown_off};
use super::terminal;
use super::wording::{interval, listed, several};

/// Stands behind a figure that nothing measured speaks for.
const MARK: &str = " *";

/// The answer as text of at most `width` columns, with ANSI colours if `colour`.
pub fn capacity(answer: &Capacity, width: usize, colour: bool) -> String {
    terminal::alone(&of(answer), width, colour)
}

/// The answer itself, unrounded, for programs.
pub fn capacity_json(answer: &Capacity) -> String {
    let mut text = serde_json::to_string_pretty(answer).expect("an answer is plain data");
    text.push('\n');
    text
}

fn of(answer: &Capacity) -> Section {
    let title = format!(
        "{}: {} {} of {} at {} requests/s",
        answer.study,
        answer.pods,
        if answer.pods == 1 { "pod" } else { "pods" },
        answer.service,
        verbatim(answer.rate_per_s)
    );
    let mut pieces = vec![Piece::Text(rests_on(answer)), Piece::Table(table(answer))];
    pieces.extend(notes(answer).into_iter().map(Piece::Text));
    Section::new("capacity", title, pieces)
}

fn rests_on(answer: &Capacity) -> String {
    let list = |values: Vec<String>| values.join(", ");
    let measured = &answer.measured;
    let rounds = predictions(answer).map(|p| p.predicted.rounds).max().unwrap_or(0);
    format!(
        "From {}: {} pods on {} at {} requests/s, {rounds} {}.",
        answer.run,
        list(measured.pods.iter().map(ToString::to_string).collect()),
        nodes(measured.nodes),
        list(measured.rates_per_s.iter().copied().map(verbatim).collect()),
        if rounds == 1 { "round" } else { "rounds" }
    )
}

fn table(answer: &Capacity) -> Table {
    let level = predictions(answer).next().map_or(0.95, |p| p.predicted.level) * 100.0;
    let columns = vec![
        words(""),
        figures("predicted"),
        figures(format!("{level:.0}\u{a0}% interval")),
        figures("held-out error"),
        words("verdict"),
    ];
    let groups = QUANTITIES.into_iter().filter_map(|quantity| group(answer, quantity)).collect();
    Table { columns, groups }
}

fn group(answer: &Capacity, quantity: ScaledQuantity) -> Option<Group> {
    let of_quantity = |variant: &'_ VariantCapacity| {
        let prediction = variant.predictions.iter().find(|p| p.quantity == quantity)?;
        Some((variant.variant.clone(), prediction.clone()))
    };
    let found: Vec<(String, Prediction)> = answer.variants.iter().filter_map(of_quantity).collect();
    let scale = Scale::of(self::quantity(quantity), found.iter().map(|(_, p)| p.predicted.value));
    let row = |(variant, p): &(String, Prediction)| -> Vec<Cell> {
        let mark = if p.extrapolated { MARK } else { "" };
        let tone = if p.extrapolated { Tone::Unknown } else { Tone::Neutral };
        vec![
            variant.into(),
            Cell::toned(format!("{}{mark}", figure(quantity, scale, p.predicted.value)), tone),
            interval(scale, p.predicted).into(),
            held_out(quantity, scale, &p.held_out).into(),
            verdict(p),
        ]
    };
    let title = Some(format!("{}, {}", called(quantity, &answer.baseline), scale.unit()));
    (!found.is_empty()).then(|| Group { title, rows: found.iter().map(row).collect() })
}

fn figure(quantity: ScaledQuantity, scale: Scale, value: f64) -> String {
    if quantity.is_added() { scale.signed(value) } else { scale.plain(value) }
}

/// Whether the added latency is clearly not zero; memory and CPU never are.
fn verdict(prediction: &Prediction) -> Cell {
    match ends(prediction.predicted) {
        _ if !prediction.quantity.is_added() => Cell::default(),
        Some((low, _)) if low > 0.0 => Cell::toned("higher", Tone::Worse),
        Some((_, high)) if high < 0.0 => Cell::toned("lower", Tone::Better),
        _ => Cell::toned("cannot tell", Tone::Unknown),
    }
}

/// The worst of the held-out cells: in percent of what was measured, or for what may be next to nothing in its unit.
fn held_out(quantity: ScaledQuantity, scale: Scale, cells: &[HeldOut]) -> String {
    let off = cells.iter().map(|cell| off(quantity, cell));
    let worst = off.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    worst.map_or_else(|| "not tried".into(), |off| shown_off(quantity, scale, off))
}

fn notes(answer: &Capacity) -> Vec<String> {
    let mut notes = Vec::new();
    if !answer.outside.is_empty() {
        let outside: Vec<String> = answer.outside.iter().map(ToString::to_string).collect();
        notes.push(format!(
            "* Outside of what was measured: {}. The figure takes every cost for a straight line that far, and its interval does not know whether it is one.",
            outside.join("; ")
        ));
    }
    notes.push("The interval is where one more round of this size would lie. Memory is anonymous memory, CPU is by counters, both of gateway, application and data plane together.".into());
    if predictions(answer).any(|p| p.quantity.is_added()) {
        notes.push("Added latency is higher or lower where its interval leaves zero out; elsewhere one more round may show either, or none.".into());
    }
    notes.extend(node_proxies(answer));
    notes.extend(predictions(answer).find_map(|p| p.held_out.first()).map(tried));
    notes
}

/// What a fleet on more nodes has more of.
fn node_proxies(answer: &Capacity) -> Option<String> {
    let with: Vec<String> =
        answer.variants.iter().filter(|v| v.has_node_proxies).map(|v| v.variant.clone()).collect();
    let measured = answer.measured.nodes;
    let proxies = if measured == 1 { "1 proxy" } else { "a proxy for each" };
    (!with.is_empty()).then(|| {
        format!(
            "All of it is on {}: {} has {proxies}, and a fleet on more nodes pays for one more on each.",
            nodes(measured),
            listed(&with)
        )
    })
}

fn nodes(count: usize) -> String {
    several(count, "node")
}

fn tried(cell: &HeldOut) -> String {
    let sizes: Vec<String> = cell.fitted_on.iter().map(ToString::to_string).collect();
    format!(
        "Held-out error: how far a fit on {} pods alone is from the largest size as it was measured; the worst of its cells.",
        sizes.join(", ")
    )
}

fn predictions(answer: &Capacity) -> impl Iterator<Item = &Prediction> {
    answer.variants.iter().flat_map(|variant| &variant.predictions)
}

fn called(quantity: ScaledQuantity, baseline: &str) -> String {
    match quantity {
        ScaledQuantity::Memory => "memory".into(),
        ScaledQuantity::Cpu => "CPU".into(),
        ScaledQuantity::AddedP50 => format!("added to p50 latency of {baseline}"),
        ScaledQuantity::AddedP99 => format!("added to p99 latency of {baseline}"),
    }
}

#[cfg(test)]
mod tests;
