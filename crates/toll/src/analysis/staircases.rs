//! Turns a closed loop that was run with several numbers of connections into lines over them, and into what each
//! variant changed over all of them together.
//!
//! A step is a load of its own; what two variants differ by on the whole staircase is had within a round, over the steps
//! that both have there, of the baseline the mean of its arms: the geometric mean of the ratios of their throughput, the arithmetic mean of the differences
//! of CPU per request. Rounds then give the interval, as of every effect. Throughputs are those of a loop that goes as
//! fast as it can, so no two arms had the same rate: CPU is only compared by request (docs/method.md rule 2).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::effects::{self, Paired};
use super::findings::{
    Estimate, RecomputedRow, Staircase, StaircaseDifference, StaircaseLine, StaircaseStep,
};
use super::owners::Owner;
use super::reference;
use super::tally::Tally;
use crate::plan::{Arm, Cell, Plan};
use crate::store::RunRecord;

/// One for each load that sweeps its connections, in the order of the study.
pub fn staircases(run: &RunRecord, valid: &[&Tally<'_>]) -> Vec<Staircase> {
    let climbed = climbs(&run.plan).into_iter().map(|steps| Climbed::of(run, steps, valid));
    climbed.filter(|climbed| !climbed.tallies.is_empty()).map(|climbed| climbed.found()).collect()
}

/// A load at one number of connections.
#[derive(Clone, Copy)]
struct Step<'a> {
    load: &'a str,
    cell: &'a Cell,
    connections: u32,
}

/// The steps of each staircase, the fewest connections first.
fn climbs(plan: &Plan) -> Vec<Vec<Step<'_>>> {
    let mut climbs: Vec<Vec<Step<'_>>> = Vec::new();
    for load in &plan.loads {
        let Some(cell) = &load.cell else { continue };
        let Some(connections) = cell.connections else { continue };
        let step = Step { load: &load.name, cell, connections };
        match climbs.iter_mut().find(|steps| differ_by_connections(steps[0].cell, cell)) {
            Some(steps) => steps.push(step),
            None => climbs.push(vec![step]),
        }
    }
    climbs.iter_mut().for_each(|steps| steps.sort_by_key(|step| step.connections));
    climbs
}

fn differ_by_connections(one: &Cell, other: &Cell) -> bool {
    let alike = Cell { connections: one.connections, ..other.clone() };
    *one == alike
}

/// A staircase and the valid tallies on it.
struct Climbed<'a> {
    plan: &'a Plan,
    steps: Vec<Step<'a>>,
    tallies: Vec<&'a Tally<'a>>,
}

/// What may be observed of an arm: by round and step.
type Observed = BTreeMap<(usize, usize), f64>;

impl<'a> Climbed<'a> {
    fn of(run: &'a RunRecord, steps: Vec<Step<'a>>, valid: &[&'a Tally<'a>]) -> Self {
        let is_on_it = |t: &&Tally<'_>| steps.iter().any(|step| step.load == t.load);
        let tallies = valid.iter().copied().filter(is_on_it).collect();
        Self { plan: &run.plan, steps, tallies }
    }

    fn found(&self) -> Staircase {
        let load = &self.steps[0].cell.load;
        let variants = || self.plan.ready().map(|(name, _)| name);
        let lines = variants().map(|variant| self.line(variant));
        Staircase {
            load: load.clone(),
            lines: lines.filter(|line| !line.steps.is_empty()).collect(),
            differences: self.differences(),
            again: self.again(),
            answer_bytes: self.answer_bytes(),
            recomputed: self.recomputed(load),
        }
    }

    fn line(&self, variant: &str) -> StaircaseLine {
        let of_variant: Vec<&Tally<'_>> = effects::of_variant(&self.tallies, variant).collect();
        let steps = self.steps.iter().filter_map(|step| {
            let on_step = of_variant.iter().copied().filter(|t| t.load == step.load);
            step_of(step, &on_step.collect::<Vec<_>>())
        });
        StaircaseLine { variant: variant.into(), steps: steps.collect() }
    }

    /// Each variant against the baseline, then each against the one before it where neither is the baseline.
    fn differences(&self) -> Vec<StaircaseDifference> {
        let baseline = self.plan.baseline.as_str();
        let others = self.plan.ready().map(|(name, _)| name).filter(|name| *name != baseline);
        let against_baseline = others.map(|variant| [baseline, variant]);
        let pairs = against_baseline.chain(successive(self.plan));
        pairs.filter_map(|pair| self.difference(pair, pair.map(Climber::Variant))).collect()
    }

    /// The baseline's second arm against its first.
    fn again(&self) -> Option<StaircaseDifference> {
        let arms = [false, true].map(|again| Arm { variant: self.plan.baseline.clone(), again });
        let labels = arms.each_ref().map(Arm::label);
        self.difference(labels.each_ref().map(String::as_str), arms.each_ref().map(Climber::Arm))
    }

