//! What tracing costs by the number of spans: a line through the effects of the loads that differ in spans.
//!
//! The effect on CPU per request (variant less the mean of the baseline's arms) of each load and round is set against
//! the spans that a request leaves in that variant, and least squares draws one slope through all rounds, each on a level of its own. It
//! is what a further span costs, its value at zero what tracing a request costs whatever its spans. A round that lost a
//! load counts for what its spread is worth. The round is the unit: the intervals are those of the jackknife over
//! rounds, which are those of the rounds' own lines when none has lost a load. The same line through the baseline's
//! second arm against its first is a diagnostic.
//!
//! The loads may run at different rates. What a lower rate makes dearer in both arms alike (sleeping and waking
//! up) falls out of the difference; what it makes dearer in the agent alone (an exporter that wakes up every so
//! often, for fewer requests) stays in it and bends the line. Equal rates are better.

use std::collections::{BTreeMap, BTreeSet};

use toll_lab::Deployment;

use super::effects::{self, Paired};
use super::findings::{Estimate, Owner, Pods, SpanCosts, SpanPoint};
use super::study_loads;
use super::tally::Tally;
use crate::plan::{PlannedLoad, PlannedRequest, Release};
use crate::store::RunRecord;

/// Numbers of spans that a line needs: two would fit any line.
const LEAST_PLACES: usize = 3;

/// For each variant but the baseline: all components together, then each service whose own spans vary.
pub fn costs(run: &RunRecord, valid: &[&Tally<'_>]) -> Vec<SpanCosts> {
    let loads = comparable(study_loads(&run.plan));
    let others = run.plan.ready().filter(|(name, _)| *name != run.plan.baseline);
    others
        .flat_map(|(variant, deployment)| {
            let baseline = &run.plan.baseline;
            let lines = Lines { baseline, variant, deployment, loads: &loads, valid };
            let services = deployment.services.iter().map(|service| service.name.as_str());
            let of_services = services.filter_map(|service| lines.of_service(service));
            lines.of_all().into_iter().chain(of_services).collect::<Vec<_>>()
        })
        .collect()
}

/// The loads that ask the same of the entry in the same way, but for spans; the first such set with enough of them.
fn comparable<'a>(loads: impl Iterator<Item = &'a PlannedLoad>) -> Vec<&'a PlannedLoad> {
    let mut sets: Vec<Vec<&PlannedLoad>> = Vec::new();
    let released = |load: &&PlannedLoad| !matches!(load.release, Release::Users(_));
    for load in loads.filter(|load| !load.spans.is_empty()).filter(released) {
        match sets.iter_mut().find(|set| asks_alike(set[0], load)) {
            Some(set) => set.push(load),
            None => sets.push(vec![load]),
        }
    }
    sets.into_iter().find(|set| places(set.iter().map(|load| total(load)))).unwrap_or_default()
}

fn asks_alike(a: &PlannedLoad, b: &PlannedLoad) -> bool {
    let same_release = std::mem::discriminant(&a.release) == std::mem::discriminant(&b.release);
    same_release && without_queries(a) == without_queries(b)
}

/// Weight, method and path of each kind: the query may say how many spans it leaves.
fn without_queries(load: &PlannedLoad) -> Vec<(u32, &str, &str)> {
    fn kind((weight, request): (u32, &PlannedRequest)) -> (u32, &str, &str) {
        let path = request.path.split('?').next().unwrap_or_default();
        (weight, &request.method, path)
    }
    load.kinds().into_iter().map(kind).collect()
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
    /// The variant's: what a request leaves is its own.
    deployment: &'a Deployment,
    loads: &'a [&'a PlannedLoad],
    valid: &'a [&'a Tally<'a>],
}

