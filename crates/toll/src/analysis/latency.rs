//! The curve of latencies over rounds. Percentiles come from merged histograms and are never averaged (docs/method.md
//! rule 3).

use toll_load::Histogram;

use super::findings::CurvePoint;

/// A quantile is drawn only while at least this many samples lie beyond it.
const SAMPLES_BEYOND: f64 = 10.0;

const QUANTILES: [f64; 19] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9999,
];

/// The curve of all rounds together, with the lowest and the highest round at each quantile.
pub fn curve(rounds: &[&Histogram]) -> Vec<CurvePoint> {
    let Some(merged) = merged(rounds) else { return vec![] };
    let samples = merged.count() as f64;
    QUANTILES
        .into_iter()
        .filter(|quantile| samples * (1.0 - quantile) >= SAMPLES_BEYOND)
        .map(|quantile| {
            let by_round = || rounds.iter().map(|round| round.quantile_us(quantile));
            CurvePoint {
                quantile,
                merged_us: merged.quantile_us(quantile),
                low_us: by_round().fold(f64::INFINITY, f64::min),
                high_us: by_round().fold(0.0, f64::max),
            }
        })
        .collect()
}

/// All rounds as one; `None` without a round.
pub fn merged(rounds: &[&Histogram]) -> Option<Histogram> {
    let (first, rest) = rounds.split_first()?;
    let mut merged = (*first).clone();
    for round in rest {
        merged.merge(round);
    }
    Some(merged)
}
