//! Planes through observations: against published figures, and over made-up ones whose truth is known.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use toll_stats::{Error, Level, Observation, Regression, regression};

/// National Institute of Standards and Technology, Statistical Reference Datasets, `Longley`: y, then x1 to x6. Columns
/// that nearly depend on each other; the normal equations lose all digits of it in single precision.
const LONGLEY: [[f64; 7]; 16] = [
    [60_323.0, 83.0, 234_289.0, 2_356.0, 1_590.0, 107_608.0, 1_947.0],
    [61_122.0, 88.5, 259_426.0, 2_325.0, 1_456.0, 108_632.0, 1_948.0],
    [60_171.0, 88.2, 258_054.0, 3_682.0, 1_616.0, 109_773.0, 1_949.0],
    [61_187.0, 89.5, 284_599.0, 3_351.0, 1_650.0, 110_929.0, 1_950.0],
    [63_221.0, 96.2, 328_975.0, 2_099.0, 3_099.0, 112_075.0, 1_951.0],
    [63_639.0, 98.1, 346_999.0, 1_932.0, 3_594.0, 113_270.0, 1_952.0],
    [64_989.0, 99.0, 365_385.0, 1_870.0, 3_547.0, 115_094.0, 1_953.0],
    [63_761.0, 100.0, 363_112.0, 3_578.0, 3_350.0, 116_219.0, 1_954.0],
    [66_019.0, 101.2, 397_469.0, 2_904.0, 3_048.0, 117_388.0, 1_955.0],
    [67_857.0, 104.6, 419_180.0, 2_822.0, 2_857.0, 118_734.0, 1_956.0],
    [68_169.0, 108.4, 442_769.0, 2_936.0, 2_798.0, 120_445.0, 1_957.0],
    [66_513.0, 110.8, 444_546.0, 4_681.0, 2_637.0, 121_950.0, 1_958.0],
    [68_655.0, 112.6, 482_704.0, 3_813.0, 2_552.0, 123_366.0, 1_959.0],
    [69_564.0, 114.2, 502_601.0, 3_931.0, 2_514.0, 125_368.0, 1_960.0],
    [69_331.0, 115.7, 518_173.0, 4_806.0, 2_572.0, 127_852.0, 1_961.0],
    [70_551.0, 116.9, 554_894.0, 4_007.0, 2_827.0, 130_081.0, 1_962.0],
];
/// Certified: coefficient and its standard deviation, the constant first.
const CERTIFIED: [(f64, f64); 7] = [
    (-3_482_258.634_595_82, 890_420.383_607_373),
    (15.061_872_271_373_3, 84.914_925_774_766_9),
    (-0.035_819_179_292_591, 0.033_491_007_772_243_2),
    (-2.020_229_803_816_83, 0.488_399_681_651_699),
    (-1.033_226_867_173_59, 0.214_274_163_161_675),
    (-0.051_104_105_653_580_7, 0.226_073_200_069_370),
    (1_829.151_464_613_55, 455.478_499_142_212),
];

/// Speed (mph) and stopping distance (ft) of cars in the 1920s: Ezekiel, "Methods of correlation analysis", 1930;
/// `cars` in R.
const CARS: [(f64, [f64; 5]); 19] = {
    const NONE: f64 = f64::NAN;
    [
        (4.0, [2.0, 10.0, NONE, NONE, NONE]),
        (7.0, [4.0, 22.0, NONE, NONE, NONE]),
        (8.0, [16.0, NONE, NONE, NONE, NONE]),
        (9.0, [10.0, NONE, NONE, NONE, NONE]),
        (10.0, [18.0, 26.0, 34.0, NONE, NONE]),
        (11.0, [17.0, 28.0, NONE, NONE, NONE]),
        (12.0, [14.0, 20.0, 24.0, 28.0, NONE]),
        (13.0, [26.0, 34.0, 34.0, 46.0, NONE]),
        (14.0, [26.0, 36.0, 60.0, 80.0, NONE]),
        (15.0, [20.0, 26.0, 54.0, NONE, NONE]),
        (16.0, [32.0, 40.0, NONE, NONE, NONE]),
        (17.0, [32.0, 40.0, 50.0, NONE, NONE]),
        (18.0, [42.0, 56.0, 76.0, 84.0, NONE]),
        (19.0, [36.0, 46.0, 68.0, NONE, NONE]),
        (20.0, [32.0, 48.0, 52.0, 56.0, 64.0]),
        (22.0, [66.0, NONE, NONE, NONE, NONE]),
        (23.0, [54.0, NONE, NONE, NONE, NONE]),
        (24.0, [70.0, 92.0, 93.0, 120.0, NONE]),
        (25.0, [85.0, NONE, NONE, NONE, NONE]),
    ]
};

