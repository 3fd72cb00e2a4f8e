//! The seeds of a run's loads: one for each load that an environment may bear, no two alike.
//!
//! A seed decides the random part of what a load writes. Two loads of one seed on one environment would write the
//! same rows, and the proof would take the second ones for doubled.

use crate::plan::{Plan, PlannedSlice};

/// Apart by more than a run has rounds times cycles, or slices of settling.
const KIND: u64 = 1 << 32;
/// Apart by more than a round has cycles, there and back.
const ROUND: u64 = 1 << 12;

/// All arms of a cycle see the same arrivals: it follows round, cycle and load, not the arm.
pub fn of_slice(plan: &Plan, round: usize, slice: &PlannedSlice) -> u64 {
    let load = plan.loads.iter().position(|load| load.name == slice.load);
    let load = load.expect("every slice of a plan names one of its loads") as u64;
    let number = round as u64 * ROUND + slice.cycle as u64 * 2 + u64::from(slice.back);
    plan.seed.wrapping_add((load + 1) * KIND).wrapping_add(number)
}

/// Of a slice of settling, or of one that measures the capacity.
pub fn of_settling(plan: &Plan, number: u64) -> u64 {
    (!plan.seed).wrapping_sub(number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::run::fixture::{STUDY, planned};

    #[test]
    fn no_two_loads_that_one_environment_bears_have_the_same_seed() {
        let second = "  steady: {open: {rate: 100/s}}\n  harder: {open: {rate: 200/s}";
        let plan = planned(&STUDY.replace("  steady: {open: {rate: 100/s}", second));
        let slices = plan.slices(1, 0);
        let of_arm = slices.iter().filter(|slice| slice.arm == plan.arms[0]);
        let slices: Vec<u64> = of_arm.map(|slice| of_slice(&plan, 1, slice)).collect();
        let settling = (0..100).map(|n| of_settling(&plan, n));
        let all: Vec<u64> = slices.iter().copied().chain(settling).collect();
        assert!(slices.len() >= 4, "{slices:?}");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn the_arms_of_a_cycle_have_the_same_seed() {
        let plan = planned(STUDY);
        let slices = plan.slices(1, 0);
        let first = slices.iter().filter(|slice| slice.cycle == 1 && !slice.back);
        let seeds: BTreeSet<u64> = first.map(|slice| of_slice(&plan, 1, slice)).collect();
        assert_eq!(seeds.len(), plan.loads.len());
    }
}
