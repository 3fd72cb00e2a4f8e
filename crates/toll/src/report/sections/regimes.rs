//! Says how far each variant is from its own capacity, and warns where two do not compare. Draws nothing.

use crate::analysis::findings::{LoadFindings, Regime, View};

use crate::report::document::{Cell, Piece, Tone};
use crate::report::figures::{rounded, whole_percent};

/// A line a variant, then the warning. Flat out every variant is at its limit, so nothing is said.
pub(in crate::report) fn pieces(load: &LoadFindings) -> Vec<Piece> {
    if load.view == View::FlatOut || load.regimes.is_empty() {
        return vec![];
    }
    let warning = warning(&load.regimes).map(|text| Cell::toned(text, Tone::Unknown));
    vec![Piece::List(load.regimes.iter().map(line).chain(warning).collect())]
}

/// `baseline at 71 % of its capacity: 454 of 640 requests/s`.
fn line(regime: &Regime) -> Cell {
    let Regime { variant, throughput_per_s, capacity_per_s, .. } = regime;
    let rates =
        format!("{} of {} requests/s", rounded(*throughput_per_s), rounded(*capacity_per_s));
    let share = whole_percent(throughput_per_s / capacity_per_s);
    let (place, tone) = match regime {
        Regime { at_limit: true, .. } => ("at its limit".to_owned(), Tone::Unknown),
        Regime { near_limit: true, .. } => (format!("near its limit ({share})"), Tone::Unknown),
        _ => (format!("at {share} of its capacity"), Tone::Same),
    };
    Cell::toned(format!("{variant} {place}: {rates}"), tone)
}

fn warning(regimes: &[Regime]) -> Option<&'static str> {
    let near = regimes.iter().filter(|r| r.near_limit).count();
    match near {
        0 => None,
        _ if regimes.len() < 2 => None,
        near if near == regimes.len() => Some(
            "All variants are at or near their limit: latency here is that of a queue, throughput about that of the machine.",
        ),
        _ => Some(
            "The variants are in different regimes: at or near the limit a queue adds to latency, so the difference is not what the variant costs a request.",
        ),
    }
}
