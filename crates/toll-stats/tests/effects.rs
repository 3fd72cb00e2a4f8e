//! Effects, families of verdicts, spreads and sizes: against published figures, and over made-up rounds whose truth is
//! known.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use toll_stats::{
    Effect, Error, Figures, Level, Member, Sharper, Spread, TRIMMED_SHARE, Verdict, holm,
    holm_adjusted, mean, spread, trimmed_mean, verdicts, wilson,
};

#[track_caller]
fn assert_near(seen: f64, published: f64, tolerance: f64) {
    assert!((seen - published).abs() <= tolerance, "{seen} is not {published} +- {tolerance}");
}

/// Rounds with these logarithms of the ratio around a baseline of 100.
fn rounds_with(logarithms: &[f64]) -> Vec<Figures> {
    let round = |d: &f64| Figures { variant: 100.0 * d.exp(), baseline: 100.0, again: None };
    logarithms.iter().map(round).collect()
}

fn over(rounds: &[Figures]) -> Effect {
    Effect::over_rounds(rounds, Level::P95).unwrap()
}

fn effect_with(logarithms: &[f64]) -> Effect {
    over(&rounds_with(logarithms))
}

/// The baseline as the variant and the variant as the baseline.
fn swapped(rounds: &[Figures]) -> Vec<Figures> {
    let swap = |f: &Figures| Figures { variant: f.baseline, baseline: f.variant, again: None };
    rounds.iter().map(swap).collect()
}

/// Rounds whose logarithms have exactly this mean and standard deviation.
fn effect_of(mean: f64, deviation: f64, rounds: usize) -> Effect {
    let n = rounds as f64;
    let scale = deviation / (n * (n + 1.0) / 12.0).sqrt();
    let logarithms = (0..rounds).map(|at| mean + scale * (at as f64 - (n - 1.0) / 2.0));
    effect_with(&logarithms.collect::<Vec<_>>())
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// How much more ten patients slept by the second drug than by the first: Student 1908; `sleep` in R.
const SLEEP: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];

#[test]
fn the_effect_over_rounds_is_students_on_the_logarithms() {
    // R: t.test(extra ~ group, data = sleep, paired = TRUE): 1.58, 0.700 to 2.460, p = 0.002833.
    let effect = effect_with(&SLEEP);
    let logarithm = effect.log_ratio();
    for (seen, published) in [
        (logarithm.value, 1.58),
        (logarithm.low, 0.700_114_2),
        (logarithm.high, 2.459_885_8),
        (effect.ratio().high.ln(), 2.459_885_8),
        (effect.p_value(), 0.002_832_890),
    ] {
        assert_near(seen, published, 1e-6);
    }
}

/// Run times of five programs on two machines: Fleming and Wallace, "How not to lie with statistics", CACM 29, 1986,
/// table I.
const PROCESSORS_R_AND_M: [(f64, f64); 5] =
    [(417.0, 244.0), (83.0, 70.0), (66.0, 153.0), (39_449.0, 33_527.0), (772.0, 368.0)];

#[test]
fn the_ratio_of_two_processors_is_the_geometric_mean() {
    let programs = PROCESSORS_R_AND_M
        .map(|(baseline, variant)| Figures { variant, baseline, again: None })
        .to_vec();
    assert_near(over(&programs).ratio().value, 0.86, 0.005);
    assert_near(over(&swapped(&programs)).ratio().value, 1.17, 0.005);
}

#[test]
fn nine_tenths_of_the_baseline_is_a_change_of_a_tenth_downwards() {
    let change = effect_with(&[0.9_f64.ln(); 2]).change();
    assert_near(change.value, -0.1, 1e-12);
    assert_near(change.low, -0.1, 1e-12);
    assert_eq!((change.level, change.samples), (Level::P95, 2));
}

#[test]
fn the_two_one_sided_tests_are_those_of_the_t_distribution() {
    // scipy: ttest_1samp(sleep, 3, alternative="less") and, for the other side, ttest_1samp(sleep, 2.5, "less").
    for (bound, published) in [(3.0_f64, 0.002_655_570_3), (2.5, 0.021_116_860_2)] {
        assert_near(effect_with(&SLEEP).p_value_within(bound.exp_m1()), published, 1e-8);
    }
}

