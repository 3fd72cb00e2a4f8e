//! Turns what a run stored into [`Findings`]. Pure: the same run gives the same findings, byte for byte.
//!
//! The start is the unit (docs/method.md rule 3): slices are added up to one tally for each arm, load and round, effects are
//! had within rounds and intervals come from the rounds. Nothing is rounded here.

pub mod accounts;
mod attribution;
mod calls;
pub mod capacity;
mod caveats;
pub mod counts;
mod curve;
mod database;
mod effects;
mod estimates;
pub mod excuse;
mod failures;
pub mod findings;
#[cfg(test)]
pub mod fixture;
mod heap;
pub mod hey;
mod jvm;
pub mod k6;
mod kubectl_top;
mod latency;
mod memory;
pub mod merged;
pub mod owners;
mod pods;
mod reference;
mod regime;
mod resources;
pub mod scaling;
mod service_times;
mod settled;
mod spans;
mod staircases;
pub mod status;
mod summary;
mod tally;
mod traversals;
pub mod vegeta;
mod verdicts;

use std::collections::BTreeSet;

use crate::plan::{Plan, PlannedLoad};
use crate::store::RunRecord;

use excuse::Excused;
use findings::{Effect, Estimate, Findings, LoadFindings, View};
use tally::Tally;

/// Version of `report.json`.
pub const FORMAT: u32 = 5;

/// Level of every interval.
const LEVEL: toll_stats::Level = toll_stats::Level::P95;

/// All that a run found.
pub fn findings(run: &RunRecord) -> Findings {
    let counted = Counted::of(run, |_| true);
    let valid: Vec<&Tally<'_>> = counted.tallies.iter().collect();
    let mut loads: Vec<LoadFindings> =
        study_loads(&run.plan).map(|load| summary::load_findings(run, load, &counted)).collect();
    loads.sort_by_key(|load| load.view != View::EqualRate);
    let heap_trends = heap::trends(run);
    let span_costs = spans::costs(run, &valid);
    let proofs = summary::proofs(run);
    let sweep = scaling::Sweep::of(run, &valid);
    let seen = caveats::Seen {
        counted: &counted,
        loads: &loads,
        heap_trends: &heap_trends,
        span_costs: &span_costs,
        proofs: &proofs,
    };
    Findings {
        version: FORMAT,
        study: run.plan.study.clone(),
        question: run.plan.question.clone(),
        run: run.name.clone(),
        baseline: run.plan.baseline.clone(),
        variants: summary::variants(&run.plan),
        headline: run.plan.headline.clone(),
        headline_load: run.plan.headline_load().map(|load| load.name.clone()),
        extent: summary::extent(run, &counted),
        caveats: caveats::caveats(run, &seen),
        loads,
        traffic: run.plan.traffic,
        capacities: summary::capacities(run),
        curve: curve::curve(run, &valid),
        published: summary::published(&run.plan),
        proofs,
        settled: settled::settled(run),
        scalings: sweep.as_ref().map_or_else(Vec::new, |s| scaling::scalings(&run.plan, s)),
        crossings: sweep.as_ref().map_or_else(Vec::new, |s| scaling::crossings(&run.plan, s)),
        staircases: staircases::staircases(run, &valid),
        service_times: service_times::service_times(run, &valid),
        failures: failures::failures(run, &valid),
        calls: calls::calls(run),
        span_costs,
        heap_trends,
        rounds: summary::round_lines(run, &counted.excused),
        facts: summary::facts(run),
    }
}

/// The effects that get a verdict, as [`findings`] has them: cheap enough to be asked for after each round.
pub fn headline(run: &RunRecord) -> Vec<Effect> {
    let Some(load) = run.plan.headline_load() else { return vec![] };
    let counted = Counted::of(run, |name| name == load.name);
    let mut effects = summary::effects_under(run, load, &counted);
    effects.retain(|effect| run.plan.headline.contains(&effect.metric));
    effects
}

/// Whether all verdicts that are planned have effects whose half-widths are at most the share of their figures that the
/// plan wants, from enough rounds.
pub fn is_sharp(plan: &Plan, effects: &[Effect]) -> bool {
    let width = plan.extent.width.unwrap_or_default();
    let is_narrow = |effect: &Effect| {
        let Estimate { value, low, high, rounds, .. } = effect.ratio;
        rounds >= plan.extent.least_rounds && (high - low) / 2.0 <= width * value
    };
    effects.len() >= plan.verdicts() && effects.iter().all(is_narrow)
}

/// What counts of a run.
struct Counted<'a> {
    /// Without what was excused.
    tallies: Vec<Tally<'a>>,
    /// With it; absent when nothing was excused.
    unexcused: Option<Vec<Tally<'a>>>,
    excused: Excused,
}

impl<'a> Counted<'a> {
    /// Of the loads that `keep` picks.
    fn of(run: &'a RunRecord, keep: impl Fn(&str) -> bool) -> Self {
        let excused = excuse::excused(run);
        let some = !excused.cycles.is_empty();
        Self {
            tallies: tally::tallies(run, &excused.cycles, &keep),
            unexcused: some.then(|| tally::tallies(run, &BTreeSet::new(), &keep)),
            excused,
        }
    }
}

/// The loads of the study, without the points of the curve.
fn study_loads(plan: &Plan) -> impl Iterator<Item = &PlannedLoad> {
    plan.loads.iter().filter(|load| !load.is_of_curve())
}

#[cfg(test)]
mod tests;
