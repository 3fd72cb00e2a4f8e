//! Says how far each variant is from its own knee, and warns where two do not compare. Draws nothing.

use crate::analysis::findings::{LoadFindings, Regime, View};

use super::content::Detail;
use super::figures::{rounded, whole_percent};
use super::table::{Cell, Piece, Tone};

/// A line a variant, then the warning. Flat out every variant is at its limit, so nothing is said.
pub(super) fn pieces(load: &LoadFindings, detail: Detail) -> Vec<Piece> {
    let told = match load.view {
        View::Users => true,
        View::EqualRate => detail == Detail::Full,
        View::FlatOut => false,
    };
    if !told || load.regimes.is_empty() {
        return vec![];
    }
    let warning = warning(&load.regimes).map(|text| Cell::toned(text, Tone::Unknown));
    vec![Piece::List(load.regimes.iter().map(line).chain(warning).collect())]
}

/// `baseline at 71 % of its knee: 454 of 640 requests/s`.
fn line(regime: &Regime) -> Cell {
    let Regime { variant, throughput_per_s, knee_per_s, .. } = regime;
    let rates = format!("{} of {} requests/s", rounded(*throughput_per_s), rounded(*knee_per_s));
    if regime.past_knee {
        return Cell::toned(format!("{variant} past its knee: {rates}"), Tone::Unknown);
    }
    let share = whole_percent(throughput_per_s / knee_per_s);
    Cell::toned(format!("{variant} at {share} of its knee: {rates}"), Tone::Same)
}

fn warning(regimes: &[Regime]) -> Option<&'static str> {
    let past = regimes.iter().filter(|r| r.past_knee).count();
    match past {
        0 => None,
        _ if regimes.len() < 2 => None,
        past if past == regimes.len() => Some(
            "All variants are past their knee: latency here is that of a queue, throughput that of the machine.",
        ),
        _ => Some(
            "The variants are in different regimes: past the knee a queue adds to latency, so the difference is not what the variant costs a request.",
        ),
    }
}
