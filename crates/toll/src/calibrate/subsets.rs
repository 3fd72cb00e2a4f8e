//! Which rounds and arms of a calibration make a study: subsets of rounds, disjoint ones first, and every choice of a
//! variant and two baseline arms among equal ones.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::index;

/// Rounds of a study: as many as a study has by default at the least (docs/method.md rule 3).
pub const ROUNDS_OF_A_STUDY: usize = 8;

/// A variant and the two arms of its baseline, as positions among the arms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triple {
    /// What is held against the others.
    pub variant: usize,
    /// The others.
    pub baseline: [usize; 2],
}

/// Every triple of so many equal arms; the two of a baseline count alike, so their order makes no other study.
pub fn triples(arms: usize) -> Vec<Triple> {
    let mut triples = Vec::new();
    for variant in 0..arms {
        for first in (0..arms).filter(|arm| *arm != variant) {
            for second in (first + 1..arms).filter(|arm| *arm != variant) {
                triples.push(Triple { variant, baseline: [first, second] });
            }
        }
    }
    triples
}

/// Subsets of [`ROUNDS_OF_A_STUDY`] of so many rounds: disjoint ones, then random ones until there are `wanted`. All
/// rounds as one subset where there are no more than a study has; none below two.
pub fn subsets(rounds: usize, wanted: usize, seed: u64) -> Vec<Vec<usize>> {
    if rounds < 2 {
        return vec![];
    }
    if rounds <= ROUNDS_OF_A_STUDY {
        return vec![(0..rounds).collect()];
    }
    let mut rng = StdRng::seed_from_u64(seed);
    // Shuffled first: what drifts over the hours belongs to every study.
    let order = index::sample(&mut rng, rounds, rounds).into_vec();
    let disjoint = order.chunks_exact(ROUNDS_OF_A_STUDY).map(<[usize]>::to_vec);
    let mut subsets: Vec<Vec<usize>> = disjoint.collect();
    while subsets.len() < wanted {
        subsets.push(index::sample(&mut rng, rounds, ROUNDS_OF_A_STUDY).into_vec());
    }
    subsets
}
