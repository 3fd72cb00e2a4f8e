use proptest::prelude::*;

use super::*;
use crate::clock::SECOND_NS;
use crate::{Profile, Stage};

const WHOLE: Slice = Slice { first: 0, stride: 1 };
const DAY_S: f64 = 86_400.0;

/// Stages of (duration in seconds, value at the begin, value at the end).
fn profile(stages: &[(f64, f64, f64)]) -> Profile {
    let stage = |&(duration_s, from, to): &_| Stage { duration_s, from, to };
    Profile { stages: stages.iter().map(stage).collect() }
}

fn even(profile: &Profile) -> Arrivals {
    Arrivals { rate_per_s: profile.clone(), spacing: Spacing::Even }
}

fn poisson(profile: &Profile) -> Arrivals {
    Arrivals { rate_per_s: profile.clone(), spacing: Spacing::Poisson }
}

fn schedule(arrivals: &Arrivals) -> Schedule {
    Schedule::new(arrivals, 7, WHOLE).unwrap()
}

/// Due times of an evenly spaced schedule.
fn due(stages: &[(f64, f64, f64)], count: usize) -> Vec<u64> {
    schedule(&even(&profile(stages))).take(count).collect()
}

/// When arrival number `k` of an evenly spaced schedule is due.
fn due_of(profile: &Profile, k: u64) -> Option<u64> {
    Schedule::new(&even(profile), 0, Slice { first: k, stride: 1 }).unwrap().next()
}

/// Arrivals that fall before `t`, from the definition of the integral in whole numbers: ceil(integral up to t).
fn arrivals_before(profile: &Profile, t: u64) -> u64 {
    let micro = |value: f64| (value * 1e6).round() as i128;
    let (mut before, mut left) = (0, i128::from(t));
    let last = Stage { duration_s: 1e6, ..*profile.stages.last().unwrap() };
    let hold = Stage { from: last.to, ..last };
    for stage in profile.stages.iter().chain([&hold]) {
        let (from, to) = (micro(stage.from), micro(stage.to));
        let length = (stage.duration_s * 1e9).round() as i128;
        if left >= length {
            before += (from + to) * length;
            left -= length;
            continue;
        }
        // rise * left^2 fits for a hundred seconds, not for the hold behind them, which has no rise.
        let bend = if to == from { 0 } else { (to - from) * left * left };
        let (floor, rest) = (bend.div_euclid(length), bend.rem_euclid(length));
        let whole = before + 2 * from * left + floor;
        let arrival = ARRIVAL as i128;
        let part = i128::from(whole % arrival > 0 || rest > 0);
        return (whole / arrival + part) as u64;
    }
    panic!("{t} is beyond what the reference can hold")
}

#[test]
fn constant_arrivals_are_due_at_the_exact_instants() {
    let table: [(f64, &[u64]); 4] = [
        (1.0, &[0, 1_000_000_000, 2_000_000_000]),
        (3.0, &[0, 333_333_333, 666_666_666, 1_000_000_000]),
        (0.5, &[0, 2_000_000_000]),
        (10_000_000.0, &[0, 100, 200]),
    ];
    for (rate, expected) in table {
        assert_eq!(due(&[(0.0, rate, rate)], expected.len()), expected, "at {rate}/s");
    }
}

#[test]
fn a_constant_rate_does_not_drift_in_a_day() {
    assert_eq!(due_of(&Profile::constant(7.0), 7 * 86_400), Some(86_400 * SECOND_NS));
}

#[test]
fn ramps_are_due_where_the_square_root_says() {
    // From 0 to 2/s in 2 s the integral is t^2 / 2: arrival k at sqrt(2k); afterwards every half second.
    let root = |k: f64| ((2.0 * k).sqrt() * 1e9) as u64;
    assert_eq!(due(&[(2.0, 0.0, 2.0)], 4), [0, root(1.0), 2_000_000_000, 2_500_000_000]);
    // Downwards its mirror image: 2t - t^2/2, arrival k at 2 - sqrt(4 - 2k), and no more than two.
    assert_eq!(due(&[(2.0, 2.0, 0.0)], 9), [0, (0.585_786_437_626_904_9 * 1e9) as u64]);
}

