//! What tracing costs by the number of spans: a line through the effects of the loads that differ in spans.
//!
//! In each block the effect on CPU per request (variant less baseline) of each load is set against the spans that
//! a request leaves, and least squares draws the line. Its slope is what a further span costs, its value at zero
//! what tracing a request costs whatever its spans. The block is the unit: the intervals are those of the slopes
//! and intercepts over blocks, so scatter around the line within a block is not counted twice.
//!
//! The loads may run at different rates. What a lower rate makes dearer in both arms alike (sleeping and waking
//! up) falls out of the difference; what it makes dearer in the agent alone (an exporter that wakes up every so
//! often, for fewer requests) stays in it and bends the line. Equal rates are better.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::Deployment;

use super::accounts::Owner;
use super::effects::{self, Paired, of_arm};
use super::findings::{SpanCosts, SpanPoint};
use crate::plan::{PlannedLoad, Release};
use crate::store::{RunRecord, TrialRecord};

/// Numbers of spans that a line needs: two would fit any line.
const LEAST_PLACES: usize = 3;

/// For each variant but the baseline: all components together, then each service whose own spans vary.
pub fn costs(run: &RunRecord, valid: &[&TrialRecord]) -> Vec<SpanCosts> {
    let loads = comparable(&run.plan.loads);
    let others = run.plan.ready().filter(|(name, _)| *name != run.plan.baseline);
    others
        .flat_map(|(variant, deployment)| {
            let lines = Lines { baseline: &run.plan.baseline, variant, loads: &loads, valid };
            let services = deployment.services.iter().map(|service| service.name.as_str());
            let of_services = services.filter_map(|service| lines.of_service(service, deployment));
            lines.of_all().into_iter().chain(of_services).collect::<Vec<_>>()
        })
        .collect()
}

/// The loads that ask the same of the entry in the same way, but for spans; the first such set with enough of them.
fn comparable(loads: &[PlannedLoad]) -> Vec<&PlannedLoad> {
    let mut sets: Vec<Vec<&PlannedLoad>> = Vec::new();
    let released = |load: &&PlannedLoad| !matches!(load.release, Release::Users(_));
    for load in loads.iter().filter(|load| !load.spans.is_empty()).filter(released) {
        match sets.iter_mut().find(|set| asks_alike(set[0], load)) {
            Some(set) => set.push(load),
            None => sets.push(vec![load]),
        }
    }
    sets.into_iter().find(|set| places(set.iter().map(|load| total(load)))).unwrap_or_default()
}

fn asks_alike(a: &PlannedLoad, b: &PlannedLoad) -> bool {
    let base = |load: &PlannedLoad| -> String {
        load.request.path.split('?').next().unwrap_or_default().to_owned()
    };
    let same_release = std::mem::discriminant(&a.release) == std::mem::discriminant(&b.release);
    same_release && a.request.method == b.request.method && base(a) == base(b)
}

fn total(load: &PlannedLoad) -> u64 {
    load.spans.values().sum()
}

fn places(spans: impl Iterator<Item = u64>) -> bool {
    spans.collect::<BTreeSet<u64>>().len() >= LEAST_PLACES
}

/// What a line is drawn from.
struct Lines<'a> {
    baseline: &'a str,
    variant: &'a str,
    loads: &'a [&'a PlannedLoad],
    valid: &'a [&'a TrialRecord],
}

impl Lines<'_> {
    fn of_all(&self) -> Option<SpanCosts> {
        self.line("all", total, Owner::is_measured)
    }

    fn of_service(&self, service: &str, deployment: &Deployment) -> Option<SpanCosts> {
        let pods: BTreeSet<String> = deployment
            .pods()
            .into_iter()
            .filter(|(_, of)| of.name == service)
            .map(|(pod, _)| pod)
            .collect();
        let spans = |load: &PlannedLoad| load.spans.get(service).copied().unwrap_or(0);
        self.line(service, spans, |owner| {
            owner.is_application() && owner.pod().is_some_and(|pod| pods.contains(pod))
        })
    }

    fn line(
        &self,
        of: &str,
        spans: impl Fn(&PlannedLoad) -> u64,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Option<SpanCosts> {
        let mut effects: Vec<(&PlannedLoad, Paired)> =
            self.loads.iter().map(|load| (*load, self.effects(load, &wanted))).collect();
        effects.sort_by_key(|(load, _)| spans(load));
        let mut by_block: BTreeMap<usize, Vec<(u64, f64)>> = BTreeMap::new();
        for (load, paired) in &effects {
            for (block, effect) in paired.differences() {
                by_block.entry(block).or_default().push((spans(load), effect));
            }
        }
        let lines: Vec<toll_stats::Line> = by_block.values().filter_map(|b| fit(b)).collect();
        let mean = |of: fn(&toll_stats::Line) -> f64| {
            effects::mean_of(&lines.iter().map(of).collect::<Vec<_>>())
        };
        Some(SpanCosts {
            variant: self.variant.into(),
            of: of.into(),
            points: effects
                .iter()
                .filter_map(|(load, paired)| self.point(load, spans(load), paired))
                .collect(),
            per_span_us: mean(|line| line.slope)?,
            per_request_us: mean(|line| line.intercept)?,
        })
    }

    fn effects(&self, load: &PlannedLoad, wanted: impl Fn(&Owner) -> bool) -> Paired {
        let [baseline, variant] =
            [self.baseline, self.variant].map(|variant| self.trials(load, variant));
        Paired::observing(&baseline, &variant, |t| effects::cpu_per_request(t, &wanted))
    }

    fn trials(&self, load: &PlannedLoad, variant: &str) -> Vec<&TrialRecord> {
        of_arm(self.valid, variant).filter(|t| t.trial.load == load.name).collect()
    }

    fn point(&self, load: &PlannedLoad, spans: u64, paired: &Paired) -> Option<SpanPoint> {
        let trials = self.trials(load, self.variant);
        let rate = effects::mean_observed(&trials, |t| t.verdict.rate_per_s);
        Some(SpanPoint {
            load: load.name.clone(),
            spans,
            rate_per_s: rate.map(|rate| rate.value),
            effect_us: paired.difference_estimate()?,
        })
    }
}

/// The line of one block; `None` when too few of its loads are valid.
fn fit(effects: &[(u64, f64)]) -> Option<toll_stats::Line> {
    if !places(effects.iter().map(|(spans, _)| *spans)) {
        return None;
    }
    let points: Vec<(f64, f64)> = effects.iter().map(|(spans, us)| (*spans as f64, *us)).collect();
    toll_stats::least_squares(&points).ok()
}
