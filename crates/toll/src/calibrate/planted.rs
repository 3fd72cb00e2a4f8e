//! Effects of known size: how large they are to be, which arms bear them, and whether they are found again.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use toll_lab::{Late, Planted};
use toll_stats::{Effect, Level, Member, Verdict};

use super::equal::{Coverage, Equal};
use super::figures;
use super::observed::{METRICS, Round};
use super::subsets::subsets;
use super::words::{Change, Share};
use crate::plan::Metric;

/// What every arm of the planted rounds bears, the baseline too: the wake-ups of a sleep and of a queue are then in all
/// of them, and what is planted is time alone.
pub const BASE: Dose = Dose { iterations: 2_000, sleep_us: 30, late: false, ballast_bytes: 0 };
/// Multiples of the effect that a report says it finds.
pub const MULTIPLES: [f64; 3] = [0.5, 1.0, 2.0];
/// One request in so many is late. Of one in exactly 100 the 99th percentile lies on the edge, now among the late and
/// now not.
const LATE_ONE_IN: u32 = 80;
const LATE_BY: Duration = Duration::from_millis(20);
/// Memory that is planted.
const BALLAST_BYTES: u64 = 10 << 20;
/// Reports for which power is given, where there are more rounds than one has.
const REPORTS: usize = 60;
/// The arm that the others are held against.
pub const BASELINE: &str = "base";

/// The largest of them as a share of the baseline.
const LARGEST: f64 = 0.25;

/// What one service bears on each request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dose {
    /// Rounds of a fixed loop.
    pub iterations: u64,
    /// Sleep, microseconds.
    pub sleep_us: u64,
    /// Whether one request in some is late.
    pub late: bool,
    /// Memory, bytes.
    pub ballast_bytes: u64,
}

/// An arm of the planted rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plant {
    /// The variant.
    pub name: String,
    /// One line for people.
    pub describes: String,
    /// What it bears; absent for one proxy more.
    pub dose: Option<Dose>,
    /// What is to be found of it, in order.
    pub truths: Vec<Truth>,
}

/// What is known of a planted effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// In which metric.
    pub metric: Metric,
    /// Its size in the metric's unit; absent when only its direction is known.
    pub size: Option<f64>,
    /// Standard error of `size`.
    pub error: f64,
    /// Of the effect that a report says it finds; absent for effects of another size.
    pub multiple: Option<f64>,
}

/// A metric of a planted effect, as planted and as found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub variant: String,
    /// One line for people.
    pub describes: String,
    /// What was planted.
    pub truth: Truth,
    /// What was planted as a share of the baseline, where its size is known.
    pub planted: Option<f64>,
    /// What all rounds together say.
    pub found: Change,
    /// Reports whose verdict is right; absent with fewer rounds than a report has.
    pub right: Option<Share>,
    /// Found less planted, in standard errors.
    pub bias: Option<f64>,
    /// What the odd and the even rounds say, each for themselves.
    pub halves: Option<[Change; 2]>,
}

/// What an iteration of the planted loop costs, microseconds of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoopCost {
    /// Mean of its parts.
    pub us: f64,
    /// Standard error of it.
    pub error: f64,
}

/// How many times the effect that a report finds.
struct Multiple {
    of_detectable: f64,
    slug: &'static str,
}

impl Dose {
    /// For the lab.
    pub fn planted(self) -> Planted {
        Planted {
            iterations: self.iterations,
            sleep: Duration::from_micros(self.sleep_us),
            late: self.late.then_some(Late { one_in: LATE_ONE_IN, by: LATE_BY }),
            ballast_bytes: self.ballast_bytes,
        }
    }
}

/// What to plant, sized by what the equal arms showed; nothing for a metric that they did not.
pub fn plants(equal: &Equal, cost: LoopCost) -> Vec<Plant> {
    let mut plants: Vec<Plant> = Vec::new();
    for multiple in MULTIPLES {
        plants.extend(equal.metric(Metric::CpuPerRequest).map(|cpu| {
            let (us, multiple) = sized(cpu, multiple);
            computing((us / cost.us).round() as u64, cost, multiple)
        }));
    }
    for multiple in MULTIPLES {
        plants.extend(equal.metric(Metric::LatencyP50).map(|p50| {
            let (us, multiple) = sized(p50, multiple);
            sleeping(us.round().max(1.0) as u64, multiple)
        }));
    }
    plants.extend([late(), ballast()]);
    plants
}

