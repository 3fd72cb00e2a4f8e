//! Turns what ran, and on what, into tables: trials, variants, machine. Draws nothing.

use crate::analysis::findings::{Findings, TrialLine};

use super::content::section;
use super::figures::{ratio, share};
use super::table::{Cell, Group, Piece, Section, Table, Tone, figures, words};

/// Every trial of the run.
pub(super) fn trials(findings: &Findings) -> Section {
    of_trials(findings, |_| true)
}

/// How many trials count, and those that do not, where there is no room for all.
pub(super) fn invalid_trials(findings: &Findings) -> Section {
    of_trials(findings, |trial| trial.invalid.is_some())
}

fn of_trials(findings: &Findings, is_shown: impl Fn(&&TrialLine) -> bool) -> Section {
    let valid = findings.trials.iter().filter(|t| t.invalid.is_none()).count();
    let text = format!("{valid} of {} trials count.", findings.trials.len());
    let columns = vec![
        figures("trial"),
        figures("block"),
        words("variant"),
        words("load"),
        figures("steal"),
        figures("calibration"),
        words("counts"),
    ];
    let rows: Vec<_> = findings.trials.iter().filter(is_shown).map(trial_row).collect();
    let table = (!rows.is_empty()).then(|| Piece::Table(Table::new(columns, rows)));
    let pieces = std::iter::once(Piece::Text(text)).chain(table);
    section("trials", "Trials", pieces.collect())
}

fn trial_row(trial: &TrialLine) -> Vec<Cell> {
    let counts = match &trial.invalid {
        None => Cell::toned("yes", Tone::Same),
        Some(why) => Cell::toned(format!("no: {why}"), Tone::Worse),
    };
    vec![
        trial.index.to_string().into(),
        trial.block.to_string().into(),
        Cell::from(&trial.variant),
        Cell::from(&trial.load),
        share(trial.steal).into(),
        ratio(trial.calibration).into(),
        counts,
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
    section("machine", "Machine and manifest", vec![Piece::Table(table)])
}
