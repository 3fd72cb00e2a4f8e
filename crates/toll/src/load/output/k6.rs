//! k6's end-of-test summary in full (`--summary-mode=full`, as of 1.8), without colours and without the progress
//! lines around it. In parts of a second as k6 cuts them, not rounded.
//!
//! What the figures mean stands where they are computed, in [`crate::analysis::k6`].

use super::{Finished, share};
use crate::analysis::findings::{K6Summary, K6Trend};
use crate::analysis::k6;

pub(super) fn render(load: Finished<'_>) -> String {
    let summary = k6::summary(load.report, &load.plan.model);
    let sections = [
        ("HTTP", http(&summary)),
        ("EXECUTION", execution(&summary)),
        ("NETWORK", network(&summary)),
    ];
    let widths = Widths::of(sections.iter().flat_map(|(_, metrics)| metrics));
    let sections = sections.map(|(title, metrics)| {
        let lines: String = metrics.iter().map(|metric| widths.line(metric)).collect();
        format!("    {title}\n{lines}\n")
    });
    format!("\n\n  █ TOTAL RESULTS \n\n{}\n\n", sections.concat())
}

struct Metric {
    name: String,
    figures: Figures,
}

enum Figures {
    /// avg, min, med, max, p(90), p(95).
    Trend([String; 6]),
    /// A value and what stands behind it.
    Plain { value: String, extras: Vec<String> },
}

impl Metric {
    fn trend(trend: &K6Trend) -> Metric {
        let K6Trend { avg_us, min_us, med_us, max_us, p90_us, p95_us, .. } = *trend;
        let figures = [avg_us, min_us, med_us, max_us, p90_us, p95_us].map(duration);
        // A part of a metric stands indented below it, without its name.
        let name = match trend.name.split_once('{') {
            Some((_, part)) => format!("  {{ {} }}", part.trim_end_matches('}')),
            None => trend.name.clone(),
        };
        Metric { name, figures: Figures::Trend(figures) }
    }

    fn plain<const N: usize>(name: &str, value: String, extras: [String; N]) -> Metric {
        Metric { name: name.into(), figures: Figures::Plain { value, extras: extras.into() } }
    }

    fn gauge(name: &str, [value, min, max]: [u64; 3]) -> Metric {
        Metric::plain(name, value.to_string(), [format!("min={min}"), format!("max={max}")])
    }
}

fn http(summary: &K6Summary) -> Vec<Metric> {
    let K6Summary { failed, requests, requests_per_s, .. } = *summary;
    let failures = [format!("{failed} out of {requests}")];
    let failed_share = percent(share(failed as f64, requests as f64));
    let rate = format!("{}/s", six_digits(requests_per_s));
    // k6 sorts by name: what failed stands between the durations and the steps.
    let trends = summary.trends.iter().filter(|trend| trend.name.starts_with("http_req_"));
    let (before, after): (Vec<&K6Trend>, Vec<&K6Trend>) =
        trends.partition(|trend| trend.name.as_str() < "http_req_failed");
    let mut metrics: Vec<Metric> = before.into_iter().map(Metric::trend).collect();
    metrics.push(Metric::plain("http_req_failed", failed_share, failures));
    metrics.extend(after.into_iter().map(Metric::trend));
    metrics.push(Metric::plain("http_reqs", requests.to_string(), [rate]));
    metrics
}

fn execution(summary: &K6Summary) -> Vec<Metric> {
    let K6Summary { iterations, iterations_per_s, vus, vus_max, .. } = *summary;
    let rate = format!("{}/s", six_digits(iterations_per_s));
    let durations = summary.trends.iter().filter(|trend| trend.name == "iteration_duration");
    let mut metrics: Vec<Metric> = durations.map(Metric::trend).collect();
    metrics.extend([
        Metric::plain("iterations", iterations.to_string(), [rate]),
        Metric::gauge("vus", vus),
        Metric::gauge("vus_max", [vus_max; 3]),
    ]);
    metrics
}

