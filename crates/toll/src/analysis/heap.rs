//! Whether the heap of a JVM grew over the run, by what its collections left: a leak shows there, and the saw
//! teeth between two collections do not.
//!
//! Loads keep different amounts alive, and a JVM that was started anew begins anew. So points are compared only
//! within one life of a JVM under one load, and these series are tested as one, as seasons are: the Mann-Kendall
//! test of [`toll_stats::trend`] (Hirsch, Slack and Smith 1982), with Sen's slope. Neighbouring points of a series
//! depend on each other, which makes chance look like a trend (Hirsch and Slack, "A nonparametric trend test for
//! seasonal data with serial dependence", Water Resources Research 20, 1984): one point a trial is taken where
//! there are enough trials, else points some seconds apart.
//!
//! What is left after a collection of the young pools alone says little of the old one, whose figure stands until
//! it is collected itself: a leak slower than that shows only in a longer run.

use std::collections::BTreeMap;

use super::effects::of_arm;
use super::findings::HeapTrend;
use super::jvm;
use crate::plan::BringUp;
use crate::store::{RunRecord, TrialRecord};

/// Below this probability a trend is not taken for chance.
const CHANCE: f64 = 0.01;
/// Growth below this share of the heap a minute is no leak that a run of minutes can tell.
const NOTABLE_SHARE_PER_MINUTE: f64 = 0.01;
/// Points of one trial are this far apart when there are too few trials for one point each, nanoseconds.
const APART_NS: u64 = 5_000_000_000;
/// Between two measured windows lies a warm-up, which is not counted; without any distance their points could
/// fall on one instant.
const BETWEEN_NS: u64 = 1_000_000;
/// Points that the test needs.
const LEAST_POINTS: usize = 10;

/// One per variant and JVM, of the variant's first arm; in the order of the study.
pub fn trends(run: &RunRecord, valid: &[&TrialRecord]) -> Vec<HeapTrend> {
    let ready = run.plan.ready().map(|(name, _)| name);
    ready
        .flat_map(|variant| {
            let trials: Vec<&TrialRecord> = of_arm(valid, variant).collect();
            let pods = jvm::pods(trials.iter().copied());
            let of_pod =
                |pod: &String| trend(variant, pod, &points(run.plan.bring_up, &trials, pod));
            pods.iter().map(of_pod).collect::<Vec<_>>()
        })
        .collect()
}

/// What a collection left.
struct Point<'a> {
    /// Time under load since the run began, nanoseconds.
    under_load_ns: u64,
    mib: f64,
    trial: usize,
    load: &'a str,
    /// Which start of the JVM.
    life: usize,
}

impl Point<'_> {
    fn in_minutes(&self) -> (f64, f64) {
        (self.under_load_ns as f64 / 6e10, self.mib)
    }
}

/// Every figure of the arm's measured windows that differs from the one before: one a collection.
fn points<'a>(bring_up: BringUp, trials: &[&'a TrialRecord], pod: &str) -> Vec<Point<'a>> {
    let mut points: Vec<Point<'_>> = Vec::new();
    let (mut so_far_ns, mut life, mut cpu_before) = (0, 0, 0.0);
    let mut before: Option<&TrialRecord> = None;
    for trial in trials {
        let told: Vec<jvm::Told<'_>> = jvm::window(trial, pod).collect();
        let (Some(first), Some(last)) = (told.first(), told.last()) else { continue };
        // A process has used no less CPU time than before.
        let fell = first.cpu_s().is_some_and(|cpu_s| cpu_s < cpu_before);
        life += usize::from(fell || before.is_some_and(|b| starts_anew(bring_up, b, trial)));
        let under_load_ns = |at_ns: u64| so_far_ns + at_ns.saturating_sub(first.at_ns);
        let mut left = None;
        for (at_ns, mib) in told.iter().filter_map(|t| Some((t.at_ns, t.heap_live_mib()?))) {
            if left.replace(mib) != Some(mib) {
                points.push(Point {
                    under_load_ns: under_load_ns(at_ns),
                    mib,
                    trial: trial.trial.index,
                    load: trial.trial.load.as_str(),
                    life,
                });
            }
        }
        so_far_ns = under_load_ns(last.at_ns) + BETWEEN_NS;
        cpu_before = last.cpu_s().unwrap_or(0.0);
        before = Some(trial);
    }
    points
}

fn starts_anew(bring_up: BringUp, before: &TrialRecord, trial: &TrialRecord) -> bool {
    match bring_up {
        BringUp::Trial => true,
        BringUp::Block => before.trial.block != trial.trial.block,
        BringUp::Run => false,
    }
}

fn trend(variant: &str, pod: &str, points: &[Point<'_>]) -> HeapTrend {
    let series = independent(points);
    let found = toll_stats::trend(&series).ok();
    let left: Vec<f64> = series.iter().flatten().map(|(_, mib)| *mib).collect();
    let usual = toll_stats::median(&left).unwrap_or_default();
    let grows = found.is_some_and(|found| {
        found.p_value < CHANCE && found.slope > usual * NOTABLE_SHARE_PER_MINUTE
    });
    HeapTrend {
        variant: variant.into(),
        pod: pod.into(),
        points: left.len(),
        mib_per_minute: found.map(|found| found.slope),
        p_value: found.map(|found| found.p_value),
        grows,
        series: points.iter().map(Point::in_minutes).collect(),
    }
}

/// Series of (minutes, MiB) by life and load, thinned out until their points hardly depend on each other.
fn independent(points: &[Point<'_>]) -> Vec<Vec<(f64, f64)>> {
    let last_of_trials = by_life_and_load(points, |before, point| {
        if before.trial == point.trial { Keep::Newer } else { Keep::Both }
    });
    if last_of_trials.iter().map(Vec::len).sum::<usize>() >= LEAST_POINTS {
        return last_of_trials;
    }
    by_life_and_load(points, |before, point| {
        if point.under_load_ns - before.under_load_ns < APART_NS { Keep::Older } else { Keep::Both }
    })
}

/// What becomes of a point and the one before it.
enum Keep {
    Older,
    Newer,
    Both,
}

/// Series with a pair to compare at least.
fn by_life_and_load(
    points: &[Point<'_>],
    keep: impl Fn(&Point<'_>, &Point<'_>) -> Keep,
) -> Vec<Vec<(f64, f64)>> {
    let mut series: BTreeMap<(usize, &str), Vec<&Point<'_>>> = BTreeMap::new();
    for point in points {
        let kept = series.entry((point.life, point.load)).or_default();
        match kept.last().map_or(Keep::Both, |before| keep(before, point)) {
            Keep::Older => {}
            Keep::Both => kept.push(point),
            Keep::Newer => {
                kept.pop();
                kept.push(point);
            }
        }
    }
    let pairs = series.into_values().filter(|kept| kept.len() > 1);
    pairs.map(|kept| kept.into_iter().map(Point::in_minutes).collect()).collect()
}
