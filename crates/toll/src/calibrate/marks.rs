//! Turns what a calibration found into pass marks: passed, failed, or not enough data to say.

use serde::{Deserialize, Serialize};

use super::Calibration;
use super::chance;
use super::equal::{Coverage, Equal};
use super::planted::Found;
use super::studies::level_of;
use super::subsets::ROUNDS_OF_A_STUDY;
use super::words::{Share, name_of, percent};

/// Intervals of 95 % hold the truth about as often as that.
const COVERAGE: [f64; 2] = [0.93, 0.97];
/// 16 of 200 reports: 1 in 20 would be right, and so many are no more than chance in 98 of 100 calibrations.
const MOST_FALSE: f64 = 0.08;
/// Reports that find an effect of the size that they say they find.
const LEAST_POWER: f64 = 0.8;
/// Standard errors that an estimate may lie from the truth.
const MOST_BIAS: f64 = 2.0;

/// One demand on the instrument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// What is judged.
    pub what: String,
    /// What it has to be.
    pub wanted: String,
    /// What it is.
    pub figure: String,
    /// Whether it is that.
    pub state: State,
}

/// How a mark was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was.
    Passed,
    /// It was not, and by more than chance.
    Failed,
    /// There are too few rounds to say.
    NotEnoughData,
}

/// All marks of a calibration.
pub fn of(calibration: &Calibration) -> Vec<Mark> {
    let equal = calibration.equal.iter().flat_map(of_equal);
    equal.chain(of_planted(&calibration.planted, calibration.planted_rounds)).collect()
}

fn of_equal(equal: &Equal) -> Vec<Mark> {
    let enough = equal.rounds >= ROUNDS_OF_A_STUDY * 3;
    let mut marks: Vec<Mark> =
        equal.metrics.iter().map(|metric| coverage(metric, enough)).collect();
    marks.push(false_reports(equal, enough));
    marks
}

/// Outside of the mark, and still where chance puts an instrument without fault: more rounds must tell.
fn state(holds: bool, is_chance: bool, enough: bool) -> State {
    match (holds, enough) {
        (_, false) => State::NotEnoughData,
        (true, true) => State::Passed,
        (false, true) if is_chance => State::NotEnoughData,
        (false, true) => State::Failed,
    }
}

fn coverage(of: &Coverage, enough: bool) -> Mark {
    let [least, most] = COVERAGE;
    let share = of.inside.share;
    let [low, high] = of.by_chance;
    let is_chance = (low..=high).contains(&share);
    Mark {
        what: format!("95 % intervals, {}", name_of(of.metric)),
        wanted: format!("{:.0} to {:.0} %", least * 100.0, most * 100.0),
        figure: percent(share),
        state: state((least..=most).contains(&share), is_chance, enough),
    }
}

fn false_reports(equal: &Equal, enough: bool) -> Mark {
    let share = equal.false_reports.share;
    Mark {
        what: "reports with a false verdict".into(),
        wanted: format!("at most {:.0} %", MOST_FALSE * 100.0),
        figure: percent(share),
        state: state(share <= MOST_FALSE, share <= equal.false_by_chance[1], enough),
    }
}

fn of_planted(found: &[Found], rounds: usize) -> Vec<Mark> {
    let once = found.iter().filter(|found| found.truth.multiple == Some(1.0));
    let with_bias: Vec<&Found> =
        found.iter().filter(|f| f.truth.multiple != Some(0.0) && f.bias.is_some()).collect();
    // Of so many marks one would fail by chance at two standard errors, and none of them at these.
    let by_chance = match rounds {
        0 | 1 => f64::INFINITY,
        _ => chance::critical(level_of(with_bias.len()), rounds),
    };
    let biases = with_bias.into_iter().filter_map(|found| bias(found, by_chance));
    once.map(|found| power(found, rounds)).chain(biases).collect()
}

fn power(found: &Found, rounds: usize) -> Mark {
    let figure = found.right.map_or("-".into(), |right| percent(right.share));
    Mark {
        what: format!("found: {}", found.describes),
        wanted: format!("at least {:.0} %", LEAST_POWER * 100.0),
        figure,
        state: found.right.map_or(State::NotEnoughData, |right| power_state(right, rounds)),
    }
}

/// Reports share rounds: no more of them count as independent than fit beside each other.
fn power_state(right: Share, rounds: usize) -> State {
    let independent = rounds / ROUNDS_OF_A_STUDY;
    let found = (right.share * independent as f64).round() as usize;
    let is_low = Share::of(found, independent).is_none_or(|share| share.interval[1] < LEAST_POWER);
    match right.share >= LEAST_POWER {
        true => State::Passed,
        false if is_low => State::Failed,
        false => State::NotEnoughData,
    }
}

fn bias(found: &Found, by_chance: f64) -> Option<Mark> {
    let bias = found.bias?;
    let state = state(bias.abs() <= MOST_BIAS, bias.abs() <= by_chance, found.right.is_some());
    Some(Mark {
        what: format!("bias in {}, {}", name_of(found.truth.metric), found.describes),
        wanted: format!("at most {MOST_BIAS:.0}"),
        figure: format!("{bias:+.1}"),
        state,
    })
}

impl State {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::NotEnoughData => "not enough data",
        }
    }
}
