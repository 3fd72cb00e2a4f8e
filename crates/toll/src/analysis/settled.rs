//! The discarded runs that brought fresh services to their steady state, as the report shows them.

use super::findings::{Settled, SettledSlice};
use crate::store::{RunRecord, SettleSlice};

/// In the order in which they ran.
pub fn settled(run: &RunRecord) -> Vec<Settled> {
    let slice = |slice: &SettleSlice| SettledSlice {
        at_s: slice.at_s,
        throughput_per_s: slice.throughput_per_s,
        cpu_per_request_us: slice.cpu_per_request_us,
    };
    let recorded = run.trials.iter().filter_map(|t| t.settled.as_ref().map(|record| (t, record)));
    recorded
        .map(|(trial, record)| Settled {
            variant: trial.trial.arm.variant.clone(),
            trial: trial.trial.index,
            stable: record.stable,
            slices: record.slices.iter().map(slice).collect(),
        })
        .collect()
}
