//! Turns the failed requests of loads that tolerate some into a table.

use crate::analysis::findings::{FailureShare, Findings};

use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{points, share};

/// Each variant's share of failed requests; none where no load tolerates any.
pub(in crate::report) fn failures(findings: &Findings) -> Option<Section> {
    let text = "Failed requests are those without an answer and those with another status than the load expects. Latency is that of all answers, failed ones among them. CPU per request is all CPU time over the good answers: what failed requests took is charged to these.";
    let columns = vec![
        words(""),
        figures("failed"),
        figures("of requests"),
        figures("share"),
        figures("against the baseline"),
    ];
    let mut loads: Vec<&str> = findings.failures.iter().map(|share| share.load.as_str()).collect();
    loads.dedup();
    let group = |load: &&str| {
        let of_load = findings.failures.iter().filter(|share| share.load == **load);
        Group { title: Some((*load).to_owned()), rows: of_load.map(row).collect() }
    };
    let groups = loads.iter().map(group).collect();
    let pieces = vec![Piece::Text(text.into()), Piece::Table(Table { columns, groups })];
    let section = Section::new("failures", "Failed requests", pieces);
    (!findings.failures.is_empty()).then(|| section.saying(answer(findings)))
}

fn row(seen: &FailureShare) -> Vec<Cell> {
    let difference = seen.difference.map_or_else(Cell::default, |difference| {
        let differs = difference.low > 0.0 || difference.high < 0.0;
        let tone = if differs && difference.rounds > 1 { Tone::Worse } else { Tone::Same };
        Cell::toned(points(difference), tone)
    });
    vec![
        Cell::from(seen.variant.as_str()),
        seen.failed.to_string().into(),
        seen.sent.to_string().into(),
        share(seen.share.value).into(),
        difference,
    ]
}

/// `no variant fails more often than another`, or which do.
fn answer(findings: &Findings) -> String {
    let differs = |share: &&FailureShare| {
        share.difference.is_some_and(|d| d.rounds > 1 && (d.low > 0.0 || d.high < 0.0))
    };
    let apart: Vec<&str> =
        findings.failures.iter().filter(differs).map(|share| share.variant.as_str()).collect();
    match apart.as_slice() {
        [] => "no variant is seen to fail more often than the baseline".into(),
        names => format!("not as often as the baseline: {}", names.join(", ")),
    }
}
