//! Draws which target is next: a bag in which each target lies as often as its weight says, refilled when it
//! is empty. So the weights hold exactly after each bag, and the order within it has no period that could
//! fall together with that of the rows. Knows nothing of requests.

use rand_chacha::ChaCha8Rng;

use super::random;

/// The bag. Drawing costs one random number and log2 of the number of targets.
#[derive(Debug)]
pub(super) struct Choice {
    /// A Fenwick tree (Fenwick 1994) of what is left of each weight: node j holds the sum of the lowbit(j)
    /// entries up to j, counted from one; node zero is not used.
    left: Vec<u64>,
    total_left: u64,
    full: Vec<u64>,
    total: u64,
    rng: ChaCha8Rng,
}

impl Choice {
    /// A bag by `weights`, none of which is zero.
    pub fn new(weights: &[u32], rng: ChaCha8Rng) -> Choice {
        let divisor = weights.iter().fold(0, |sum, weight| gcd(sum, u64::from(*weight))).max(1);
        let full = tree(weights.iter().map(|weight| u64::from(*weight) / divisor));
        let total = weights.iter().map(|weight| u64::from(*weight) / divisor).sum();
        Choice { left: full.clone(), total_left: total, full, total, rng }
    }

    /// The index of the next target.
    pub fn next(&mut self) -> usize {
        if self.full.len() <= 2 {
            return 0;
        }
        if self.total_left == 0 {
            self.left.copy_from_slice(&self.full);
            self.total_left = self.total;
        }
        let ticket = random::below(&mut self.rng, self.total_left);
        self.total_left -= 1;
        self.take(ticket)
    }

    /// Takes out the entry in which the `ticket`-th unit lies. A node that is too large to be passed holds
    /// that entry, so that the way down meets exactly the sums that shrink.
    fn take(&mut self, mut ticket: u64) -> usize {
        let mut index = 0;
        let mut step = self.left.len().next_power_of_two() / 2;
        while step > 0 {
            if let Some(sum) = self.left.get_mut(index + step) {
                if *sum <= ticket {
                    ticket -= *sum;
                    index += step;
                } else {
                    *sum -= 1;
                }
            }
            step /= 2;
        }
        index
    }
}

fn tree(entries: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut nodes: Vec<u64> = std::iter::once(0).chain(entries).collect();
    for j in 1..nodes.len() {
        let parent = j + (1 << j.trailing_zeros());
        if parent < nodes.len() {
            nodes[parent] += nodes[j];
        }
    }
    nodes
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn choice(weights: &[u32], seed: u64) -> Choice {
        Choice::new(weights, ChaCha8Rng::seed_from_u64(seed))
    }

    fn counts(weights: &[u32], draws: u64, seed: u64) -> Vec<u64> {
        let mut choice = choice(weights, seed);
        let mut counts = vec![0; weights.len()];
        (0..draws).for_each(|_| counts[choice.next()] += 1);
        counts
    }

    #[test]
    fn three_to_one_is_exact_over_4000_requests() {
        assert_eq!(counts(&[3, 1], 4000, 7), [3000, 1000]);
        assert_eq!(counts(&[3_000_000, 1_000_000], 4000, 7), [3000, 1000]);
    }

    #[test]
    fn the_order_follows_the_seed() {
        let order = |seed| {
            let mut choice = choice(&[1, 2, 3], seed);
            (0..60).map(|_| choice.next()).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn the_order_is_another_in_each_bag() {
        let mut choice = choice(&[3, 1], 1);
        let seldom: Vec<usize> =
            (0..400).filter(|_| choice.next() == 1).map(|request| request % 4).collect();
        assert!((0..4).all(|place| seldom.iter().filter(|at| **at == place).count() > 5));
    }

    proptest! {
        #[test]
        fn weights_hold_exactly_after_each_bag(
            weights in prop::collection::vec(1_u32..50, 1..20),
            bags in 1_u64..4,
            seed: u64,
        ) {
            let total: u64 = weights.iter().map(|w| u64::from(*w)).sum();
            let expected: Vec<u64> = weights.iter().map(|w| u64::from(*w) * bags).collect();
            prop_assert_eq!(counts(&weights, total * bags, seed), expected);
        }
    }
}
