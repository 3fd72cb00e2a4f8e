//! Tells from a series whether what it measures has settled: two adjacent windows have the same mean.
//!
//! Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation" (OOPSLA 2007), take the
//! last k iterations of a virtual machine as its steady state once their coefficient of variation falls below a
//! threshold. Here two windows' means are compared instead: on a shared machine short slices scatter by more
//! than such a threshold long after the trend has ended, and a mean forgives scatter but not a trend.

/// Whether the mean of the newest `window` values differs from that of the `window` before by at most the share
/// `tolerance` of the latter. A series shorter than both windows has not settled, nor has one with a value in
/// them that is not finite.
pub fn settled(series: &[f64], window: usize, tolerance: f64) -> bool {
    let Some(from) = series.len().checked_sub(2 * window).filter(|_| window > 0) else {
        return false;
    };
    let (before, newest) = series[from..].split_at(window);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / window as f64;
    // With a value that is not finite, neither side of the comparison is a number that could pass it.
    (mean(newest) - mean(before)).abs() <= tolerance * mean(before).abs().min(f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_shorter_than_two_windows_has_not_settled() {
        assert!(!settled(&[10.0; 5], 3, 0.05));
        assert!(settled(&[10.0; 6], 3, 0.05));
        assert!(!settled(&[], 0, 0.05));
    }

    #[test]
    fn the_means_of_the_two_newest_windows_may_differ_by_the_tolerance() {
        // 100 before; 104 is within 5 %, 106 is not, on either side.
        for (newest, expected) in [(104.0, true), (106.0, false), (96.0, true), (94.0, false)] {
            let series = [100.0, 100.0, 100.0, newest, newest, newest];
            assert_eq!(settled(&series, 3, 0.05), expected, "{newest}");
        }
    }

    #[test]
    fn what_came_before_the_two_windows_does_not_count() {
        let mut series = vec![900.0, 700.0, 400.0];
        series.extend([100.0; 6]);
        assert!(settled(&series, 3, 0.05));
    }

    #[test]
    fn scatter_within_the_windows_is_forgiven_and_a_trend_is_not() {
        assert!(settled(&[80.0, 120.0, 100.0, 121.0, 99.0, 80.0], 3, 0.05));
        assert!(!settled(&[100.0, 103.0, 106.0, 109.0, 112.0, 115.0], 3, 0.05));
    }

    #[test]
    fn a_value_that_is_not_finite_is_no_sign_of_rest() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for position in 0..6 {
                let mut series = [100.0; 6];
                series[position] = odd;
                assert!(!settled(&series, 3, 0.05), "{odd} at {position}");
            }
        }
    }

    #[test]
    fn a_level_of_zero_is_settled_as_long_as_it_stays_zero() {
        assert!(settled(&[0.0; 6], 3, 0.05));
        assert!(!settled(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 3, 0.05));
    }
}
