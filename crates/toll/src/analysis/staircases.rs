//! Turns a closed loop that was run with several numbers of connections into lines over them, and into what each
//! variant changed over all of them together.
//!
//! A step is a load of its own; what two variants differ by on the whole staircase is had within a block, over the steps
//! that both have there: the geometric mean of the ratios of their throughput, the arithmetic mean of the differences
//! of CPU per request. Blocks then give the interval, as of every effect. Throughputs are those of a loop that goes as
//! fast as it can, so no two arms had the same rate: CPU is only compared by request (METHOD.md rule 2).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::accounts::{CpuAccount, Owner};
use super::effects::{self, Paired};
use super::findings::{
    Estimate, NoiseFloors, RecomputedRow, Staircase, StaircaseDifference, StaircaseLine,
    StaircaseStep,
};
use super::reference;
use crate::plan::{Arm, Cell, Plan};
use crate::store::{RunRecord, TrialRecord};

/// One for each load that sweeps its connections, in the order of the study.
pub fn staircases(run: &RunRecord, valid: &[&TrialRecord]) -> Vec<Staircase> {
    let climbed = climbs(&run.plan).into_iter().map(|steps| Climbed::of(run, steps, valid));
    climbed.filter(|climbed| !climbed.trials.is_empty()).map(|climbed| climbed.found()).collect()
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

/// A staircase and the valid trials on it.
struct Climbed<'a> {
    plan: &'a Plan,
    steps: Vec<Step<'a>>,
    trials: Vec<&'a TrialRecord>,
}

/// What may be observed of an arm: by block and step.
type Observed = BTreeMap<(usize, usize), f64>;

