//! Turns estimates of the statistics into those that reports have.

use super::LEVEL;
use super::findings::Estimate;

/// What one round alone shows: it has no interval.
pub fn single(value: f64) -> Estimate {
    Estimate { value, low: value, high: value, level: LEVEL.share(), rounds: 1 }
}

/// As it is reported.
pub fn estimate(e: toll_stats::Estimate) -> Estimate {
    Estimate { value: e.value, low: e.low, high: e.high, level: e.level.share(), rounds: e.samples }
}

/// The mean of figures that each are of a round; none without one.
pub fn over_rounds(figures: Vec<f64>) -> Option<Estimate> {
    match figures.as_slice() {
        [] => None,
        [only] => Some(single(*only)),
        several => toll_stats::mean(several, LEVEL).ok().map(estimate),
    }
}