/// So many times what a report finds, microseconds, and how many times that is: what few rounds on a busy machine find
/// may be more than the service can bear.
fn sized(of: &Coverage, multiple: f64) -> (f64, Multiple) {
    let share = of.detectable.min(LARGEST);
    let is_whole = share == of.detectable;
    let of_detectable = if is_whole { multiple } else { multiple * share / of.detectable };
    (multiple * share * of.figure, Multiple { of_detectable, slug: slug(multiple) })
}

fn computing(iterations: u64, cost: LoopCost, multiple: Multiple) -> Plant {
    let [size, error] = [cost.us, cost.error].map(|us| us * iterations as f64);
    let cpu = Truth {
        metric: Metric::CpuPerRequest,
        size: Some(size),
        error,
        multiple: Some(multiple.of_detectable),
    };
    Plant {
        name: format!("cpu-{}", multiple.slug),
        describes: format!("{size:.1} us of computing"),
        dose: Some(Dose { iterations: BASE.iterations + iterations, ..BASE }),
        truths: vec![cpu],
    }
}

fn sleeping(us: u64, multiple: Multiple) -> Plant {
    let p50 =
        Truth { multiple: Some(multiple.of_detectable), ..known(Metric::LatencyP50, us as f64) };
    Plant {
        name: format!("sleep-{}", multiple.slug),
        describes: format!("{us} us of sleep"),
        dose: Some(Dose { sleep_us: BASE.sleep_us + us, ..BASE }),
        truths: vec![p50, known(Metric::CpuPerRequest, 0.0)],
    }
}

fn late() -> Plant {
    let p99 = Truth { metric: Metric::LatencyP99, size: None, error: 0.0, multiple: None };
    Plant {
        name: "late".into(),
        describes: format!("1 in {LATE_ONE_IN} late by {} ms", LATE_BY.as_millis()),
        dose: Some(Dose { late: true, ..BASE }),
        truths: vec![p99, known(Metric::CpuPerRequest, 0.0)],
    }
}

fn ballast() -> Plant {
    Plant {
        name: "memory".into(),
        describes: format!("{} MiB of memory", BALLAST_BYTES >> 20),
        dose: Some(Dose { ballast_bytes: BALLAST_BYTES, ..BASE }),
        truths: vec![
            known(Metric::Memory, BALLAST_BYTES as f64),
            known(Metric::CpuPerRequest, 0.0),
        ],
    }
}

fn known(metric: Metric, size: f64) -> Truth {
    Truth { metric, size: Some(size), error: 0.0, multiple: None }
}

/// One proxy more, as the study has it: nobody knows what it truly costs.
pub fn proxy(variant: &str) -> Plant {
    let unknown = |metric| Truth { metric, size: None, error: 0.0, multiple: None };
    Plant {
        name: "proxy".into(),
        describes: format!("one proxy more ({variant})"),
        dose: None,
        truths: [Metric::CpuPerRequest, Metric::LatencyP50].map(unknown).into(),
    }
}

fn slug(multiple: f64) -> &'static str {
    match multiple {
        m if m < 1.0 => "half",
        m if m > 1.0 => "twice",
        _ => "once",
    }
}

/// What was found of all plants in these rounds, the second arm of the baseline first: nothing was planted there.
pub fn found(rounds: &[Round], plants: &[Plant], bound: f64, seed: u64) -> Vec<Found> {
    let none = Plant {
        name: format!("{BASELINE} (again)"),
        describes: "nothing".into(),
        dose: Some(BASE),
        truths: [Metric::CpuPerRequest, Metric::LatencyP50]
            .map(|metric| Truth { multiple: Some(0.0), ..known(metric, 0.0) })
            .into(),
    };
    let subsets = match rounds.len() {
        few if few < super::subsets::ROUNDS_OF_A_STUDY => vec![],
        enough => subsets(enough, REPORTS, seed),
    };
    let all = std::iter::once(&none).chain(plants);
    all.flat_map(|plant| of_plant(rounds, plant, &subsets, bound)).collect()
}

