//! What ran: the database, how much an answer carries, and what the variants are. Draws nothing.

use super::Stairs;
use crate::analysis::findings::Findings;
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

fn payload(stairs: &Stairs<'_>) -> Option<String> {
    let mean = stairs.of.answer_bytes.filter(|bytes| bytes.is_finite())?;
    Some(format!("An answer carries {} bytes on average.", rounded(mean)))
}
