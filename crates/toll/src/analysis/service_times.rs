//! Median service time against the rate, on an application of one size: what of a slow answer is waking up.
//!
//! At low rates cores, sockets and caches fall asleep between requests, and every variant answers slower. That is no
//! cost of a mesh; what a variant adds to it by having more processes to wake is. Service time runs from the instant
//! at which a request was sent, so the generator's own waking up is left out. Percentiles are those of merged
//! histograms, intervals those of the jackknife over rounds.

use toll_lab::Deployment;

use super::effects::of_variant;
use super::findings::{Estimate, ServiceTimeCurve, ServiceTimes};
use super::merged::{self, Merged};
use super::study_loads;
use super::tally::Tally;
use crate::plan::{PlannedLoad, PlannedRequest, Release};
use crate::store::RunRecord;

/// Half of the answers took no longer.
const MEDIAN: f64 = 0.5;

/// One for each size of the application that had open loads of two rates at the least and ask the same.
pub fn service_times(run: &RunRecord, valid: &[&Tally<'_>]) -> Vec<ServiceTimes> {
    let mut sizes: Vec<(Size<'_>, Vec<Load<'_>>)> = Vec::new();
    for load in open_loads(run, valid) {
        let size = Size::of(run, load.planned);
        match sizes.iter_mut().find(|(known, _)| *known == size) {
            Some((_, loads)) => loads.push(load),
            None => sizes.push((size, vec![load])),
        }
    }
    sizes.iter_mut().filter_map(|(_, loads)| of_size(run, loads)).collect()
}

/// A load at a known rate, and its valid tallies.
struct Load<'a> {
    planned: &'a PlannedLoad,
    rate_per_s: f64,
    tallies: Vec<&'a Tally<'a>>,
}

fn open_loads<'a>(run: &'a RunRecord, valid: &[&'a Tally<'a>]) -> Vec<Load<'a>> {
    let capacity_per_s = run.lowest_capacity().map(|lowest| lowest.per_s);
    let open = study_loads(&run.plan).filter(|load| matches!(load.release, Release::Open { .. }));
    let load = |planned: &'a PlannedLoad| {
        let rate_per_s = planned.rate_per_s(capacity_per_s)?;
        let ran = valid.iter().copied().filter(|t| t.load == planned.name);
        Some(Load { planned, rate_per_s, tallies: ran.collect() })
    };
    open.filter_map(load).collect()
}

/// What must be alike for service times to be compared.
#[derive(PartialEq)]
struct Size<'a> {
    asked: Vec<(u32, &'a PlannedRequest)>,
    /// Pods of each service, and nodes.
    deployed: Option<(Vec<usize>, usize)>,
}

impl<'a> Size<'a> {
    fn of(run: &RunRecord, load: &'a PlannedLoad) -> Self {
        let sized = |deployment: &Deployment| {
            let of_cell = load.cell.as_ref().map(|cell| cell.of(deployment));
            let deployment = of_cell.as_ref().unwrap_or(deployment);
            let pods = deployment.services.iter().map(|service| service.replicas);
            (pods.collect(), deployment.nodes)
        };
        let deployed = run.plan.deployment(&run.plan.baseline).map(sized);
        Self { asked: load.kinds(), deployed }
    }
}

fn of_size(run: &RunRecord, loads: &mut [Load<'_>]) -> Option<ServiceTimes> {
    loads.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let (slowest, fastest) = (loads.first()?, loads.last()?);
    (slowest.rate_per_s < fastest.rate_per_s).then_some(())?;
    let baseline = run.plan.baseline.as_str();
    let mut variants: Vec<&str> = run.plan.ready().map(|(name, _)| name).collect();
    variants.sort_by_key(|name| *name != baseline);
    let curves = variants.iter().map(|variant| ServiceTimeCurve {
        variant: (*variant).into(),
        points: loads.iter().filter_map(|load| point(load, variant)).collect(),
        fall: fall(slowest, fastest, variant),
        own_fall: (*variant != baseline)
            .then(|| own_fall(slowest, fastest, [variant, baseline]))
            .flatten(),
    });
    let cells = || loads.iter().filter_map(|load| load.planned.cell.as_ref());
    Some(ServiceTimes {
        replicas: cells().find_map(|cell| cell.replicas.clone()),
        variants: curves.filter(|curve| !curve.points.is_empty()).collect(),
    })
}

fn point(load: &Load<'_>, variant: &str) -> Option<(String, f64, Estimate)> {
    let median = Merged::of_tallies(&load.of(variant), merged::service_time)?.quantile(MEDIAN);
    Some((load.planned.name.clone(), load.rate_per_s, median.estimate()?))
}

impl<'a> Load<'a> {
    fn of(&self, variant: &str) -> Vec<&'a Tally<'a>> {
        of_variant(&self.tallies, variant).collect()
    }
}

/// At the highest rate less at the lowest.
fn fall(slowest: &Load<'_>, fastest: &Load<'_>, variant: &str) -> Option<Estimate> {
    let [slow, fast] = [slowest, fastest].map(|load| load.of(variant));
    let [slow, fast] =
        Merged::of_arms([&slow, &fast], merged::service_time)?.map(|m| m.quantile(MEDIAN));
    fast.minus(&slow).estimate()
}

/// The same less the baseline's.
fn own_fall(
    slowest: &Load<'_>,
    fastest: &Load<'_>,
    [variant, baseline]: [&str; 2],
) -> Option<Estimate> {
    let arms = [(slowest, variant), (fastest, variant), (slowest, baseline), (fastest, baseline)];
    let arms = arms.map(|(load, variant)| load.of(variant));
    let merged = Merged::of_arms(arms.each_ref().map(Vec::as_slice), merged::service_time)?;
    let [slow, fast, slow_baseline, fast_baseline] = merged.map(|m| m.quantile(MEDIAN));
    fast.minus(&slow).minus(&fast_baseline.minus(&slow_baseline)).estimate()
}
