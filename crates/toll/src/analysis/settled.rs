//! The discarded load that brought fresh services to their steady state, by variant.

use super::effects::mean_of;
use super::findings::{Estimate, Settled, SettledRun, SettledSlice};
use crate::store::{ArmRecord, RoundRecord, RunRecord, SettleSlice};

/// One per variant with some, in the order of the study; arms that do not count included.
pub fn settled(run: &RunRecord) -> Vec<Settled> {
    let ready = run.plan.ready().map(|(name, _)| name);
    ready.filter_map(|name| summed_up(name, runs(run, name))).collect()
}

fn runs(run: &RunRecord, variant: &str) -> Vec<SettledRun> {
    let of_round = |round: &RoundRecord| {
        let of_variant = round.arms.iter().filter(|of| of.arm.variant == variant);
        of_variant.filter_map(|of| settled_run(round.number, of)).collect::<Vec<_>>()
    };
    run.rounds.iter().flat_map(of_round).collect()
}

fn settled_run(round: usize, of: &ArmRecord) -> Option<SettledRun> {
    let slice = |slice: &SettleSlice| SettledSlice {
        at_s: slice.at_s,
        throughput_per_s: slice.throughput_per_s,
        cpu_per_request_us: slice.cpu_per_request_us,
    };
    let record = of.file.settled.as_ref()?;
    let slices = record.slices.iter().map(slice).collect();
    Some(SettledRun { round, stable: record.stable, slices })
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
