//! Turns what the trials so far took into how long the rest will take.
//!
//! The plan's estimate is stretched by how much slower than estimated the trials went. It stands alone at the
//! begin, and the first trials move it little: one of them, with its bring-up, says nothing of two hundred.

use std::time::Instant;

use crate::plan::{Plan, PlannedTrial};

/// Seconds for which the estimate counts as if they had passed as estimated.
const TRUST_S: f64 = 60.0;

/// The trials to come, and how long they were estimated.
pub struct Pace {
    began: Instant,
    /// Estimated length of the first so many trials, seconds; from none to all of them.
    estimated_s: Vec<f64>,
}

impl Pace {
    /// Begins now.
    pub fn new(plan: &Plan, todo: &[&PlannedTrial]) -> Self {
        // Sums of one course: what stands already is not brought up once more for the rest.
        let course = plan.course(todo.iter().copied()).map(|budget| budget.total_s());
        Self { began: Instant::now(), estimated_s: [0.0].into_iter().chain(course).collect() }
    }

    /// How long the trials after the first `done` will take, seconds.
    pub fn remaining_s(&self, done: usize) -> f64 {
        remaining_s(&self.estimated_s, done, self.began.elapsed().as_secs_f64())
    }
}

fn remaining_s(estimated_s: &[f64], done: usize, passed_s: f64) -> f64 {
    let whole_s = estimated_s.last().copied().unwrap_or(0.0);
    let slower = (TRUST_S + passed_s) / (TRUST_S + estimated_s[done]);
    (whole_s - estimated_s[done]) * slower
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bring-up of 6 s before trials of 4 s.
    const ESTIMATED_S: [f64; 4] = [0.0, 10.0, 14.0, 18.0];

    #[test]
    fn before_the_first_trial_the_rest_is_as_estimated() {
        assert!((remaining_s(&ESTIMATED_S, 0, 0.0) - 18.0).abs() < 1e-9);
    }

    #[test]
    fn trials_that_went_as_estimated_leave_the_rest_as_estimated() {
        assert!((remaining_s(&ESTIMATED_S, 1, 10.0) - 8.0).abs() < 1e-9);
        assert!(remaining_s(&ESTIMATED_S, 3, 18.0).abs() < 1e-9);
    }

    #[test]
    fn one_slow_trial_moves_the_rest_a_little_and_many_move_it_by_their_share() {
        let thrice = remaining_s(&ESTIMATED_S, 1, 30.0);
        assert!(thrice > 8.0 && thrice < 11.0, "{thrice}");
        let many: Vec<f64> = (0..=1000).map(|trial| f64::from(trial) * 4.0).collect();
        let twice = remaining_s(&many, 500, 4000.0);
        assert!((twice / 4000.0 - 1.0).abs() < 0.03, "{twice}");
    }
}
