//! Turns a histogram into lines with bars. Bounds grow by ratios and are round numbers: fine up to p99, so that
//! the shape of the many shows, and coarse above, so that one slow answer does not squeeze all others into one
//! line. A bar is drawn to an eighth of a column.

use toll_load::Histogram;

use crate::load::figures;

/// Where the fine bounds end.
const BODY: f64 = 0.99;
const BODY_LINES: usize = 9;
const TAIL_LINES: usize = 4;
/// Bounds within a power of ten, the finest first.
const BODY_SERIES: [&[f64]; 6] = [
    &[
        1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0,
        7.0, 8.0, 9.0,
    ],
    &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 3.0],
    &[1.0],
];
const TAIL_SERIES: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Label and bar of each line; nothing when the histogram is empty.
pub fn bars(times: &Histogram, width: usize) -> Vec<(String, String)> {
    if times.count() == 0 {
        return Vec::new();
    }
    let counted = counted(times);
    let most = counted.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let label = |(bound_ns, count): &(f64, u64)| {
        let share = figures::share_in_column(*count as f64 / times.count() as f64);
        format!(
            "  <= {:<8}{:>12}{share:>10}  ",
            figures::round_time(bound_ns / 1e3),
            figures::count(*count)
        )
    };
    let width_left = width - label(&counted[0]).chars().count();
    counted.iter().map(|line| (label(line), bar(line.1, most, width_left))).collect()
}

/// Upper bounds, nanoseconds, and how many values lie below each and above the one before.
fn counted(times: &Histogram) -> Vec<(f64, u64)> {
    let mut lines: Vec<(f64, u64)> = bounds(times).into_iter().map(|bound| (bound, 0)).collect();
    for value in times.0.iter_recorded() {
        let ns = times.0.lowest_equivalent(value.value_iterated_to()) as f64;
        let at = lines.partition_point(|(bound, _)| *bound < ns).min(lines.len() - 1);
        lines[at].1 += value.count_at_value();
    }
    lines
}

fn bounds(times: &Histogram) -> Vec<f64> {
    let lowest = |ns: u64| (times.0.lowest_equivalent(ns) as f64).max(1.0);
    let (min_ns, max_ns) = (lowest(times.0.min()), lowest(times.0.max()));
    let body_end_ns = lowest(times.0.value_at_quantile(BODY));
    let mut bounds = finest(&BODY_SERIES, BODY_LINES, min_ns, body_end_ns);
    let last = *bounds.last().expect("a series never ends below its value");
    if last < max_ns {
        // The least number above: the tail begins with the next bound.
        bounds.extend(finest(&TAIL_SERIES, TAIL_LINES, last.next_up(), max_ns));
    }
    bounds
}

fn finest(series: &[&[f64]], most: usize, from_ns: f64, to_ns: f64) -> Vec<f64> {
    let mut fitting = series.iter().map(|series| bounds_of(series, from_ns, to_ns));
    let first = fitting.find(|bounds| bounds.len() <= most);
    first.unwrap_or_else(|| bounds_of(&[1.0], from_ns, to_ns))
}

/// The bounds of a series from the first at or above the least value to the first at or above the largest.
fn bounds_of(series: &[f64], min_ns: f64, max_ns: f64) -> Vec<f64> {
    let first_power = min_ns.log10().floor() as i32;
    let all =
        (first_power..).flat_map(|power| series.iter().map(move |step| step * 10_f64.powi(power)));
    let mut bounds = Vec::new();
    for bound in all.skip_while(|bound| *bound < min_ns) {
        bounds.push(bound);
        if bound >= max_ns {
            break;
        }
    }
    bounds
}

/// Something is always drawn for something.
fn bar(count: u64, most: u64, width_left: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let eighths = (count as f64 / most as f64 * width_left as f64 * 8.0).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.record_ns(*ns));
        histogram
    }

    #[test]
    fn a_value_on_a_bound_belongs_below_it() {
        let counted = counted(&histogram(&[1_000_000, 1_000_000, 1_100_000, 1_500_000]));
        let seen: Vec<_> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(seen, [(1e6, 2), (1.1e6, 1), (1.5e6, 1)]);
    }

    #[test]
    fn the_longest_bar_fills_the_room_and_the_shortest_shows() {
        assert_eq!(bar(1000, 1000, 4), "████");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(500, 1000, 3), "█▌");
        assert_eq!(bar(0, 1000, 4), "");
    }

    #[test]
    fn one_slow_answer_leaves_the_shape_of_the_others() {
        let mut times = histogram(&(300..400).map(|us| us * 1000).collect::<Vec<_>>().repeat(10));
        times.record_ns(9_000_000_000);
        let lines = counted(&times);
        assert!(lines.iter().filter(|(_, count)| *count > 0).count() >= 3, "{lines:?}");
        assert!(lines.len() <= BODY_LINES + TAIL_LINES + 8, "{lines:?}");
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_of_a_few_lines(values in prop::collection::vec(1_u64..3_600_000_000_000, 1..50)) {
            let histogram = histogram(&values);
            let counted = counted(&histogram);
            prop_assert!(counted.len() <= 13 + BODY_LINES, "{counted:?}");
            prop_assert_eq!(counted.iter().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }
}