impl Lines<'_> {
    fn of_all(&self) -> Option<SpanCosts> {
        let spans = |load: &PlannedLoad| load.spans_in(self.deployment).values().sum();
        self.line(None, spans, Owner::is_measured)
    }

    fn of_service(&self, service: &str) -> Option<SpanCosts> {
        let pods: BTreeSet<Pods> = self
            .deployment
            .pods()
            .into_iter()
            .filter(|(_, of)| of.name == service)
            .map(|(pod, of)| Pods::of(&pod, of))
            .collect();
        let spans =
            |load: &PlannedLoad| load.spans_in(self.deployment).get(service).copied().unwrap_or(0);
        self.line(Some(service), spans, |owner| {
            owner.is_application() && pods.contains(&owner.pods)
        })
    }

    fn line(
        &self,
        service: Option<&str>,
        spans: impl Fn(&PlannedLoad) -> u64,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Option<SpanCosts> {
        let [first, again] = [false, true].map(|again| {
            move |tally: &Tally<'_>| tally.arm.variant == self.baseline && tally.arm.again == again
        });
        let mut effects = self.effects(
            |tally| tally.arm.variant == self.baseline,
            |tally| tally.arm.variant == self.variant,
            &wanted,
        );
        effects.sort_by_key(|(load, _)| spans(load));
        let rounds = by_round(&effects, &spans);
        Some(SpanCosts {
            variant: self.variant.into(),
            service: service.map(Into::into),
            points: effects
                .iter()
                .filter_map(|(load, paired)| self.point(load, spans(load), paired))
                .collect(),
            per_span_us: slope(&rounds)?,
            per_request_us: over_rounds(&rounds, |line| line.intercept)?,
            again_us: slope(&by_round(&self.effects(first, again, &wanted), &spans)),
        })
    }

    /// What the tallies that `variant` picks add to those that `baseline` picks, load by load.
    fn effects(
        &self,
        baseline: impl Fn(&Tally<'_>) -> bool,
        variant: impl Fn(&Tally<'_>) -> bool,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Vec<(&PlannedLoad, Paired)> {
        let paired = |load: &PlannedLoad| {
            let of_load = || self.valid.iter().copied().filter(|tally| tally.load == load.name);
            let baseline: Vec<&Tally<'_>> = of_load().filter(|tally| baseline(tally)).collect();
            let variant: Vec<&Tally<'_>> = of_load().filter(|tally| variant(tally)).collect();
            Paired::observing(&baseline, &variant, |t| effects::cpu_per_request(t, &wanted))
        };
        self.loads.iter().map(|load| (*load, paired(load))).collect()
    }

    fn point(&self, load: &PlannedLoad, spans: u64, paired: &Paired) -> Option<SpanPoint> {
        let of_load = self.valid.iter().filter(|tally| tally.load == load.name);
        let mut slices = of_load.flat_map(|tally| &tally.slices);
        Some(SpanPoint {
            load: load.name.clone(),
            spans,
            rate_per_s: slices.find_map(|slice| slice.record.rate_per_s),
            effect_us: paired.difference_estimate()?,
        })
    }
}

/// Spans and effects of one round.
type Round = Vec<(f64, f64)>;

/// The rounds with two loads at the least; none when no round has enough of them for a line.
fn by_round(effects: &[(&PlannedLoad, Paired)], spans: impl Fn(&PlannedLoad) -> u64) -> Vec<Round> {
    let mut by_round: BTreeMap<usize, Vec<(u64, f64)>> = BTreeMap::new();
    for (load, paired) in effects {
        for (round, effect) in paired.differences() {
            by_round.entry(round).or_default().push((spans(load), effect));
        }
    }
    if !by_round.values().any(|round| places(round.iter().map(|(spans, _)| *spans))) {
        return Vec::new();
    }
    let points = |round: Vec<(u64, f64)>| -> Round {
        round.into_iter().map(|(spans, us)| (spans as f64, us)).collect()
    };
    by_round.into_values().filter(|round| round.len() > 1).map(points).collect()
}

fn slope(rounds: &[Round]) -> Option<Estimate> {
    over_rounds(rounds, |line| line.slope)
}

fn over_rounds(rounds: &[Round], of: fn(&toll_stats::Line) -> f64) -> Option<Estimate> {
    let rounds: Vec<&[(f64, f64)]> = rounds.iter().map(Vec::as_slice).collect();
    let figure = |kept: &[&[(f64, f64)]]| toll_stats::common_line(kept).ok().map(|line| of(&line));
    effects::mean_of(&toll_stats::pseudo_values(&rounds, figure)?)
}
