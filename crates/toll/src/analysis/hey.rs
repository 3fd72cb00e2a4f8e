//! A load's report as hey sums it up: one definition for `toll load --output hey` and for the flat-out view of a
//! study, so that the two agree. Computes; renders nothing.
//!
//! - Requests/sec counts answers within the phase and failed requests; hey counts all by its whole run time.
//! - DNS+dialup is TCP and TLS of new connections, zero for requests on old ones. With TLS its slowest is the sum
//!   of the slowest of both, an upper bound. The name was resolved once, before the load: DNS-lookup.
//! - req write is timed for one request in sixteen.

use toll_load::{Histogram, LoadReport};

use super::counts::{ended, failed, of_every_request, share};
use super::findings::{HeySummary, Step};

/// Steps between the fastest and the slowest answer in the response time histogram.
const STEPS: u64 = 10;
const PERCENTS: [u8; 7] = [10, 25, 50, 75, 90, 95, 99];

/// Of one load, or of several that were added up, which took `total_s` seconds together.
pub fn summary(load: &LoadReport, total_s: f64) -> HeySummary {
    let (measured, latency) = (&load.measure, &load.measure.latency);
    let ended_in_phase = (measured.completed + failed(measured)) as f64;
    HeySummary {
        total_s,
        slowest_s: latency.max_us() / 1e6,
        fastest_s: latency.min_us() / 1e6,
        average_s: latency.mean_us() / 1e6,
        requests_per_s: share(ended_in_phase, total_s),
        body_bytes: measured.body_bytes_in,
        bytes_per_request: measured.body_bytes_in / measured.done.max(1),
        histogram: histogram(latency),
        percentiles: percentiles(latency),
        details: details(load),
        statuses: measured.statuses.iter().map(|(status, count)| (*status, *count)).collect(),
        errors: measured.errors.iter().map(|(kind, count)| (kind.name().into(), *count)).collect(),
    }
}

/// Upper marks, seconds, and how many answers lie above the mark before and not above it.
fn histogram(latency: &Histogram) -> Vec<(f64, u64)> {
    let (fastest, slowest) = (latency.0.min(), latency.0.max());
    if latency.count() == 0 {
        return Vec::new();
    }
    let mark = |step| fastest + (slowest - fastest) * step / STEPS;
    let mut bars: Vec<(u64, u64)> = (0..=STEPS).map(|step| (mark(step), 0)).collect();
    for recorded in latency.0.iter_recorded() {
        let value = latency.0.lowest_equivalent(recorded.value_iterated_to());
        let bar = bars.iter_mut().find(|(mark, _)| value <= *mark);
        bar.expect("no value is above the slowest").1 += recorded.count_since_last_iteration();
    }
    bars.into_iter().map(|(mark_ns, count)| (mark_ns as f64 / 1e9, count)).collect()
}

fn percentiles(latency: &Histogram) -> Vec<(u8, f64)> {
    if latency.count() == 0 {
        return Vec::new();
    }
    let at = |percent: u8| latency.quantile_us(f64::from(percent) / 100.0) / 1e6;
    PERCENTS.into_iter().map(|percent| (percent, at(percent))).collect()
}

fn details(load: &LoadReport) -> Vec<Step> {
    let (steps, requests) = (&load.measure.steps, ended(&load.measure));
    let row = |histogram: &Histogram| {
        [histogram.mean_us(), histogram.min_us(), histogram.max_us()].map(|us| us / 1e6)
    };
    let connect = row(&of_every_request(&steps.connect, requests));
    let tls = row(&of_every_request(&steps.tls, requests));
    let lookup = load.resolve_us / 1e6;
    [
        ("DNS+dialup", [0, 1, 2].map(|column| connect[column] + tls[column])),
        ("DNS-lookup", [share(lookup, requests as f64), 0.0, lookup]),
        ("req write", row(&steps.write)),
        ("resp wait", row(&steps.wait)),
        ("resp read", row(&steps.read)),
    ]
    .map(|(name, [average_s, fastest_s, slowest_s])| Step {
        name: name.into(),
        average_s,
        fastest_s,
        slowest_s,
    })
    .into()
}