fn of_plant(rounds: &[Round], plant: &Plant, subsets: &[Vec<usize>], bound: f64) -> Vec<Found> {
    let every: Vec<&Round> = rounds.iter().collect();
    let report = |rounds: &[&Round]| Report::of(rounds, plant, bound);
    let Some(whole) = report(&every) else { return vec![] };
    let chosen = |subset: &Vec<usize>| subset.iter().map(|at| &rounds[*at]).collect::<Vec<_>>();
    let reports: Option<Vec<Report>> =
        subsets.iter().map(|subset| report(&chosen(subset))).collect();
    let half = |odd: usize| report(&every.iter().copied().skip(odd).step_by(2).collect::<Vec<_>>());
    let halves = half(0).zip(half(1));
    let one = |truth: &Truth| {
        let effect = whole.effect(truth.metric)?;
        let planted = truth.size.map(|size| size / effect.baseline());
        let right = reports.as_ref().and_then(|reports| {
            let right = reports.iter().filter(|report| report.is_right(truth)).count();
            Share::of(right, reports.len())
        });
        let of_half = |report: &Report| report.effect(truth.metric).map(|e| Change::of(&e));
        Some(Found {
            variant: plant.name.clone(),
            describes: plant.describes.clone(),
            truth: *truth,
            planted,
            found: Change::of(&effect),
            right,
            bias: planted.and_then(|share| bias(&effect, share, truth)),
            halves: halves.as_ref().and_then(|(one, other)| Some([of_half(one)?, of_half(other)?])),
        })
    };
    plant.truths.iter().filter_map(one).collect()
}

/// Found less planted, in the standard errors of both; absent without any error to count in.
fn bias(effect: &Effect, planted: f64, truth: &Truth) -> Option<f64> {
    let of_truth = truth.error / (effect.baseline() * (1.0 + planted));
    let error = effect.standard_error().hypot(of_truth);
    let apart = effect.log_ratio().value - planted.ln_1p();
    (error > 0.0).then(|| apart / error)
}

/// A report about one plant: its effects, and the verdicts of their family.
struct Report(Vec<(Metric, Effect, Verdict)>);

impl Report {
    fn of(rounds: &[&Round], plant: &Plant, bound: f64) -> Option<Self> {
        let at = |label: &str| rounds.first()?.arms.iter().position(|arm| arm.label == label);
        let (variant, baseline) = (at(&plant.name)?, at(BASELINE)?);
        // Nothing is planted in the second arm: it is the variant then, not a part of the baseline.
        let again = at(&format!("{BASELINE} (again)")).filter(|again| *again != variant);
        let against: Vec<usize> = std::iter::once(baseline).chain(again).collect();
        let effect = |metric| Some((metric, figures::effect(metric, rounds, variant, &against)?));
        let effects: Vec<(Metric, Effect)> = METRICS.into_iter().filter_map(effect).collect();
        let family: Vec<Member> =
            effects.iter().map(|(_, effect)| Member { effect: *effect, bound }).collect();
        let verdicts = toll_stats::verdicts(&family, family.len(), Level::P95);
        let with_verdict = effects.into_iter().zip(verdicts);
        Some(Self(
            with_verdict.map(|((metric, effect), verdict)| (metric, effect, verdict)).collect(),
        ))
    }

    fn effect(&self, metric: Metric) -> Option<Effect> {
        self.0.iter().find(|(of, _, _)| *of == metric).map(|(_, effect, _)| *effect)
    }

    /// Whether the verdict is what was planted. All that is planted makes a figure larger.
    fn is_right(&self, truth: &Truth) -> bool {
        let verdict =
            self.0.iter().find(|(of, _, _)| *of == truth.metric).map(|(_, _, verdict)| *verdict);
        match truth.size == Some(0.0) {
            false => verdict == Some(Verdict::Higher),
            true => !matches!(verdict, None | Some(Verdict::Higher | Verdict::Lower)),
        }
    }
}
