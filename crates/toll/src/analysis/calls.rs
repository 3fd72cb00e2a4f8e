//! How often programs of the user's call each other: counted in each variant, and held against the baseline's.

use std::collections::BTreeMap;

use super::estimates::over_rounds;
use super::findings::CallRate;
use crate::store::{ArmRecord, RunRecord};

/// A call, by caller and callee.
type Way<'a> = (&'a str, &'a str);

/// The calls whose number nobody knows before, in each variant.
pub fn calls(run: &RunRecord) -> Vec<CallRate> {
    let of_baseline = by_round(run, &run.plan.baseline);
    let of_variant = |variant: &str| {
        let rates = by_round(run, variant).into_iter();
        let rate = |((caller, callee), rounds): (Way<'_>, BTreeMap<usize, Option<f64>>)| {
            let baseline = of_baseline.get(&(caller, callee));
            let apart =
                |(round, rate): (&usize, &Option<f64>)| Some((*rate)? - (*baseline?.get(round)?)?);
            let is_baseline = variant == run.plan.baseline;
            CallRate {
                variant: variant.to_owned(),
                caller: caller.to_owned(),
                callee: callee.to_owned(),
                per_request: over_rounds(rounds.values().copied().flatten().collect()),
                difference: (!is_baseline)
                    .then(|| over_rounds(rounds.iter().filter_map(apart).collect()))
                    .flatten(),
            }
        };
        rates.map(rate).collect::<Vec<_>>()
    };
    run.plan.ready().flat_map(|(variant, _)| of_variant(variant)).collect()
}

/// Calls for each request of the load, by way and round; none where nobody counts them. Of the two arms of a baseline
/// the first that was proven.
fn by_round<'a>(
    run: &'a RunRecord,
    variant: &str,
) -> BTreeMap<Way<'a>, BTreeMap<usize, Option<f64>>> {
    let mut ways: BTreeMap<Way<'a>, BTreeMap<usize, Option<f64>>> = BTreeMap::new();
    for round in &run.rounds {
        let sound = |of: &&ArmRecord| of.arm.variant == variant && of.file.invalid.is_empty();
        let proofs = round.arms.iter().filter(sound).filter_map(|of| of.proof.as_ref());
        for seen in proofs.flat_map(|proof| &proof.calls) {
            let rate = seen.calls.map(|calls| calls as f64 / seen.requests.max(1) as f64);
            let rounds = ways.entry((&seen.caller, &seen.callee)).or_default();
            rounds.entry(round.number).or_insert(rate);
        }
    }
    ways
}