#[test]
fn a_ramp_of_a_week_is_exact_at_its_whole_seconds() {
    let up = profile(&[(604_800.0, 0.0, 1e7)]);
    let down = profile(&[(604_800.0, 1e7, 0.0)]);
    let whole = 604_800_u64 * 5_000_000;
    for units in 1..50_u64 {
        // 1e7 t^2 / (2 x 604,800) is whole at the multiples of 12,096 s.
        let (t, k) = (units * 12_096, units * units * 1_209_600_000);
        assert_eq!(due_of(&up, k), Some(t * SECOND_NS), "up, {t} s");
        assert_eq!(due_of(&down, whole - k), Some((604_800 - t) * SECOND_NS), "down, {t} s");
    }
}

#[test]
fn the_last_arrival_of_a_ramp_to_zero_comes_before_its_end() {
    let line = rate_lines(&profile(&[(1000.0, 1e6, 0.0)])).unwrap();
    let all = ARRIVAL * 500_000_000;
    let mut rate = CumulativeRate::new(line);
    assert_eq!(rate.instant_past(all - 1), Some(1000 * SECOND_NS - 1));
    assert_eq!(rate.instant_past(all), None);
}

#[test]
fn a_pause_has_no_arrivals_and_shifts_none_of_those_after_it() {
    let stages = [(1.0, 2.0, 2.0), (10.0, 0.0, 0.0), (0.0, 9.0, 9.0), (1.0, 4.0, 4.0)];
    let ms: Vec<u64> = due(&stages, 5).iter().map(|ns| ns / 1_000_000).collect();
    assert_eq!(ms, [0, 500, 11_000, 11_250, 11_500]);
}

#[test]
fn a_rate_that_stays_zero_ends_the_schedule() {
    for arrivals in [even, poisson] {
        let mut schedule = schedule(&arrivals(&profile(&[(5.0, 40.0, 40.0), (0.0, 0.0, 0.0)])));
        let due: Vec<u64> = schedule.by_ref().collect();
        assert!(due.iter().all(|due| *due < 5 * SECOND_NS));
        assert_eq!(schedule.next(), None, "and it stays so");
    }
    assert_eq!(due(&[(5.0, 40.0, 40.0), (0.0, 0.0, 0.0)], 999).len(), 200);
}

#[test]
fn a_stage_without_duration_is_never_in_force_unless_it_is_the_last() {
    assert_eq!(
        due(&[(0.0, 1.0, 1.0), (1.0, 10.0, 10.0), (0.0, 3.0, 5.0)], 12)[8..],
        [800_000_000, 900_000_000, 1_000_000_000, 1_200_000_000]
    );
}

#[test]
fn a_warm_up_stands_at_the_first_value() {
    let ramp = even(&profile(&[(0.0, 1.0, 1.0), (10.0, 4.0, 900.0)]));
    let warm_up = Schedule::at_begin(&ramp, 0, Slice { first: 1, stride: 2 }).unwrap();
    assert_eq!(warm_up.take(2).collect::<Vec<_>>(), [250_000_000, 750_000_000]);
}

#[test]
fn a_warm_up_before_a_ramp_from_zero_is_empty() {
    let ramp = even(&profile(&[(10.0, 0.0, 900.0)]));
    assert_eq!(Schedule::at_begin(&ramp, 0, WHOLE).unwrap().next(), None);
}

#[test]
fn profiles_that_make_no_schedule_are_refused_with_advice() {
    let rates = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-7, 2e7].map(Profile::constant);
    let durations = [-1.0, f64::NAN, 7.1 * DAY_S].map(|s| profile(&[(s, 1.0, 1.0)]));
    let others = [
        profile(&[]),
        profile(&[(4.0 * DAY_S, 1.0, 1.0), (4.0 * DAY_S, 1.0, 1.0)]),
        profile(&[(0.0, 1.0, 1.0), (1.0, 0.0, 0.0)]),
        profile(&[(1.0, 1.0, -1.0)]),
    ];
    for profile in rates.iter().chain(&durations).chain(&others) {
        let error = Schedule::new(&even(profile), 0, WHOLE).expect_err("no schedule");
        assert!(error.help().is_some(), "{error}");
        assert!(Schedule::at_begin(&even(profile), 0, WHOLE).is_err(), "{error}");
    }
}

