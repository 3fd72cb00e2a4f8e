//! Turns an effect and the noise floor of the same study into what may be said (METHOD.md rule 4).

use crate::estimate::{Estimate, t_quantile};

/// Blocks beyond which no advice is given: nobody runs more.
const MOST_BLOCKS: usize = 1_000;

/// What may be said of an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The interval excludes zero and the effect stands above the noise floor.
    Difference,
    /// The whole interval lies within plus or minus this bound.
    NoDifference {
        /// As given, in the effect's unit.
        bound: f64,
    },
    /// Neither; more blocks may tell.
    CannotTell {
        /// The noise floor in the effect's unit; without an A/A pair the half width of the effect's own interval.
        floor: f64,
        /// Further blocks that would decide, if the effect and the scatter stay as they are. Absent when
        /// the width of the interval is not what stands in the way, or when it takes over 1000 blocks.
        more_blocks: Option<u32>,
    },
}

/// Largest absolute difference that an A/A pair leaves possible: the far end of its interval.
pub fn noise_floor(again_effect: &Estimate) -> f64 {
    again_effect.low.abs().max(again_effect.high.abs())
}

/// What may be said of a paired difference, given the `floor` of an A/A pair and the `bound` (above zero)
/// below which a difference does not matter. All three have the same unit.
///
/// A difference that is certain is called one even when it lies within the bound.
pub fn verdict(effect: &Estimate, floor: Option<f64>, bound: f64) -> Verdict {
    let above_floor = effect.value.abs() > floor.unwrap_or(0.0);
    if effect.excludes_zero() && above_floor {
        Verdict::Difference
    } else if noise_floor(effect) <= bound {
        Verdict::NoDifference { bound }
    } else {
        let width = deciding_half_width(effect, above_floor, bound);
        Verdict::CannotTell {
            floor: floor.unwrap_or_else(|| effect.half_width()),
            more_blocks: width.and_then(|width| more_blocks(effect, width)),
        }
    }
}

/// Half width at which the interval, its centre unmoved, would exclude zero or fit inside the bound,
/// whichever comes first. Under the noise floor only the bound can decide.
fn deciding_half_width(effect: &Estimate, above_floor: bool, bound: f64) -> Option<f64> {
    let centre = effect.value.abs();
    let inside = bound - centre;
    let width = if above_floor { inside.max(centre) } else { inside };
    (width > 0.0).then_some(width)
}

/// Further blocks until the half width falls to `target`: it shrinks with the square root of the number
/// of blocks and with the t quantile.
fn more_blocks(effect: &Estimate, target: f64) -> Option<u32> {
    let factor = |n: usize| t_quantile(effect.level, n) / (n as f64).sqrt();
    let scatter = effect.half_width() / factor(effect.samples);
    let enough = (effect.samples + 1..=MOST_BLOCKS).find(|n| scatter * factor(*n) <= target)?;
    u32::try_from(enough - effect.samples).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, mean};

    fn estimate(low: f64, high: f64, samples: usize) -> Estimate {
        Estimate { value: f64::midpoint(low, high), low, high, level: Level::P95, samples }
    }

    fn further_blocks(verdict: Verdict) -> Option<u32> {
        match verdict {
            Verdict::CannotTell { more_blocks, .. } => more_blocks,
            decided => panic!("{decided:?} needs no further blocks"),
        }
    }

    #[test]
    fn the_noise_floor_is_the_far_end_of_the_again_interval() {
        assert_eq!(noise_floor(&estimate(-3.0, 1.0, 5)), 3.0);
        assert_eq!(noise_floor(&estimate(-1.0, 4.0, 5)), 4.0);
    }

    #[test]
    fn an_effect_that_excludes_zero_above_the_floor_is_a_difference() {
        assert_eq!(verdict(&estimate(2.0, 6.0, 5), Some(3.0), 1.0), Verdict::Difference);
        assert_eq!(verdict(&estimate(-6.0, -2.0, 5), Some(3.0), 1.0), Verdict::Difference);
    }

    #[test]
    fn a_difference_within_the_bound_is_still_a_difference() {
        assert_eq!(verdict(&estimate(2.0, 4.0, 5), Some(1.0), 10.0), Verdict::Difference);
    }

    #[test]
    fn an_effect_under_the_floor_is_no_difference_however_narrow_its_interval() {
        let below = verdict(&estimate(2.0, 6.0, 5), Some(4.5), 1.0);
        assert_eq!(below, Verdict::CannotTell { floor: 4.5, more_blocks: None });
    }

    #[test]
    fn an_interval_inside_the_bound_shows_no_difference_larger_than_it() {
        let inside = verdict(&estimate(-2.0, 3.0, 5), Some(3.0), 3.0);
        assert_eq!(inside, Verdict::NoDifference { bound: 3.0 });
    }

    #[test]
    fn an_interval_that_sticks_out_of_the_bound_cannot_tell() {
        let wide = verdict(&estimate(-2.0, 5.0, 5), Some(3.0), 3.0);
        assert!(matches!(wide, Verdict::CannotTell { floor: 3.0, more_blocks: Some(_) }));
    }

    #[test]
    fn without_an_again_pair_the_floor_is_the_half_width() {
        let wide = verdict(&estimate(-2.0, 4.0, 5), None, 1.0);
        assert!(matches!(wide, Verdict::CannotTell { floor: 3.0, .. }));
    }

    /// By the tables: 5 blocks with half width 1 scatter by 1/2.776*sqrt(5) = 0.8055; the half width is
    /// 2.179*0.8055/sqrt(13) = 0.487 at 13 blocks and 2.201*0.8055/sqrt(12) = 0.512 at 12.
    #[test]
    fn half_the_width_takes_eight_blocks_more_than_five() {
        assert_eq!(further_blocks(verdict(&estimate(-1.0, 1.0, 5), Some(2.0), 0.5)), Some(8));
    }

    #[test]
    fn the_advised_blocks_decide_when_the_scatter_stays() {
        let five = [-1.0, 2.0, 0.5, -1.5, 1.0];
        let effect = mean(&five, Level::P95).unwrap();
        let more = further_blocks(verdict(&effect, None, 0.8)).unwrap();
        let decides = |n: u32| {
            let half = t_quantile(Level::P95, n as usize) * 1.440_486 / f64::from(n).sqrt();
            verdict(&estimate(0.2 - half, 0.2 + half, n as usize), None, 0.8)
                == Verdict::NoDifference { bound: 0.8 }
        };
        assert!(decides(5 + more) && !decides(5 + more - 1), "advised {more}");
    }

    #[test]
    fn an_interval_that_barely_sticks_out_takes_one_block_more() {
        assert_eq!(further_blocks(verdict(&estimate(-1.05, 1.05, 5), Some(2.0), 1.0)), Some(1));
    }

    #[test]
    fn an_effect_outside_the_bound_takes_the_blocks_that_exclude_zero() {
        assert_eq!(further_blocks(verdict(&estimate(-0.1, 4.0, 5), Some(1.0), 0.5)), Some(1));
    }

    #[test]
    fn advice_beyond_a_thousand_blocks_is_left_out() {
        assert_eq!(further_blocks(verdict(&estimate(-1.0, 1.0, 5), None, 0.001)), None);
    }
}
