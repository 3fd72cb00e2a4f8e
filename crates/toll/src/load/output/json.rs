//! Plan and report as the engine has them, and a flat `summary` for `jq`: numbers only, times in microseconds,
//! rates per second. What opens doors is left out of the plan: the key
//! of a client certificate, and the values of headers that carry credentials.
//!
//! `requests` came to an end; `error_share` is that of `--fail-if error-rate`, of these and those never sent;
//! `cpu_us_per_request` is for each that was sent.

use serde::Serialize;
use toll_load::{Histogram, LoadPlan, LoadReport};

use super::{Finished, counts};

/// Headers (and gRPC metadata, which are headers) whose values are left out.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

#[derive(Serialize)]
struct Envelope<'a> {
    toll: &'static str,
    summary: Summary,
    plan: LoadPlan,
    report: &'a LoadReport,
}

/// Of the measured phase.
#[derive(Serialize)]
struct Summary {
    seconds: f64,
    requests: u64,
    requests_per_s: f64,
    completed_per_s: f64,
    failed: u64,
    status_400_or_more: u64,
    unsent: u64,
    error_share: f64,
    bytes_in_per_s: f64,
    bytes_out_per_s: f64,
    latency_mean_us: f64,
    latency_min_us: f64,
    latency_p50_us: f64,
    latency_p75_us: f64,
    latency_p90_us: f64,
    latency_p95_us: f64,
    latency_p99_us: f64,
    latency_p99_9_us: f64,
    latency_max_us: f64,
    service_time_p50_us: f64,
    service_time_p99_us: f64,
    send_lag_p50_us: f64,
    send_lag_p99_us: f64,
    cpu_us_per_request: f64,
    checks_failed: usize,
}

impl Summary {
    fn of(load: Finished<'_>) -> Summary {
        let measured = load.measured();
        let quantile = |of: &Histogram, quantile| of.quantile_us(quantile);
        let latency = &measured.latency;
        Summary {
            seconds: load.seconds(),
            requests: load.requests(),
            requests_per_s: load.requests_per_s(),
            completed_per_s: load.per_second(measured.completed as f64),
            failed: load.failed(),
            status_400_or_more: counts::bad_statuses(measured),
            unsent: measured.unsent,
            error_share: counts::error_share(measured),
            bytes_in_per_s: load.per_second(measured.bytes_in as f64),
            bytes_out_per_s: load.per_second(measured.bytes_out as f64),
            latency_mean_us: latency.mean_us(),
            latency_min_us: latency.min_us(),
            latency_p50_us: quantile(latency, 0.5),
            latency_p75_us: quantile(latency, 0.75),
            latency_p90_us: quantile(latency, 0.9),
            latency_p95_us: quantile(latency, 0.95),
            latency_p99_us: quantile(latency, 0.99),
            latency_p99_9_us: quantile(latency, 0.999),
            latency_max_us: latency.max_us(),
            service_time_p50_us: quantile(&measured.service_time, 0.5),
            service_time_p99_us: quantile(&measured.service_time, 0.99),
            send_lag_p50_us: quantile(&measured.send_lag, 0.5),
            send_lag_p99_us: quantile(&measured.send_lag, 0.99),
            cpu_us_per_request: counts::cpu_us_per_request(measured),
            checks_failed: load.report.checks.iter().filter(|check| !check.holds).count(),
        }
    }
}

pub(super) fn render(load: Finished<'_>) -> String {
    let envelope = Envelope {
        toll: env!("CARGO_PKG_VERSION"),
        summary: Summary::of(load),
        plan: without_secrets(load.plan.clone()),
        report: load.report,
    };
    let json = serde_json::to_string_pretty(&envelope);
    json.expect("plan and report have no map whose keys are not text") + "\n"
}

fn without_secrets(mut plan: LoadPlan) -> LoadPlan {
    let headers = plan.targets.iter_mut().flat_map(|target| &mut target.headers);
    for (_, value) in headers.filter(|(name, _)| is_secret(name)) {
        value.clear();
    }
    if let Some(identity) = &mut plan.connection.tls.identity {
        identity.key_pem.clear();
    }
    plan
}

fn is_secret(header: &str) -> bool {
    SECRET_HEADERS.iter().any(|secret| header.trim().eq_ignore_ascii_case(secret))
}
