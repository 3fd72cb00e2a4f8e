//! The order of the trials: blocks, and within each block the arms shuffled by the run's seed.
//!
//! Within a block the loads follow each other and all arms of one load run back to back, so that the pairs
//! that are compared lie close together in time.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{Arm, PlannedTrial};

/// Every arm once per load and block.
pub fn trials(arms: &[Arm], loads: &[String], blocks: usize, seed: u64) -> Vec<PlannedTrial> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut trials = Vec::with_capacity(arms.len() * loads.len() * blocks);
    for block in 1..=blocks {
        for load in loads {
            let mut shuffled = arms.to_vec();
            shuffled.shuffle(&mut rng);
            for arm in shuffled {
                trials.push(PlannedTrial {
                    index: trials.len() + 1,
                    block,
                    arm,
                    load: load.clone(),
                });
            }
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms() -> Vec<Arm> {
        ["a", "b", "c"].map(|v| Arm { variant: v.into(), again: false }).to_vec()
    }

    fn order_of(trials: &[PlannedTrial], block: usize) -> Vec<String> {
        trials.iter().filter(|t| t.block == block).map(|t| t.arm.variant.clone()).collect()
    }

    #[test]
    fn every_block_holds_every_arm_once_per_load() {
        let loads = ["x".to_owned(), "y".to_owned()];
        let trials = trials(&arms(), &loads, 4, 7);
        assert_eq!(trials.len(), 3 * 2 * 4);
        for block in 1..=4 {
            for load in &loads {
                let mut seen: Vec<_> = trials
                    .iter()
                    .filter(|t| t.block == block && t.load == *load)
                    .map(|t| t.arm.variant.as_str())
                    .collect();
                seen.sort_unstable();
                assert_eq!(seen, ["a", "b", "c"]);
            }
        }
    }

    #[test]
    fn the_order_differs_between_blocks_and_follows_the_seed() {
        let loads = ["x".to_owned()];
        let first = trials(&arms(), &loads, 8, 7);
        assert_eq!(first, trials(&arms(), &loads, 8, 7));
        assert_ne!(first, trials(&arms(), &loads, 8, 8));
        assert!((2..=8).any(|block| order_of(&first, block) != order_of(&first, 1)));
    }

    #[test]
    fn indices_count_from_one_without_gaps() {
        let trials = trials(&arms(), &["x".to_owned()], 2, 1);
        assert!(trials.iter().enumerate().all(|(i, t)| t.index == i + 1));
    }
}
