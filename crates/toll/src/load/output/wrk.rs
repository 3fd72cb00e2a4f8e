//! wrk's text with `--latency` (as of 4.1.0).
//!
//! - Requests, rate and transfer are those of answers within the phase, as in wrk.
//! - Latency is measured, from the instant a request was due; wrk adds samples of its own making instead.
//! - Req/Sec is the throughput of each quarter of a second divided by the threads, while wrk looks at each
//!   thread ten times a second: the mean agrees, the deviation is smaller. A merged report has no series: zeros.
//! - Connections are those that were used. Of several targets the first one's URL stands there.
//! - Socket errors: `connect` holds TLS too, `read` is answers that were reset, cut off or unreadable, `write`
//!   is never counted apart. In `timeout` wrk counts late answers, toll requests that it gave up.
//! - `Non-2xx or 3xx` counts from status 400 on, as in wrk.

use std::fmt::{self, Write as _};

use toll_load::{ErrorKind, Histogram, Stop};

use super::{Finished, share};

pub(super) fn render(load: Finished<'_>) -> String {
    let mut text = String::new();
    write_all(&mut text, load).expect("a string takes all text");
    text
}

fn write_all(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let measured = load.measured();
    write_head(out, load)?;
    write_thread_stats(out, load)?;
    write_percentiles(out, &measured.latency)?;
    let time = microseconds(load.seconds() * 1e6);
    let read = bytes(measured.bytes_in as f64);
    writeln!(out, "  {} requests in {time}, {read} read", measured.completed)?;
    write_errors(out, load)?;
    writeln!(out, "Requests/sec: {:>9.2}", load.per_second(measured.completed as f64))?;
    writeln!(out, "Transfer/sec: {:>11}", bytes(load.per_second(measured.bytes_in as f64)))
}

fn write_head(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let length_s = match load.plan.stop {
        Stop::AfterSeconds(seconds) => seconds,
        Stop::AfterRequests(_) => load.seconds(),
    };
    let url = load.plan.targets.first().map_or("", |target| &target.url);
    writeln!(out, "Running {} test @ {url}", seconds(length_s, 0))?;
    let connections = load.measured().connections_used;
    writeln!(out, "  {} threads and {connections} connections", load.report.threads)
}

fn write_thread_stats(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let latency = Stats::of_latency(&load.measured().latency);
    let threads = f64::from(load.report.threads.max(1));
    let rates: Vec<f64> =
        load.measured().series.iter().map(|point| point.throughput_per_s / threads).collect();
    writeln!(out, "  Thread Stats   Avg      Stdev     Max   +/- Stdev")?;
    writeln!(out, "    Latency   {}", latency.columns(microseconds))?;
    writeln!(out, "    Req/Sec   {}", Stats::of_rates(&rates).columns(metric))
}

fn write_percentiles(out: &mut String, latency: &Histogram) -> fmt::Result {
    writeln!(out, "  Latency Distribution")?;
    for percent in [50, 75, 90, 99] {
        let value = microseconds(latency.quantile_us(f64::from(percent) / 100.0));
        writeln!(out, "{percent:>7}%{}", column(&value, 10))?;
    }
    Ok(())
}

fn write_errors(out: &mut String, load: Finished<'_>) -> fmt::Result {
    use ErrorKind::{Closed, Connect, Garbage, Oversize, Reset, Timeout, Tls};
    let count = |kinds: &[ErrorKind]| -> u64 {
        kinds.iter().filter_map(|kind| load.measured().errors.get(kind)).sum()
    };
    let connect = count(&[Connect, Tls]);
    let read = count(&[Reset, Closed, Garbage, Oversize]);
    let timeout = count(&[Timeout]);
    if connect + read + timeout > 0 {
        let errors = format!("connect {connect}, read {read}, write 0, timeout {timeout}");
        writeln!(out, "  Socket errors: {errors}")?;
    }
    if load.refused() > 0 {
        writeln!(out, "  Non-2xx or 3xx responses: {}", load.refused())?;
    }
    Ok(())
}

/// One line of the thread statistics.
struct Stats {
    mean: f64,
    deviation: f64,
    max: f64,
    /// Share of values within one deviation of the mean.
    within: f64,
}

