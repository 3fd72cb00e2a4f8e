//! Gives the headline effects their verdicts (docs/method.md rule 4): all variants and headline metrics are one family, and
//! nothing else has a verdict. One start has none.

use toll_stats::Member;

use super::LEVEL;
use super::findings::{Effect, Verdict};
use crate::plan::Plan;

/// An effect, and from two rounds on what its verdict is made from.
pub type Judged = (Effect, Option<toll_stats::Effect>);

/// Effects under the headline load, those of the headline metrics with a verdict.
pub fn with_verdicts(plan: &Plan, mut effects: Vec<Judged>) -> Vec<Effect> {
    let is_headline = |effect: &Effect| plan.headline.contains(&effect.metric);
    let members: Vec<(usize, Member)> = effects
        .iter()
        .enumerate()
        .filter(|(_, (effect, _))| is_headline(effect))
        .filter_map(|(at, (_, judged))| {
            Some((at, Member { effect: (*judged)?, bound: plan.bound }))
        })
        .collect();
    let family: Vec<Member> = members.iter().map(|(_, member)| *member).collect();
    // A variant that has nothing to compare makes the others no surer.
    let planned = plan.verdicts().max(family.len());
    let verdicts = toll_stats::verdicts(&family, planned, LEVEL);
    for ((at, member), verdict) in members.iter().zip(verdicts) {
        effects[*at].0.verdict = Some(reported(verdict, member, planned));
    }
    effects.into_iter().map(|(effect, _)| effect).collect()
}

fn reported(verdict: toll_stats::Verdict, member: &Member, family: usize) -> Verdict {
    match verdict {
        toll_stats::Verdict::Higher => Verdict::Higher,
        toll_stats::Verdict::Lower => Verdict::Lower,
        toll_stats::Verdict::NoDifference { bound } => Verdict::NoDifference { bound },
        toll_stats::Verdict::CannotTell => {
            Verdict::CannotTell { more_rounds: more_rounds(member, family) }
        }
    }
}

/// Rounds until a change as large as the bound would be found.
fn more_rounds(member: &Member, family: usize) -> Option<u32> {
    let level = toll_stats::Level::new(1.0 - (1.0 - LEVEL.share()) / family as f64).ok()?;
    member.effect.rounds_to_find(member.bound, level).filter(|more| *more > 0)
}
