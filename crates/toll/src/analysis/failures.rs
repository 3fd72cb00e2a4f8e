//! Failed requests where a load tolerates some: each variant's share, and how it differs from the baseline's.

use std::collections::BTreeMap;

use super::estimates::over_rounds;
use super::findings::{Estimate, FailureShare};
use super::study_loads;
use super::tally::Tally;
use crate::store::RunRecord;

/// Sent and failed requests.
type Counts = (u64, u64);

/// The shares of all variants under the loads that tolerate failures.
pub fn failures(run: &RunRecord, tallies: &[&Tally<'_>]) -> Vec<FailureShare> {
    let variants: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    let tolerant = study_loads(&run.plan).filter(|load| load.tolerated > 0.0);
    let of_load = |load: &str| {
        let by_round = |variant: &str| of_variant(tallies, load, variant);
        let baseline = by_round(&run.plan.baseline);
        let share = |variant: &&str| {
            let rounds = by_round(variant);
            let (sent, failed) =
                rounds.values().fold((0, 0), |(s, f), (sent, failed)| (s + sent, f + failed));
            Some(FailureShare {
                load: load.to_owned(),
                variant: (*variant).to_owned(),
                sent,
                failed,
                share: over_rounds(rounds.values().map(|counts| of(*counts)).collect())?,
                difference: (*variant != run.plan.baseline)
                    .then(|| difference(&rounds, &baseline))
                    .flatten(),
            })
        };
        variants.iter().filter_map(share).collect::<Vec<_>>()
    };
    tolerant.flat_map(|load| of_load(&load.name)).collect()
}

/// By round; of the baseline both arms.
fn of_variant(tallies: &[&Tally<'_>], load: &str, variant: &str) -> BTreeMap<usize, Counts> {
    let mut rounds: BTreeMap<usize, Counts> = BTreeMap::new();
    for tally in tallies.iter().filter(|t| t.load == load && t.arm.variant == variant) {
        let counts = rounds.entry(tally.round).or_default();
        for report in tally.slices.iter().map(|slice| &slice.record.report) {
            counts.0 += report.sent_in_all_phases;
            counts.1 += report.warm_up.failed() + report.measure.failed();
        }
    }
    rounds
}

fn of((sent, failed): Counts) -> f64 {
    failed as f64 / sent.max(1) as f64
}

/// Within the rounds that both have.
fn difference(
    variant: &BTreeMap<usize, Counts>,
    baseline: &BTreeMap<usize, Counts>,
) -> Option<Estimate> {
    let of_round =
        |(round, counts): (&usize, &Counts)| Some(of(*counts) - of(*baseline.get(round)?));
    over_rounds(variant.iter().filter_map(of_round).collect())
}
