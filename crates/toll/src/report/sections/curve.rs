//! Turns latency and CPU per request against the rate into a table. Draws nothing.

use crate::analysis::findings::{Curve, CurveLine, CurvePointAtRate, Estimate, Findings};

use crate::report::charts::cpu_by_rate;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale, rounded};
use crate::report::wording::interval;

/// A group a variant, a row a rate; none without a curve.
pub(in crate::report) fn curve(findings: &Findings) -> Option<Section> {
    let curve = findings.curve.as_ref().filter(|c| c.lines.iter().any(|l| !l.points.is_empty()))?;
    let text = "Each rate in slices between those of the other loads. The knee is the rate before the first that was not carried, or whose p99 is several times that at the lowest rate.";
    let pieces = vec![Piece::Text(text.into()), Piece::Table(table(curve))];
    let section = Section::new("curve", "Latency and CPU against the rate", pieces);
    Some(section.showing(cpu_by_rate(curve).into_iter().collect()).saying(knees(curve)))
}

/// `knee, requests/s: original above 1,600, istio 1,000`.
fn knees(curve: &Curve) -> String {
    let knees =
        curve.lines.iter().filter_map(|line| Some(format!("{} {}", line.variant, knee(line)?)));
    format!("knee, requests/s: {}", knees.collect::<Vec<_>>().join(", "))
}

fn knee(line: &CurveLine) -> Option<String> {
    let (first, last) = (line.points.first()?, line.points.last()?);
    Some(match line.knee_per_s {
        Some(rate) => rounded(rate),
        None if first.carried => format!("above {}", rounded(last.rate_per_s)),
        None => format!("below {}", rounded(first.rate_per_s)),
    })
}

fn table(curve: &Curve) -> Table {
    let points = || curve.lines.iter().flat_map(|line| &line.points);
    let latency =
        Scale::of(Quantity::Time, points().flat_map(|p| [p.p50_us, p.p99_us]).map(|e| e.value));
    let cpu = Scale::of(Quantity::CpuTime, points().filter_map(|p| p.cpu_us).map(|e| e.value));
    let unit = latency.unit();
    let columns = vec![
        words("requests/s"),
        figures(format!("p50, {unit}")),
        figures("interval"),
        figures(format!("p99, {unit}")),
        figures("interval"),
        figures(format!("CPU, {}", cpu.unit())),
        figures("interval"),
    ];
    let row = |point: &CurvePointAtRate| {
        let rate = rounded(point.rate_per_s);
        let name = match point.carried {
            true => rate.into(),
            false => Cell::toned(
                format!("{rate} (carried {})", rounded(point.throughput_per_s)),
                Tone::Unknown,
            ),
        };
        let pair = |scale: Scale, of: Option<Estimate>| match of {
            Some(of) => [scale.plain(of.value), interval(scale, of)].map(Cell::from),
            None => [Cell::absent(), Cell::default()],
        };
        let pairs = [
            pair(latency, Some(point.p50_us)),
            pair(latency, Some(point.p99_us)),
            pair(cpu, point.cpu_us),
        ];
        std::iter::once(name).chain(pairs.into_iter().flatten()).collect()
    };
    let group = |line: &CurveLine| Group {
        title: Some(line.variant.clone()),
        rows: line.points.iter().map(row).collect(),
    };
    Table { columns, groups: curve.lines.iter().map(group).collect() }
}
