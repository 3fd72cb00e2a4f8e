//! How far each variant is from its own knee: the highest rate that it carries without a queue that grows.
//!
//! Below the knee latency is that of the path; past it, it is that of a queue, and throughput is what the machine
//! carries. A ratio of two latencies says something of a variant only when both arms are below.

use super::effects;
use super::findings::Regime;
use super::summary::Arms;
use crate::plan::{PlannedLoad, Release};
use crate::store::{RunRecord, TrialRecord};

/// Share of its knee from which on a variant counts as past it: queues grow well before the last request per
/// second that is carried.
const PAST_KNEE: f64 = 0.9;

/// One per variant with trials under this load and a knee that was searched for.
pub fn regimes(run: &RunRecord, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<Regime> {
    let rate = |t: &TrialRecord| match load.release {
        Release::Users(_) => all_at_work_per_s(t).or_else(|| effects::throughput(t)),
        Release::Open { .. } | Release::Closed { .. } => effects::throughput(t),
    };
    let regime = |(variant, trials): &Arms<'_>| {
        let knee_per_s = run.knees.iter().find(|knee| knee.variant == *variant)?.rate_per_s;
        let throughput_per_s = effects::mean_observed(trials, rate)?.value;
        let past_knee = throughput_per_s >= PAST_KNEE * knee_per_s;
        Some(Regime { variant: (*variant).into(), throughput_per_s, knee_per_s, past_knee })
    };
    arms.iter().filter_map(regime).collect()
}

/// Answers per second to the requests of the stages in which the most users are at work and none comes or goes.
fn all_at_work_per_s(trial: &TrialRecord) -> Option<f64> {
    let stages = &trial.load.as_ref()?.measure.stages;
    let most = stages.iter().map(|stage| stage.from.max(stage.to)).fold(0.0, f64::max);
    let held = || stages.iter().filter(|stage| stage.from == most && stage.to == most);
    let seconds: f64 = held().map(|stage| stage.end_s - stage.begin_s).sum();
    let done: u64 = held().map(|stage| stage.done).sum();
    (seconds > 0.0).then(|| done as f64 / seconds)
}