fn observation(terms: &[f64], value: f64) -> Observation {
    Observation { terms: terms.to_vec(), value }
}

fn longley() -> Vec<Observation> {
    let row = |row: &[f64; 7]| observation(&[&[1.0], &row[1..]].concat(), row[0]);
    LONGLEY.iter().map(row).collect()
}

fn cars() -> Regression {
    let of_speed = |(speed, distances): &(f64, [f64; 5])| -> Vec<Observation> {
        let driven = distances.iter().filter(|distance| distance.is_finite());
        driven.map(|distance| observation(&[1.0, *speed], *distance)).collect()
    };
    let all: Vec<Observation> = CARS.iter().flat_map(of_speed).collect();
    assert_eq!(all.len(), 50);
    regression(&[&all]).unwrap()
}

fn unit(at: usize, of: usize) -> Vec<f64> {
    (0..of).map(|i| f64::from(u8::from(i == at))).collect()
}

#[track_caller]
fn assert_near(seen: f64, published: f64, relative: f64) {
    let off = (seen - published).abs() / published.abs();
    assert!(off <= relative, "{seen} is not {published}: off by {off:e}");
}

#[test]
fn nearly_dependent_columns_give_the_certified_coefficients_and_deviations() {
    let plane = regression(&[&longley()]).unwrap();
    // Two-sided 95 % point of Student's t with 9 degrees of freedom.
    let t = 2.262_157_162_740_992;
    for (at, (coefficient, deviation)) in CERTIFIED.into_iter().enumerate() {
        let estimate = plane.at(&unit(at, 7), Level::P95);
        assert_near(estimate.value, coefficient, 1e-9);
        assert_near(estimate.half_width() / t, deviation, 1e-9);
    }
    assert_near(plane.residual_deviation(), 304.854_073_561_965, 1e-10);
}

#[test]
fn the_distance_of_one_more_car_has_the_published_interval() {
    // R: predict(lm(dist ~ speed, cars), data.frame(speed = c(12, 19, 24)), interval = "confidence"), "prediction".
    let published = [
        (12.0, 29.60981, [24.39514, 34.82448], [-1.749529, 60.96915]),
        (19.0, 57.13667, [51.82913, 62.44421], [25.761756, 88.51159]),
        (24.0, 76.79872, [68.38765, 85.20978], [44.752478, 108.84495]),
    ];
    for (speed, value, line, car) in published {
        let [seen_line, seen_car] =
            [cars().at(&[1.0, speed], Level::P95), cars().predict(&[1.0, speed], Level::P95)];
        assert_near(seen_line.value, value, 1e-6);
        let seen = [seen_line.low, seen_line.high, seen_car.low, seen_car.high];
        for (seen, published) in seen.into_iter().zip([line, car].concat()) {
            assert_near(seen, published, 1e-6);
        }
    }
}

#[test]
fn the_interval_of_a_zero_ends_where_the_line_may_be_zero() {
    let line = cars();
    let zero = line.zero(&[1.0, 0.0], &[0.0, 1.0], Level::P95).unwrap();
    assert_near(zero.value, 17.579_095 / 3.932_409, 1e-6);
    for (end, side) in [(zero.low, f64::min as fn(f64, f64) -> f64), (zero.high, f64::max)] {
        let there = line.at(&[1.0, end], Level::P95);
        assert!(there.low.abs().min(there.high.abs()) < 1e-9, "{there:?}");
        assert_eq!(side(end, zero.value), end);
    }
}

#[test]
fn a_line_that_may_be_flat_has_no_zero_to_tell() {
    let flat: Vec<_> = [1.0, -1.2, 0.9, -0.7, 0.8]
        .into_iter()
        .enumerate()
        .map(|(x, y)| observation(&[1.0, x as f64], y))
        .collect();
    let line = regression(&[&flat]).unwrap();
    assert_eq!(line.zero(&[1.0, 0.0], &[0.0, 1.0], Level::P95), None);
}

#[test]
fn what_has_no_plane_is_named() {
    let one = |x: f64, y: f64| observation(&[1.0, x], y);
    let of = |all: &[Observation]| regression(&[all]).unwrap_err();
    assert_eq!(of(&[]), Error::TooFew { have: 0, need: 1 });
    assert_eq!(of(&[one(1.0, 1.0), one(2.0, 1.0)]), Error::TooFew { have: 2, need: 3 });
    assert_eq!(of(&[3.0; 3].map(|x| one(x, x))), Error::Collinear { term: 1 });
    assert_eq!(of(&[1.0, f64::NAN, 2.0].map(|x| one(x, 1.0))), Error::NotFinite { index: 1 });
    let uneven = [one(1.0, 1.0), one(2.0, 1.0), observation(&[1.0], 1.0)];
    assert_eq!(of(&uneven), Error::UnequalTerms { index: 2 });
    let doubled = [1.0, 2.0, 4.0, 9.0].map(|x| observation(&[1.0, x, 3.0 - 2.0 * x], x));
    assert_eq!(of(&doubled), Error::Collinear { term: 2 });
}

