//! The studies of a calibration: every triple of arms over every subset of rounds.

use toll_stats::{Effect, Level};

use super::figures;
use super::observed::Round;
use super::subsets::{Triple, subsets, triples};
use crate::plan::Metric;

/// Studies that there are at the least, given enough rounds.
const STUDIES: usize = 200;
/// Subsets of rounds: with every triple of six arms that makes 480 studies.
const SUBSETS: usize = 8;

/// The level of one of so many verdicts.
pub fn level_of(family: usize) -> Level {
    Level::new(1.0 - 0.05 / family.max(1) as f64).expect("a part of 5 % is a share")
}

/// The studies of a calibration: which rounds, which arms.
#[derive(Debug)]
pub struct Studies {
    /// Of rounds.
    pub subsets: Vec<Vec<usize>>,
    /// Of arms.
    pub triples: Vec<Triple>,
}

impl Studies {
    /// Of so many rounds and equal arms.
    pub fn of(rounds: usize, arms: usize, seed: u64) -> Self {
        let triples = triples(arms);
        let wanted = SUBSETS.max(STUDIES.div_ceil(triples.len().max(1)));
        Self { subsets: subsets(rounds, wanted, seed), triples }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.subsets.len() * self.triples.len()
    }

    /// One effect a study, in the order of subsets, then of triples; absent when a figure is.
    pub fn effects(&self, metric: Metric, rounds: &[Round]) -> Option<Vec<Effect>> {
        let mut effects = Vec::new();
        for subset in &self.subsets {
            let chosen: Vec<&Round> = subset.iter().map(|at| &rounds[*at]).collect();
            for Triple { variant, baseline } in &self.triples {
                effects.push(figures::effect(metric, &chosen, *variant, baseline)?);
            }
        }
        Some(effects).filter(|effects| !effects.is_empty())
    }
}
