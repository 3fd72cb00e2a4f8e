//! Turns what a client printed into one [`Reading`]. What a client does not print stays absent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toll_load::LoadReport;

use crate::peers::Client;

/// What a client says of its own run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reading {
    /// Successful answers that it counted: status 2xx (wrk: 2xx and 3xx, hey, fortio, oha and vegeta: 200).
    pub(crate) requests: f64,
    /// Answers per second, by its own clock.
    pub(crate) per_second: f64,
    pub(crate) latency: Latency,
    /// Only toll: how late requests were sent, by its own clock.
    pub(crate) send_lag: Option<SendLag>,
}

/// Percentiles of latency as reported, milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Latency {
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
}

impl Latency {
    /// From percentiles in a unit of which a millisecond holds `per_ms`.
    fn scaled([p50, p99, p999]: [Option<f64>; 3], per_ms: f64) -> Latency {
        let ms = |value: Option<f64>| value.map(|value| value / per_ms);
        Latency { p50_ms: ms(p50), p99_ms: ms(p99), p999_ms: ms(p999) }
    }
}

/// Percentiles of sent - due, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SendLag {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

const SECONDS: f64 = 1e-3;
const MICROSECONDS: f64 = 1e3;
const NANOSECONDS: f64 = 1e6;

/// Reads a client's standard output; `log` is h2load's, empty when it wrote none. None when it is not as
/// expected.
pub(crate) fn read(client: Client, stdout: &str, log: &str) -> Option<Reading> {
    match client {
        Client::Toll | Client::TollSpin => toll(stdout),
        Client::Wrk => wrk(stdout),
        Client::H2load => h2load(stdout, log),
        Client::Fortio => fortio(stdout),
        Client::Oha => oha(stdout),
        Client::Hey => hey(stdout),
        Client::Vegeta => vegeta(stdout),
        Client::K6 => k6(stdout),
    }
}

fn toll(stdout: &str) -> Option<Reading> {
    #[derive(Deserialize)]
    struct Output {
        report: LoadReport,
    }
    let measure = json::<Output>(stdout)?.report.measure;
    let seconds = (measure.end_ns - measure.begin_ns) as f64 / 1e9;
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| Some(measure.latency.quantile_us(q)));
    Some(Reading {
        requests: measure.statuses.range(200..300).map(|(_, count)| *count as f64).sum(),
        per_second: measure.completed as f64 / seconds,
        latency: Latency::scaled([p50, p99, p999], MICROSECONDS),
        send_lag: Some(SendLag {
            p50_us: measure.send_lag.quantile_us(0.5),
            p99_us: measure.send_lag.quantile_us(0.99),
        }),
    })
}

/// `  16997 requests in 1.04s, 13.83MB read`, `Requests/sec:  16341.53`, `     99%   21.17ms`, and only when
/// there were some: `  Non-2xx or 3xx responses: 12`, which the first number holds, too.
fn wrk(stdout: &str) -> Option<Reading> {
    let requests = stdout.lines().find_map(|line| line.split_once(" requests in "))?.0;
    let requests: f64 = requests.trim().parse().ok()?;
    let failed = number_after(stdout, "Non-2xx or 3xx responses:").unwrap_or(0.0);
    let percentile = |name| milliseconds(after(stdout, name)?);
    Some(Reading {
        requests: requests - failed,
        per_second: number_after(stdout, "Requests/sec:")?,
        latency: Latency { p50_ms: percentile("50%"), p99_ms: percentile("99%"), p999_ms: None },
        send_lag: None,
    })
}

/// A time as wrk writes it: `518.00us`, `3.61ms`, `1.04s`.
fn milliseconds(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "us" => Some(value / 1e3),
        "ms" => Some(value),
        "s" => Some(value * 1e3),
        "m" => Some(value * 6e4),
        _ => None,
    }
}

