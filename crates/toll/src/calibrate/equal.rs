//! Turns rounds of equal arms into how often toll is wrong about them: every triple of arms over every subset of rounds
//! is a study whose true effect is none.

use serde::{Deserialize, Serialize};
use toll_stats::{Effect, Level, Member, Verdict};

use super::chance::{self, Chance};
use super::observed::{METRICS, Round};
use super::studies::{Studies, level_of};
use super::subsets::ROUNDS_OF_A_STUDY;
use super::words::Share;
use crate::plan::Metric;

/// What the studies of equal arms said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Equal {
    /// Rounds in which no arm broke.
    pub rounds: usize,
    /// Rounds of a study.
    pub rounds_of_a_study: usize,
    /// Reports that were made of them.
    pub studies: usize,
    /// Reports in which a metric is higher or lower.
    pub false_reports: Share,
    /// What an instrument without fault would show with as many rounds, shares; 95 of 100 calibrations lie within all of their ranges.
    pub false_by_chance: [f64; 2],
    /// One a metric that could be read.
    pub metrics: Vec<Coverage>,
}

/// One metric of equal arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// Which.
    pub metric: Metric,
    /// Intervals of 95 % that hold zero.
    pub inside: Share,
    /// As [`Equal::false_by_chance`].
    pub by_chance: [f64; 2],
    /// Mean half-width of the intervals, logarithms of ratios.
    pub half_width: f64,
    /// The change that a report of [`ROUNDS_OF_A_STUDY`] rounds says it finds with 80 % power, share of the baseline;
    /// the mean of all reports.
    pub detectable: f64,
    /// Mean of the arms, in the metric's unit.
    pub figure: f64,
}

impl Equal {
    /// Of rounds that all have the same arms; `None` below two rounds or three arms.
    pub fn of(rounds: &[Round], bound: f64, seed: u64) -> Option<Self> {
        let arms = rounds.first()?.arms.len();
        let studies = Studies::of(rounds.len(), arms, seed);
        let rounds_of_a_study = studies.subsets.first()?.len();
        let effects = |metric| Some((metric, studies.effects(metric, rounds)?));
        let by_metric: Vec<(Metric, Vec<Effect>)> =
            METRICS.into_iter().filter_map(effects).collect();
        let family = by_metric.len();
        let reports: Vec<Vec<Effect>> = (0..studies.count())
            .map(|study| by_metric.iter().map(|(_, effects)| effects[study]).collect())
            .collect();
        let shape = chance::Shape { rounds: rounds.len(), arms, family };
        let Chance { inside, false_reports } = chance::of_calibrations(&studies, shape, seed);
        let wrong = reports.iter().filter(|report| is_false(report, bound)).count();
        Some(Self {
            rounds: rounds.len(),
            rounds_of_a_study,
            studies: reports.len(),
            false_reports: Share::of(wrong, reports.len())?,
            false_by_chance: false_reports,
            metrics: by_metric
                .iter()
                .filter_map(|(metric, effects)| coverage(*metric, effects, inside, family))
                .collect(),
        })
    }

    /// What was found of a metric.
    pub fn metric(&self, metric: Metric) -> Option<&Coverage> {
        self.metrics.iter().find(|coverage| coverage.metric == metric)
    }
}

fn coverage(
    metric: Metric,
    effects: &[Effect],
    by_chance: [f64; 2],
    family: usize,
) -> Option<Coverage> {
    let n = effects.len() as f64;
    let holding = effects.iter().filter(|effect| holds_zero(effect)).count();
    let level = level_of(family);
    let detectable = effects.iter().map(|effect| {
        let surely = effect.surely_detectable(ROUNDS_OF_A_STUDY, level);
        surely.unwrap_or_else(|| effect.detectable(ROUNDS_OF_A_STUDY, level))
    });
    Some(Coverage {
        metric,
        inside: Share::of(holding, effects.len())?,
        by_chance,
        half_width: effects.iter().map(|e| e.log_ratio().half_width()).sum::<f64>() / n,
        detectable: detectable.sum::<f64>() / n,
        figure: effects.iter().map(Effect::baseline).sum::<f64>() / n,
    })
}

/// Whether the interval of an effect holds the truth that there is none.
pub fn holds_zero(effect: &Effect) -> bool {
    !effect.log_ratio().excludes_zero()
}

/// Whether a report says of anything that it is higher or lower.
pub fn is_false(report: &[Effect], bound: f64) -> bool {
    let members: Vec<Member> =
        report.iter().map(|effect| Member { effect: *effect, bound }).collect();
    let verdicts = toll_stats::verdicts(&members, members.len(), Level::P95);
    verdicts.iter().any(|v| matches!(v, Verdict::Higher | Verdict::Lower))
}