#[test]
fn without_a_round_that_alone_has_a_size_the_residuals_speak_alone() {
    let round = |sizes: &[f64]| -> Vec<Observation> {
        sizes.iter().map(|n| observation(&[1.0, *n], 3.0 * n + (n * 7.0) % 2.0)).collect()
    };
    let (whole, small) = (round(&[1.0, 1.0, 10.0, 50.0]), round(&[1.0, 1.0]));
    let together = [whole.clone(), small.clone()].concat();
    let (apart, together) = (regression(&[&whole, &small]), regression(&[&together]));
    assert_eq!(apart.unwrap(), together.unwrap());
}

/// The sizes and rates of the study with replicas.
const CELLS: [(f64, f64); 8] = [
    (1.0, 20.0),
    (1.0, 50.0),
    (10.0, 20.0),
    (10.0, 50.0),
    (50.0, 20.0),
    (50.0, 50.0),
    (90.0, 20.0),
    (90.0, 50.0),
];
const TRUTH: [f64; 3] = [40.0, 3.0, 0.2];
const MIDDLE: [f64; 3] = [1.0, 38.0, 35.0];
const PLACE: [f64; 3] = [1.0, 70.0, 30.0];

/// How far observations of one round, of one size in a round, and single ones scatter.
#[derive(Clone, Copy)]
struct Scatter {
    round: f64,
    size: f64,
    own: f64,
}

fn rounds(rng: &mut StdRng, scatter: Scatter, count: usize) -> Vec<Vec<Observation>> {
    (0..count).map(|_| round(rng, scatter)).collect()
}

fn round(rng: &mut StdRng, scatter: Scatter) -> Vec<Observation> {
    let shared = scatter.round * normal(rng);
    let mut of_size = 0.0;
    CELLS
        .iter()
        .map(|(pods, rate)| {
            if *rate == 20.0 {
                of_size = scatter.size * normal(rng);
            }
            let terms = [1.0, *pods, *rate];
            let noise = shared + of_size + scatter.own * normal(rng);
            observation(&terms, at(&terms) + noise)
        })
        .collect()
}