#[test]
fn numbers_of_clients_that_cannot_be_are_refused_with_advice() {
    for profile in [
        Profile::constant(0.0),
        Profile::constant(0.4),
        Profile::constant(-1.0),
        Profile::constant(f64::NAN),
        Profile::constant(1_000_001.0),
        profile(&[]),
        profile(&[(-1.0, 1.0, 1.0)]),
    ] {
        let error = Clients::new(&profile).expect_err("no clients");
        assert!(error.help().is_some(), "{error}");
    }
}

#[test]
fn clients_change_halfway_between_whole_numbers() {
    // 1 to 3 in 4 s, down to 0 in 2 s, then 5.
    let clients =
        Clients::new(&profile(&[(4.0, 1.0, 3.0), (2.0, 3.0, 0.0), (0.0, 5.0, 5.0)])).unwrap();
    let mut changes = vec![(0, clients.at(0))];
    while let Some(at) = clients.next_change(changes[changes.len() - 1].0) {
        changes.push((at, clients.at(at)));
    }
    let s = |seconds: f64| (seconds * 1e9) as u64;
    let down = |tenths: u64| s(4.0) + tenths * s(1.0) / 3 + 1;
    assert_eq!(
        changes,
        [
            (0, 1),
            (s(1.0), 2),
            (s(3.0), 3),
            (down(1), 2),
            (s(5.0) + 1, 1),
            (down(5), 0),
            (s(6.0), 5)
        ]
    );
    assert_eq!(clients.highest(), 5);
}

#[test]
fn each_instant_lies_in_one_stage() {
    let stages = Stages::new(&profile(&[(1.0, 1.0, 1.0), (0.0, 9.0, 9.0), (2.0, 2.0, 3.0)]));
    let at = |seconds: f64| stages.index_at((seconds * 1e9) as u64);
    assert_eq!([at(0.0), at(0.999), at(1.0), at(2.9), at(3.0), at(1e6)], [0, 0, 2, 2, 2, 2]);
    assert_eq!(stages.len(), 3);
    assert_eq!(stages.bounds(2), (SECOND_NS, 3 * SECOND_NS));
}

#[test]
fn poisson_arrivals_follow_from_the_seed() {
    let of_seed = |seed| {
        let arrivals = Arrivals::poisson(100.0);
        Schedule::new(&arrivals, seed, WHOLE).unwrap().take(50).collect::<Vec<_>>()
    };
    assert_eq!(of_seed(1), of_seed(1));
    assert_ne!(of_seed(1), of_seed(2));
}

#[test]
fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
    let due: Vec<u64> = schedule(&Arrivals::poisson(1_000.0)).take(100_000).collect();
    let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Standard error of the mean is 0.3 % here; four of them.
    assert!((mean / 1e6 - 1.0).abs() < 0.013, "mean gap {mean} ns");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "spread {}", variance.sqrt());
}

/// Counts in the seconds of a phase of four, one row for each of 2,000 seeds.
fn counts_of_seeds(arrivals: &Arrivals) -> Vec<[f64; 4]> {
    let counts = |seed| {
        let mut row = [0.0; 4];
        let schedule = Schedule::new(arrivals, seed, WHOLE).unwrap();
        for due in schedule.take_while(|due| *due < 4 * SECOND_NS) {
            row[(due / SECOND_NS) as usize] += 1.0;
        }
        row
    };
    (0..2_000).map(counts).collect()
}

