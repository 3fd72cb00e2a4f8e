//! Turns what ran, and on what, into tables: rounds, variants, machine. Draws nothing.

use std::time::Duration;

use crate::analysis::findings::{Fact, Findings, RoundLine};

use super::Detail;
use crate::report::caveats::database;
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{clock, share};

/// Every arm of every round; with less detail only those of which something does not count.
pub(in crate::report) fn rounds(findings: &Findings, detail: Detail) -> Section {
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
    let is_shown = |line: &&RoundLine| detail == Detail::All || is_weak(line);
    let rows: Vec<_> = findings.rounds.iter().filter(is_shown).map(round_row).collect();
    let table = (!rows.is_empty()).then(|| Piece::Table(Table::new(columns, rows)));
    let pieces = std::iter::once(Piece::Text(text)).chain(table);
    let answer = format!(
        "{} in {}, {valid} of {all} slices count",
        rounds_in_words(findings.extent.rounds),
        clock(findings.extent.wall_s)
    );
    Section::new("rounds", "Rounds", pieces.collect()).saying(answer)
}

/// `10 rounds`.
pub(in crate::report) fn rounds_in_words(rounds: usize) -> String {
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
    let mut why: Vec<String> = line.invalid.iter().map(ToString::to_string).collect();
    why.sort_unstable();
    vec![
        line.round.to_string().into(),
        format!("{}{pods}", line.arm).into(),
        Cell::toned(format!("{valid} of {all}"), tone),
        share(line.steal).into(),
        path,
        why.join("; ").into(),
    ]
}

/// The variants, the machine and the run.
pub(in crate::report) fn machine(findings: &Findings) -> Section {
    let row = |[label, value]: [String; 2]| vec![Cell::from(label), value.into()];
    let variants = findings.variants.iter().map(|v| [v.name.clone(), v.describes.clone()]);
    let groups = vec![
        Group { title: Some("variants".into()), rows: variants.map(row).collect() },
        Group {
            title: Some("machine and run".into()),
            rows: findings.facts.iter().map(label_and_value).map(row).collect(),
        },
    ];
    let table = Table { columns: vec![words(""), words("")], groups };
    Section::new("machine", "Machine and versions", vec![Piece::Table(table)])
        .saying(machine_line(findings))
}

fn label_and_value(fact: &Fact) -> [String; 2] {
    let (label, value) = match fact {
        Fact::Labelled { label, value } => (label.as_str(), value.clone()),
        Fact::Artifact { artifact, version } => (artifact.label(), version.clone()),
        Fact::Database(server) => ("database", database(server)),
        Fact::Profile(name) => ("profile", name.clone()),
        Fact::Runtime(runtime) => ("runtime", runtime.clone()),
        Fact::Work { services } => {
            let burned = |(service, ns): &(String, u64)| {
                format!("{service} {:?}", Duration::from_nanos(*ns))
            };
            ("work", services.iter().map(burned).collect::<Vec<_>>().join(", "))
        }
        Fact::Arms { count, side_by_side } => {
            let how = if *side_by_side { "side by side" } else { "one after another" };
            ("arms of a round", format!("{count}, {how}"))
        }
        Fact::Cycles(count) => ("cycles of a round", count.to_string()),
        Fact::GuardS(seconds) => ("guard of a slice", format!("{seconds} s")),
        Fact::Seed(seed) => ("seed", seed.to_string()),
    };
    [label.into(), value]
}

/// What the machine was, in a line: the facts that name it.
pub(in crate::report) fn machine_line(findings: &Findings) -> String {
    let value = |label: &&str| {
        findings.facts.iter().find_map(|fact| match fact {
            Fact::Labelled { label: of, value } if of == *label => Some(value.as_str()),
            _ => None,
        })
    };
    let named = ["cpu", "CPU", "cores", "kernel", "lab", "isolation"];
    named.iter().filter_map(value).collect::<Vec<_>>().join(", ")
}
