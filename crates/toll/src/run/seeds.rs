//! The seeds of a run's loads: one for each load that an environment may bear, no two alike.
//!
//! A seed decides the random part of what a load writes. Two loads of one seed on one environment would write the
//! same rows, and the proof would take the second ones for doubled.

use crate::plan::{Plan, PlannedTrial};

/// Apart by more than a run has blocks, slices or tries.
const KIND: u64 = 1 << 32;

/// Both arms of a pair see the same arrivals: it follows block and load, not the trial.
pub fn of_trial(plan: &Plan, trial: &PlannedTrial) -> u64 {
    let load = plan.loads.iter().position(|load| load.name == trial.load);
    let load = load.expect("every trial of a plan names one of its loads") as u64;
    plan.seed.wrapping_add(load * KIND).wrapping_add(trial.block as u64)
}

/// Of a slice of a discarded run.
pub fn of_slice(plan: &Plan, number: u64) -> u64 {
    (!plan.seed).wrapping_sub(number)
}

/// Of a try in the search for a knee.
pub fn of_try(plan: &Plan, number: u64) -> u64 {
    (!plan.seed).wrapping_sub(KIND).wrapping_sub(number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::run::fixture::{STUDY, planned};

    #[test]
    fn no_two_loads_that_one_environment_bears_have_the_same_seed() {
        let second =
            "  steady: {open: {rate: 100/s}, duration: 10s}\n  harder: {open: {rate: 200/s}";
        let plan = planned(&STUDY.replace("  steady: {open: {rate: 100/s}", second));
        let of_arm = plan.trials.iter().filter(|t| t.arm == plan.trials[0].arm);
        let trials: Vec<u64> = of_arm.map(|trial| of_trial(&plan, trial)).collect();
        let others = (0..100).flat_map(|n| [of_slice(&plan, n), of_try(&plan, n)]);
        let all: Vec<u64> = trials.iter().copied().chain(others).collect();
        assert!(trials.len() >= 4, "{trials:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn the_arms_of_a_pair_have_the_same_seed() {
        let plan = planned(STUDY);
        let first = &plan.trials[0];
        let pair = plan.trials.iter().filter(|t| t.block == first.block && t.load == first.load);
        let seeds: BTreeSet<u64> = pair.map(|trial| of_trial(&plan, trial)).collect();
        assert_eq!(seeds.len(), 1);
    }
}
