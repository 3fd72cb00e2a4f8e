//! The tallies of a run that sweeps the replicas of one service, as values by round and cell; of the baseline the mean
//! of its arms.
//!
//! Only the cells of one load with an arrival rate take part. A load beside the sweep that runs at rates far above it
//! on one size alone would decide what a request costs, and it would decide wrongly: a machine that is kept awake
//! serves a request for less CPU than one that is woken up for it.

use std::collections::{BTreeMap, BTreeSet};

use toll_load::Histogram;
use toll_stats::{Observation, Regression};

use crate::analysis::findings::{Estimate, Owner, ScaledQuantity};
use crate::analysis::memory;
use crate::analysis::tally::Tally;
use crate::analysis::{LEVEL, effects, latency, merged, study_loads};
use crate::plan::{Cell, PlannedLoad, Release};
use crate::store::RunRecord;

const MIB: f64 = 1024.0 * 1024.0;

/// The cells of one load, and the tallies that bore them.
pub struct Sweep<'a> {
    /// The service whose replicas are swept.
    pub service: &'a str,
    /// Nodes that the pods stood on, in every cell alike.
    pub nodes: usize,
    /// In the order of the study.
    pub cells: Vec<SweptCell<'a>>,
    baseline: &'a str,
    valid: &'a [&'a Tally<'a>],
}

/// One size of the service at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweptCell<'a> {
    pub load: &'a str,
    /// Pods of the service.
    pub pods: usize,
    /// Arrivals per second.
    pub rate_per_s: f64,
}

/// What one quantity of one variant was, round by round and cell by cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// By round, then by the position of the cell.
    rounds: BTreeMap<usize, BTreeMap<usize, f64>>,
}

/// What a [`Series`] says of any number of pods at any rate.
pub struct Plane {
    regression: Regression,
    rate_is_swept: bool,
    rounds: usize,
}

impl<'a> Sweep<'a> {
    /// The first load of the study that sweeps a service's replicas; `None` without one.
    pub fn of(run: &'a RunRecord, valid: &'a [&'a Tally<'a>]) -> Option<Self> {
        let open = |load: &&PlannedLoad| matches!(load.release, Release::Open { .. });
        let swept = |load: &'a PlannedLoad| Some((load, load.cell.as_ref()?));
        let loads: Vec<_> = study_loads(&run.plan).filter(open).filter_map(swept).collect();
        let capacity = run.lowest_capacity().map(|lowest| lowest.per_s);
        let set = |first: &Cell| -> Vec<SweptCell<'a>> {
            let alike = loads.iter().filter(|(_, cell)| differs_by_size_and_rate(first, cell));
            alike.filter_map(|(load, cell)| swept_cell(load, cell, capacity)).collect()
        };
        let sets = loads.iter().map(|(_, cell)| (*cell, set(cell)));
        let (first, cells) = sets.into_iter().find(|(_, cells)| sizes(cells).len() > 1)?;
        let (service, _) = first.replicas.as_ref()?;
        let baseline = &run.plan.baseline;
        let nodes = first.of(run.plan.deployment(baseline)?).nodes;
        Some(Self { service, nodes, cells, baseline, valid })
    }

    /// The sizes that were swept, the smallest first.
    pub fn sizes(&self) -> Vec<usize> {
        sizes(&self.cells).into_iter().collect()
    }

    /// The rates that were swept, the lowest first.
    pub fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.cells.iter().map(|cell| cell.rate_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    /// What a variant showed. Empty for what the baseline adds to itself.
    pub fn series(&self, variant: &str, quantity: ScaledQuantity) -> Series {
        match quantity {
            ScaledQuantity::Memory => {
                self.observed(variant, |t| Some(memory::mean_memory(t)? / MIB))
            }
            ScaledQuantity::Cpu => {
                self.observed(variant, |t| t.sums.millicores(Owner::is_measured))
            }
            ScaledQuantity::AddedP50 => self.added(variant, 0.50),
            ScaledQuantity::AddedP99 => self.added(variant, 0.99),
        }
    }

    fn observed(&self, variant: &str, of: impl Fn(&Tally<'_>) -> Option<f64>) -> Series {
        let mut series = Series::default();
        for at in 0..self.cells.len() {
            for (round, value) in effects::means_by_round(&self.tallies(variant, at), &of) {
                series.insert(round, at, value);
            }
        }
        series
    }

    fn added(&self, variant: &str, quantile: f64) -> Series {
        let mut series = Series::default();
        if variant == self.baseline {
            return series;
        }
        for at in 0..self.cells.len() {
            let [baseline, variant] = [self.baseline, variant]
                .map(|variant| merged::rounds(&self.tallies(variant, at), merged::latency));
            let in_both = baseline.iter().filter_map(|(round, without)| {
                variant.get(round).map(|with| (*round, (without, with)))
            });
            let (rounds, pairs): (Vec<usize>, Vec<_>) = in_both.unzip();
            for (round, value) in rounds.into_iter().zip(added_by_round(&pairs, quantile)) {
                series.insert(round, at, value);
            }
        }
        series
    }

    /// The tallies of a variant in a cell.
    fn tallies(&self, variant: &str, at: usize) -> Vec<&'a Tally<'a>> {
        let of_variant = effects::of_variant(self.valid, variant);
        of_variant.filter(|tally| tally.load == self.cells[at].load).collect()
    }

    fn terms(&self, pods: f64, rate_per_s: f64) -> Vec<f64> {
        terms(pods, rate_per_s, self.rates().len() > 1)
    }
}

impl Series {
    /// What one cell was, round after round.
    pub fn of_cell(&self, at: usize) -> Vec<f64> {
        self.rounds.values().filter_map(|cells| cells.get(&at).copied()).collect()
    }

    /// By how much it lies above another, where both have a value.
    pub fn above(&self, other: &Self) -> Self {
        let mut series = Self::default();
        for (round, cells) in &self.rounds {
            for (at, value) in cells {
                if let Some(less) = other.rounds.get(round).and_then(|cells| cells.get(at)) {
                    series.insert(*round, *at, value - less);
                }
            }
        }
        series
    }

    /// The plane through the cells that `keep` picks; `None` where they carry none.
    pub fn plane(&self, sweep: &Sweep<'_>, keep: impl Fn(&SweptCell<'_>) -> bool) -> Option<Plane> {
        let observation = |(at, value): (&usize, &f64)| {
            let cell = &sweep.cells[*at];
            let terms = sweep.terms(cell.pods as f64, cell.rate_per_s);
            keep(cell).then_some(Observation { terms, value: *value })
        };
        let of_round =
            |cells: &BTreeMap<usize, f64>| cells.iter().filter_map(observation).collect::<Vec<_>>();
        let rounds: Vec<Vec<Observation>> = self.rounds.values().map(of_round).collect();
        let kept: Vec<&[Observation]> =
            rounds.iter().map(Vec::as_slice).filter(|round| !round.is_empty()).collect();
        Some(Plane {
            regression: toll_stats::regression(&kept).ok()?,
            rate_is_swept: sweep.rates().len() > 1,
            rounds: kept.len(),
        })
    }

    fn insert(&mut self, round: usize, at: usize, value: f64) {
        self.rounds.entry(round).or_default().insert(at, value);
    }
}