#[test]
fn both_arms_of_the_baseline_count_alike() {
    let round = Figures { variant: 12.0, baseline: 8.0, again: Some(2.0) };
    assert_near(round.log_ratio().unwrap(), 3.0_f64.ln(), 1e-12);
    let effect = Effect::over_rounds(&[round, round], Level::P95).unwrap();
    assert_eq!(effect.baseline(), 5.0);
    assert_near(effect.variant(), 15.0, 1e-12);
    assert_near(effect.difference().value, 10.0, 1e-12);
}

#[test]
fn a_figure_of_merged_rounds_has_the_jackknifes_interval() {
    let all = Figures { variant: 30.0, baseline: 20.0, again: None };
    let logarithms = [0.3, 0.4, 0.5, 0.45];
    let effect = Effect::of_merged(all, &rounds_with(&logarithms), 0.0, Level::P95).unwrap();
    let plain = toll_stats::jackknife(1.5_f64.ln(), &logarithms, Level::P95).unwrap();
    assert_near(effect.log_ratio().low, plain.low, 1e-12);
    assert_near(effect.log_ratio().high, plain.high, 1e-12);
    assert_near(effect.variant(), 30.0, 1e-12);
}

#[test]
fn what_has_no_effect_is_named() {
    let of = |rounds: &[Figures]| Effect::over_rounds(rounds, Level::P95);
    assert_eq!(of(&rounds_with(&[0.1])), Err(Error::TooFew { have: 1, need: 2 }));
    let zero = Figures { variant: 1.0, baseline: 1.0, again: Some(0.0) };
    assert_eq!(of(&[zero; 2]), Err(Error::NotPositive { index: 2, value: 0.0 }));
    let odd = Figures { variant: f64::NAN, ..zero };
    assert_eq!(of(&[odd; 2]), Err(Error::NotFinite { index: 0 }));
}

#[test]
fn rounds_that_all_agree_are_certain() {
    let same = effect_of(0.1, 0.0, 5);
    assert_eq!((same.p_value(), same.p_value_within(0.2)), (0.0, 0.0));
    assert_eq!(same.p_value_within(0.05), 1.0);
    assert_eq!(effect_of(0.0, 0.0, 5).p_value(), 1.0);
}

fn are_alike(a: &Effect, b: &Effect) -> bool {
    let (a, b) = (a.log_ratio(), b.log_ratio());
    [(a.value, b.value), (a.low, b.low), (a.high, b.high)].iter().all(|(a, b)| (a - b).abs() < 1e-6)
}

fn are_inverse(there: &Effect, back: &Effect) -> bool {
    let (there, back) = (there.log_ratio(), back.log_ratio());
    [there.value + back.value, there.low + back.high, there.high + back.low]
        .iter()
        .all(|sum| sum.abs() < 1e-6)
}

fn figures_of_two_arms() -> impl Strategy<Value = Vec<Figures>> {
    figures().prop_map(|rounds| {
        rounds.into_iter().map(|round| Figures { again: None, ..round }).collect()
    })
}

fn figures() -> impl Strategy<Value = Vec<Figures>> {
    let arm = || 0.1..1e4_f64;
    let round = (arm(), arm(), prop::option::of(arm()));
    let round = round.prop_map(|(variant, baseline, again)| Figures { variant, baseline, again });
    prop::collection::vec(round, 2..20)
}

