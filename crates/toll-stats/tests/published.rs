//! Every statistic against figures that others published.

use toll_stats::{
    Error, Estimate, Level, jackknife, least_squares, mean, median, quantile, sen_slope, trend,
};

/// Hours of sleep that two drugs gave ten patients: Student, "The probable error of a mean",
/// Biometrika 6, 1908; `sleep` in R.
const DEXTRO: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const LAEVO: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

/// Twelve gauge readings: NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.2.
const GAUGE: [f64; 12] = [
    95.1772, 95.1567, 95.1937, 95.1959, 95.1442, 95.0610, 95.1591, 95.1195, 95.1065, 95.0925,
    95.1990, 95.1682,
];

fn assert_near(seen: f64, published: f64, tolerance: f64) {
    assert!((seen - published).abs() <= tolerance, "{seen} is not {published} +- {tolerance}");
}

fn assert_interval(estimate: &Estimate, value: f64, low: f64, high: f64, tolerance: f64) {
    assert_near(estimate.value, value, tolerance);
    assert_near(estimate.low, low, tolerance);
    assert_near(estimate.high, high, tolerance);
}

#[test]
fn one_drug_alone_gives_the_one_sample_interval() {
    // R: t.test(sleep$extra[11:20]).
    let sleep = mean(&LAEVO, Level::P95).unwrap();
    assert_interval(&sleep, 2.33, 0.897_677_5, 3.762_322_5, 1e-6);
}

#[test]
fn the_interval_follows_the_printed_table_of_students_t() {
    // Two-sided points of Student's t: Fisher and Yates, Statistical Tables, table III.
    let table = [(2, 0.95, 12.706), (3, 0.95, 4.303), (5, 0.95, 2.776), (6, 0.99, 4.032)];
    for (samples, share, point) in table.into_iter().chain([(31, 0.90, 1.697), (121, 0.95, 1.980)])
    {
        let values: Vec<f64> = (0..samples).map(f64::from).collect();
        let estimate = mean(&values, Level::new(share).unwrap()).unwrap();
        let n = f64::from(samples);
        // The variance of 0, 1, .. n-1 is n(n+1)/12.
        let standard_error = ((n + 1.0) / 12.0).sqrt();
        assert_near(estimate.half_width() / standard_error, point, 0.000_6);
    }
}

#[test]
fn a_quantile_lies_at_rank_one_plus_p_times_n_minus_one() {
    // The rule that the handbook gives as 1 + p(N-1): rank 10.9 of the twelve readings.
    assert_near(quantile(&GAUGE, 0.9).unwrap(), 95.1937 + 0.9 * 0.0022, 1e-9);
    // R: quantile(c(15, 20, 35, 40, 50), 0.4, type = 7).
    assert_near(quantile(&[50.0, 15.0, 40.0, 20.0, 35.0], 0.4).unwrap(), 29.0, 1e-12);
    assert_eq!(quantile(&GAUGE, 0.0).unwrap(), 95.0610);
    assert_eq!(quantile(&GAUGE, 1.0).unwrap(), 95.1990);
}

#[test]
fn the_median_of_an_even_number_lies_between_the_middle_two() {
    // R: median(sleep$extra[1:10]).
    assert_near(median(&DEXTRO).unwrap(), 0.35, 1e-12);
    assert_eq!(median(&[7.0]).unwrap(), 7.0);
}

#[test]
fn what_cannot_be_computed_is_named() {
    let p95 = Level::P95;
    assert_eq!(mean(&[1.0], p95), Err(Error::TooFew { have: 1, need: 2 }));
    assert_eq!(median(&[]), Err(Error::TooFew { have: 0, need: 1 }));
    assert_eq!(mean(&[1.0, f64::NAN], p95), Err(Error::NotFinite { index: 1 }));
    assert_eq!(Level::new(95.0), Err(Error::LevelOutOfRange(95.0)));
    assert_eq!(quantile(&[1.0], 99.0), Err(Error::QuantileOutOfRange(99.0)));
    assert_eq!(least_squares(&[(2.0, 1.0)]), Err(Error::TooFew { have: 1, need: 2 }));
    assert_eq!(least_squares(&[(2.0, 1.0), (2.0, 3.0)]), Err(Error::NoSpread(2.0)));
    assert_eq!(trend(&[over_time(&[1.0; 9])]), Err(Error::TooFew { have: 9, need: 10 }));
    assert_eq!(trend(&vec![vec![(0.0, 1.0)]; 10]), Err(Error::TooFew { have: 1, need: 2 }));
    assert_eq!(sen_slope(&[vec![(1.0, 1.0), (1.0, 2.0)]]), Err(Error::NotInOrder { index: 1 }));
}

