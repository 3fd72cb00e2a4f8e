//! Latency and CPU per request against the rate: the picture of a service under load, a line a variant.
//!
//! A rate counts as carried when at least [`CARRIED`] of it is completed. A slice is short, so at an overload its queue
//! is that of a slice and not of minutes: throughput says that it grows, latency says how fast. The *knee* has no
//! agreed definition (Satopaa et al., "Finding a 'kneedle' in a haystack", ICDCS workshops 2011, begin with that); the
//! usual reading is the highest load before latency leaves its floor. Here that is a convention: the rate before the first
//! that was not carried, or had a p99 of more than [`OF_FLOOR`] times that of the lowest rate. Answers slower than the guard come
//! late into the part that counts and make throughput too low.

use super::effects;
use super::findings::{Curve, CurveLine, CurvePointAtRate, Estimate, Metric};
use super::tally::Tally;
use crate::plan::PlannedLoad;
use crate::store::RunRecord;

/// Share of the arrivals that is completed where a rate is carried.
const CARRIED: f64 = 0.98;
/// How many times the p99 of the lowest rate the knee's may be.
const OF_FLOOR: f64 = 5.0;

/// The curve of a run; `None` without one.
pub fn curve(run: &RunRecord, valid: &[&Tally<'_>]) -> Option<Curve> {
    let loads: Vec<&PlannedLoad> =
        run.plan.loads.iter().filter(|load| load.is_of_curve()).collect();
    let capacity_per_s = run.lowest_capacity().map(|lowest| lowest.per_s);
    let line = |variant: &str| {
        let of_load = |load: &&PlannedLoad| {
            let on_load = effects::of_variant(valid, variant).filter(|t| t.load == load.name);
            point(load.rate_per_s(capacity_per_s)?, &on_load.collect::<Vec<_>>())
        };
        let mut points: Vec<CurvePointAtRate> = loads.iter().filter_map(of_load).collect();
        points.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        CurveLine { variant: variant.into(), knee_per_s: knee_per_s(&points), points }
    };
    let lines = run.plan.ready().map(|(variant, _)| line(variant));
    let lines: Vec<CurveLine> = lines.filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then_some(Curve { lines })
}

fn point(rate_per_s: f64, tallies: &[&Tally<'_>]) -> Option<CurvePointAtRate> {
    let metrics = effects::over_rounds(tallies, false);
    let of = |wanted: Metric| -> Option<Estimate> {
        metrics.iter().find(|(metric, _)| *metric == wanted).map(|(_, estimate)| *estimate)
    };
    let throughput_per_s = of(Metric::Throughput)?.value;
    Some(CurvePointAtRate {
        rate_per_s,
        throughput_per_s,
        p50_us: of(Metric::LatencyP50)?,
        p99_us: of(Metric::LatencyP99)?,
        cpu_us: of(Metric::CpuPerRequest),
        carried: throughput_per_s >= CARRIED * rate_per_s,
    })
}

/// Of points by rate, the lowest first; `None` where the lowest is past it, and where none is.
fn knee_per_s(points: &[CurvePointAtRate]) -> Option<f64> {
    let floor_us = points.first()?.p99_us.value;
    let is_past = |p: &CurvePointAtRate| !p.carried || p.p99_us.value > OF_FLOOR * floor_us;
    let first_past = points.iter().position(is_past)?;
    Some(points[first_past.checked_sub(1)?].rate_per_s)
}
