//! hey's text (as of 0.1.5, but `50% in` with one percent sign as up to 0.1.4: the two of 0.1.5 are a slip).
//!
//! - Requests/sec counts answers within the phase and failed requests; hey counts all by its whole run time.
//! - DNS+dialup is TCP and TLS of new connections, zero for requests on old ones. With TLS its slowest is the sum
//!   of the slowest of both, an upper bound. The name was resolved once, before the load: DNS-lookup.
//! - req write is timed for one request in sixteen.
//! - Errors go by kind, without hey's text of the Go error; failed attempts to connect are among them.
//! - Without any answer hey prints NaN as averages, this 0.0000.

use std::fmt::{self, Write as _};

use toll_load::Histogram;

use super::{Finished, of_every_request, share};

/// Steps between the fastest and the slowest answer in the response time histogram.
const STEPS: u64 = 10;
/// Width of the longest bar.
const BAR: u64 = 40;

pub(super) fn render(load: Finished<'_>) -> String {
    let mut text = String::new();
    write_all(&mut text, load).expect("a string takes all text");
    text
}

fn write_all(out: &mut String, load: Finished<'_>) -> fmt::Result {
    write_summary(out, load)?;
    writeln!(out, "\nResponse time histogram:")?;
    write_bars(out, &load.measured().latency)?;
    writeln!(out, "\n\nLatency distribution:")?;
    write_percentiles(out, &load.measured().latency)?;
    write_details(out, load)?;
    writeln!(out, "\nStatus code distribution:")?;
    for (status, count) in &load.measured().statuses {
        writeln!(out, "  [{status}]\t{count} responses")?;
    }
    write_errors(out, load)
}

fn write_summary(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let (measured, latency) = (load.measured(), &load.measured().latency);
    writeln!(out, "\nSummary:")?;
    writeln!(out, "  Total:\t{:.4} secs", load.seconds())?;
    writeln!(out, "  Slowest:\t{:.4} secs", latency.max_us() / 1e6)?;
    writeln!(out, "  Fastest:\t{:.4} secs", latency.min_us() / 1e6)?;
    writeln!(out, "  Average:\t{:.4} secs", latency.mean_us() / 1e6)?;
    writeln!(out, "  Requests/sec:\t{:.4}", load.requests_per_s())?;
    writeln!(out, "  ")?;
    if measured.body_bytes_in > 0 {
        writeln!(out, "  Total data:\t{} bytes", measured.body_bytes_in)?;
        let each = measured.body_bytes_in / measured.done.max(1);
        writeln!(out, "  Size/request:\t{each} bytes")?;
    }
    Ok(())
}

fn write_bars(out: &mut String, latency: &Histogram) -> fmt::Result {
    let bars = bars(latency);
    let longest = bars.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (mark_ns, count) in bars {
        let bar = "■".repeat(((count * BAR + longest / 2) / longest) as usize);
        writeln!(out, "  {:4.3} [{count}]\t|{bar}", mark_ns as f64 / 1e9)?;
    }
    Ok(())
}

/// Upper marks, nanoseconds, and how many answers lie above the mark before and not above it.
fn bars(latency: &Histogram) -> Vec<(u64, u64)> {
    let (fastest, slowest) = (latency.0.min(), latency.0.max());
    if latency.count() == 0 {
        return Vec::new();
    }
    let mark = |step| fastest + (slowest - fastest) * step / STEPS;
    let mut bars: Vec<_> = (0..=STEPS).map(|step| (mark(step), 0)).collect();
    for recorded in latency.0.iter_recorded() {
        let value = latency.0.lowest_equivalent(recorded.value_iterated_to());
        let bar = bars.iter_mut().find(|(mark, _)| value <= *mark);
        bar.expect("no value is above the slowest").1 += recorded.count_since_last_iteration();
    }
    bars
}

fn write_percentiles(out: &mut String, latency: &Histogram) -> fmt::Result {
    if latency.count() == 0 {
        return Ok(());
    }
    for percent in [10, 25, 50, 75, 90, 95, 99] {
        let seconds = latency.quantile_us(f64::from(percent) / 100.0) / 1e6;
        writeln!(out, "  {percent}% in {seconds:.4} secs")?;
    }
    Ok(())
}

fn write_details(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let steps = &load.measured().steps;
    let row = |histogram: &Histogram| {
        [histogram.mean_us(), histogram.min_us(), histogram.max_us()].map(|us| us / 1e6)
    };
    let connect = row(&of_every_request(&steps.connect, load.requests()));
    let tls = row(&of_every_request(&steps.tls, load.requests()));
    let lookup = load.report.resolve_us / 1e6;
    writeln!(out, "\nDetails (average, fastest, slowest):")?;
    for (name, [average, fastest, slowest]) in [
        ("DNS+dialup", [0, 1, 2].map(|column| connect[column] + tls[column])),
        ("DNS-lookup", [share(lookup, load.requests() as f64), 0.0, lookup]),
        ("req write", row(&steps.write)),
        ("resp wait", row(&steps.wait)),
        ("resp read", row(&steps.read)),
    ] {
        writeln!(out, "  {name}:\t{average:.4} secs, {fastest:.4} secs, {slowest:.4} secs")?;
    }
    Ok(())
}

fn write_errors(out: &mut String, load: Finished<'_>) -> fmt::Result {
    let errors = &load.measured().errors;
    writeln!(out)?;
    if !errors.is_empty() {
        writeln!(out, "Error distribution:")?;
    }
    for (kind, count) in errors {
        writeln!(out, "  [{count}]\t{}", kind.name())?;
    }
    // hey ends the line of the error distribution even when there is none.
    out.push_str(if errors.is_empty() { "\n\n" } else { "\n" });
    Ok(())
}