#[test]
fn poisson_counts_have_the_integral_as_mean_and_as_variance() {
    let course = profile(&[(2.0, 0.0, 40.0), (1.0, 0.0, 0.0), (1.0, 60.0, 20.0)]);
    let rows = counts_of_seeds(&poisson(&course));
    for (second, expected) in [10.0, 30.0, 0.0, 40.0].into_iter().enumerate() {
        let counts: Vec<f64> = rows.iter().map(|row| row[second]).collect();
        let n = counts.len() as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // The mean has variance expected / n; n x variance / expected is near chi-square of n. Five sigma.
        assert!(
            (mean - expected).abs() <= 5.0 * (expected / n).sqrt(),
            "mean {mean} of {expected}"
        );
        let spread = 5.0 * expected * (2.0 / n).sqrt() * 1.1;
        assert!((variance - expected).abs() <= spread, "variance {variance} of {expected}");
    }
}

#[test]
fn poisson_counts_of_disjoint_seconds_do_not_depend_on_each_other() {
    let rows = counts_of_seeds(&poisson(&Profile::constant(25.0)));
    let product: f64 = rows.iter().map(|row| (row[0] - 25.0) * (row[1] - 25.0)).sum();
    // The covariance of two independent counts has standard error 25 / sqrt(n).
    assert!((product / 2_000.0).abs() < 5.0 * 25.0 / 2_000_f64.sqrt(), "{product}");
}

/// A value that is a whole number of thousandths, often zero or round.
fn value(highest: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(0.0),
        2 => (1_u32..=20).prop_map(f64::from),
        4 => (0.0..=highest).prop_map(|v| (v * 1e3).round() / 1e3),
    ]
}

fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![
        1 => Just(0.0),
        2 => (1_u32..=20).prop_map(|s| f64::from(s) / 4.0),
        1 => (1_u64..=1_000).prop_map(|ns| ns as f64 / 1e9),
        3 => 1e-6..100.0,
    ]
}

fn any_profile(highest: f64) -> impl Strategy<Value = Profile> {
    let flat = (seconds(), value(highest)).prop_map(|(s, v)| (s, v, v));
    let stage = prop_oneof![flat, (seconds(), value(highest), value(highest))];
    prop::collection::vec(stage, 1..6).prop_map(|stages| profile(&stages))
}

fn never_zero(profile: &Profile) -> bool {
    Schedule::new(&even(profile), 0, WHOLE).is_ok()
}

fn some_load(highest: f64) -> impl Strategy<Value = Profile> {
    any_profile(highest).prop_filter("zero everywhere", never_zero)
}