impl<'a> Climbed<'a> {
    fn of(run: &'a RunRecord, steps: Vec<Step<'a>>, valid: &[&'a TrialRecord]) -> Self {
        let is_on_it = |t: &&TrialRecord| steps.iter().any(|step| step.load == t.trial.load);
        let trials = valid.iter().copied().filter(is_on_it).collect();
        Self { plan: &run.plan, steps, trials }
    }

    fn found(&self) -> Staircase {
        let load = &self.steps[0].cell.load;
        let variants = || self.plan.ready().map(|(name, _)| name);
        let lines = variants().map(|variant| self.line(variant));
        Staircase {
            load: load.clone(),
            lines: lines.filter(|line| !line.steps.is_empty()).collect(),
            differences: self.differences(),
            noise_floors: self.noise_floors(),
            answer_bytes: self.answer_bytes(),
            recomputed: self.recomputed(load),
        }
    }

    fn line(&self, variant: &str) -> StaircaseLine {
        let of_variant: Vec<&TrialRecord> = effects::of_arm(&self.trials, variant).collect();
        let steps = self.steps.iter().filter_map(|step| {
            let on_step = of_variant.iter().copied().filter(|t| t.trial.load == step.load);
            step_of(step, &on_step.collect::<Vec<_>>())
        });
        StaircaseLine { variant: variant.into(), steps: steps.collect() }
    }

    /// Each variant against the baseline, then each against the one before it where neither is the baseline.
    fn differences(&self) -> Vec<StaircaseDifference> {
        let baseline = self.plan.baseline.as_str();
        let floors = self.noise_floors();
        let others = self.plan.ready().map(|(name, _)| name).filter(|name| *name != baseline);
        let against_baseline = others.map(|variant| [baseline, variant]);
        against_baseline
            .chain(successive(self.plan))
            .filter_map(|pair| self.difference(pair, &floors))
            .collect()
    }

    fn difference(
        &self,
        [against, variant]: [&str; 2],
        floors: &NoiseFloors,
    ) -> Option<StaircaseDifference> {
        let arms = [against, variant].map(first_run);
        let throughput = self.ratios(&arms, effects::throughput).ratio()?;
        let meshed = arms.iter().any(|arm| self.has_data_plane(arm));
        let [mesh, own] = [self.means(&arms, mesh_cpu), self.means(&arms, application_cpu)];
        let bound = self.plan.bound;
        Some(StaircaseDifference {
            variant: variant.into(),
            against: against.into(),
            throughput_ratio: effects::estimate(throughput),
            mesh_cpu_us: meshed.then(|| mesh.difference_estimate()).flatten(),
            // No ratio is had of nothing.
            mesh_cpu_ratio: mesh.ratio_estimate(),
            mesh_cpu_verdict: meshed.then(|| mesh.verdict(floors.mesh_cpu_us, bound)).flatten(),
            application_cpu_us: own.difference_estimate(),
            application_cpu_verdict: own.verdict(floors.application_cpu_us, bound),
            verdict: effects::verdict(&throughput.change_of_ratio(), floors.throughput, bound),
        })
    }

    fn noise_floors(&self) -> NoiseFloors {
        let baseline = &self.plan.baseline;
        let pair = [false, true].map(|again| Arm { variant: baseline.clone(), again });
        let ratio = self.ratios(&pair, effects::throughput).ratio();
        NoiseFloors {
            throughput: ratio.map(|ratio| toll_stats::noise_floor(&ratio.change_of_ratio())),
            mesh_cpu_us: self.means(&pair, mesh_cpu).noise_floor(),
            application_cpu_us: self.means(&pair, application_cpu).noise_floor(),
        }
    }

    /// The geometric means over the steps that both arms have in a block.
    fn ratios(&self, arms: &[Arm; 2], observe: impl Fn(&TrialRecord) -> Option<f64>) -> Paired {
        let logarithms = |t: &TrialRecord| observe(t).filter(|v| *v > 0.0).map(f64::ln);
        let means = self.by_block(arms, logarithms);
        Paired::of(means.into_iter().map(|(block, means)| (block, means.map(f64::exp))))
    }

    /// The arithmetic means over the same steps.
    fn means(&self, arms: &[Arm; 2], observe: impl Fn(&TrialRecord) -> Option<f64>) -> Paired {
        Paired::of(self.by_block(arms, observe))
    }

    fn by_block(
        &self,
        arms: &[Arm; 2],
        observe: impl Fn(&TrialRecord) -> Option<f64>,
    ) -> BTreeMap<usize, [f64; 2]> {
        let [one, other] = arms.each_ref().map(|arm| self.observed(arm, &observe));
        let mut pairs: BTreeMap<usize, Vec<[f64; 2]>> = BTreeMap::new();
        for ((block, step), value) in one {
            if let Some(others) = other.get(&(block, step)) {
                pairs.entry(block).or_default().push([value, *others]);
            }
        }
        let mean = |pairs: Vec<[f64; 2]>| {
            [0, 1].map(|arm| pairs.iter().map(|pair| pair[arm]).sum::<f64>() / pairs.len() as f64)
        };
        pairs.into_iter().map(|(block, pairs)| (block, mean(pairs))).collect()
    }

    fn observed(&self, arm: &Arm, observe: impl Fn(&TrialRecord) -> Option<f64>) -> Observed {
        let of_arm = self.trials.iter().filter(|t| t.trial.arm == *arm);
        let at_step = |t: &&TrialRecord| {
            let step = self.steps.iter().position(|step| step.load == t.trial.load)?;
            Some(((t.trial.block, step), observe(t)?))
        };
        of_arm.filter_map(at_step).collect()
    }

    fn has_data_plane(&self, arm: &Arm) -> bool {
        let of_arm = self.trials.iter().filter(|t| t.trial.arm == *arm);
        let mut accounts = of_arm.filter_map(|t| CpuAccount::measured(t));
        accounts.any(|account| account.has(Owner::is_data_plane))
    }

    fn answer_bytes(&self) -> Option<f64> {
        let phases = self.trials.iter().filter_map(|t| Some(&t.load.as_ref()?.measure));
        let (bytes, done) = phases
            .fold((0, 0), |(bytes, done), phase| (bytes + phase.body_bytes_in, done + phase.done));
        (done > 0).then(|| bytes as f64 / done as f64)
    }

    fn recomputed(&self, load: &str) -> Vec<RecomputedRow> {
        let Some(published) = &self.plan.reference else { return vec![] };
        reference::recomputed_of(published, load, |figure| {
            let against = figure.against.as_ref().unwrap_or(&self.plan.baseline);
            let observe = reference::changes_over_steps(figure.derived)?;
            let arms = [against, &figure.variant].map(|variant| first_run(variant));
            self.ratios(&arms, observe).ratio_estimate().map(reference::in_percent)
        })
    }
}

/// Nothing where there are no proxies.
fn mesh_cpu(trial: &TrialRecord) -> Option<f64> {
    effects::cpu_per_request(trial, Owner::is_data_plane)
}

fn application_cpu(trial: &TrialRecord) -> Option<f64> {
    effects::cpu_per_request(trial, Owner::is_application)
}

fn first_run(variant: &str) -> Arm {
    Arm { variant: variant.into(), again: false }
}

/// Each variant behind the one before it in the study, where neither is the baseline.
pub fn successive(plan: &Plan) -> Vec<[&str; 2]> {
    let names: Vec<&str> = plan.ready().map(|(name, _)| name).collect();
    let pairs = names.windows(2).map(|pair| [pair[0], pair[1]]);
    pairs.filter(|pair| !pair.contains(&plan.baseline.as_str())).collect()
}

fn step_of(step: &Step<'_>, trials: &[&TrialRecord]) -> Option<StaircaseStep> {
    let mean = |observe: &dyn Fn(&TrialRecord) -> Option<f64>| -> Option<Estimate> {
        effects::mean_observed(trials, observe)
    };
    Some(StaircaseStep {
        load: step.load.into(),
        connections: step.connections,
        throughput_per_s: mean(&effects::throughput)?,
        mesh_cpu_us: mean(&effects::mesh_cpu_per_request),
        application_cpu_us: mean(&application_cpu),
    })
}
