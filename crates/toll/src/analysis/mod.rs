//! Turns what a run stored into [`Findings`]. Pure: the same run gives the same findings, byte for byte.
//!
//! The run is the unit (METHOD.md rule 3): every number of a trial is one observation, effects are paired
//! within blocks and intervals come from the blocks. Nothing is rounded here.

mod accounts;
mod attribution;
pub mod capacity;
mod caveats;
pub mod counts;
mod effects;
pub mod findings;
#[cfg(test)]
pub mod fixture;
mod groups;
mod heap;
pub mod hey;
mod jvm;
pub mod k6;
mod kubectl_top;
mod latency;
mod merged;
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
mod traversals;
pub mod vegeta;

use crate::store::{RunRecord, TrialRecord};

use findings::{Findings, LoadFindings, View};

/// Version of `report.json`.
pub const FORMAT: u32 = 1;

/// Level of every interval.
const LEVEL: toll_stats::Level = toll_stats::Level::P95;

/// All that a run found.
pub fn findings(run: &RunRecord) -> Findings {
    let settled = settled::settled(run);
    let by_pod = valid(run);
    let run = &groups::by_owner(run);
    let valid = valid(run);
    let mut loads: Vec<LoadFindings> =
        run.plan.loads.iter().map(|load| summary::load_findings(run, load, &valid)).collect();
    for load in &mut loads {
        load.top_totals = kubectl_top::totals(load, &by_pod);
    }
    loads.sort_by_key(|load| load.view != View::EqualRate);
    let heap_trends = heap::trends(run, &valid);
    let span_costs = spans::costs(run, &valid);
    let proofs = summary::proofs(run);
    let sweep = scaling::Sweep::of(run, &valid);
    let seen = caveats::Seen {
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
        warnings: caveats::caveats(run, &seen),
        loads,
        knees: summary::knees(run),
        published: summary::published(&run.plan),
        proofs,
        settled,
        scalings: sweep.as_ref().map_or_else(Vec::new, |s| scaling::scalings(&run.plan, s)),
        crossings: sweep.as_ref().map_or_else(Vec::new, |s| scaling::crossings(&run.plan, s)),
        staircases: staircases::staircases(run, &valid),
        service_times: service_times::service_times(run, &valid),
        span_costs,
        heap_trends,
        trials: summary::trial_lines(run),
        manifest: summary::manifest(run),
    }
}

/// The trials that count: neither invalid nor of the rehearsal.
fn valid(run: &RunRecord) -> Vec<&TrialRecord> {
    let counts = |t: &&TrialRecord| t.trial.block > 0 && t.verdict.invalid.is_empty();
    run.trials.iter().filter(counts).collect()
}

#[cfg(test)]
mod tests;
