//! The order of the trials: blocks, and within each block the arms shuffled by the run's seed.
//!
//! What is brought up for each trial, or stands side by side: within a block the loads follow each other and all
//! arms of one load run back to back, so that the pairs that are compared lie close together in time. What stays up
//! alone for a block: the sizes of the application follow each other, shuffled too, or what the machine does over a
//! block would look like a cost of size; within a size the arms follow each other, and each bears all loads of that
//! size, in the order of the study, before it goes down.

use std::ops::RangeInclusive;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{Arm, BringUp, Cell, PlannedLoad, PlannedTrial};
use crate::study::Study;

/// The first block: 0 is a rehearsal.
pub fn first_block(study: &Study) -> usize {
    usize::from(!study.settle.is_some_and(|settle| settle.rehearse))
}

/// The names of the loads by the size of the application that they need, each size where the study first has it.
pub fn sizes(loads: &[PlannedLoad]) -> Vec<Vec<String>> {
    let mut sizes: Vec<(Option<&Cell>, Vec<String>)> = Vec::new();
    for load in loads {
        let cell = load.cell.as_ref();
        match sizes.iter_mut().find(|(size, _)| Cell::shares_deployment(*size, cell)) {
            Some((_, names)) => names.push(load.name.clone()),
            None => sizes.push((cell, vec![load.name.clone()])),
        }
    }
    sizes.into_iter().map(|(_, names)| names).collect()
}

/// Every arm once per load and block; `sizes` are the loads, those of one size together.
pub fn trials(
    arms: &[Arm],
    sizes: &[Vec<String>],
    blocks: RangeInclusive<usize>,
    seed: u64,
    bring_up: BringUp,
) -> Vec<PlannedTrial> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut of_block = || -> Vec<(Arm, &String)> {
        let mut ordered: Vec<&Vec<String>> = sizes.iter().collect();
        match bring_up {
            BringUp::Trial | BringUp::Together | BringUp::Run => {
                if bring_up == BringUp::Together {
                    ordered.shuffle(&mut rng);
                }
                let loads = ordered.into_iter().flatten();
                loads.flat_map(|load| pairs(shuffled(arms, &mut rng), [load])).collect()
            }
            BringUp::Block => {
                ordered.shuffle(&mut rng);
                let sizes = ordered.into_iter();
                sizes.flat_map(|loads| pairs(shuffled(arms, &mut rng), loads)).collect()
            }
        }
    };
    let numbered = blocks.flat_map(|block| of_block().into_iter().map(move |t| (block, t)));
    let trial = |(before, (block, (arm, load))): (usize, (usize, (Arm, &String)))| PlannedTrial {
        index: before + 1,
        block,
        arm,
        load: load.clone(),
    };
    numbered.enumerate().map(trial).collect()
}

fn shuffled(arms: &[Arm], rng: &mut StdRng) -> Vec<Arm> {
    let mut shuffled = arms.to_vec();
    shuffled.shuffle(rng);
    shuffled
}

/// Each arm with each of the loads.
fn pairs<'l>(
    arms: Vec<Arm>,
    loads: impl IntoIterator<Item = &'l String> + Clone,
) -> Vec<(Arm, &'l String)> {
    let of_arm = |arm: Arm| loads.clone().into_iter().map(move |load| (arm.clone(), load));
    arms.into_iter().flat_map(of_arm).collect()
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
        let loads = [vec!["x".to_owned(), "y".to_owned()]];
        let trials = trials(&arms(), &loads, 1..=4, 7, BringUp::Trial);
        assert_eq!(trials.len(), 3 * 2 * 4);
        for block in 1..=4 {
            for load in &loads[0] {
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
    fn a_rehearsal_comes_before_the_first_block_and_holds_every_load_of_every_arm() {
        let loads = [vec!["x".to_owned(), "y".to_owned()]];
        let trials = trials(&arms(), &loads, 0..=2, 7, BringUp::Run);
        assert_eq!(trials.len(), 3 * 2 * 3);
        assert!(trials.iter().enumerate().all(|(at, t)| (at < 6) == (t.block == 0)));
    }

    #[test]
    fn the_order_differs_between_blocks_and_follows_the_seed() {
        let loads = [vec!["x".to_owned()]];
        let first = trials(&arms(), &loads, 1..=8, 7, BringUp::Trial);
        assert_eq!(first, trials(&arms(), &loads, 1..=8, 7, BringUp::Trial));
        assert_ne!(first, trials(&arms(), &loads, 1..=8, 8, BringUp::Trial));
        assert!((2..=8).any(|block| order_of(&first, block) != order_of(&first, 1)));
    }

    #[test]
    fn indices_count_from_one_without_gaps() {
        let trials = trials(&arms(), &[vec!["x".to_owned()]], 0..=2, 1, BringUp::Trial);
        assert!(trials.iter().enumerate().all(|(i, t)| t.index == i + 1));
    }

    #[test]
    fn arms_that_stand_together_bear_each_load_back_to_back() {
        let loads = [vec!["x".to_owned(), "y".to_owned()]];
        let trials = trials(&arms(), &loads, 1..=2, 7, BringUp::Together);
        let loads: Vec<&str> = trials.iter().map(|trial| trial.load.as_str()).collect();
        assert_eq!(loads, ["x", "x", "x", "y", "y", "y", "x", "x", "x", "y", "y", "y"]);
    }

    /// The arms of a block in their order, and the loads that each bears.
    fn stays_up(trials: &[PlannedTrial], block: usize) -> Vec<(String, Vec<String>)> {
        let mut arms: Vec<(String, Vec<String>)> = Vec::new();
        for trial in trials.iter().filter(|t| t.block == block) {
            match arms.last_mut().filter(|(arm, _)| *arm == trial.arm.variant) {
                Some((_, loads)) => loads.push(trial.load.clone()),
                None => arms.push((trial.arm.variant.clone(), vec![trial.load.clone()])),
            }
        }
        arms
    }

    #[test]
    fn what_stays_up_for_a_block_bears_all_loads_in_the_order_of_the_study() {
        let loads = ["z".to_owned(), "a".to_owned()];
        let trials = trials(&arms(), &[loads.to_vec()], 1..=8, 7, BringUp::Block);
        assert_eq!(trials.len(), 3 * 2 * 8);
        assert!(trials.iter().enumerate().all(|(i, t)| t.index == i + 1));
        let orders: Vec<Vec<String>> = (1..=8)
            .map(|block| {
                let (mut arms, borne): (Vec<_>, Vec<_>) =
                    stays_up(&trials, block).into_iter().unzip();
                assert!(borne.iter().all(|borne| *borne == loads), "{borne:?}");
                let order = arms.clone();
                arms.sort_unstable();
                assert_eq!(arms, ["a", "b", "c"]);
                order
            })
            .collect();
        assert!(orders.iter().any(|order| *order != orders[0]), "never shuffled: {orders:?}");
    }
}