impl Plane {
    /// Without a pod and without a request; with a rate that is not swept, at that rate.
    pub fn fixed(&self) -> Estimate {
        self.at(0.0, 0.0)
    }

    /// For each pod.
    pub fn per_pod(&self) -> Estimate {
        self.estimate(self.regression.at(&self.along_pods(), LEVEL))
    }

    /// For each request per second; `None` when the rate is not swept.
    pub fn per_request(&self) -> Option<Estimate> {
        let along_rate = [0.0, 0.0, 1.0];
        self.rate_is_swept.then(|| self.estimate(self.regression.at(&along_rate, LEVEL)))
    }

    /// On the plane.
    pub fn at(&self, pods: f64, rate_per_s: f64) -> Estimate {
        self.estimate(self.regression.at(&self.terms(pods, rate_per_s), LEVEL))
    }

    /// Where a round with a start of its own would lie.
    pub fn predict(&self, pods: f64, rate_per_s: f64) -> Estimate {
        self.estimate(self.regression.predict(&self.terms(pods, rate_per_s), LEVEL))
    }

    /// The number of pods at which the plane is zero; `None` where it may be flat.
    pub fn zero(&self, rate_per_s: f64) -> Option<Estimate> {
        let zero = self.regression.zero(&self.terms(0.0, rate_per_s), &self.along_pods(), LEVEL);
        zero.map(|zero| self.estimate(zero))
    }

    fn terms(&self, pods: f64, rate_per_s: f64) -> Vec<f64> {
        terms(pods, rate_per_s, self.rate_is_swept)
    }

    fn along_pods(&self) -> Vec<f64> {
        let mut along = vec![0.0; self.regression.coefficients().len()];
        along[1] = 1.0;
        along
    }

    fn estimate(&self, e: toll_stats::Estimate) -> Estimate {
        let (value, low, high) = (e.value, e.low, e.high);
        Estimate { value, low, high, level: e.level.share(), rounds: self.rounds }
    }
}

fn terms(pods: f64, rate_per_s: f64, rate_is_swept: bool) -> Vec<f64> {
    let mut terms = vec![1.0, pods];
    terms.extend(rate_is_swept.then_some(rate_per_s));
    terms
}

fn differs_by_size_and_rate(one: &Cell, other: &Cell) -> bool {
    let service = |cell: &Cell| cell.replicas.as_ref().map(|(service, _)| service.clone());
    one.load == other.load && one.nodes == other.nodes && service(one) == service(other)
}

fn swept_cell<'a>(
    load: &'a PlannedLoad,
    cell: &Cell,
    capacity_per_s: Option<f64>,
) -> Option<SweptCell<'a>> {
    let (_, pods) = cell.replicas.as_ref()?;
    let rate_per_s = load.rate_per_s(capacity_per_s)?;
    Some(SweptCell { load: &load.name, pods: *pods, rate_per_s })
}

fn sizes(cells: &[SweptCell<'_>]) -> BTreeSet<usize> {
    cells.iter().map(|cell| cell.pods).collect()
}

/// What each round says of the quantile that one arm adds to the other, microseconds.
///
/// A round has too few requests for a percentile of its own, so the histograms of all rounds are merged first
/// (docs/method.md rule 3). The rounds' scatter is that of the jackknife's pseudo-values, moved so that their mean is the
/// merged figure: the jackknife's correction of a bias would be a correction by one or two of the slowest requests.
fn added_by_round(pairs: &[(&Histogram, &Histogram)], quantile: f64) -> Vec<f64> {
    let figure = |kept: &[(&Histogram, &Histogram)]| {
        let (baseline, variant): (Vec<&Histogram>, Vec<&Histogram>) = kept.iter().copied().unzip();
        let [baseline, variant] = [baseline, variant].map(|arm| latency::merged(&arm));
        Some(variant?.quantile_us(quantile) - baseline?.quantile_us(quantile))
    };
    let Some((all, values)) = figure(pairs).zip(toll_stats::pseudo_values(pairs, figure)) else {
        return vec![];
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| value + all - mean).collect()
}