proptest! {
    #[test]
    fn ratio_and_difference_never_contradict_each_other(rounds in figures()) {
        let effect = Effect::over_rounds(&rounds, Level::P95).unwrap();
        let (ratio, difference) = (effect.ratio(), effect.difference());
        prop_assert_eq!(effect.log_ratio().excludes_zero(), difference.excludes_zero());
        prop_assert_eq!(ratio.value > 1.0, difference.value > 0.0);
        let size = effect.variant().max(effect.baseline());
        prop_assert!((effect.baseline() + difference.value - effect.variant()).abs() <= 1e-9 * size);
        prop_assert_eq!(effect.p_value() < 0.05, difference.excludes_zero());
    }

    #[test]
    fn another_unit_scales_the_difference_and_leaves_the_ratio(rounds in figures(), unit in 1e-3..1e3_f64) {
        let scaled = |f: &Figures| Figures {
            variant: unit * f.variant,
            baseline: unit * f.baseline,
            again: f.again.map(|again| unit * again),
        };
        let other: Vec<_> = rounds.iter().map(scaled).collect();
        let [plain, other] = [rounds, other].map(|r| Effect::over_rounds(&r, Level::P95).unwrap());
        prop_assert!((plain.log_ratio().high - other.log_ratio().high).abs() < 1e-6);
        prop_assert!((plain.baseline() * unit / other.baseline() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn swapping_the_arms_inverts_the_ratio(rounds in figures_of_two_arms()) {
        let merged = |all: &[Figures]| Effect::of_merged(all[0], &all[1..], 0.0, Level::P95);
        prop_assert!(are_inverse(&over(&rounds), &over(&swapped(&rounds))));
        if let (Ok(there), Ok(back)) = (merged(&rounds), merged(&swapped(&rounds))) {
            prop_assert!(are_inverse(&there, &back));
        }
    }

    #[test]
    fn what_is_higher_one_way_round_is_lower_the_other(rounds in figures_of_two_arms()) {
        let differs = |rounds: &[Figures]| verdicts(&[Member { effect: over(rounds), bound: 1e-9 }], 1, Level::P95)[0];
        let expected = match differs(&rounds) {
            Verdict::Higher => Verdict::Lower,
            Verdict::Lower => Verdict::Higher,
            neither => neither,
        };
        prop_assert_eq!(differs(&swapped(&rounds)), expected);
    }

    #[test]
    fn what_disturbs_all_arms_of_a_round_alike_leaves_the_ratio(rounds in figures(), by in 0.01..100.0_f64) {
        let mut disturbed = rounds.clone();
        let Figures { variant, baseline, again } = rounds[0];
        disturbed[0] = Figures { variant: by * variant, baseline: by * baseline, again: again.map(|f| by * f) };
        prop_assert!(are_alike(&over(&rounds), &over(&disturbed)));
    }

    #[test]
    fn the_order_of_rounds_does_not_matter(rounds in figures(), seed in any::<u64>()) {
        let mut shuffled = rounds.clone();
        shuffled.shuffle(&mut StdRng::seed_from_u64(seed));
        let (plain, shuffled) = (over(&rounds), over(&shuffled));
        prop_assert!(are_alike(&plain, &shuffled));
        prop_assert!((plain.baseline() / shuffled.baseline() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_higher_level_gives_a_wider_interval_around_the_same_value(rounds in figures()) {
        let at = |share| Effect::over_rounds(&rounds, Level::new(share).unwrap()).unwrap().log_ratio();
        let [narrow, wide] = [at(0.8), at(0.99)];
        prop_assert_eq!(narrow.value, wide.value);
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
    }

    /// Schuirmann 1987: both one-sided tests reject at alpha where the interval of level 1 - 2 alpha lies within.
    #[test]
    fn the_two_one_sided_tests_agree_with_the_interval(rounds in figures(), bound in 0.01..3.0_f64) {
        let effect = Effect::over_rounds(&rounds, Level::new(0.9).unwrap()).unwrap();
        let inside = effect.change().low > -bound && effect.change().high < bound;
        prop_assert_eq!(effect.p_value_within(bound) < 0.05, inside);
    }

    #[test]
    fn adjusted_values_tell_what_holm_rejects(p in prop::collection::vec(0.0..=1.0_f64, 1..12), alpha in 0.001..0.5_f64) {
        let by_value: Vec<bool> = holm_adjusted(&p).into_iter().map(|p| p <= alpha).collect();
        prop_assert_eq!(by_value, holm(&p, alpha));
    }
}

#[test]
fn an_interval_of_95_percent_holds_the_true_effect_95_times_in_100() {
    const STUDIES: usize = 4_000;
    let mut rng = StdRng::seed_from_u64(1908);
    // Rounds wander together by 20 %, and arms scatter by 1 % on their own: as on a shared machine.
    let round = |rng: &mut StdRng| {
        let together = 0.2 * normal(rng);
        let mut arm = |change: f64| (change + together + 0.01 * normal(rng)).exp();
        Figures { variant: arm(0.03), baseline: arm(0.0), again: Some(arm(0.0)) }
    };
    let held = (0..STUDIES).filter(|_| {
        let rounds: Vec<_> = (0..5).map(|_| round(&mut rng)).collect();
        let found = over(&rounds).log_ratio();
        found.low <= 0.03 && 0.03 <= found.high
    });
    let coverage = held.count() as f64 / STUDIES as f64;
    // Four standard errors of a share of 0.95 among 4000 studies are 0.014.
    assert!((0.936..=0.964).contains(&coverage), "{coverage}");
}

#[test]
fn adjusted_values_are_those_of_multtest() {
    // R: mt.rawp2adjp of multtest, column Holm, as the tests of statsmodels 0.14 quote it.
    let p = [
        0.838_541_367_553,
        0.642_193_923_795,
        0.680_845_947_633,
        0.967_833_824_309,
        0.716_269_382_38,
        0.177_096_952_723,
        5.236_567_772_08e-5,
        0.020_273_268_879_8,
        0.000_281_405_061_98,
        0.014_987_731_079_6,
    ];
    let published = [
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        5.236_567_772_08e-4,
        0.141_912_882_158_6,
        0.002_532_645_557_82,
        0.119_901_848_636_8,
    ];
    for (seen, published) in holm_adjusted(&p).into_iter().zip(published) {
        assert_near(seen, published, 1e-12);
    }
}

#[test]
fn of_fifteen_hypotheses_of_a_trial_three_fall() {
    // Benjamini and Hochberg, JRSS B 57, 1995, section 3.2: Bonferroni's and Hochberg's procedures, between which
    // Holm's lies, both reject the first three at 0.05.
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.000,
    ];
    let fallen = holm(&p, 0.05);
    assert_eq!(fallen.iter().filter(|fell| **fell).count(), 3);
    assert!(fallen[..3].iter().all(|fell| *fell));
}

fn member(effect: Effect) -> Member {
    Member { effect, bound: 0.05 }
}

#[test]
fn a_verdict_alone_is_what_the_interval_says() {
    let of = |effect| verdicts(&[member(effect)], 1, Level::P95)[0];
    assert_eq!(of(effect_of(0.1, 0.02, 8)), Verdict::Higher);
    assert_eq!(of(effect_of(-0.1, 0.02, 8)), Verdict::Lower);
    assert_eq!(of(effect_of(0.001, 0.02, 8)), Verdict::NoDifference { bound: 0.05 });
    assert_eq!(of(effect_of(0.04, 0.1, 8)), Verdict::CannotTell);
    // Certain, and smaller than what matters: still a difference.
    assert_eq!(of(effect_of(0.02, 0.01, 8)), Verdict::Higher);
}

#[test]
fn a_family_asks_more_of_each_and_less_after_sure_ones() {
    let (weak, sure) = (effect_of(0.04, 0.04, 8), effect_of(1.0, 0.01, 8));
    assert!(weak.p_value() > 0.01 && weak.p_value() < 0.029, "{}", weak.p_value());
    let unclear = effect_of(0.01, 0.2, 8);
    let among =
        |other| verdicts(&[weak, other, other, other, other, other].map(member), 6, Level::P95);
    assert_eq!(among(unclear)[0], Verdict::CannotTell);
    assert_eq!(among(sure)[0], Verdict::Higher);
    assert!(verdicts(&[], 0, Level::P95).is_empty());
}

/// Share of studies with a false verdict, and of members with a right one. Three metrics of two variants share their
/// rounds' baselines; a change of `truth` is in the first ones, none in the others.
fn of_studies(seed: u64, truth: &[f64], bound: f64) -> (f64, f64) {
    const STUDIES: usize = 2_000;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut wrong, mut right) = (0, 0);
    for _ in 0..STUDIES {
        let family = study(&mut rng, truth, bound);
        let told = verdicts(&family, family.len(), Level::P95).into_iter().zip(truth);
        let judged: Vec<Option<bool>> = told.map(|(told, truth)| is_right(told, *truth)).collect();
        wrong += usize::from(judged.contains(&Some(false)));
        right += judged.iter().filter(|is_right| **is_right == Some(true)).count();
    }
    (wrong as f64 / STUDIES as f64, right as f64 / (STUDIES * truth.len()) as f64)
}

/// Eight rounds in which an arm scatters by 2 %.
fn study(rng: &mut StdRng, truth: &[f64], bound: f64) -> Vec<Member> {
    let mut rounds = vec![Vec::new(); truth.len()];
    for _ in 0..8 {
        let mut arm = |change: f64| 100.0 * (change + 0.02 * normal(rng)).exp();
        let baselines: Vec<(f64, f64)> = (0..3).map(|_| (arm(0.0), arm(0.0))).collect();
        for (at, change) in truth.iter().enumerate() {
            let (baseline, again) = baselines[at % 3];
            let figures = Figures { variant: arm(change.ln_1p()), baseline, again: Some(again) };
            rounds[at].push(figures);
        }
    }
    let effect = |rounds: Vec<Figures>| Effect::over_rounds(&rounds, Level::P95).unwrap();
    rounds.into_iter().map(|rounds| Member { effect: effect(rounds), bound }).collect()
}

fn is_right(told: Verdict, truth: f64) -> Option<bool> {
    match told {
        Verdict::Higher => Some(truth > 0.0),
        Verdict::Lower => Some(truth < 0.0),
        Verdict::NoDifference { bound } => Some(truth.abs() < bound),
        Verdict::CannotTell => None,
    }
}

#[test]
fn a_study_without_any_effect_has_a_false_verdict_in_at_most_one_of_twenty() {
    // Four standard errors of a share of 0.05 among 2000 studies are 0.0195.
    let (wrong, right) = of_studies(1979, &[0.0; 6], 0.05);
    assert!(wrong <= 0.05 + 0.0195, "{wrong}");
    assert!(wrong >= 0.02, "a procedure that says nothing is none: {wrong}");
    assert!(right > 0.5, "{right}");
}

#[test]
fn a_study_with_effects_at_the_bound_has_a_false_verdict_in_at_most_one_of_twenty() {
    // The hardest truths: changes of exactly the bound, large enough to be called different at times.
    for (bound, truth) in
        [(0.02, [0.02, 0.02, 0.02, 0.02, 0.02, 0.0]), (0.06, [0.06, 0.06, 0.06, 0.0, 0.0, 0.0])]
    {
        let (wrong, _) = of_studies(1987, &truth, bound);
        assert!(wrong <= 0.05 + 0.0195, "{bound}: {wrong}");
    }
}

#[test]
fn effects_of_the_detectable_size_get_their_verdict_four_times_in_five() {
    let family_level = Level::new(1.0 - 0.05 / 6.0).unwrap();
    // A variant's arm, and half the variance of one for the mean of two.
    let deviation = 0.02 * 1.5_f64.sqrt();
    let change = effect_of(0.0, deviation, 8).detectable(8, family_level);
    let (wrong, right) = of_studies(1988, &[change; 6], 0.01);
    assert!(right > 0.78, "{right}");
    assert!(wrong < 0.01, "{wrong}");
}

#[test]
fn a_trimmed_mean_forgets_the_outlier() {
    // R: example(mean): x <- c(0:10, 50); c(mean(x), mean(x, trim = 0.10)) is 8.75 and 5.50.
    let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 50.0];
    assert_near(trimmed_mean(&x, 0.0).unwrap(), 8.75, 1e-12);
    assert_near(trimmed_mean(&x, 0.10).unwrap(), 5.5, 1e-12);
    assert_eq!(trimmed_mean(&[3.0], TRIMMED_SHARE), Ok(3.0));
    assert_eq!(trimmed_mean(&x, 0.5), Err(Error::QuantileOutOfRange(0.5)));
}

#[test]
fn a_trimmed_mean_further_off_than_the_half_width_strays() {
    let effect = effect_with(&SLEEP);
    let half = effect.log_ratio().half_width();
    assert!(effect.strays_from(1.58 - 1.01 * half) && effect.strays_from(1.58 + 1.01 * half));
    assert!(!effect.strays_from(1.58 + 0.99 * half));
}

/// Calcium in four determinations of each of four turnip leaves: Snedecor and Cochran, "Statistical methods", 6th
/// edition 1967, section 10.12.
const LEAVES: [[f64; 4]; 4] = [
    [3.28, 3.09, 3.03, 3.03],
    [3.52, 3.48, 3.38, 3.38],
    [2.88, 2.80, 2.81, 2.76],
    [3.34, 3.38, 3.23, 3.26],
];

#[test]
fn leaves_and_determinations_scatter_as_published() {
    let found = spread(&LEAVES.map(|leaf| leaf.to_vec())).unwrap();
    assert_near(found.within, 0.0066, 0.000_05);
    assert_near(found.between, 0.0724, 0.000_05);
    assert_eq!(found.cycles, 4.0);
    assert_near(found.share_of_starts(), 0.0724 / (0.0724 + 0.0066 / 4.0), 0.001);
}

#[test]
fn bulls_with_unequal_numbers_of_samples_scatter_as_published() {
    // Conceptions by samples of six bulls: Snedecor and Cochran 1967, section 10.16: 248 within, n0 = 5.67, 73 between.
    let bulls: [&[f64]; 6] = [
        &[46.0, 31.0, 37.0, 62.0, 30.0],
        &[70.0, 59.0],
        &[52.0, 44.0, 57.0, 40.0, 67.0, 64.0, 70.0],
        &[47.0, 21.0, 70.0, 46.0, 14.0],
        &[42.0, 64.0, 50.0, 69.0, 77.0, 81.0, 87.0],
        &[35.0, 68.0, 59.0, 38.0, 57.0, 76.0, 57.0, 29.0, 60.0],
    ];
    let found = spread(&bulls.map(<[f64]>::to_vec)).unwrap();
    assert_near(found.within, 248.0, 0.5);
    assert_near(found.between, 73.0, 0.6);
}

#[test]
fn rounds_that_differ_less_than_their_cycles_have_no_spread_between() {
    let found = spread(&[vec![1.0, 9.0], vec![9.0, 1.0]]).unwrap();
    assert_eq!((found.between, found.share_of_starts()), (0.0, 0.0));
    assert_eq!(found.sharper(3.0), Sharper::Cycles);
    assert_eq!(spread(&[vec![1.0, 2.0]]), Err(Error::TooFew { have: 1, need: 2 }));
    assert_eq!(spread(&[vec![1.0], vec![2.0]]), Err(Error::TooFew { have: 2, need: 3 }));
}

proptest! {
    #[test]
    fn the_sharper_way_is_that_with_the_smaller_variance_at_the_same_time(
        effects in prop::collection::vec(prop::collection::vec(-1.0..1.0_f64, 4), 3..8), setup in 0.5..20.0_f64,
    ) {
        let found: Spread = spread(&effects).unwrap();
        let variance = |rounds: f64, cycles: f64| (found.between + found.within / cycles) / rounds;
        let (rounds, little) = (effects.len() as f64, 1e-4);
        let more_rounds = variance(rounds + little / (setup + 4.0), 4.0);
        let more_cycles = variance(rounds, 4.0 + little / rounds);
        let better = if more_cycles < more_rounds { Sharper::Cycles } else { Sharper::Rounds };
        prop_assert_eq!(found.sharper(setup), better);
    }
}

#[test]
fn the_rounds_that_find_an_effect_are_those_of_the_tables() {
    // One-sample t test, two-sided 0.05, power 0.8: G*Power 3.1 (Faul et al. 2007) needs 199, 34 and 15 for d of 0.2,
    // 0.5 and 0.8; R: power.t.test(delta = 1, power = 0.8, type = "one.sample") says 9.94.
    for (d, enough) in [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)] {
        let finds = |rounds| effect_of(0.0, 0.01, 8).detectable(rounds, Level::P95).ln_1p() / 0.01;
        assert!(finds(enough) <= d && finds(enough - 1) > d, "{d}: {}", finds(enough));
    }
}

#[test]
fn advice_is_taken_from_the_upper_limit_of_the_spread() {
    // Chi-squared with 7 degrees of freedom: 3.822 at 0.2. A spread of 1 may be one of sqrt(7 / 3.822) = 1.3533.
    let effect = effect_of(0.0, 0.01, 8);
    let upper = effect_of(0.0, 0.013_533, 8);
    let change = upper.detectable(40, Level::P95) * 1.0005;
    assert_eq!(effect.rounds_to_find(change, Level::P95), Some(32));
    // 0.013533 x t of n - 1 / sqrt(n) is at most 0.005 from 31 rounds on: 2.0423 / sqrt(31) = 0.3668.
    assert_eq!(effect.rounds_to_width(0.005), Some(23));
    assert_eq!(effect.rounds_to_width(0.01), Some(0));
}

#[test]
fn there_is_no_advice_from_few_rounds_nor_for_many() {
    assert_eq!(effect_of(0.0, 0.01, 4).rounds_to_width(0.001), None);
    assert!(effect_of(0.0, 0.01, 5).rounds_to_width(0.005).is_some());
    assert_eq!(effect_of(0.0, 0.01, 8).rounds_to_width(0.0001), None);
    assert_eq!(effect_of(0.0, 0.01, 8).rounds_to_find(0.0, Level::P95), None);
}

#[test]
fn advised_rounds_find_the_effect_four_times_in_five_or_more_in_most_studies() {
    let mut rng = StdRng::seed_from_u64(1995);
    let enough = effect_of(0.0, 0.03, 8);
    let needed = (8..).find(|n| enough.detectable(*n, Level::P95) <= 0.02).unwrap();
    let advised = |rng: &mut StdRng| {
        let drawn: Vec<f64> = (0..8).map(|_| 0.03 * normal(rng)).collect();
        effect_with(&drawn).rounds_to_find(0.02, Level::P95).map_or(usize::MAX, |n| n as usize + 8)
    };
    let share = (0..500).filter(|_| advised(&mut rng) >= needed).count() as f64 / 500.0;
    assert!((0.73..=0.87).contains(&share), "{share}");
}

#[test]
fn a_share_has_wilsons_interval() {
    // Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17, 1998, table I.
    for (successes, trials, low, high) in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ] {
        let share = wilson(successes, trials, Level::P95).unwrap();
        assert_near(share.low, low, 0.000_05);
        assert_near(share.high, high, 0.000_05);
    }
    assert_eq!(wilson(0, 0, Level::P95), Err(Error::TooFew { have: 0, need: 1 }));
    assert_eq!(wilson(3, 2, Level::P95), Err(Error::TooFew { have: 2, need: 3 }));
}

#[test]
fn the_two_spreads_are_found_again_on_average() {
    let mut rng = StdRng::seed_from_u64(1939);
    let study = |rng: &mut StdRng| -> Spread {
        let round = |cycles: usize, rng: &mut StdRng| {
            let start = 2.0 * normal(rng);
            (0..cycles).map(|_| start + 3.0 * normal(rng)).collect::<Vec<f64>>()
        };
        spread(&[3, 8, 8, 5, 8, 2, 8, 8].map(|cycles| round(cycles, rng))).unwrap()
    };
    let found: Vec<Spread> = (0..1_000).map(|_| study(&mut rng)).collect();
    let between: Vec<f64> = found.iter().map(|s| s.between).collect();
    let within: Vec<f64> = found.iter().map(|s| s.within).collect();
    assert_near(mean(&between, Level::P95).unwrap().value, 4.0, 0.5);
    assert_near(mean(&within, Level::P95).unwrap().value, 9.0, 0.3);
}
