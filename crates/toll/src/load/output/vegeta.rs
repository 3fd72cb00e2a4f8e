//! vegeta's text report (as of version 12).
//!
//! What the figures mean stands where they are computed, in [`crate::analysis::vegeta`]. When the last answer came is
//! not known: the wait is 0s.

use super::Finished;
use crate::analysis::findings::VegetaSummary;
use crate::analysis::vegeta;

pub(super) fn render(load: Finished<'_>) -> String {
    let summary = vegeta::summary(load.report);
    let rows = [
        ("Requests", "[total, rate, throughput]", requests(&summary)),
        ("Duration", "[total, attack, wait]", duration(&summary)),
        ("Latencies", "[min, mean, 50, 90, 95, 99, max]", latencies(&summary)),
        ("Bytes In", "[total, mean]", bytes(summary.bytes_in)),
        ("Bytes Out", "[total, mean]", bytes(summary.bytes_out)),
        ("Success", "[ratio]", format!("{:.2}%", summary.success * 100.0)),
        ("Status Codes", "[code:count]", status_codes(&summary)),
    ];
    let rows = rows.map(|(label, what, figures)| format!("{label:<14}{what:<34}{figures}\n"));
    let errors: String = summary.errors.iter().map(|line| format!("{line}\n")).collect();
    format!("{}Error Set:\n{errors}", rows.concat())
}

fn requests(summary: &VegetaSummary) -> String {
    let VegetaSummary { requests, rate_per_s, throughput_per_s, .. } = summary;
    format!("{requests}, {rate_per_s:.2}, {throughput_per_s:.2}")
}

fn duration(summary: &VegetaSummary) -> String {
    let attack = readable((summary.attack_s * 1e9).round() as u64);
    format!("{attack}, {attack}, {}", readable(0))
}

fn latencies(summary: &VegetaSummary) -> String {
    summary.latencies_us.map(|us| readable((us * 1e3).round() as u64)).join(", ")
}

fn bytes((total, each): (u64, f64)) -> String {
    format!("{total}, {each:.2}")
}

/// Each with two blanks behind it, also the last.
fn status_codes(summary: &VegetaSummary) -> String {
    summary.statuses.iter().map(|(code, count)| format!("{code}:{count}  ")).collect()
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
