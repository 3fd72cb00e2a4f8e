//! Whether the variants did the same amount of work a second, and what to say where they did not.

use crate::analysis::findings::{LoadFindings, Metric, View};

use crate::report::document::{Cell, Piece, Tone};
use crate::report::figures::{Quantity, Scale, share};
use crate::report::values::value_of;

/// Rates further apart than this are not equal (docs/method.md rule 2).
const EQUAL_RATE_TOLERANCE: f64 = 0.02;

/// Completed requests per second, of the slowest and of the fastest variant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Rates {
    low: f64,
    high: f64,
}

impl Rates {
    /// How far they are apart, as a share of the higher one.
    pub(in crate::report) fn apart(self) -> f64 {
        (self.high - self.low) / self.high
    }

    /// Whether the variants did the same amount of work a second (docs/method.md rule 2).
    pub(in crate::report) fn are_equal(self) -> bool {
        self.apart() <= EQUAL_RATE_TOLERANCE
    }
}

/// What the variants achieved; none when there are not two to compare.
pub(in crate::report) fn achieved_rates(load: &LoadFindings) -> Option<Rates> {
    let rates: Vec<f64> =
        load.variants.iter().filter_map(|v| value_of(v, Metric::Throughput)).collect();
    let (low, high) = rates.iter().fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    (rates.len() > 1 && high > 0.0).then_some(Rates { low, high })
}

/// At equal rate throughput is no effect but a check that the rates were equal.
pub(in crate::report) fn rate_check(load: &LoadFindings) -> Option<Piece> {
    if load.view != View::EqualRate {
        return None;
    }
    let rates = achieved_rates(load)?;
    let Rates { low, high } = rates;
    // "within 0.0 %" would claim more than one decimal can show.
    let apart = share(rates.apart().max(0.001));
    let rate = Scale::of(Quantity::PerSecond, [high]);
    if rates.are_equal() {
        let rate = rate.with_unit(high);
        return Some(Piece::Text(format!("Check: all variants completed {rate}, within {apart}.")));
    }
    let from = rate.plain(low);
    let to = rate.with_unit(high);
    let text =
        format!("The rates were not equal: the variants completed {from} to {to}, {apart} apart.");
    Some(Piece::List(vec![Cell::toned(text, Tone::Worse)]))
}
