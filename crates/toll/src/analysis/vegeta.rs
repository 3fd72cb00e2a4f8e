//! A load's report as vegeta sums it up (as of version 12): one definition for `toll load --output vegeta` and for the
//! open loads of a study, so that the two agree. Computes; renders nothing.
//!
//! - Latencies are those of complete answers; vegeta mixes in the time that failed requests took.
//! - The rate is requests that came to an end over the length of the phase; the throughput is answers with a
//!   status below 400 that came within the phase. When the last answer came is not known.
//! - Bytes are those of bodies, as in vegeta. Failed requests have status 0.
//! - The errors are statuses from 400 on under their registered names, and kinds of failure.

use toll_load::{LoadReport, PhaseReport};

use super::counts::{ended, failed, seconds, share};
use super::findings::VegetaSummary;
use super::status::reason;

/// Of one load, or of slices that follow each other.
pub fn summary(load: &LoadReport) -> VegetaSummary {
    let (measured, attack_s) = (&load.measure, seconds(&load.measure));
    let requests = ended(measured);
    let of_each = |total: u64| (total, share(total as f64, requests as f64));
    let successful = share(successes(measured) as f64, measured.done as f64);
    VegetaSummary {
        requests,
        rate_per_s: share(requests as f64, attack_s),
        throughput_per_s: share(measured.completed as f64, attack_s) * successful,
        attack_s,
        latencies_us: latencies_us(measured),
        bytes_in: of_each(measured.body_bytes_in),
        bytes_out: of_each(measured.body_bytes_out),
        success: share(successes(measured) as f64, requests as f64),
        statuses: statuses(measured),
        errors: errors(measured),
    }
}

fn latencies_us(measured: &PhaseReport) -> [f64; 7] {
    let latency = &measured.latency;
    let [p50, p90, p95, p99] = [0.5, 0.9, 0.95, 0.99].map(|q| latency.quantile_us(q));
    [latency.min_us(), latency.mean_us(), p50, p90, p95, p99, latency.max_us()]
}

fn successes(measured: &PhaseReport) -> u64 {
    measured.statuses.range(200..400).map(|(_, count)| count).sum()
}

fn statuses(measured: &PhaseReport) -> Vec<(u16, u64)> {
    let failed = Some((0, failed(measured))).filter(|(_, count)| *count > 0);
    let statuses = measured.statuses.iter().map(|(status, count)| (*status, *count));
    failed.into_iter().chain(statuses).collect()
}

fn errors(measured: &PhaseReport) -> Vec<String> {
    let refused = measured.statuses.range(400..).map(|(status, _)| {
        let line = format!("{status} {}", reason(*status));
        line.trim_end().to_owned()
    });
    let failed = measured.errors.keys().map(|kind| kind.name().to_owned());
    refused.chain(failed).collect()
}
