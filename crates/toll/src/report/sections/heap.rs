//! Turns the trend of each JVM's heap into a verdict in words. Tests nothing, draws nothing.

use crate::analysis::findings::{Findings, HeapTrend};

use crate::report::charts;
use crate::report::document::{Cell, Piece, Section};
use crate::report::subjects::heap::in_words;

/// Whether the heaps grew; none when no JVM reported its heap.
pub(in crate::report) fn heap(findings: &Findings) -> Option<Section> {
    let mut text = "Heap in use after each collection of the old generation, by the time under load: what is left then is what the program holds. Growth is judged by the Mann-Kendall test within each life of a JVM; its speed is Sen's slope.".to_owned();
    if findings.heap_trends.iter().any(|trend| trend.p_value.is_none()) {
        text += " A longer run or a smaller heap tells more: the test needs ten such collections.";
    }
    let verdicts = findings.heap_trends.iter().map(verdict).collect();
    let pieces = vec![Piece::Text(text), Piece::List(verdicts)];
    let section = Section::new("heap", "Does the heap grow?", pieces);
    (!findings.heap_trends.is_empty())
        .then(|| section.showing(charts::heap(findings)).saying(answer(findings)))
}

/// Which heaps grow.
fn answer(findings: &Findings) -> String {
    let grows = findings.heap_trends.iter().filter(|trend| trend.grows);
    let grows: Vec<String> = grows.map(|t| format!("that of {}, {}", t.pod, t.variant)).collect();
    if grows.is_empty() { "none is seen to".into() } else { grows.join("; ") }
}

/// `vets, agent: grows by 1.2 MiB a minute (p 0.0003, 38 points): maybe a leak`.
fn verdict(trend: &HeapTrend) -> Cell {
    let (said, tone) = in_words(trend);
    Cell::toned(format!("{}, {}: {said}", trend.pod, trend.variant), tone)
}
