//! vegeta's text report (as of version 12).
//!
//! - Latencies are those of complete answers; vegeta mixes in the time that failed requests took.
//! - The rate is requests that came to an end over the length of the phase; the throughput is answers with a
//!   status below 400 that came within the phase. When the last answer came is not known: the wait is 0s.
//! - Bytes are those of bodies, as in vegeta. Failed requests have status 0.
//! - The error set holds statuses from 400 on under their registered names, and kinds of failure.

use toll_load::Histogram;

use super::{Finished, share, status::reason};

pub(super) fn render(load: Finished<'_>) -> String {
    let rows = [
        ("Requests", "[total, rate, throughput]", requests(load)),
        ("Duration", "[total, attack, wait]", duration(load)),
        ("Latencies", "[min, mean, 50, 90, 95, 99, max]", latencies(&load.measured().latency)),
        ("Bytes In", "[total, mean]", bytes(load, load.measured().body_bytes_in)),
        ("Bytes Out", "[total, mean]", bytes(load, load.measured().body_bytes_out)),
        ("Success", "[ratio]", format!("{:.2}%", success(load) * 100.0)),
        ("Status Codes", "[code:count]", status_codes(load)),
    ];
    let rows = rows.map(|(label, what, figures)| format!("{label:<14}{what:<34}{figures}\n"));
    format!("{}Error Set:\n{}", rows.concat(), error_set(load))
}

fn requests(load: Finished<'_>) -> String {
    let total = load.requests();
    let rate = load.per_second(total as f64);
    let successful = share(successes(load) as f64, load.measured().done as f64);
    let throughput = load.per_second(load.measured().completed as f64) * successful;
    format!("{total}, {rate:.2}, {throughput:.2}")
}

fn duration(load: Finished<'_>) -> String {
    let attack = readable(load.nanoseconds());
    format!("{attack}, {attack}, {}", readable(0))
}

fn latencies(latency: &Histogram) -> String {
    let quantile = |quantile| latency.quantile_us(quantile);
    let figures = [
        latency.min_us(),
        latency.mean_us(),
        quantile(0.5),
        quantile(0.9),
        quantile(0.95),
        quantile(0.99),
        latency.max_us(),
    ];
    figures.map(|us| readable((us * 1e3).round() as u64)).join(", ")
}

fn bytes(load: Finished<'_>, total: u64) -> String {
    format!("{total}, {:.2}", share(total as f64, load.requests() as f64))
}

fn successes(load: Finished<'_>) -> u64 {
    load.measured().statuses.range(200..400).map(|(_, count)| count).sum()
}

fn success(load: Finished<'_>) -> f64 {
    share(successes(load) as f64, load.requests() as f64)
}

/// Each with two blanks behind it, also the last.
fn status_codes(load: Finished<'_>) -> String {
    let failed = (load.failed() > 0).then(|| (0, load.failed()));
    let statuses = load.measured().statuses.iter().map(|(status, count)| (*status, *count));
    failed.into_iter().chain(statuses).map(|(code, count)| format!("{code}:{count}  ")).collect()
}

fn error_set(load: Finished<'_>) -> String {
    let refused = load.measured().statuses.range(400..).map(|(status, _)| {
        let line = format!("{status} {}", reason(*status));
        line.trim_end().to_owned()
    });
    let failed = load.measured().errors.keys().map(|kind| kind.name().to_owned());
    refused.chain(failed).map(|line| line + "\n").collect()
}

/// As Go writes a duration, rounded to the unit below its largest.
fn readable(ns: u64) -> String {
    const US: u64 = 1_000;
    const MS: u64 = 1_000 * US;
    const S: u64 = 1_000 * MS;
    const MIN: u64 = 60 * S;
    const H: u64 = 60 * MIN;
    let rounded = match ns {
        H.. => round(ns, MIN),
        MIN.. => round(ns, S),
        S.. => round(ns, MS),
        MS.. => round(ns, US),
        _ => ns,
    };
    let part = |unit: u64| rounded as f64 / unit as f64;
    let seconds = (rounded % MIN) as f64 / S as f64;
    match rounded {
        H.. => format!("{}h{}m{seconds}s", rounded / H, rounded % H / MIN),
        MIN.. => format!("{}m{seconds}s", rounded / MIN),
        S.. => format!("{}s", part(S)),
        MS.. => format!("{}ms", part(MS)),
        US.. => format!("{}µs", part(US)),
        1.. => format!("{rounded}ns"),
        0 => "0s".to_owned(),
    }
}

fn round(ns: u64, unit: u64) -> u64 {
    (ns + unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_written_as_go_writes_it() {
        let cases = [
            (0, "0s"),
            (999, "999ns"),
            (706_584, "706.584µs"),
            (1_137_400, "1.137ms"),
            (21_970_000, "21.97ms"),
            (1_180_000_000, "1.18s"),
            (59_986_000_000, "59.986s"),
            (300_000_000_000, "5m0s"),
            (3_600_000_000_000, "1h0m0s"),
        ];
        for (ns, text) in cases {
            assert_eq!(readable(ns), text);
        }
    }
}