impl Stats {
    /// Microseconds.
    fn of_latency(latency: &Histogram) -> Stats {
        let (mean, deviation) = (latency.mean_us(), latency.deviation_us());
        let [low, high] = [mean - deviation, mean + deviation].map(|us| (us * 1e3) as u64);
        let near = latency.0.count_between(low, high);
        let within = share(near as f64, latency.count() as f64);
        Stats { mean, deviation, max: latency.max_us(), within }
    }

    fn of_rates(rates: &[f64]) -> Stats {
        let count = rates.len() as f64;
        let mean = share(rates.iter().sum(), count);
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = share(squares, count - 1.0).sqrt();
        let near = rates.iter().filter(|rate| (**rate - mean).abs() <= deviation).count();
        let max = rates.iter().copied().fold(0.0, f64::max);
        Stats { mean, deviation, max, within: share(near as f64, count) }
    }

    fn columns(&self, unit: fn(f64) -> String) -> String {
        let [mean, deviation, max] = [self.mean, self.deviation, self.max].map(unit);
        let within = self.within * 100.0;
        let figures = [column(&mean, 8), column(&deviation, 10), column(&max, 9)].concat();
        format!("{figures}{within:>8.2}%")
    }
}

/// Figures are aligned at their last digit; two columns are kept for the unit.
fn column(value: &str, width: usize) -> String {
    let letters = value.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    format!("{value:>width$}{}", " ".repeat(2 - letters), width = width - (2 - letters))
}

fn microseconds(us: f64) -> String {
    if us >= 1e6 { seconds(us / 1e6, 2) } else { scaled(us, 1000.0, &["us", "ms"], 2) }
}

fn seconds(s: f64, digits: usize) -> String {
    scaled(s, 60.0, &["s", "m"], digits)
}

fn metric(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T"], 2)
}

fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["", "K", "M", "G", "T"], 2) + "B"
}

/// The next unit is taken from 85 % of it on.
fn scaled(mut value: f64, scale: f64, units: &[&str], digits: usize) -> String {
    let mut unit = 0;
    while unit + 1 < units.len() && value >= scale * 0.85 {
        value /= scale;
        unit += 1;
    }
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_left_at_85_percent_of_the_next() {
        let us = [73.0, 849.0, 851.0, 56_830.0, 849_900.0, 999_999.0, 2_050_000.0, 52_000_000.0];
        let text = us.map(microseconds);
        assert_eq!(
            text,
            ["73.00us", "849.00us", "0.85ms", "56.83ms", "849.90ms", "1000.00ms", "2.05s", "0.87m"]
        );
        assert_eq!([2.0, 30.0, 60.0, 7200.0].map(|s| seconds(s, 0)), ["2s", "30s", "1m", "120m"]);
        assert_eq!([0.0, 213_520.0, 30_429_675.52].map(bytes), ["0.00B", "208.52KB", "29.02MB"]);
    }

    #[test]
    fn figures_are_aligned_as_in_wrk() {
        let line = |mean, deviation, max, within| Stats { mean, deviation, max, within };
        let latency = line(1570.0, 4940.0, 56_830.0, 0.9465).columns(microseconds);
        assert_eq!(latency, "  1.57ms    4.94ms  56.83ms   94.65%");
        let rates = line(38_550.0, 15_730.0, 68_440.0, 0.6).columns(metric);
        assert_eq!(rates, " 38.55k    15.73k   68.44k    60.00%");
        let plain = line(33.06, 48.89, 111.0, 0.6853).columns(metric);
        assert_eq!(plain, " 33.06     48.89   111.00     68.53%");
    }

    #[test]
    fn the_statistics_of_rates_are_those_of_a_sample() {
        // Sample of 2, 4, 4, 4, 5, 5, 7, 9: mean 5, sum of squares 32, deviation sqrt(32 / 7) = 2.138.
        let stats = Stats::of_rates(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((stats.mean, stats.max, stats.within), (5.0, 9.0, 0.75));
        assert!((stats.deviation - 2.138).abs() < 0.001);
    }
}
