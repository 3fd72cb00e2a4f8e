//! Turns the effects of a study's headline metrics into verdicts, wrong in any of them with one study in twenty at most.
//!
//! All variants x headline metrics are one family of m effects. Each is either none (then "higher" or "lower" is false)
//! or at least its bound (then "no difference larger than the bound" is false) or in between, never two of them: so each
//! effect can bear one false verdict at most. Of the 5 % every effect puts aside 1 / 2m for a false "no difference":
//! it is said where the two-sided interval of level 1 - 5 % / m lies within the bound (two one-sided tests, Schuirmann
//! 1987). Differences are found step by step, the surest first, as in Holm's procedure (Holm, "A simple sequentially
//! rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979): while r of the effects may still be
//! none, m - r at most are beyond their bounds, and what these have not put aside is shared by the r. The first step is
//! Holm's own. The sign of a difference needs no further share (Shaffer, "Control of directional errors with stagewise
//! rejective multiple test procedures", Annals of Statistics 8, 1980).

use crate::{Effect, Level};

/// An effect that is to have a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// Of two rounds or more: one start alone has no verdict.
    pub effect: Effect,
    /// The change, as a share of the baseline and above zero, below which a difference does not matter.
    pub bound: f64,
}

/// What may be said of an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Above the baseline.
    Higher,
    /// Below the baseline.
    Lower,
    /// No change larger than the bound, up or down.
    NoDifference {
        /// As given.
        bound: f64,
    },
    /// None of them.
    CannotTell,
}

/// One verdict for each member of a family that was `planned` to have so many or more; at `level` 95 % all of them are
/// right in 95 of 100 studies. Members that have no figures count as none that was found.
pub fn verdicts(family: &[Member], planned: usize, level: Level) -> Vec<Verdict> {
    let absent = planned.saturating_sub(family.len()) as f64;
    let (size, alpha) = (family.len() as f64 + absent, 1.0 - level.share());
    let aside = alpha / (2.0 * size);
    let p_values: Vec<f64> = family.iter().map(|member| member.effect.p_value()).collect();
    let differ = step_down(&p_values, |present| {
        let left = present + absent;
        (alpha - (size - left) * aside) / left
    });
    let verdict = |(member, differs): (&Member, bool)| match differs {
        true if member.effect.log_ratio().value > 0.0 => Verdict::Higher,
        true => Verdict::Lower,
        false if member.effect.p_value_within(member.bound) <= aside => {
            Verdict::NoDifference { bound: member.bound }
        }
        false => Verdict::CannotTell,
    };
    family.iter().zip(differ).map(verdict).collect()
}

/// Which of these hypotheses fall by Holm's procedure: the chance that any true one does is at most `alpha`.
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<bool> {
    step_down(p_values, |left| alpha / left)
}

/// The least alpha at which [`holm`] lets each hypothesis fall, at most 1.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p_values.len()];
    let mut so_far = 0.0_f64;
    for (rank, at) in surest_first(p_values).into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        so_far = so_far.max((left * p_values[at]).min(1.0));
        adjusted[at] = so_far;
    }
    adjusted
}

/// Lets fall the surest first, while it stays within the `share` that the number of hypotheses left allows.
fn step_down(p_values: &[f64], share: impl Fn(f64) -> f64) -> Vec<bool> {
    let mut fallen = vec![false; p_values.len()];
    for (rank, at) in surest_first(p_values).into_iter().enumerate() {
        if p_values[at] > share((p_values.len() - rank) as f64) {
            break;
        }
        fallen[at] = true;
    }
    fallen
}

fn surest_first(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    order
}
