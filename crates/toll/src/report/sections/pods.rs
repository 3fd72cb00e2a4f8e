//! Turns CPU and memory by pod into the table that `kubectl top pods` users know. A view: its figures are whole
//! numbers, and nothing is computed from them. Draws nothing.

use crate::analysis::findings::{Findings, LoadFindings, Measured, Metric, PodRow, PodUse};

use super::rates::achieved_rates;
use crate::report::document::{Cell, Column, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Quantity, Scale, change, share};
use crate::report::owners::pods_name;
use crate::report::wording::load_title;

/// The group that everything is in when a study names none.
const NO_GROUP: &str = "default";

/// CPU and memory by pod under each load; none when no load has them.
pub(in crate::report) fn top(findings: &Findings, loads: &[&LoadFindings]) -> Option<Section> {
    let text = "A view, as kubectl top pods shows it: rounded to millicores and MiB, a sidecar's in its pod. CPU is that of counters over the measured window. Memory is all that is charged to the pod, its page cache included, where kubectl leaves out file pages not lately used. TOTAL is application and databases; gateways stand apart.";
    let mut pieces = vec![Piece::Text(text.into())];
    for load in loads.iter().filter(|load| !load.top_pods.is_empty()) {
        pieces.push(Piece::Heading(load_title(load)));
        pieces.extend(other_rates(&findings.baseline, load));
        pieces.push(Piece::Table(table(findings, load)));
    }
    (pieces.len() > 1)
        .then(|| Section::new("pods", "Top pods", pieces).saying("as kubectl top pods shows them"))
}

/// What must be known before a change of raw CPU is read (docs/method.md rule 2).
pub(in crate::report) fn other_rates(baseline: &str, load: &LoadFindings) -> Option<Piece> {
    let rates = achieved_rates(load).filter(|rates| !rates.are_equal())?;
    let per_request = load.effects.iter().filter(|e| e.metric == Metric::CpuPerRequest);
    let of_others: Vec<String> = per_request
        .filter(|e| e.variant != baseline)
        .map(|e| format!("{} {}", e.variant, change(e.ratio.value)))
        .collect();
    let aside =
        if of_others.is_empty() { String::new() } else { format!(" ({})", of_others.join(", ")) };
    let apart = share(rates.apart());
    let text = format!(
        "The achieved rates differ by {apart}, and raw CPU changes with the rate: read CPU per request instead{aside}."
    );
    Some(Piece::List(vec![Cell::toned(text, Tone::Unknown)]))
}

fn table(findings: &Findings, load: &LoadFindings) -> Table {
    let variants: Vec<&str> = load.variants.iter().map(|v| v.variant.as_str()).collect();
    let others: Vec<&str> = variants.iter().copied().filter(|v| *v != findings.baseline).collect();
    let sheet = Sheet { variants, others, grouped: is_grouped(load) };
    let groups = vec![
        sheet.group("CPU, millicores", Quantity::Millicores, load, |u| u.cpu_millicores),
        sheet.group("memory, MiB", Quantity::Mebibytes, load, |u| u.memory_mib),
    ];
    let groups = groups.into_iter().filter(|g| !g.rows.is_empty()).collect();
    Table { columns: sheet.columns(), groups }
}

fn is_grouped(load: &LoadFindings) -> bool {
    load.top_pods.iter().any(|row| !row.group.is_empty() && row.group != NO_GROUP)
}

/// The columns that all rows share.
struct Sheet<'a> {
    variants: Vec<&'a str>,
    others: Vec<&'a str>,
    grouped: bool,
}

impl Sheet<'_> {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![words("")];
        columns.extend(self.variants.iter().map(|variant| figures(*variant)));
        for other in &self.others {
            let of = if self.others.len() > 1 { format!(" of {other}") } else { String::new() };
            columns.extend([figures(format!("change{of}")), figures(format!("in\u{a0}%{of}"))]);
        }
        columns.extend(self.grouped.then(|| words("namespace")));
        columns
    }

    fn group(
        &self,
        title: &str,
        quantity: Quantity,
        load: &LoadFindings,
        measured: impl Fn(&PodUse) -> Option<Measured>,
    ) -> Group {
        let scale = Scale::whole(quantity);
        let rows = load.top_pods.iter().map(|row| self.row(row, scale, &measured)).collect();
        Group { title: Some(title.into()), rows }
    }

    fn row(
        &self,
        row: &PodRow,
        scale: Scale,
        measured: impl Fn(&PodUse) -> Option<Measured>,
    ) -> Vec<Cell> {
        let of = |variant: &str| row.uses.iter().find(|u| u.variant == variant).and_then(&measured);
        let title = row.owner.as_ref().map_or_else(|| "TOTAL".into(), |of| pods_name(&of.pods));
        let mut cells = vec![Cell::from(title)];
        for variant in &self.variants {
            cells.push(of(variant).map_or_else(Cell::absent, |m| scale.plain(m.mean.value).into()));
        }
        for other in &self.others {
            let measured = of(other);
            let difference = measured.and_then(|m| m.change);
            let ratio = measured.and_then(|m| m.ratio);
            cells.push(difference.map_or_else(Cell::absent, |e| scale.signed(e.value).into()));
            cells.push(ratio.map_or_else(Cell::absent, |e| change(e.value).into()));
        }
        cells.extend(self.grouped.then(|| Cell::from(&row.group)));
        if row.owner.is_none() {
            cells.iter_mut().for_each(|cell| cell.tone = Tone::Sum);
        }
        cells
    }
}
