//! Turns trials into the numbers that tables and bars share. A ratio is taken within a round, so that what
//! disturbs the machine for seconds disturbs both sides. Rounds and prints nothing.

use toll_stats::median;

use crate::load::Pace;
use crate::peers::Client;
use crate::runner::{Outcome, Row, Trial};

/// The row that others are compared with.
pub(crate) fn of(rows: &[Row], client: Client) -> Option<&Row> {
    rows.iter().find(|row| row.contender.client == client)
}

/// By round; None for a failed one.
pub(crate) fn trials(row: &Row) -> impl Iterator<Item = Option<&Trial>> {
    let trials = match &row.outcome {
        Outcome::Trials(trials) => trials.as_slice(),
        Outcome::Unsupported | Outcome::NotInstalled(_) => &[],
    };
    trials.iter().map(|trial| trial.as_ref().ok())
}

pub(crate) fn each(row: &Row, number: impl Fn(&Trial) -> Option<f64>) -> Vec<f64> {
    trials(row).flatten().filter_map(number).collect()
}

/// `above` / `below` of the rounds in which both have the number.
pub(crate) fn ratios(above: &Row, below: &Row, number: impl Fn(&Trial) -> Option<f64>) -> Vec<f64> {
    let both = trials(above).zip(trials(below));
    both.filter_map(|(above, below)| Some(number(above?)? / number(below?)?)).collect()
}

pub(crate) fn middle(numbers: &[f64]) -> Option<f64> {
    median(numbers).ok()
}

pub(crate) fn per_cpu_second(trial: &Trial) -> Option<f64> {
    (trial.cpu_s > 0.0).then(|| trial.reading.requests / trial.cpu_s)
}

pub(crate) fn rate(trial: &Trial) -> Option<f64> {
    Some(trial.reading.per_second)
}

pub(crate) fn send_error_p50_us(trial: &Trial) -> Option<f64> {
    Some(trial.exactness?.p50_us)
}

pub(crate) fn send_error_p99_us(trial: &Trial) -> Option<f64> {
    Some(trial.exactness?.p99_us)
}

pub(crate) fn lag_p50_us(trial: &Trial) -> Option<f64> {
    Some(trial.reading.send_lag?.p50_us)
}

pub(crate) fn lag_p99_us(trial: &Trial) -> Option<f64> {
    Some(trial.reading.send_lag?.p99_us)
}

/// What stalls add to the median latency.
pub(crate) fn p50_over_unstalled_us(trial: &Trial) -> Option<f64> {
    Some(1e3 * (trial.reading.latency.p50_ms? - trial.unstalled_p50_ms?))
}

/// The rate at which requests came in, over the one asked for, less 100 %; by round.
pub(crate) fn rate_error_percent(row: &Row) -> Vec<f64> {
    let Pace::PerSecond(offered) = row.contender.load.pace else { return Vec::new() };
    let error = |trial: &Trial| Some(trial.exactness?.rate_per_s / f64::from(offered) - 1.0);
    each(row, |trial| Some(100.0 * error(trial)?))
}

/// Requests that an open loop asks for.
pub(crate) fn scheduled(row: &Row) -> Option<f64> {
    let load = row.contender.load;
    let Pace::PerSecond(per_second) = load.pace else { return None };
    Some(f64::from(per_second * load.seconds))
}

/// Trials and rows as tests need them.
#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::reading::Reading;
    use crate::scenario::{Effort, Scenario};

    pub(crate) fn trial(requests: f64, cpu_s: f64) -> Result<Trial, String> {
        let reading = Reading { requests, per_second: requests / 4.0, ..Reading::default() };
        Ok(Trial {
            reading,
            cpu_s,
            peak_rss_mb: 5.0,
            served: None,
            exactness: None,
            unstalled_p50_ms: None,
        })
    }

    pub(crate) fn row(client: Client, outcome: Outcome) -> Row {
        let contenders = Scenario::Closed.contenders(&Effort::new(3, 4));
        let contender = contenders.into_iter().find(|c| c.client == client).unwrap();
        Row { contender, version: "1.0".into(), outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{row, trial};
    use super::*;

    fn toll_and_wrk(toll: Vec<Result<Trial, String>>, wrk: Vec<Result<Trial, String>>) -> [Row; 2] {
        [row(Client::Toll, Outcome::Trials(toll)), row(Client::Wrk, Outcome::Trials(wrk))]
    }

    #[test]
    fn ratios_are_taken_within_a_round_before_their_median() {
        let toll = vec![trial(300.0, 1.0), trial(100.0, 1.0), trial(200.0, 1.0)];
        let wrk = vec![trial(100.0, 1.0), trial(100.0, 1.0), trial(100.0, 1.0)];
        let [toll, wrk] = toll_and_wrk(toll, wrk);
        assert_eq!(ratios(&toll, &wrk, per_cpu_second), [3.0, 1.0, 2.0]);
    }

    #[test]
    fn a_failed_round_drops_out_of_both_sides_of_a_ratio() {
        let toll = vec![trial(300.0, 1.0), Err("crash".into()), trial(200.0, 1.0)];
        let wrk = vec![trial(100.0, 1.0), trial(1.0, 1.0), trial(100.0, 1.0)];
        let [toll, wrk] = toll_and_wrk(toll, wrk);
        assert_eq!(ratios(&toll, &wrk, per_cpu_second), [3.0, 2.0]);
    }

    #[test]
    fn stalls_are_charged_with_what_the_median_is_above_that_of_a_calm_server() {
        let mut stalled = trial(1_000.0, 1.0).unwrap();
        stalled.reading.latency.p50_ms = Some(0.120);
        assert_eq!(p50_over_unstalled_us(&stalled), None);
        stalled.unstalled_p50_ms = Some(0.105);
        assert!((p50_over_unstalled_us(&stalled).unwrap() - 15.0).abs() < 1e-9);
    }
}