/// Pairs (y, x) of the National Institute of Standards and Technology, Statistical Reference Datasets, `Norris`.
const NORRIS: [(f64, f64); 36] = [
    (0.1, 0.2),
    (338.8, 337.4),
    (118.1, 118.2),
    (888.0, 884.6),
    (9.2, 10.1),
    (228.1, 226.5),
    (668.5, 666.3),
    (998.5, 996.3),
    (449.1, 448.6),
    (778.9, 777.0),
    (559.2, 558.2),
    (0.3, 0.4),
    (0.1, 0.6),
    (778.1, 775.5),
    (668.8, 666.9),
    (339.3, 338.0),
    (448.9, 447.5),
    (10.8, 11.6),
    (557.7, 556.0),
    (228.3, 228.1),
    (998.0, 995.8),
    (888.8, 887.6),
    (119.6, 120.2),
    (0.3, 0.3),
    (0.6, 0.3),
    (557.6, 556.8),
    (339.3, 339.1),
    (888.0, 887.2),
    (998.5, 999.0),
    (778.9, 779.0),
    (10.2, 11.1),
    (117.6, 118.3),
    (228.9, 229.2),
    (668.4, 669.1),
    (449.2, 448.9),
    (0.2, 0.5),
];

fn over_time(values: &[f64]) -> Vec<(f64, f64)> {
    (0..).map(f64::from).zip(values.iter().copied()).collect()
}

#[test]
fn the_line_through_the_reference_data_is_the_certified_one() {
    let line = least_squares(&NORRIS.map(|(y, x)| (x, y))).unwrap();
    assert_near(line.slope, 1.002_116_818_020_45, 1e-12);
    assert_near(line.intercept, -0.262_323_073_774_029, 1e-10);
}

#[test]
fn four_very_different_clouds_of_points_have_one_line() {
    // Anscombe, "Graphs in statistical analysis", The American Statistician 27, 1973: y = 3 + 0.5 x.
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let first = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
    let second = [9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74];
    for y in [first, second] {
        let points: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        let line = least_squares(&points).unwrap();
        assert_near(line.slope, 0.5, 0.000_5);
        assert_near(line.intercept, 3.0, 0.005);
    }
}

#[test]
fn one_wild_value_does_not_move_the_median_slope() {
    // Helsel and Hirsch, "Statistical methods in water resources", USGS 2002, section 10.1: 21 slopes, median 1.
    let slope = sen_slope(&[over_time(&[1.0, 2.0, 3.0, 4.0, 5.0, 16.0, 7.0])]).unwrap();
    assert_near(slope, 1.0, 1e-12);
}

/// Differences of hormone levels in eight patients, new less old patch and old less no patch: Efron and Tibshirani,
/// "An introduction to the bootstrap", 1993, table 10.1.
const PATCHES: [(f64, f64); 8] = [
    (-1200.0, 8406.0),
    (2601.0, 2342.0),
    (-2705.0, 8187.0),
    (1982.0, 8459.0),
    (-1290.0, 4795.0),
    (351.0, 3516.0),
    (-638.0, 4796.0),
    (-2719.0, 10_238.0),
];

#[test]
fn the_jackknife_of_a_ratio_of_sums_is_that_of_the_book() {
    let ratio = |patients: &[(f64, f64)]| {
        let (new, old): (Vec<f64>, Vec<f64>) = patients.iter().copied().unzip();
        new.iter().sum::<f64>() / old.iter().sum::<f64>()
    };
    let without = |left_out: usize| {
        let mut kept = PATCHES.to_vec();
        kept.remove(left_out);
        ratio(&kept)
    };
    let without: Vec<f64> = (0..PATCHES.len()).map(without).collect();
    let estimate = jackknife(ratio(&PATCHES), &without, Level::P95).unwrap();
    assert_near(estimate.value, -0.0713, 0.000_05);
    // Its bias is 0.0080 there (section 10.6); equation 11.5 gives a standard error of 0.1055.
    let mean_without = without.iter().sum::<f64>() / 8.0;
    assert_near(7.0 * (mean_without - estimate.value), 0.0080, 0.000_05);
    let t_of_seven = 2.364_624;
    assert_near(estimate.half_width() / t_of_seven, 0.1055, 0.000_05);
    assert_near(estimate.high - estimate.value, estimate.value - estimate.low, 1e-12);
}
