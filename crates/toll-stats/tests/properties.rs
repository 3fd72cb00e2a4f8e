//! What must hold of every estimate, whatever the numbers.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use toll_stats::{
    Level, Trend, common_line, jackknife, least_squares, mean, pseudo_values, quantile, trend,
};

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 + 1e-9 * a.abs().max(b.abs())
}

/// A series on whole numbers, so that ties occur, long enough for a test.
fn series() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-20..20).prop_map(f64::from), 10..40)
}

fn over_time(values: &[f64]) -> Vec<(f64, f64)> {
    (0..).map(f64::from).zip(values.iter().copied()).collect()
}

fn trend_of(values: &[f64]) -> Trend {
    trend(&[over_time(values)]).expect("ten or more finite values in order")
}

proptest! {
    #[test]
    fn points_on_a_line_give_that_line(slope in -1e3..1e3_f64, at_zero in -1e3..1e3_f64, xs in prop::collection::btree_set(-100..100_i32, 2..20)) {
        let points: Vec<(f64, f64)> = xs.into_iter().map(f64::from).map(|x| (x, at_zero + slope * x)).collect();
        let line = least_squares(&points).unwrap();
        prop_assert!((line.slope - slope).abs() < 1e-7 && (line.intercept - at_zero).abs() < 1e-6, "{line:?}");
    }

    #[test]
    fn a_series_read_backwards_has_the_opposite_trend(values in series()) {
        let there = trend_of(&values);
        let back = trend_of(&values.iter().rev().copied().collect::<Vec<_>>());
        prop_assert_eq!(back.score, -there.score);
        prop_assert!(near(back.p_value, there.p_value));
        prop_assert!(near(back.slope, -there.slope));
    }

    #[test]
    fn a_scale_that_keeps_the_order_keeps_the_score(values in series()) {
        let bent: Vec<f64> = values.iter().map(|v| (v / 5.0).exp()).collect();
        let [plain, bent] = [trend_of(&values), trend_of(&bent)];
        prop_assert_eq!(plain.score, bent.score);
    }

    #[test]
    fn a_series_that_never_changes_has_no_trend(value in -1e6..1e6_f64, points in 10..40_usize) {
        let flat = trend_of(&vec![value; points]);
        prop_assert_eq!((flat.score, flat.slope, flat.p_value), (0, 0.0, 1.0));
    }

    #[test]
    fn the_levels_of_series_that_are_tested_together_do_not_matter(a in series(), b in series(), apart in -1e3..1e3_f64) {
        let raised: Vec<f64> = b.iter().map(|v| v + apart.round()).collect();
        let plain = trend(&[over_time(&a), over_time(&b)]).unwrap();
        prop_assert_eq!(plain, trend(&[over_time(&a), over_time(&raised)]).unwrap());
        prop_assert_eq!(plain.score, trend_of(&a).score + trend_of(&b).score);
    }

    #[test]
    fn quantiles_never_fall_and_stay_among_the_values(
        values in prop::collection::vec(-1e6..1e6_f64, 1..50), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64,
    ) {
        let [lower, upper] = [a.min(b), a.max(b)].map(|q| quantile(&values, q).unwrap());
        prop_assert!(quantile(&values, 0.0).unwrap() <= lower);
        prop_assert!(lower <= upper + 1e-9);
        prop_assert!(upper <= quantile(&values, 1.0).unwrap() + 1e-9);
    }
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// A series in which each point keeps the share `kept` of the one before; `rise` is added from point to point.
fn keeping(rng: &mut StdRng, points: usize, kept: f64, rise: f64) -> Vec<f64> {
    let mut level = normal(rng) / (1.0 - kept * kept).sqrt();
    let mut point = |at: usize| {
        level = kept * level + normal(rng);
        level + rise * at as f64
    };
    (0..points).map(&mut point).collect()
}

/// Share of series that have a trend at the 1 % level.
fn with_trend(seed: u64, series: u32, draw: impl Fn(&mut StdRng) -> Vec<Vec<f64>>) -> f64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let has_trend = |rng: &mut StdRng| {
        let drawn: Vec<_> = draw(rng).iter().map(|values| over_time(values)).collect();
        trend(&drawn).expect("ten or more finite values in order").p_value < 0.01
    };
    (0..series).filter(|_| has_trend(&mut rng)).count() as f64 / f64::from(series)
}

