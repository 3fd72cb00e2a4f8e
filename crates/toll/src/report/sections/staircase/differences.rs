//! What each case costs in one table: against the baseline, then against the case before it. Draws nothing.

use super::words::{as_change, microseconds, percents, signed_interval};
use crate::analysis::findings::{Estimate, StaircaseDifference};
use crate::report::document::{Cell, Group, Piece, Section, Table, Tone, figures, words};
use crate::report::figures::{Scale, ratio, rounded};
use crate::report::subjects::staircase::Stairs;
use crate::report::values::in_first_order;
use crate::report::wording::{change_in_words, outside_zero};

/// A group for what each is held against; none without two variants.
pub(super) fn differences(stairs: &Stairs<'_>) -> Option<Section> {
    let first = stairs.of.differences.first()?;
    let level = first.throughput_ratio.level * 100.0;
    let bytes = stairs.of.answer_bytes.filter(|bytes| bytes.is_finite());
    let answers = bytes.map_or_else(String::new, |mean| {
        format!(" An answer carries {} bytes on average.", rounded(mean))
    });
    let text = format!(
        "Over all steps, within rounds: throughput in % (geometric mean of the steps), CPU of a request in µs (mean of the steps). Below each its {level:.0}\u{a0}% interval; grey where it holds zero. The data plane is sidecars, egress gateway and SNI proxy; what TLS takes inside the services is the application's own. A loop goes flat out, so rates differ.{answers}"
    );
    let columns = vec![
        words(""),
        figures("throughput, %"),
        figures("data plane, µs"),
        figures("ratio"),
        figures("application, µs"),
    ];
    let table = Table { columns, groups: groups(stairs) };
    let pieces = vec![Piece::Text(text), Piece::Table(table)];
    let title = stairs.title("What each step costs, flat out");
    Some(Section::new(stairs.id("differences"), title, pieces).saying(answer(stairs)))
}

/// `throughput against bypass: sidecar −2.3 % ±3.9, gateway −8.5 % ±5.0`.
fn answer(stairs: &Stairs<'_>) -> String {
    let baseline = &stairs.findings.baseline;
    let against = stairs.of.differences.iter().filter(|d| d.against == *baseline);
    let said =
        |d: &StaircaseDifference| format!("{} {}", d.variant, change_in_words(d.throughput_ratio));
    let said: Vec<String> = against.map(said).collect();
    format!("throughput against {baseline}: {}", said.join(", "))
}

fn groups(stairs: &Stairs<'_>) -> Vec<Group> {
    let baseline = &stairs.findings.baseline;
    let sheet = Sheet::of(stairs);
    let all = &stairs.of.differences;
    let group = |against: &str| {
        let of = all.iter().filter(|d| d.against == against);
        let is_before = if against == baseline { "" } else { ", the step before" };
        Group {
            title: Some(format!("against {against}{is_before}")),
            rows: of.flat_map(|d| sheet.rows(d)).collect(),
        }
    };
    let mut groups: Vec<Group> =
        in_first_order(all.iter().map(|d| d.against.as_str())).into_iter().map(group).collect();
    groups.extend(stairs.of.again.as_ref().map(|again| Group {
        title: Some("the baseline against itself".into()),
        rows: sheet.rows(again).into(),
    }));
    groups
}

/// The scales that all rows share.
struct Sheet<'a> {
    stairs: Stairs<'a>,
    mesh: Scale,
    application: Scale,
}

impl<'a> Sheet<'a> {
    fn of(stairs: &Stairs<'a>) -> Self {
        let scale = |part: fn(&StaircaseDifference) -> Option<Estimate>| {
            microseconds(stairs.of.differences.iter().filter_map(part).map(|e| e.value))
        };
        Self {
            stairs: *stairs,
            mesh: scale(|d| d.mesh_cpu_us),
            application: scale(|d| d.application_cpu_us),
        }
    }

    /// A row of figures, and one of their intervals.
    fn rows(&self, of: &StaircaseDifference) -> [Vec<Cell>; 2] {
        let change = as_change(of.throughput_ratio);
        let figure = |scale: Scale, e: Option<Estimate>| {
            let toned = |e: Estimate| {
                let tone = if outside_zero(e) { Tone::Neutral } else { Tone::Unknown };
                Cell::toned(scale.signed(e.value), tone)
            };
            e.map_or_else(Cell::absent, toned)
        };
        // What has none takes nothing less of it.
        let mesh = of.mesh_cpu_us.filter(|_| self.stairs.has_data_plane(&of.variant));
        let below = |scale: Scale, e: Option<Estimate>| {
            let said = e.map(|e| signed_interval(scale, e));
            Cell::toned(said.unwrap_or_default(), Tone::Quiet)
        };
        // A variant without a data plane is no fraction of one that has it.
        let times = of.mesh_cpu_ratio.filter(|e| e.value > 0.0);
        let times = times.map_or_else(Cell::absent, |e| ratio(e.value).into());
        let figures = vec![
            of.variant.as_str().into(),
            figure(percents(), Some(change)),
            figure(self.mesh, mesh),
            times,
            figure(self.application, of.application_cpu_us),
        ];
        let intervals = vec![
            Cell::default(),
            below(percents(), Some(change)),
            below(self.mesh, mesh),
            Cell::default(),
            below(self.application, of.application_cpu_us),
        ];
        [figures, intervals]
    }
}
