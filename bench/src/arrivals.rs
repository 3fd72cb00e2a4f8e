//! Turns arrival stamps into how exact a client's sends were: residuals to the best-fit line.
//!
//! The line is the least-squares fit of instant over index, so that neither the client's own idea of its rate
//! nor the offset of its clock matters. Beginning and end are cut off: connections are made in the one, and in
//! the other clients run dry.

use toll_stats::quantile;

/// How exact the sends were, as the server's kernel saw them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exactness {
    /// Requests per second of the best-fit line.
    pub(crate) rate_per_s: f64,
    /// Median distance to the line, microseconds.
    pub(crate) p50_us: f64,
    /// 99th percentile of the distance to the line, microseconds.
    pub(crate) p99_us: f64,
}

impl Exactness {
    const CUT_BEGIN_NS: u64 = 500_000_000;
    const CUT_END_NS: u64 = 200_000_000;

    /// None when less than three stamps lie between the cuts.
    pub(crate) fn of(stamps_ns: &[u64]) -> Option<Exactness> {
        let mut sorted = stamps_ns.to_vec();
        sorted.sort_unstable();
        let from = sorted.first()? + Self::CUT_BEGIN_NS;
        let to = sorted.last()?.saturating_sub(Self::CUT_END_NS);
        sorted.retain(|stamp| (from..=to).contains(stamp));
        if sorted.len() < 3 {
            return None;
        }
        let instants_ns: Vec<f64> = sorted.iter().map(|stamp| (stamp - from) as f64).collect();
        Exactness::to_best_fit(&instants_ns)
    }

    fn to_best_fit(instants_ns: &[f64]) -> Option<Exactness> {
        let line = Line::fit(instants_ns);
        let distances_us: Vec<f64> = instants_ns
            .iter()
            .enumerate()
            .map(|(index, at)| (at - line.at(index)).abs() / 1e3)
            .collect();
        Some(Exactness {
            rate_per_s: 1e9 / line.slope,
            p50_us: quantile(&distances_us, 0.5).ok()?,
            p99_us: quantile(&distances_us, 0.99).ok()?,
        })
    }
}

/// Least-squares line through the points (0, y0), (1, y1), …
#[derive(Debug, Clone, Copy)]
struct Line {
    slope: f64,
    mean: f64,
    middle: f64,
}

impl Line {
    fn fit(values: &[f64]) -> Line {
        let count = values.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let mean = values.iter().sum::<f64>() / count;
        let (mut across, mut along) = (0.0, 0.0);
        for (index, value) in values.iter().enumerate() {
            let x = index as f64 - middle;
            across += x * (value - mean);
            along += x * x;
        }
        Line { slope: across / along, mean, middle }
    }

    fn at(self, index: usize) -> f64 {
        self.mean + self.slope * (index as f64 - self.middle)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

    /// Two seconds at 1,000/s, each moved by what `shift_ns` says for its index.
    fn stamps(shift_ns: impl Fn(u64) -> u64) -> Vec<u64> {
        (0..2_000).map(|k| BEGIN_NS + k * 1_000_000 + shift_ns(k)).collect()
    }

    #[test]
    fn a_perfect_schedule_has_no_error() {
        let exact = Exactness::of(&stamps(|_| 0)).unwrap();
        assert!((exact.rate_per_s - 1_000.0).abs() < 1e-6);
        assert!(exact.p99_us < 1e-3);
    }

    #[test]
    fn every_other_send_late_by_100_us_is_an_error_of_50_us() {
        let exact = Exactness::of(&stamps(|k| k % 2 * 100_000)).unwrap();
        assert!((exact.p50_us - 50.0).abs() < 1.0, "{}", exact.p50_us);
    }

    #[test]
    fn sends_in_bursts_of_ten_lie_up_to_half_a_burst_off() {
        let exact = Exactness::of(&stamps(|k| (9 - k % 10) * 1_000_000)).unwrap();
        assert!((exact.p50_us - 2_500.0).abs() < 510.0, "{}", exact.p50_us);
        assert!((exact.p99_us - 4_500.0).abs() < 100.0, "{}", exact.p99_us);
    }

    #[test]
    fn a_few_outliers_move_the_99th_percentile_and_not_the_median() {
        let exact = Exactness::of(&stamps(|k| if k % 50 == 0 { 500_000 } else { 0 })).unwrap();
        assert!(exact.p50_us < 15.0 && exact.p99_us > 400.0, "{exact:?}");
    }

    #[test]
    fn too_short_a_run_says_nothing() {
        assert_eq!(Exactness::of(&[]), None);
        assert_eq!(Exactness::of(&stamps(|_| 0)[..600]), None);
    }

    proptest! {
        #[test]
        fn the_best_fit_of_points_on_a_line_is_that_line(
            slope in 1.0_f64..1e6, offset in 0.0_f64..1e9, count in 3_usize..500,
        ) {
            let values: Vec<f64> = (0..count).map(|k| offset + slope * k as f64).collect();
            let line = Line::fit(&values);
            prop_assert!((line.slope / slope - 1.0).abs() < 1e-6);
            prop_assert!((line.at(0) - offset).abs() < 1e-6 * (offset + slope * count as f64));
        }
    }
}
