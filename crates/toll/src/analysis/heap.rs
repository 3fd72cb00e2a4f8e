//! Whether the heap of a JVM grew over the run, by what collections of its old generation left: a leak shows
//! there. What collections of the young pools leave says nothing of it, since the old pool's figure stands until
//! it is collected itself.
//!
//! One point is one collection of the old generation; each round starts the JVM anew, so points are compared only
//! within one start, over all slices of all loads: the Mann-Kendall test of [`toll_stats::trend`], with Sen's slope.
//! Loads are no seasons of it: their points follow each other, and do not stand for themselves. A run of minutes with a
//! large heap has too few such collections to tell anything.

use std::collections::BTreeMap;

use super::findings::HeapTrend;
use super::jvm;
use crate::store::{ArmRecord, RunRecord};

/// Below this probability a trend is not taken for chance.
const CHANCE: f64 = 0.01;
/// Growth below this share of the heap a minute is no leak that a run of minutes can tell.
const NOTABLE_SHARE_PER_MINUTE: f64 = 0.01;
/// Between two slices lies time that is not counted; without any distance their points could fall on one instant.
const BETWEEN_NS: u64 = 1_000_000;

/// One per variant and JVM, of all arms of the variant that count; in the order of the study.
pub fn trends(run: &RunRecord) -> Vec<HeapTrend> {
    let ready = run.plan.ready().map(|(name, _)| name);
    ready
        .flat_map(|variant| {
            let arms = run.rounds.iter().flat_map(|round| &round.arms);
            let counts = |of: &&ArmRecord| of.file.invalid.is_empty() && of.arm.variant == variant;
            let lives: Vec<&ArmRecord> = arms.filter(counts).collect();
            let samples = lives.iter().flat_map(|of| &of.slices).flat_map(|slice| &slice.samples);
            let of_pod = |pod: &String| trend(variant, pod, &points(&lives, pod));
            jvm::pods(samples).iter().map(of_pod).collect::<Vec<_>>()
        })
        .collect()
}

/// What a collection of the old generation left.
struct Point {
    /// Time under load since the first start, nanoseconds.
    under_load_ns: u64,
    mib: f64,
    /// Which start of the JVM.
    life: usize,
}

impl Point {
    fn in_minutes(&self) -> (f64, f64) {
        (self.under_load_ns as f64 / 6e10, self.mib)
    }
}

/// One for each rise of the count of such collections, between two answers of one life.
fn points(lives: &[&ArmRecord], pod: &str) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut so_far_ns = 0;
    for (life, of) in lives.iter().enumerate() {
        let mut collected = None;
        for slice in &of.slices {
            let scrapes: Vec<jvm::Scrape<'_>> = jvm::scrapes_of(&slice.samples, pod).collect();
            let (Some(first), Some(last)) = (scrapes.first(), scrapes.last()) else { continue };
            let under_load_ns = |at_ns: u64| so_far_ns + at_ns.saturating_sub(first.at_ns);
            for sample in &scrapes {
                let Some(count) = sample.old_collections() else { continue };
                let rose = collected.replace(count).is_some_and(|before| count > before);
                let left = sample.heap_live_mib().filter(|_| rose);
                let under_load_ns = under_load_ns(sample.at_ns);
                points.extend(left.map(|mib| Point { under_load_ns, mib, life }));
            }
            so_far_ns = under_load_ns(last.at_ns) + BETWEEN_NS;
        }
    }
    points
}

fn trend(variant: &str, pod: &str, points: &[Point]) -> HeapTrend {
    let found = toll_stats::trend(&by_life(points)).ok();
    let left: Vec<f64> = points.iter().map(|point| point.mib).collect();
    let notable = toll_stats::median(&left).unwrap_or_default() * NOTABLE_SHARE_PER_MINUTE;
    let by_chance = |found: &toll_stats::Trend| found.p_value >= CHANCE;
    let slope = found.filter(|found| !by_chance(found)).map_or(0.0, |found| found.slope);
    HeapTrend {
        variant: variant.into(),
        pod: pod.into(),
        points: points.len(),
        mib_per_minute: found.map(|found| found.slope),
        p_value: found.map(|found| found.p_value),
        grows: slope > notable,
        falls: slope < -notable,
        series: points.iter().map(Point::in_minutes).collect(),
    }
}

/// A series of (minutes, MiB) for each life with a pair to compare at least.
fn by_life(points: &[Point]) -> Vec<Vec<(f64, f64)>> {
    let mut series: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        series.entry(point.life).or_default().push(point.in_minutes());
    }
    series.into_values().filter(|points| points.len() > 1).collect()
}
