//! What must hold of every estimate, whatever the numbers.

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use toll_stats::{
    Estimate, Level, Trend, Verdict, common_line, jackknife, jackknife_ratio, least_squares, mean,
    noise_floor, paired_difference, paired_ratio, pseudo_values, quantile, trend, verdict,
};

fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.1..1e4_f64, 0.1..1e4_f64), 2..30)
}

fn difference(pairs: &[(f64, f64)]) -> Estimate {
    let (baseline, treatment): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    paired_difference(&baseline, &treatment, Level::P95).expect("two or more finite pairs")
}

fn ratio(pairs: &[(f64, f64)]) -> Estimate {
    let (baseline, treatment): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    paired_ratio(&baseline, &treatment, Level::P95).expect("two or more positive pairs")
}

fn each(pairs: &[(f64, f64)], f: impl Fn((f64, f64)) -> (f64, f64)) -> Vec<(f64, f64)> {
    pairs.iter().copied().map(f).collect()
}

fn swapped(pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    each(pairs, |(baseline, treatment)| (treatment, baseline))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 + 1e-9 * a.abs().max(b.abs())
}

fn same(a: &Estimate, [value, low, high]: [f64; 3]) -> bool {
    near(a.value, value) && near(a.low, low) && near(a.high, high)
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
        prop_assert_eq!((back.score, back.p_value), (-there.score, there.p_value));
        prop_assert!(near(back.slope, -there.slope));
    }

    #[test]
    fn a_scale_that_keeps_the_order_keeps_the_probability(values in series()) {
        let bent: Vec<f64> = values.iter().map(|v| (v / 5.0).exp()).collect();
        let [plain, bent] = [trend_of(&values), trend_of(&bent)];
        prop_assert_eq!((plain.score, plain.p_value), (bent.score, bent.p_value));
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
    fn swapping_the_arms_negates_the_difference(pairs in pairs()) {
        let there = difference(&pairs);
        let back = difference(&swapped(&pairs));
        prop_assert!(same(&back, [-there.value, -there.high, -there.low]));
    }

    #[test]
    fn swapping_the_arms_inverts_the_ratio(pairs in pairs()) {
        let there = ratio(&pairs);
        let back = ratio(&swapped(&pairs));
        prop_assert!((back.value * there.value - 1.0).abs() < 1e-9);
        prop_assert!((back.low.ln() + there.high.ln()).abs() < 1e-9);
        prop_assert!((back.high.ln() + there.low.ln()).abs() < 1e-9);
    }

    #[test]
    fn another_unit_scales_the_difference_and_leaves_the_ratio(pairs in pairs(), unit in 1e-3..1e3_f64) {
        let scaled = each(&pairs, |(baseline, treatment)| (baseline * unit, treatment * unit));
        let [plain, other] = [difference(&pairs), difference(&scaled)];
        prop_assert!(same(&other, [plain.value, plain.low, plain.high].map(|v| v * unit)));
        let [plain, other] = [ratio(&pairs), ratio(&scaled)];
        prop_assert!((other.low.ln() - plain.low.ln()).abs() < 1e-9);
        prop_assert!((other.high.ln() - plain.high.ln()).abs() < 1e-9);
    }

    #[test]
    fn the_order_of_pairs_does_not_matter(pairs in pairs(), seed in any::<u64>()) {
        let mut shuffled = pairs.clone();
        shuffled.shuffle(&mut StdRng::seed_from_u64(seed));
        let plain = difference(&pairs);
        prop_assert!(same(&difference(&shuffled), [plain.value, plain.low, plain.high]));
    }

    #[test]
    fn a_disturbance_that_hits_both_arms_of_a_block_cancels_out(pairs in pairs(), by in 0.0..1e4_f64) {
        let mut disturbed = pairs.clone();
        disturbed[0].0 += by;
        disturbed[0].1 += by;
        let plain = difference(&pairs);
        prop_assert!(same(&difference(&disturbed), [plain.value, plain.low, plain.high]));
    }

    #[test]
    fn a_higher_level_gives_a_wider_interval_around_the_same_value(pairs in pairs()) {
        let (baseline, treatment): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let at = |share| paired_difference(&baseline, &treatment, Level::new(share).unwrap()).unwrap();
        let [narrow, wide] = [at(0.8), at(0.99)];
        prop_assert_eq!(narrow.value, wide.value);
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
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

    #[test]
    fn a_verdict_is_the_same_for_both_directions(pairs in pairs(), floor in 0.0..1e3_f64, bound in 1.0..1e4_f64) {
        let there = verdict(&difference(&pairs), Some(floor), bound);
        prop_assert_eq!(there, verdict(&difference(&swapped(&pairs)), Some(floor), bound));
    }
}

/// Blocks that wander together by 20, and arms that scatter by 1 on their own: as on a shared machine.
fn block_values(rng: &mut StdRng, effect: f64, blocks: usize) -> Vec<(f64, f64)> {
    let pair = |_| {
        let block = 500.0 + 20.0 * normal(rng);
        (block + normal(rng), block + effect + normal(rng))
    };
    (0..blocks).map(pair).collect()
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[test]
fn an_interval_of_95_percent_holds_the_true_effect_95_times_in_100() {
    const STUDIES: u32 = 4_000;
    let mut rng = StdRng::seed_from_u64(1908);
    let holds = |estimate: Estimate| estimate.low <= 3.0 && 3.0 <= estimate.high;
    let held = (0..STUDIES).filter(|_| holds(difference(&block_values(&mut rng, 3.0, 5)))).count();
    // Four standard errors of a share of 0.95 among 4000 studies are 0.014.
    let coverage = held as f64 / f64::from(STUDIES);
    assert!((0.936..=0.964).contains(&coverage), "{coverage}");
}

#[test]
fn an_a_a_study_finds_a_difference_in_fewer_than_1_of_20() {
    const STUDIES: u32 = 4_000;
    let mut rng = StdRng::seed_from_u64(2023);
    let found = (0..STUDIES).filter(|_| {
        let floor = noise_floor(&difference(&block_values(&mut rng, 0.0, 5)));
        verdict(&difference(&block_values(&mut rng, 0.0, 5)), Some(floor), 1.0)
            == Verdict::Difference
    });
    let share = found.count() as f64 / f64::from(STUDIES);
    assert!(share < 0.05, "{share}");
}

#[test]
fn chance_alone_is_called_a_trend_in_one_of_a_hundred_series() {
    const SERIES: u32 = 10_000;
    let mut rng = StdRng::seed_from_u64(1945);
    let chance = |rng: &mut StdRng| (0..12).map(|_| normal(rng)).collect::<Vec<_>>();
    let found = (0..SERIES).filter(|_| trend_of(&chance(&mut rng)).p_value < 0.01).count();
    // The approximation is a little careful for short series; four standard errors of 0.01 are 0.004.
    let share = found as f64 / f64::from(SERIES);
    assert!((0.003..=0.014).contains(&share), "{share}");
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
    fn blocks_of_one_shape_have_their_own_slopes_for_pseudo_values(
        ys in prop::collection::vec(prop::array::uniform4(-1e3..1e3_f64), 2..8),
    ) {
        let block = |ys: &[f64; 4]| -> Vec<(f64, f64)> {
            [2.0, 4.0, 10.0, 28.0].into_iter().zip(*ys).collect()
        };
        let blocks: Vec<_> = ys.iter().map(block).collect();
        let blocks: Vec<_> = blocks.iter().map(Vec::as_slice).collect();
        let figure = |kept: &[&[(f64, f64)]]| common_line(kept).ok().map(|line| line.slope);
        let values = pseudo_values(&blocks, figure).unwrap();
        for (value, block) in values.iter().zip(&blocks) {
            prop_assert!((value - least_squares(block).unwrap().slope).abs() < 1e-6);
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

    #[test]
    fn a_jackknifed_ratio_of_swapped_arms_is_the_inverse(all in -2.0..2.0_f64, without in prop::collection::vec(-2.0..2.0_f64, 2..10)) {
        let opposite: Vec<f64> = without.iter().map(|logarithm| -logarithm).collect();
        let there = jackknife_ratio(all, &without, Level::P95).unwrap();
        let back = jackknife_ratio(-all, &opposite, Level::P95).unwrap();
        prop_assert!(near(there.value * back.value, 1.0));
        prop_assert!((there.high.ln() + back.low.ln()).abs() < 1e-6);
    }
}

#[test]
fn a_figure_of_one_block_has_no_jackknife() {
    assert!(jackknife(1.0, &[1.0], Level::P95).is_err());
    assert!(jackknife(f64::NAN, &[1.0, 2.0], Level::P95).is_err());
}

/// Requests of two arms in one block of a short trial: the second is slower by 30 %, blocks and arms wander by 3 %, and
/// about one request in a hundred is several times slower, in some blocks more of them.
fn short_trial(rng: &mut StdRng) -> [Vec<f64>; 2] {
    const REQUESTS: usize = 60;
    let (block, tail) = ((0.03 * normal(rng)).exp(), 0.01 * (0.7 * normal(rng)).exp());
    [1.0, 1.3].map(|slower| {
        let level = slower * block * (0.03 * normal(rng)).exp();
        let request = |_| {
            let latency = level * (0.35 * normal(rng)).exp();
            let is_slow = rng.random::<f64>() < tail;
            if is_slow { latency * (1.0 - 3.0 * rng.random::<f64>().ln()) } else { latency }
        };
        (0..REQUESTS).map(request).collect()
    })
}

/// What the second arm adds to a percentile of all these blocks together.
fn added(blocks: &[&[Vec<f64>; 2]], share: f64) -> f64 {
    let percentile = |arm: usize| {
        let mut merged: Vec<f64> = blocks.iter().flat_map(|block| &block[arm]).copied().collect();
        let rank = (share * merged.len() as f64).ceil() as usize - 1;
        *merged.select_nth_unstable_by(rank, f64::total_cmp).1
    };
    percentile(1) - percentile(0)
}

#[test]
fn five_blocks_of_sixty_requests_hold_the_true_percentiles_95_times_in_100() {
    const STUDIES: usize = 1_000;
    let mut rng = StdRng::seed_from_u64(1956);
    let many: Vec<_> = (0..20_000).map(|_| short_trial(&mut rng)).collect();
    let many: Vec<_> = many.iter().collect();
    for share in [0.5, 0.99] {
        let truth = added(&many, share);
        let held = (0..STUDIES).filter(|_| {
            let blocks: Vec<_> = (0..5).map(|_| short_trial(&mut rng)).collect();
            let blocks: Vec<_> = blocks.iter().collect();
            let without = (0..5).map(|left_out| {
                let mut kept = blocks.clone();
                kept.remove(left_out);
                added(&kept, share)
            });
            let without: Vec<f64> = without.collect();
            let estimate = jackknife(added(&blocks, share), &without, Level::P95).unwrap();
            estimate.low <= truth && truth <= estimate.high
        });
        let coverage = held.count() as f64 / STUDIES as f64;
        // Four standard errors of a share of 0.95 among 1000 studies are 0.028.
        assert!((0.922..=0.978).contains(&coverage), "p{}: {coverage}", share * 100.0);
    }
}
