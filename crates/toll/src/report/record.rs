//! Turns what ran, and on what, into tables: rounds, variants, machine. Draws nothing.

use crate::analysis::findings::{Findings, RoundLine};

use super::compose::Room;
use super::content::section;
use super::figures::{clock, share};
use super::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// Every arm of every round; with little room only those of which something does not count.
pub(super) fn rounds(findings: &Findings, room: Room) -> Section {
    let (valid, all) = findings.extent.slices;
    let (excused, cycles) = findings.extent.excused;
    let text = format!("{valid} of {all} slices count; {excused} of {cycles} cycles are excused.");
    let columns = vec![
        figures("round"),
        words("arm"),
        figures("slices"),
        figures("steal"),
        words("path"),
        words("what does not count"),
    ];
    let is_shown = |line: &&RoundLine| room == Room::All || is_weak(line);
    let rows: Vec<_> = findings.rounds.iter().filter(is_shown).map(round_row).collect();
    let table = (!rows.is_empty()).then(|| Piece::Table(Table::new(columns, rows)));
    let pieces = std::iter::once(Piece::Text(text)).chain(table);
    let answer = format!(
        "{} in {}, {valid} of {all} slices count",
        rounds_in_words(findings.extent.rounds),
        clock(findings.extent.wall_s)
    );
    section("rounds", "Rounds", pieces.collect()).saying(answer)
}

/// `10 rounds`.
pub(super) fn rounds_in_words(rounds: usize) -> String {
    if rounds == 1 { "1 round".into() } else { format!("{rounds} rounds") }
}

fn is_weak(line: &RoundLine) -> bool {
    !line.proven || line.slices.0 < line.slices.1
}

fn round_row(line: &RoundLine) -> Vec<Cell> {
    let (valid, all) = line.slices;
    let pods = line.replicas.map_or_else(String::new, |pods| format!(", {pods} pods"));
    let path = match line.proven {
        true => Cell::toned("proven", Tone::Same),
        false => Cell::toned("not proven", Tone::Worse),
    };
    let tone = if valid < all { Tone::Unknown } else { Tone::Neutral };
    vec![
        line.round.to_string().into(),
        format!("{}{pods}", line.arm).into(),
        Cell::toned(format!("{valid} of {all}"), tone),
        share(line.steal).into(),
        path,
        line.invalid.join("; ").into(),
    ]
}

/// The variants, the machine and the run.
pub(super) fn machine(findings: &Findings) -> Section {
    let rows = |pairs: Vec<(&String, &String)>| -> Vec<Vec<Cell>> {
        pairs.into_iter().map(|(label, value)| vec![label.into(), value.into()]).collect()
    };
    let variants = findings.variants.iter().map(|v| (&v.name, &v.describes)).collect();
    let manifest = findings.manifest.iter().map(|(label, value)| (label, value)).collect();
    let groups = vec![
        Group { title: Some("variants".into()), rows: rows(variants) },
        Group { title: Some("machine and run".into()), rows: rows(manifest) },
    ];
    let table = Table { columns: vec![words(""), words("")], groups };
    section("machine", "Machine and versions", vec![Piece::Table(table)])
        .saying(machine_line(findings))
}

/// What the machine was, in a line: the values of the manifest that name it.
pub(super) fn machine_line(findings: &Findings) -> String {
    let named = ["cpu", "CPU", "cores", "kernel", "lab", "isolation"];
    let value =
        |label: &&str| findings.manifest.iter().find(|(of, _)| of == *label).map(|(_, v)| v);
    let values: Vec<&str> = named.iter().filter_map(value).map(String::as_str).collect();
    values.join(", ")
}