#[test]
fn chance_alone_is_called_a_trend_in_at_most_one_of_a_hundred_series() {
    // The correction is a little careful for short series; four standard errors of 0.01 are 0.009 of 2000.
    for points in [12, 40] {
        let share = with_trend(1945, 2_000, |rng| vec![keeping(rng, points, 0.0, 0.0)]);
        assert!((0.001..=0.017).contains(&share), "{points}: {share}");
    }
}

#[test]
fn points_that_follow_each_other_are_called_a_trend_in_hardly_more() {
    for points in [40, 60] {
        // Without the correction 0.11 and 0.12.
        let share = with_trend(1998, 800, |rng| vec![keeping(rng, points, 0.5, 0.0)]);
        assert!(share <= 0.022, "{points}: {share}");
    }
}

#[test]
fn several_series_that_keep_their_levels_are_no_trend_together() {
    let share = with_trend(1982, 800, |rng| (0..3).map(|_| keeping(rng, 20, 0.5, 0.0)).collect());
    assert!(share <= 0.025, "{share}");
}

#[test]
fn a_rise_is_found_in_spite_of_the_correction() {
    let share = with_trend(2004, 200, |rng| vec![keeping(rng, 50, 0.5, 0.15)]);
    assert!(share > 0.9, "{share}");
}

proptest! {
    #[test]
    fn groups_on_lines_of_one_slope_give_that_slope_whatever_their_levels(
        slope in -1e2..1e2_f64,
        levels in prop::collection::vec(-1e3..1e3_f64, 1..6),
        xs in prop::collection::btree_set(-100..100_i32, 2..8),
    ) {
        let group = |level: &f64| -> Vec<(f64, f64)> {
            xs.iter().map(|x| (f64::from(*x), level + slope * f64::from(*x))).collect()
        };
        let groups: Vec<_> = levels.iter().map(group).collect();
        let groups: Vec<_> = groups.iter().map(Vec::as_slice).collect();
        let line = common_line(&groups).unwrap();
        let level = levels.iter().sum::<f64>() / levels.len() as f64;
        prop_assert!((line.slope - slope).abs() < 1e-6 && (line.intercept - level).abs() < 1e-6);
    }

    #[test]
    fn rounds_of_one_shape_have_their_own_slopes_for_pseudo_values(
        ys in prop::collection::vec(prop::array::uniform4(-1e3..1e3_f64), 2..8),
    ) {
        let round = |ys: &[f64; 4]| -> Vec<(f64, f64)> {
            [2.0, 4.0, 10.0, 28.0].into_iter().zip(*ys).collect()
        };
        let rounds: Vec<_> = ys.iter().map(round).collect();
        let rounds: Vec<_> = rounds.iter().map(Vec::as_slice).collect();
        let figure = |kept: &[&[(f64, f64)]]| common_line(kept).ok().map(|line| line.slope);
        let values = pseudo_values(&rounds, figure).unwrap();
        for (value, round) in values.iter().zip(&rounds) {
            prop_assert!((value - least_squares(round).unwrap().slope).abs() < 1e-6);
        }
    }
}

#[test]
fn a_group_without_its_far_points_hardly_moves_the_common_slope() {
    let whole = [(2.0, 20.0), (4.0, 40.0), (10.0, 100.0), (28.0, 280.0)];
    let near = [(2.0, 20.0), (4.0, 60.0)];
    let line = common_line(&[&whole, &near]).unwrap();
    assert!((line.slope - 10.0).abs() < 0.1, "{line:?}");
    assert_eq!(least_squares(&near).unwrap().slope, 20.0);
}

