//! What ran: the database, how much an answer carries, and what the variants are. Draws nothing.

use super::Stairs;
use crate::analysis::findings::{Findings, HeySummary};
use crate::report::content::section;
use crate::report::figures::rounded;
use crate::report::table::{Cell, Piece, Section, Tone};

/// Label in the manifest of the database server that ran.
const DATABASE: &str = "database";

/// What stands before all figures, so that a stand-in is never taken for the real thing.
pub(super) fn application(stairs: &Stairs<'_>) -> Section {
    let findings = stairs.findings;
    let about: Vec<String> = database(findings).into_iter().chain(payload(stairs)).collect();
    let variants = findings.variants.iter().filter(|variant| variant.skipped.is_none());
    let variants =
        variants.map(|v| Cell::toned(format!("{}: {}", v.name, v.describes), Tone::Quiet));
    let mut pieces = Vec::new();
    pieces.extend((!about.is_empty()).then(|| Piece::Text(about.join(" "))));
    pieces.push(Piece::List(variants.collect()));
    section("application", "What ran", pieces)
}

fn database(findings: &Findings) -> Option<String> {
    let (_, server) = findings.manifest.iter().find(|(label, _)| label == DATABASE)?;
    Some(format!("The database is {server}."))
}

/// Bytes of all bodies by all answers.
fn payload(stairs: &Stairs<'_>) -> Option<String> {
    let summaries: Vec<&HeySummary> =
        stairs.steps().flat_map(|load| &load.variants).filter_map(|v| v.hey.as_ref()).collect();
    let bytes: u64 = summaries.iter().map(|hey| hey.body_bytes).sum();
    let answers: u64 = summaries.iter().flat_map(|hey| &hey.statuses).map(|(_, count)| count).sum();
    let mean = bytes as f64 / answers as f64;
    (answers > 0).then(|| format!("An answer carries {} bytes on average.", rounded(mean)))
}
