//! hey's text (as of 0.1.5, but `50% in` with one percent sign as up to 0.1.4: the two of 0.1.5 are a slip).
//!
//! What the figures mean stands where they are computed, in [`crate::analysis::hey`]. Errors go by kind, without
//! hey's text of the Go error; failed attempts to connect are among them. Without any answer hey prints NaN as
//! averages, this 0.0000.

use std::fmt::{self, Write as _};

use super::Finished;
use crate::analysis::findings::{HeySummary, Step};
use crate::analysis::hey;

/// Width of the longest bar.
const BAR: u64 = 40;

pub(super) fn render(load: Finished<'_>) -> String {
    let mut text = String::new();
    let summary = hey::summary(load.report, load.seconds());
    write_all(&mut text, &summary).expect("a string takes all text");
    text
}

fn write_all(out: &mut String, summary: &HeySummary) -> fmt::Result {
    write_summary(out, summary)?;
    writeln!(out, "\nResponse time histogram:")?;
    write_bars(out, &summary.histogram)?;
    writeln!(out, "\n\nLatency distribution:")?;
    for (percent, seconds) in &summary.percentiles {
        writeln!(out, "  {percent}% in {seconds:.4} secs")?;
    }
    writeln!(out, "\nDetails (average, fastest, slowest):")?;
    for Step { name, average_s, fastest_s, slowest_s } in &summary.details {
        writeln!(out, "  {name}:\t{average_s:.4} secs, {fastest_s:.4} secs, {slowest_s:.4} secs")?;
    }
    writeln!(out, "\nStatus code distribution:")?;
    for (status, count) in &summary.statuses {
        writeln!(out, "  [{status}]\t{count} responses")?;
    }
    write_errors(out, &summary.errors)
}

fn write_summary(out: &mut String, summary: &HeySummary) -> fmt::Result {
    writeln!(out, "\nSummary:")?;
    writeln!(out, "  Total:\t{:.4} secs", summary.total_s)?;
    writeln!(out, "  Slowest:\t{:.4} secs", summary.slowest_s)?;
    writeln!(out, "  Fastest:\t{:.4} secs", summary.fastest_s)?;
    writeln!(out, "  Average:\t{:.4} secs", summary.average_s)?;
    writeln!(out, "  Requests/sec:\t{:.4}", summary.requests_per_s)?;
    writeln!(out, "  ")?;
    if summary.body_bytes > 0 {
        writeln!(out, "  Total data:\t{} bytes", summary.body_bytes)?;
        writeln!(out, "  Size/request:\t{} bytes", summary.bytes_per_request)?;
    }
    Ok(())
}

fn write_bars(out: &mut String, histogram: &[(f64, u64)]) -> fmt::Result {
    let longest = histogram.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (up_to_s, count) in histogram {
        let bar = "■".repeat(((count * BAR + longest / 2) / longest) as usize);
        writeln!(out, "  {up_to_s:4.3} [{count}]\t|{bar}")?;
    }
    Ok(())
}

fn write_errors(out: &mut String, errors: &[(String, u64)]) -> fmt::Result {
    writeln!(out)?;
    if !errors.is_empty() {
        writeln!(out, "Error distribution:")?;
    }
    for (kind, count) in errors {
        writeln!(out, "  [{count}]\t{kind}")?;
    }
    // hey ends the line of the error distribution even when there is none.
    out.push_str(if errors.is_empty() { "\n\n" } else { "\n" });
    Ok(())
}
