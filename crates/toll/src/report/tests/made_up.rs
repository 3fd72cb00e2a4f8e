//! What all made-up findings share: owners, loads, rounds, extent, verdicts on headline metrics.

use crate::analysis::findings::*;

/// `findings` with verdicts by the intervals of its headline metrics, and what goes with them.
pub fn judged(mut findings: Findings) -> Findings {
    let headline = findings.headline.clone();
    let name = findings.headline_load.clone();
    let load = findings.loads.iter_mut().find(|load| Some(&load.name) == name.as_ref()).unwrap();
    for effect in load.effects.iter_mut().filter(|e| headline.contains(&e.metric)) {
        let Estimate { low, high, .. } = effect.difference;
        effect.verdict = Some(match (low > 0.0, high < 0.0) {
            (true, _) => Verdict::Higher,
            (_, true) => Verdict::Lower,
            _ => Verdict::CannotTell { more_rounds: Some(6) },
        });
        effect.trimmed_ratio = Some(effect.ratio.value * 0.997);
        effect.scatter = Some(Scatter {
            between_rounds: 0.02,
            within_rounds: 0.01,
            share_of_starts: 0.9,
            rounds_help_more: true,
        });
    }
    let baseline = load.variants.iter().find(|v| v.variant == findings.baseline).unwrap();
    let again = |metric: &Metric| {
        let (_, of) = baseline.metrics.iter().find(|(m, _)| m == metric)?;
        let part = |value: f64| Estimate { value, low: value - 0.007, high: value + 0.007, ..*of };
        let scaled = |e: Estimate| Estimate {
            value: (e.value - 1.0) * of.value,
            low: (e.low - 1.0) * of.value,
            high: (e.high - 1.0) * of.value,
            ..e
        };
        Some(Effect {
            variant: findings.baseline.clone(),
            against: None,
            metric: *metric,
            baseline: of.value,
            value: of.value * 0.999,
            difference: scaled(part(0.999)),
            ratio: part(0.999),
            trimmed_ratio: None,
            unexcused_ratio: None,
            scatter: None,
            verdict: None,
        })
    };
    load.again = headline.iter().filter_map(again).collect();
    findings
}

/// So many rounds of `arms`, all of them good.
pub fn rounds(arms: &[&str], rounds: usize) -> Vec<RoundLine> {
    let line = |round: usize, arm: &str| RoundLine {
        round,
        arm: arm.into(),
        replicas: None,
        slices: (60, 60),
        proven: true,
        invalid: vec![],
        steal: 0.002,
    };
    (1..=rounds).flat_map(|round| arms.iter().map(move |arm| line(round, arm))).collect()
}

/// The extent of so many good rounds of `arms`.
pub fn extent(arms: &[&str], rounds: usize) -> Extent {
    let all = arms.len() * rounds;
    Extent {
        rounds,
        planned: Some(rounds),
        wall_s: 31.0 * all as f64,
        slices: (all * 60, all * 60),
        excused: (0, rounds * 10),
        proven: (all, all),
        steal: 0.002,
        began: "2026-11-23 14:02".into(),
    }
}

/// A caveat in words.
pub fn caveat(kind: CaveatKind, text: &str) -> Caveat {
    Caveat::Text { kind, text: text.into() }
}

/// The owner of that role in a pod.
pub fn owner(role: Role, pod: &str) -> Owner {
    Owner { role, pods: Pods::one(pod) }
}

/// An arrival schedule at this rate.
pub fn open(rate_per_s: f64) -> Release {
    let rate = PlannedRate::PerSecond(rate_per_s);
    Release::Open { rate, poisson: false, max_connections: 1000 }
}

/// A line of the machine's facts.
pub fn fact(label: &str, value: &str) -> Fact {
    Fact::Labelled { label: label.into(), value: value.into() }
}

/// A claim that holds.
pub fn claim(claim: &str, seen: &str) -> Claim {
    claim_about(Topic::Other, claim, seen)
}

/// A claim that holds and sums others up.
pub fn claim_about(topic: Topic, claim: &str, seen: &str) -> Claim {
    let (expected, seen) = (seen.into(), seen.into());
    Claim { topic, claim: claim.into(), expected, seen, holds: true }
}