fn at(terms: &[f64; 3]) -> f64 {
    TRUTH.iter().zip(terms).map(|(coefficient, term)| coefficient * term).sum()
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// Shares of studies whose intervals hold the truth: in the middle, of the slope, and of one more observation at a new place.
fn coverage(scatter: Scatter, count: usize, apart: bool) -> [f64; 3] {
    const STUDIES: u32 = 2_000;
    let mut rng = StdRng::seed_from_u64(1954);
    let mut held = [0.0; 3];
    for _ in 0..STUDIES {
        let rounds = rounds(&mut rng, scatter, count);
        let plane = if apart {
            let rounds: Vec<&[Observation]> = rounds.iter().map(Vec::as_slice).collect();
            regression(&rounds).unwrap()
        } else {
            regression(&[&rounds.concat()]).unwrap()
        };
        let spread = scatter.round.hypot(scatter.size).hypot(scatter.own);
        let next = at(&PLACE) + spread * normal(&mut rng);
        let intervals = [
            (plane.at(&MIDDLE, Level::P95), at(&MIDDLE)),
            (plane.at(&unit(1, 3), Level::P95), TRUTH[1]),
            (plane.predict(&PLACE, Level::P95), next),
        ];
        for (share, (interval, truth)) in held.iter_mut().zip(intervals) {
            let holds = interval.low <= truth && truth <= interval.high;
            *share += f64::from(u8::from(holds)) / f64::from(STUDIES);
        }
    }
    held
}

#[test]
fn textbook_intervals_hold_the_truth_95_times_in_100_where_observations_are_independent() {
    let held = coverage(Scatter { round: 0.0, size: 0.0, own: 4.0 }, 5, false);
    // Four standard errors of a share of 0.95 among 2000 studies are 0.0195.
    assert!(held.iter().all(|share| (0.93..=0.97).contains(share)), "{held:?}");
}

#[test]
fn what_a_round_shares_makes_the_textbook_too_sure_and_the_rounds_not() {
    let shared = Scatter { round: 4.0, size: 3.0, own: 1.0 };
    let textbook = coverage(shared, 5, false);
    assert!(textbook[0] < 0.7, "{textbook:?}");
    let rounds = coverage(shared, 5, true);
    assert!(rounds.iter().all(|share| *share > 0.94), "{rounds:?}");
}

#[test]
fn three_rounds_are_enough_for_intervals_that_hold() {
    let held = coverage(Scatter { round: 4.0, size: 3.0, own: 1.0 }, 3, true);
    assert!(held.iter().all(|share| *share > 0.93), "{held:?}");
}

/// Rounds in which a pod costs 5 % more or less, as its start decided, and each observation scatters on its own.
fn round_of_own_cost(
    rng: &mut StdRng,
    pods_and_rates: &[(f64, f64)],
    own: f64,
) -> Vec<Observation> {
    let per_pod = TRUTH[1] * (1.0 + 0.05 * normal(rng));
    let observe = |(pods, rate): &(f64, f64)| {
        let value = TRUTH[0] + per_pod * pods + TRUTH[2] * rate + own * normal(rng);
        observation(&[1.0, *pods, *rate], value)
    };
    pods_and_rates.iter().map(observe).collect()
}

#[test]
fn a_prediction_holds_for_a_start_at_which_a_pod_costs_something_else() {
    const STUDIES: usize = 1_000;
    let mut rng = StdRng::seed_from_u64(1977);
    for (rounds, place, own) in
        [(5, (90.0, 50.0), 1.0), (8, (90.0, 20.0), 4.0), (5, (10.0, 20.0), 1.0)]
    {
        let held = (0..STUDIES).filter(|_| {
            let rounds: Vec<_> =
                (0..rounds).map(|_| round_of_own_cost(&mut rng, &CELLS, own)).collect();
            let rounds: Vec<&[Observation]> = rounds.iter().map(Vec::as_slice).collect();
            let next = round_of_own_cost(&mut rng, &[place], own).remove(0);
            let predicted = regression(&rounds).unwrap().predict(&next.terms, Level::P95);
            predicted.low <= next.value && next.value <= predicted.high
        });
        let coverage = held.count() as f64 / STUDIES as f64;
        assert!(coverage >= 0.93, "{rounds} rounds, {place:?}: {coverage}");
    }
}

proptest! {
    #[test]
    fn an_exact_plane_is_found_again(
        coefficients in prop::array::uniform3(-1e3..1e3_f64),
        places in prop::collection::btree_set((-100..100_i32, -100..100_i32), 6..20),
        offset in -1e6..1e6_f64,
    ) {
        // Places on one straight line carry no plane.
        let places: Vec<_> = places.into_iter().map(|(x, z)| (f64::from(x), f64::from(z))).collect();
        let turn = |i: usize| {
            let [(a, b), (c, d), (e, f)] = [places[0], places[1], places[i]];
            (c - a) * (f - b) - (d - b) * (e - a)
        };
        prop_assume!((2..places.len()).any(|i| turn(i).abs() > 50.0));
        let observe = |(x, z): &(f64, f64)| {
            let value = coefficients[0] + coefficients[1] * x + coefficients[2] * z;
            observation(&[1.0, *x, *z], value + offset)
        };
        let plane = regression(&[&places.iter().map(observe).collect::<Vec<_>>()]).unwrap();
        let found = plane.coefficients();
        prop_assert!((found[0] - coefficients[0] - offset).abs() < 1e-4, "{found:?}");
        prop_assert!((found[1] - coefficients[1]).abs() < 1e-5, "{found:?}");
        prop_assert!((found[2] - coefficients[2]).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn residuals_stand_upright_on_every_term(values in prop::array::uniform8(-1e3..1e3_f64)) {
        let all: Vec<_> = CELLS.iter().zip(values)
            .map(|((pods, rate), value)| observation(&[1.0, *pods, *rate], value)).collect();
        let plane = regression(&[&all]).unwrap();
        for term in 0..3 {
            let left = |o: &Observation| o.value - plane.at(&o.terms, Level::P95).value;
            let along: f64 = all.iter().map(|o| o.terms[term] * left(o)).sum();
            prop_assert!(along.abs() < 1e-6, "{along}");
        }
    }

    #[test]
    fn one_more_observation_is_less_certain_than_the_plane(seed in any::<u64>(), pods in 0.0..500.0_f64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let rounds = rounds(&mut rng, Scatter { round: 1.0, size: 1.0, own: 1.0 }, 4);
        let rounds: Vec<&[Observation]> = rounds.iter().map(Vec::as_slice).collect();
        let plane = regression(&rounds).unwrap();
        let terms = [1.0, pods, 30.0];
        let [mean, next] = [plane.at(&terms, Level::P95), plane.predict(&terms, Level::P95)];
        prop_assert!(next.low < mean.low && mean.high < next.high);
        prop_assert_eq!(next.value, mean.value);
    }
}
