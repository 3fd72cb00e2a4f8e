//! The discarded runs that brought fresh services to their steady state, by variant.

use super::effects::mean_of;
use super::findings::{Estimate, Settled, SettledRun, SettledSlice};
use crate::store::{RunRecord, SettleSlice, TrialRecord};

/// One per variant with a discarded run, in the order of the study; trials that do not count included.
pub fn settled(run: &RunRecord) -> Vec<Settled> {
    let ready = run.plan.ready().map(|(name, _)| name);
    ready
        .filter_map(|name| {
            let of_variant = run.trials.iter().filter(|t| t.trial.arm.variant == name);
            summed_up(name, of_variant.filter_map(settled_run).collect())
        })
        .collect()
}

fn settled_run(trial: &TrialRecord) -> Option<SettledRun> {
    let slice = |slice: &SettleSlice| SettledSlice {
        at_s: slice.at_s,
        throughput_per_s: slice.throughput_per_s,
        cpu_per_request_us: slice.cpu_per_request_us,
    };
    let record = trial.settled.as_ref()?;
    Some(SettledRun {
        trial: trial.trial.index,
        stable: record.stable,
        slices: record.slices.iter().map(slice).collect(),
    })
}

fn summed_up(variant: &str, runs: Vec<SettledRun>) -> Option<Settled> {
    let ends = |value: fn(&SettledSlice) -> Option<f64>| {
        let first = mean(runs.iter().filter_map(|run| run.slices.first().and_then(value)));
        first.zip(mean(runs.iter().filter_map(|run| run.slices.last().and_then(value))))
    };
    Some(Settled {
        variant: variant.into(),
        length_s: mean(runs.iter().filter_map(|run| Some(run.slices.last()?.at_s)))?,
        throughput_per_s: ends(|slice| Some(slice.throughput_per_s))?,
        cpu_per_request_us: ends(|slice| slice.cpu_per_request_us),
        runs,
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<Estimate> {
    mean_of(&values.collect::<Vec<_>>())
}