/// `finished in 1.01s, 12531.00 req/s, …`, `requests: 12531 total, …, 12531 succeeded, …`; the log has a line
/// for each answer: when it was sent, status, microseconds.
fn h2load(stdout: &str, log: &str) -> Option<Reading> {
    let rate =
        stdout.lines().find_map(|line| line.strip_prefix("finished in "))?.split(", ").nth(1)?;
    let counts = stdout.lines().find_map(|line| line.strip_prefix("requests: "))?;
    let succeeded = counts.split(", ").find_map(|count| count.strip_suffix(" succeeded"))?;
    let times_us: Vec<f64> =
        log.lines().filter_map(|line| line.split('\t').nth(2)?.parse().ok()).collect();
    let percentiles_us = [0.5, 0.99, 0.999].map(|q| toll_stats::quantile(&times_us, q).ok());
    Some(Reading {
        requests: succeeded.parse().ok()?,
        per_second: rate.strip_suffix(" req/s")?.parse().ok()?,
        latency: Latency::scaled(percentiles_us, MICROSECONDS),
        send_lag: None,
    })
}

fn fortio(stdout: &str) -> Option<Reading> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Output {
        #[serde(rename = "ActualQPS")]
        per_second: f64,
        ret_codes: BTreeMap<String, f64>,
        duration_histogram: Durations,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Durations {
        percentiles: Vec<Percentile>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Percentile {
        percentile: f64,
        value: f64,
    }
    let output = json::<Output>(stdout)?;
    let percentiles = output.duration_histogram.percentiles;
    let seconds = |wanted| percentiles.iter().find(|p| p.percentile == wanted).map(|p| p.value);
    Some(Reading {
        requests: *output.ret_codes.get("200")?,
        per_second: output.per_second,
        latency: Latency::scaled([50.0, 99.0, 99.9].map(seconds), SECONDS),
        send_lag: None,
    })
}

fn oha(stdout: &str) -> Option<Reading> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Output {
        summary: Summary,
        latency_percentiles: BTreeMap<String, Option<f64>>,
        status_code_distribution: BTreeMap<String, f64>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Summary {
        requests_per_sec: f64,
    }
    let output = json::<Output>(stdout)?;
    let seconds = |name| output.latency_percentiles.get(name).copied().flatten();
    Some(Reading {
        requests: *output.status_code_distribution.get("200")?,
        per_second: output.summary.requests_per_sec,
        latency: Latency::scaled(["p50", "p99", "p99.9"].map(seconds), SECONDS),
        send_lag: None,
    })
}

/// `  Requests/sec: 922.3973`, `  99% in 0.0460 secs`, `  [200] 935 responses`, with tabs in between.
fn hey(stdout: &str) -> Option<Reading> {
    let seconds = |name| number_after(stdout, name);
    Some(Reading {
        requests: number_after(stdout, "[200]")?,
        per_second: number_after(stdout, "Requests/sec:")?,
        latency: Latency::scaled([seconds("50% in"), seconds("99% in"), None], SECONDS),
        send_lag: None,
    })
}

/// What `vegeta report -type=json` prints; times in nanoseconds.
fn vegeta(stdout: &str) -> Option<Reading> {
    #[derive(Deserialize)]
    struct Output {
        latencies: BTreeMap<String, f64>,
        throughput: f64,
        status_codes: BTreeMap<String, f64>,
    }
    let output = json::<Output>(stdout)?;
    let ns = |name| output.latencies.get(name).copied();
    Some(Reading {
        requests: *output.status_codes.get("200")?,
        per_second: output.throughput,
        latency: Latency::scaled([ns("50th"), ns("99th"), None], NANOSECONDS),
        send_lag: None,
    })
}

/// The object that `k6.js` prints: name of the metric -> its values.
fn k6(stdout: &str) -> Option<Reading> {
    #[derive(Deserialize)]
    struct Metric {
        values: BTreeMap<String, f64>,
    }
    let metrics = json::<BTreeMap<String, Metric>>(stdout)?;
    let value = |metric: &str, name: &str| metrics.get(metric)?.values.get(name).copied();
    let duration_ms = |name| value("http_req_duration", name);
    Some(Reading {
        // A rate metric counts what was not so as `fails`: requests that did not fail.
        requests: value("http_req_failed", "fails")?,
        per_second: value("http_reqs", "rate")?,
        latency: Latency::scaled(["p(50)", "p(99)", "p(99.9)"].map(duration_ms), 1.0),
        send_lag: None,
    })
}

fn json<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// The word that follows `label` at the beginning of a line.
fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
    rest.split_whitespace().next()
}

fn number_after(text: &str, label: &str) -> Option<f64> {
    after(text, label)?.parse().ok()
}

#[cfg(test)]
mod tests;
