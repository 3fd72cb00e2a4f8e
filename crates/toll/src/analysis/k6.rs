//! A load's report as k6 sums it up at its end: one definition for `toll load --output k6` and for the virtual
//! users of a study, so that the two agree. Computes; renders nothing.
//!
//! - http_req_duration runs from the instant a request was due; http_req_blocked, the lag until it was sent, is
//!   part of it here and is not in k6. The steps after it are k6's; sending is timed for one request in sixteen.
//! - http_req_connecting and http_req_tls_handshaking are zero for requests on a connection that was there.
//! - `{expected_response:true}` is left out when there were other answers: their times are not kept apart.
//! - http_req_failed is statuses from 400 on, gRPC statuses but 0, and failed requests. The rates count what ended within the phase.
//! - An iteration of one request without a pause, and each arrival of an open loop, is its request.
//! - An iteration of several requests that the end cuts off is none; those of a study's users are told apart.
//! - vus are the clients of a closed loop; an open loop has none and k6's number of its own is not made up.

use toll_load::{Histogram, LoadModel, LoadReport, PhaseReport, Profile};

use super::counts::{ended, failed, of_every_request, refused, seconds, share};
use super::findings::{K6Summary, K6Trend};

/// Clients of a closed loop; zeros without one.
#[derive(Debug, Clone, Copy, Default)]
struct Clients {
    last: u64,
    fewest: u64,
    most: u64,
    /// The most that there could be.
    planned: u64,
}

/// Of one load.
pub fn summary(load: &LoadReport, model: &LoadModel) -> K6Summary {
    let length_s = seconds(&load.measure);
    sum_up(&load.measure, Clients::of(&load.measure, model, length_s))
}

/// Of slices that follow each other, `slice_s` seconds each, as one load.
pub fn of_slices(load: &LoadReport, model: &LoadModel, slice_s: f64) -> K6Summary {
    let summed = sum_up(&load.measure, Clients::of(&load.measure, model, slice_s));
    let interrupted = interrupted(&summed, model);
    K6Summary { interrupted, ..summed }
}

/// What is left of the requests when each iteration has its own, counted as whole iterations.
fn interrupted(summed: &K6Summary, model: &LoadModel) -> Option<u64> {
    let LoadModel::Closed { iteration, .. } = model else { return None };
    let each = u64::from(iteration.requests);
    (each > 1).then(|| summed.requests.div_ceil(each).saturating_sub(summed.iterations))
}

impl Clients {
    fn of(measured: &PhaseReport, model: &LoadModel, length_s: f64) -> Self {
        let LoadModel::Closed { clients, .. } = model else { return Self::default() };
        let (fewest, most) = measured.clients;
        Self {
            last: value_at(clients, length_s).round() as u64,
            fewest,
            most,
            planned: clients.highest().round() as u64,
        }
    }
}

fn sum_up(measured: &PhaseReport, clients: Clients) -> K6Summary {
    let total_s = seconds(measured);
    let requests_per_s = share((measured.completed + failed(measured)) as f64, total_s);
    let (iterations, iterations_per_s) = match measured.iterations.count() {
        0 => (ended(measured), requests_per_s),
        count => (count, share(count as f64, total_s)),
    };
    K6Summary {
        trends: trends(measured),
        failed: not_well(measured),
        requests: ended(measured),
        requests_per_s,
        iterations,
        iterations_per_s,
        interrupted: None,
        vus: [clients.last, clients.fewest, clients.most],
        vus_max: clients.planned,
        data_received: measured.bytes_in,
        data_sent: measured.bytes_out,
        total_s,
    }
}

fn not_well(measured: &PhaseReport) -> u64 {
    refused(measured) + failed(measured)
}

fn trends(measured: &PhaseReport) -> Vec<K6Trend> {
    let (steps, requests) = (&measured.steps, ended(measured));
    let expected = not_well(measured) == 0 && requests > 0;
    let iterations = match measured.iterations.count() {
        0 => &measured.latency,
        _ => &measured.iterations,
    };
    let mut trends = vec![
        trend("http_req_blocked", &measured.send_lag),
        trend("http_req_connecting", &of_every_request(&steps.connect, requests)),
        trend("http_req_duration", &measured.latency),
    ];
    trends.extend(expected.then(|| trend(EXPECTED, &measured.latency)));
    trends.extend([
        trend("http_req_receiving", &steps.read),
        trend("http_req_sending", &steps.write),
        trend("http_req_tls_handshaking", &of_every_request(&steps.tls, requests)),
        trend("http_req_waiting", &steps.wait),
        trend("iteration_duration", iterations),
    ]);
    trends
}

/// As k6's JSON calls the durations of the answers that a script takes for good.
pub const EXPECTED: &str = "http_req_duration{expected_response:true}";

fn trend(name: &str, of: &Histogram) -> K6Trend {
    K6Trend {
        name: name.into(),
        avg_us: of.mean_us(),
        min_us: of.min_us(),
        med_us: of.quantile_us(0.5),
        max_us: of.max_us(),
        p90_us: of.quantile_us(0.9),
        p95_us: of.quantile_us(0.95),
    }
}

fn value_at(profile: &Profile, mut seconds: f64) -> f64 {
    for stage in &profile.stages {
        if seconds < stage.duration_s {
            return stage.from + (stage.to - stage.from) * seconds / stage.duration_s;
        }
        seconds -= stage.duration_s;
    }
    profile.stages.last().map_or(0.0, |stage| stage.to)
}

#[cfg(test)]
mod tests {
    use toll_load::Stage;

    use super::*;

    #[test]
    fn the_clients_at_the_end_are_those_of_the_profile_at_that_time() {
        let stage = |duration_s, from, to| Stage { duration_s, from, to };
        let profile = Profile { stages: vec![stage(10.0, 0.0, 20.0), stage(5.0, 20.0, 4.0)] };
        assert_eq!([5.0, 10.0, 15.0, 99.0].map(|s| value_at(&profile, s)), [10.0, 20.0, 4.0, 4.0]);
    }
}
