//! k6's end-of-test summary in full (`--summary-mode=full`, as of 1.8), without colours and without the progress
//! lines around it. In parts of a second as k6 cuts them, not rounded.
//!
//! - http_req_duration runs from the instant a request was due; http_req_blocked, the lag until it was sent, is
//!   part of it here and is not in k6. The steps after it are k6's; sending is timed for one request in sixteen.
//! - http_req_connecting and http_req_tls_handshaking are zero for requests on a connection that was there.
//! - `{ expected_response:true }` is left out when there were other answers: their times are not kept apart.
//! - http_req_failed is statuses from 400 on, gRPC statuses but 0, and failed requests. The rates count what ended within the phase.
//! - An iteration of one request without a pause, and each arrival of an open loop, is its request.
//! - vus are the clients of a closed loop; an open loop has none and k6's number of its own is not made up.

use toll_load::{Histogram, LoadModel, Profile};

use super::{Finished, of_every_request, share};

pub(super) fn render(load: Finished<'_>) -> String {
    let sections =
        [("HTTP", http(load)), ("EXECUTION", execution(load)), ("NETWORK", network(load))];
    let widths = Widths::of(sections.iter().flat_map(|(_, metrics)| metrics));
    let sections = sections.map(|(title, metrics)| {
        let lines: String = metrics.iter().map(|metric| widths.line(metric)).collect();
        format!("    {title}\n{lines}\n")
    });
    format!("\n\n  █ TOTAL RESULTS \n\n{}\n\n", sections.concat())
}

struct Metric {
    name: &'static str,
    figures: Figures,
}

enum Figures {
    /// avg, min, med, max, p(90), p(95).
    Trend([String; 6]),
    /// A value and what stands behind it.
    Plain { value: String, extras: Vec<String> },
}

impl Metric {
    fn trend(name: &'static str, of: &Histogram) -> Metric {
        let quantile = |quantile| of.quantile_us(quantile);
        let figures =
            [of.mean_us(), of.min_us(), quantile(0.5), of.max_us(), quantile(0.9), quantile(0.95)];
        Metric { name, figures: Figures::Trend(figures.map(duration)) }
    }

    fn plain<const N: usize>(name: &'static str, value: String, extras: [String; N]) -> Metric {
        Metric { name, figures: Figures::Plain { value, extras: extras.into() } }
    }

    fn gauge(name: &'static str, [value, min, max]: [u64; 3]) -> Metric {
        Metric::plain(name, value.to_string(), [format!("min={min}"), format!("max={max}")])
    }
}

fn http(load: Finished<'_>) -> Vec<Metric> {
    let measured = load.measured();
    let steps = &measured.steps;
    let requests = load.requests();
    let failed = load.refused() + load.failed();
    let duration = Metric::trend("http_req_duration", &measured.latency);
    let expected = (failed == 0 && requests > 0)
        .then(|| Metric::trend("  { expected_response:true }", &measured.latency));
    let failures = [format!("{failed} out of {requests}")];
    let rate = format!("{}/s", six_digits(load.requests_per_s()));
    let connecting = of_every_request(&steps.connect, requests);
    let handshaking = of_every_request(&steps.tls, requests);
    let mut metrics = vec![
        Metric::trend("http_req_blocked", &measured.send_lag),
        Metric::trend("http_req_connecting", &connecting),
        duration,
    ];
    metrics.extend(expected);
    metrics.extend([
        Metric::plain("http_req_failed", percent(share(failed as f64, requests as f64)), failures),
        Metric::trend("http_req_receiving", &steps.read),
        Metric::trend("http_req_sending", &steps.write),
        Metric::trend("http_req_tls_handshaking", &handshaking),
        Metric::trend("http_req_waiting", &steps.wait),
        Metric::plain("http_reqs", requests.to_string(), [rate]),
    ]);
    metrics
}

fn execution(load: Finished<'_>) -> Vec<Metric> {
    let measured = load.measured();
    let (durations, count, rate) = match measured.iterations.count() {
        0 => (&measured.latency, load.requests(), load.requests_per_s()),
        count => (&measured.iterations, count, load.per_second(count as f64)),
    };
    let (fewest, most) = measured.clients;
    let (last, greatest) = planned_clients(load);
    vec![
        Metric::trend("iteration_duration", durations),
        Metric::plain("iterations", count.to_string(), [format!("{}/s", six_digits(rate))]),
        Metric::gauge("vus", [last, fewest, most]),
        Metric::gauge("vus_max", [greatest; 3]),
    ]
}

fn network(load: Finished<'_>) -> Vec<Metric> {
    let row = |name, total: u64| {
        let rate = format!("{}/s", bytes(load.per_second(total as f64)));
        Metric::plain(name, bytes(total as f64), [rate])
    };
    vec![
        row("data_received", load.measured().bytes_in),
        row("data_sent", load.measured().bytes_out),
    ]
}

/// Clients at the end of the phase, and the most that there could be.
fn planned_clients(load: Finished<'_>) -> (u64, u64) {
    match &load.plan.model {
        LoadModel::Closed { clients, .. } => {
            let last = value_at(clients, load.seconds());
            (last.round() as u64, clients.highest().round() as u64)
        }
        LoadModel::Open { .. } => (0, 0),
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
    use toll_load::Stage;

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

    #[test]
    fn the_clients_at_the_end_are_those_of_the_profile_at_that_time() {
        let stage = |duration_s, from, to| Stage { duration_s, from, to };
        let profile = Profile { stages: vec![stage(10.0, 0.0, 20.0), stage(5.0, 20.0, 4.0)] };
        assert_eq!([5.0, 10.0, 15.0, 99.0].map(|s| value_at(&profile, s)), [10.0, 20.0, 4.0, 4.0]);
    }
}
