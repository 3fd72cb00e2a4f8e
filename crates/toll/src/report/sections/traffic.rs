//! What each variant costs where the application is going to run, as a table.

use crate::analysis::findings::{Estimate, Findings, Traffic};

use crate::report::answer::{at_load, compared};
use crate::report::document::{Cell, Piece, Section, Table, figures, words};
use crate::report::figures::{Quantity, Scale, cores_more, ends, rate};
use crate::report::subjects::traffic::{Cost, cost, traffic};
use crate::report::wording::{primary, several};

/// Cores and memory of all variants; none where nothing was compared.
pub(in crate::report) fn at_traffic(findings: &Findings) -> Option<Section> {
    let load = primary(findings)?;
    let Traffic { per_s, pods } = traffic(findings);
    let row = |variant: &&str| {
        let Cost { cores, memory } = cost(load, variant, traffic(findings))?;
        let memory = memory.map_or_else(Cell::absent, |bytes| memory_more(bytes).into());
        Some(vec![Cell::from(*variant), cores_more(cores).into(), memory])
    };
    let rows: Vec<Vec<Cell>> = compared(findings, load).iter().filter_map(row).collect();
    let columns = vec![words(""), figures("CPU"), figures("memory")];
    let there =
        pods.map_or_else(String::new, |(there, _)| format!(" in {}", several(there, "pod")));
    let text = format!(
        "More than the baseline, at {}{there}: CPU per request as measured {}, times the requests; memory as measured, {}.",
        rate(per_s),
        at_load(findings, load),
        match pods {
            Some((there, here)) => format!("times {there} pods for the {here} of this run"),
            None => "of as many pods as in this run".into(),
        }
    );
    let uncovered = "Not in it: that a request costs less where more come at once, or more near the limit; new connections, where this run reused them; other payloads and paths; the mesh's control plane; memory that grows with a larger mesh's configuration.";
    let pieces = vec![
        Piece::Text(text),
        Piece::Text(uncovered.into()),
        Piece::Table(Table::new(columns, rows.clone())),
    ];
    let section = Section::new("traffic", "Where it is going to run", pieces);
    (!rows.is_empty()).then(|| section.saying(format!("at {}{there}", rate(per_s))))
}

/// `+31.5 MiB (31.2 to 31.8)`.
fn memory_more(bytes: Estimate) -> String {
    let scale = Scale::of(Quantity::BinaryBytes, [bytes.value]);
    let interval = ends(bytes).map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", scale.plain(low), scale.plain(high))
    });
    format!("{}{interval}", scale.with_sign_and_unit(bytes.value))
}