    fn difference(
        &self,
        [against, variant]: [&str; 2],
        arms: [Climber<'_>; 2],
    ) -> Option<StaircaseDifference> {
        let meshed = arms.iter().any(|arm| self.has_data_plane(*arm));
        let [mesh, own] = [self.means(arms, mesh_cpu), self.means(arms, application_cpu)];
        Some(StaircaseDifference {
            variant: variant.into(),
            against: against.into(),
            throughput_ratio: self.ratios(arms, effects::throughput).ratio_estimate()?,
            mesh_cpu_us: meshed.then(|| mesh.difference_estimate()).flatten(),
            // No ratio is had of nothing.
            mesh_cpu_ratio: mesh.ratio_estimate(),
            application_cpu_us: own.difference_estimate(),
        })
    }

    /// The geometric means over the steps that both arms have in a round.
    fn ratios(
        &self,
        arms: [Climber<'_>; 2],
        observe: impl Fn(&Tally<'_>) -> Option<f64>,
    ) -> Paired {
        let logarithms = |t: &Tally<'_>| observe(t).filter(|v| *v > 0.0).map(f64::ln);
        let means = self.by_round(arms, logarithms);
        Paired::of(means.into_iter().map(|(round, means)| (round, means.map(f64::exp))))
    }

    /// The arithmetic means over the same steps.
    fn means(&self, arms: [Climber<'_>; 2], observe: impl Fn(&Tally<'_>) -> Option<f64>) -> Paired {
        Paired::of(self.by_round(arms, observe))
    }

    fn by_round(
        &self,
        arms: [Climber<'_>; 2],
        observe: impl Fn(&Tally<'_>) -> Option<f64>,
    ) -> BTreeMap<usize, [f64; 2]> {
        let [one, other] = arms.map(|arm| self.observed(arm, &observe));
        let mut pairs: BTreeMap<usize, Vec<[f64; 2]>> = BTreeMap::new();
        for ((round, step), value) in one {
            if let Some(others) = other.get(&(round, step)) {
                pairs.entry(round).or_default().push([value, *others]);
            }
        }
        let mean = |pairs: Vec<[f64; 2]>| {
            [0, 1].map(|arm| pairs.iter().map(|pair| pair[arm]).sum::<f64>() / pairs.len() as f64)
        };
        pairs.into_iter().map(|(round, pairs)| (round, mean(pairs))).collect()
    }

    fn observed(&self, arm: Climber<'_>, observe: impl Fn(&Tally<'_>) -> Option<f64>) -> Observed {
        let mut steps: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for tally in self.tallies.iter().filter(|tally| arm.is_of(tally)) {
            let step = self.steps.iter().position(|step| step.load == tally.load);
            if let Some((step, value)) = step.zip(observe(tally)) {
                steps.entry((tally.round, step)).or_default().push(value);
            }
        }
        let mean = |arms: Vec<f64>| arms.iter().sum::<f64>() / arms.len() as f64;
        steps.into_iter().map(|(at, arms)| (at, mean(arms))).collect()
    }

    fn has_data_plane(&self, arm: Climber<'_>) -> bool {
        let of_arm = self.tallies.iter().filter(|tally| arm.is_of(tally));
        of_arm.into_iter().any(|tally| tally.sums.cpu.has(Owner::is_data_plane))
    }

    fn answer_bytes(&self) -> Option<f64> {
        let slices = self.tallies.iter().flat_map(|tally| &tally.slices);
        let phases = slices.map(|slice| &slice.record.report.measure);
        let (bytes, done) = phases
            .fold((0, 0), |(bytes, done), phase| (bytes + phase.body_bytes_in, done + phase.done));
        (done > 0).then(|| bytes as f64 / done as f64)
    }

    fn recomputed(&self, load: &str) -> Vec<RecomputedRow> {
        let Some(published) = &self.plan.reference else { return vec![] };
        reference::recomputed_of(published, load, |figure| {
            let against = figure.against.as_ref().unwrap_or(&self.plan.baseline);
            let observe = reference::changes_over_steps(figure.derived)?;
            let arms = [against, &figure.variant].map(|variant| Climber::Variant(variant));
            self.ratios(arms, observe).ratio_estimate().map(reference::in_percent)
        })
    }
}

/// Nothing where there are no proxies.
fn mesh_cpu(tally: &Tally<'_>) -> Option<f64> {
    effects::cpu_per_request(tally, Owner::is_data_plane)
}

fn application_cpu(tally: &Tally<'_>) -> Option<f64> {
    effects::cpu_per_request(tally, Owner::is_application)
}

/// Whose steps are looked at.
#[derive(Clone, Copy)]
enum Climber<'a> {
    /// All arms of a variant: of the baseline both.
    Variant(&'a str),
    Arm(&'a Arm),
}

impl Climber<'_> {
    fn is_of(self, tally: &Tally<'_>) -> bool {
        match self {
            Self::Variant(variant) => tally.arm.variant == variant,
            Self::Arm(arm) => tally.arm == arm,
        }
    }
}

/// Each variant behind the one before it in the study, where neither is the baseline.
pub fn successive(plan: &Plan) -> Vec<[&str; 2]> {
    let names: Vec<&str> = plan.ready().map(|(name, _)| name).collect();
    let pairs = names.windows(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(|pair| !pair.contains(&plan.baseline.as_str())).collect()
}

fn step_of(step: &Step<'_>, tallies: &[&Tally<'_>]) -> Option<StaircaseStep> {
    let mean = |observe: &dyn Fn(&Tally<'_>) -> Option<f64>| -> Option<Estimate> {
        effects::mean_observed(tallies, observe)
    };
    Some(StaircaseStep {
        load: step.load.into(),
        connections: step.connections,
        throughput_per_s: mean(&effects::throughput)?,
        mesh_cpu_us: mean(&effects::mesh_cpu_per_request),
        application_cpu_us: mean(&application_cpu),
    })
}
