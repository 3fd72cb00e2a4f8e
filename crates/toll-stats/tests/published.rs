//! Every statistic against figures that others published.

use toll_stats::{Error, Estimate, Level, mean, median, paired_difference, paired_ratio, quantile};

/// Hours of sleep that two drugs gave ten patients: Student, "The probable error of a mean",
/// Biometrika 6, 1908; `sleep` in R.
const DEXTRO: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const LAEVO: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

/// Run times of five programs on two machines: Fleming and Wallace, "How not to lie with statistics",
/// CACM 29, 1986, table I.
const PROCESSOR_R: [f64; 5] = [417.0, 83.0, 66.0, 39_449.0, 772.0];
const PROCESSOR_M: [f64; 5] = [244.0, 70.0, 153.0, 33_527.0, 368.0];

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
fn the_second_drug_gives_1_58_hours_more_sleep() {
    // R: t.test(extra ~ group, data = sleep, paired = TRUE).
    let effect = paired_difference(&DEXTRO, &LAEVO, Level::P95).unwrap();
    assert_interval(&effect, 1.58, 0.700_114_2, 2.459_885_8, 1e-6);
    assert_eq!(effect.samples, 10);
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
fn the_ratio_of_two_processors_is_the_geometric_mean() {
    let ratio = paired_ratio(&PROCESSOR_R, &PROCESSOR_M, Level::P95).unwrap();
    assert_near(ratio.value, 0.86, 0.005);
    let inverse = paired_ratio(&PROCESSOR_M, &PROCESSOR_R, Level::P95).unwrap();
    assert_near(inverse.value, 1.17, 0.005);
}

#[test]
fn the_interval_of_a_ratio_is_students_on_the_logarithms() {
    let [baseline, treatment] = [DEXTRO, LAEVO].map(|drug| drug.map(f64::exp));
    let ratio = paired_ratio(&baseline, &treatment, Level::P95).unwrap();
    let [value, low, high] = [1.58_f64, 0.700_114_2, 2.459_885_8].map(f64::exp);
    assert_interval(&ratio, value, low, high, 1e-5);
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
    assert_eq!(
        paired_difference(&[1.0, 2.0], &[1.0], p95),
        Err(Error::UnequalLengths { baseline: 2, treatment: 1 })
    );
    assert_eq!(
        paired_ratio(&[1.0, 2.0, 0.0], &[1.0, 2.0, 3.0], p95),
        Err(Error::NotPositive { index: 2, value: 0.0 })
    );
    assert_eq!(Level::new(95.0), Err(Error::LevelOutOfRange(95.0)));
    assert_eq!(quantile(&[1.0], 99.0), Err(Error::QuantileOutOfRange(99.0)));
}
