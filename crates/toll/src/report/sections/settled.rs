//! Turns the discarded runs on fresh services into a table. Draws nothing.

use crate::analysis::findings::{Estimate, Findings, Settled};

use crate::report::charts;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale, figure};

/// What the discarded runs showed; none when there were none.
pub(in crate::report) fn settled(findings: &Findings) -> Option<Section> {
    let text = "Fresh services are slow at first. After each start a closed loop asked what all loads ask, in slices, until throughput and CPU per request were stable or its time was up; these runs are kept and count for nothing. Means over the runs, the second ones of the baseline among them, of their first and their last slice.";
    let lengths = findings.settled.iter().map(length).collect();
    let columns = vec![words(""), figures("at first"), figures("at the end")];
    let groups = vec![throughput(findings), cpu(findings)];
    let groups = groups.into_iter().filter(|group| !group.rows.is_empty()).collect();
    let answer = answer(findings);
    let pieces = vec![
        Piece::Text(text.into()),
        Piece::List(lengths),
        Piece::Table(Table { columns, groups }),
    ];
    let section = Section::new("settled", "Settling, before anything counts", pieces);
    (!findings.settled.is_empty())
        .then(|| section.showing(charts::settled(findings)).saying(answer))
}

/// `30 of 32 stable at the end`.
fn answer(findings: &Findings) -> String {
    let runs = || findings.settled.iter().flat_map(|settled| &settled.runs);
    let stable = runs().filter(|run| run.stable).count();
    format!("{stable} of {} stable at the end", runs().count())
}

/// `sidecar: 5 runs, 10.0 s on average, 4 of them stable at the end`.
fn length(settled: &Settled) -> Cell {
    let all = settled.runs.len();
    let stable = settled.runs.iter().filter(|run| run.stable).count();
    let runs = if all == 1 { "1 run".into() } else { format!("{all} runs") };
    let (said, tone) = if stable == all {
        ("stable at the end".into(), Tone::Same)
    } else {
        (format!("{stable} of them stable at the end"), Tone::Unknown)
    };
    let mean = figure(Quantity::Time, settled.length_s.value * 1e6);
    Cell::toned(format!("{}: {runs}, {mean} on average, {said}", settled.variant), tone)
}

fn throughput(findings: &Findings) -> Group {
    let of = |s: &Settled| Some(s.throughput_per_s);
    group(findings, Quantity::PerSecond, "throughput", of)
}

fn cpu(findings: &Findings) -> Group {
    group(findings, Quantity::CpuTime, "CPU per request", |s| s.cpu_per_request_us)
}

fn group(
    findings: &Findings,
    quantity: Quantity,
    title: &str,
    ends: impl Fn(&Settled) -> Option<(Estimate, Estimate)>,
) -> Group {
    let known: Vec<(&str, Estimate, Estimate)> = findings
        .settled
        .iter()
        .filter_map(|s| ends(s).map(|(first, last)| (s.variant.as_str(), first, last)))
        .collect();
    let all = known.iter().flat_map(|(_, first, last)| [first.value, last.value]);
    let scale = Scale::of(quantity, all);
    let row = |(variant, first, last): &(&str, Estimate, Estimate)| {
        vec![Cell::from(*variant), scale.plain(first.value).into(), scale.plain(last.value).into()]
    };
    let title = Some(format!("{title}, {}", scale.unit()));
    Group { title, rows: known.iter().map(row).collect() }
}