fn spacing() -> impl Strategy<Value = Spacing> {
    prop_oneof![Just(Spacing::Even), Just(Spacing::Poisson)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn no_constant_arrival_is_early_or_a_nanosecond_late(
        micro_per_s in 1_u64..=10_000_000_000_000,
        k in 0_u64..1_000_000_000_000,
    ) {
        let mut rate = CumulativeRate::new(vec![Line::for_ever(0, micro_per_s)]);
        let due = rate.instant_past(u128::from(k) * ARRIVAL);
        let exact = u128::from(k) * 1_000_000_000_000_000 / u128::from(micro_per_s);
        prop_assert_eq!(due.map(u128::from), (exact < u128::from(u64::MAX)).then_some(exact));
    }

    #[test]
    fn a_constant_profile_is_the_floor_of_k_over_the_rate(rate in 1_u64..=10_000_000, k: u32) {
        let due = u128::from(k) * 1_000_000_000 / u128::from(rate);
        prop_assert_eq!(due_of(&Profile::constant(rate as f64), k.into()), Some(due as u64));
    }

    #[test]
    fn arrivals_are_in_order(rate_per_s in some_load(1e7), spacing in spacing(), seed: u64) {
        let arrivals = Arrivals { rate_per_s, spacing };
        let due: Vec<u64> = Schedule::new(&arrivals, seed, WHOLE).unwrap().take(300).collect();
        prop_assert!(due.is_sorted());
    }

    #[test]
    fn arrival_k_is_due_in_the_nanosecond_in_which_the_integral_passes_k(
        rate in some_load(1e6),
        share in 0.0_f64..1.0,
    ) {
        // Any k up to twice what the stages hold.
        let end = (rate.duration_s() * 1e9) as u64;
        let k = (share * 2.0 * arrivals_before(&rate, end.max(SECOND_NS)) as f64) as u64;
        if let Some(due) = due_of(&rate, k) {
            prop_assume!(due < 100_000 * SECOND_NS);
            prop_assert!(arrivals_before(&rate, due) <= k, "early: {due}");
            prop_assert!(arrivals_before(&rate, due + 1) > k, "late: {due}");
        } else {
            prop_assert!(arrivals_before(&rate, 500_000 * SECOND_NS) <= k);
        }
    }

    #[test]
    fn as_many_arrivals_fall_before_an_instant_as_the_integral_says(
        rate in some_load(300.0),
        t in 0..20 * SECOND_NS,
    ) {
        let count = schedule(&even(&rate)).take_while(|due| *due < t).count();
        prop_assert_eq!(count as u64, arrivals_before(&rate, t));
    }

    #[test]
    fn the_slices_together_are_the_whole(
        rate_per_s in some_load(1e5),
        spacing in spacing(),
        seed: u64,
        stride in 1_u64..9,
    ) {
        let arrivals = Arrivals { rate_per_s, spacing };
        let of = |slice, count| {
            Schedule::new(&arrivals, seed, slice).unwrap().take(count).collect::<Vec<u64>>()
        };
        let mut union: Vec<u64> =
            (0..stride).flat_map(|first| of(Slice { first, stride }, 50)).collect();
        union.sort_unstable();
        prop_assert_eq!(union, of(WHOLE, 50 * stride as usize));
    }

    #[test]
    fn a_stage_cut_in_two_gives_the_same_due_times(
        (lowest, each_ms) in (0_u32..100_000, 1_u32..50),
        (first_ms, second_ms) in (1_u32..5_000, 1_u32..5_000),
        downwards: bool,
    ) {
        let all_ms = first_ms + second_ms;
        let at = |ms| f64::from(lowest + each_ms * if downwards { all_ms - ms } else { ms });
        let (from, middle, end) = (at(0), at(first_ms), at(all_ms));
        let s = |ms| f64::from(ms) / 1e3;
        let whole = profile(&[(s(all_ms), from, end)]);
        let cut = profile(&[(s(first_ms), from, middle), (s(second_ms), middle, end)]);
        let of = |p| schedule(&even(p)).step_by(37).take(200).collect::<Vec<u64>>();
        // Both are exact, hence equal: better than the nanosecond that floors could differ by.
        prop_assert_eq!(of(&whole), of(&cut));
    }

    #[test]
    fn clients_are_the_rounded_profile(
        (number, share) in (any_profile(1e6), 0.0_f64..1.2),
    ) {
        prop_assume!(Clients::new(&number).is_ok());
        let clients = Clients::new(&number).unwrap();
        let t = (share * number.duration_s() * 1e9) as u64;
        let stages = Stages::new(&number);
        let (index, t_s) = (stages.index_at(t), t as f64 / 1e9);
        let (Stage { from, to, .. }, (begin, end)) = (number.stages[index], stages.bounds(index));
        let over = ((t - begin) as f64 / (end - begin) as f64).min(1.0);
        let value = if t >= end { to } else { from + (to - from) * over };
        let got = clients.at(t);
        prop_assert!((f64::from(got) - value).abs() <= 0.5 + 1e-5, "{got} of {value} at {t_s} s");
        prop_assert!(got <= clients.highest());
    }

    #[test]
    fn clients_change_exactly_when_they_are_said_to(number in any_profile(40.0), t in 0..100 * SECOND_NS) {
        prop_assume!(Clients::new(&number).is_ok());
        let clients = Clients::new(&number).unwrap();
        let now = clients.at(t);
        let until = clients.next_change(t);
        if let Some(change) = until {
            prop_assert!(change > t);
            prop_assert_eq!(clients.at(change - 1), now);
            prop_assert_ne!(clients.at(change), now);
        }
        // Nothing happens unannounced in between.
        let last = until.map_or(1_000 * SECOND_NS, |change| change - 1);
        for part in 0..20 {
            prop_assert_eq!(clients.at(t.min(last) + (last.saturating_sub(t)) / 20 * part), now);
        }
    }
}
