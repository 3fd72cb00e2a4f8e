//! Turns the trend of each JVM's heap into a verdict in words. Tests nothing, draws nothing.

use crate::analysis::findings::{Findings, HeapTrend};

use super::content::section;
use super::figures::{Quantity, Scale, p_value};
use super::table::{Cell, Piece, Section, Tone};

/// Whether the heaps grew; none when no JVM told of its heap.
pub(super) fn heap(findings: &Findings) -> Option<Section> {
    let text = "Heap in use after each collection, by the time under load: what is left then is what the program holds. Growth is judged by the Mann-Kendall test, within each load and each life of a JVM; its speed is Sen's slope.";
    let verdicts = findings.heap_trends.iter().map(verdict).collect();
    let pieces = vec![Piece::Text(text.into()), Piece::List(verdicts)];
    (!findings.heap_trends.is_empty()).then(|| section("heap", "Does the heap grow?", pieces))
}

/// `vets, agent: grows by 1.2 MiB a minute (p 0.0003, 38 points): maybe a leak`.
fn verdict(trend: &HeapTrend) -> Cell {
    let (said, tone) = in_words(trend);
    Cell::toned(format!("{}, {}: {said}", trend.pod, trend.variant), tone)
}

/// What a trend says, without of whom.
pub(super) fn in_words(trend: &HeapTrend) -> (String, Tone) {
    let points = trend.points;
    let (Some(slope), Some(p)) = (trend.mib_per_minute, trend.p_value) else {
        return (format!("too few collections to tell ({points})"), Tone::Unknown);
    };
    let scale = Scale::of(Quantity::Mebibytes, [slope]);
    let p = p_value(p);
    if trend.grows {
        let by = scale.with_unit(slope);
        let said = format!("grows by {by} a minute ({p}, {points} points): maybe a leak");
        return (said, Tone::Worse);
    }
    let unit = scale.unit();
    let said =
        format!("no trend ({}\u{a0}{unit} a minute, {p}, {points} points)", scale.signed(slope));
    (said, Tone::Same)
}