#[test]
fn no_group_with_two_places_makes_no_line() {
    assert!(common_line(&[&[(1.0, 1.0)], &[(2.0, 2.0)]]).is_err());
    assert!(common_line(&[]).is_err());
}

proptest! {
    #[test]
    fn the_jackknife_of_a_mean_is_the_interval_of_the_mean(values in prop::collection::vec(-1e4..1e4_f64, 2..20)) {
        let (n, sum) = (values.len() as f64, values.iter().sum::<f64>());
        let without: Vec<f64> = values.iter().map(|value| (sum - value) / (n - 1.0)).collect();
        let there = jackknife(sum / n, &without, Level::P95).unwrap();
        let mean = mean(&values, Level::P95).unwrap();
        prop_assert!((there.value - mean.value).abs() < 1e-6 && there.samples == mean.samples);
        prop_assert!((there.low - mean.low).abs() < 1e-5 && (there.high - mean.high).abs() < 1e-5);
    }
}

#[test]
fn a_figure_of_one_round_has_no_jackknife() {
    assert!(jackknife(1.0, &[1.0], Level::P95).is_err());
    assert!(jackknife(f64::NAN, &[1.0, 2.0], Level::P95).is_err());
}

/// Requests of two arms in one short round: the second is slower by 30 %, rounds and arms wander by 3 %, and about one
/// request in a hundred is several times slower, in some rounds more of them.
fn short_round(rng: &mut StdRng) -> [Vec<f64>; 2] {
    const REQUESTS: usize = 60;
    let (round, tail) = ((0.03 * normal(rng)).exp(), 0.01 * (0.7 * normal(rng)).exp());
    [1.0, 1.3].map(|slower| {
        let level = slower * round * (0.03 * normal(rng)).exp();
        let request = |_| {
            let latency = level * (0.35 * normal(rng)).exp();
            let is_slow = rng.random::<f64>() < tail;
            if is_slow { latency * (1.0 - 3.0 * rng.random::<f64>().ln()) } else { latency }
        };
        (0..REQUESTS).map(request).collect()
    })
}

/// What the second arm adds to a percentile of all these rounds together.
fn added(rounds: &[&[Vec<f64>; 2]], share: f64) -> f64 {
    let percentile = |arm: usize| {
        let mut merged: Vec<f64> = rounds.iter().flat_map(|round| &round[arm]).copied().collect();
        let rank = (share * merged.len() as f64).ceil() as usize - 1;
        *merged.select_nth_unstable_by(rank, f64::total_cmp).1
    };
    percentile(1) - percentile(0)
}

#[test]
fn five_rounds_of_sixty_requests_hold_the_true_percentiles_95_times_in_100() {
    const STUDIES: usize = 400;
    let mut rng = StdRng::seed_from_u64(1956);
    // The truth of 2000 rounds is off by a twentieth of the standard error of five.
    let many: Vec<_> = (0..2_000).map(|_| short_round(&mut rng)).collect();
    let many: Vec<_> = many.iter().collect();
    let studies: Vec<[_; 5]> =
        (0..STUDIES).map(|_| std::array::from_fn(|_| short_round(&mut rng))).collect();
    for share in [0.5, 0.99] {
        let truth = added(&many, share);
        let holds = |rounds: &&[[Vec<f64>; 2]; 5]| {
            let rounds = rounds.each_ref();
            let without = [0, 1, 2, 3, 4].map(|left_out| {
                let mut kept = rounds.to_vec();
                kept.remove(left_out);
                added(&kept, share)
            });
            let estimate = jackknife(added(&rounds, share), &without, Level::P95).unwrap();
            estimate.low <= truth && truth <= estimate.high
        };
        let coverage = studies.iter().filter(holds).count() as f64 / STUDIES as f64;
        // Four standard errors of a share of 0.95 among 400 studies are 0.0436.
        assert!((0.906..=0.994).contains(&coverage), "p{}: {coverage}", share * 100.0);
    }
}
