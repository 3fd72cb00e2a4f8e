//! How far each variant is from its own capacity: what it carries flat out.
//!
//! Well below it latency is that of the path; near it, it is that of a queue, and throughput is what the machine
//! carries. A ratio of two latencies says something of a variant only when both arms are below. A capacity is that of
//! what was asked: loads that ask something else, or in another mix, have none.

use super::effects;
use super::findings::Regime;
use super::tally::Arms;
use crate::plan::{Plan, PlannedLoad};
use crate::store::RunRecord;

/// Share of its capacity from which on a variant counts as near it: queues grow well before the last request per
/// second that is carried.
const NEAR: f64 = 0.9;

/// One per variant with tallies under this load and a capacity that was measured with its request.
pub fn regimes(run: &RunRecord, load: &PlannedLoad, arms: &[Arms<'_>]) -> Vec<Regime> {
    if !asks_as_for_capacity(&run.plan, load) {
        return vec![];
    }
    let regime = |(variant, tallies): &Arms<'_>| {
        let capacity_per_s = run.capacities.iter().find(|of| of.variant == *variant)?.per_s;
        let throughput_per_s = effects::mean_observed(tallies, effects::throughput)?.value;
        Some(Regime {
            variant: (*variant).into(),
            throughput_per_s,
            capacity_per_s,
            near_limit: throughput_per_s >= NEAR * capacity_per_s,
            at_limit: throughput_per_s >= capacity_per_s,
        })
    };
    arms.iter().filter_map(regime).collect()
}

/// Whether `load` asks what was asked to measure the capacity: what the first load does that has a share of it, else
/// the first that refers to it.
fn asks_as_for_capacity(plan: &Plan, load: &PlannedLoad) -> bool {
    let of_rate = plan.loads.iter().find(|load| load.share_of_capacity().is_some());
    let asked = of_rate.or_else(|| plan.loads.iter().find(|load| load.refers_to_capacity()));
    asked.is_some_and(|asked| asked.kinds() == load.kinds())
}
