//! Tells from a warm-up's series whether it has stopped moving. Pure.
//!
//! The newest two seconds are cut in two halves; the series is stable when neither throughput nor median
//! latency moved between them by more than a twentieth, or by more than their own scatter explains.
//! A slope does not pass as scatter: over a straight line the halves' medians are further apart than the
//! points within a half.

use crate::SeriesPoint;

/// Points looked at, at most: two seconds at four a second.
const NEWEST: usize = 8;
/// Fewer points than this tell nothing.
const FEWEST: usize = 4;
/// A movement up to this share of the level is none.
const TOLERANCE: f64 = 0.05;

/// Whether the end of the series is level in throughput and in median latency.
pub(crate) fn is_stable(series: &[SeriesPoint]) -> bool {
    let newest = &series[series.len().saturating_sub(NEWEST)..];
    newest.len() >= FEWEST
        && newest.iter().all(|p| p.throughput_per_s > 0.0)
        && is_level(newest.iter().map(|p| p.throughput_per_s).collect())
        && is_level(newest.iter().map(|p| p.p50_us).collect())
}

fn is_level(values: Vec<f64>) -> bool {
    let (older, newer) = values.split_at(values.len() / 2);
    let moved = (median(newer) - median(older)).abs();
    let scatter = range(older).min(range(newer)) / 2.0;
    moved <= (TOLERANCE * median(older)).max(scatter)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn range(values: &[f64]) -> f64 {
    let highest = values.iter().copied().fold(f64::MIN, f64::max);
    let lowest = values.iter().copied().fold(f64::MAX, f64::min);
    highest - lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(points: &[(f64, f64)]) -> Vec<SeriesPoint> {
        let point = |(i, (throughput_per_s, p50_us)): (usize, &(f64, f64))| SeriesPoint {
            at_s: (i + 1) as f64 / 4.0,
            throughput_per_s: *throughput_per_s,
            p50_us: *p50_us,
            p99_us: 0.0,
        };
        points.iter().enumerate().map(point).collect()
    }

    fn of_latency(p50s: &[f64]) -> Vec<SeriesPoint> {
        series(&p50s.iter().map(|p50| (1000.0, *p50)).collect::<Vec<_>>())
    }

    #[test]
    fn a_level_series_is_stable() {
        assert!(is_stable(&of_latency(&[200.0, 203.0, 198.0, 201.0, 199.0, 202.0, 200.0, 201.0])));
    }

    #[test]
    fn scatter_without_a_trend_is_stable() {
        assert!(is_stable(&of_latency(&[200.0, 260.0, 180.0, 240.0, 250.0, 190.0, 255.0, 205.0])));
    }

    #[test]
    fn a_falling_latency_is_not_stable() {
        let falling: Vec<f64> = (0..8).map(|i| 400.0 - 25.0 * f64::from(i)).collect();
        assert!(!is_stable(&of_latency(&falling)));
    }

    #[test]
    fn a_rising_throughput_at_level_latency_is_not_stable() {
        let rising: Vec<(f64, f64)> =
            (0..8).map(|i| (500.0 + 60.0 * f64::from(i), 200.0)).collect();
        assert!(!is_stable(&series(&rising)));
    }

    #[test]
    fn only_the_newest_points_count() {
        let mut latencies = vec![900.0, 700.0, 500.0, 300.0];
        latencies.extend([200.0; 8]);
        assert!(is_stable(&of_latency(&latencies)));
    }

    #[test]
    fn a_short_or_silent_series_tells_nothing() {
        assert!(!is_stable(&of_latency(&[200.0; 3])));
        assert!(!is_stable(&series(&[(0.0, 0.0); 8])));
    }
}
