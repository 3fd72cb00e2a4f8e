//! How far each variant is from its own knee: the highest rate that it carries without a queue that grows.
//!
//! Below the knee latency is that of the path; past it, it is that of a queue, and throughput is what the machine
//! carries. A ratio of two latencies says something of a variant only when both arms are below. A knee is that of
//! what was asked: loads that ask something else, or in another mix, have none.

use super::effects;
use super::findings::Regime;
use super::summary::Arms;
use crate::plan::{Plan, PlannedLoad};
use crate::store::{KneeRecord, RunRecord, TrialRecord};

/// Share of its knee from which on a variant counts as near it: queues grow well before the last request per
/// second that is carried.
const NEAR_KNEE: f64 = 0.9;
/// A trial that completed more than this share of its variant's knee shows that the knee is higher.
const KNEE_TOO_LOW: f64 = 1.05;

/// One per variant with trials under this load and a knee that was searched for with its request.
pub fn regimes(run: &RunRecord, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<Regime> {
    if !asks_as_the_search(&run.plan, load) {
        return vec![];
    }
    let regime = |(variant, trials): &Arms<'_>| {
        let knee_per_s = run.knees.iter().find(|knee| knee.variant == *variant)?.rate_per_s;
        let throughput_per_s = effects::mean_observed(trials, effects::throughput)?.value;
        Some(Regime {
            variant: (*variant).into(),
            throughput_per_s,
            knee_per_s,
            near_knee: throughput_per_s >= NEAR_KNEE * knee_per_s,
            past_knee: throughput_per_s >= knee_per_s,
        })
    };
    arms.iter().filter_map(regime).collect()
}

/// Whether `load` asks what the search for the knee asked: what the first load does that has a share of it, else
/// the first that refers to it.
fn asks_as_the_search(plan: &Plan, load: &PlannedLoad) -> bool {
    let of_rate = plan.loads.iter().find(|load| load.share_of_knee().is_some());
    let searched = of_rate.or_else(|| plan.loads.iter().find(|load| load.refers_to_knee()));
    searched.is_some_and(|searched| searched.kinds() == load.kinds())
}

/// A knee that a valid trial went past by so much that it cannot be one.
pub struct TooLow<'a> {
    /// The first of the fastest such trials.
    pub trial: &'a TrialRecord,
    /// Requests per second that it completed.
    pub throughput_per_s: f64,
    /// Requests per second that the search found.
    pub knee_per_s: f64,
}

/// One per variant with such a trial.
pub fn too_low<'a>(run: &RunRecord, valid: &[&'a TrialRecord]) -> Vec<TooLow<'a>> {
    let asks = |t: &TrialRecord| {
        let load = run.plan.loads.iter().find(|load| load.name == t.trial.load);
        load.is_some_and(|load| asks_as_the_search(&run.plan, load))
    };
    let of_knee = |knee: &KneeRecord| {
        let of_variant = |t: &&&TrialRecord| t.trial.arm.variant == knee.variant && asks(t);
        let completed = valid.iter().filter(of_variant);
        let completed = completed.filter_map(|t| Some((*t, effects::throughput(t)?)));
        let (trial, throughput_per_s) =
            completed.reduce(|most, other| if other.1 > most.1 { other } else { most })?;
        let knee_per_s = knee.rate_per_s;
        let too_low = throughput_per_s > KNEE_TOO_LOW * knee_per_s;
        too_low.then_some(TooLow { trial, throughput_per_s, knee_per_s })
    };
    run.knees.iter().filter_map(of_knee).collect()
}
