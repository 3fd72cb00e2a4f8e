//! The order of the slices of a round, from the run's seed and the number of the round.
//!
//! In a cycle the load goes round the arms, load after load: the arms in a shuffled order, then in the reverse. What
//! the machine does steadily over a cycle falls out of every comparison, and each arm comes as often before any other
//! as after it. Sizes of a sweep follow each other, shuffled by round, or what the machine does over a round would look
//! like a cost of size.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{Arm, Cell, Plan, PlannedLoad};

/// Apart by more than a run has rounds or sizes.
const ROUND: u64 = 1 << 32;

/// One arm under one load for a short time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedSlice {
    /// The cycle, from 1.
    pub cycle: usize,
    /// Whether it is on the way back: in the reverse order.
    pub back: bool,
    /// Position among all slices of the round and size, from 0.
    pub place: usize,
    pub arm: Arm,
    /// Name of the load.
    pub load: String,
}

/// The loads by the size of the application that they need, each size where the plan first has it.
pub fn sizes(loads: &[PlannedLoad]) -> Vec<Vec<&PlannedLoad>> {
    let mut sizes: Vec<Vec<&PlannedLoad>> = Vec::new();
    for load in loads {
        let same = |size: &&mut Vec<&PlannedLoad>| {
            Cell::shares_deployment(size[0].cell.as_ref(), load.cell.as_ref())
        };
        match sizes.iter_mut().find(same) {
            Some(size) => size.push(load),
            None => sizes.push(vec![load]),
        }
    }
    sizes
}

/// The sizes in the order of a round.
pub fn sizes_of_round(plan: &Plan, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes(&plan.loads).len()).collect();
    order.shuffle(&mut rng(plan, round, u64::MAX >> 32));
    order
}

/// The slices of a round at one size.
pub fn slices(plan: &Plan, round: usize, size: usize) -> Vec<PlannedSlice> {
    let sizes = sizes(&plan.loads);
    let mut rng = rng(plan, round, size as u64);
    let mut slices = Vec::new();
    for cycle in 1..=plan.cycles {
        let mut loads: Vec<&PlannedLoad> = sizes[size].clone();
        loads.shuffle(&mut rng);
        for load in loads {
            let mut arms: Vec<&Arm> = plan.arms.iter().collect();
            arms.shuffle(&mut rng);
            let there = arms.iter().map(|arm| (*arm, false));
            let back = arms.iter().rev().map(|arm| (*arm, true));
            for (arm, back) in there.chain(back) {
                let place = slices.len();
                let (arm, load) = (arm.clone(), load.name.clone());
                slices.push(PlannedSlice { cycle, back, place, arm, load });
            }
        }
    }
    slices
}

/// What is sent before the slices at one size and counts for nothing: every load once for each arm.
pub fn rehearsal(plan: &Plan, size: usize) -> Vec<PlannedSlice> {
    let sizes = sizes(&plan.loads);
    let each = sizes[size].iter().flat_map(|load| plan.arms.iter().map(move |arm| (load, arm)));
    let slice = |(place, (load, arm)): (usize, (&&PlannedLoad, &Arm))| PlannedSlice {
        cycle: 0,
        back: false,
        place,
        arm: arm.clone(),
        load: load.name.clone(),
    };
    each.enumerate().map(slice).collect()
}

fn rng(plan: &Plan, round: usize, salt: u64) -> StdRng {
    StdRng::seed_from_u64(plan.seed.wrapping_add(round as u64 * ROUND).wrapping_add(salt))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::fixture::{STUDY, planned};

    fn plan() -> Plan {
        planned(STUDY)
    }

    #[test]
    fn every_arm_bears_every_load_twice_in_each_cycle() {
        let plan = plan();
        let mut seen: BTreeMap<(usize, Arm, String), usize> = BTreeMap::new();
        for slice in plan.slices(1, 0) {
            *seen.entry((slice.cycle, slice.arm, slice.load)).or_default() += 1;
        }
        assert_eq!(seen.len(), plan.cycles * plan.arms.len() * plan.loads.len());
        assert!(seen.values().all(|times| *times == 2), "{seen:?}");
    }

    #[test]
    fn the_arms_come_back_in_the_reverse_order() {
        let plan = plan();
        let slices = plan.slices(1, 0);
        for load in slices.chunks(plan.arms.len() * 2) {
            let names = load.iter().map(|slice| (&slice.arm, &slice.load));
            assert!(names.clone().eq(names.rev()), "{load:?}");
        }
    }

    #[test]
    fn the_order_differs_between_rounds_and_follows_the_seed() {
        let plan = plan();
        assert_eq!(plan.slices(1, 0), plan.slices(1, 0));
        assert!((2..=8).any(|round| plan.slices(round, 0) != plan.slices(1, 0)));
        let other = Plan { seed: plan.seed + 1, ..plan.clone() };
        assert!((1..=8).any(|round| plan.slices(round, 0) != other.slices(round, 0)));
    }
}