fn network(summary: &K6Summary) -> Vec<Metric> {
    let row = |name, total: u64| {
        let rate = format!("{}/s", bytes(share(total as f64, summary.total_s)));
        Metric::plain(name, bytes(total as f64), [rate])
    };
    vec![row("data_received", summary.data_received), row("data_sent", summary.data_sent)]
}

/// Columns are as wide as their widest cell in all sections.
#[derive(Default)]
struct Widths {
    name: usize,
    trend: [usize; 6],
    value: usize,
    extras: [usize; 2],
}

impl Widths {
    fn of<'a>(metrics: impl Iterator<Item = &'a Metric>) -> Widths {
        let mut widths = Widths::default();
        for metric in metrics {
            widths.name = widths.name.max(metric.name.len());
            match &metric.figures {
                Figures::Trend(figures) => widen(&mut widths.trend, figures),
                Figures::Plain { value, extras } => {
                    widths.value = widths.value.max(value.len());
                    widen(&mut widths.extras, extras);
                }
            }
        }
        widths
    }

    fn line(&self, metric: &Metric) -> String {
        let figures = match &metric.figures {
            Figures::Trend(figures) => self.trend(figures),
            Figures::Plain { value, extras } => self.plain(value, extras),
        };
        format!("    {:.<width$}: {figures}\n", metric.name, width = self.name + 3)
    }

    fn trend(&self, figures: &[String; 6]) -> String {
        let names = ["avg", "min", "med", "max", "p(90)", "p(95)"];
        let columns = names.iter().zip(figures).zip(self.trend);
        let columns = columns.map(|((name, figure), width)| format!("{name}={figure:width$}"));
        columns.collect::<Vec<_>>().join(" ")
    }

    fn plain(&self, value: &str, extras: &[String]) -> String {
        let value = format!("{value:width$}", width = self.value);
        // A single figure behind the value is not filled up.
        if let [extra] = extras {
            return format!("{value} {extra}");
        }
        let extras = extras.iter().zip(self.extras);
        extras.fold(value, |line, (extra, width)| format!("{line} {extra:width$}"))
    }
}

fn widen(widths: &mut [usize], cells: &[String]) {
    for (width, cell) in widths.iter_mut().zip(cells) {
        *width = (*width).max(cell.chars().count());
    }
}

fn duration(us: f64) -> String {
    match us {
        0.0 => "0s".to_owned(),
        ..1.0 => format!("{}ns", (us * 1e3).trunc()),
        ..1e3 => format!("{}µs", cut(us)),
        ..1e6 => format!("{}ms", cut(us / 1e3)),
        ..6e7 => format!("{}s", cut(us / 1e6)),
        _ => minutes((us / 1e6).trunc() as u64),
    }
}

fn minutes(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let hours = if hours > 0 { format!("{hours}h") } else { String::new() };
    format!("{hours}{minutes}m{seconds}s")
}

/// Two digits behind the point, the rest cut off, no zeros at the end.
fn cut(value: f64) -> f64 {
    (value * 100.0).trunc() / 100.0
}

fn six_digits(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn percent(share: f64) -> String {
    format!("{:.2}%", cut(share * 100.0))
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if value < 10.0 {
        return format!("{value} B");
    }
    let power = (value.log10() / 3.0).floor().min(6.0);
    let scaled = (value / 1000_f64.powf(power) * 10.0).round() / 10.0;
    let digits = usize::from(scaled < 10.0);
    format!("{scaled:.digits$} {}", UNITS[power as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_two_digits_of_its_unit() {
        let us = [0.0, 0.49, 1.525, 157.299, 999.999, 12_280.0, 1_185_900.0, 83_999_999.0];
        assert_eq!(
            us.map(duration),
            ["0s", "490ns", "1.52µs", "157.29µs", "999.99µs", "12.28ms", "1.18s", "1m23s"]
        );
        assert_eq!(duration(3_723e6), "1h2m3s");
    }

    #[test]
    fn bytes_have_a_digit_behind_the_point_below_ten() {
        let text = [0.0, 9.0, 343_200.0, 6_400_000.0, 1e9].map(bytes);
        assert_eq!(text, ["0 B", "9 B", "343 kB", "6.4 MB", "1.0 GB"]);
    }
}
