//! Prometheus' text exposition (format 0.0.4): base units, `_total` for counters, one family after the other.
//!
//! Quantiles are toll's own; those of the histogram depend on its buckets. Without any answer a summary has no
//! quantiles. A bucket counts values up to its bound as exactly as toll keeps them, 0.1 %.

use std::fmt::{self, Write as _};

use toll_load::{ErrorKind, Histogram};

use super::Finished;

/// Upper bounds, seconds.
const BUCKETS: [f64; 17] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0,
];
const QUANTILES: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
const ERRORS: [ErrorKind; 7] = [
    ErrorKind::Connect,
    ErrorKind::Reset,
    ErrorKind::Closed,
    ErrorKind::Timeout,
    ErrorKind::Garbage,
    ErrorKind::Oversize,
    ErrorKind::Tls,
];

pub(super) fn render(load: Finished<'_>) -> String {
    let mut text = String::new();
    write_all(&mut text, load).expect("a string takes all text");
    text
}

fn write_all(out: &mut String, load: Finished<'_>) -> fmt::Result {
    head(out, "build_info", "gauge", "Version of toll.")?;
    writeln!(out, "toll_load_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))?;
    write_counters(out, load)?;
    write_checks(out, load)?;
    let measured = load.measured();
    histogram(out, "latency_seconds", "From due to answered.", &measured.latency)?;
    for (name, help, of) in [
        ("latency_quantile_seconds", "From due to answered.", &measured.latency),
        ("service_time_seconds", "From sent to answered.", &measured.service_time),
        ("send_lag_seconds", "From due to sent.", &measured.send_lag),
    ] {
        summary(out, name, help, of)?;
    }
    Ok(())
}

fn write_counters(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let measured = load.measured();
    head(out, "requests_total", "counter", "Answered requests by status code.")?;
    for (status, count) in &measured.statuses {
        writeln!(out, "toll_load_requests_total{{status=\"{status}\"}} {count}")?;
    }
    head(out, "errors_total", "counter", "Failed requests, and failed attempts to connect.")?;
    for kind in ERRORS {
        let count = measured.errors.get(&kind).unwrap_or(&0);
        writeln!(out, "toll_load_errors_total{{kind=\"{}\"}} {count}", kind.name())?;
    }
    head(
        out,
        "bytes_total",
        "counter",
        "Bytes of requests and answers, heads included, what TLS adds not.",
    )?;
    writeln!(out, "toll_load_bytes_total{{direction=\"in\"}} {}", measured.bytes_in)?;
    writeln!(out, "toll_load_bytes_total{{direction=\"out\"}} {}", measured.bytes_out)?;
    let cpu_s = measured.cpu_ns as f64 / 1e9;
    let opened = load.report.connections_opened as f64;
    let figures = [
        ("phase_seconds", "gauge", "Length of the measured phase.", load.seconds()),
        ("cpu_seconds_total", "counter", "CPU time of the load engine.", cpu_s),
        ("completed_total", "counter", "Answers within the phase.", measured.completed as f64),
        ("unsent_total", "counter", "Requests due and never sent.", measured.unsent as f64),
        ("connections_opened_total", "counter", "Connections opened in all phases.", opened),
    ];
    for (name, kind, help, value) in figures {
        head(out, name, kind, help)?;
        writeln!(out, "toll_load_{name} {value}")?;
    }
    Ok(())
}

fn write_checks(out: &mut String, load: Finished<'_>) -> fmt::Result {
    head(out, "check", "gauge", "Whether a check of the load engine itself holds.")?;
    for check in &load.report.checks {
        let (name, holds) = (&check.name, u8::from(check.holds));
        writeln!(out, "toll_load_check{{name=\"{name}\"}} {holds}")?;
    }
    Ok(())
}

fn histogram(out: &mut String, name: &str, help: &str, of: &Histogram) -> fmt::Result {
    head(out, name, "histogram", help)?;
    for bound in BUCKETS {
        let count = of.0.count_between(0, (bound * 1e9) as u64);
        writeln!(out, "toll_load_{name}_bucket{{le=\"{bound}\"}} {count}")?;
    }
    writeln!(out, "toll_load_{name}_bucket{{le=\"+Inf\"}} {}", of.count())?;
    sum_and_count(out, name, of)
}

fn summary(out: &mut String, name: &str, help: &str, of: &Histogram) -> fmt::Result {
    head(out, name, "summary", help)?;
    for quantile in QUANTILES.into_iter().filter(|_| of.count() > 0) {
        let value = seconds(of.quantile_us(quantile));
        writeln!(out, "toll_load_{name}{{quantile=\"{quantile}\"}} {value}")?;
    }
    sum_and_count(out, name, of)
}

fn sum_and_count(out: &mut String, name: &str, of: &Histogram) -> fmt::Result {
    let sum = seconds(of.mean_us() * of.count() as f64);
    writeln!(out, "toll_load_{name}_sum {sum}")?;
    writeln!(out, "toll_load_{name}_count {}", of.count())
}

/// Without the digits that a division leaves behind the nanoseconds.
fn seconds(us: f64) -> f64 {
    (us * 1e3).round() / 1e9
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP toll_load_{name} {help}")?;
    writeln!(out, "# TYPE toll_load_{name} {kind}")
}
